"""Logistic regressions of many runs at once, by Newton's method on whatever device they are on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Fits", "fit_many_logistic"]

MAX_STEPS = 100
HALVINGS = 30
TOLERANCE = 1e-12  # of the Newton decrement: what the loss could still fall by, in nats
FLAT = 1e-10  # added to the curvature, which is none where all intercepts move together


@dataclass(frozen=True, eq=False)
class Fits:
    """Weights W (r, C, e), intercepts b (r, C) of each run, -inf for classes it did not see."""

    W: Tensor
    b: Tensor
    converged: Tensor  # (r,) of bool

    def logits(self, X: Tensor) -> Tensor:
        """(r, n, e) -> (r, n, C)."""
        return X @ self.W.mT + self.b[:, None]


def fit_many_logistic(X: Tensor, codes: Tensor, classes: int, *, C: float = 1.0) -> Fits:
    """The minima that :func:`fit_logistic` finds, of r problems of equal size side by side.

    Parameters
    ----------
    X : tensor (r, n, e) of float64
    codes : tensor (r, n) of 0 ... classes - 1, or -1 for windows that take no part
    C : float
        Inverse strength of the penalty.
    """
    problem = _Problem.of(X, codes, classes, C)
    theta = X.new_zeros(len(X), classes, X.shape[2] + 1)
    loss, p = problem.loss(theta)
    decrement = torch.full_like(loss, torch.inf)
    for _ in range(MAX_STEPS):
        gradient = problem.gradient(theta, p)
        step = problem.newton_step(gradient, p)
        decrement = (gradient * step).sum(dim=(1, 2)) / 2
        # One look at the device a step: a handful in all.
        if bool((decrement <= TOLERANCE).all()):
            break
        theta, loss, p = _descend(problem, theta, loss, step, decrement)
    W, b = theta[..., :-1], theta[..., -1].masked_fill(~problem.present, -torch.inf)
    return Fits(W, b, decrement <= 1e3 * TOLERANCE)


def _descend(
    problem: _Problem, theta: Tensor, loss: Tensor, step: Tensor, decrement: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Each run goes the largest of the steps 1, 1/2, 1/4, ... that lowers its loss enough."""
    size = torch.ones_like(loss)
    for _ in range(HALVINGS):
        trial = theta - size[:, None, None] * step
        new_loss, p = problem.loss(trial)
        # Near the minimum rounding hides what is won.
        good = new_loss <= loss - 1e-4 * size * decrement + 1e-14 * loss.abs()
        if bool(good.all()):
            return trial, new_loss, p
        size = torch.where(good, size, size / 2)
    kept = torch.where(good[:, None, None], trial, theta)
    return kept, *problem.loss(kept)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Mean loss of each run with its penalty; theta (r, C, e + 1) holds weights and intercepts."""

    X: Tensor  # (r, n, e + 1), a one behind each row
    weight: Tensor  # (r, n): one over the number of labelled windows, 0 where not labelled
    own: Tensor  # (r, n, C), one-hot
    present: Tensor  # (r, C)
    penalty: Tensor  # (r, 1, e + 1), 0 for the intercepts

    @classmethod
    def of(cls, X: Tensor, codes: Tensor, classes: int, C: float) -> _Problem:
        known = codes >= 0
        own = torch.nn.functional.one_hot(codes.clamp_min(0), classes).to(X) * known[..., None]
        n = known.sum(dim=1, keepdim=True)
        present = own.any(dim=1)
        # Two symmetric rows +-w/2 carry half of the penalty that one row w has.
        half = torch.where(present.sum(dim=1, keepdim=True) == 2, C / 2, C)
        penalty = (1 / (n * half))[..., None].repeat(1, 1, X.shape[2] + 1).to(X)
        penalty[..., -1] = 0
        ones = X.new_ones(*X.shape[:2], 1)
        return cls(torch.cat([X, ones], dim=2), known / n.to(X), own, present, penalty)

    def loss(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Loss (r,) and class probabilities (r, n, C)."""
        logits = (self.X @ theta.mT).masked_fill(~self.present[:, None], -torch.inf)
        log_p = logits.log_softmax(dim=2)
        hit = (log_p.masked_fill(self.own == 0, 0) * self.own).sum(dim=2)
        penalty = (self.penalty * theta**2).sum(dim=(1, 2)) / 2
        return penalty - (hit * self.weight).sum(dim=1), log_p.exp()

    def gradient(self, theta: Tensor, p: Tensor) -> Tensor:
        error = (p - self.own) * self.weight[..., None]
        return error.mT @ self.X + self.penalty * theta

    def newton_step(self, gradient: Tensor, p: Tensor) -> Tensor:
        r, classes, e1 = gradient.shape
        H = gradient.new_empty(r, classes, e1, classes, e1)
        for c in range(classes):
            for d in range(c, classes):
                curvature = self.weight * p[..., c] * (float(c == d) - p[..., d])  # (r, n)
                H[:, c, :, d] = H[:, d, :, c] = (self.X * curvature[..., None]).mT @ self.X
        H = H.reshape(r, classes * e1, classes * e1)
        # A class that a run did not see has no curvature and no gradient: 1 keeps it at 0.
        unseen = (~self.present).to(H).repeat_interleave(e1, dim=1)
        penalty = self.penalty.expand(r, classes, e1).reshape(r, -1)
        H.diagonal(dim1=1, dim2=2).add_(penalty + unseen + FLAT)
        flat = gradient.reshape(r, -1, 1)
        return torch.cholesky_solve(flat, torch.linalg.cholesky(H)).reshape(gradient.shape)

import math

import numpy as np
import pytest
import torch
from tests import oracles

from expclr.errors import ConfigError
from expclr.methods import ExpCLRLoss, PairLoss, QuadraticLoss
from expclr.methods.base import one_hot

KINDS = ["linear", "squared", "gaussian"]


def _sample(n=9, e=4, d=5, *, missing=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, e, generator=generator)
    f = torch.randn(n, d, generator=generator)
    f[torch.rand(n, d, generator=generator) < missing] = math.nan
    return z, f


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("loss", "oracle"),
    [
        (QuadraticLoss, oracles.quadratic),
        (PairLoss, oracles.pair),
        (ExpCLRLoss, oracles.expclr),
    ],
)
def test_losses_agree_with_their_loops(loss, oracle, kind, normalize, missing):
    z, f = _sample(missing=missing)
    got = loss(delta=1.3, similarity=kind, normalize=normalize, sigma=2.0)(z, f)
    wanted = oracle(z.tolist(), f.tolist(), delta=1.3, kind=kind, normalize=normalize, sigma=2.0)
    assert got.item() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("tau", [1e-4, 1e-2, 1.0, 1e2, 1e6])
def test_expclr_is_accurate_and_has_gradients_at_any_temperature(tau):
    z, f = _sample(40)
    z.requires_grad_()
    loss = ExpCLRLoss(tau=tau)(z, f)
    loss.backward()
    assert loss.item() == pytest.approx(oracles.expclr(z.tolist(), f.tolist(), tau=tau), rel=1e-5)
    assert z.grad.isfinite().all()
    assert z.grad.abs().max() > 0


def test_a_small_temperature_is_the_maximum_and_a_large_one_the_mean():
    z, f = _sample(30)  # Prop. 3
    L, _ = QuadraticLoss().pair_losses(z, f)
    assert ExpCLRLoss(tau=1e-4)(z, f).item() == pytest.approx(L.max().item(), abs=2e-3)
    assert ExpCLRLoss(tau=1e6)(z, f).item() == pytest.approx(QuadraticLoss()(z, f).item(), rel=1e-5)


@pytest.mark.parametrize("tau", [1e-3, 0.05, 0.3, 1.0, 30.0])
def test_pairs_pull_in_proportion_to_the_exponential_of_their_loss(tau):
    from expclr.methods.expclr import soft_maximum

    L = torch.rand(6, 6, dtype=torch.float64, requires_grad=True)  # App. F
    soft_maximum(L, torch.ones(6, 6), tau).backward()
    torch.testing.assert_close(L.grad, (L.detach() / tau).flatten().softmax(0).reshape(6, 6))


def test_distances_that_are_kept_cost_nothing():
    F = torch.randn(8, 4)  # Prop. 2
    longest = torch.cdist(F, F).max().item()
    for loss in (QuadraticLoss, ExpCLRLoss):
        kept = loss(delta=longest, similarity="linear", normalize=False)(F, F)
        assert kept.item() == pytest.approx(0, abs=1e-8)


def test_row_means_of_the_target_below_one_keep_the_normalised_loss_above_zero():
    # With mu_i the mean of D_ij is 1, the mean of (1 - s_ij) is not: distances kept still cost.
    F = torch.randn(32, 4)
    assert QuadraticLoss(similarity="linear")(F, F).item() > 1e-3


@pytest.mark.parametrize("loss", [QuadraticLoss, PairLoss, ExpCLRLoss])
def test_one_hot_labels_give_the_discrete_definition(loss):
    z, _ = _sample(8)
    y = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    got = loss(delta=2.0, normalize=False)(z, one_hot(y, 3))
    D = np.array([[oracles.distance(a, b) for b in z] for a in z])
    s = (y[:, None] == y).double().numpy()
    L = (
        s * D**2 + np.maximum(0, (1 - s) ** 2 * 4 - D**2)
        if loss is PairLoss
        else (2 - 2 * s - D) ** 2
    )
    wanted = np.log(np.exp(L).mean()) if loss is ExpCLRLoss else L.mean()
    assert got.item() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("loss", [QuadraticLoss, PairLoss, ExpCLRLoss])
def test_a_window_without_features_has_no_weight(loss):
    z, f = _sample(8)
    with_gap = torch.cat([f, torch.full((1, 5), math.nan)])
    far = torch.cat([z, z[:1] + 9]).requires_grad_()
    loss(normalize=False)(far, with_gap).backward()
    assert (far.grad[-1] == 0).all()
    torch.testing.assert_close(
        loss(normalize=False)(far, with_gap), loss(normalize=False)(z, f), check_stride=False
    )


@pytest.mark.parametrize("loss", [QuadraticLoss, PairLoss, ExpCLRLoss])
def test_bf16_autocast_gives_the_float32_loss(loss):
    z, f = _sample(32, e=100, d=29)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = loss()(z, f)
    torch.testing.assert_close(half, loss()(z, f), rtol=1e-6, atol=0)


@pytest.mark.parametrize("settings", [{"tau": 0.0}, {"tau": -1.0}, {"delta": 0.0}])
def test_unusable_settings_are_refused(settings):
    with pytest.raises(ConfigError, match="positive"):
        ExpCLRLoss(**settings)


def test_cross_entropy_leaves_unlabelled_windows_out():
    from expclr.methods import CrossEntropy

    method = CrossEntropy()
    y = torch.tensor([0, 1, -1, 2])
    method.prepare(y, 4)
    z = torch.randn(4, 4)
    scores = method.classifier(z).double().tolist()
    losses = [
        math.log(sum(math.exp(s) for s in row)) - row[label]
        for row, label in zip(scores, y.tolist(), strict=True)
        if label >= 0
    ]
    assert method(z, y).item() == pytest.approx(sum(losses) / len(losses), rel=1e-6)
    with pytest.raises(ConfigError, match="3 classes for a head of 2"):
        CrossEntropy(classes=2).prepare(y, 4)

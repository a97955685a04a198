"""Slow loops in float64, written from the formulas, that the fast code must agree with."""

import math

import numpy as np


def distance(a, b):
    return math.sqrt(sum((float(x) - float(y)) ** 2 for x, y in zip(a, b, strict=True)))


def feature_distance(a, b):
    """Over what both have, rescaled by d / shared; None if they share nothing."""
    shared = [(x, y) for x, y in zip(a, b, strict=True) if not (math.isnan(x) or math.isnan(y))]
    if not shared:
        return None
    return math.sqrt(sum((x - y) ** 2 for x, y in shared) * len(a) / len(shared))


def similarity(kind, d, reference, sigma):
    if kind == "linear":
        return 1 - min(1, d / reference)
    if kind == "squared":
        return (1 - min(1, d / reference)) ** 2
    return math.exp(-(d**2) / sigma)


def pair_terms(z, f, *, kind="squared", delta=1.0, reference=None, sigma=1.0, normalize=True):
    """All (s_ij, D_ij) of pairs that count, with delta kept for the caller."""
    n = len(z)
    fd = [[feature_distance(f[i], f[j]) for j in range(n)] for i in range(n)]
    known = [d for row in fd for d in row if d is not None]
    reference = max(known) if reference is None else reference
    zd = np.array([[distance(z[i], z[j]) for j in range(n)] for i in range(n)])
    terms = []
    for i in range(n):
        mu = sum(zd[i]) / n
        for j in range(n):
            if fd[i][j] is not None:
                D = zd[i, j] / mu if normalize else zd[i, j]
                terms.append((similarity(kind, fd[i][j], reference, sigma), D))
    return terms


def quadratic(z, f, *, delta=1.0, **options):
    terms = pair_terms(z, f, **options)
    return sum(((1 - s) * delta - D) ** 2 for s, D in terms) / len(terms)


def expclr(z, f, *, tau=1.0, delta=1.0, **options):
    terms = pair_terms(z, f, **options)
    losses = [((1 - s) * delta - D) ** 2 for s, D in terms]
    top = max(losses)
    return top + tau * math.log(sum(math.exp((v - top) / tau) for v in losses) / len(losses))


def pair(z, f, *, delta=1.0, **options):
    terms = pair_terms(z, f, **options)
    losses = [s * D**2 + max(0.0, (1 - s) ** 2 * delta**2 - D**2) for s, D in terms]
    return sum(losses) / len(losses)

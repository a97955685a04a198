"""Slow float64 loops of the contrastive losses, one term at a time as in the formulas."""

import math

from tests.oracles import distance, feature_distance


def _all_distances(f):
    return [[feature_distance(a, b) for b in f] for a in f]


def log_sum_exp(scores):
    top = max(scores)
    return top + math.log(sum(math.exp(s - top) for s in scores))


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def relaxed(z, f, *, delta=1.0, sigma=1.0, normalize=True, unit_features=True, pairs=False):
    kept = [i for i, row in enumerate(f) if not all(math.isnan(v) for v in row)]
    z, f, n = [z[i] for i in kept], [f[i] for i in kept], len(kept)
    if unit_features:
        rows = []
        for row in f:
            known = [v * v for v in row if not math.isnan(v)]
            norm = math.sqrt(sum(known) / len(known) * len(row))
            rows.append([v / norm for v in row])
        f = rows
    total, count = 0.0, 0
    for i in range(n):
        row = [distance(z[i], z[j]) for j in range(n) if feature_distance(f[i], f[j]) is not None]
        mu = sum(row) / len(row) if normalize else 1.0
        for j in range(n):
            y = feature_distance(f[i], f[j])
            if i == j or y is None:
                continue
            w, d = math.exp(-(y**2) / sigma), distance(z[i], z[j]) / mu
            total += w * d**2 + (1 - w) * max(0.0, delta - d) ** 2
            count += 1
    return total / (count if pairs else n)


def logratio(z, f, *, eps=1e-6):
    """The mean over triplets, anchor by anchor."""
    n, anchors = len(z), []
    for a in range(n):
        terms = []
        others = [i for i in range(n) if i != a and feature_distance(f[a], f[i]) is not None]
        for i in others:
            for j in others:
                if i < j:
                    D = math.log((distance(z[a], z[i]) + eps) / (distance(z[a], z[j]) + eps))
                    yi, yj = feature_distance(f[a], f[i]), feature_distance(f[a], f[j])
                    terms.append((D - math.log((yi + eps) / (yj + eps))) ** 2)
        if terms:
            anchors.append(sum(terms) / len(terms))
    return sum(anchors) / len(anchors)


def rkd(z, f):
    n = len(z)
    pairs = [
        (distance(z[i], z[j]), feature_distance(f[i], f[j]))
        for i in range(n)
        for j in range(n)
        if i != j and feature_distance(f[i], f[j]) is not None
    ]
    mean_d = sum(d for d, _ in pairs) / len(pairs)
    mean_y = sum(y for _, y in pairs) / len(pairs)
    gaps = [abs(d / mean_d - y / mean_y) for d, y in pairs]
    return sum(g * g / 2 if g < 1 else g - 0.5 for g in gaps) / len(gaps)


def rank_n_contrast(z, f, *, temperature=2.0):
    n, terms = len(z), []
    for i in range(n):
        others = [k for k in range(n) if k != i and feature_distance(f[i], f[k]) is not None]
        for j in others:
            far = [
                -distance(z[i], z[k]) / temperature
                for k in others
                if feature_distance(f[i], f[k]) >= feature_distance(f[i], f[j])
            ]
            terms.append(log_sum_exp(far) + distance(z[i], z[j]) / temperature)
    return sum(terms) / len(terms)


def _contrast(z, anchors, weight, candidate, temperature, *, normalised=True):
    """Mean over anchors of -sum_j w_ij log softmax_j; ``weight`` and ``candidate`` take (i, j)."""
    losses = []
    for i in anchors:
        others = [j for j in range(len(z)) if j != i and candidate(i, j)]
        total = sum(weight(i, j) for j in others)
        if not others or not total > 0:
            continue
        scores = {j: cosine(z[i], z[j]) / temperature for j in others}
        bottom = log_sum_exp(scores.values())
        loss = -sum(weight(i, j) * (scores[j] - bottom) for j in others)
        losses.append(loss / total if normalised else loss)
    return sum(losses) / len(losses) if losses else 0.0


def ntxent(z, *, temperature):
    b = len(z) // 2
    return _contrast(
        z, range(2 * b), lambda i, j: float(i % b == j % b), lambda i, j: True, temperature
    )


def supcon(z, labels, *, temperature):
    y = list(labels) * (len(z) // len(labels))
    return _contrast(
        z,
        [i for i in range(len(z)) if y[i] >= 0],
        lambda i, j: float(y[i] == y[j]),
        lambda i, j: y[j] >= 0,
        temperature,
    )


def yaware(z, f, *, temperature, sigma):
    b, d = len(f), _all_distances(f)
    return _contrast(
        z,
        range(len(z)),
        lambda i, j: math.exp(-(d[i % b][j % b] ** 2) / (2 * sigma**2)),
        lambda i, j: d[i % b][j % b] is not None,
        temperature,
    )


def softclt(z, f, *, temperature, alpha, sharpness):
    b, d = len(f), _all_distances(f)
    top = max(v for row in d for v in row if v is not None)

    def weight(i, j):
        if i % b == j % b:
            return 1.0
        return 2 * alpha / (1 + math.exp(sharpness * d[i % b][j % b] / top))

    return _contrast(
        z,
        range(len(z)),
        weight,
        lambda i, j: d[i % b][j % b] is not None,
        temperature,
        normalised=False,
    )


def _nearest(d, i, k):
    """Windows whose distance from i is at most the k-th smallest, i itself among them."""
    known = sorted(v for v in d[i] if v is not None)
    limit = known[k - 1] if k <= len(known) else math.inf
    return {j for j, v in enumerate(d[i]) if v is not None and v <= limit}


def sleepprior(z, f, *, k, temperature, separate=False):
    b, d, losses = len(f), _all_distances(f), []
    for i in range(b):
        rows = [j for j in range(len(z)) if j != i and d[i][j % b] is not None]
        positives = [j for j in rows if j % b in _nearest(d, i, k)]
        scores = {j: cosine(z[i], z[j]) / temperature(d, i, j % b) for j in rows}
        negatives = [scores[j] for j in rows if j not in positives]
        terms = []
        for p in positives:
            bottom = [*negatives, scores[p]] if separate else list(scores.values())
            terms.append(log_sum_exp(bottom) - scores[p])
        if terms:
            losses.append(sum(terms) / len(terms))
    return sum(losses) / len(losses)


def rank_temperature(lowest, highest):
    def temperature(d, i, j):
        known = [v for v in d[i] if v is not None]
        nearer = sum(v < d[i][j] for v in known)
        return lowest + (highest - lowest) * nearer / (len(known) - 1)

    return temperature


def neighbour_contrast(z, f, *, temperature):
    """DomainSSL's pairs: the other view and the views of the nearest neighbour."""
    b, d = len(f), _all_distances(f)

    def nearest(i):
        others = {j: v for j, v in enumerate(d[i]) if j != i and v is not None}
        return {j for j, v in others.items() if v == min(others.values())}

    return _contrast(
        z,
        [i for i in range(len(z)) if d[i % b][i % b] is not None],
        lambda i, j: float(j % b == i % b or j % b in nearest(i % b)),
        lambda i, j: d[i % b][j % b] is not None,
        temperature,
    )

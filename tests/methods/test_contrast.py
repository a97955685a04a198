import math

import numpy as np
import pytest
import torch
from tests.methods import oracles_contrast as oracles

from expclr import methods
from expclr.errors import ConfigError, DataError
from expclr.methods import METHODS
from expclr.methods.base import one_hot
from expclr.methods.contrast import cosines

FEATURE_LOSSES = [
    "relaxed",
    "logratio",
    "rkd",
    "rankncontrast",
    "yaware",
    "softclt",
    "sleepprior",
    "treba",
    "domainssl",
    "decoding",
]


def _sample(n=9, e=4, d=5, *, views=1, missing=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(views * n, e, generator=generator)
    f = torch.randn(n, d, generator=generator)
    f[torch.rand(n, d, generator=generator) < missing] = math.nan
    return z, f


def _close(got, wanted, rel=1e-5):
    assert got.item() == pytest.approx(wanted, rel=rel)


def _prepared(name, f, e=4, **params):
    torch.manual_seed(1)
    method = METHODS[name](**params)
    method.prepare(f, e)
    return method


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize(
    "settings",
    [{}, {"normalize": False}, {"unit_features": False, "sigma": 4.0}, {"delta": 0.6}],
)
def test_relaxed_contrastive_agrees_with_its_loop(settings, missing):
    z, f = _sample(missing=missing)
    _close(methods.RelaxedContrastiveLoss(**settings)(z, f), oracles.relaxed(z, f, **settings))
    by_pairs = methods.RelaxedContrastiveLoss(reduction="pairs", **settings)
    _close(by_pairs(z, f), oracles.relaxed(z, f, pairs=True, **settings))


def test_relaxed_contrastive_is_n_times_larger_than_a_mean_over_all_pairs():
    z, f = _sample(20)
    rows = methods.RelaxedContrastiveLoss()(z, f)
    pairs = methods.RelaxedContrastiveLoss(reduction="pairs")(z, f)
    torch.testing.assert_close(rows, 19 * pairs)


def test_the_gradient_goes_through_the_row_mean_unless_detached():
    z, f = _sample()
    gradients = []
    for normalize in (True, "detach"):
        leaf = z.clone().requires_grad_()
        methods.RelaxedContrastiveLoss(normalize=normalize)(leaf, f).backward()
        gradients.append(leaf.grad)
    assert (gradients[0] - gradients[1]).abs().max() > 1e-2
    # With mu inside, the loss does not know the scale of z.
    assert (gradients[0] * z).sum().abs() < 1e-5


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_log_ratio_agrees_with_its_triple_loop(missing):
    z, f = _sample(missing=missing)
    _close(methods.LogRatioLoss()(z, f), oracles.logratio(z.tolist(), f.tolist()))


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_rkd_agrees_with_its_loop(missing):
    z, f = _sample(missing=missing)
    _close(methods.RKDLoss()(z, f), oracles.rkd(z.tolist(), f.tolist()))


@pytest.mark.parametrize("loss", [methods.RKDLoss(), methods.LogRatioLoss()])
def test_distances_kept_up_to_a_scale_cost_nothing(loss):
    F = torch.randn(8, 4)
    assert loss(0.01 * F, F).item() == pytest.approx(0, abs=1e-6)
    assert loss(F.square(), F).item() > 1e-2


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("temperature", [0.1, 2.0])
def test_rank_n_contrast_agrees_with_its_triple_loop(temperature, missing):
    z, f = _sample(missing=missing)
    got = methods.RankNContrastLoss(temperature)(z, f)
    _close(got, oracles.rank_n_contrast(z.tolist(), f.tolist(), temperature=temperature))


def test_rank_n_contrast_treats_ties_exactly():
    z, _ = _sample(12)
    f = torch.tensor([0, 1, 2, 0, 1, 2, 3, 3, 0, 1, 1, 1.0])[:, None]
    _close(methods.RankNContrastLoss()(z, f), oracles.rank_n_contrast(z.tolist(), f.tolist()))


def test_rank_n_contrast_of_two_views_repeats_the_features():
    z, f = _sample(views=2)
    twice = f.repeat(2, 1)
    _close(methods.RankNContrastLoss()(z, f), oracles.rank_n_contrast(z.tolist(), twice.tolist()))
    assert methods.RankNContrastLoss(augmentations=["scaling"]).views == 2


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e3, 1e5])
def test_rank_n_contrast_never_underflows(scale):
    z, f = _sample(30)
    z = (scale * z).requires_grad_()
    loss = methods.RankNContrastLoss()(z, f)
    loss.backward()
    _close(loss, oracles.rank_n_contrast(z.tolist(), f.tolist()))
    assert z.grad.isfinite().all()
    assert z.grad.abs().max() > 0


@pytest.mark.parametrize("name", ["rankncontrast", "yaware", "sleepprior", "relaxed", "logratio"])
def test_gradients_are_those_of_the_loss(name):
    z, f = _sample(6, missing=0.3)
    method = METHODS[name]()
    assert torch.autograd.gradcheck(lambda z: method(z, f), z.double().requires_grad_())


@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_nt_xent_agrees_with_its_loop(temperature):
    z, _ = _sample(views=2)
    _close(methods.NTXentLoss(temperature)(z), oracles.ntxent(z.tolist(), temperature=temperature))


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize("labels", [[0, 1, 2, 0, 1, 2, 0, 1, 1], [0, -1, 2, 0, -1, 2, 1, 5, 2]])
def test_supcon_agrees_with_its_loop(views, labels):
    z, _ = _sample(views=views)
    got = methods.SupConLoss(0.2)(z, torch.tensor(labels))
    _close(got, oracles.supcon(z.tolist(), labels, temperature=0.2))


def test_the_base_temperature_scales_the_loss():
    z, y = _sample()[0], torch.arange(9) % 3
    one, two = methods.SupConLoss(0.2), methods.SupConLoss(0.2, base_temperature=0.1)
    torch.testing.assert_close(two(z, y), 2 * one(z, y))


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("views", [1, 2])
def test_y_aware_agrees_with_its_loop(views, missing):
    z, f = _sample(views=views, missing=missing)
    got = methods.YAwareLoss(0.3, 1.7)(z, f)
    _close(got, oracles.yaware(z.tolist(), f.tolist(), temperature=0.3, sigma=1.7))


@pytest.mark.parametrize(
    "loss",
    [
        methods.YAwareLoss(0.3, sigma=1e-3),
        METHODS["softclt"](0.3, alpha=0.0),
        METHODS["softclt"](0.3, sharpness=1e4),
        methods.SleepPriorLoss(1, 0.3),
    ],
)
def test_losses_whose_only_positive_is_the_own_view_are_simclr(loss):
    z, f = _sample(views=2)
    simclr = oracles.ntxent(z.tolist(), temperature=0.3)
    if isinstance(loss, methods.SleepPriorLoss):  # whose anchors are the first view only
        swapped = torch.cat([z[9:], z[:9]])
        _close((loss(z, f) + loss(swapped, f)) / 2, simclr)
    else:
        _close(loss(z, f), simclr)


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_soft_clt_agrees_with_its_loop(missing):
    z, f = _sample(views=2, missing=missing)
    settings = {"temperature": 0.3, "alpha": 0.4, "sharpness": 3.0}
    got = METHODS["softclt"](**settings)(z, f)
    _close(got, oracles.softclt(z.tolist(), f.tolist(), **settings))


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("temperature", [0.3, (0.2, 0.6)])
def test_sleep_prior_agrees_with_its_loop(temperature, separate, missing):
    z, f = _sample(views=2, missing=missing)
    got = methods.SleepPriorLoss(0.4, temperature, separate_positives=separate)(z, f)
    pair = temperature if isinstance(temperature, tuple) else (temperature, temperature)
    wanted = oracles.sleepprior(
        z.tolist(),
        f.tolist(),
        k=3,  # int(0.4 * 9)
        temperature=oracles.rank_temperature(*pair),
        separate=separate,
    )
    _close(got, wanted)


def test_sleep_prior_takes_all_that_are_tied_for_the_last_place():
    z, _ = _sample(6, views=2)
    tied = torch.tensor([0, 1, -1, 5, 6, 8.0])[:, None]
    got = methods.SleepPriorLoss(2, 0.3)(z, tied)
    wanted = oracles.sleepprior(
        z.tolist(), tied.tolist(), k=2, temperature=oracles.rank_temperature(0.3, 0.3)
    )
    _close(got, wanted)


def test_treba_is_supcon_summed_over_features_each_with_a_head_of_its_own():
    z, f = _sample(12, d=3, views=2, missing=0.2)
    f[0, 0] = math.nan
    method = _prepared("treba", f, hidden=6)
    cuts = np.nanquantile(f.numpy(), [1 / 3, 2 / 3], axis=0)
    total = 0.0
    for k in range(3):
        heads = method.heads
        hidden = torch.relu(z @ heads.weight1[k] + heads.bias1[k])
        y = hidden @ heads.weight2[k] + heads.bias2[k]
        classes = [-1 if math.isnan(v) else int((v > cuts[:, k]).sum()) for v in f[:, k].tolist()]
        assert set(classes) == {-1, 0, 1, 2}
        total += oracles.supcon(y.tolist(), classes, temperature=0.07)
    _close(method(z, f), total)


def test_treba_heads_are_drawn_as_linear_layers_and_all_trained():
    _, f = _sample(12)
    method = _prepared("treba", f, e=100)
    bound = 1 / math.sqrt(100)
    assert method.heads.weight1.abs().max().item() == pytest.approx(bound, rel=1e-2)
    assert len(method.heads.weight1.unique()) > 1000
    method(torch.randn(24, 100), f).backward()
    assert all((p.grad != 0).flatten(1).any(1).all() for n, p in method.named_parameters())


def test_decoding_is_the_mean_squared_error_over_what_is_there():
    z, f = _sample(missing=0.3)
    f[:, 2] = 7.0  # constant: carries nothing
    method = _prepared("decoding", f)
    scores = z @ method.head.weight.T + method.head.bias
    errors = []
    for k in (0, 1, 3, 4):
        known = [i for i in range(9) if not math.isnan(f[i, k])]
        values = f[known, k].double()
        scaled = (values - values.mean()) / values.std(correction=0)
        errors += ((scores[known, k].double() - scaled) ** 2).tolist()
    _close(method(z, f), sum(errors) / len(errors))


def test_raw_decoding_follows_the_largest_feature():
    z, f = _sample()
    raw, standard = (_prepared("decoding", f * 100, scaling=s) for s in ("raw", "standard"))
    wanted = (raw.head(z) - f * 100).square().mean()
    torch.testing.assert_close(raw(z, f * 100), wanted)
    assert raw(z, f * 100) > 1000 * standard(z, f * 100)


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_domain_ssl_without_prototypes_contrasts_neighbours(missing):
    z, f = _sample(views=2, missing=missing)
    method = _prepared("domainssl", f, temperature=0.3, prototype_weight=0.0)
    _close(method(z, f), oracles.neighbour_contrast(z.tolist(), f.tolist(), temperature=0.3))


def test_domain_ssl_prototypes_are_a_softmax_over_clusters_of_features():
    f = torch.cat([torch.randn(10, 2), 0.1 * torch.randn(10, 2) + 30])
    z = torch.randn(20, 4)
    method = _prepared("domainssl", f, prototypes=2, augmentations=())
    cluster = (torch.cdist(f, method.centres)).argmin(1)
    assert len(set(cluster[:10].tolist())) == len(set(cluster[10:].tolist())) == 1
    wide, narrow = method.temperatures[cluster[0]], method.temperatures[cluster[10]]
    assert wide > 5 * narrow
    assert method.temperatures.mean().item() == pytest.approx(0.07)
    unit = [torch.nn.functional.normalize(v, dim=1) for v in (z, method.prototypes)]
    scores = unit[0] @ unit[1].T / method.temperatures
    wanted = torch.nn.functional.cross_entropy(scores, cluster)
    method.prototype_weight = 0.0
    without = method(z, f)
    method.prototype_weight = 1.0
    torch.testing.assert_close(method(z, f) - without, wanted)


@pytest.mark.parametrize("name", FEATURE_LOSSES)
def test_a_window_without_features_has_no_influence(name):
    views = METHODS[name].views
    z, f = _sample(10, views=views)
    f[3] = math.nan
    method = _prepared(name, f)
    z.requires_grad_()
    method(z, f).backward()
    alone = torch.arange(views * 10) % 10 == 3
    assert (z.grad[alone] == 0).all()
    assert (z.grad[~alone] != 0).any()
    without = method(z[~alone], f[torch.arange(10) != 3])
    if name != "sleepprior":  # whose K is a part of the batch
        torch.testing.assert_close(method(z, f), without)


def test_unlabelled_windows_have_no_influence():
    z, y = _sample(views=2)[0].requires_grad_(), torch.tensor([0, 1, -1, 0, 1, 2, -1, 2, 2])
    loss = methods.SupConLoss()(z, y)
    loss.backward()
    known = (y >= 0).repeat(2)
    assert (z.grad[~known] == 0).all()
    torch.testing.assert_close(loss, methods.SupConLoss()(z[known], y[y >= 0]))


@pytest.mark.parametrize("labels", [torch.zeros(9), torch.full((9,), -1), torch.arange(9)])
def test_labels_that_make_no_pairs_of_both_kinds_teach_nothing(labels):
    z = _sample()[0].requires_grad_()
    loss = methods.SupConLoss(augmentations=())(z, labels.long())
    loss.backward()
    assert loss.item() == 0
    assert (z.grad == 0).all()


@pytest.mark.parametrize("name", FEATURE_LOSSES)
def test_features_that_are_all_missing_teach_nothing(name):
    z, f = _sample(views=METHODS[name].views)
    method = _prepared(name, f)
    z.requires_grad_()
    loss = method(z, torch.full_like(f, math.nan))
    loss.backward()
    assert loss.item() == 0
    assert (z.grad == 0).all()


@pytest.mark.parametrize("name", FEATURE_LOSSES)
def test_labels_take_the_place_of_features(name):
    y = one_hot(torch.tensor([0, 1, 2, 0, 1, 2, -1, 1, 1]), 3)
    z = _sample(views=METHODS[name].views)[0].requires_grad_()
    loss = _prepared(name, y)(z, y)
    loss.backward()
    assert loss.isfinite()
    assert z.grad.isfinite().all()
    assert z.grad.abs().max() > 0


@pytest.mark.parametrize("name", [n for n in FEATURE_LOSSES if n not in ("treba", "decoding")])
def test_bf16_autocast_gives_the_float32_loss(name):
    z, f = _sample(16, e=100, d=29, views=METHODS[name].views)
    method = _prepared(name, f, e=100)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = method(z, f)
    torch.testing.assert_close(half, method(z, f), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", ["treba", "decoding", "domainssl"])
def test_without_prepare_the_first_batch_stands_for_the_dataset(name):
    z, f = _sample(views=METHODS[name].views)
    torch.manual_seed(1)
    alone = METHODS[name]()
    torch.testing.assert_close(alone(z, f), _prepared(name, f)(z, f))
    assert list(alone.parameters())


def test_a_row_of_zeros_has_a_gradient_of_ordinary_size():
    z = torch.cat([torch.zeros(1, 3), torch.randn(3, 3)]).requires_grad_()
    (cosines(z) * torch.randn(4, 4)).sum().backward()
    assert 0 < z.grad[0].abs().max() < 10


@pytest.mark.parametrize("name", [n for n in METHODS if METHODS[n].views == 2 and n != "tstcc"])
def test_rows_that_are_no_views_of_the_targets_are_refused(name):
    z, f = _sample()
    target = {"features": f[:5], "labels": torch.arange(5), "none": None}[METHODS[name].target]
    with pytest.raises(DataError, match="view 1"):
        METHODS[name]()(z, target)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("simclr", {"temperature": 0}, "temperature is 0"),
        ("supcon", {"temperature": -1.0}, "temperature is -1"),
        ("supcon", {"base_temperature": 0.0}, "base_temperature"),
        ("rankncontrast", {"temperature": 0.0}, "positive"),
        ("yaware", {"sigma": 0.0}, "sigma"),
        ("softclt", {"alpha": 2.0}, "alpha is 2"),
        ("sleepprior", {"neighbours": 0}, "neighbours is 0"),
        ("sleepprior", {"neighbours": 2.5}, "whole number"),
        ("sleepprior", {"temperature": (0.1, 0.0)}, "temperature is 0"),
        ("treba", {"quantiles": (0.5, 1.5)}, "between 0 and 1"),
        ("decoding", {"scaling": "rows"}, "'standard' or 'raw'"),
        ("relaxed", {"reduction": "mean"}, "'rows' or 'pairs'"),
        ("relaxed", {"delta": 0.0}, "delta is 0"),
        ("logratio", {"eps": 0.0}, "eps is 0"),
        ("simclr", {"augmentations": ["scalling"]}, "did you mean 'scaling'"),
        ("simclr", {"augmentations": {"jitter": {"sd": 1}}}, "settings are sigma"),
        ("simclr", {"augmentations": "jitter"}, "give a list"),
    ],
)
def test_unusable_settings_are_refused(name, settings, words):
    with pytest.raises(ConfigError, match=words):
        METHODS[name](**settings)


def test_more_neighbours_than_windows_are_refused():
    z, f = _sample(views=2)
    with pytest.raises(ConfigError, match="10 neighbours in a batch of 9"):
        methods.SleepPriorLoss(10)(z, f)


def test_more_prototypes_than_windows_are_refused():
    with pytest.raises(ConfigError, match="10 prototypes of 9 windows"):
        METHODS["domainssl"](prototypes=10).prepare(_sample()[1], 4)

"""Runs trained as one stack against the same runs trained alone, on the CPU in float32."""

import copy
import math

import pytest
import torch

from expclr.encoders import ENCODERS, TCN
from expclr.encoders.scaled import ScaledEncoder
from expclr.encoders.tcn_matmul import tcn_as_products
from expclr.engine import seeded
from expclr.engine.stacked import blueprint
from expclr.methods import METHODS
from expclr.train import DivergedError, Examples, Run, Schedule, train
from expclr.train_many import _gains_by_stacking, train_many, train_stacked

CPU = torch.device("cpu")
CLOSE = {"rtol": 0.01, "atol": 2e-3}
STACKED = [name for name in METHODS if METHODS[name].trains and name != "tstcc"]


def _as_it_is(x, lengths=None):
    return x


def _run(name, windows, seed, *, epochs=7, lr=3e-3, **params):
    labels, features = torch.tensor(windows.y), torch.tensor(windows.F)
    with seeded(seed):
        encoder = ScaledEncoder(TCN(2, 6, width=8, blocks=3, hidden=16, dropout=0.0), 2)
        method = METHODS[name](**params)
        method.prepare(features if method.target == "features" else labels, 6)
    if method.views > 1:
        method.view = _as_it_is  # a stack draws other random numbers than a run alone
    schedule = Schedule(epochs, lr, batch_size=16, random_state=seed, precision="float32")
    examples = Examples(windows.X, features=features, labels=labels)
    return Run(encoder, method, examples, schedule, CPU)


def _outputs(run, windows):
    z = run.encoder(torch.tensor(windows.X)).detach()
    return z - z.mean(0)


def _stacked(runs):
    return dict(train_stacked(runs))


@pytest.mark.parametrize("name", STACKED)
def test_a_stack_trains_as_its_runs_alone(name, windows):
    alone = [_run(name, windows, seed, lr=lr) for seed, lr in ((0, 3e-3), (1, 1e-3))]
    stacked = copy.deepcopy(alone)
    expected = [run.train() for run in alone]  # 21 steps
    histories = _stacked(stacked)
    for number, (one, other) in enumerate(zip(alone, stacked, strict=True)):
        losses = [record["loss"] for record in histories[number]]
        assert losses == pytest.approx([record["loss"] for record in expected[number]], rel=1e-3)
        # Weights whose gradient is rounding alone differ, Adam makes steps of them: such is the
        # last bias, where only distances count.
        torch.testing.assert_close(_outputs(other, windows), _outputs(one, windows), **CLOSE)


def test_each_run_has_its_own_windows(windows):
    half = windows.subset(slice(16, 48))
    other = windows.subset(slice(0, 32))
    alone = [_run("expclr", half, 0), _run("expclr", other, 1)]
    stacked = copy.deepcopy(alone)
    expected = [run.train() for run in alone]
    histories = _stacked(stacked)
    for number in (0, 1):
        assert histories[number][-1]["loss"] == pytest.approx(
            expected[number][-1]["loss"], rel=1e-3
        )


def test_a_run_that_diverges_does_not_touch_the_others(windows):
    runs = [_run("expclr", windows, 0), _run("expclr", windows, 1)]
    runs[0].encoder.encoder.head[0].weight.data.fill_(math.nan)
    alone = copy.deepcopy(runs[1])
    outcomes = _stacked(runs)
    assert isinstance(outcomes[0], DivergedError)
    assert outcomes[1][-1]["loss"] == pytest.approx(alone.train()[-1]["loss"], rel=1e-3)


def test_only_runs_of_one_build_are_stacked(windows):
    first, same = (blueprint(_run("expclr", windows, seed).method) for seed in (0, 1))
    assert first == same
    assert first == blueprint(_run("expclr", windows, 0, tau=0.5).method)  # a number may differ
    assert first != blueprint(_run("expclr", windows, 0, similarity="linear").method)
    assert first != blueprint(_run("quadratic", windows, 0).method)


def test_on_the_cpu_runs_train_as_they_do_alone(windows):
    runs = [_run("expclr", windows, seed, epochs=2) for seed in (0, 1)]
    alone = copy.deepcopy(runs)
    outcomes = dict(train_many(runs))
    for number, run in enumerate(alone):
        history = train(run.encoder, run.method, run.examples, run.schedule, device=CPU)
        assert [r["loss"] for r in outcomes[number]] == [r["loss"] for r in history]


@pytest.mark.parametrize("settings", [{}, {"strides": (2, 1, 2)}, {"kernel": 5}, {"norm": "none"}])
@pytest.mark.parametrize("padded", [False, True])
def test_a_tcn_as_products_is_the_same_function(settings, padded):
    with seeded(3):
        tcn = TCN(3, 6, width=8, blocks=3, pooling=("mean", "max", "std"), **settings).eval()
        x = torch.randn(5, 3, 20)
    lengths = torch.tensor([20, 7, 13, 1, 2]) if padded else None
    torch.testing.assert_close(
        tcn_as_products(tcn, x, lengths, torch.float32), tcn(x, lengths), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("kind", ["channel", "element"])
def test_dropout_of_products_keeps_the_mean_and_drops_what_it_says(kind):
    with seeded(0):
        tcn = TCN(8, 6, width=8, blocks=1, dropout=0.25, dropout_kind=kind)
        tcn.head, tcn.pooling = torch.nn.Identity(), ("mean",)
        torch.nn.init.zeros_(tcn.blocks[0].second.convolution.gain)
        torch.nn.init.ones_(tcn.blocks[0].second.convolution.bias)
        z = tcn_as_products(tcn, torch.zeros(400, 8, 30), None, torch.float32)
    assert z.mean().item() == pytest.approx(1, abs=0.03)
    whole = torch.isclose(z, torch.zeros(1)) | torch.isclose(z, torch.full((1,), 4 / 3))
    assert bool(whole.all()) == (kind == "channel")


@pytest.mark.parametrize("length", [1, 3, 20])
@pytest.mark.parametrize("strides", [(1, 1, 1, 1), (2, 1, 2, 1)])
def test_taps_that_see_only_padding_are_left_out_of_training(length, strides):
    with seeded(3):
        tcn = TCN(3, 6, width=8, blocks=4, kernel=5, strides=strides, dropout=0.0)
        x = torch.randn(5, 3, length)
    torch.testing.assert_close(tcn.train()(x), tcn.eval()(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "gains"),
    [("tcn", True), ("rocket", True), ("hybrid", True), ("tstcc", False), ("inception", False)],
)
def test_networks_of_other_convolutions_than_a_tcn_s_are_not_stacked(name, gains):
    assert _gains_by_stacking(ENCODERS[name](3, 12, length=64)) is gains
    if name == "tcn":
        assert not _gains_by_stacking(ENCODERS[name](3, 12, length=64, norm="batch"))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("expclr", [{"tau": 0.5}, {"tau": 2.0, "delta": 3.0}]),
        ("simclr", [{"temperature": 0.1}, {"temperature": 0.7}]),
        ("supcon", [{"temperature": 0.1}, {"temperature": 0.7}]),
    ],
)
def test_numbers_of_a_loss_may_differ_in_a_stack(name, settings, windows):
    alone = [_run(name, windows, seed, epochs=3, **words) for seed, words in enumerate(settings)]
    stacked = copy.deepcopy(alone)
    assert blueprint(stacked[0].method) == blueprint(stacked[1].method)
    expected = [run.train() for run in alone]
    for number, history in _stacked(stacked).items():
        losses = [record["loss"] for record in history]
        assert losses == pytest.approx([r["loss"] for r in expected[number]], rel=1e-3)
    for run, words in zip(stacked, settings, strict=True):
        assert {k: getattr(run.method, k) for k in words} == words

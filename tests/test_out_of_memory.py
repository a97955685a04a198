"""Batches and stacks that do not fit into memory: the same training in smaller pieces."""

import copy
import logging
import math
import tracemalloc
import weakref

import numpy as np
import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from expclr import ExpCLR, Windows
from expclr import train_many as stacks
from expclr.encoders import ENCODERS, TCN
from expclr.engine import seeded
from expclr.memory import InParts, MemoryWarning, can_be_parted
from expclr.methods import METHODS, ExpCLRLoss
from expclr.train import DivergedError, Examples, Run, Schedule

CPU = torch.device("cpu")


class _Crowded(TCN):
    """Has room for so many windows at once."""

    room = 5

    def forward(self, x, lengths=None):
        if len(x) > self.room:
            raise torch.OutOfMemoryError(f"tried to allocate {len(x)} windows\nand more")
        return super().forward(x, lengths)


def _network(kind=TCN, dropout=0.1):
    with seeded(0):
        return kind(2, 6, width=8, blocks=3, hidden=16, dropout=dropout)


def _run(windows, network, method=None, **settings):
    features, labels = torch.tensor(windows.F), torch.tensor(windows.y)
    examples = Examples(windows.X, features=features, labels=labels)
    schedule = Schedule(settings.pop("epochs", 3), 3e-3, batch_size=16, **settings)
    return Run(network, method or ExpCLRLoss(), examples, schedule, CPU)


def _gradient(encode, network, x):
    network.zero_grad()
    with seeded(1):
        encode(x, None).square().sum().backward()
    return torch.cat([p.grad.flatten() for p in network.parameters()])


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_parts_have_the_gradient_of_the_whole(parts):
    network, x = _network(dropout=0.0), torch.randn(7, 2, 20)
    torch.testing.assert_close(
        _gradient(InParts(network, parts), network, x),
        _gradient(network, network, x),
        rtol=1e-4,
        atol=1e-6,
    )


def test_the_second_pass_has_the_masks_of_the_first():
    network, x = _network(dropout=0.5), torch.randn(8, 2, 20)

    def by_hand(x, lengths):
        return torch.cat([network(x[:4]), network(x[4:])])

    expected = _gradient(by_hand, network, x)
    torch.testing.assert_close(_gradient(InParts(network, 2), network, x), expected)


def test_parts_keep_nothing_but_their_windows():
    network, x, held = _network(), torch.randn(32, 2, 64), []
    for encode in (network, InParts(network, 8)):
        kept = []
        with saved_tensors_hooks(lambda v, kept=kept: (kept.append(v.nbytes), v)[1], lambda v: v):
            encode(x, None).square().sum()
        held.append(sum(kept))
    assert held[1] < held[0] / 20


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_batch_without_room_is_trained_on_in_parts_with_one_warning(windows, precision):
    run = _run(windows, _network(_Crowded, dropout=0.0), precision=precision)
    whole = _run(windows, _network(dropout=0.0), precision=precision)
    with pytest.warns(MemoryWarning, match="a batch of 16 .*16 windows.*batch_size") as told:
        history = run.train()
    assert len(told) == 1
    expected = [record["loss"] for record in whole.train()]
    assert [record["loss"] for record in history] == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("name", [n for n in METHODS if METHODS[n].trains and n != "tstcc"])
def test_every_method_can_be_trained_in_parts(name, windows):
    method = METHODS[name]()
    target = torch.tensor(windows.F if method.target == "features" else windows.y)
    method.prepare(target, 6)
    with pytest.warns(MemoryWarning):
        history = _run(windows, _network(_Crowded), method, epochs=1).train()
    assert math.isfinite(history[0]["loss"])


@pytest.mark.parametrize("streamed", [False, "auto"])
def test_a_pair_loss_without_room_goes_by_blocks(windows, streamed):
    class Crowded(ExpCLRLoss):
        def pair_losses(self, z, target):
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    method = Crowded(streamed=streamed)
    with pytest.warns(MemoryWarning):
        _run(windows, _network(), method, epochs=1).train()
    assert method.streamed is True


def test_a_gradient_without_room_leaves_nothing_behind(windows):
    graphs = []

    class NoRoom(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z * 1)
            return z.clone()

        @staticmethod
        def backward(ctx, gradient):
            if len(graphs) == 1:
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
            return gradient

    class Crowded(ExpCLRLoss):
        def forward(self, z, target):
            assert all(graph() is None for graph in graphs)
            z = NoRoom.apply(z)
            graphs.append(weakref.ref(z.grad_fn))
            return super().forward(z, target)

    with pytest.warns(MemoryWarning):
        _run(windows, _network(), Crowded(), epochs=1).train()
    assert len(graphs) > 1


def test_without_room_for_one_window_the_error_is_as_it_was(windows):
    network = _network(_Crowded)
    network.room = 0
    with pytest.raises(torch.OutOfMemoryError), pytest.warns(MemoryWarning):
        _run(windows, network).train()


def test_statistics_of_a_batch_forbid_parts(windows):
    assert can_be_parted(_network())
    assert not can_be_parted(ENCODERS["tcn"](2, 6, norm="batch"))
    with seeded(0):
        network = _Crowded(2, 6, width=8, blocks=2, norm="batch")
    with pytest.raises(torch.OutOfMemoryError):
        _run(windows, network).train()


def test_a_stack_without_room_is_halved_with_one_warning(windows, monkeypatch, caplog):
    runs = [_run(windows, _network(), random_state=seed, epochs=1) for seed in range(7)]
    sizes, stacked = [], stacks.train_stacked

    def crowded(some):
        sizes.append(len(some))
        if len(some) > 2:
            raise torch.OutOfMemoryError("no room")
        yield from stacked(some)

    monkeypatch.setattr(stacks, "train_stacked", crowded)
    with caplog.at_level(logging.WARNING):
        outcomes = dict(stacks._train_group(runs, list(range(7))))
    assert sizes == [7, 3, 2, 4, 2, 2]
    assert sorted(outcomes) == list(range(7))
    assert all(len(history) == 1 for history in outcomes.values())
    assert caplog.text.count("do not fit into memory") == 1


def test_what_a_stack_has_handed_over_is_not_trained_again(windows, monkeypatch):
    runs = [_run(windows, _network(), random_state=seed, epochs=1) for seed in range(3)]
    alone = copy.deepcopy(runs)

    def breaking(some):
        yield 1, DivergedError("the loss is nan")
        raise NotImplementedError("no batching rule")

    monkeypatch.setattr(stacks, "train_stacked", breaking)
    outcomes = dict(stacks._train_group(runs, [0, 1, 2]))
    assert isinstance(outcomes[1], DivergedError)
    for number in (0, 2):
        assert outcomes[number][0]["loss"] == alone[number].train()[0]["loss"]


@pytest.mark.parametrize("as_array", [False, True])
def test_a_memory_mapped_file_is_embedded_without_a_copy(as_array, tmp_path, rng):
    whole = Windows(
        np.tile(rng.normal(size=(100, 3, 512)), (80, 1, 1)), F=rng.normal(size=(8000, 1))
    )
    mapped = Windows.load(whole.save(tmp_path / "w"))
    small = {"encoder_params": {"width": 4, "blocks": 1}, "max_epochs": 0, "device": "cpu"}
    learner = ExpCLR(embedding_dim=4, **small).fit(mapped.subset(slice(0, 32)))
    given = np.load(tmp_path / "w" / "X.npy", mmap_mode="r") if as_array else mapped
    tracemalloc.start()
    Z = learner.transform(given)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert Z.shape == (8000, 4)
    assert peak < mapped.X.nbytes / 3

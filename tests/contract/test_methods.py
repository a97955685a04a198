"""What holds for every method in the registry."""

import itertools
import json
import math
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp

from expclr.engine import average_gradients, gather, seeded, share_of_rank
from expclr.methods import METHODS
from expclr.methods.base import Batch

B, E, D, C = 12, 6, 4, 3
TRAINED = [name for name in METHODS if METHODS[name].trains]
GOLDEN = Path(__file__).with_name("golden_losses.json")


def _encoder(seed=0):
    with seeded(seed):
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2 * 8, E), torch.nn.Tanh())


def _batch(seed=0, *, missing=True):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(B, D, generator=generator)
    if missing:
        features[torch.rand(B, D, generator=generator) < 0.1] = math.nan
    labels = torch.arange(B) % C
    return Batch(torch.randn(B, 2, 8, generator=generator), None, features, labels)


def _method(name, batch, **params):
    with seeded(1):
        method = METHODS[name](**params)
        method.prepare(batch.target(method.target), E)
    return method


class _Encode:
    """What a method is given: embeddings of windows, and a feature map for those that ask."""

    def __init__(self, encoder, gather=lambda rows: rows):
        self.encoder, self.gather = encoder, gather

    def __call__(self, x, lengths):
        return self.gather(self.encoder(x))

    def features(self, x, lengths):
        spread = torch.linspace(-1, 1, E * 128 * 5).sin().mul(1e4).sin().reshape(E, 128 * 5)
        return self.gather((self.encoder(x) @ spread).reshape(-1, 128, 5))


def _step(method, encoder, batch, seed=2):
    with seeded(seed):
        return method.step(_Encode(encoder), batch)


def _with_views_of_the_windows_alone(method):
    """Views that differ from each other, but not from one process or order to another."""
    calls = itertools.count(1)

    def view(x, lengths):
        return x + 0.1 * torch.sin(7 * next(calls) * x)

    if method.views == 2:
        for name in {"view", "weak", "strong"} & set(vars(method)):
            setattr(method, name, view)
    return method


def _repeatable(name, batch):
    return _with_views_of_the_windows_alone(_method(name, batch)).eval()


def _gradient(method, encoder, batch):
    encoder.zero_grad()
    loss = _step(method, encoder, batch)
    loss.backward()
    return loss.detach(), torch.cat([p.grad.flatten() for p in encoder.parameters()])


@pytest.mark.parametrize("name", TRAINED)
def test_loss_is_a_scalar_with_finite_gradients(name):
    batch = _batch()
    loss, gradient = _gradient(_method(name, batch), _encoder(), batch)
    assert loss.ndim == 0
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert gradient.abs().max() > 0


@pytest.mark.parametrize("name", TRAINED)
def test_order_of_the_windows_does_not_matter(name):
    batch, order = _batch(), torch.randperm(B, generator=torch.Generator().manual_seed(3))
    encoder = _encoder()
    shuffled = Batch(batch.x[order], None, batch.features[order], batch.labels[order])
    loss, gradient = _gradient(_repeatable(name, batch), encoder, batch)
    loss2, gradient2 = _gradient(_repeatable(name, batch), encoder, shuffled)
    torch.testing.assert_close(loss, loss2)
    torch.testing.assert_close(gradient, gradient2, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", TRAINED)
def test_duplicated_windows_do_not_break_training(name):
    batch = _batch()
    twice = Batch(*[v if v is None else v[torch.arange(B) // 2] for v in vars(batch).values()])
    loss, gradient = _gradient(_method(name, batch), _encoder(), twice)
    assert loss.isfinite()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", TRAINED)
def test_a_batch_without_information_gives_a_finite_loss(name):
    batch = _batch()
    same = Batch(batch.x, None, torch.ones(B, D), torch.zeros(B, dtype=torch.long))
    loss, gradient = _gradient(_method(name, batch), _encoder(), same)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    if METHODS[name].target == "features" and not METHODS[name].alone:
        assert (gradient == 0).all()


@pytest.mark.parametrize("name", TRAINED)
def test_collapsed_embeddings_give_finite_gradients(name):
    batch = _batch()
    flat = Batch(torch.zeros_like(batch.x), None, batch.features, batch.labels)
    loss, gradient = _gradient(_method(name, batch), _encoder(), flat)
    assert loss.isfinite()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", TRAINED)
def test_a_loss_alone_falls_in_a_loop_of_ones_own(name):
    batch, generator = _batch(), torch.Generator().manual_seed(4)
    method = _method(name, batch).eval()
    shape = (2, B, 128, 5) if name == "tstcc" else (B * METHODS[name].views, E)
    z = torch.randn(shape, generator=generator).requires_grad_()
    optimizer = torch.optim.Adam([z, *method.parameters()], lr=5e-3)
    losses = []
    for _ in range(20):
        with seeded(5):
            loss = method(z, batch.target(method.target))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.02 * abs(losses[0])


@pytest.mark.parametrize("name", list(METHODS))
def test_a_method_can_be_told_in_one_sentence(name):
    doc = METHODS[name].__doc__
    assert doc
    assert doc.splitlines()[0].endswith(".")
    assert METHODS[METHODS[name].finetune].target in ("features", "labels")


def _five_steps(name):
    batch, encoder = _batch(), _encoder()
    method = _method(name, batch)
    optimizer = torch.optim.Adam([*encoder.parameters(), *method.parameters()], lr=1e-2)
    losses = []
    for step in range(5):
        loss = _step(method, encoder, batch, seed=step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", TRAINED)
def test_five_seeded_steps_give_the_golden_losses(name):
    golden = json.loads(GOLDEN.read_text())
    assert _five_steps(name) == pytest.approx(golden[name], rel=2e-5)


def _flat_gradient(parameters):
    return torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])


def _on_rank(rank, ranks, rendezvous, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=ranks
    )
    for name in TRAINED:
        batch, encoder = _batch(), _encoder()
        method = _with_views_of_the_windows_alone(_method(name, batch))
        index = share_of_rank(torch.arange(B))
        mine = [v if v is None else v[index] for v in vars(batch).values()]
        targets = [v if v is None else gather(v) for v in mine[2:]]
        with seeded(2):
            loss = method.step(_Encode(encoder, gather), Batch(mine[0], None, *targets))
        loss.backward()
        parameters = [*encoder.parameters(), *method.parameters()]
        average_gradients(parameters)
        if rank == 0:
            torch.save(_flat_gradient(parameters), f"{folder}/{name}.pt")
    torch.distributed.destroy_process_group()


def test_two_processes_give_the_gradient_of_one(tmp_path):
    mp.spawn(_on_rank, (2, tmp_path / "rendezvous", tmp_path), nprocs=2)
    for name in TRAINED:
        batch, encoder = _batch(), _encoder()
        method = _with_views_of_the_windows_alone(_method(name, batch))
        _step(method, encoder, batch).backward()
        parameters = [*encoder.parameters(), *method.parameters()]
        one = _flat_gradient(parameters)
        two = torch.load(tmp_path / f"{name}.pt", weights_only=True)
        torch.testing.assert_close(
            two, one, rtol=1e-5, atol=1e-7, msg=lambda m, n=name: f"{n}: {m}"
        )


if __name__ == "__main__":  # writes the golden numbers anew, after a change that is meant
    GOLDEN.write_text(json.dumps({name: _five_steps(name) for name in TRAINED}, indent=1) + "\n")

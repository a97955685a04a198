"""A training step recorded once as a CUDA graph and replayed for every batch."""

from __future__ import annotations

import random
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["CaptureError", "CapturedEpoch"]

WARM_UP = 3  # steps before the recording, in which torch chooses kernels and allocates
COMPARED = 2  # steps in which replay and plain step must agree
TOLERANCE = 1e-3  # relative, of their losses: kernels may sum in another order each time


class CaptureError(RuntimeError):
    """The step does something that a CUDA graph would not repeat."""


class CapturedEpoch:
    """An epoch as replays of one CUDA graph, without waiting for the device in between.

    Parameters
    ----------
    step : callable
        From indices of a batch, on the device, to its loss; updates the weights in place.
    state : callable
        All tensors that ``step`` changes: they are as before when the recording is over.
    order : Tensor (steps, ...)
        Indices of each step's batch, on the device; any epoch's, for its shape.
    """

    def __init__(
        self, step: Callable[[Tensor], Tensor], state: Callable[[], Sequence[Tensor]], order: Tensor
    ) -> None:
        self.step, self.order = step, order.clone()
        self.at = torch.zeros(1, dtype=torch.long, device=order.device)
        self.losses = self._warm_up(state)
        with _unchanged(state):
            self.graph = self._record()
        self._compare_with_plain_steps(state)

    def __call__(self, order: Tensor) -> Tensor:
        """Train on the batches of ``order`` in turn; return each step's loss, (steps, ...)."""
        self.order.copy_(order, non_blocking=True)
        return self._replay(len(order)).clone()

    def _replay(self, steps: int) -> Tensor:
        self.at.zero_()
        for _ in range(steps):
            self.graph.replay()
        return self.losses[:steps]

    def _next(self) -> None:
        """The step that is recorded: which batch is next is read on the device."""
        loss = self.step(self.order.index_select(0, self.at)[0])
        self.losses.index_copy_(0, self.at, loss[None])
        self.at += 1

    def _warm_up(self, state: Callable[[], Sequence[Tensor]]) -> Tensor:
        """A few plain steps aside; refuse what a recording would get wrong."""
        stream = torch.cuda.Stream(self.order.device)
        stream.wait_stream(torch.cuda.current_stream(self.order.device))
        with torch.cuda.stream(stream), _unchanged(state):
            for _ in range(WARM_UP - 1):
                self.step(self.order[0])
            before = _host_randomness()
            with _waiting_for_the_device_is_an_error():
                loss = self.step(self.order[0])
            if _host_randomness() != before:
                raise CaptureError("it draws random numbers on the CPU")
        torch.cuda.current_stream(self.order.device).wait_stream(stream)
        return loss.new_zeros(len(self.order), *loss.shape)

    def _record(self) -> Any:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._next()
        except RuntimeError as error:
            torch.cuda.synchronize(self.order.device)
            raise _refusal(error) from None
        return graph

    def _compare_with_plain_steps(self, state: Callable[[], Sequence[Tensor]]) -> None:
        steps = min(COMPARED, len(self.order))
        with _unchanged(state):
            torch.manual_seed(0)
            plain = torch.stack([self.step(self.order[i]) for i in range(steps)])
        with _unchanged(state):
            torch.manual_seed(0)
            replayed = self._replay(steps)
        if not torch.allclose(plain, replayed, rtol=TOLERANCE, atol=1e-6, equal_nan=True):
            raise CaptureError("replayed steps differ from plain ones")


def _refusal(error: RuntimeError) -> CaptureError:
    # The frames hold the step's autograd graph, whose nodes remember the stream aside.
    traceback.clear_frames(error.__traceback__)
    return CaptureError(str(error).splitlines()[0])


@contextmanager
def _waiting_for_the_device_is_an_error() -> Iterator[None]:
    _set_sync_debug_mode("error")
    try:
        yield
    except RuntimeError as error:
        raise _refusal(error) from None
    finally:
        _set_sync_debug_mode("default")


def _set_sync_debug_mode(mode: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it is a prototype
        torch.cuda.set_sync_debug_mode(mode)


@contextmanager
def _unchanged(state: Callable[[], Sequence[Tensor]]) -> Iterator[None]:
    """Put values back afterwards; what did not exist before, as Adam's moments, becomes 0."""
    before = {id(tensor): tensor.detach().clone() for tensor in state()}
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor in state():
                if id(tensor) in before:
                    tensor.copy_(before[id(tensor)])
                else:
                    tensor.zero_()


def _host_randomness() -> tuple[object, ...]:
    """Where the random numbers are that a graph could not draw anew."""
    state: Any = np.random.get_state(legacy=False)
    return (
        torch.get_rng_state().numpy().tobytes(),
        random.getstate(),
        state["state"]["key"].tobytes(),
        state["state"]["pos"],
    )

"""Batches that are read while the one before is trained on."""

import threading

import pytest
import torch

from expclr.encoders import TCN
from expclr.engine import seeded
from expclr.examples import Examples, read_ahead
from expclr.methods import ExpCLRLoss
from expclr.train import Run, Schedule


def test_batches_come_in_order_each_read_before_it_is_asked_for():
    begun = [threading.Event() for _ in range(4)]

    def read(index):
        begun[index].set()
        return index * 10

    found = []
    for at, batch in enumerate(read_ahead(read, [0, 1, 2, 3])):
        found.append(batch)
        assert begun[min(at + 1, 3)].wait(5)
    assert found == [0, 10, 20, 30]
    assert list(read_ahead(read, [])) == []


def test_what_cannot_be_read_stops_the_epoch():
    def read(index):
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk"):
        list(read_ahead(read, [0, 1]))


def test_reading_ahead_changes_no_result(windows, monkeypatch):
    def losses():
        with seeded(0):
            encoder = TCN(2, 6, width=8, blocks=2, hidden=16)
        examples = Examples(windows.X, features=torch.tensor(windows.F))
        schedule = Schedule(3, 1e-3, batch_size=16)
        run = Run(encoder, ExpCLRLoss(), examples, schedule, torch.device("cpu"))
        return [record["loss"] for record in run.train()]

    expected = losses()

    def ahead(self, indices, device):
        return read_ahead(lambda index: self.batch(index, device), indices)

    monkeypatch.setattr(Examples, "batches", ahead)
    assert losses() == expected

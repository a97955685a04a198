"""Agreement with a library that many people use, where it is installed."""

import pytest
import torch

from expclr.methods import NTXentLoss, SupConLoss

pml = pytest.importorskip("pytorch_metric_learning.losses", reason="bench extra is not installed")


def _rows(n, seed=0):
    return torch.randn(n, 6, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_nt_xent(temperature):
    z = _rows(24)
    theirs = pml.NTXentLoss(temperature=temperature)(z, torch.arange(12).repeat(2))
    torch.testing.assert_close(NTXentLoss(temperature)(z), theirs)


@pytest.mark.parametrize("temperature", [0.07, 0.5])
@pytest.mark.parametrize("views", [1, 2])
def test_supcon(temperature, views):
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 1, 3, 2, 0])  # 3 is alone with one view
    z = _rows(12 * views)
    theirs = pml.SupConLoss(temperature=temperature)(z, labels.repeat(views))
    torch.testing.assert_close(SupConLoss(temperature)(z, labels), theirs)

"""What a network makes of windows without weights is computed once and changes no result."""

import copy
import pickle

import numpy as np
import pytest
import torch

from expclr import RepresentationLearner, Windows
from expclr.fixed import FixedFeatures, _store, compute_fixed
from expclr.methods.pair import PairLoss
from expclr.train import Examples, Schedule, train


class Powers(torch.nn.Module):
    """A network with a fixed part (means of powers) and a learned one; counts its calls."""

    calls = 0

    def __init__(self, in_channels, embedding_dim, *, length=None):
        super().__init__()
        self.head = torch.nn.Linear(2 * in_channels, embedding_dim)
        self.register_buffer("middle", torch.zeros(2 * in_channels))

    def prepare(self, x, lengths):
        self.middle.copy_(self.fixed(x, lengths).mean(0))

    def fixed(self, x, lengths=None):
        Powers.calls += len(x)
        return torch.cat([x.mean(2), x.square().mean(2)], 1) - self.middle

    def forward(self, x, lengths=None, fixed=None):
        return self.head(self.fixed(x, lengths) if fixed is None else fixed)


def _windows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return Windows(rng.normal(2, 3, (n, 2, 16)), rng.normal(size=(n, 3)), np.arange(n) % 2)


def _learner(**settings):
    here = f"{__name__}:Powers"
    settings = {"encoder": here, "max_epochs": 2, "finetune_epochs": 2, "batch_size": 8} | settings
    return RepresentationLearner(embedding_dim=4, device="cpu", **settings)


def test_training_and_fine_tuning_look_at_each_window_once():
    windows = _windows()
    Powers.calls = 0
    learner = _learner().fit(windows)
    seen = len(windows)  # by prepare
    assert Powers.calls - seen == len(windows)
    copy.deepcopy(learner).finetune(windows.label_fraction(0.5)).transform(windows)
    learner.transform(windows)
    assert Powers.calls - seen == len(windows)


def test_embeddings_are_those_of_the_network_alone():
    windows = _windows()
    learner = _learner().fit(windows)
    with torch.inference_mode():
        alone = learner.encoder_(torch.from_numpy(windows.X))
    np.testing.assert_allclose(learner.transform(windows), alone, rtol=1e-5, atol=1e-6)


def test_training_with_kept_features_is_training_without():
    windows, weights = _windows(), []
    for keep in (True, False):
        torch.manual_seed(0)
        learner = _learner(method="random").fit(windows)
        features = torch.from_numpy(windows.F)
        fixed = compute_fixed(learner.encoder_, windows.X, None, device=torch.device("cpu"))
        examples = Examples(windows.X, None, features, None, fixed if keep else None)
        schedule = Schedule(max_epochs=3, lr=0.01, batch_size=8)
        train(learner.encoder_, PairLoss(), examples, schedule, device=torch.device("cpu"))
        weights.append(learner.encoder_.encoder.head.weight.detach())
    torch.testing.assert_close(*weights)


def test_views_are_never_replaced_by_kept_features():
    windows = _windows()
    Powers.calls = 0
    _learner(method="simclr").fit(windows)
    assert Powers.calls == len(windows) + 2 * 2 * len(windows)  # prepare; two epochs of two views


def test_a_change_of_any_value_is_seen():
    windows = _windows()
    learner = _learner().fit(windows)
    changed = windows.X.copy()
    changed[7, 1, 3] += 1
    before, after = learner.transform(windows), learner.transform(changed)
    assert set(np.flatnonzero((before != after).any(1))) == {7}


def test_kept_features_are_neither_pickled_nor_more_than_a_few():
    windows = _windows()
    learner = _learner().fit(windows)
    assert not pickle.loads(pickle.dumps(learner.fixed_))._kept
    for seed in range(9):
        learner.transform(_windows(seed=seed))
    assert len(learner.fixed_._kept) == 4


def test_much_goes_to_a_file_without_a_name(monkeypatch):
    monkeypatch.setattr("expclr.fixed.IN_MEMORY", 100)
    values = _store((10, 100), np.dtype("float32"))
    assert isinstance(values, np.memmap)
    values[3] = 5
    assert values.sum() == 500


def test_a_network_without_fixed_part_has_none():
    windows = _windows()
    learner = RepresentationLearner("random").fit(windows)
    assert FixedFeatures().of(learner.encoder_, windows, device=torch.device("cpu")) is None


def test_windows_on_disk_are_only_read(tmp_path):
    _windows().save(tmp_path / "windows")
    stored = Windows.load(tmp_path / "windows")
    assert not stored.X.flags.writeable
    assert _learner().fit(stored).transform(stored).shape == (40, 4)


class Looks(Powers):
    """Tells where it is shown windows before training."""

    def prepare(self, x, lengths):
        raise LookupError(f"{x.device.type}, {lengths.device.type}, {self.middle.device.type}")


def test_a_network_looks_at_windows_where_it_will_train(monkeypatch):
    monkeypatch.setattr("expclr.estimators.resolve_device", lambda name: torch.device("meta"))
    windows = _windows()
    windows = windows.with_(lengths=np.full(len(windows), 9))
    with pytest.raises(LookupError, match="meta, meta, meta"):
        _learner(encoder=f"{__name__}:Looks").fit(windows)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("encoder", ["rocket", "hybrid"])
def test_a_gpu_makes_the_network_that_a_cpu_makes(encoder):
    X = np.random.default_rng(0).integers(-8, 9, (50, 3, 128)) / 8  # sums of these are exact
    settings = {"encoder": encoder, "input_scaling": "none", "embedding_dim": 4}
    here, there = (
        RepresentationLearner("random", device=device, **settings).fit(X, X.mean(2)).encoder_
        for device in ("cpu", "cuda")
    )
    expected = here.state_dict()
    for name, value in there.cpu().state_dict().items():
        torch.testing.assert_close(value, expected[name], atol=1e-5, rtol=1e-5)

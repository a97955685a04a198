import _thread
import math
import signal
import warnings

import numpy as np
import pytest
import torch

from expclr.checkpoint import Checkpoint
from expclr.encoders import TCN
from expclr.engine import resolve_device, seeded
from expclr.errors import ConfigError, DataError
from expclr.methods import ExpCLRLoss
from expclr.methods.base import Method
from expclr.train import DivergedError, Examples, Schedule, TrainingInterrupted, embed, train

CPU = torch.device("cpu")


def _examples(windows):
    return Examples(windows.X, features=torch.tensor(windows.F), labels=torch.tensor(windows.y))


def _encoder():
    with seeded(0):
        return TCN(2, 6, width=8, blocks=3, hidden=16)


def _train(windows, epochs=3, **settings):
    encoder, method = _encoder(), settings.pop("method", None) or ExpCLRLoss()
    schedule = Schedule(
        epochs,
        1e-2,
        batch_size=16,
        random_state=settings.pop("seed", 0),
        precision=settings.pop("precision", "auto"),
    )
    examples = settings.pop("examples", _examples(windows))
    history = train(encoder, method, examples, schedule, device=CPU, **settings)
    return encoder, history


def _weights(encoder):
    return torch.cat([p.detach().flatten() for p in encoder.parameters()])


def test_the_loss_goes_down(windows):
    _, history = _train(windows, epochs=15)
    assert history[-1]["loss"] < 0.8 * history[0]["loss"]


def test_the_same_seed_gives_the_same_weights_to_the_bit(windows):
    first, second, other = (_train(windows, seed=seed)[0] for seed in (4, 4, 5))
    assert torch.equal(_weights(first), _weights(second))
    assert not torch.equal(_weights(first), _weights(other))


def test_training_leaves_the_global_random_numbers_alone(windows):
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    _train(windows)
    assert torch.equal(torch.rand(3), expected)


def test_each_epoch_is_recorded_with_its_learning_rate(windows):
    _, history = _train(windows, epochs=3)
    assert [r["epoch"] for r in history] == [0, 1, 2]
    assert [r["lr"] for r in history] == pytest.approx([1e-2, 1e-2 * 0.99, 1e-2 * 0.99**2])
    assert all(r["seconds"] > 0 and r["windows_per_s"] > 0 for r in history)


def test_bfloat16_trains_as_float32_does_but_for_its_rounding(windows):
    _, wide = _train(windows, epochs=5, precision="float32")
    encoder, narrow = _train(windows, epochs=5, precision="bfloat16")
    losses = [[record["loss"] for record in history] for history in (wide, narrow)]
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.15)
    assert all(p.dtype == torch.float32 for p in encoder.parameters())


def test_validation_windows_are_measured_and_not_trained_on(windows):
    examples = _examples(windows)
    rows = torch.arange(48)
    part, held = examples.subset(rows[:32]), examples.subset(rows[32:])
    with_validation, history = _train(windows, examples=part, validation=held)
    without, _ = _train(windows, examples=part)
    assert all(math.isfinite(r["validation_loss"]) for r in history)
    assert torch.equal(_weights(with_validation), _weights(without))


def test_subsets_of_subsets_point_at_the_right_windows(windows):
    examples = _examples(windows).subset(torch.arange(10, 30)).subset(torch.tensor([3, 5]))
    batch = examples.batch(torch.tensor([1, 0]), CPU)
    assert torch.equal(batch.x, torch.tensor(windows.X[[15, 13]]))
    assert torch.equal(batch.labels, torch.tensor(windows.y[[15, 13]]))


def test_a_resumed_run_ends_where_it_would_have_ended(windows, tmp_path):
    whole, history = _train(windows, epochs=4)
    _train(windows, epochs=2, checkpoint=Checkpoint(tmp_path / "c", key="k", resume=False))
    resumed, again = _train(
        windows, epochs=4, checkpoint=Checkpoint(tmp_path / "c", key="k", resume=True)
    )
    assert torch.equal(_weights(resumed), _weights(whole))
    assert [r["loss"] for r in again] == [r["loss"] for r in history]


def test_without_resume_a_run_starts_anew(windows, tmp_path):
    for _ in range(2):
        checkpoint = Checkpoint(tmp_path / "c", key="k", resume=False)
        _, history = _train(windows, epochs=2, checkpoint=checkpoint)
        assert len(history) == 2


def test_a_checkpoint_of_other_settings_is_refused(windows, tmp_path):
    _train(windows, epochs=1, checkpoint=Checkpoint(tmp_path / "c", key="k", resume=False))
    with pytest.raises(DataError, match="other settings"):
        _train(windows, checkpoint=Checkpoint(tmp_path / "c", key="j", resume=True))


def test_a_damaged_checkpoint_is_named(windows, tmp_path):
    _train(windows, epochs=1, checkpoint=Checkpoint(tmp_path / "c", key="k", resume=False))
    (tmp_path / "c" / "state.safetensors").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"state\.safetensors"):
        _train(windows, checkpoint=Checkpoint(tmp_path / "c", key="k", resume=True))


@pytest.fixture
def _listening():
    """Ctrl-C is heard even where the tests run as a background job, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class _Interrupting(ExpCLRLoss):
    """Presses Ctrl-C in the middle of an epoch."""

    def __init__(self, step):
        super().__init__()
        self.left = step

    def forward(self, z, target):
        self.left -= 1
        if self.left == 0:
            _thread.interrupt_main()
        return super().forward(z, target)


@pytest.mark.usefixtures("_listening")
def test_ctrl_c_keeps_the_last_finished_epoch_and_says_how_to_go_on(windows):
    with pytest.warns(TrainingInterrupted, match="after epoch 2 of 5.*max_epochs=2"):
        stopped, history = _train(windows, epochs=5, method=_Interrupting(8))
    two, _ = _train(windows, epochs=2)
    assert len(history) == 2
    assert torch.equal(_weights(stopped), _weights(two))


@pytest.mark.usefixtures("_listening")
def test_ctrl_c_before_the_first_epoch_is_over_stops(windows):
    with pytest.raises(KeyboardInterrupt):
        _train(windows, method=_Interrupting(1))


class _Exploding(ExpCLRLoss):
    def forward(self, z, target):
        return super().forward(z, target) * math.inf


def test_a_loss_that_is_not_finite_stops_with_what_to_try(windows):
    with pytest.raises(DivergedError, match=r"step 0 of epoch 0 .*rate of 0\.01.*lower lr"):
        _train(windows, method=_Exploding())


def test_a_method_that_does_not_train_leaves_the_encoder_alone(windows):
    from expclr.methods import RandomInit

    encoder, history = _train(windows, method=RandomInit())
    assert history == []
    assert torch.equal(_weights(encoder), _weights(_encoder()))


class _Counting(Method):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, z, target):
        self.seen += target[:, 0].tolist()
        return z.square().mean()


def test_an_epoch_sees_every_window_once_in_an_order_of_its_own(windows):
    method = _Counting()
    _train(windows, epochs=2, method=method)
    first, second = method.seen[:48], method.seen[48:]
    assert sorted(first) == sorted(second) == sorted(windows.F[:, 0].tolist())
    assert first != second


def test_fewer_windows_than_a_batch_make_one_batch(windows):
    _, history = _train(windows, examples=_examples(windows).subset(torch.arange(5)))
    assert len(history) == 3


def test_a_windows_embedding_does_not_depend_on_its_company(windows):
    encoder, _ = _train(windows)
    whole = embed(encoder, windows.X, None, device=CPU)
    for part in (slice(0, 1), slice(5, 40), slice(47, 48)):
        np.testing.assert_array_equal(
            whole[part], embed(encoder, windows.X[part], None, device=CPU)
        )


def test_a_memory_mapped_signal_is_trained_on_as_it_is(windows, tmp_path):
    from expclr.windows import Windows

    mapped = Windows.load(windows.save(tmp_path / "w"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, _ = _train(mapped)
    assert torch.equal(_weights(first), _weights(_train(windows)[0]))


@pytest.mark.parametrize(
    "settings",
    [{"batch_size": 1}, {"max_epochs": -1}, {"lr": 0.0}, {"lr_decay": 1.5}, {"precision": "half"}],
)
def test_impossible_schedules_are_refused(settings):
    with pytest.raises(ConfigError):
        Schedule(**({"max_epochs": 1, "lr": 1e-3} | settings))


def test_a_single_window_is_refused(windows):
    with pytest.raises(DataError, match="at least 2"):
        _train(windows, examples=_examples(windows).subset(torch.arange(1)))


def test_devices_are_checked():
    assert resolve_device("cpu") == CPU
    with pytest.raises(ConfigError, match="try 'auto'"):
        resolve_device("gpuu")

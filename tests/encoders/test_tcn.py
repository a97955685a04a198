import os
import subprocess
import sys

import pytest
import torch

from expclr.encoders import TCN
from expclr.encoders.masks import MaskedBatchNorm, pool, real_steps
from expclr.encoders.tcn import Convolution
from expclr.errors import ConfigError

SMALL = {"width": 8, "blocks": 4, "hidden": 16}


def _tcn(**settings):
    torch.manual_seed(0)
    return TCN(2, 5, **(SMALL | settings))


@pytest.mark.parametrize("norm", ["weight", "batch", "none"])
@pytest.mark.parametrize("length", [40, 400])
@pytest.mark.parametrize("kernel", [3, 5])
def test_a_padded_series_has_the_embedding_of_the_series_alone(norm, length, kernel):
    encoder = _tcn(
        norm=norm, length=length, kernel=kernel, finest=40, pooling=("mean", "max", "std")
    )
    lengths = torch.tensor([40, 33, 7, 1])
    x = torch.randn(4, 2, 40)
    garbage = torch.where(real_steps(lengths, 40).bool(), x, 1e3)
    with torch.no_grad():
        encoder.train()
        encoder(x, lengths)  # running statistics, where there are any
        encoder.eval()
        together = encoder(garbage, lengths)
        for i, n in enumerate(lengths):
            torch.testing.assert_close(
                together[i : i + 1], encoder(x[i : i + 1, :, :n]), rtol=1e-5, atol=1e-5
            )


@pytest.mark.parametrize("norm", ["weight", "batch", "none"])
def test_padding_has_no_part_in_training(norm):
    encoder = _tcn(norm=norm, dropout=0.0)
    x, lengths = torch.randn(3, 2, 20), torch.tensor([20, 11, 5])
    outputs = []
    for filling in (0.0, 7.0):
        filled = torch.where(real_steps(lengths, 20).bool(), x, filling)
        encoder.zero_grad()
        z = encoder(filled, lengths)
        z.square().sum().backward()
        outputs.append([z.detach(), *[p.grad.clone() for p in encoder.parameters()]])
    for a, b in zip(*outputs, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("length", "halvings"), [(None, 0), (128, 0), (129, 1), (512, 2), (2500, 5), (3000, 5)]
)
def test_only_long_windows_are_strided(length, halvings):
    assert sum(stride == 2 for stride in TCN(1, 4, length=length).strides) == halvings


def test_strides_can_be_given():
    encoder = _tcn(strides=(2, 1, 1, 2))
    assert encoder(torch.randn(2, 2, 100)).shape == (2, 5)
    with pytest.raises(ConfigError, match="2 strides for 4 blocks"):
        _tcn(strides=(2, 1))


def test_dilations_can_be_given():
    blocks = _tcn(dilations=(1, 3, 1, 3)).blocks
    assert [block.first.convolution.dilation for block in blocks] == [(1,), (3,), (1,), (3,)]
    with pytest.raises(ConfigError, match="2 dilations for 4 blocks"):
        _tcn(dilations=(2, 1))


def test_the_receptive_field_is_that_of_eight_doubling_blocks():
    torch.manual_seed(0)
    encoder = TCN(1, 4, width=4, kernel=3, pooling=("mean",), norm="none").eval()
    x = torch.zeros(1, 1, 1201, requires_grad=True)
    y = x
    for block in encoder.blocks:
        y = block(y, None, None)
    y[0, :, 600].sum().backward()
    seen = x.grad[0, 0].nonzero()
    assert seen.max() - seen.min() + 1 <= 1021  # 1 + 510 (k - 1)
    assert seen.max() > 1000


def test_channel_dropout_drops_whole_channels():
    torch.manual_seed(0)
    dropped = _tcn(dropout_kind="channel", dropout=0.5).blocks[0].dropout(torch.ones(6, 8, 30))
    assert ((dropped == 0).all(2) | (dropped == 2).all(2)).all()
    single = _tcn(dropout_kind="element", dropout=0.5).blocks[0].dropout(torch.ones(6, 8, 30))
    assert not (single == 0).all(2).any()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernel": 4}, "odd"),
        ({"dropout_kind": "chanel"}, "'channel' or 'element'"),
    ],
)
def test_unusable_settings_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        _tcn(**settings)


def test_unknown_poolings_are_refused():
    with pytest.raises(ConfigError, match="median"):
        pool(torch.ones(1, 1, 1), None, ("median",))


def test_masked_batch_norm_is_batch_norm_when_all_is_real():
    x, ones = torch.randn(5, 3, 7), torch.ones(5, 1, 7)
    masked, plain = MaskedBatchNorm(3), torch.nn.BatchNorm1d(3)
    torch.testing.assert_close(masked(x, ones), plain(x))
    torch.testing.assert_close(masked.running_var, plain.running_var)
    torch.testing.assert_close(masked.running_mean, plain.running_mean)


def test_constant_windows_have_finite_gradients():
    encoder = _tcn(pooling=("mean", "max", "std"))
    encoder(torch.zeros(3, 2, 16)).sum().backward()
    assert all(p.grad.isfinite().all() for p in encoder.parameters())


@pytest.mark.parametrize("norm", ["weight", "none"])
@pytest.mark.parametrize("bf16", [False, True])
def test_on_a_cpu_time_comes_before_channels_on_both_ways(bf16, norm):
    encoder, seen = _tcn(strides=(2, 1, 1, 1), norm=norm), []

    def keep(_, __, y):
        seen.append(y.stride())
        y.register_hook(lambda gradient: seen.append(gradient.stride()))

    for block in encoder.blocks:
        block.first.convolution.register_forward_hook(keep)
        if isinstance(block.around, torch.nn.Conv1d):
            block.around.register_forward_hook(keep)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
        z = encoder(torch.randn(3, 2, 40))
    z.float().sum().backward()
    assert len(seen) == 10
    assert {stride[1] for stride in seen} == {1}  # the other order costs a third of the step


TRAINS_ON_TWO_THREADS = """
import torch
from expclr.encoders import TCN
from expclr.encoders.tcn import Convolution
torch.set_num_threads(2)
for size in (2, 3, 5, 8, 13, 18, 24, 32, 48, 64) * 20:
    encoder = TCN(3, 8, length=512, width=4, blocks=2, hidden=8)
    encoder(torch.randn(size, 3, 512)).square().mean().backward()
"""


def test_narrow_networks_that_stride_train_on_two_threads():
    done = subprocess.run(
        [sys.executable, "-c", TRAINS_ON_TWO_THREADS],
        env=os.environ | {"MALLOC_CHECK_": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_one_tap_is_a_convolution_too(stride):
    convolution = Convolution(3, 5, 1, stride=stride)
    x = torch.randn(2, 3, 17)
    wanted = torch.nn.functional.conv1d(x, convolution.weight, convolution.bias, stride)
    torch.testing.assert_close(convolution(x), wanted)

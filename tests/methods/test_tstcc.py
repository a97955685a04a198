import logging

import pytest
import torch
from tests.methods import oracles_contrast as oracles

from expclr.encoders.tstcc import TSTCCEncoder
from expclr.errors import ConfigError, DataError
from expclr.methods import METHODS
from expclr.methods.base import Batch

TSTCC = METHODS["tstcc"]


def _method(**settings):
    torch.manual_seed(0)
    small = {"horizon": 3, "hidden": 12, "channels": 8, "layers": 1}
    return TSTCC(**(small | settings)).eval()


def _maps(b=5, steps=4):
    torch.manual_seed(1)
    return torch.randn(2, b, 8, steps)


def _information(scores):
    """Mean of -log softmax of the diagonal, row by row."""
    rows = scores.double().tolist()
    terms = [oracles.log_sum_exp(row) - row[i] for i, row in enumerate(rows)]
    return sum(terms) / len(terms)


def _as_torch_has_it(context):
    """Torch's transformer with the weights of a context, and its class token."""
    layers = []
    for own in context.layers:
        hidden, inside = own.query_key_value.in_features, own.linear1.out_features
        layer = torch.nn.TransformerEncoderLayer(
            hidden, own.heads, inside, batch_first=True, norm_first=True
        )
        states = {name: part.state_dict() for name, part in own.named_children()}
        for name in ("norm1", "norm2", "linear1", "linear2"):
            getattr(layer, name).load_state_dict(states[name])
        attention = layer.self_attn
        attention.out_proj.load_state_dict(states["out"])
        attention.in_proj_weight.data = own.query_key_value.weight.data
        attention.in_proj_bias.data = own.query_key_value.bias.data
        layers.append(layer.double().eval())

    def summed_up(steps):  # (b, t, c) -> (b, h)
        token = context.token.expand(len(steps), -1, -1)
        x = torch.cat([token, context.inside(steps)], dim=1)
        return torch.nn.Sequential(*layers)(x)[:, 0]

    return summed_up


def _by_cutting(method, z, present):
    """The loss as a loop over directions and steps, of maps cut after the present step."""
    unit, context_of = torch.nn.functional.normalize(z, dim=2), _as_torch_has_it(method.context)
    horizon = min(method.horizon, z.shape[3] - 1)
    channels = z.shape[2]
    total, contexts = 0.0, []
    for i, t in enumerate(present):
        context = context_of(unit[i, :, :, : t + 1].mT)
        contexts.append(method.projection(context))
        predicted = method.predictions(context)
        for k in range(horizon):
            one = predicted[:, k * channels : (k + 1) * channels]
            total += _information(one @ unit[1 - i, :, :, t + 1 + k].T) / horizon
    return total + 0.7 * oracles.ntxent(torch.cat(contexts).tolist(), temperature=0.2)


@pytest.mark.parametrize("present", [(0, 0), (0, 3), (2, 1), (3, 3)])
@pytest.mark.parametrize("layers", [1, 3])
def test_the_loss_agrees_with_its_loop_over_cut_maps(present, layers, monkeypatch):
    method, z = _method(layers=layers).double(), _maps(steps=7).double()
    monkeypatch.setattr(torch, "randint", lambda *_, **__: torch.tensor(present))
    assert method(z).item() == pytest.approx(_by_cutting(method, z, present), rel=1e-10)


def test_what_is_hidden_of_a_map_is_as_if_it_were_cut_off():
    method = _method(layers=3).double()
    steps = torch.randn(7, 7, 8, dtype=torch.float64).requires_grad_()
    count = torch.arange(1, 8)  # the seventh sees all: nothing is cut on the CPU either
    contexts, reference = method.context(steps, count), _as_torch_has_it(method.context)
    direction = torch.randn_like(contexts)
    (gradient,) = torch.autograd.grad((contexts * direction).sum(), steps)
    for i, n in enumerate(count):
        alone = reference(steps[i : i + 1, :n])
        torch.testing.assert_close(contexts[i : i + 1], alone, rtol=1e-10, atol=1e-12)
        (wanted,) = torch.autograd.grad((alone * direction[i]).sum(), steps)
        torch.testing.assert_close(gradient[i], wanted[i], rtol=1e-10, atol=1e-12)
    assert (gradient[0, 1:] == 0).all()


def test_a_context_starts_as_torch_starts_a_transformer():
    torch.manual_seed(0)
    own = METHODS["tstcc"]().context.layers[0]
    torchs = torch.nn.TransformerEncoderLayer(100, 4, 64)
    for ours, theirs in (
        (own.query_key_value.weight, torchs.self_attn.in_proj_weight),
        (own.out.weight, torchs.self_attn.out_proj.weight),
        (own.linear1.weight, torchs.linear1.weight),
        (own.linear2.weight, torchs.linear2.weight),
    ):
        assert ours.shape == theirs.shape
        assert ours.std().item() == pytest.approx(theirs.std().item(), rel=0.03)
        assert ours.max().item() == pytest.approx(theirs.max().item(), rel=0.01)
    for bias in (own.query_key_value.bias, own.out.bias):
        assert (bias == 0).all()
    assert (torchs.self_attn.in_proj_bias == 0).all()
    assert (torchs.self_attn.out_proj.bias == 0).all()


def test_the_future_of_a_view_has_no_part_in_its_own_context(monkeypatch):
    monkeypatch.setattr(torch, "randint", lambda *_, **__: torch.tensor([0, 2]))
    method, z = _method(), _maps(steps=6)
    seen = []
    method.contrast.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    for _ in range(2):
        method(z)
        z[0, :, :, 1:] += 5
        z[1, :, :, 3:] += 5
    assert torch.equal(*seen)


def test_the_present_is_drawn_from_all_steps_that_leave_a_horizon():
    seen = []
    method = _method()
    method.context.register_forward_pre_hook(lambda _, args: seen.append(args[1].tolist()))
    z = _maps(steps=7)
    for _ in range(400):
        method(z)
    assert all(len(set(counts[:5])) == len(set(counts[5:])) == 1 for counts in seen)
    for direction in (0, 5):
        drawn = torch.tensor([counts[direction] for counts in seen])
        assert torch.bincount(drawn).tolist() == pytest.approx([0, *[100] * 4], rel=0.3)
    assert any(counts[0] != counts[5] for counts in seen)


def test_a_horizon_beyond_the_map_is_cut():
    assert _method(horizon=50)(_maps()).isfinite()


def test_the_views_are_one_weak_and_one_strong():
    batch = Batch(torch.randn(6, 3, 64))
    method = _method(channels=128, weak=lambda x, _: x * 0, strong=lambda x, _: x * 0 + 1)
    seen = []

    class Encode:
        def features(self, x, lengths):
            seen.append(x.unique().tolist())
            return torch.randn(6, 128, 5)

    method.step(Encode(), batch)
    assert seen == [[0.0], [1.0]]


def test_one_step_trains_encoder_and_method_but_not_the_last_layer(caplog):
    torch.manual_seed(0)
    encoder, method = TSTCCEncoder(3, 10, length=64), TSTCC(horizon=3)
    method.prepare(None, 10)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            method.step(encoder, Batch(torch.randn(8, 3, 64))).backward()
    assert [r.message for r in caplog.records] == [
        f"TS-TCC trains the feature map, of {encoder.steps * 128} values; embedding_dim=10 is a "
        f"random projection of it: embedding_dim={encoder.steps * 128} gives the map itself, as "
        "in the original"
    ]
    untrained = {id(p) for p in encoder.head.parameters()}
    for parameter in [*encoder.parameters(), *method.parameters()]:
        assert (parameter.grad is None) == (id(parameter) in untrained)


def test_the_published_sizes():
    method = TSTCC()
    assert method.predictions.out_features == 6 * 128
    assert len(method.context.layers) == 4
    assert [m.out_features for m in method.projection if hasattr(m, "out_features")] == [64, 32]


def test_what_ts_tcc_cannot_work_with_is_refused():
    batch = Batch(torch.randn(4, 3, 64))
    with pytest.raises(ConfigError, match="encoder='tstcc'"):
        TSTCC().step(lambda x, lengths: x[:, 0], batch)
    encoder = TSTCCEncoder(3, 10, length=64)
    with pytest.raises(DataError, match="equal length"):
        TSTCC().step(encoder, Batch(batch.x, torch.tensor([64, 64, 60, 64])))
    with pytest.raises(ConfigError, match="single step"):
        _method()(_maps(steps=1))
    with pytest.raises(ConfigError, match=r"hidden=10 .* 4 heads"):
        TSTCC(hidden=10)


def test_embeddings_without_time_are_refused_with_what_is_wanted():
    with pytest.raises(DataError, match=r"shape \(8, 16\).*feature maps over time"):
        TSTCC()(torch.randn(8, 16))

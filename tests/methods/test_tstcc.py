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


def test_the_loss_agrees_with_its_loop():
    method, z = _method(), _maps()  # 4 steps and a horizon of 3: the context sees the first only
    unit = torch.nn.functional.normalize(z, dim=2)
    total, contexts = 0.0, []
    for past, future in ((unit[0], unit[1]), (unit[1], unit[0])):
        context = method.context(past[:, :, :1])
        contexts.append(method.projection(context))
        steps = [
            _information(method.predictions[k](context) @ future[:, :, 1 + k].T) for k in range(3)
        ]
        total += sum(steps) / 3
    contextual = oracles.ntxent(torch.cat(contexts).tolist(), temperature=0.2)
    assert method(z).item() == pytest.approx(total + 0.7 * contextual, rel=1e-5)


def test_the_future_of_a_view_has_no_part_in_its_own_context():
    method, z = _method(), _maps()
    loss, context = method._temporal(z[0], z[1])
    changed = z[0].clone()
    changed[:, :, 1:] += 5
    loss2, context2 = method._temporal(changed, z[1])
    assert torch.equal(context, context2)
    assert torch.equal(loss, loss2)


def test_the_present_is_drawn_from_all_steps_that_leave_a_horizon():
    seen = []
    method = _method()
    method.context.register_forward_pre_hook(lambda _, args: seen.append(args[0].shape[2]))
    z = _maps(steps=7)
    for _ in range(60):
        method(z)
    assert set(seen) == {1, 2, 3, 4}


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
    assert len(method.predictions) == 6
    assert [p.out_features for p in method.predictions] == [128] * 6
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

"""The joint objective: each term against a slow loop, and who takes part in which term."""

import math

import numpy as np
import pytest
import torch

from expclr import RepresentationLearner, Windows
from expclr.errors import ConfigError
from expclr.methods import ExpCLRLoss, FeatureDecoding
from expclr.methods.base import Batch
from expclr.methods.expclr_plus import ExpCLRPlus


def _prepared(F, e, **params):
    torch.manual_seed(0)
    method = ExpCLRPlus(**params)
    method.prepare(F, e)
    return method


def _matched_loop(z, F, tau, reference):
    """tau log mean exp(L / tau) with both distances over their row's mean, pair by pair."""
    n, losses = len(z), []
    for i in range(n):
        D = [math.dist(z[i], z[j]) for j in range(n)]
        r = [min(1.0, math.dist(F[i], F[j]) / reference) for j in range(n)]
        T = [1 - (1 - value) ** 2 for value in r]
        mean_D, mean_T = sum(D) / n, sum(T) / n
        losses += [(t / mean_T - d / mean_D) ** 2 for t, d in zip(T, D, strict=True)]
    return tau * math.log(sum(math.exp(loss / tau) for loss in losses) / n**2)


@pytest.mark.parametrize("tau", [0.1, 1.0, 10.0])
def test_matched_pairs_are_the_loop_over_pairs(tau):
    z, F = torch.randn(7, 3, dtype=torch.float64), torch.randn(7, 4, dtype=torch.float64)
    method = _prepared(F, 3, decoding=0, tau=tau, reference=2.5)
    assert float(method(z, F)) == pytest.approx(
        _matched_loop(z.tolist(), F.tolist(), tau, 2.5), rel=1e-5
    )


def test_distances_that_follow_the_features_cost_nothing_when_matched_only():
    F = torch.randn(16, 5)
    settings = {"decoding": 0, "similarity": "linear", "reference": "dataset"}
    assert _prepared(F, 5, **settings)(F, F) < 1e-3
    assert _prepared(F, 5, **settings, pairs_target="paper")(F, F) > 1e-2


def test_the_paper_target_is_the_paper_loss():
    z, F = torch.randn(9, 3), torch.randn(9, 4)
    ours = _prepared(F, 3, decoding=0, pairs_target="paper", reference="batch")(z, F)
    torch.testing.assert_close(ours, ExpCLRLoss()(z, F))


def test_terms_add_up_with_their_weights():
    z, F = torch.randn(9, 3), torch.randn(9, 4)
    pairs = _prepared(F, 3, decoding=0)(z, F)
    both = _prepared(F, 3, pairs=2.0, decoding=0.5)
    reader = FeatureDecoding()
    reader.prepare(F, 3)
    reader.load_state_dict(both.reader.state_dict())
    torch.testing.assert_close(both(z, F), 2 * pairs + 0.5 * reader(z, F))


def test_windows_without_features_or_labels_train_together():
    F = torch.randn(8, 4)
    F[:3] = math.nan
    labels = torch.tensor([0, 1, 2, -1, -1, -1, -1, 0])
    method = _prepared(F, 3, labels=1.0)
    method.prepare_labels(labels, 3)
    x = torch.randn(8, 3, requires_grad=True)
    method.step(lambda x, lengths: x, Batch(x, None, F, labels)).backward()
    assert (x.grad.norm(dim=1) > 0).all()
    alone = _prepared(F, 3)
    x.grad = None
    alone.step(lambda x, lengths: x, Batch(x, None, F, labels)).backward()
    assert ((x.grad.norm(dim=1) > 0) == ~F.isnan().any(1)).all()


def test_two_views_of_a_window_share_its_features():
    F, x = torch.randn(8, 4), torch.randn(8, 3)
    method = _prepared(F, 3, augmentations=[], decoding=1.0)
    seen = method(x, F)
    method.views = 2
    torch.testing.assert_close(method(torch.cat([x, x]), F), seen, rtol=0.2, atol=0)
    with_views = _prepared(F, 3, augmentations=lambda x, lengths: x + 1.0, consistency=1.0)
    z = torch.cat([x, x + 1.0])
    spread = (z - z.mean(0)).square().sum(1).mean()
    without = _prepared(F, 3, augmentations=lambda x, lengths: x + 1.0)
    torch.testing.assert_close(with_views(z, F) - without(z, F), 3 / spread)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"pairs": 0, "decoding": 0}, "nothing to learn"),
        ({"decoding": -1}, "decoding"),
        ({"pairs_target": "other"}, "matched"),
        ({"consistency": 1.0}, "augmentations"),
        ({"tau": 0}, "tau"),
    ],
)
def test_settings_without_sense_are_refused(settings, word):
    with pytest.raises(ConfigError, match=word):
        ExpCLRPlus(**settings)


def test_what_the_network_computes_without_weights_is_read_back():
    F, fixed = torch.randn(8, 4), torch.rand(8, 6).half()
    method = _prepared(F, 3, pairs=0, decoding=0, reconstruction=2.0)
    method.prepare_fixed(fixed, 3)
    z = torch.randn(8, 3)
    batch = Batch(torch.randn(8, 1, 5), None, F, None, fixed)
    wanted = (fixed.double() - fixed.double().mean(0)) / fixed.double().std(0, correction=0)
    errors = (method.rebuilder.head(z) - wanted).square().mean()
    torch.testing.assert_close(method.step(lambda x, lengths: z, batch), 2 * errors.float())
    without = Batch(batch.x, None, F)
    assert method.step(lambda x, lengths: z, without) == 0


def test_fine_tuning_by_the_joint_objective_keeps_features_of_windows_without_labels():
    rng = np.random.default_rng(0)
    windows = Windows(rng.normal(size=(48, 2, 32)), rng.normal(size=(48, 3)), np.arange(48) % 2)
    settings = {"encoder": "rocket", "encoder_params": {"num_features": 84, "hidden": 8}}
    settings |= {"embedding_dim": 4, "max_epochs": 1, "finetune_epochs": 1, "device": "cpu"}
    learner = RepresentationLearner("expclr_plus", finetune_method="expclr_plus", **settings)
    learner.fit(windows)
    few = windows.label_fraction(0.2)
    assert learner.finetune(few).finetune_history_[0]["loss"] > 0
    assert learner.predict(windows).shape == (48,)
    assert learner.finetune(few.labelled().with_(F=None)).transform(windows).shape == (48, 4)

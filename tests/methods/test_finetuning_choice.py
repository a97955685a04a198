"""The loss on few labels is a choice: the method's own, or another by name."""

import numpy as np
import pytest

from expclr import RepresentationLearner, Windows
from expclr.cli import main
from expclr.methods import METHODS

rng = np.random.default_rng(0)
X = rng.normal(size=(24, 2, 16)).astype(np.float32)
F = rng.normal(size=(24, 3)).astype(np.float32)
Y = np.arange(24) % 3
SMALL = {"encoder_params": {"width": 4, "blocks": 2}, "max_epochs": 1, "batch_size": 8}


def first_loss(method, finetune_method):
    learner = RepresentationLearner(
        method, finetune_method=finetune_method, finetune_epochs=1, **SMALL
    )
    learner.fit(Windows(X, F=F)).finetune(X, Y)
    return learner.finetune_history_[0]["loss"]


@pytest.mark.parametrize("name", ["simclr", "relaxed", "sleepprior", "expclr"])
def test_every_system_may_go_on_by_expclr_or_by_its_own_choice(name):
    own, expclr = METHODS[name].finetune, first_loss(name, "expclr")
    assert first_loss(name, None) == first_loss(name, own)
    assert (first_loss(name, None) == expclr) == (own == "expclr")
    assert len({expclr, first_loss(name, "cross_entropy"), first_loss(name, "supcon")}) == 3


def test_the_command_takes_the_loss_by_name(tmp_path, capsys):
    model = RepresentationLearner("simclr", finetune_epochs=1, **SMALL).fit(X).save(tmp_path / "m")
    data = Windows(X, y=Y, group=np.arange(24) // 4).save(tmp_path / "windows")
    words = ["finetune", str(model), str(data)]
    assert main([*words, str(tmp_path / "own")]) == 0
    assert main([*words, str(tmp_path / "pair"), "--method", "pair"]) == 0
    tuned = RepresentationLearner.load(tmp_path / "pair")
    assert tuned.finetune_method == "pair"
    own = RepresentationLearner.load(tmp_path / "own")
    assert not np.array_equal(own.transform(X), tuned.transform(X))
    assert main([*words, str(tmp_path / "none"), "--method", "supkon"]) == 2
    assert "did you mean 'supcon'" in capsys.readouterr().err
    assert not (tmp_path / "none").exists() or not any((tmp_path / "none").iterdir())

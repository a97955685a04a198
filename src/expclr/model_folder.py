"""A fitted model as a folder of YAML, JSON and safetensors; opening one runs no code from it."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file as load_tensors
from safetensors.torch import save_file as save_tensors

from expclr.config import read_config, write_config
from expclr.encoders import ENCODERS
from expclr.encoders.scaled import ScaledEncoder
from expclr.errors import ConfigError, DataError
from expclr.evaluation.probes import LinearHead
from expclr.features.space import FeatureSpace
from expclr.fixed import FixedFeatures
from expclr.fuse import Fusion
from expclr.storage import new_folder, read_json, write_json, write_text

if TYPE_CHECKING:
    from expclr.estimators import RepresentationLearner

__all__ = ["FILES", "environment", "load", "save"]

FORMAT = 1
FILES = (  # all that a run's folder may hold
    "certificate.html",
    "certificate.json",
    "certificate.md",
    "checkpoint",
    "config.yaml",
    "encoder.safetensors",
    "env.json",
    "feature_space.json",
    "feature_space.safetensors",
    "finetune_history.jsonl",
    "fusion.safetensors",
    "head.safetensors",
    "history.jsonl",
    "metrics.json",
    "model.json",
    "report.html",
)
_SHAPE = {"channels": int, "length": int, "flat": bool, "n_features_in": int}
_KINDS = {"b": bool, "i": int, "u": int, "f": float, "U": str}


def save(estimator: RepresentationLearner, path: str | Path) -> Path:
    """Write a fitted estimator, whole or not at all."""
    with new_folder(path, known=FILES) as folder:
        write_config(folder / "config.yaml", _plain_config(estimator))
        weights = {
            k: v.detach().cpu().contiguous() for k, v in estimator.encoder_.state_dict().items()
        }
        save_tensors(weights, folder / "encoder.safetensors")
        _save_parts(estimator, folder)
        write_json(folder / "model.json", _facts(estimator))
        records = getattr(estimator, "finetune_history_", [])
        for name, history in (("history", estimator.history_), ("finetune_history", records)):
            write_text(folder / f"{name}.jsonl", "".join(json.dumps(r) + "\n" for r in history))
        write_json(folder / "env.json", environment())
    return Path(path)


def _plain_config(estimator: RepresentationLearner) -> Any:
    """The settings; a FeatureSpace object is kept in its fitted form instead."""
    config = replace(estimator.config, encoder=estimator.encoder_name_)
    if isinstance(config.feature_space, FeatureSpace):
        config = replace(config, feature_space="fitted")
    return config


def _facts(estimator: RepresentationLearner) -> dict[str, Any]:
    facts: dict[str, Any] = {"format": FORMAT} | {
        name: getattr(estimator, f"{name}_") for name in _SHAPE
    }
    if hasattr(estimator, "feature_names_in_"):
        facts["feature_names_in"] = [str(name) for name in estimator.feature_names_in_]
    if hasattr(estimator, "classes_"):
        facts["classes"] = estimator.classes_.tolist()
        facts["classes_kind"] = estimator.classes_.dtype.kind
    return facts


def _save_parts(estimator: RepresentationLearner, folder: Path) -> None:
    if hasattr(estimator, "head_"):
        _save_arrays({"W": estimator.head_.W, "b": estimator.head_.b}, folder / "head.safetensors")
    if hasattr(estimator, "fusion_"):
        _save_arrays(vars(estimator.fusion_), folder / "fusion.safetensors")
    if hasattr(estimator, "feature_space_"):
        state = estimator.feature_space_.state()
        arrays = {k: v for k, v in state.items() if isinstance(v, np.ndarray)}
        _save_arrays(arrays, folder / "feature_space.safetensors")
        rest = {k: v for k, v in state.items() if k not in arrays}
        write_json(folder / "feature_space.json", rest)


def _save_arrays(arrays: dict[str, Any], path: Path) -> None:
    # safetensors writes an array's memory as it lies: one in column order would come back shuffled.
    save_arrays({k: np.ascontiguousarray(v) for k, v in arrays.items()}, path)


def load(kind: type[Any], path: str | Path, *, device: str) -> Any:
    """Build an estimator of ``kind`` from a folder."""
    folder = Path(path)
    facts = _read_facts(folder)
    config = replace(read_config(folder / "config.yaml"), device=device)
    ENCODERS.known(config.encoder)
    estimator = kind.from_config(replace(config, feature_space=_space_setting(config)))
    estimator.from_folder_ = True
    estimator.fixed_ = FixedFeatures()
    estimator.encoder_ = _read_encoder(folder, config, facts)
    estimator.encoder_name_ = config.encoder
    for name in _SHAPE:
        setattr(estimator, f"{name}_", facts[name])
    estimator._n_features_out = config.embedding_dim
    if "feature_names_in" in facts:
        estimator.feature_names_in_ = np.array(facts["feature_names_in"], dtype=object)
    _read_parts(estimator, folder, facts)
    estimator.history_ = _read_history(folder / "history.jsonl")
    return estimator


def _read_facts(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise DataError(f"no folder {folder}: give a folder that save() wrote")
    facts = read_json(folder / "model.json")
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise DataError(f"{folder}/model.json is not of format {FORMAT}: train and save it again")
    for name, kind in _SHAPE.items():
        if not isinstance(facts.get(name), kind):
            raise DataError(f"{folder}/model.json: {name!r} is missing or wrong: save it again")
    return facts


def _space_setting(config: Any) -> Any:
    return "standard" if config.feature_space == "fitted" else config.feature_space


def _read_encoder(folder: Path, config: Any, facts: dict[str, Any]) -> ScaledEncoder:
    params = {"length": facts["length"]} | dict(config.encoder_params)
    path = folder / "encoder.safetensors"
    try:
        network = ENCODERS[config.encoder](facts["channels"], config.embedding_dim, **params)
        encoder = ScaledEncoder(network, facts["channels"])
        encoder.load_state_dict(load_tensors(path))
    except TypeError as error:
        raise ConfigError(f"{folder}/config.yaml: encoder_params: {error}") from error
    except (OSError, RuntimeError, SafetensorError) as error:
        raise DataError(f"{path} does not fit the settings beside it ({error})") from error
    return encoder.eval()


def _read_parts(estimator: Any, folder: Path, facts: dict[str, Any]) -> None:
    if "classes" in facts:
        head = _arrays(folder / "head.safetensors")
        estimator.head_ = LinearHead(head["W"], head["b"])
        estimator.classes_ = np.array(facts["classes"], dtype=_KINDS[facts["classes_kind"]])
    if (folder / "fusion.safetensors").exists():
        estimator.fusion_ = Fusion(**_arrays(folder / "fusion.safetensors"))
        estimator._n_features_out = len(estimator.fusion_.centre)
    if (folder / "feature_space.json").exists():
        state = read_json(folder / "feature_space.json")
        arrays = _arrays(folder / "feature_space.safetensors")
        estimator.feature_space_ = FeatureSpace.from_state({**state, **arrays})


def _arrays(path: Path) -> Mapping[str, Any]:
    try:
        return load_arrays(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path} cannot be read ({error}): save the model again") from error


def _read_history(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}): save the model again") from error


def environment() -> dict[str, Any]:
    """Versions and hardware that a result was made with."""
    import scipy
    import sklearn
    import torch

    import expclr

    cuda = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "expclr": expclr.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "system": platform.platform(terse=True),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "gpu": cuda,
    }

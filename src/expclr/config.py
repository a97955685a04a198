"""The settings of a training run: one flat table, a YAML file, and a hash that names the run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from expclr.errors import ConfigError, suggest
from expclr.storage import write_text

__all__ = ["TrainConfig", "read_config", "run_id", "write_config"]

# Settings that came after results were kept: at these values a configuration is what it was.
_LATER: dict[str, Any] = {"self_training": None}


@dataclass(frozen=True)
class TrainConfig:
    """Settings of a training run, the same as those of ``RepresentationLearner``.

    Where none is named, method and encoder are the paper's, as those of ``ExpCLR``.

    Args:
        method: What is minimised; see expclr.methods.METHODS.
        method_params: Settings of the method, for example {"tau": 0.5}.
        encoder: The network; see expclr.encoders.ENCODERS; "auto" tries some for a short while.
        encoder_params: Settings of the network, for example {"width": 32}.
        embedding_dim: Size of an embedding.
        include_features: Put the expert features beside the embedding, wherever it is used.
        batch_size: Windows in a training step.
        lr: Learning rate of Adam; null: what suits the encoder.
        lr_decay: Factor on the learning rate after each epoch.
        max_epochs: Passes over the training windows; the last one counts; null: what suits the
            encoder.
        finetune_method: What is minimised on few labels; by default what belongs to the method.
        finetune_lr: Learning rate when fine-tuning.
        finetune_epochs: Passes over the labelled windows when fine-tuning.
        self_training: Fine-tune once more with windows without a label, as the class predicted
            for them at over this probability, for example 0.95; null: labels alone.
        input_scaling: "standard" (each channel by its training mean and deviation) or "none".
        feature_space: "standard" (each feature by its training mean and deviation), "raw" (the
            distances of the paper), "robust", "quantile" or "whitened".
        validation_fraction: Part of the groups held out to record a validation loss.
        random_state: Seed of everything random.
        device: "auto", "cpu", "cuda", "cuda:1", "mps".
        precision: Of the network in training: "auto", "float32" or "bfloat16".
        batches: Which windows meet: "random", or pairs "near" or "far" in feature space, or "both".
    """

    method: str = "expclr"
    method_params: dict[str, Any] = field(default_factory=dict)
    encoder: str = "tcn"
    encoder_params: dict[str, Any] = field(default_factory=dict)
    embedding_dim: int = 100
    include_features: bool = False
    batch_size: int = 64
    lr: float | None = None
    lr_decay: float = 0.99
    max_epochs: int | None = None
    finetune_method: str | None = None
    finetune_lr: float = 1e-3
    finetune_epochs: int = 40
    self_training: float | None = None
    input_scaling: str = "standard"
    feature_space: Any = "standard"
    validation_fraction: float = 0.0
    random_state: int = 0
    device: str = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    batches: Literal["random", "near", "far", "both"] = "random"


def write_config(path: str | Path, config: TrainConfig) -> None:
    """Write the settings as YAML."""
    import yaml

    write_text(path, yaml.safe_dump(asdict(config), sort_keys=False))


def read_config(path: str | Path) -> TrainConfig:
    """Read settings written by ``write_config`` or by hand; what is left out keeps its default."""
    import yaml

    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except FileNotFoundError as error:
        raise ConfigError(f"no file {path}: check the name") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not readable YAML: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} holds a {type(values).__name__}: 'name: value' lines are wanted")
    known = [f.name for f in fields(TrainConfig)]
    for name in values:
        if name not in known:
            raise ConfigError(f"{path}: no setting named {name!r}: {suggest(str(name), known)}")
    return TrainConfig(**values)


def run_id(config: TrainConfig, *others: str) -> str:
    """Twelve characters that name a configuration (and the data or split it was run on).

    >>> run_id(TrainConfig()) == run_id(TrainConfig()) != run_id(TrainConfig(lr=1e-3))
    True
    """
    settings = {k: v for k, v in asdict(config).items() if k not in _LATER or v != _LATER[k]}
    text = json.dumps([settings, *others], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:12]

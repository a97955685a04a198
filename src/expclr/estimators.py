"""The scikit-learn front door: fit on expert features, fine-tune on few labels, transform."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from expclr import model_folder
from expclr.building import build, checked_seed
from expclr.checkpoint import Checkpoint
from expclr.choice import EncoderChoice, choose_encoder
from expclr.config import TrainConfig
from expclr.encoders import ENCODERS
from expclr.encoders.scaled import ScaledEncoder
from expclr.engine import resolve_device, seeded
from expclr.errors import ConfigError, DataError
from expclr.evaluation.probes import LinearHead, fit_linear_head
from expclr.features.space import FeatureSpace
from expclr.features.space_named import as_feature_space
from expclr.fixed import FixedFeatures
from expclr.fuse import Fusion, fuse
from expclr.inputs import Given, read_labels, read_training_data, read_windows, warn_of_empty_rows
from expclr.methods import METHODS
from expclr.methods.base import Method, one_hot
from expclr.self_training import checked_threshold, shortened, with_predicted
from expclr.train import Examples, History, Precision, Run, Schedule, embed
from expclr.windows import Windows

__all__ = ["ExpCLR", "RepresentationLearner"]

Learner = TypeVar("Learner")
Fitting = Generator[Run, History, Learner]
# With the coordinates, and what was given: it stays in memory, where its place is its name.
FittedSpaces = dict[tuple[Any, ...], tuple[FeatureSpace, torch.Tensor, Given]]


def _finish(fitting: Fitting[Learner]) -> Learner:
    """Train a learner's runs alone, one after the other."""
    run = next(fitting)
    while True:
        try:
            run = fitting.send(run.train())
        except StopIteration as stop:
            learner: Learner = stop.value
            return learner


_LOOKED_AT = 2048  # windows whose fixed features a method sees before training
_SUITED: dict[str, Any] = {"lr": 3e-3, "max_epochs": 40}  # where an encoder names none


def _has_head(estimator: RepresentationLearner) -> bool:
    if not hasattr(estimator, "head_"):
        raise AttributeError("no classes are known yet: call finetune(X, y), or fit(X, y), first")
    return True


class RepresentationLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn an encoder of sensor windows by any method in ``expclr.methods.METHODS``.

    Parameters
    ----------
    method : str
        What is minimised, by name, or ``"my_module:MyMethod"``.
    method_params : dict, optional
        Settings of the method.
    encoder : str, optional
        The network, by name (``expclr.encoders.ENCODERS``), or ``"my_module:MyNetwork"``; or
        "auto": the one from whose embedding, after short trainings, the expert features are read
        best on groups left out, or a cheaper one that is nearly as good (``expclr.choice``).
        Default "auto" for method "expclr_plus", the paper's "tcn" for all others.
    encoder_params : dict, optional
        Settings of the network.
    embedding_dim : int
    include_features : bool
        Put the expert features beside the embedding: they are then needed wherever the model is
        used, as F of the Windows.
    batch_size, lr, lr_decay, max_epochs
        Of Adam, with the learning rate multiplied by ``lr_decay`` after each epoch. The last
        epoch is kept. None: what suits the encoder.
    finetune_method : str, optional
        What is minimised on few labels; default what belongs to the method.
    finetune_lr, finetune_epochs
    self_training : float, optional
        A second fine-tuning, of the encoder as it was before the first: windows without a label
        take part with the class that the first one predicts, where its probability is above this.
        0.95 is what was measured (docs/choices.md). Default None: labels alone.
    input_scaling : "standard" or "none"
        Each channel by its mean and standard deviation over the training windows.
    feature_space : "standard", "raw", "robust", "quantile", "whitened" or a FeatureSpace
        How expert features are made comparable; "raw" takes their distances as they are, as the
        paper does. See :mod:`expclr.features.space_named`.
    validation_fraction : float
        Part of the groups (of the windows, without groups) held out to record a loss on.
    random_state : int or None
    device : str
        "auto", "cpu", "cuda", "cuda:1" or "mps".
    precision : "auto", "float32" or "bfloat16"
        Of the network in training: bfloat16 is nearly twice as fast on a CPU that has it. "auto"
        is float32, but for runs that ``expclr.many.fit_many`` stacks on a GPU.
    batches : "random", "near", "far" or "both"
        Which windows meet in a batch: by chance, or each with one that is near to it, or far from
        it, in feature space; or half of the pairs near and half far. Of ``fit``.

    Attributes
    ----------
    history_ : list of dict
        One record for each epoch: loss, learning rate, seconds, windows per second.
    finetune_history_ : list of dict
    encoder_ : torch.nn.Module
    encoder_name_ : str
        Which network it is.
    encoder_choice_ : EncoderChoice
        Only with ``encoder="auto"``: what decided.
    feature_space_ : FeatureSpace
        Only after training on features.
    classes_ : array
        Only after training on labels.
    n_features_in_ : int
        Columns of a two-dimensional X, channels of a three-dimensional one.
    feature_names_in_ : array
        Column names, when X was a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> from expclr import RepresentationLearner
    >>> X, F = np.random.default_rng(0).normal(size=(8, 2, 32)), np.arange(16.0).reshape(8, 2)
    >>> learner = RepresentationLearner(method="quadratic", max_epochs=1)
    >>> learner.fit(X, F).transform(X).shape
    (8, 100)
    """

    history_: list[dict[str, Any]]
    finetune_history_: list[dict[str, Any]]
    encoder_: ScaledEncoder
    encoder_name_: str
    encoder_choice_: EncoderChoice
    fusion_: Fusion
    fixed_: FixedFeatures
    feature_space_: FeatureSpace
    classes_: NDArray[Any]
    head_: LinearHead
    channels_: int
    length_: int
    flat_: bool
    n_features_in_: int

    def __init__(
        self,
        method: str = "expclr_plus",
        *,
        method_params: dict[str, Any] | None = None,
        encoder: str | None = None,
        encoder_params: dict[str, Any] | None = None,
        embedding_dim: int = 100,
        include_features: bool = False,
        batch_size: int = 64,
        lr: float | None = None,
        lr_decay: float = 0.99,
        max_epochs: int | None = None,
        finetune_method: str | None = None,
        finetune_lr: float = 1e-3,
        finetune_epochs: int = 40,
        self_training: float | None = None,
        input_scaling: str = "standard",
        feature_space: str | FeatureSpace = "standard",
        validation_fraction: float = 0.0,
        random_state: int | None = 0,
        device: str = "auto",
        precision: Precision = "auto",
        batches: str = "random",
    ) -> None:
        self.method = method
        self.method_params = method_params
        self.encoder = encoder
        self.encoder_params = encoder_params
        self.embedding_dim = embedding_dim
        self.include_features = include_features
        self.batch_size = batch_size
        self.lr = lr
        self.lr_decay = lr_decay
        self.max_epochs = max_epochs
        self.finetune_method = finetune_method
        self.finetune_lr = finetune_lr
        self.finetune_epochs = finetune_epochs
        self.self_training = self_training
        self.input_scaling = input_scaling
        self.feature_space = feature_space
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device
        self.precision = precision
        self.batches = batches

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the encoder.

        Parameters
        ----------
        X : array (n, c, t) or (n, t), list of arrays (c, t_i), or Windows
        y : array (n, d) or DataFrame, or array (n,)
            Expert features, NaN where missing; or labels (the paper's supervised mode), where
            -1, None and NaN mean unlabelled. Windows bring their own.
        """
        return self.fit_given(read_training_data(self, X, y))

    def fit_given(self, given: Given, *, checkpoint: Checkpoint | None = None) -> Self:
        """Train on data already read, going on from a checkpoint when there is one."""
        return _finish(self.fitting(given, checkpoint=checkpoint))

    def fitting(
        self,
        given: Given,
        *,
        checkpoint: Checkpoint | None = None,
        spaces: FittedSpaces | None = None,
    ) -> Fitting[Self]:
        """``fit_given`` as a generator: yields the run to train, is sent its history.

        Estimators that are given the same ``spaces`` fit a feature space once.
        """
        method = self._build(METHODS[self._method()[0]], self._method()[1])
        labels, features = self._targets(method, given, {} if spaces is None else spaces)
        self._forget()
        self.encoder_name_ = self._encoder_for(given)
        self._start_encoder(given.windows, method)
        self.history_ = yield self._run(
            method, given, features, labels, self._schedule(), checkpoint=checkpoint
        )
        self._fuse(given.windows)
        if labels is not None:
            self._fit_head(given)
        return self

    def finetune(self, X: Any, y: Any = None) -> Self:
        """Go on training the fitted encoder on labels, then fit a linear classifier on top.

        Parameters
        ----------
        X : as in ``fit``
        y : array (n,)
            Labels; windows with -1, None or NaN are left out, but for ``self_training``.
        """
        return _finish(self.finetuning(X, y))

    def finetuning(self, X: Any, y: Any = None) -> Fitting[Self]:
        """``finetune`` as a generator: yields each run to train, is sent its history."""
        check_is_fitted(self, "encoder_")
        threshold = checked_threshold(self.self_training)
        windows = read_windows(self, X, reset=False)
        if y is None and windows.y is None:
            raise DataError("finetune requires y to be passed, but the target y is None")
        codes, classes = read_labels(windows.y if y is None else y, windows)
        given = Given(windows, None, codes, classes)
        if threshold is None or (codes >= 0).all():
            yield from self._tuning(given)
        else:
            yield from self._self_training(given, threshold)
        return self

    def _self_training(self, given: Given, threshold: float) -> Fitting[None]:
        """Tune twice from the same weights: on labels, then with those that are predicted."""
        assert given.codes is not None
        assert given.classes is not None
        given.windows.check_finite()
        start = {name: value.clone() for name, value in self.encoder_.state_dict().items()}
        yield from self._tuning(given)
        if len(self.finetune_history_) < self.finetune_epochs:
            return  # stopped at Ctrl-C, or there is nothing to train
        P = self.head_.predict_proba(self._represent(given.windows))
        codes = with_predicted(given.codes, P, threshold, classes=given.classes)
        if (codes >= 0).sum() > (given.codes >= 0).sum():
            self.encoder_.load_state_dict(start)
            yield from self._tuning(replace(given, codes=codes), taught=given.codes)

    def _tuning(self, given: Given, *, taught: NDArray[np.int64] | None = None) -> Fitting[None]:
        """One run on the windows that have a label; ``taught``: what was known before."""
        windows, codes = given.windows, given.codes
        assert codes is not None
        method = self._build(*self._finetune_method())
        features = self._features_to_keep(method, windows)
        known = codes >= 0 if features is None else (codes >= 0) | ~np.isnan(features).all(1)
        rows = np.flatnonzero(known)
        given = replace(given, windows=windows.subset(rows).check_finite(), codes=codes[rows])
        self.fixed_.share(windows, rows)
        if features is None:
            labels, targets = self._targets(method, given, {})
        else:
            labels, targets = torch.from_numpy(codes[rows]), torch.from_numpy(features[rows])
        schedule = self._schedule(finetuned=method)
        if taught is not None:
            schedule = shortened(schedule, int((taught >= 0).sum()), int((codes >= 0).sum()))
        run = self._run(method, given, targets, labels, schedule)
        if taught is None:
            self.finetune_history_ = []
        else:
            run = replace(run, name="self-training")  # of the progress bar
        history = yield run
        done = len(self.finetune_history_)
        self.finetune_history_ += [r | {"epoch": done + r["epoch"]} for r in history]
        self._fuse(given.windows)
        self._fit_head(given)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embeddings of windows, (n, e), with their features behind if these are included."""
        check_is_fitted(self, "encoder_")
        return self._represent(read_windows(self, X, reset=False).check_finite())

    @available_if(_has_head)
    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each window."""
        return self.classes_[self.head_.predict(self.transform(X))]

    @available_if(_has_head)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, (n, classes), in the order of ``classes_``."""
        return self.head_.predict_proba(self.transform(X))

    def save(self, path: str | Path) -> Path:
        """Write the fitted model into a folder of safetensors, JSON and YAML."""
        check_is_fitted(self, "encoder_")
        return model_folder.save(self, path)

    @classmethod
    def load(cls, path: str | Path, *, device: str = "auto") -> Self:
        """Read a folder written by ``save``. Nothing in the folder is run as code."""
        return model_folder.load(cls, path, device=device)

    @property
    def config(self) -> TrainConfig:
        """The settings as one flat table."""
        method, method_params = self._method()
        others = {k: v for k, v in vars(self).items() if k in TrainConfig.__dataclass_fields__}
        others |= {"method": method, "method_params": method_params}
        others["encoder"] = self._encoder_asked()
        return TrainConfig(**others | {"encoder_params": dict(self.encoder_params or {})})

    @classmethod
    def from_config(cls, config: TrainConfig) -> Self:
        """The estimator of a table of settings."""
        return cls(**vars(config))

    def _method(self) -> tuple[str, dict[str, Any]]:
        return self.method, dict(self.method_params or {})

    def _finetune_method(self) -> tuple[type[Method], dict[str, Any]]:
        """The method's own choice for labels, with its settings when it is the method itself."""
        name, params = self._method()
        if hasattr(self, "from_folder_"):  # its settings may be a stranger's: import nothing
            METHODS.known(self.finetune_method or name)
        chosen = self.finetune_method or METHODS[name].finetune
        kind = METHODS[chosen]
        own = params if chosen == name else {}
        if not kind.finetune_params:
            # A reference distance that was measured on features says nothing of labels.
            return kind, {k: v for k, v in own.items() if k not in ("reference", "sigma")}
        missing = {k: v for k, v in kind.finetune_params.items() if not own.get(k)}
        return kind, own | missing

    def _build(self, kind: type[Any], params: dict[str, Any], *args: Any) -> Any:
        with seeded(self._seed()):
            return build(kind, params, *args)

    def _seed(self) -> int:
        if self.random_state is None:
            return secrets.randbits(31)
        return checked_seed(self.random_state)

    def _targets(
        self, method: Method, given: Given, spaces: FittedSpaces
    ) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """(labels, features) as the method wants them, labels as one-hot features if need be."""
        if method.target == "none":
            return None, None
        if method.target == "features" and given.features is not None:
            known = method.takes_labels and given.codes is not None
            labels = torch.from_numpy(given.codes) if known else None
            return labels, self._fit_feature_space(given, spaces)
        if given.codes is None or given.classes is None:
            raise DataError(
                f"{type(method).__name__} requires y to be passed, but the target y is None: "
                f"give {'expert features F or labels y' if method.target == 'features' else 'y'}"
            )
        labels = torch.from_numpy(given.codes)
        wants_features = method.target == "features"
        return labels, one_hot(labels, len(given.classes)) if wants_features else None

    def _features_to_keep(self, method: Method, windows: Windows) -> NDArray[np.float32] | None:
        """Features of the windows, for a method that goes on following them beside labels."""
        known = windows.F is not None and hasattr(self, "feature_space_")
        if not (method.takes_labels and known):
            return None
        return self.feature_space_.transform(windows.F)

    def _fit_feature_space(self, given: Given, spaces: FittedSpaces) -> torch.Tensor:
        key = id(given.features), id(given.windows.feature_names), self.feature_space
        if key not in spaces or not isinstance(self.feature_space, str):
            space = as_feature_space(self.feature_space)
            own = given.features is given.windows.F
            names = given.windows.feature_names if own else None
            values = space.fit(given.features, feature_names=names).transform(given.features)
            warn_of_empty_rows(values)
            spaces[key] = space, torch.from_numpy(values), given
        self.feature_space_, targets, _ = spaces[key]
        return targets

    def _forget(self) -> None:
        for name in ("head_", "classes_", "finetune_history_", "from_folder_", "fusion_"):
            self.__dict__.pop(name, None)

    def _encoder_asked(self) -> str:
        return self.encoder or ("auto" if self._method()[0] == "expclr_plus" else "tcn")

    def _encoder_for(self, given: Given) -> str:
        asked = self._encoder_asked()
        if asked != "auto":
            return asked
        if self.encoder_params:
            raise ConfigError("encoder_params are of one encoder: name it instead of 'auto'")
        self.encoder_choice_ = choose_encoder(self, given)
        return self.encoder_choice_.encoder

    def _start_encoder(self, windows: Windows, method: Method) -> None:
        if self.embedding_dim < 1:
            raise ConfigError(f"embedding_dim is {self.embedding_dim}: give a whole number from 1")
        _, channels, t = windows.X.shape
        params = dict(self.encoder_params or {})
        kind = ENCODERS[self.encoder_name_]
        network = self._build(kind, {"length": t} | params, channels, self.embedding_dim)
        self.encoder_ = ScaledEncoder(network, channels)
        self.encoder_.fit(windows, self.input_scaling)
        self.encoder_.to(resolve_device(self.device))
        with seeded(self._seed()):
            self.encoder_.look(windows)
        self.fixed_ = FixedFeatures()
        self._n_features_out = self.embedding_dim

    def _schedule(self, *, finetuned: Method | None = None) -> Schedule:
        own = self.schedule
        if finetuned is None:
            return own
        batches = "labelled" if finetuned.takes_labels else "random"
        return replace(own, max_epochs=self.finetune_epochs, lr=self.finetune_lr, batches=batches)

    @property
    def schedule(self) -> Schedule:
        """Epochs and learning rate of ``fit``; where none are given, those of the encoder."""
        suited = _SUITED | getattr(ENCODERS[self.encoder_name_], "suited", {})
        return Schedule(
            max_epochs=suited["max_epochs"] if self.max_epochs is None else self.max_epochs,
            lr=suited["lr"] if self.lr is None else self.lr,
            lr_decay=self.lr_decay,
            batch_size=self.batch_size,
            random_state=self._seed(),
            precision=self.precision,
            batches=self.batches,
        )

    def _run(
        self,
        method: Method,
        given: Given,
        features: torch.Tensor | None,
        labels: torch.Tensor | None,
        schedule: Schedule,
        *,
        checkpoint: Checkpoint | None = None,
    ) -> Run:
        windows = given.windows
        lengths = None if windows.lengths is None else torch.from_numpy(windows.lengths)
        device, fixed = resolve_device(self.device), None
        if method.trains and not method.augments:
            fixed = self.fixed_.of(self.encoder_, windows, device=device)
        examples = Examples(windows.X, lengths, features, labels, fixed)
        with seeded(schedule.random_state):
            method.prepare(features if method.target == "features" else labels, self.embedding_dim)
            if method.takes_labels and labels is not None:
                method.prepare_labels(labels, self.embedding_dim)
            if method.takes_fixed and fixed is not None:
                method.prepare_fixed(fixed[:: 1 + len(fixed) // _LOOKED_AT], self.embedding_dim)
        validation = None
        if self.validation_fraction and self.finetune_epochs:
            held = torch.from_numpy(_held_out(windows, self.validation_fraction, self._seed()))
            validation = examples.subset(held.nonzero()[:, 0])
            examples = examples.subset((~held).nonzero()[:, 0])
        return Run(
            self.encoder_,
            method,
            examples,
            schedule,
            device,
            validation=validation,
            checkpoint=checkpoint,
            name=type(method).__name__,
        )

    def _embed(self, windows: Windows) -> NDArray[np.float32]:
        device = resolve_device(self.device)
        fixed = self.fixed_.of(self.encoder_, windows, device=device)
        return embed(self.encoder_, windows.X, windows.lengths, device=device, fixed=fixed)

    def _represent(self, windows: Windows) -> NDArray[np.float32]:
        Z = self._embed(windows)
        return self.fusion_(Z, self._features_of(windows)) if self.include_features else Z

    def _features_of(self, windows: Windows) -> NDArray[np.float32]:
        if windows.F is None or not hasattr(self, "feature_space_"):
            raise DataError(
                "include_features=True puts expert features beside the embedding: train on "
                "features, and give Windows that hold F wherever the model is used"
            )
        return self.feature_space_.transform(windows.F)

    def _fuse(self, windows: Windows) -> None:
        if self.include_features:
            self.fusion_ = fuse(self._embed(windows), self._features_of(windows))
            self._n_features_out = len(self.fusion_.centre)

    def _fit_head(self, given: Given) -> None:
        assert given.codes is not None
        assert given.classes is not None
        known = np.flatnonzero(given.codes >= 0)
        self.fixed_.share(given.windows, known)
        Z = self._represent(given.windows.subset(known))
        self.head_ = fit_linear_head(Z, given.codes[known])
        self.classes_ = given.classes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


class ExpCLR(RepresentationLearner):
    """The paper's method: embeddings whose distances follow the distances of expert features.

    Parameters
    ----------
    tau : float
        Temperature of the hard-negative mining: small looks at the worst pairs, large at all.
    delta : float
        Distance wanted between the least similar pair.
    similarity : "squared" (Eq. 8), "linear" (Eq. 4) or "gaussian"
    reference : "batch", "dataset", "q0.99" or a number
        The feature distance at which similarity ends.
    sigma : float or "median"
        Of the gaussian similarity.
    normalize : True, False or "detach"
        Measure embedding distances in units of their row's mean.
    encoder, embedding_dim, batch_size, lr, max_epochs, ...
        See :class:`RepresentationLearner`.

    Examples
    --------
    >>> import numpy as np
    >>> from expclr import ExpCLR
    >>> rng = np.random.default_rng(0)
    >>> X, F, y = rng.normal(size=(12, 2, 32)), rng.normal(size=(12, 3)), ["calm", "shaky"] * 6
    >>> est = ExpCLR(max_epochs=1, finetune_epochs=1).fit(X, F)
    >>> Z = est.transform(X)  # no labels were needed
    >>> est.finetune(X, y).predict(X).shape
    (12,)
    """

    def __init__(
        self,
        tau: float = 1.0,
        delta: float = 1.0,
        *,
        similarity: str = "squared",
        reference: str | float = "batch",
        sigma: float | Literal["median"] = 1.0,
        normalize: bool | Literal["detach"] = True,
        encoder: str = "tcn",
        encoder_params: dict[str, Any] | None = None,
        embedding_dim: int = 100,
        include_features: bool = False,
        batch_size: int = 64,
        lr: float | None = None,
        lr_decay: float = 0.99,
        max_epochs: int | None = None,
        finetune_method: str | None = None,
        finetune_lr: float = 1e-3,
        finetune_epochs: int = 40,
        self_training: float | None = None,
        input_scaling: str = "standard",
        feature_space: str | FeatureSpace = "standard",
        validation_fraction: float = 0.0,
        random_state: int | None = 0,
        device: str = "auto",
        precision: Precision = "auto",
        batches: str = "random",
    ) -> None:
        super().__init__(
            "expclr",
            encoder=encoder,
            encoder_params=encoder_params,
            embedding_dim=embedding_dim,
            include_features=include_features,
            batch_size=batch_size,
            lr=lr,
            lr_decay=lr_decay,
            max_epochs=max_epochs,
            finetune_method=finetune_method,
            finetune_lr=finetune_lr,
            finetune_epochs=finetune_epochs,
            self_training=self_training,
            input_scaling=input_scaling,
            feature_space=feature_space,
            validation_fraction=validation_fraction,
            random_state=random_state,
            device=device,
            precision=precision,
            batches=batches,
        )
        self.tau = tau
        self.delta = delta
        self.similarity = similarity
        self.reference = reference
        self.sigma = sigma
        self.normalize = normalize

    _OWN = ("tau", "delta", "similarity", "reference", "sigma", "normalize")

    def _method(self) -> tuple[str, dict[str, Any]]:
        return "expclr", {name: getattr(self, name) for name in self._OWN}

    @classmethod
    def from_config(cls, config: TrainConfig) -> Self:
        """The estimator of a table of settings whose method is "expclr"."""
        if config.method != "expclr":
            raise ConfigError(
                f"these settings are of method {config.method!r}: use RepresentationLearner"
            )
        others = {k: v for k, v in vars(config).items() if k not in ("method", "method_params")}
        return cls(**config.method_params, **others)


def _held_out(windows: Windows, fraction: float, seed: int) -> NDArray[np.bool_]:
    if windows.group is not None:
        return windows.group_mask(fraction, random_state=seed)
    n = len(windows)
    held = np.zeros(n, dtype=bool)
    held[np.random.default_rng(seed).permutation(n)[: max(2, round(fraction * n))]] = True
    return held

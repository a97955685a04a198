"""The paper's experiments as data: which runs each table and figure is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from expclr.errors import ConfigError, suggest
from expclr.methods import METHODS

__all__ = [
    "BATCH_SIZES",
    "DELTAS",
    "DIMENSIONS",
    "EXPERIMENTS",
    "FRACTIONS",
    "LEARNING_RATES",
    "SYSTEMS",
    "TAUS",
    "Run",
    "System",
    "foreign",
    "runs_of",
]

FRACTIONS = (0.05, 0.1, 0.2, 0.5, 0.7, 1.0)
LEARNING_RATES = (5e-5, 1e-4, 5e-4, 1e-3, 3e-3, 5e-3, 7e-3, 1e-2)
# The paper shows these as figures without numbers: the ranges are ours.
TAUS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0)
DELTAS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
BATCH_SIZES = (16, 32, 64, 128, 256, 512)
DIMENSIONS = (5, 10, 25, 50, 100, 200, 400)

Mode = Literal["U", "S", "SS", "-"]


@dataclass(frozen=True)
class System:
    """What is compared: a method with its settings, and the name of its row.

    Parameters
    ----------
    label : str
        Of the row, without the mode.
    method : str, optional
        Of ``expclr.methods.METHODS``; None where nothing is trained.
    knob : (name, values), optional
        A setting of the method that is chosen on validation data beside the learning rate.
    ours : bool
        Not in the paper.
    beside : str, optional
        Label of the paper's row to compare with, where it is another.
    """

    label: str
    method: str | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    knob: tuple[str, tuple[Any, ...]] | None = None
    ours: bool = False
    beside: str | None = None


class _Systems(dict[str, System]):
    """Systems by name; any other method of the registry, or "module:object", by its own name."""

    def __missing__(self, name: str) -> System:
        if name in METHODS or ":" in name:
            return System(name, name, ours=True)
        raise KeyError(name)


SYSTEMS = _Systems(
    {
        "cross_entropy": System("Cross-Entropy", "cross_entropy"),
        "raw_features": System("Expert Features", None),
        "random": System("Random Init", "random"),
        "expclr": System("ExpCLR", "expclr"),
        # Nothing of it is chosen here: the learning rate is the one that the paper names.
        "expclr_published": System(
            "ExpCLR, the paper's rate", "expclr", ours=True, beside="ExpCLR"
        ),
        "simclr": System("SimCLR", "simclr", knob=("temperature", (0.1, 0.2, 0.5))),
        "sleepprior": System("SleepPriorCL", "sleepprior", knob=("temperature", (0.07, 0.2, 0.5))),
        "kim2021": System("Kim 2021", "relaxed", knob=("sigma", (1.0, "median"))),
        # The original's encoder, whose flattened map is the embedding, and its batch size.
        "tstcc": System(
            "TS-TCC", "tstcc", {"encoder": "tstcc", "embedding_dim": "flat", "batch_size": 128}
        ),
        "treba": System("TREBA Contrastive Loss", "treba", knob=("temperature", (0.07, 0.2, 0.5))),
        "decoding": System("Expert Feature Decoding", "decoding"),
        "nhnm": System("ExpCLR (NHNM)", "quadratic"),
        "expclr_plus": System(
            "expclr_plus", "expclr_plus", knob=("decoding", (0.3, 1.0, 3.0)), ours=True
        ),
        "rocket": System("rocket + ridge", None, ours=True),
        "rocket_features": System("rocket and expert features + ridge", None, ours=True),
        "pair": System("Pair loss", "pair", ours=True),
        "logratio": System("Log-ratio (Kim 2019)", "logratio", ours=True),
        "rankncontrast": System("Rank-N-Contrast", "rankncontrast", ours=True),
        "yaware": System("y-aware InfoNCE", "yaware", ours=True),
        "softclt": System("SoftCLT weights", "softclt", ours=True),
        "domainssl": System("DomainSSL", "domainssl", ours=True),
        "rkd": System("RKD distance", "rkd", ours=True),
    }
)
PAPER_U = ("expclr", "simclr", "sleepprior", "kim2021", "tstcc", "treba", "decoding")
PAPER_SS = ("expclr", "tstcc", "kim2021", "simclr", "sleepprior")
_COMPARED = {system.method for system in SYSTEMS.values()}
ZOO = (
    *("pair", "logratio", "rankncontrast", "yaware", "softclt", "domainssl", "rkd"),
    # What the registry holds besides comes along by itself.
    *(name for name in METHODS if name not in _COMPARED and METHODS[name].target != "labels"),
)


@dataclass(frozen=True)
class Run:
    """One training, or none, and what is read from it.

    Parameters
    ----------
    mode : "U", "S", "SS" or "-"
        Without labels, on labels alone, fine-tuned after U, or nothing trained.
    labels : float, optional
        Share of the labels that are known; None: all of them, to the probes alone.
    variant : tuple of (name, value)
        Settings that differ from the system's, a method's own as "method.tau".
    finetune : str, optional
        What goes on with labels instead of the system's own.
    part : "test" or "validation"
    """

    dataset: str
    system: str
    mode: Mode
    seed: int
    labels: float | None = None
    variant: tuple[tuple[str, Any], ...] = ()
    finetune: str | None = None
    part: str = "test"

    def words(self) -> str:
        """The run in one line.

        >>> Run("uci_har", "expclr", "SS", 3, 0.05).words()
        'ExpCLR (SS), 5 % labels, seed 3'
        """
        parts = [SYSTEMS[self.system].label + ("" if self.mode == "-" else f" ({self.mode})")]
        parts += [f"{name} {value}" for name, value in self.variant]
        parts += [f"fine-tuned by {self.finetune}"] if self.finetune else []
        parts += [] if self.labels is None else [f"{100 * self.labels:g} % labels"]
        return ", ".join([*parts, f"seed {self.seed}"])


Plan = Callable[[str, int], Iterable[Run]]  # dataset, seed


def _table1(dataset: str, seed: int) -> Iterable[Run]:
    yield Run(dataset, "cross_entropy", "S", seed, 1.0)
    if seed == 0:
        yield Run(dataset, "raw_features", "-", 0)
    for system in ("random", "rocket", "rocket_features"):
        yield Run(dataset, system, "-", seed)
    for system in (*PAPER_U, "expclr_published", "expclr_plus"):
        yield Run(dataset, system, "U", seed)


def _semi(dataset: str, seed: int) -> Iterable[Run]:
    for share in FRACTIONS:
        for system in (*PAPER_SS, "expclr_plus"):
            yield Run(dataset, system, "SS", seed, share)
        for system in ("expclr", "cross_entropy"):
            yield Run(dataset, system, "S", seed, share)
        for system in ("raw_features", "rocket"):
            yield Run(dataset, system, "-", seed, share)


def _finetune(dataset: str, seed: int) -> Iterable[Run]:
    for share in FRACTIONS:
        yield Run(dataset, "expclr", "SS", seed, share)
        for system in ("tstcc", "kim2021", "simclr", "sleepprior"):
            yield Run(dataset, system, "SS", seed, share, finetune="expclr")


def _ablation(dataset: str, seed: int) -> Iterable[Run]:
    yield Run(dataset, "expclr", "U", seed)
    yield from _varied(dataset, seed, "method.similarity", ("linear",))
    # Its width is the batch's median: of many features, a width of 1 sees no pair as similar.
    yield Run(
        dataset,
        "expclr",
        "U",
        seed,
        variant=(("method.sigma", "median"), ("method.similarity", "gaussian")),
    )
    yield from _varied(dataset, seed, "feature_space", ("raw",))


def _tau(dataset: str, seed: int) -> Iterable[Run]:
    yield from _varied(dataset, seed, "method.tau", TAUS, usual=1.0)
    yield Run(dataset, "nhnm", "U", seed)


def _sensitivity(dataset: str, seed: int) -> Iterable[Run]:
    yield from _varied(dataset, seed, "method.delta", DELTAS, usual=1.0)
    yield from _varied(dataset, seed, "batch_size", BATCH_SIZES, usual=64)
    yield from _varied(dataset, seed, "embedding_dim", DIMENSIONS, usual=100)


def _zoo(dataset: str, seed: int) -> Iterable[Run]:
    for system in (*PAPER_U, "nhnm", "expclr_plus", *ZOO):
        yield Run(dataset, system, "U", seed)


def _varied(
    dataset: str, seed: int, name: str, values: Sequence[Any], *, usual: Any = None
) -> Iterable[Run]:
    """ExpCLR without labels over the values of a setting; the usual one is the plain run."""
    for value in values:
        variant = () if value == usual else ((name, value),)
        yield Run(dataset, "expclr", "U", seed, variant=variant)


EXPERIMENTS: dict[str, Plan] = {
    "table1": _table1,
    "semi": _semi,
    "ablation": _ablation,
    "tau": _tau,
    "sensitivity": _sensitivity,
    "finetune": _finetune,
    "zoo": _zoo,
}


def runs_of(
    experiments: str | Sequence[str], dataset: str, seeds: int, *, also: Sequence[str] = ()
) -> list[Run]:
    """The runs of some experiments, or of "all", each once, in order.

    Several may be one string with commas between.

    ``also`` names further methods, which are trained without labels.

    Examples
    --------
    >>> len(runs_of("tau", "uci_har", 1)), len(runs_of(["tau", "ablation"], "uci_har", 1))
    (10, 13)
    """
    if seeds < 1:
        raise ConfigError(f"seeds is {seeds}: 1 or more is wanted")
    asked = experiments.split(",") if isinstance(experiments, str) else list(experiments)
    names = list(EXPERIMENTS) if "all" in asked else asked
    for name in names:
        if name not in EXPERIMENTS:
            raise ConfigError(f"no experiment {name!r}: {suggest(name, ['all', *EXPERIMENTS])}")
    found = [run for n in names for s in range(seeds) for run in EXPERIMENTS[n](dataset, s)]
    found += [Run(dataset, name, "U", seed) for name in also for seed in range(seeds)]
    return list(dict.fromkeys(found))


def foreign(names: Sequence[str]) -> list[str]:
    """Those names that are "module:object", which must hold a method."""
    return [name for name in names if ":" in name and METHODS[name]]

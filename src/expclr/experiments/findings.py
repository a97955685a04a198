"""What held of the paper's claims, in plain words filled from results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from expclr.evaluation.summary import Mean
from expclr.experiments.cells import COMPARED, PAPER_NAMES, Cells, apart, published
from expclr.experiments.paper import FRACTIONS, PAPER_SS, PAPER_U, SYSTEMS, TAUS

__all__ = ["Finding", "findings"]

FAR = 2.0
K = TypeVar("K")


@dataclass(frozen=True)
class Finding:
    """A claim and how it fared: "held", "did not hold" or "open" where errors overlap."""

    claim: str
    verdict: str
    numbers: str

    def line(self) -> str:
        """One line of the findings."""
        numbers = self.numbers.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
        return f"{self.claim} — {self.verdict}: {numbers}"


def findings(cells: Cells) -> list[Finding]:
    """Every claim that the results say something about; a smoke run says nothing."""
    found: list[Finding] = []
    if cells.budget == "smoke":
        return found
    for claim in CLAIMS:
        found += claim(cells)
    return found


def _published_level(cells: Cells) -> Iterator[Finding]:
    for probe, ours in COMPARED.items():
        name = PAPER_NAMES.get(cells.dataset, "")
        theirs = published().get(("table1", name, "ExpCLR", "U", None, probe))
        own = cells.mean(ours, "expclr", "U")
        if theirs and own:
            verdict = _verdict(own, theirs, or_equal=True)
            yield Finding(
                f"ExpCLR without labels reaches the published accuracy ({_probe(probe)})",
                verdict,
                f"{own:.2f} here, {theirs:.2f} published",
            )


def _best_without_labels(cells: Cells) -> Iterator[Finding]:
    for probe, ours in COMPARED.items():
        own = cells.mean(ours, "expclr", "U")
        rivals = _known(
            {s: cells.mean(ours, s, "U") for s in PAPER_U if s not in ("expclr", "tstcc")}
            | ({"tstcc": cells.mean(ours, "tstcc", "U")} if probe == "linear" else {})
        )
        if own and rivals:
            best = max(rivals, key=lambda s: rivals[s].mean)
            yield Finding(
                f"Without labels ExpCLR is ahead of the other methods ({_probe(probe)})",
                _verdict(own, rivals[best]),
                f"{own:.2f}; best of the others is {SYSTEMS[best].label} with {rivals[best]:.2f}",
            )


def _twenty_percent(cells: Cells) -> Iterator[Finding]:
    own = cells.mean("linear", "expclr", "SS", 0.2)
    rivals = _known(
        {
            (s, f): cells.mean("linear", s, mode, f)
            for s, mode in [*((s, "SS") for s in PAPER_SS[1:]), ("cross_entropy", "S")]
            for f in FRACTIONS
        }
    )
    if own and rivals:
        best = max(rivals, key=lambda key: rivals[key].mean)
        yield Finding(
            "With 20 % of the labels ExpCLR (SS) beats every competitor with any share",
            _verdict(own, rivals[best]),
            f"{own:.2f}; best of the others is {SYSTEMS[best[0]].label} with "
            f"{100 * best[1]:g} % of the labels, {rivals[best]:.2f}",
        )


def _few_labels(cells: Cells) -> Iterator[Finding]:
    own, scratch = (
        [cells.mean("linear", s, mode, f) for f in (0.05, 1.0)]
        for s, mode in (("expclr", "SS"), ("cross_entropy", "S"))
    )
    if own[0] and own[1] and scratch[0] and scratch[1]:
        drops = [pair[1].mean - pair[0].mean for pair in (own, scratch)]  # type: ignore[union-attr]
        verdict = "held" if drops[0] < 3.5 and drops[0] < drops[1] else "did not hold"
        yield Finding(
            "From all labels to 5 % ExpCLR (SS) loses less than 3.5 points, and less than "
            "cross-entropy",
            verdict,
            f"{drops[0]:.2f} points against {drops[1]:.2f} (published: 2.83 and 17.77)",
        )


def _pretraining(cells: Cells) -> Iterator[Finding]:
    for share in (0.05, 1.0):
        pair = [cells.mean("linear", "expclr", mode, share) for mode in ("SS", "S")]
        if pair[0] and pair[1]:
            yield Finding(
                f"Training without labels first helps ExpCLR with {100 * share:g} % of the labels",
                _verdict(pair[0], pair[1]),
                f"SS {pair[0]:.2f}, S {pair[1]:.2f}",
            )


def _similarity(cells: Cells) -> Iterator[Finding]:
    own = cells.mean("linear", "expclr", "U")
    gaussian = (("method.sigma", "median"), ("method.similarity", "gaussian"))
    others = _known(
        {
            "linear": cells.mean(
                "linear", "expclr", "U", variant=(("method.similarity", "linear"),)
            ),
            "gaussian": cells.mean("linear", "expclr", "U", variant=gaussian),
        }
    )
    if own and others:
        best = max(others, key=lambda name: others[name].mean)
        told = ", ".join(f"{name} {mean:.2f}" for name, mean in others.items())
        yield Finding(
            "The squared similarity is the best of the three",
            _verdict(own, others[best]),
            f"squared {own:.2f}, {told}",
        )


def _mining(cells: Cells) -> Iterator[Finding]:
    without = cells.mean("linear", "nhnm", "U")
    over = _known(
        {
            tau: cells.mean(
                "linear", "expclr", "U", variant=() if tau == 1 else (("method.tau", tau),)
            )
            for tau in TAUS
        }
    )
    if without and over:
        best = max(over, key=lambda tau: over[tau].mean)
        yield Finding(
            "Hard-negative mining helps",
            _verdict(over[best], without),
            f"best at tau {best:g} with {over[best]:.2f}, without it {without:.2f}"
            + (
                f"; the best of {len(over)} values is picked after the fact"
                if len(over) > 1
                else ""
            ),
        )


def _features_themselves(cells: Cells) -> Iterator[Finding]:
    for probe, ours in COMPARED.items():
        own = cells.mean(ours, "expclr", "U")
        raw = cells.mean(ours, "raw_features", "-")
        if own and raw:
            yield Finding(
                "The encoder, which needs the sensors only, reads classes better than the expert "
                f"features themselves ({_probe(probe)})",
                _verdict(own, Mean(raw.mean, 0.0, 5)),
                f"{own:.2f} against {raw.mean:.2f}",
            )


def _simple_rival(cells: Cells) -> Iterator[Finding]:
    for share in (0.05, 1.0):
        rocket = cells.mean("linear", "rocket", "-", share)
        mode = "SS"
        own = _known({s: cells.mean("linear", s, mode, share) for s in ("expclr", "expclr_plus")})
        if rocket and own:
            best = max(own, key=lambda s: own[s].mean)
            yield Finding(
                "Random convolutions with ridge regression, trained in seconds, are beaten with "
                f"{100 * share:g} % of the labels",
                _verdict(own[best], rocket),
                f"{SYSTEMS[best].label} (SS) {own[best]:.2f}, rocket + ridge {rocket:.2f}",
            )


CLAIMS: Sequence[Callable[[Cells], Iterator[Finding]]] = (
    _published_level,
    _best_without_labels,
    _features_themselves,
    _few_labels,
    _twenty_percent,
    _pretraining,
    _similarity,
    _mining,
    _simple_rival,
)


def _known(means: Mapping[K, Mean | None]) -> dict[K, Mean]:
    return {key: mean for key, mean in means.items() if mean is not None}


def _verdict(ours: Mean, theirs: Mean, *, or_equal: bool = False) -> str:
    """By joint standard errors; "open" within two of them, or without error bars."""
    distance = apart(ours, theirs)
    if distance is None:
        ahead = (
            "ahead" if ours.mean > theirs.mean else "behind" if ours.mean < theirs.mean else "even"
        )
        return f"open ({ahead}, without error bars)"
    if distance > FAR:
        return "held"
    if distance < -FAR:
        return "did not hold"
    if or_equal:
        return "held, within two standard errors"
    return "open, within two standard errors"


def _probe(name: str) -> str:
    return {"linear": "linear classifier", "knn1": "nearest neighbour"}[name]

"""The paper's figures from our runs: the numbers, and their drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.evaluation.bounds import bound_comparison
from expclr.evaluation.summary import Mean
from expclr.experiments.cells import COMPARED, PAPER_NAMES, Cells, published
from expclr.experiments.choices import Choices
from expclr.experiments.paper import (
    BATCH_SIZES,
    DELTAS,
    DIMENSIONS,
    FRACTIONS,
    SYSTEMS,
    TAUS,
)
from expclr.report.palette import CLASSES_LIGHT

__all__ = ["Curve", "Figure", "Panel", "all_figures", "draw", "loss_curves"]

FORMATS = ("pdf", "png", "svg")
SIMILARITIES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the loss figure
LINEAR = "accuracy of the linear classifier (%)"
NEAREST = "accuracy of the nearest neighbour (%)"


@dataclass(frozen=True)
class Curve:
    """A named line, with standard errors where they are known; ``dashed`` for the paper's."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] | None = None
    dashed: bool = False
    colour: int | None = None


@dataclass(frozen=True)
class Panel:
    """Axes with curves."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    log_x: bool = False
    log_y: bool = False
    level: tuple[str, float] | None = None  # a named horizontal line

    @property
    def named(self) -> bool:
        """Whether each curve is a single point, to be told by its name rather than by x."""
        return len(self.curves) > 1 and all(len(curve.x) == 1 for curve in self.curves)


@dataclass(frozen=True)
class Figure:
    """Panels beside each other, under one name."""

    name: str
    title: str
    panels: Sequence[Panel]
    caption: str


def all_figures(cells: Cells, choices: Choices | None = None) -> list[Figure]:
    """Every figure that the results have numbers for, and those that need none."""
    made = [label_curves(cells, probe) for probe in COMPARED]
    made += [similarities(cells), temperature(cells), sensitivity(cells)]
    made += [from_scratch(cells), finetuned(cells), learning_rates(choices)]
    made += [loss_figure(), bounds_figure()]
    kept = [Figure(f.name, f.title, _filled(f), f.caption) for f in made]
    return [figure for figure in kept if figure.panels]


def _filled(figure: Figure) -> list[Panel]:
    return [panel for panel in figure.panels if any(len(c.x) for c in panel.curves)]


def _curve(
    name: str, points: Sequence[tuple[float, Mean | None]], *, colour: int, dashed: bool = False
) -> Curve:
    """Through the points that are known."""
    known = [(x, mean) for x, mean in points if mean is not None]
    errors = [mean.error for _, mean in known]
    shown = None if np.isnan(errors).any() else errors
    values = [mean.mean for _, mean in known]
    return Curve(name, [x for x, _ in known], values, shown, dashed, colour)


def label_curves(cells: Cells, probe: str) -> Figure:
    """Accuracy over the share of labels (the paper's Figures 2 and A.1)."""
    curves = []
    rows = [("expclr", "SS"), ("cross_entropy", "S"), ("kim2021", "SS"), ("simclr", "SS")]
    rows += [("sleepprior", "SS"), ("tstcc", "SS"), ("expclr_plus", "SS"), ("rocket", "-")]
    paper = PAPER_NAMES.get(cells.dataset, "")
    for colour, (system, mode) in enumerate(rows):
        name = SYSTEMS[system].label + ("" if mode == "-" else f" ({mode})")
        ours = [(100 * f, cells.mean(COMPARED[probe], system, mode, f)) for f in FRACTIONS]
        curves.append(_curve(name, ours, colour=colour))
        key = (SYSTEMS[system].label, mode)
        theirs = [
            (100 * f, published().get(("semi", paper, *key, round(100 * f), probe)))
            for f in FRACTIONS
        ]
        if curves[-1].x and any(mean for _, mean in theirs):
            curves.append(_curve(f"{name}, paper", theirs, colour=colour, dashed=True))
    label = LINEAR if probe == "linear" else NEAREST
    return Figure(
        f"labels_{probe}",
        "Few labels: " + label.removeprefix("accuracy of the ").removesuffix(" (%)"),
        [Panel(cells.dataset, "labelled training windows (%)", label, curves, log_x=True)],
        "Fine-tuned on a share of the labels, probes fitted on the same labels.",
    )


def similarities(cells: Cells) -> Figure:
    """The three similarities (left panel of the paper's ablation figure), raw features beside."""
    settings: list[tuple[str, tuple[tuple[str, Any], ...]]] = [
        ("squared (Eq. 8)", ()),
        ("linear (Eq. 4)", (("method.similarity", "linear"),)),
        ("gaussian", (("method.sigma", "median"), ("method.similarity", "gaussian"))),
    ]
    curves = [
        _curve(name, [(at, cells.mean("linear", "expclr", "U", variant=v))], colour=at)
        for at, (name, v) in enumerate(settings)
    ]
    known = [curve for curve in curves if curve.x]
    shown = known if len(known) > 1 else []  # one setting alone is no comparison
    return Figure(
        "similarity",
        "Which similarity of expert features",
        [Panel(cells.dataset, "similarity", LINEAR, shown)],
        "ExpCLR without labels under the three similarities of the paper.",
    )


def temperature(cells: Cells) -> Figure:
    """Over tau, against no hard-negative mining (right panel)."""
    points = _over(cells, "method.tau", TAUS, 1.0)
    without = cells.mean("linear", "nhnm", "U")
    level = None if without is None else ("no hard-negative mining", without.mean)
    curves = [_curve("ExpCLR (U)", points, colour=0)] if _several(points) else []
    return Figure(
        "tau",
        "Hard-negative mining",
        [Panel(cells.dataset, "tau", LINEAR, curves, log_x=True, level=level)],
        "A small tau looks at the worst pairs only; for a large one the loss becomes the mean over "
        "all pairs, which is the level without hard-negative mining.",
    )


def sensitivity(cells: Cells) -> Figure:
    """Over Delta, batch size and embedding dimension."""
    panels = []
    for name, values, usual, label in (
        ("method.delta", DELTAS, 1.0, "Delta"),
        ("batch_size", BATCH_SIZES, 64, "batch size"),
        ("embedding_dim", DIMENSIONS, 100, "embedding dimension"),
    ):
        points = _over(cells, name, values, usual)
        curves = [_curve("ExpCLR (U)", points, colour=0)] if _several(points) else []
        panels.append(Panel(label, label, LINEAR, curves, log_x=True))
    return Figure(
        "sensitivity",
        "Sensitivity to Delta, batch size and embedding dimension",
        panels,
        "ExpCLR without labels; all else as in Table 1, the learning rate too.",
    )


def _over(
    cells: Cells, name: str, values: Sequence[float], usual: float
) -> list[tuple[float, Mean | None]]:
    return [
        (
            value,
            cells.mean("linear", "expclr", "U", variant=() if value == usual else ((name, value),)),
        )
        for value in values
    ]


def _several(points: Sequence[tuple[float, Mean | None]]) -> bool:
    return sum(mean is not None for _, mean in points) > 1


def from_scratch(cells: Cells) -> Figure:
    """ExpCLR (SS) against ExpCLR (S)."""
    panels = [
        Panel(
            cells.dataset,
            "labelled training windows (%)",
            label,
            [
                _curve(
                    f"ExpCLR ({mode})",
                    [(100 * f, cells.mean(COMPARED[probe], "expclr", mode, f)) for f in FRACTIONS],
                    colour=colour,
                )
                for colour, mode in enumerate(("SS", "S"))
            ],
            log_x=True,
        )
        for probe, label in (("linear", LINEAR), ("knn1", NEAREST))
    ]
    return Figure(
        "scratch",
        "What training without labels adds",
        panels,
        "SS: expert features first, then labels; S: the same labels alone.",
    )


def finetuned(cells: Cells) -> Figure:
    """Every system fine-tuned by ExpCLR on labels."""
    curves = []
    for colour, system in enumerate(("expclr", "kim2021", "simclr", "sleepprior", "tstcc")):
        finetune = None if system == "expclr" else "expclr"
        points = [
            (100 * f, cells.mean("linear", system, "SS", f, finetune=finetune)) for f in FRACTIONS
        ]
        curves.append(_curve(SYSTEMS[system].label, points, colour=colour))
    shown = curves if any(c.x for c in curves[1:]) else []
    return Figure(
        "finetuned",
        "Every system fine-tuned by ExpCLR (S)",
        [Panel(cells.dataset, "labelled training windows (%)", LINEAR, shown, log_x=True)],
        "What is left of the differences is due to training without labels.",
    )


def learning_rates(choices: Choices | None) -> Figure:
    """Validation accuracy over the grid of learning rates."""
    panels = []
    for stage, title in (("U", "without labels"), ("SS", "fine-tuning"), ("S", "on labels alone")):
        curves = []
        for colour, (system, stages) in enumerate((choices.systems if choices else {}).items()):
            if stage not in stages:
                continue
            best: dict[float, float] = {}
            for lr, _, score in stages[stage]["grid"]:
                best[lr] = max(score, best.get(lr, 0.0))
            points = sorted(best.items())
            curves.append(
                Curve(
                    SYSTEMS[system].label,
                    [lr for lr, _ in points],
                    [100 * score for _, score in points],
                    colour=colour,
                )
            )
        label = "validation accuracy, linear classifier (%)"
        panels.append(Panel(title, "learning rate", label, curves, log_x=True))
    return Figure(
        "learning_rates",
        "How the learning rates were chosen",
        panels,
        "On a fifth of the training subjects; the same grid for every system, the better of the "
        "numbers of epochs tried.",
    )


def loss_curves(
    s: float, D: NDArray[np.float64], *, delta: float = 1.0
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Loss and derivative of one pair at distance D, of ExpCLR (NHNM) and the pair loss.

    Examples
    --------
    >>> loss, derivative = loss_curves(0.5, np.array([0.5]))["ExpCLR (NHNM)"]
    >>> loss.item(), abs(derivative.item())
    (0.0, 0.0)
    """
    wanted = (1 - s) * delta
    far = wanted <= D
    return {
        "ExpCLR (NHNM)": ((wanted - D) ** 2, -2 * (wanted - D)),
        "pair loss": (
            s * D**2 + np.maximum(0, wanted**2 - D**2),
            np.where(far, 2 * s * D, -2 * D * (1 - s)),
        ),
    }


def loss_figure() -> Figure:
    """ExpCLR (NHNM) and the pair loss with their derivatives (the paper's Appendix E)."""
    D = np.linspace(0, 2, 201)
    panels = []
    for row, label in enumerate(("loss", "derivative")):
        for s in SIMILARITIES:
            curves = [
                Curve(name, D.tolist(), values[row].tolist(), colour=colour)
                for colour, (name, values) in enumerate(loss_curves(s, D).items())
            ]
            panels.append(Panel(f"s = {s:g}", "distance D", label, curves))
    return Figure(
        "loss",
        "ExpCLR (NHNM) and the pair loss",
        panels,
        "Both have their minimum at D = (1 - s) Delta; the pair loss has a jump in its derivative "
        "there, ExpCLR (NHNM) has none. For s = 1 they are the same.",
    )


def bounds_figure() -> Figure:
    """The paper's two bounds over the number of validation pairs, exact ones beside them."""
    found = bound_comparison()
    names = {
        "paper_validation": "paper, first approach",
        "paper_training": "paper, second approach",
        "exact_validation": "exact, first approach",
        "exact_training": "exact, second approach",
    }
    curves = [
        Curve(name, found["n_pairs"], np.minimum(found[key], 1).tolist(), colour=at)
        for at, (key, name) in enumerate(names.items())
    ]
    label = "largest probability of a pair outside"
    return Figure(
        "bounds",
        "Bounds on new pairs",
        [Panel("confidence 95 %", "validation pairs", label, curves, log_x=True, log_y=True)],
        "As in the paper's Appendix D, 5 % of the validation pairs lie outside the interval from "
        "training. Values above 1 are shown as 1.",
    )


def draw(figure: Figure, folder: str | Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Draw the figure as ``<folder>/<name>.pdf``, ``.png`` and ``.svg``."""
    from matplotlib.figure import Figure as Canvas

    columns = min(len(figure.panels), 5)
    rows = -(-len(figure.panels) // columns)
    width = 8.5 if columns == 1 else 3.4 * columns
    canvas = Canvas(figsize=(width, 4.2 * rows if columns == 1 else 3.0 * rows), dpi=150)
    axes = canvas.subplots(rows, columns, squeeze=False).ravel()
    for ax, panel in zip(axes, figure.panels, strict=False):
        _draw_panel(ax, panel)
        if columns == 1 and not panel.named:
            ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
        elif panel is figure.panels[0] and len(panel.curves) > 1 and not panel.named:
            ax.legend(fontsize=7)
    for ax in axes[len(figure.panels) :]:
        ax.set_visible(False)
    canvas.tight_layout()
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    paths = [place / f"{figure.name}.{kind}" for kind in formats]
    for path in paths:
        # Without a date, so that the same numbers give the same file.
        dated = {"pdf": "CreationDate", "svg": "Date"}.get(path.suffix[1:])
        canvas.savefig(path, metadata={dated: None} if dated else None)
    return paths


def _draw_panel(ax: Any, panel: Panel) -> None:
    for curve in panel.curves:
        if not len(curve.x):
            continue
        colour = CLASSES_LIGHT[(curve.colour or 0) % len(CLASSES_LIGHT)]
        beyond = (curve.colour or 0) >= len(CLASSES_LIGHT)
        style: dict[str, Any] = {
            "color": colour,
            "linestyle": ":" if beyond else "-",
            "label": curve.name,
        }
        if curve.dashed:
            style |= {"linestyle": "--", "label": None}
            ax.plot(curve.x, curve.y, **style, alpha=0.5, linewidth=1)
        elif len(curve.x) > 50:
            ax.plot(curve.x, curve.y, **style)
        else:
            ax.errorbar(curve.x, curve.y, curve.error, **style, marker="o", ms=3, capsize=2)
    if panel.level is not None:
        ax.axhline(panel.level[1], color="#57616c", linewidth=1, label=panel.level[0])
    if panel.log_x:
        ax.set_xscale("log")
        ticks = sorted({x for c in panel.curves for x in c.x})
        if len(ticks) <= 10:
            ax.set_xticks(ticks, [f"{x:g}" for x in ticks], minor=False)
            ax.minorticks_off()
    if panel.log_y:
        ax.set_yscale("log")
    if panel.named:
        ax.set_xticks(range(len(panel.curves)), [curve.name for curve in panel.curves])
        ax.margins(x=0.3)
    ax.set_title(panel.title, fontsize=10)
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label, fontsize=8)
    ax.grid(alpha=0.3)
    if any(curve.dashed for curve in panel.curves):
        ax.plot([], [], "--", color="#57616c", linewidth=1, label="the paper")

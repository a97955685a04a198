"""Tables, figures and findings: from records alone, never averaging what differs."""

import numpy as np
import pytest
import torch

from expclr.errors import DataError
from expclr.evaluation.summary import Mean
from expclr.experiments.cells import apart, cells_of, published
from expclr.experiments.choices import Choices
from expclr.experiments.figure_sections import sections
from expclr.experiments.figures import all_figures, draw, label_curves, loss_curves, similarities
from expclr.experiments.findings import findings
from expclr.experiments.paper import FRACTIONS
from expclr.experiments.paper_tables import PAPER, all_tables, markdown, semi, table1
from expclr.experiments.results_report import is_results, report_results
from expclr.experiments.store import Store
from expclr.methods import PairLoss, QuadraticLoss


def result(system, mode, seed, accuracy, labels=None, variant=(), **others):
    numbers = {"accuracy": accuracy, "macro_f1": accuracy, "kappa": accuracy}
    probes = ("linear", "linear_raw", "knn1", "knn1_raw")
    run = {"dataset": "uci_har", "system": system, "mode": mode, "labels": labels, "seed": seed}
    run |= {"variant": dict(variant), "finetune": None, "part": "test"}
    record = {
        "run": run,
        "config": {"embedding_dim": 100},
        "config_hash": "c",
        "code": "0.1+a",
        "data": "d",
        "split": "s",
        "budget": "gpu",
        "seconds": {"train": 1.0},
        "hardware": {"gpu": None},
        "chosen_by": "validation subjects (score 0.9)",
        "finished": f"2026-01-0{seed + 1}",
        "metrics": {"subset": {probe: dict(numbers) for probe in probes}},
    } | others
    return record | {"id": repr(sorted(record.items()))}


@pytest.fixture
def records():
    found = []
    for seed, spread in enumerate((-0.01, 0.0, 0.01)):
        found.append(result("expclr", "U", seed, 0.95 + spread))
        found.append(result("simclr", "U", seed, 0.90 + spread))
        found.append(result("treba", "U", seed, 0.5 + spread))
        found.append(result("nhnm", "U", seed, 0.93 + spread))
        for tau in (0.1, 100.0):
            variant = {"method.tau": tau}
            more = {"variant": variant, "config_hash": f"tau{tau}"}
            found.append(result("expclr", "U", seed, 0.94 + spread, **more))
        for share in FRACTIONS:
            found.append(result("expclr", "SS", seed, 0.96 + spread, share))
            found.append(result("expclr", "S", seed, 0.8 + spread, share))
            found.append(result("cross_entropy", "S", seed, 0.7 + spread + share / 5, share))
    return found


def test_the_papers_numbers_are_all_there():
    assert len(published()) == 291
    key = ("semi", "waveform", "SleepPriorCL", "SS", 5, "knn1")
    assert published()[key].mean > 50


def test_means_are_over_seeds_in_percent(records):
    mean = cells_of(records).mean("linear", "expclr", "U")
    assert (round(mean.mean, 6), mean.n) == (95.0, 3)
    assert mean.error == pytest.approx(1 / np.sqrt(3))


@pytest.mark.parametrize(
    ("field", "spoken"),
    [("code", "code versions"), ("data", "data"), ("split", "splits"), ("config_hash", "settings")],
)
def test_runs_that_differ_are_never_averaged_and_it_says_in_what(records, field, spoken):
    records.append(result("expclr", "U", 3, 0.0, **{field: "other"}))
    cells = cells_of(records)
    assert cells.mean("linear", "expclr", "U").n == 3
    (note,) = cells.left_out
    assert note.startswith("ExpCLR (U): 1 runs left out")
    assert spoken in note
    assert "other" in note


def test_of_two_versions_the_asked_one_counts(records):
    newer = [r | {"code": "0.1+b", "id": r["id"] + "b"} for r in records]
    assert set(cells_of(records + newer, code="0.1+a").versions) == {"0.1+a"}
    with pytest.raises(DataError, match="no result"):
        cells_of(records, code="nothing")


def test_validation_runs_are_in_no_table(records):
    for record in records:
        record["run"]["part"] = "validation"
    with pytest.raises(DataError, match="test data"):
        cells_of(records)


def test_marks_stand_beyond_two_joint_standard_errors_only(records):
    grid = table1(cells_of(records))
    by_name = dict(grid.rows)
    assert by_name["ExpCLR (U)"][0].mark == "above"  # 95 +- .58 beside 91.18 +- .41
    assert by_name["SimCLR (U)"][0].mark is None  # 90 +- .58 beside 90.70 +- .30
    assert by_name["TREBA Contrastive Loss (U)"][0].mark == "below"
    assert apart(Mean(1.0, 0.0, 5), Mean(0.0, 0.0, 5)) is None


def test_the_paper_stands_below_ours(records):
    grid = semi(cells_of(records), "linear")
    names = [name for name, _ in grid.rows]
    assert names[1] == PAPER
    assert grid.texts()[1][1] == "94.07 ± 0.71"


def test_systems_without_results_have_no_row(records):
    few = [r for r in records if r["run"]["system"] != "cross_entropy"]
    names = [name for name, _ in semi(cells_of(few), "linear").rows]
    assert names == ["ExpCLR (SS)", PAPER, "ExpCLR (S)", PAPER]
    assert not any(grid.title.startswith("Every system") for grid in all_tables(cells_of(records)))


def test_the_papers_curves_stand_in_a_chart_of_their_own(records):
    cells = cells_of(records)
    ours, theirs = sections(label_curves(cells, "linear"))
    assert [s.name for s in ours.series] == ["ExpCLR (SS)", "Cross-Entropy (S)"]
    assert [s.name for s in theirs.series] == ["ExpCLR (SS)", "Cross-Entropy (S)"]
    assert theirs.caption.startswith("The paper's numbers.")
    assert theirs.series[0].y[0] == 94.07
    for record in [r for r in records if r["run"]["system"] == "nhnm"]:
        variant = {"method.similarity": "linear"}
        run = record["run"] | {"system": "expclr", "variant": variant}
        records.append(record | {"run": run, "id": "linear" + record["id"]})
    (bars,) = sections(similarities(cells_of(records)))
    assert bars.names == ["squared (Eq. 8)", "linear (Eq. 4)"]
    assert bars.values[1] == pytest.approx(93.0)


def test_one_seed_has_no_error_bar_and_no_mark(records):
    cells = cells_of([r for r in records if r["run"]["seed"] == 0])
    assert not any(grid.marks() for grid in all_tables(cells))
    assert "without error bars" in markdown(all_tables(cells))


def test_findings_follow_the_numbers(records):
    lines = {f.claim: f.verdict for f in findings(cells_of(records))}
    ahead = "Without labels ExpCLR is ahead of the other methods (linear classifier)"
    assert lines[ahead] == "held"
    for record in records:
        if record["run"]["system"] == "simclr":
            for numbers in record["metrics"]["subset"].values():
                numbers["accuracy"] += 0.09
    lines = {f.claim: f.verdict for f in findings(cells_of(records))}
    assert lines[ahead] == "did not hold"


def test_a_single_value_was_not_picked(records):
    told = {f.claim: f.numbers for f in findings(cells_of(records))}
    assert "the best of 3 values is picked" in told["Hard-negative mining helps"]
    plain = [r for r in records if not r["run"]["variant"]]
    told = {f.claim: f.numbers for f in findings(cells_of(plain))}
    assert "picked" not in told["Hard-negative mining helps"]


def test_a_smoke_run_says_nothing_about_claims(records):
    for record in records:
        record["budget"] = "smoke"
    assert not findings(cells_of(records))


def test_every_figure_is_drawn_in_three_formats(records, tmp_path):
    grid = [[1e-3, 6, 0.9], [1e-2, 6, 0.8]]
    choices = Choices("uci_har", {"expclr": {"U": {"grid": grid}}})
    figures = all_figures(cells_of(records), choices)
    names = {figure.name for figure in figures}
    assert {"labels_linear", "tau", "scratch", "learning_rates", "loss", "bounds"} <= names
    for figure in figures:
        paths = draw(figure, tmp_path)
        assert [p.suffix for p in paths] == [".pdf", ".png", ".svg"]
        assert all(p.stat().st_size > 1000 for p in paths)


@pytest.mark.parametrize("s", [0.0, 0.3, 1.0])
def test_the_loss_figure_draws_the_losses_that_train(s):
    D = np.array([0.05, 0.4, 0.69, 0.9, 1.7])
    drawn = loss_curves(s, D)
    f = torch.tensor([[0.0], [1.0 - s]], dtype=torch.float64)
    for name, kind in (("ExpCLR (NHNM)", QuadraticLoss), ("pair loss", PairLoss)):
        method = kind(similarity="linear", normalize=False, reference=1.0)
        for at, d in enumerate(D):
            if not s < 1:
                f = torch.tensor([[0.0], [1e-9]], dtype=torch.float64)
            z = torch.tensor([[0.0], [d]], dtype=torch.float64, requires_grad=True)
            loss = method.pair_losses(z, f)[0][0, 1]
            (gradient,) = torch.autograd.grad(loss, z)
            assert drawn[name][0][at] == pytest.approx(loss.item(), abs=1e-6)
            assert drawn[name][1][at] == pytest.approx(gradient[1].item(), abs=1e-6)


def test_a_page_tables_and_figures_come_from_a_results_folder(records, tmp_path):
    store = Store(tmp_path)
    for number, record in enumerate(records):
        store.add(record | {"id": str(number)})
    (tmp_path / "runs" / "half.json").write_text("{")
    page, tables = report_results(tmp_path, drawn=False)
    html = page.read_text(encoding="utf-8")
    assert "half.json" in html
    assert 'class="number above"' in html
    assert "What held, and what did not" in html
    assert (
        "| ExpCLR (U) | 95.00 ± 0.58 ▲ | 91.18 ± 0.41 | +5.4\N{NO-BREAK SPACE}s.e. |"
        in tables.read_text(encoding="utf-8")
    )
    assert is_results(tmp_path)
    assert not is_results(tmp_path / "report")
    packed = store.pack(tmp_path / "all.jsonl")
    assert len(report_results(packed, tmp_path / "again", drawn=False)) == 2

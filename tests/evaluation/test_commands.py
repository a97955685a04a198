"""evaluate, certify, search and report on disk: files, numbers and one-line refusals."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from expclr.cli import main
from expclr.estimators import RepresentationLearner
from expclr.evaluation import NeighbourIndex, bilipschitz, certify
from expclr.evaluation.certificates import Certificate
from expclr.evaluation.retrieval import retrieval_quality
from expclr.experiments import worth
from expclr.experiments.evaluation_sections import certificate_sections, evaluation_sections
from expclr.windows import Windows

SMALL = {"width": 4, "blocks": 2, "hidden": 8}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A folder with train and test of other groups; some features are missing."""
    rng = np.random.default_rng(1)
    size, pace = rng.uniform(0.2, 2, 240), rng.uniform(1, 6, 240)
    wave = size[:, None] * np.sin(2 * np.pi * pace[:, None] * np.linspace(0, 1, 32))
    F = np.stack([size, pace, size * pace], 1)
    F[rng.random(F.shape) < 0.05] = np.nan
    windows = Windows(
        np.stack([wave, wave[:, ::-1]], 1) + 0.05 * rng.normal(size=(240, 2, 32)),
        F=F,
        y=(pace > 3.5).astype(int) + 2 * (size > 1),
        group=np.repeat(np.arange(6), 40),
        class_names=("slow small", "fast small", "slow large", "fast large"),
        name="waves",
    )
    folder = tmp_path_factory.mktemp("parts")
    train, test = windows.split_by_group([4, 5])
    train.save(folder / "data" / "train")
    test.save(folder / "data" / "test")
    learner = RepresentationLearner(
        encoder="tcn",
        encoder_params=SMALL,
        embedding_dim=4,
        batch_size=16,
        max_epochs=2,
        finetune_epochs=1,
        device="cpu",
    )
    learner.fit(train).save(folder / "model")
    return str(folder / "model"), str(folder / "data"), train, test


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def numbers_of(page):
    """Every number that stands in a cell of a page's tables, or in a chart's data."""
    cells = re.findall(r'<td class="number[^"]*">([^<]+)', page)
    return [float(c.replace("−", "-")) for c in cells if re.fullmatch(r"[−-]?[\d.]+", c)]


def test_evaluate_measures_every_task_with_its_baselines(parts, tmp_path, capsys):
    model, data, train, test = parts
    out = tmp_path / "all.json"
    also = "baselines,labels,suggestions"
    assert main(["evaluate", model, data, "--out", str(out), "--also", also]) == 0
    assert "linear, raw, expert features" in capsys.readouterr().out
    values = load(out)
    for probe in values["probes"].values():
        assert probe["intervals"]["groups"] == 2
        low, high = probe["intervals"]["accuracy"]
        assert low <= probe["accuracy"] <= high
        assert sum(map(sum, probe["confusion"])) == len(test)
    assert set(values["baselines"]) == {"raw windows", "expert features", "random encoder"}
    assert values["outliers"].keys() == {"0", "1", "2", "3", "mean"}
    assert values["p_values"].keys() == {"level", "normal", "left_out"}
    labels = values["labels"]
    assert len(labels["records"]) == 6 * 2 * 2
    assert set(labels["rivals"]) == {"labels alone", "expert features"}
    for rival in labels["rivals"].values():
        assert rival["labels_to_match"].keys() == labels["area"].keys() == rival["area"].keys()
        assert [r["labels"] for r in rival["records"]] == [r["labels"] for r in labels["records"]]
    assert {r["chooser"] for r in values["suggestions"]} == {"suggested", "random"}
    learner = RepresentationLearner.load(model)
    F = [learner.feature_space_.transform(part.F) for part in (train, test)]
    expected = retrieval_quality(
        learner.transform(train),
        learner.transform(test),
        y=train.y,
        y_query=test.y,
        F=F[0],
        F_query=F[1],
    )
    assert values["search"] == pytest.approx(expected)


def test_report_shows_what_evaluate_measured_and_keeps_all_of_it_in_metrics(parts, tmp_path):
    model, data, *_ = parts
    metrics = Path(model) / "metrics.json"
    assert main(["evaluate", model, data, "--also", "baselines,labels,suggestions"]) == 0
    before = load(metrics)
    page = tmp_path / "page.html"
    assert main(["report", model, data, "--out", str(page)]) == 0
    values, text = load(metrics), page.read_text(encoding="utf-8")
    assert values["baselines"] == before["baselines"]
    for title in (
        "Windows of each class",
        "What can be read from the embedding",
        "Recall of each class",
        "Accuracy by number of labels",
        "labels to match",
        "Which windows to label",
        "Similar windows",
        "Windows unlike any seen before",
        "How well distances are kept",
        "What distances say about new windows",
    ):
        assert title in text
    known = [f"{v:{form}}" for v in _leaves(values) for form in (".3f", ".3g", ".0f")]
    shown = numbers_of(text)
    assert len(shown) > 50
    assert [n for n in shown if not any(float(k) == n for k in known)] == []
    metrics.unlink()


def _leaves(values):
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list):
        return [leaf for value in values for leaf in _leaves(value)]
    return [values] if isinstance(values, int | float) else []


def test_groups_that_also_trained_are_refused_unless_allowed(parts, tmp_path, capsys):
    model, data, train, _ = parts
    train.subset(slice(100, 160)).save(tmp_path / "leak")
    words = [model, data, "--test", str(tmp_path / "leak")]
    out = ["--out", str(tmp_path / "m.json")]
    for command in ("evaluate", "certify"):
        assert main([command, *words, *out]) == 2
        assert "2 groups are in train and in test (2, 3)" in capsys.readouterr().err
    assert main(["evaluate", *words, *out, "--allow", "shared-groups"]) == 0
    assert main(["evaluate", *words, *out, "--allow", "anything"]) == 2
    assert main(["evaluate", *words, *out, "--also", "baseline"]) == 2
    assert "did you mean 'baselines'" in capsys.readouterr().err


def test_a_test_class_that_train_lacks_is_reported(parts, tmp_path):
    model, _, train, test = parts
    fewer = train.with_(y=np.where(train.y == 3, -1, train.y))
    fewer.save(tmp_path / "data" / "train")
    test.save(tmp_path / "data" / "test")
    page = tmp_path / "page.html"
    assert main(["report", model, str(tmp_path / "data"), "--out", str(page)]) == 0
    assert "Train has no window of fast large" in page.read_text(encoding="utf-8")


def test_windows_without_labels_or_features_are_still_measured(parts, tmp_path):
    model, _, train, test = parts
    unknown = {"F": None}, {"F": np.full((1, 3), np.nan)}
    cases = [({"y": None}, "outliers"), *((change, "distances") for change in unknown)]
    for number, (change, absent) in enumerate(cases):
        folder = tmp_path / str(number)
        for part, windows in (("train", train), ("test", test)):
            given = {k: v if v is None else v.repeat(len(windows), 0) for k, v in change.items()}
            windows.with_(**given).save(folder / part)
        out = folder / "metrics.json"
        assert main(["evaluate", model, str(folder), "--out", str(out)]) == 0
        assert absent not in load(out)


def test_what_cannot_be_measured_is_left_out_with_its_reason(parts, tmp_path, caplog, capsys):
    model, _, train, test = parts
    one = train.with_(y=np.zeros(len(train), int))
    few = train.subset([*np.flatnonzero(train.y == 0)[:3], *np.flatnonzero(train.y == 1)[:1]])
    cases = {
        "one": (one, test, "no probe linear: the labels hold one class only (0)"),
        "few": (few, test, "no outliers: without class 0 train has 1 windows"),
        "pair": (train, test.subset([0, 1]), "no certificate: any certificate needs 2 independent"),
    }
    for name, (known, asked, reason) in cases.items():
        known.save(tmp_path / name / "train")
        asked.save(tmp_path / name / "test")
        page = tmp_path / "page.html"
        caplog.clear()
        assert main(["report", model, str(tmp_path / name), "--out", str(page)]) == 0
        assert reason in caplog.text
    words = ["evaluate", model, str(tmp_path / "few"), "--also", "suggestions"]
    assert main([*words, "--out", str(tmp_path / "m.json")]) == 2
    assert "train has 4 labels: suggestions are compared" in capsys.readouterr().err
    (Path(model) / "metrics.json").unlink()


def test_certify_writes_numbers_a_model_card_section_and_a_page(parts, tmp_path, capsys):
    model, data, _, test = parts
    out = tmp_path / "sure.json"
    assert main(["certify", model, data, "--out", str(out), "--holds", "0.8"]) == 0
    record = load(out)
    sure = Certificate.of_record(record)
    assert sure.text() in capsys.readouterr().out
    assert sure.n_pairs + sure.left_out == len(test) // 2
    assert sure.text() in (tmp_path / "sure.md").read_text(encoding="utf-8")
    page = (tmp_path / "sure.html").read_text(encoding="utf-8")
    assert "exact, interval of the held-out pairs" in page
    assert sum(record["histogram"]["counts"]) == sure.n_pairs


def test_limits_may_come_from_the_training_windows(parts, tmp_path):
    model, data, train, _ = parts
    learner = RepresentationLearner.load(model)
    found = bilipschitz(learner.transform(train), learner.feature_space_.transform(train.F))
    for words in (["--interval", "training"], ["--method", "paper-training"]):
        out = tmp_path / "sure.json"
        assert main(["certify", model, data, "--out", str(out), *words]) == 0
        record = load(out)
        assert (record["lower"], record["upper"]) == (found.l_minus, found.l_plus)


def test_too_few_pairs_for_what_is_asked_say_how_many_are_needed(parts, tmp_path, capsys):
    model, data, *_ = parts
    out = str(tmp_path / "sure.json")
    assert main(["certify", model, data, "--out", out, "--holds", "0.99"]) == 2
    assert "needs 473 independent pairs, there are 40" in capsys.readouterr().err
    assert main(["certify", model, data, "--out", out, "--unit", "group"]) == 2
    assert "needs 2 independent pairs, there are 1" in capsys.readouterr().err


def test_search_gives_certified_limits_and_a_page(parts, tmp_path, capsys):
    model, data, train, test = parts
    sure, page, csv = tmp_path / "near.json", tmp_path / "near.html", tmp_path / "near.csv"
    assert main(["certify", model, data, "--out", str(sure), "--search", "3"]) == 0
    assert "one of its 3 nearest of 160" in capsys.readouterr().out
    words = ["search", model, data, data, "--k", "3", "--certificate", str(sure)]
    words += ["--out", str(csv), "--report", str(page)]
    assert main([*words, "--save_index", str(tmp_path / "index")]) == 0
    head, *lines = csv.read_text(encoding="utf-8").splitlines()
    assert head == "query,rank,window,distance,class,features_at_least,features_at_most"
    learner = RepresentationLearner.load(model)
    found = NeighbourIndex(learner.transform(train)).search(learner.transform(test), 3)
    table = [line.split(",") for line in lines]
    assert [int(row[2]) for row in table] == found.index.ravel().tolist()
    record = load(sure)
    for row, distance in zip(table, found.distance.ravel(), strict=True):
        assert float(row[5]) == pytest.approx(record["lower"] * distance, rel=1e-4)
        assert float(row[6]) == pytest.approx(record["upper"] * distance, rel=1e-4)
    text = page.read_text(encoding="utf-8")
    assert "The windows most like each query" in text
    shown = [f"{float(row[column]):.3g}" for row in table[:30] for column in (3, 5, 6)]
    assert numbers_of(text) == [float(number) for number in shown]
    assert main(["search", model, str(tmp_path / "index"), data, "--k", "3"]) == 0
    again = capsys.readouterr().out.splitlines()[-len(lines) :]
    assert [line.split(",")[2] for line in again] == [row[2] for row in table]


def test_search_refuses_what_it_cannot_use(parts, tmp_path, capsys):
    model, data, *_ = parts
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    assert main(["search", model, data, data, "--certificate", str(bad)]) == 2
    assert "not a certificate" in capsys.readouterr().err
    assert main(["search", model, data, data, "--k", "1000"]) == 2
    assert "k is 1000: 1 to 160" in capsys.readouterr().err
    assert main(["certify", model, data, "--search", "3", "--side", "upper"]) == 2
    assert "leave out" in capsys.readouterr().err


def test_sections_say_where_a_limit_is_infinite_and_leave_out_what_was_not_measured():
    rng = np.random.default_rng(0)
    Z, F = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    Z[:20] = Z[0]
    record = worth.distance_record(bilipschitz(Z, F))
    assert (record["l_plus"], record["collapsed"]) == (None, 190)
    (chart,) = evaluation_sections({"distances": record})
    assert "190 pairs have different features but the same embedding" in chart.caption
    assert [mark.label for mark in chart.marks] == ["l−"]
    sure = certify(np.zeros((60, 2)), F)
    assert "histogram" not in worth.certificate_record(sure)
    words, bounds = certificate_sections(worth.certificate_record(sure))
    assert "There is no upper limit" in words.paragraphs[0]
    assert len(bounds.series) == 4
    assert evaluation_sections({"probes": {}}) == []


def test_missing_features_become_the_median_of_train():
    filled, asked = worth.fill_gaps(
        np.array([[1.0, np.nan], [3.0, np.nan], [8.0, np.nan]]), np.array([[np.nan, 5.0]])
    )
    assert filled[:, 0].tolist() == [1, 3, 8]
    assert asked[0, 0] == 3
    assert np.isfinite(filled).all()


def test_small_p_values_are_rare_among_normal_windows_and_common_in_a_class_left_out():
    rng = np.random.default_rng(0)
    y = np.arange(900) % 3
    Z = 9 * np.eye(3)[y] + rng.normal(size=(900, 3))
    windows = [Windows(np.zeros((n, 1, 4)), y=y[:n]) for n in (600, 300)]
    found = worth.p_value_record((Z[:600], Z[600:]), *windows)
    assert found["left_out"] > 0.98
    assert found["normal"] == pytest.approx(0.05, abs=0.03)

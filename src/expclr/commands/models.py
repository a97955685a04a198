"""Commands that train a model and use it."""

from __future__ import annotations

from typing import Literal

from expclr.config import TrainConfig
from expclr.errors import DataError


def train(
    data: str, settings: TrainConfig, out: str | None = None, *, resume: bool = False
) -> None:
    """Train an encoder on expert features (or on labels, if there are no features).

    Args:
        data: A Windows folder, an .npz with the keys X, F, y, group, or a dataset's name, its
            options behind it as in mitdb,features=ecg88.
        settings: How to train.
        out: Folder of the run; default runs/<hash of settings and data>.
        resume: Go on from the last finished epoch of an earlier run in that folder.
    """
    from expclr.experiments.runs import train_run

    folder = train_run(data, settings, out, resume=resume)
    print(folder)


def finetune(
    model: str,
    data: str,
    out: str,
    *,
    label_fraction: float = 1.0,
    method: str | None = None,
    self_training: float | None = None,
) -> None:
    """Go on training a model on labels, and fit a classifier on top.

    Args:
        model: Folder of a trained model.
        data: As for train; its labels are used, -1 where there is none.
        out: Folder for the fine-tuned model.
        label_fraction: Part of the labels to use, stratified.
        method: What is minimised, by name (expclr, supcon, pair, cross_entropy); default what
            belongs to the method that the model was trained with.
        self_training: Fine-tune once more with the other windows, as the class predicted for them
            at over this probability, for example 0.95; 1: none; default the model's setting.
    """
    from expclr.experiments.runs import finetune_run

    changed = {"finetune_method": method, "self_training": self_training}
    print(finetune_run(model, data, out, label_fraction=label_fraction, changed=changed))


def embed(model: str, data: str, out: str, *, part: str = "test") -> None:
    """Write the embeddings of windows as an .npy array (n, e).

    Args:
        model: Folder of a trained model.
        data: As for train.
        out: The .npy file to write.
        part: "train" or "test", where the data has both.
    """
    from expclr.experiments.runs import embed_run

    print(f"{out}: {embed_run(model, data, out, part=part)}")


def evaluate(
    model: str,
    data: str,
    out: str | None = None,
    also: str = "",
    allow: str = "",
    *,
    test: str | None = None,
) -> None:
    """Measure an encoder: probes, similar windows, outliers, distances against features.

    Args:
        model: Folder of a trained model.
        data: As for train; probes are fitted on its train part and read on its test part.
        out: JSON file for the numbers; default metrics.json in the model's folder.
        also: What takes longer, with commas between: "baselines" (expert features, raw windows
            and an untrained encoder), "labels" (fine-tuning on 5 to 100 % of the labels; with
            "baselines" also how many labels match theirs), "suggestions" (labels chosen by
            suggest_labels and by chance).
        allow: "shared-groups": accept groups that are in both parts.
        test: Test windows, where the data does not have them.
    """
    from expclr.experiments.runs import evaluate_run

    path, table = evaluate_run(model, data, out, test=test, also=also, allow=allow)
    print(f"{table}\n{path}")


def certify(
    model: str,
    data: str,
    out: str | None = None,
    method: Literal["exact", "paper-validation", "paper-training"] = "exact",
    confidence: float = 0.95,
    holds: float | None = None,
    side: Literal["both", "upper", "lower"] = "both",
    unit: Literal["window", "group"] = "window",
    interval: Literal["held-out", "training"] = "held-out",
    search: int = 0,
    *,
    test: str | None = None,
) -> None:
    """Say with a confidence how embedding distances bound feature distances of new windows.

    Args:
        model: Folder of a trained model.
        data: As for evaluate; pairs are drawn from its test part, which must be held out.
        out: JSON file for the certificate; default certificate.json in the model's folder. A
            model card section (.md) and a page (.html) are written beside it.
        method: Which bound; paper-training takes the interval from the training windows.
        confidence: Share of repetitions in which the statement holds.
        holds: Ask for the shortest interval that holds this share of pairs, for example 0.99.
        side: Which limit is wanted.
        unit: New windows of the same groups, or of new groups.
        interval: Whose pairs the limits come from.
        search: Speak of a window and one of so many nearest ones of the train part, as search
            shows them, instead of two windows.
        test: Test windows, where the data does not have them.
    """
    from expclr.experiments.certify_search import certify_run

    path, certificate = certify_run(
        model,
        data,
        out,
        method=method,
        confidence=confidence,
        holds=holds,
        side=side,
        unit=unit,
        interval=interval,
        search=search,
        test=test,
    )
    print(f"{certificate.text()}\n{path}")


def search(
    model: str,
    data: str,
    query: str,
    k: int = 5,
    out: str | None = None,
    certificate: str | None = None,
    save_index: str | None = None,
    report: str | None = None,
) -> None:
    """Find the windows most similar to given ones, as CSV lines.

    Args:
        model: Folder of a trained model.
        data: Windows to search in (a train part is taken where there is one), or a saved index.
        query: Windows to search for; a test part is taken where there is one.
        k: How many neighbours of each.
        out: CSV file; default is to print.
        certificate: JSON file of certify (best with --search): adds the limits of the distance of
            expert features to each line.
        save_index: Folder to keep the embeddings of the data in, for later searches.
        report: HTML file that shows the first queries beside what was found.
    """
    from expclr.experiments.certify_search import search_run

    lines = search_run(
        model, data, query, k=k, certificate=certificate, save_index=save_index, report=report
    )
    if out is None:
        print("\n".join(lines))
        return
    from expclr.storage import write_text

    write_text(out, "\n".join(lines) + "\n")
    print(out)


def report(
    model: str,
    data: str | None = None,
    /,
    out: str | None = None,
    allow: str = "",
    dataset: str | None = None,
    budget: str | None = None,
    code: str | None = None,
    *,
    test: str | None = None,
) -> None:
    """Write one offline HTML page: about a model, or about all results in a folder.

    Args:
        model: Folder of a trained model; or a results folder of expclr reproduce, without data.
        data: As for evaluate.
        out: The HTML file; default report.html in the model's folder. The numbers go to
            metrics.json in the model's folder. For results the folder of pages, tables and
            figures; default report in the results folder.
        allow: As for evaluate.
        dataset: Of results: only this one.
        budget: Of results: only this one.
        code: Of results: only this code version.
        test: Test windows, where the data does not have them.
    """
    from expclr.experiments.results_report import is_results, report_results
    from expclr.experiments.runs import report_run

    if data is not None:
        print(report_run(model, data, out, test=test, allow=allow))
        return
    if not is_results(model):
        raise DataError(f"{model} holds no results: give the data too if it is a model")
    for path in report_results(model, out, dataset=dataset, budget=budget, code=code):
        print(path)

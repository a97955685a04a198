"""What the command line can do: one plain function a command, its help in its docstring."""

from __future__ import annotations

from typing import Literal

from expclr.config import TrainConfig
from expclr.errors import DataError

__all__ = ["COMMANDS"]


def demo(out: str = "expclr-demo", random_state: int = 0) -> None:
    """Simulate machines, learn from expert features, fine-tune on few labels, show it all.

    Args:
        out: Folder for report.html, metrics.json and the trained model.
        random_state: Seed of the data and of every training.
    """
    from expclr.experiments.demo import run_demo

    result = run_demo(out, random_state=random_state)
    print(result.table())
    print(f"\nReport: {result.report} (open it in a browser; it needs no network)")


def fetch(name: str, files: str = "", mirror: str | None = None, *, offline: bool = False) -> None:
    """Download a dataset's raw files, or check those that are there.

    Args:
        name: A dataset.
        files: Only these files: patterns with commas between, for example "100.*,101.*".
        mirror: Address of a folder with the same files, asked first.
        offline: Download nothing: only check that all is there and unchanged.
    """
    from expclr.datasets.fetch import fetch as fetch_files

    print(
        fetch_files(
            name, files=tuple(files.split(",")) if files else (), mirror=mirror, offline=offline
        )
    )


def prepare(
    name: str,
    x: str | None = None,
    features: str | None = None,
    labels: str | None = None,
    group: str | None = None,
    case: str | None = None,
    time: str | None = None,
    channels: str = "",
    intervals: str | None = None,
    sfreq: float | None = None,
    length: int | None = None,
    step: int | None = None,
    test: str | None = "0.3",
    missing: Literal["error", "interpolate", "drop"] = "error",
    max_gap: int | None = None,
    allow: str = "",
    out: str | None = None,
    random_state: int = 0,
    *,
    mask: bool = False,
) -> None:
    """Make windows ready for training: of a dataset, or of your own files with --x.

    Args:
        name: A dataset, its options behind it as in ucr,problem=ECG5000; or any name for your own
            data, which then go to data/NAME.
        x: Your signals: .npz, .npy, a folder of them, a long or wide table (.csv, .parquet), one
            recording or a folder of recordings (.csv, .edf, .hea).
        features: Columns with commas between, or a file with a row for each window or case.
        labels: A column, or a file likewise.
        group: A column or a file: what a fair split keeps apart (subject, machine).
        case: Column of a long table that says which series a row belongs to.
        time: Column of a long table; seconds or dates.
        channels: Columns or signals to take, with commas between.
        intervals: A table of recording, start, end, label.
        sfreq: Samples a second, where the files do not say.
        length: Cut into windows of so many samples.
        step: Begin a window every so many samples; default length.
        test: Fraction of the groups held out, groups with commas between, another source of the
            same form, or null.
        missing: What to do with missing samples.
        max_gap: Longest gap to interpolate, in samples.
        allow: "duplicates", "shared-groups" or both with a comma: accept them across the split.
        out: Folder to make; default data/NAME.
        random_state: Which groups are held out.
        mask: Add a channel that is 1 where a sample was filled.
    """
    if x is None:
        _prepare_known(name)
        return
    from expclr.datasets.own import prepare as prepare_own

    folder = prepare_own(
        out or f"data/{name}",
        x,
        features=features,
        labels=labels,
        group=group,
        case=case,
        time=time,
        channels=channels,
        intervals=intervals,
        sfreq=sfreq,
        length=length,
        step=step,
        test=_held_out(test),
        missing=missing,
        max_gap=max_gap,
        mask=mask,
        allow=tuple(allow.split(",")) if allow else (),
        name=name,
        random_state=random_state,
    )
    print(folder)


def _held_out(test: str | None) -> str | float | list[str] | None:
    """A fraction, or groups: ``203`` is one."""
    if test is None or "," in test:
        return test and [group.strip() for group in test.split(",") if group.strip()]
    try:
        fraction = float(test)
    except ValueError:
        return test
    return fraction if 0 < fraction < 1 else [test]


def _prepare_known(name: str) -> None:
    from expclr.datasets import DATASETS, load_dataset
    from expclr.datasets.choices import split_choice
    from expclr.errors import ConfigError, suggest

    key, _ = split_choice(name)
    if key not in DATASETS and ":" not in key:
        known = suggest(key, list(DATASETS))
        raise ConfigError(f"no dataset named {key!r}; your own data need --x. {known}")
    for part, windows in zip(("train", "test"), load_dataset(name), strict=True):
        print(f"{part}: {windows}")


def data(action: Literal["info"], name: str) -> None:
    """Say what a dataset is: counts, classes, groups, missing values, a sketch of each class.

    Args:
        action: What to do; "info" is all there is.
        name: A dataset, its options behind it as in ucr,problem=ECG5000; or a Windows folder, or
            one with train and test.
    """
    from expclr.datasets.describe import describe, summary_text
    from expclr.datasets.opening import open_data

    print(summary_text(describe(*open_data(name))))


def features(extractor: str, data: str, out: str | None = None, n_jobs: int = 1) -> None:
    """Compute expert features and write them into a Windows folder.

    Args:
        extractor: har561, eeg29, ecg88, basic, ..., "my_module:function", or a table's file.
        data: A Windows folder, or a folder with train and test in it; with --out also an .npz or
            a dataset's name.
        out: Leave the data as they are, and write a copy with the features into this folder.
        n_jobs: How many jobs at once.
    """
    from pathlib import Path

    from expclr.datasets.opening import open_data
    from expclr.errors import DataError
    from expclr.features import write_features
    from expclr.features.store import copy_windows

    if out is None and not Path(data).is_dir():
        raise DataError(
            f"{data} is no folder: give a Windows folder; of an .npz or a dataset's name "
            "say with --out where the windows shall go"
        )
    folders = [Path(data) / part for part in ("train", "test") if (Path(data) / part).is_dir()]
    folders = folders or [Path(data)]
    if out is not None:
        folders = copy_windows(open_data(data), out)
    for folder in folders:
        changed = write_features(folder, extractor, n_jobs=n_jobs)
        print(f"{folder}: {'written' if changed else 'unchanged'}")


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
    model: str, data: str, out: str, *, label_fraction: float = 1.0, method: str | None = None
) -> None:
    """Go on training a model on labels, and fit a classifier on top.

    Args:
        model: Folder of a trained model.
        data: As for train; its labels are used, -1 where there is none.
        out: Folder for the fine-tuned model.
        label_fraction: Part of the labels to use, stratified.
        method: What is minimised, by name (expclr, supcon, pair, cross_entropy); default what
            belongs to the method that the model was trained with.
    """
    from expclr.experiments.runs import finetune_run

    print(finetune_run(model, data, out, label_fraction=label_fraction, method=method))


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


def reproduce(
    experiments: str = "all",
    /,
    data: str = "uci_har",
    seeds: int = 5,
    budget: str | None = None,
    out: str = "results",
    npz: str | None = None,
    choices: str | None = None,
    device: str = "auto",
    systems: str = "",
    minutes: float | None = None,
    pack: str | None = None,
    *,
    smoke: bool = False,
    show_only: bool = False,
) -> None:
    """Rerun the paper's experiments, or those that are missing from the results folder.

    Args:
        experiments: table1, semi, ablation, tau, sensitivity, finetune, zoo, with commas between,
            or all.
        data: A dataset, or the paper's name of one (har, sleepedf, waveform).
        seeds: Runs that a mean is over.
        budget: Epochs and network sizes: cpu or gpu; default by the device.
        out: Results folder; what is finished there is not run again.
        npz: Folder of exported datasets instead of raw files.
        choices: Folder of hyper-parameters other than the package's own.
        device: "auto", "cpu", "cuda", "cuda:1", "mps".
        systems: Only these, with commas between.
        minutes: Begin nothing new after so many minutes.
        pack: Write all results into this one file, too.
        smoke: One tiny run of everything, on simulated machines.
        show_only: Show the plan and how long it will take; run nothing.
    """
    from expclr.experiments.reproduce import reproduce as run

    left = run(
        experiments.split(","),
        data=data,
        seeds=seeds,
        budget=budget,
        out=out,
        npz=npz,
        choices=choices,
        device=device,
        systems=[name for name in systems.split(",") if name],
        minutes=minutes,
        pack=pack,
        smoke=smoke,
        show_only=show_only,
    )
    print(f"{left} runs left" if left else f"all done: expclr report {out}")


def sweep(
    data: str = "uci_har",
    budget: str | None = None,
    seeds: int = 1,
    out: str = "tuning",
    npz: str | None = None,
    choices: str = "choices",
    systems: str = "",
    device: str = "auto",
    minutes: float | None = None,
) -> None:
    """Choose hyper-parameters on validation subjects, the same grid for every method.

    Args:
        data: A dataset.
        budget: Epochs and network sizes: cpu or gpu; default by the device.
        seeds: Runs that a score is the mean of.
        out: Folder of the trials; what is finished there is not run again.
        npz: Folder of exported datasets instead of raw files.
        choices: Folder for what was chosen, for reproduce --choices.
        systems: Only these, with commas between.
        device: "auto", "cpu", "cuda", "cuda:1", "mps".
        minutes: Begin nothing new after so many minutes.
    """
    from expclr.experiments.tuning import tune

    tune(
        data,
        budget=budget,
        seeds=seeds,
        out=out,
        npz=npz,
        choices=choices,
        systems=[name for name in systems.split(",") if name],
        device=device,
        minutes=minutes,
    )


def bench(
    device: str = "auto", out: str | None = None, seconds: float = 5.0, *, smoke: bool = False
) -> None:
    """Measure how fast this machine (a GPU, or one core) is, beside kept results.

    Args:
        device: "auto", "cpu", "cuda", "cuda:1", "mps".
        out: JSON file for the numbers.
        seconds: How long to go on with a question; all take two minutes with the default.
        smoke: One tiny round of everything, not to be compared.
    """
    from expclr.experiments.bench import bench as measure

    print(measure(device, out, seconds=seconds, smoke=smoke))


def doctor() -> None:
    """Print versions, devices, data folders, and which extras are missing."""
    from expclr.experiments.doctor import examine

    for name, value in examine().items():
        print(f"{name:>14}  {value}")


COMMANDS = {
    command.__name__: command
    for command in (
        demo,
        fetch,
        prepare,
        data,
        features,
        train,
        finetune,
        embed,
        evaluate,
        certify,
        search,
        sweep,
        reproduce,
        report,
        bench,
        doctor,
    )
}

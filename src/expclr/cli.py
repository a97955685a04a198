"""The command line: one plain function a command."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from inspect import signature
from typing import Any

from expclr.config import TrainConfig
from expclr.errors import ConfigError, DataError, suggest

__all__ = ["main"]


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


def train(
    data: str, settings: TrainConfig, out: str | None = None, *, resume: bool = False
) -> None:
    """Train an encoder on expert features (or on labels, if there are no features).

    Args:
        data: A Windows folder, an .npz with the keys X, F, y, group, or a dataset's name.
        settings: How to train.
        out: Folder of the run; default runs/<hash of settings and data>.
        resume: Go on from the last finished epoch of an earlier run in that folder.
    """
    from expclr.experiments.runs import train_run

    folder = train_run(data, settings, out, resume=resume)
    print(folder)


def finetune(model: str, data: str, out: str, *, label_fraction: float = 1.0) -> None:
    """Go on training a model on labels, and fit a classifier on top.

    Args:
        model: Folder of a trained model.
        data: As for train; its labels are used, -1 where there is none.
        out: Folder for the fine-tuned model.
        label_fraction: Part of the labels to use, stratified.
    """
    from expclr.experiments.runs import finetune_run

    print(finetune_run(model, data, out, label_fraction=label_fraction))


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


def evaluate(model: str, data: str, out: str | None = None, *, test: str | None = None) -> None:
    """Measure an encoder: linear and nearest-neighbour probes, distances against features.

    Args:
        model: Folder of a trained model.
        data: As for train; probes are fitted on its train part and read on its test part.
        out: JSON file for the numbers; default metrics.json in the model's folder.
        test: Test windows, where the data does not have them.
    """
    from expclr.experiments.runs import evaluate_run

    path, table = evaluate_run(model, data, out, test=test)
    print(f"{table}\n{path}")


def report(model: str, data: str, out: str | None = None, *, test: str | None = None) -> None:
    """Write one offline HTML page about a model: training, map, neighbours, numbers.

    Args:
        model: Folder of a trained model.
        data: As for evaluate.
        out: The HTML file; default report.html in the model's folder.
        test: Test windows, where the data does not have them.
    """
    from expclr.experiments.runs import report_run

    print(report_run(model, data, out, test=test))


def doctor() -> None:
    """Print versions, devices, data folders, and which extras are missing."""
    from expclr.experiments.doctor import examine

    for name, value in examine().items():
        print(f"{name:>14}  {value}")


COMMANDS: dict[str, Callable[..., None]] = {
    command.__name__: command
    for command in (demo, train, finetune, embed, evaluate, report, doctor)
}

OVERVIEW = """usage: expclr COMMAND ...

Learn representations of sensor windows whose distances follow expert features.

{commands}

expclr COMMAND --help explains a command. To begin with: expclr demo
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 is success, 2 a user's error, 1 a bug, 130 Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(_overview())
        return 0
    if words[0] == "--version":
        from expclr import __version__

        print(f"expclr {__version__}")
        return 0
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        return _run(words[0], words[1:])
    except (ConfigError, DataError) as error:
        print(f"expclr: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("expclr: stopped", file=sys.stderr)
        return 130


def _overview() -> str:
    lines = [f"  {name:<10} {_first_line(command)}" for name, command in COMMANDS.items()]
    return OVERVIEW.format(commands="\n".join(lines))


def _first_line(command: Callable[..., None]) -> str:
    return (command.__doc__ or "").splitlines()[0]


def _run(name: str, words: list[str]) -> int:
    if name not in COMMANDS:
        raise ConfigError(f"no command {name!r}: {suggest(name, list(COMMANDS))}")
    command = COMMANDS[name]
    values = _parse(name, command, words)
    values.pop("config", None)
    if "settings" in signature(command).parameters:
        known = [f.name for f in fields(TrainConfig)]
        values["settings"] = TrainConfig(**{k: values.pop(k) for k in known})
    command(**values)
    return 0


def _parse(name: str, command: Callable[..., None], words: list[str]) -> dict[str, Any]:
    from jsonargparse import ArgumentError

    try:
        values: dict[str, Any] = _parser(name, command).parse_args(words).as_dict()
    except ArgumentError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{reason} (expclr {name} --help explains)") from error
    return values


def _parser(name: str, command: Callable[..., None]) -> Any:
    from jsonargparse import ActionConfigFile, ArgumentParser

    parser = ArgumentParser(
        prog=f"expclr {name}",
        description=_first_line(command),
        epilog=_names() if "settings" in signature(command).parameters else None,
        exit_on_error=False,
    )
    parser.add_argument("--config", action=ActionConfigFile, help="A YAML file of settings.")
    parser.add_function_arguments(command, as_positional=True, as_group=False, skip={"settings"})
    if "settings" in signature(command).parameters:
        parser.add_class_arguments(TrainConfig)
    return parser


def _names() -> str:
    from expclr.datasets import DATASETS
    from expclr.encoders import ENCODERS
    from expclr.methods import METHODS

    return " ".join(
        f"{table.kind}s: {', '.join(table)}." for table in (METHODS, ENCODERS, DATASETS)
    )


def _show_warning(message: Warning | str, *_: Any) -> None:
    logging.getLogger("expclr").warning("warning: %s", message)


if __name__ == "__main__":
    sys.exit(main())

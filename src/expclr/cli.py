"""The command line: reads words, calls a command, turns errors into one line."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from inspect import Parameter, signature
from typing import Any

from expclr.commands import COMMANDS
from expclr.config import TrainConfig
from expclr.errors import ConfigError, DataError, suggest

__all__ = ["main"]


_WORDS_FOR_BOOL = [[word] for word in ("true", "false", "True", "False", "yes", "no", "1", "0")]
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
        code = _run(words[0], words[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads our output, as `head` does, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ConfigError, DataError) as error:
        print(f"expclr: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("expclr: stopped", file=sys.stderr)
        return 130
    return code


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
    placed = [values.pop(name) for name in _placed(command)]
    command(*placed, **values)
    return 0


def _placed(command: Callable[..., None]) -> list[str]:
    """Parameters that are given by their place, even where they may be left out."""
    parameters = signature(command).parameters.values()
    return [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]


def _parse(name: str, command: Callable[..., None], words: list[str]) -> dict[str, Any]:
    from jsonargparse import ArgumentError

    try:
        found = _parser(name, command).parse_args(_spelled_out(command, words))
    except ArgumentError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{reason} (expclr {name} --help explains)") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"--config is no text file ({error}): give a YAML file") from error
    values: dict[str, Any] = found.as_dict()
    return values


def _spelled_out(command: Callable[..., None], words: list[str]) -> list[str]:
    """``--show-only`` is ``--show_only true``: dashes as they come, a bare switch is true."""
    switches = {f"--{p.name}" for p in signature(command).parameters.values() if p.default is False}
    spelled = []
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        option = "--" + name[2:].replace("-", "_") if name.startswith("--") else name
        spelled.append(option + equals + value)
        if option in switches and not equals and words[at + 1 : at + 2] not in _WORDS_FOR_BOOL:
            spelled.append("true")
    return spelled


def _parser(name: str, command: Callable[..., None]) -> Any:
    from jsonargparse import ActionConfigFile, ArgumentParser

    parser = ArgumentParser(
        prog=f"expclr {name}",
        description=_first_line(command),
        epilog=_names() if "settings" in signature(command).parameters else None,
        exit_on_error=False,
    )
    parser.add_argument("--config", action=ActionConfigFile, help="A YAML file of settings.")
    placed = _placed(command)
    for argument in placed:
        default = signature(command).parameters[argument].default
        optional = {} if default is Parameter.empty else {"nargs": "?", "default": default}
        parser.add_argument(argument, help=_help(command, argument), **optional)
    parser.add_function_arguments(
        command, as_positional=True, as_group=False, skip={"settings", *placed}
    )
    if "settings" in signature(command).parameters:
        parser.add_class_arguments(TrainConfig)
    return parser


def _help(command: Callable[..., None], argument: str) -> str:
    from docstring_parser import parse

    found = {p.arg_name: p.description or "" for p in parse(command.__doc__ or "").params}
    return " ".join(found[argument].split())


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

"""What the command line can do: one plain function a command, its help in its docstring."""

from __future__ import annotations

from expclr.commands.data import data, features, fetch, prepare
from expclr.commands.models import certify, embed, evaluate, finetune, report, search, train
from expclr.commands.studies import bench, demo, doctor, reproduce, sweep

__all__ = ["COMMANDS"]

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

"""The state of a training run on disk, so that nothing is lost on kill -9."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from expclr.errors import DataError
from expclr.storage import new_folder, read_json, write_json

__all__ = ["Checkpoint"]


class Checkpoint:
    """A folder that holds weights, optimiser state and history of the last finished epoch.

    Parameters
    ----------
    folder : path
    key : str
        Of the run's configuration: a checkpoint of another configuration is refused.
    resume : bool
        Go on from what is in the folder; otherwise start anew.
    """

    def __init__(self, folder: str | Path, *, key: str, resume: bool) -> None:
        self.folder, self.key, self.resuming = Path(folder), key, resume

    def write(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        history: list[dict[str, Any]],
    ) -> None:
        """Replace the folder's state by this one, whole or not at all."""
        tensors = {f"model.{k}": v for k, v in model.state_dict().items()}
        for number, slots in optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{slot}": value for slot, value in slots.items()}
        with new_folder(self.folder) as folder:
            whole = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
            save_file(whole, folder / "state.safetensors")
            write_json(folder / "state.json", {"key": self.key, "history": history})

    def resume(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
        """Put the kept state into model and optimiser; return the history so far."""
        if not self.resuming or not self.folder.exists():
            return []
        state = read_json(self.folder / "state.json")
        if state.get("key") != self.key:
            raise DataError(
                f"{self.folder} belongs to a run with other settings or data: "
                "choose another folder, or resume=false to start anew"
            )
        tensors = self._tensors()
        model.load_state_dict(_below(tensors, "model."))
        _restore_adam(optimizer, _below(tensors, "adam."))
        history: list[dict[str, Any]] = state["history"]
        return history

    def _tensors(self) -> dict[str, Tensor]:
        path = self.folder / "state.safetensors"
        try:
            return load_file(path)
        except (OSError, SafetensorError) as error:
            raise DataError(f"{path} cannot be read ({error}): resume=false starts anew") from error


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _restore_adam(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, slot = key.split(".")
        state.setdefault(int(number), {})[slot] = value
    optimizer.load_state_dict(optimizer.state_dict() | {"state": state})

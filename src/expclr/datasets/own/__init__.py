"""A user's own data: from files of any form and size to a memory-mapped store."""

from expclr.datasets.own.opened import open_windows
from expclr.datasets.own.prepare import prepare

__all__ = ["open_windows", "prepare"]

"""The files of a folder or of a zip, read by name and never unpacked."""

from __future__ import annotations

import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED

from expclr.errors import DataError

__all__ = ["Archive", "blame", "open_archive"]

BROKEN = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,  # zipfile: a password is wanted, an unknown compression (a subclass)
    OverflowError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
MOST_EXPANSION = 60  # sensor text shrinks to a fifth; what claims more than this is a bomb
SMALL = 1 << 26  # bytes that are always allowed


@contextmanager
def blame(where: str | Path) -> Iterator[None]:
    """Turn what reading a broken file raises into a DataError that names the file."""
    try:
        yield
    except DataError:
        raise
    except BROKEN as error:
        reason = getattr(error, "strerror", None) or error or type(error).__name__
        advice = "is it text in UTF-8?" if isinstance(error, UnicodeError) else "is the file whole?"
        raise DataError(f"cannot read {where}: {reason}; {advice}") from error


@contextmanager
def open_archive(path: str | Path, inner: str = "") -> Iterator[Archive]:
    """Open a folder or a zip; look into the zip ``inner`` inside it when there is one.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("hello")
    >>> with open_archive(folder) as archive:
    ...     archive.names, archive.read("a.txt")
    (['a.txt'], b'hello')
    """
    with ExitStack() as stack:
        if Path(path).is_dir():
            yield Archive(path, None)
            return
        with blame(path):
            zipped = stack.enter_context(zipfile.ZipFile(path))
            _check(zipped, Path(path), Path(path).stat().st_size)
            if inner in zipped.namelist():
                nested = stack.enter_context(tempfile.TemporaryFile())
                with zipped.open(inner) as member:
                    shutil.copyfileobj(member, nested, 1 << 20)
                size = nested.tell()
                zipped = stack.enter_context(zipfile.ZipFile(nested))
                _check(zipped, Path(path) / inner, size)
        yield Archive(path, zipped)


def _check(zipped: zipfile.ZipFile, path: Path, stored: int) -> None:
    """Refuse a zip with names that lead out of a folder, or that would fill the disk."""
    members = zipped.infolist()
    for name in zipped.namelist():
        steps = PurePosixPath(name.replace("\\", "/"))
        if steps.is_absolute() or ".." in steps.parts or PureWindowsPath(name).drive:
            raise DataError(f"{path} holds the name {name!r}, which leads out of it: refused")
    if any(member.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for member in members):
        raise DataError(f"{path} is packed in an unusual way, or damaged: pack it with deflate")
    packed = sum(member.compress_size for member in members)
    size = sum(member.file_size for member in members)
    if packed > stored or size > SMALL + MOST_EXPANSION * stored:
        raise DataError(
            f"{path} of {stored:,} bytes claims to hold {size:,}, packed in {packed:,}: refused; "
            "if that is right, unpack it and give the folder"
        )


class Archive:
    """Names and contents of the files in a folder or a zip."""

    def __init__(self, path: str | Path, zipped: zipfile.ZipFile | None) -> None:
        self.path = Path(path)
        self._zip = zipped
        if zipped is not None:
            self.names = sorted(m.filename for m in zipped.infolist() if not m.is_dir())
        else:
            files = (file for file in self.path.rglob("*") if file.is_file())
            self.names = sorted(file.relative_to(self.path).as_posix() for file in files)

    def where(self, name: str) -> str:
        """What to call a file in an error."""
        return str(self.path / name)

    def find(self, ending: str) -> str:
        """The one name that ends with ``ending``, at a folder's edge."""
        found = [name for name in self.names if f"/{name}".endswith(f"/{ending}")]
        if len(found) != 1:
            what = "is missing" if not found else f"is there {len(found)} times"
            raise DataError(f"{ending} {what} in {self.path}: is this the published layout?")
        return found[0]

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for reading; anything wrong with it becomes a DataError."""
        with blame(self.where(name)):
            file = self._zip.open(name) if self._zip else (self.path / name).open("rb")
            with file:
                yield file

    def size(self, name: str) -> int:
        """Bytes of a file, unpacked."""
        with blame(self.where(name)):
            return self._zip.getinfo(name).file_size if self._zip else self._stat(name)

    def _stat(self, name: str) -> int:
        return (self.path / name).stat().st_size

    def read(self, name: str) -> bytes:
        """The whole content of a file."""
        with self.open(name) as file:
            return file.read()

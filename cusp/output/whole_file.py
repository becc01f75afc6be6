"""Files that we write: checked before the work, and complete or not there at all."""

import contextlib
import errno
import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cusp.errors import InputError, Intracomm, shortened, together
from cusp.runtime.files import from_json, is_word, read_input
from cusp.runtime.leftovers import replacing

Name = str | os.PathLike[str]


class OutputError(InputError):
    """A file that cannot be written."""


@contextlib.contextmanager
def explained(path: Name) -> Iterator[None]:
    """Turn an error of the operating system, or of a library that had one, into an OutputError on ``path``."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        from_library = re.search(r"errno = (\d+)", str(error))
        number = int(from_library[1]) if from_library else getattr(error, "errno", None)
        full = number in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        advice = "; free some space or choose another folder" if full else ""
        reason = os.strerror(number) if number else str(error)
        raise OutputError(f"{shortened(path)}: cannot be written: {reason}{advice}") from error


@contextlib.contextmanager
def whole_file(path: Name) -> Iterator[Path]:
    """A temporary name beside ``path``: what is written there replaces ``path`` if the block ends without error.

    Raises
    ------
    OutputError
        ``path`` is as it was.
    """
    with explained(path), replacing(path) as temporary:
        yield temporary


def write_json(path: Name, content: object, comm: Intracomm) -> None:
    """Write figures on rank 0. Collective."""
    with together(comm):
        if comm.rank == 0:
            with whole_file(path) as file:
                file.write_text(json.dumps(content, indent=1))


def append_lines(path: Name, lines: Sequence[str]) -> None:
    """Append all of the lines or none, while no other process of ours does.

    Raises
    ------
    OutputError
    """
    data = "".join(f"{line}\n" for line in lines).encode()
    with explained(path), open(path, "ab", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = os.fstat(file.fileno()).st_size
        try:
            done = 0
            while done < len(data):
                done += file.write(data[done:])
            if os.path.isfile(path):
                os.fsync(file.fileno())
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(file.fileno(), before)
            raise


def check_targets(comm: Intracomm, targets: Mapping[str, Name | None], inputs: Sequence[Name | None] = ()) -> None:
    """Raise OutputError on every rank if a target cannot be written, or is an input or another target. Collective.

    Parameters
    ----------
    targets : dict
        Path by option; None where the option was not given. ``--rows`` is appended to, ``--save`` is a folder.
    inputs
        Files that are read; of a folder with a saved partition all that belongs to it.
    """
    with together(comm):
        if empty := next((option for option, path in targets.items() if path is not None and not str(path)), ""):
            raise OutputError(f"{empty}: the name of the file is empty; give one, or leave the option out")
        if comm.rank == 0:
            named = {option: Path(path) for option, path in targets.items() if path}
            for option, path in named.items():
                if option == "--save":
                    check_save_folder(path)
                else:
                    check_folder(path, append=option == "--rows")
            known = [("the input", found) for path in inputs if path for found in _files_of(Path(path))]
            for option, path in named.items():
                for other, known_path in known:
                    if _same(path, known_path):
                        raise OutputError(f"{option} {path}: is the file of {other}, {known_path}; choose another name")
                known.append((option, path))


def check_folder(path: Path, append: bool = False) -> None:
    """Raise OutputError if it is certain that a file cannot be written."""
    with explained(path):  # the name itself may be impossible
        if path.is_dir():
            raise OutputError(f"{path}: is a folder; give the name of a file in it")
        if path.exists() and not (append or path.is_file()):
            raise OutputError(f"{path}: is not a file that can be replaced")
        if not path.parent.is_dir():
            raise OutputError(f"{path}: there is no folder {path.parent}; create it first")
        if append and path.exists():
            if not os.access(path, os.W_OK):
                raise OutputError(f"{path}: no permission to write into it")
            return
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise OutputError(f"{path}: no permission to write into the folder {path.parent.resolve()}")


def check_save_folder(path: Path) -> None:
    """Raise OutputError if it is certain that a folder cannot be made, or that nothing can be written into it."""
    with explained(path):
        existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not existing.is_dir():
        raise OutputError(f"{path}: {existing} is not a folder; choose another name")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise OutputError(f"{path}: no permission to write into the folder {existing}")


def _files_of(path: Path) -> list[Path]:
    if not os.path.isdir(path):  # a name that no file can have is none
        return [path]
    found = [path / "manifest.json", *path.glob("part-*-of-*.h5")]
    with contextlib.suppress(InputError):  # who reads it will say what is wrong
        content = from_json(read_input(found[0], InputError), f"{found[0]}:", InputError)
        graph = content.get("graph") if isinstance(content, dict) else None
        found += [Path(graph)] if is_word(graph) else []
    return found


def _same(one: Path, other: Path) -> bool:
    """Whether two names are of one file, now or when it is made; devices may be named twice."""
    if os.path.exists(one) and os.path.exists(other):
        return one.is_file() and one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)

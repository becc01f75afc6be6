"""``--checkpoint``: what a long run has computed so far, in a file from which it goes on, on any ranks and devices."""

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from signal import Signals
from typing import Any

import numpy as np

from cusp.apps.run.app import App
from cusp.apps.run.marks import marks_of
from cusp.errors import GraphFileError, InputError, shortened, together
from cusp.input.hdf5 import explained, find_dataset, open_hdf5, stored_checksum
from cusp.input.read_cpu import read_checked
from cusp.input.slab import read_slab
from cusp.launch import say
from cusp.output.dataset_writer import writing_datasets
from cusp.output.gid_order import at_gids
from cusp.output.whole_file import explained as explained_output
from cusp.partition import Partition
from cusp.runtime import signals
from cusp.runtime.devices import move, to_host
from cusp.runtime.mpi import MPI
from cusp.runtime.storage import IN_MEMORY
from cusp.runtime.timeline import now
from gluon.sync import Sync

USUAL = 600.0  # seconds between two checkpoints
ABOUT = "checkpoint"  # dataset: JSON about the run
MOST_BYTES = 1 << 26  # of the JSON


class CheckpointError(InputError):
    """A checkpoint that is damaged, or of another run."""


class Checkpoint:
    """A file with the labels of a run after some of its rounds.

    An app takes up what is there when it begins, and writes what it has at the end of a round if it is time::

        if checkpoint and checkpoint.goes_on:
            rounds, values[:] = checkpoint.rounds, checkpoint.label("rank", values.dtype)
        ...
            if checkpoint and checkpoint.is_due(sync):
                checkpoint.write(rounds, {"rank": values})

    Parameters
    ----------
    path : str
        On a file system that all ranks share.
    every : float
        Seconds between two checkpoints.
    run : dict
        What the run must have in common with the one that wrote the file, by the name of an option or figure.

    Attributes
    ----------
    goes_on : bool
        Something is there to go on from.
    rounds : int
        What had been done when it was written.
    """

    def __init__(self, path: str, every: float, run: dict[str, Any], part: Partition, comm: MPI.Intracomm) -> None:
        self.path, self._part, self._comm = path, part, comm
        self._run = json.loads(json.dumps(run, default=str))
        self._every, self._written, self._why = every, now(), 0
        self._found = self._read_about()
        self.goes_on = self._found is not None
        self.rounds = self._found["rounds"] if self._found else 0
        self._is_ours = self.goes_on

    def __str__(self) -> str:
        """What is there to go on from, in a line."""
        assert self._found is not None
        ranks, written = self._found["ranks"], datetime.fromtimestamp(os.stat(self.path).st_mtime)
        by = f"{ranks} rank{'s' * (ranks > 1)}, written at {written:%Y-%m-%d %H:%M:%S}"
        return f"goes on from {self.path}: {self.rounds:,} round{'s' * (self.rounds != 1)} of {by}"

    def label(self, name: str, dtype: Any) -> Any:
        """(masters,) values that were written, on the device. Collective.

        Raises
        ------
        CheckpointError
            On every rank: the file is damaged.
        """
        with self._readable(f"/{name}"):
            slab, size = read_slab(self.path, name, self._comm)
        if (size, slab.dtype) != (self._part.num_nodes, np.dtype(dtype)):
            raise self.damaged(
                f"/{name} has {size:,} {slab.dtype}, expected {self._part.num_nodes:,} {np.dtype(dtype)}"
            )
        gids = to_host(self._part.gids[: self._part.num_masters])
        return move(at_gids(slab, gids, size, self._comm), self._part.device)

    def fact(self, name: str, kind: type = float) -> Any:
        """A number that was written, the same on every rank: an int or, unless they are asked for, a float.

        Raises
        ------
        CheckpointError
            There is none.
        """
        assert self._found is not None
        value = self._found["facts"].get(name)
        if type(value) not in (int, kind):
            raise self.damaged(f"{name} is {shortened(value)}, expected a number")
        return value

    def is_due(self, sync: Sync) -> bool:
        """Whether to write now: the time has come, by the clock of rank 0, or a signal ends the run. Collective."""
        time_is_up = self._comm.rank == 0 and now() - self._written >= self._every * 1e9
        self._why = int(sync.highest(signals.asked_to_end() or int(time_is_up)))
        return self._why > 0

    def write(self, rounds: int, labels: dict[str, Any], **facts: float) -> None:
        """Replace the file, or leave it as it is; where a signal asks for it, the run ends then. Collective.

        Parameters
        ----------
        rounds : int
            What has been done.
        labels : dict of (masters,) arrays
        facts : numbers
            What else the run needs, the same on every rank.

        Raises
        ------
        OutputError
            On every rank.
        """
        part, comm = self._part, self._comm
        about = {"run": self._run, "rounds": rounds, "ranks": comm.size, "facts": facts}
        text = np.frombuffer(json.dumps(about, default=lambda number: number.item()).encode(), np.uint8)
        shapes = {name: (part.num_nodes, values.dtype) for name, values in labels.items()}
        with writing_datasets(self.path, comm, shapes | {ABOUT: (text.size, text.dtype)}, durable=True) as writer:
            writer.write(ABOUT, 0, text[: text.size if comm.rank == 0 else 0])
            for name, values in labels.items():
                writer.write_masters(name, part, values, comm)
        self._is_ours = True
        self._written = now()
        if self._why > 1:
            self._leave(rounds)

    def remove(self) -> None:
        """Remove the file, after the answer is there. Collective."""
        with together(self._comm), explained_output(self.path):
            if self._comm.rank == 0 and self._is_ours:
                Path(self.path).unlink(missing_ok=True)

    def _leave(self, rounds: int) -> None:
        if self._comm.rank == 0:
            name = Signals(self._why).name
            say(f"error: ended by {name} after {rounds:,} rounds; the same command goes on from {self.path}")
        self._comm.Barrier()
        signals.leave(128 + self._why)

    def _read_about(self) -> dict[str, Any] | None:
        """What the file says of its run, if it is there, on every rank. Collective."""
        found: dict[str, Any] | None = None
        with together(self._comm):
            if self._comm.rank == 0 and os.path.lexists(self.path):
                with self._readable(f"/{ABOUT}"):
                    found = self._checked(self._json())
        return self._comm.bcast(found)

    def _json(self) -> Any:
        with open_hdf5(self.path) as file:
            dataset = find_dataset(file, self.path, ABOUT, "u")
            if dataset.size > MOST_BYTES or dataset.dtype != np.uint8:
                raise self.damaged(f"/{ABOUT} has {dataset.size:,} {dataset.dtype}")
            text, found = read_checked(dataset, 0, dataset.size, IN_MEMORY, lambda chunk, begin: None, None)
            if found != stored_checksum(self.path, dataset):
                raise self.damaged(f"the checksum of /{ABOUT} does not match its values")
        return json.loads(text.tobytes())

    def _checked(self, about: Any) -> dict[str, Any]:
        """The same, if it is complete and of a run like this one."""
        kinds = {"run": dict, "rounds": int, "ranks": int, "facts": dict}
        for name, kind in kinds.items():
            if not isinstance(about, dict) or not isinstance(about.get(name), kind):
                raise self.damaged(f"/{ABOUT} does not say what {name} is")
        for name in {**self._run, **about["run"]}:
            theirs, ours = (run.get(name) for run in (about["run"], self._run))
            if theirs != ours:
                raise CheckpointError(
                    f"{self.path}: is the checkpoint of a run with {name} {shortened(theirs)}, and this one has "
                    f"{shortened(ours)}: use the same options, or name a file that does not exist"
                )
        return about  # type: ignore[no-any-return]

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        """Whatever goes wrong in a block that reads the file, in one line about checkpoints."""
        try:
            with explained(self.path, what):
                yield
        except GraphFileError as error:
            raise self.damaged(str(error).removeprefix(f"{self.path}: ").partition(";")[0]) from None

    def damaged(self, what: str) -> CheckpointError:
        """An error that says what is wrong in the file."""
        return CheckpointError(
            f"{self.path}: is not a checkpoint that can be read: {what}; remove it, or name a file that does not exist"
        )


def open_checkpoint(
    app: App, part: Partition, comm: MPI.Intracomm, source: int | None, options: argparse.Namespace
) -> Checkpoint | None:
    """The checkpoint that the options name, or None. Collective.

    Raises
    ------
    CheckpointError
        On every rank: the file is damaged, or of another graph or app, or of options that give another answer.
    """
    path = getattr(options, "checkpoint", None)
    if not path:
        return None
    return Checkpoint(path, options.every or USUAL, marks_of(app, part, comm, source, options), part, comm)

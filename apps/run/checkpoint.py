"""``--checkpoint``: what a long run has computed so far, in a file from which it goes on, on any ranks and devices."""

import argparse
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from signal import Signals
from typing import Any

import numpy as np

from cusp.apps.operators.sums.interfaces import Rows
from cusp.apps.run.app import App
from cusp.apps.run.keywords import Keywords
from cusp.apps.shared.splitmix64 import splitmix64
from cusp.errors import GraphFileError, InputError, OptionError, shortened, together
from cusp.input.checksum import as_bits, combine
from cusp.input.hdf5 import explained, find_dataset, open_hdf5, stored_checksum
from cusp.input.read_cpu import read_checked
from cusp.input.slab import read_slab
from cusp.output.dataset_writer import writing_datasets
from cusp.output.gid_order import at_gids
from cusp.output.whole_file import explained as explained_output
from cusp.partition import Partition
from cusp.runtime import progress, signals
from cusp.runtime.devices import backend, move, to_host, xp_of
from cusp.runtime.files import read_input
from cusp.runtime.mpi import MPI
from cusp.runtime.storage import IN_MEMORY
from cusp.runtime.timeline import now
from gluon.sync import Sync

USUAL = 600.0  # seconds between two checkpoints
ABOUT = "checkpoint"  # dataset: JSON about the run
MOST_BYTES = 1 << 26  # of the JSON
AT_ONCE = 1 << 20  # weights


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
        self._found: dict[str, Any] | None = None
        with together(comm):
            if comm.rank == 0 and os.path.lexists(path):
                with self._readable(f"/{ABOUT}"):
                    self._found = self._checked(self._json())
        self._found = comm.bcast(self._found)
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
            if comm.rank == 0:
                name = Signals(self._why).name
                progress.error(
                    f"error: ended by {name} after {rounds:,} rounds; the same command goes on from {self.path}"
                )
            comm.Barrier()
            signals.leave(128 + self._why)

    def remove(self) -> None:
        """Remove the file, after the answer is there. Collective."""
        with together(self._comm), explained_output(self.path):
            if self._comm.rank == 0 and self._is_ours:
                Path(self.path).unlink(missing_ok=True)

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


def marks_of(
    app: App, part: Partition, comm: MPI.Intracomm, source: int | None, options: argparse.Namespace
) -> dict[str, Any]:
    """Marks of a run by name, the same on every rank, and on any ranks, devices and partition. Collective."""
    marks = {"app": app.name, "nodes": part.num_nodes, "edges": part.num_edges}
    weights = part.weights if app.reads_weights(options) else None
    marks["edges that add up to"] = combine(comm.allgather(checksum_of_edges(part, weights)))
    marks |= {"--source": source} if app.needs_source else {}
    for action in Keywords(app.name, app.add_options).actions:
        if action.dest not in ("checkpoint", "every"):
            value = getattr(options, action.dest)
            if isinstance(value, list):  # a file of nodes counts by what is in it
                value = [_content(each) if isinstance(each, str) and os.path.isfile(each) else each for each in value]
            marks[f"--{action.dest.replace('_', '-')}"] = value
    return comm.bcast(marks | {"--seed": options.seed})


def checksum_of_edges(part: Partition, weights: Any) -> int:
    """This rank's part of a sum (mod 2**64) that depends on all edges and weights, but not on who has them.

    Every edge counts a number for its source times one for its target; these are short, so that sums over rows are
    exact. Weights count by their bits, wherever they are.
    """
    xp, rows = xp_of(part.device), backend(Rows, part.device)
    codes, sums = splitmix64(part.gids, 0), xp.zeros(part.num_proxies, np.float64)
    lids = xp.flatnonzero(part.offsets[1:] > part.offsets[:-1]).astype(np.int32)
    short = (codes >> np.uint64(44)).astype(np.float64)
    rows.sum_rows(rows.group_rows(lids, [0, lids.size], part.offsets), 0, part.targets, short, sums)
    total = int((sums.astype(np.uint64) * codes).sum())
    for some in part.storage.parts(0 if weights is None else weights.size, AT_ONCE):
        bits = as_bits(weights[some]).astype(np.uint64)
        total += int((bits * (bits + np.uint64(1))).sum())
    return total


def _content(path: str) -> str:
    return hashlib.blake2b(read_input(path, OptionError), digest_size=8).hexdigest()

"""Code shared by verifiers: values of all proxies, sums over ranks by name, and errors that name a node or an edge.

A verifier states what must hold of an answer, in the manner of Graph500's validation, and checks it on every edge,
where the edge is: on the CPU or the GPU, by edge operators. It shares no code with the algorithm that it checks. All
are collective, and raise :class:`VerificationError` on every rank, with the first node or edge that is wrong.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cusp import MIN, EdgeOperator, Label, Partition, Reduction, Sync
from cusp.errors import InputError
from cusp.kernels.arrays import distinct
from cusp.runtime.devices import move, to_host
from cusp.runtime.exchange import all_to_all
from cusp.runtime.mpi import MPI

NOBODY = np.iinfo(np.int64).max


class VerificationError(InputError):
    """An answer that breaks an invariant: a defect of this program."""


def everywhere(part: Partition, sync: Sync, masters: Any, fill: float, reduction: Reduction = MIN) -> Label:
    """A label with the masters' values on all proxies. Collective.

    Parameters
    ----------
    masters : (masters,) numbers, on the host or on the device of the partition
    fill : number
        First value of the mirrors.
    reduction : Reduction
        Of the label, for callers that go on with it.
    """
    label = Label(part, masters.dtype, fill, reduction)
    label.values[: part.num_masters] = move(masters, part.device)
    label.mark_all()
    sync.broadcast(label, read="any")
    return label


def tell_node(part: Partition, sync: Sync, message: str, wrong: Any) -> None:
    """Raise on every rank, with the first node that is wrong on some rank. Collective.

    Parameters
    ----------
    wrong : (masters,) bool, on the host or on the device of the partition

    Raises
    ------
    VerificationError
    """
    raise_first(sync, f"{message} {int(part.gids[int(wrong.argmax())])}" if bool(wrong.any()) else None)


def tell_edge(
    part: Partition, sync: Sync, where: str, describe: Callable[[int, int, np.ndarray], str], **given: Any
) -> None:
    """Raise on every rank if a condition holds of some edge. Collective.

    Parameters
    ----------
    where : str
        What is wrong, as the condition of an edge operator.
    describe : function (source, target, weights) -> str
        The message, from the local ids of the two ends and the weights, on the host, of the edges between them.
    given
        What the names of the condition are.

    Raises
    ------
    VerificationError
    """
    culprit = Label(part, np.int64, NOBODY, MIN)
    _find_culprits(where)(part, culprit=culprit, **given)
    targets, message = culprit.take_updated(), None
    if targets.size:
        target = int(targets[0])
        source = part.lid(int(culprit.values[target]))
        row = slice(int(part.offsets[source]), int(part.offsets[source + 1]))
        between = to_host(part.targets[row]) == target
        weights = np.ones(row.stop - row.start, np.uint8) if part.weights is None else to_host(part.weights[row])
        message = describe(source, target, weights[between])
    raise_first(sync, message)


@functools.cache
def _find_culprits(where: str) -> EdgeOperator:
    return EdgeOperator("src.gid", into="dst.culprit", where=where)


def raise_first(sync: Sync, message: str | None) -> None:
    """Raise on every rank the message of the first that has one. Collective."""
    messages = [text for text in sync.comm.allgather(message) if text is not None]
    if messages:
        raise VerificationError(f"the answer is wrong: {messages[0]}")


def require(sync: Sync, right: bool | np.bool_, message: str) -> None:
    """Raise the message on every rank unless something is right on all. Collective."""
    raise_first(sync, None if right else message)


def sum_by_name(comm: MPI.Intracomm, names: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Add up what all ranks know of groups of nodes; name n is kept by rank n modulo the ranks. Collective.

    Parameters
    ----------
    names : (n,) int64, not negative
        A name may occur several times.
    values : (n,) numbers

    Returns
    -------
    names : (kept,) int64
        Those that this rank keeps, ascending, each once.
    sums : (kept,) float64
    """
    keeper = names % comm.size
    pairs = np.stack([names, values.astype(np.float64).view(np.int64)], axis=1)  # so that they travel together
    sent = [pairs[keeper == rank].ravel() for rank in range(comm.size)]
    kept, terms = np.concatenate(all_to_all(comm, sent)).reshape(-1, 2).T
    kept, places = distinct(kept)
    return kept, np.bincount(places, terms.copy().view(np.float64), kept.size)

"""Verifiers: what must hold of an answer, checked on every edge by the ranks that store them.

They are stated as invariants, in the manner of Graph500's validation, and share no code with the
algorithms that they check.
"""

import numpy as np

from cusp.errors import InputError
from cusp.partition import Partition
from gluon.label import Label
from gluon.reduction import MIN
from gluon.sync import Sync


class VerificationError(InputError):
    """An answer that breaks an invariant: a defect of this program."""


def everywhere(part: Partition, sync: Sync, masters: np.ndarray, fill: float) -> Label:
    """A label with the masters' values on all proxies. Collective."""
    label = Label(part, masters.dtype, fill, MIN)
    label.values[: part.num_masters] = masters
    label.updated[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
    sync.broadcast(label, read="any")
    return label


def tell_node(part: Partition, sync: Sync, message: str, wrong: np.ndarray) -> None:
    """Raise on every rank, with the first node that is wrong on some rank. Collective."""
    raise_first(sync, f"{message} {part.gids[int(np.argmax(wrong))]}" if wrong.any() else None)


def raise_first(sync: Sync, message: str | None) -> None:
    """Raise on every rank the message of the first that has one. Collective."""
    told = [text for text in sync.comm.allgather(message) if text is not None]
    if told:
        raise VerificationError(f"the answer is wrong: {told[0]}")

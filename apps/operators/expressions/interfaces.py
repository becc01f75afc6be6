"""What is generated for an edge operator, in terms that do not depend on the device, and what compiles it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gluon.reduction import Reduction


@dataclass(frozen=True)
class Load:
    """A variable of the generated text, what it is set to, and its type there."""

    variable: str
    text: str
    kind: str


@dataclass(frozen=True)
class Pass:
    """One pass over the rows of a CSR, for labels of given types.

    Attributes
    ----------
    title : str
        For people who read the generated code.
    into_row : bool
        The row's end of an edge is written (pull), else the column's (push).
    filtered : bool
        There is a frontier: bits of the end that is read.
    reduction : Reduction
    dtype : numpy type
        Of the label that is written; ``wide`` is the type in which a row is summed up, ``identity`` its first value.
    parameters : tuple of (name, numpy type or, of a number, ``Int``, ``Float`` or ``Bool``)
    row_loads, where_loads, loads : tuple of Load
        What does not depend on the edge; what the condition looks at; what the candidate looks at.
    where, candidate : str
        Texts; ``where`` is empty without a condition.
    """

    title: str
    into_row: bool
    filtered: bool
    reduction: Reduction
    dtype: np.dtype
    wide: str
    identity: str
    parameters: tuple[tuple[str, np.dtype | str], ...]
    row_loads: tuple[Load, ...]
    where_loads: tuple[Load, ...]
    loads: tuple[Load, ...]
    where: str
    candidate: str


class Edges(Protocol):
    """Edge operators: code generated around an expression."""

    def compile_pass(self, edges: Pass) -> Callable[..., None]:
        """The code of a pass: ``run(part, frontier, offsets, columns, values, updated, *parameters)``."""


if TYPE_CHECKING:
    from apps.operators.expressions import edges_cpu, edges_gpu

    _edges_cpu: Edges = edges_cpu
    _edges_gpu: Edges = edges_gpu

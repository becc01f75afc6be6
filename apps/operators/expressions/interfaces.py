"""What runs an edge operator on every device."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from apps.operators.expressions.passes import Pass


class Edges(Protocol):
    """Edge operators: code generated around an expression."""

    def compile_pass(self, edges: "Pass") -> Callable[..., None]:
        """The code of a pass: ``run(part, frontier, offsets, columns, values, updated, *parameters)``."""


if TYPE_CHECKING:
    from apps.operators.expressions import edges_cpu, edges_gpu

    _edges_cpu: Edges = edges_cpu
    _edges_gpu: Edges = edges_gpu

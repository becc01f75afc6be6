"""Triangles that go with an edge, on the GPU: see interfaces.py; the kernel is in truss.cuh."""

from typing import Any

from cusp.apps.operators.triangles.interfaces import EdgeRows
from cusp.kernels.arrays import offsets_of, sizes_of
from cusp.kernels.cuda import c_type, load, struct, threads_for_rows

KERNELS = "cusp/apps/operators/triangles/truss.cuh"


def remove_triangles(
    turn: int, places: Any, highs: Any, lows: Any, rows: Any, own: EdgeRows, table: EdgeRows
) -> None:  # fmt: skip
    begins = offsets_of(sizes_of(table.offsets, rows))
    load(KERNELS, PLACE=c_type(places.dtype)).remove_triangles(
        threads_for_rows(begins), turn, places, highs, lows, rows, begins, rows.size, struct(*own), struct(*table)
    )

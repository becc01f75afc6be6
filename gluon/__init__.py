"""The sync layer: keeps one value per proxy (a label) consistent between the ranks of a partition."""

import cusp  # noqa: F401 - prepares the process before numba and mpi4py are imported

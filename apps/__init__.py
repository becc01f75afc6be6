"""The algorithms: a main loop over operators and a sync, run by one harness."""

import cusp  # noqa: F401 - prepares the process before numba and mpi4py are imported

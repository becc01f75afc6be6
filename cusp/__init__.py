"""The partitioner: a CSR graph in HDF5 -> one :class:`~cusp.partition.Partition` per MPI rank.

Importing this package first prepares the process (:mod:`cusp.runtime.environment`): it must run
before numba and mpi4py are imported, because both read their settings at import.
"""

from cusp.runtime import environment

__version__ = "0.1.0"

environment.prepare()

"""How messages of labels travel between the ranks: chosen here, once.

============  =========  =================================================================================
``table``     -          what there is for each device; ``open_transport``
``memory``    -          memory for messages, which grows and stays
``numbers``   -          a few numbers of all ranks, combined in their order
``reach``     -          memory that processes of one host share
``shared``    peer       ranks on CPUs: memory that both share within a host, MPI between hosts
``host``      mpi        ranks on CPUs: MPI; also what they do in a mixed job, where the others do what ``staged`` says
``peer_gpu``  peer       memory of GPUs of one host that all its ranks reach (CUDA IPC)
``nccl``      nccl       NCCL send and receive on device buffers; needs a GPU of its own for every rank
``staged``    cuda-mpi   MPI on device buffers, where the MPI library says that it can (a wrong guess would be a
                         segmentation fault, so nothing is tried)
``staged``    mpi        MPI on page-locked host memory; works everywhere
============  =========  =================================================================================

A new one is a class with what ``table.Transport`` lists, in a file of its own, and a line in ``table.TRANSPORTS``.
"""

from gluon.transports.table import CHOICES, Transport, TransportError, get_transport, open_transport

__all__ = ["CHOICES", "Transport", "TransportError", "get_transport", "open_transport"]

"""CUDA's driver: its error, and how many blocks fit on a multiprocessor."""

from cupy._build import driver
from cupy.cuda import runtime

driver()


class CUDADriverError(RuntimeError):
    """What CUDA's driver would return as an error."""


def occupancyMaxActiveBlocksPerMultiprocessor(func, blockSize, dynamicSMemSize):  # noqa: N802, N803
    """Blocks of a kernel, given by ``kernel.kernel.ptr``, that fit on a multiprocessor."""
    return runtime.kernels[func].blocks_per_multiprocessor(blockSize, dynamicSMemSize)

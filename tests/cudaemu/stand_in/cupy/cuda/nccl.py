"""NCCL is not there, as in a CuPy whose NCCL library is not installed."""

available = False

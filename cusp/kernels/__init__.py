"""The loops of the partitioner on each device, and what all CUDA kernels share."""

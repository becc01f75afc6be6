"""Relaxing by all ranks at once: on GPUs that are peers, and on CPUs that share memory."""

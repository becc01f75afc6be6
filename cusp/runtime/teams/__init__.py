"""Threads that work together in compiled code: atomics, jobs of a team, threads that wait for them, passes."""

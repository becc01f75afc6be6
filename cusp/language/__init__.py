"""Expressions in the syntax of Python, as text that numba and NVRTC compile; docs/language.md has the grammar."""

"""Operators over the GPUs of several ranks."""

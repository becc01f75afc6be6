"""Verifiers, and helpers to write your own."""

from cusp.apps.verify.check import VerificationError, everywhere, raise_first, tell_node

__all__ = ["VerificationError", "everywhere", "raise_first", "tell_node"]

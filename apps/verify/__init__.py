"""Verifiers, and what one of your own needs."""

from apps.verify.check import VerificationError, everywhere, raise_first, tell_node

__all__ = ["VerificationError", "everywhere", "raise_first", "tell_node"]

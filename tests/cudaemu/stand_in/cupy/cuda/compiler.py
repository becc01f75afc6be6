"""The exception that the compiler raises."""

from cupy._build import CompileException

__all__ = ["CompileException"]

"""g++'s sanitizers over kernels that the stand-in runs: they find what its own checks do not, and nothing in ours."""

import subprocess
import sys

import pytest

from scripts.sanitize import ROOT, under_sanitizers

KERNEL = """
import sys
import cusp
import cupy as cp, numpy as np
code = 'extern "C" __global__ void k(int n, int* out, double* far) {'
code += ' __shared__ int row[4], other[4]; row[n - 1] = other[n - 1] = 1; int* p = row; ' + sys.argv[1] + '; }'
cp.RawKernel(code, "k")((1,), (1,), (np.int32(4), cp.zeros(4, np.int32), cp.full(1, 1e30, np.float64)))
print("the end")
"""
FAULTS = {
    "out[0] = p[n]": "use-after-poison",  # the gap between two shared variables
    "int own[4]; own[n - 1] = 1; int* q = own; out[0] = q[n]": "insufficient space",
    "out[n] = 1": "heap-buffer-overflow",
    "out[0] = 1 << (n + 28)": "shift exponent 32 is too large",
    "out[0] = 0x7fffffff - 3 + n": "signed integer overflow",
    "out[0] = *(int*)((char*)out + n - 3)": "misaligned address",
    "out[0] = (int)far[0]": "outside the range of representable values",
    "out[0] = p[n - 1]": "",
}


@pytest.mark.limit(300)
@pytest.mark.parametrize("statement", FAULTS)
def test_what_is_found(statement):
    """A fault ends the process, and is named."""
    command = [*under_sanitizers(), sys.executable, "-c", KERNEL, statement]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == ((1, "") if FAULTS[statement] else (0, "the end\n")), done.stderr
    assert FAULTS[statement] in done.stderr


@pytest.mark.slow
@pytest.mark.limit(600)
def test_one_program():
    """All of it is ``python -m scripts.sanitize --stand-in --tests``."""
    command = [sys.executable, "-m", "scripts.sanitize", "--stand-in", "--ranks", "1", "--runs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing found" in done.stdout

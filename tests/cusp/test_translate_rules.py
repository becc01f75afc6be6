"""Rules translated to CUDA C++ give what numba gives, on random numbers; what cannot be translated says why."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cusp.policies import POLICIES, load_policy, translate_rules
from cusp.policies.compile_rules import jit
from cusp.policies.policy import load_module

cp = pytest.importorskip("cupy")
cuda = pytest.importorskip("cusp.kernels.cuda")
rules_gpu = pytest.importorskip("cusp.policies.rules_gpu")

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
SOME = st.one_of(st.integers(-20, 20), st.integers(-(1 << 34), 1 << 34), INT64)
KERNEL = """
extern "C" __global__ void call(const long long *a, const long long *b, long long size,
                                long long number, long long *found, int *raises) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) found[i] = get_edge_owner(raises[i], Prop{}, a[i], b[i], number, 0);
}
"""
BODIES = {
    "floors": "return src // dst",
    "remainders": "return src % dst",
    "constants": "return (src % 7) * 100 + (src // -3) + dst % -5 + src // 4294967297",
    "wraps": "return src * dst + (src - dst) * 12345678901 - -src",
    "bits": "return ((src & dst) ^ (src | 255)) + (src >> 3) + (dst << 5) + ~src",
    "shifts_by_numbers": "return (src << (dst & 63)) + (src >> (dst & 31))",
    "compares": "return (src < dst) + 2 * (src == dst) + 4 * (0 <= src < 10) + 8 * (src != 3)",
    "tests": "return 1 if src and not dst else (2 if src > 3 or dst > 3 else 3)",
    "least": "return min(src, dst, 5) + max(src, dst) * 3 + abs(src)",
    "unsigned": "return np.int64((np.uint64(src) * np.uint64(0xFF51AFD7ED558CCD)) >> np.uint64(33))",
    "unsigned_division": "return np.int64(np.uint64(src) // np.uint64(dst) + np.uint64(src) % np.uint64(dst))",
    "unsigned_compares": "return np.uint64(src) < np.uint64(dst)",
    "floats": "return int(src * 0.37 + dst * 1.5 - src / 3.0)",
    "ratios": "return 1 if src / dst > 0.5 else (2 if src == 0.0 else int(float(src) / 7.0))",
    "roots": "return int(math.sqrt(float(abs(src % 1000003))) * 1000.0)",
    "constant": "return STRIDE * src + BIG",
    "truth_values": "return (src < dst) // 2 + -(src < dst) + abs(src < 3) + int((src < dst) + 0.5 + (src > 3) / 2)",
    "mixed_choice": "return int((src % 100 if src < dst else 0.5) * 4)",
    "unsigned_stays": "return np.int64(int(np.uint64(src)) ^ np.uint64(dst))",
    "helper": "return helper(src, dst) + helper(dst, 3)",
    "branches": """
        x = src % 10
        if x < 3:
            y = 1
        elif x < 6 and dst > 0:
            y = x
            x = 7
        else:
            return dst
        x += y
        return x * 10 + y""",
    "chained": """
        a = b = src % 5
        a -= 2
        c: int = a * b
        flag = a > 0
        if flag:
            c = -c
        return c | b""",
}
HEAD = '''
import math
import numpy as np
STRIDE = 7
BIG = 1 << 40

def helper(x, y):
    """Calls another."""
    return inner(x) % ((y & 1023) + 1)

def inner(x):
    x ^= x >> 7
    return x * 3
'''
RULE = "def get_edge_owner(prop, src, dst, src_master, dst_master, estate):"


def function_of(head: str, body: str) -> str:
    """Text of a function, its body indented as it should be."""
    lines = body.strip("\n").splitlines()
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(["", head, *("    " + line[indent:] for line in lines), ""])


def rule_of(folder: Path, body: str) -> Callable:
    """A rule out of its body, from a file as a user would write it."""
    (folder / "rule.py").write_text(HEAD + function_of(RULE, body))
    return load_module(str(folder / "rule.py")).get_edge_owner


def node_itself(prop: Any, node: int, mstate: Any, masters: Any) -> int:
    """A master rule that is not asked."""
    return node


@pytest.fixture(scope="module")
def bodies(tmp_path_factory):
    """All bodies as functions of two numbers, and a kernel that calls the one with a given number."""
    functions = "".join(function_of(f"def body_{name}(src, dst):", body) for name, body in BODIES.items())
    choices = [f"if src_master == {i}:\n    return body_{name}(src, dst)" for i, name in enumerate(BODIES)]
    path = tmp_path_factory.mktemp("rules") / "bodies.py"
    path.write_text(HEAD + functions + function_of(RULE, "\n".join([*choices, "return 0"])))
    module = load_module(str(path))
    text = translate_rules.translate(node_itself, module.get_edge_owner)
    types = {
        "GID": "unsigned",
        "RANK": "signed char",
        "OWNER": "unsigned char",
        "DST_MASTER": "1",
        "NUM_FIELDS": str(rules_gpu.NUM_FIELDS),
    }
    return module, cuda.load("cusp/policies/rules.cuh", text + KERNEL, **types)


@pytest.mark.parametrize("name", BODIES)
def test_same_as_numba(bodies, name):
    """Results and divisions by zero agree for small, medium and any numbers of 64 bits."""
    module, kernels = bodies
    compiled, number = jit(getattr(module, f"body_{name}")), list(BODIES).index(name)

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.tuples(SOME, SOME).filter(is_defined), min_size=1, max_size=80))
    def check(pairs):
        a, b = np.array(pairs, np.int64).T.copy()
        found, raises = cp.zeros(a.size, cp.int64), cp.zeros(a.size, cp.int32)
        kernels.call(a.size, cp.asarray(a), cp.asarray(b), a.size, number, found, raises)
        for x, y, mine, raised in zip(a, b, found.tolist(), raises.tolist()):
            try:
                expected = int(compiled(x, y))
            except ZeroDivisionError as error:
                assert rules_gpu.DIVISIONS[raised] == str(error)
                continue
            assert not raised
            assert mine == expected, (x, y)

    check()


def is_defined(pair: tuple[int, int]) -> bool:
    """The lowest number divided by -1 ends processes of the host."""
    return pair != (-(1 << 63), -1)


REFUSED = {
    "neighbours": (
        "for n in prop.out_neighbors(src):\n    return n\nreturn 0",
        "for n in prop.out_neighbors(src): cannot be translated",
    ),
    "for": ("x = 0\nfor i in range(3):\n    x += i\nreturn x", "rule.py:17: for i in range(3): cannot be translated"),
    "while": ("x = src\nwhile x > 3:\n    x //= 2\nreturn x", "rule.py:17: while x > 3: cannot be translated"),
    "tuples": ("x, y = src, dst\nreturn x", "rule.py:16: (src, dst) cannot be translated"),
    "powers": ("return src ** 2", "** cannot be translated; operators are + - *"),
    "state": ("estate.edges[0] += 1\nreturn 0", "estate.edges[0] += 1 cannot be translated"),
    "reads_state": ("return estate.edges[0]", "cannot be translated"),
    "numpy": ("return np.argmax(np.zeros(3))", "np.argmax() cannot be translated; functions are min, max,"),
    "mixed": ("return np.uint64(src) + 1", "np.uint64(src) + 1: + is not for unsigned and int"),
    "float_least": ("return int(min(src * 0.5, 2.0))", "min(src * 0.5, 2.0): min() is not for float"),
    "float_rank": ("return src * 0.5", "returns float"),
    "nothing": ("if src > 3:\n    return 1", "can end without returning"),
    "two_types": ("x = 1\nx = 0.5\nreturn int(x)", "x is int in one place and float in another"),
    "maybe_unset": ("if src > 3:\n    x = 1\nreturn x", "may not have a value"),
    "index": ("return prop.indptr[src]", "prop.indptr[src] cannot be translated"),
    "list": ("x = [1, 2]\nreturn 0", "[1, 2] cannot be translated"),
    "unknown": ("return prop.nonsense(src)", "prop.nonsense"),
    "raise": ("if src > 3:\n    raise ValueError\nreturn 0", "raise ValueError cannot be translated"),
    "by_name": ("return helper(src, y=3)", "arguments by name"),
    "recursive": ("return get_edge_owner(prop, src, dst, 0, 0, 0)", "calls itself"),
    "large": ("return src + 100000000000000000000", "100000000000000000000 has more than 64 bits"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_stays_on_the_host_says_why(tmp_path, name):
    """The reason names the file and the line."""
    body, why = REFUSED[name]
    with pytest.raises(translate_rules.UntranslatableError, match="^rule.py:") as caught:
        translate_rules.translate(node_itself, rule_of(tmp_path, body))
    assert why in str(caught.value)


def test_text_that_changed_is_not_translated(tmp_path):
    """What stands in the file now need not be what was loaded."""
    rule = rule_of(tmp_path, "return src")
    (tmp_path / "rule.py").write_text((tmp_path / "rule.py").read_text().replace("return src", "return dst"))
    with pytest.raises(translate_rules.UntranslatableError, match="not available"):
        translate_rules.translate(node_itself, rule)


def test_built_in_policies():
    """All that keep no state run on the device."""
    on_host = set()
    for name in POLICIES:
        policy = load_policy(name)
        try:
            translate_rules.translate(policy.master, policy.edge)
        except translate_rules.UntranslatableError:
            on_host.add(name)
    assert on_host == {"fec", "gvc", "svc", "ldg", "hdrf"}

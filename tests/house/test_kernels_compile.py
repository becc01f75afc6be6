"""Every kernel of ours is compiled by the real NVRTC, for each architecture and choice of types. No GPU is needed."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cudaemu
import pytest
from cudaemu import nvrtc

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = sorted(path.relative_to(ROOT).as_posix() for floor in ("cusp", "gluon", "cusp/apps", "scripts")
                 for path in (ROOT / floor).rglob("*.cuh"))  # fmt: skip
LIST_VARIANTS = """
import json, sys
from contextlib import suppress
from types import SimpleNamespace
import numpy as np
from cusp.apps.edge_operator import Binding, EdgeOperator
from cusp.apps.operators.expressions.relax_gpu import relax_defines, relax_source
from cusp.apps.operators.expressions.edges_gpu import defines_of, text_of, way_of
from cusp.apps.operators.expressions.interfaces import Priority
from gluon.label import Label
from gluon.reduction import ADD, ASSIGN, MAX, MIN, Reduction
from cusp.kernels.cuda import OPTIONS, source
from cusp.policies import POLICIES, load_policy
from cusp.policies.rules_gpu import NUM_FIELDS
from cusp.policies.translate_rules import UntranslatableError, translate
chosen = json.loads(sys.argv[1])
found = [(path, source(path, **defines)) for path in chosen for defines in chosen[path]]
types = {"RANK": "signed char", "OWNER": "unsigned char", "NUM_FIELDS": str(NUM_FIELDS)}
WAYS = ("unsigned", "0"), ("unsigned", "1"), ("unsigned long long", "2")
for place, policy in enumerate(map(load_policy, POLICIES)):
    with suppress(UntranslatableError):
        rules = translate(policy.master, policy.edge)
        for gid, way in WAYS if policy.name == "oec" else WAYS[place % 3 :][:1]:
            text = source("cusp/policies/rules.cuh", rules, **types, GID=gid, DST_MASTER=way)
            found.append((policy.name, text))
MUL = Reduction("mul", "old * value", 1, False)
NEAR = Reduction("near", "old if old < value else value", MIN.neutral, True)
reductions = {each.name: each for each in (ASSIGN, MIN, MAX, ADD, MUL, NEAR)}
for each, values in ((ASSIGN, ["int"]), (MIN, ["double"]), (MUL, ["int", "float", "unsigned char"]), (NEAR, ["int"])):
    for value in values:
        text = source("gluon/kernels/combine.cuh", VALUE=value, **each.macros())
        found.append((f"combine.cuh, {each.name}", text))
part = SimpleNamespace(num_proxies=4, device="cpu", csc=None, gids=np.zeros(4, np.int64), weights=np.zeros(0, "u1"),
                       offsets=np.zeros(5, np.int64), targets=np.zeros(0, np.int32))
def relaxing(edges, priority, resident="2", among_peers=False):
    path, text = relax_source(edges, priority, among_peers)
    return source(path, text, RESIDENT=resident, **relax_defines(edges, priority))
def passes(expression, into, where, dtype, reduction, names, ways):
    operator = EdgeOperator(expression, into, where)
    given = {name: np.zeros(4, kind) if kind else 2.5 for name, kind in names.items()}
    binding = Binding(operator, part, {operator.into: Label(part, dtype, 0, reductions[reduction]), **given})
    return [binding.edges(row_end, filtered) for row_end, filtered in ways]
for edges in [edges for expression in json.loads(sys.argv[2]) for edges in passes(*expression)]:
    text = source("cusp/apps/operators/expressions/edges.cuh", text_of(edges), **defines_of(edges))
    found.append((edges.title, text))
    if way_of(edges) == "push_queue":
        found.append(("all rounds of an operator", relaxing(edges, Priority((), "value", "Value", True), "1")))
for dtype in "i4", "u4", "i8", "f4", "f8":
    operator = EdgeOperator("min(best, weight)", "dst.best", "src.seen", priority="-best * rate + src.near % 7")
    given = {"best": Label(part, dtype, 0, MAX), "seen": np.zeros(4, "b1"), "near": np.zeros(4, "i2"), "rate": 0.5}
    binding = Binding(operator, part, given)
    edges, priority = binding.edges("src", True), binding.priority()
    found.append(("drain", relaxing(edges, priority)))
    for resident in ("1", "2") if dtype in ("i4", "f8") else ():
        found.append(("peers' drain", relaxing(edges, priority, resident, True)))
print(json.dumps([(*variant, OPTIONS) for variant in found]))
"""
PUSH_ALL, PUSH_QUEUE, PULL, PULL_FILTERED = ("src", False), ("src", True), ("dst", False), ("dst", True)
EXPRESSIONS = (  # for edges.cuh: expression, into, where, type, reduction, types of what it looks at, ways into dst
    ("near + weight", "dst.best", None, "i4", "min", {"near": "i4"}, (PUSH_ALL, PUSH_QUEUE, PULL_FILTERED)),
    ("src.share * rate / dst.level", "dst.best", None, "f4", "add", {"share": "f4", "level": "i8", "rate": None},
     (PUSH_ALL, PULL)),
    ("exp(src.a) + floor(sqrt(abs(dst.b))) // 3 % 7", "dst.best", "src.gid < dst.gid and not src.seen", "f8", "max",
     {"a": "f8", "b": "i2", "seen": "b1"}, (PUSH_QUEUE, PULL)),
    ("a * a if a > 3 else -int(log(b))", "dst.best", None, "i8", "max", {"a": "u8", "b": "f4"}, (PUSH_QUEUE, PULL)),
    ("1", "dst.best", "src.level == dst.level + 1", "u4", "add", {"level": "u1"}, (PUSH_ALL, PULL_FILTERED)),
    *(("weight", "dst.best", None, dtype, "mul", {}, (PUSH_ALL,)) for dtype in ("i4", "u4", "i8", "f4", "f8")),
    ("weight", "dst.best", None, "f8", "near", {}, (PULL,)),
)  # fmt: skip
BITS = ("unsigned char", "unsigned short", "unsigned", "unsigned long long")
DISTANCES = [
    {"VALUE": value, "WEIGHT": weight}
    for value, weight in (
        ("int", "unsigned char"), ("int", "int"), ("long long", "unsigned"),
    )
]  # fmt: skip
VARIANTS = {  # of each file of kernels but rules.cuh, edges.cuh and relax*.cuh, which get more text: its types
    "cusp/kernels/build.cuh": [{"GID": gid} for gid in ("unsigned", "unsigned long long", "long long")],
    "cusp/input/check.cuh": [{"VALUE": value} for value in BITS],
    "cusp/kernels/move.cuh": [{"VALUE": value} for value in BITS],
    "cusp/kernels/total.cuh": [{"VALUE": value} for value in ("bool", "signed char", "int", "long long", *BITS[:3])],
    "cusp/kernels/split.cuh": [{"KEY": key, "VALUE": value} for key in BITS[:3] for value in BITS],
    "gluon/kernels/device.cuh": [
        {"VALUE": value} for value in ("int", "long long", "double", "unsigned char", "float")
    ],
    "cusp/apps/operators/frontier.cuh": [{}],
    "cusp/apps/operators/traversal/bfs.cuh": [
        {"VALUE": "int"}, {"VALUE": "long long"}, {"VALUE": "int", "RESIDENT": "1"},
        {"VALUE": "int", "RANKS": "Together"}, {"VALUE": "int", "RANKS": "Together", "RESIDENT": "1"},
    ],
    "cusp/apps/operators/batches/batches.cuh": [{}],
    "cusp/apps/operators/choices/coloring.cuh": [{"RESIDENT": "1"}],
    "cusp/apps/operators/choices/msf.cuh": [{"WEIGHT": weight} for weight in ("signed char", "float", "long long")],
    "cusp/apps/operators/samples/samples.cuh": [{"WALKER": "6", "ROUND": "16"}],
    "cusp/apps/operators/sums/betweenness.cuh": [{}],
    "cusp/apps/operators/sums/rows.cuh": [
        {"VALUE": value} | weight
        for value in ("float", "double")
        for weight in ({}, {"WEIGHT": "unsigned char"}, {"WEIGHT": "long long"}, {"WEIGHT": "double"})
    ],
    "cusp/apps/operators/sums/pagerank.cuh": [{"VALUE": value} for value in ("float", "double")],
    "cusp/apps/operators/structure/cc.cuh": [{"VALUE": value} for value in ("int", "long long")],
    "cusp/apps/operators/structure/peers/cc.cuh": [{"VALUE": "int"}],
    "cusp/apps/operators/communities/communities.cuh": [
        {"SHORT": "128", "JOB": job, "NAME": name}
        for job, name in (("Choose", "int"), ("Join", "int"), ("Choose", "i64"))
    ],
    "cusp/apps/operators/communities/sweep.cuh": [
        {"SHORT": "128", "JOB": "Choose", "PIECE": "4096", "RESIDENT": "6"}
    ],
    "cusp/apps/operators/structure/cores.cuh": [{}],
    "cusp/apps/operators/structure/kcore.cuh": [{}, {"RESIDENT": "1"}, {"RANKS": "Together", "RESIDENT": "1"}],
    "cusp/apps/operators/traversal/tree.cuh": [
        {"VALUE": value, "WEIGHT": weight}
        for value, weight in (
            ("int", "unsigned char"), ("long long", "unsigned"), ("double", "float"), ("double", "double"),
        )
    ],
    "cusp/apps/operators/triangles/triangles.cuh": [
        {"PLACE": place, "WORDS": "4096", "USERS": "256", "DRAWS": "16"} for place in ("unsigned", "unsigned long long")
    ],
    "cusp/apps/operators/triangles/truss.cuh": [{"PLACE": place} for place in ("unsigned", "unsigned long long")],
    "cusp/apps/operators/traversal/sssp_sorted.cuh": [
        *DISTANCES, *(types | {"RANKS": "Together"} for types in DISTANCES[1:3]),
    ],
    **{f"scripts/bench/ladder/{name}.cuh": [{}, {"COUNT": "1"}] for name in ("every_node", "queues", "balanced")},
}  # fmt: skip

pytestmark = pytest.mark.limit(300)


@pytest.fixture(scope="module", autouse=True)
def nvrtc_is_installed():
    """NVRTC comes with the extra ``dev``."""
    try:
        nvrtc.library()
    except FileNotFoundError:
        pytest.skip("no NVRTC: pip install nvidia-cuda-nvrtc-cu12")


@pytest.fixture(scope="module")
def variants() -> list[tuple[str, str, tuple[str, ...]]]:
    """Label, source and options of all that is compiled on a GPU, from a process that imports the stand-in."""
    command = [sys.executable, "-c", LIST_VARIANTS, json.dumps(VARIANTS), json.dumps(EXPRESSIONS)]
    done = subprocess.run(command, cwd=ROOT, env=cudaemu.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [(label, source, tuple(options)) for label, source, options in json.loads(done.stdout)]


def errors(variants: list[tuple[str, str, tuple[str, ...]]], architecture: str, *more: str) -> Iterator[str]:
    """What NVRTC says against some of them, with these options besides theirs."""

    def compile_one(variant: tuple[str, str, tuple[str, ...]]) -> str:
        label, source, options = variant
        try:
            form = "PTX" if architecture.startswith("compute") else "CUBIN"
            assert nvrtc.compiled(source, label, (f"-arch={architecture}", *options, *more, *nvrtc.headers()), form)
        except nvrtc.NvrtcError as error:
            macros = re.findall("^#define (.+)$", source.partition("#line")[0], re.MULTILINE)
            return f"{label} {', '.join(macros)}\n{error}"
        return ""

    with ThreadPoolExecutor(2) as pool:
        yield from filter(None, pool.map(compile_one, variants))


def test_our_kernels_compile(variants):
    """The first choice of types of each file to machine code, the others as far as PTX, all of them hardly optimized.

    The optimizer has nothing to say against a source, and took four fifths of the time.
    """
    firsts = first_choices(variants)
    assert not list(errors(firsts, "sm_90", "--Ofast-compile=max"))
    others = [variant for variant in variants if variant not in firsts]
    assert not list(errors(others, "compute_90", "--Ofast-compile=max"))


@pytest.mark.slow
def test_our_kernels_compile_as_users_have_them(variants):
    """Optimized."""
    assert not list(errors(first_choices(variants), "sm_90"))


@pytest.mark.slow
def test_our_kernels_compile_for_the_oldest_gpus(variants):
    """Types make no difference there."""
    assert not list(errors(first_choices(variants), "compute_80"))


def first_choices(variants: list[tuple[str, str, tuple[str, ...]]]) -> list[tuple[str, str, tuple[str, ...]]]:
    """The first variant of each label."""
    return [*{variant[0]: variant for variant in reversed(variants)}.values()]


def test_every_file_of_kernels_is_in_some_variant(variants):
    seen = {name for _, source, _ in variants for name in re.findall(r'^#line \d+ "(.+)"$', source, re.MULTILINE)}
    assert set(PRODUCT) <= seen


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_what_the_stand_in_runs_is_cuda(architecture):
    sources = [(path.name, path.read_text(), ("--std=c++17",)) for path in sorted(cudaemu.HERE.glob("*.cuh"))]
    assert not list(errors(sources, architecture))


def test_a_mistake_is_shown_with_its_place():
    source = '#line 7 "some/kernel.cuh"\nextern "C" __global__ void k(int* out) { *out = undefined; }'
    (error,) = errors([("wrong", source, ())], "sm_90")
    assert re.search(r'some/kernel\.cuh\(7\): error: identifier "undefined" is undefined', error)

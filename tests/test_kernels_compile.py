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

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = sorted(path.relative_to(ROOT).as_posix() for floor in ("cusp", "gluon", "apps")
                 for path in (ROOT / floor).rglob("*.cuh"))  # fmt: skip
LIST_VARIANTS = """
import json, sys
from cusp.cuda import options, source
from cusp.policies import POLICIES, load_policy
from cusp.rules_gpu import NUM_FIELDS
from cusp.translate_rules import translate, why_not
chosen = json.loads(sys.argv[1])
found = [(path, source(path), options(**defines)) for path in chosen for defines in chosen[path]]
types = {"RANK": "signed char", "OWNER": "unsigned char", "NUM_FIELDS": str(NUM_FIELDS)}
for policy in map(load_policy, POLICIES):
    if not why_not(policy.master, policy.edge):
        text = source("cusp/rules.cuh") + translate(policy.master, policy.edge)
        for gid, way in ("unsigned", "0"), ("unsigned", "1"), ("unsigned long long", "2"):
            found.append((policy.name, text, options(**types, GID=gid, DST_MASTER=way)))
print(json.dumps(found))
"""
BITS = ("unsigned char", "unsigned short", "unsigned", "unsigned long long")
VARIANTS = {  # of each file of kernels but rules.cuh, to which rules are added: the types that it is made for
    "cusp/build.cuh": [{"GID": gid} for gid in ("unsigned", "unsigned long long", "long long")],
    "cusp/check.cuh": [{"VALUE": value} for value in BITS],
    "cusp/move.cuh": [{"VALUE": value} for value in BITS],
    "cusp/rows_by_owner.cuh": [{"OWNER": owner} for owner in BITS[:2]],
    "cusp/split.cuh": [{"KEY": key, "VALUE": value} for key in BITS[:3] for value in BITS],
    "gluon/device.cuh": [{"VALUE": value} for value in ("int", "long long", "double", "unsigned char", "float")],
    "apps/operators/frontier.cuh": [{}],
    "apps/operators/bfs.cuh": [{"VALUE": value} for value in ("int", "long long")],
    "apps/operators/cc.cuh": [{"VALUE": value} for value in ("int", "long long")],
    "apps/operators/tree.cuh": [
        {"VALUE": value, "WEIGHT": weight}
        for value, weight in (
            ("int", "unsigned char"), ("long long", "unsigned"), ("double", "float"), ("double", "double"),
        )
    ],
    "apps/operators/sssp.cuh": [
        {"VALUE": value, "WEIGHT": weight}
        for value, weight in (
            ("int", "unsigned char"), ("int", "int"), ("long long", "unsigned"),
            ("double", "float"), ("double", "double"),
        )
    ],
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
    command = [sys.executable, "-c", LIST_VARIANTS, json.dumps(VARIANTS)]
    done = subprocess.run(command, cwd=ROOT, env=cudaemu.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [(label, source, tuple(options)) for label, source, options in json.loads(done.stdout)]


def errors(variants: list[tuple[str, str, tuple[str, ...]]], architecture: str) -> Iterator[str]:
    """What NVRTC says against some of them."""

    def compile_one(variant: tuple[str, str, tuple[str, ...]]) -> str:
        label, source, options = variant
        try:
            assert nvrtc.compile_cubin(source, label, (f"-arch={architecture}", *options, *nvrtc.headers()))
        except nvrtc.NvrtcError as error:
            return f"{label} {' '.join(options)}\n{error}"
        return ""

    with ThreadPoolExecutor(2) as pool:
        yield from filter(None, pool.map(compile_one, variants))


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_our_kernels_compile(architecture, variants):
    assert not list(errors(variants, architecture))


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

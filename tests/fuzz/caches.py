"""Damage the cache of real runs, each file in each way: ``python -m tests.fuzz.caches``.

A program runs with an empty cache folder. Then the files of a group are damaged, all of them at once, and the program
runs again: with the same answer and not a word more, and the files are whole again. The groups are indices, machine
code and generated modules, for a damaged index hides the code behind it.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import h5py

from scripts import mpirun

GROUPS = ("*.nbc", "*.nbi", "cusp_generated_*.py")
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[: len(content) // 2],
    "zeroed": lambda content: bytes(len(content)),
    "junk": lambda content: b"\x80\x04junk." * (len(content) // 7 + 1),
}


def programs(folder: Path) -> dict[str, tuple[list[str], str]]:
    """What runs, by name, and the file with its answer."""
    edges, graph, hops = (str(folder / name) for name in ("edges.txt", "graph.h5", "hops.h5"))
    policy = str(Path(__file__).resolve().parents[1] / "user_policies" / "helper.py")
    return {
        "convert": (["cusp.commands.convert", edges, "--output", graph], graph),
        "bfs": (["cusp.apps.bfs", graph, "--source", "0", "--policy", policy, "--verify", "--output", hops], hops),
    }


def main() -> int:
    """Attack with both programs, and show a table."""
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "edges.txt").write_text("".join(f"{node} {node * 7 % 100}\n" for node in range(100)))
        for program, (arguments, answer) in programs(folder).items():
            for group in GROUPS:
                files, failures = attack(folder / program, arguments, answer, group, DAMAGES)
                print(
                    f"{program}: {files} files {group} x {len(DAMAGES)} damages, {len(failures)} failures", flush=True
                )
                print("".join(failures), end="")
                wrong += len(failures)
    return int(wrong > 0)


def attack(
    cache: Path, arguments: list[str], answer: str, group: str, damages: dict[str, Callable[[bytes], bytes]]
) -> tuple[int, list[str]]:
    """Run a program after each damage to the files of a group; how many they are, and what went wrong."""
    failures = []
    expected = run(cache, arguments, answer)
    whole = {path: path.read_bytes() for path in cache.rglob(group)}
    for name, damage in damages.items():
        for path, content in whole.items():
            path.write_bytes(damage(content))
        found = run(cache, arguments, answer)
        same = [path for path, content in whole.items() if path.exists() and path.read_bytes() == damage(content)]
        if found != expected or same:
            failures.append(f"{group} {name}: {found} instead of {expected}; still damaged: {same}\n")
    return len(whole), failures


def run(cache: Path, arguments: list[str], answer: str) -> tuple[int, str, dict[str, bytes]]:
    """Exit code, errors and answer of a program that has this cache and no other."""
    Path(answer).unlink(missing_ok=True)
    folders = {"CUSP_CACHE": str(cache), "NUMBA_CACHE_DIR": str(cache / "numba"), "CUSP_DEVICE": "cpu"}
    done = mpirun.run(1, ["-m", *arguments], timeout=300, env=folders, launcher=False)
    arrays: dict[str, bytes] = {}
    if Path(answer).exists():
        with h5py.File(answer) as file:
            file.visititems(lambda name, found: _keep(arrays, name, found))
    return done.returncode, done.stderr, arrays


def _keep(arrays: dict[str, bytes], name: str, found: object) -> None:
    if isinstance(found, h5py.Dataset):
        arrays[name] = found[()].tobytes()


if __name__ == "__main__":
    sys.exit(main())

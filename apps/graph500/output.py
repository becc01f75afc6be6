"""The report of Graph500: seconds and traversed edges per second, named and summarised as in its reference code."""

import argparse
from typing import NamedTuple

import numpy as np

from cusp.apps.harness import commit


class Trial(NamedTuple):
    """One search: seconds of the slowest rank, and input edges in the traversed component."""

    source: int
    seconds: float
    edges: int
    validation_seconds: float


class Outcome(NamedTuple):
    """All that the benchmark reports."""

    generation_seconds: float
    construction_seconds: float
    runs: dict[str, list[Trial]]


def statistics(values: np.ndarray) -> dict[str, float]:
    """Quartiles (the mean of the two entries around each), mean and deviation, as the reference code has them."""
    ordered, last = np.sort(values), values.size - 1
    middle = {
        "firstquartile": (ordered[last // 4] + ordered[values.size // 4]) / 2,
        "median": (ordered[last // 2] + ordered[values.size // 2]) / 2,
        "thirdquartile": (ordered[last - last // 4] + ordered[last - values.size // 4]) / 2,
    }
    deviation = values.std(ddof=1) if values.size > 1 else 0.0
    return {"min": ordered[0]} | middle | {"max": ordered[-1], "mean": values.mean(), "stddev": deviation}


def rates(seconds: np.ndarray, edges: np.ndarray) -> dict[str, float]:
    """Traversed edges per second: quartiles, harmonic mean and its deviation (Norris, Ann. Math. Stat. 11, 1940)."""
    slow = statistics(seconds / edges)
    names = {"min": "max", "firstquartile": "thirdquartile", "median": "median", "thirdquartile": "firstquartile",
             "max": "min", "harmonic_mean": "mean"}  # fmt: skip
    fast = {name: 1 / slow[of_seconds] for name, of_seconds in names.items()}
    fast["harmonic_stddev"] = slow["stddev"] / (slow["mean"] ** 2 * max(seconds.size - 1, 1) ** 0.5)
    return fast


def official_output(options: argparse.Namespace, ranks: int, outcome: Outcome) -> str:
    """The lines that the reference code prints, in its order and with its names."""
    lines = [("SCALE", options.scale), ("edgefactor", options.edgefactor)]
    lines += [(f"N{name.upper()}", len(trials)) for name, trials in outcome.runs.items()]
    lines += [("graph_generation", outcome.generation_seconds), ("num_mpi_processes", ranks)]
    lines += [("construction_time", outcome.construction_seconds)]
    arrays = {name: {field: np.array([getattr(one, field) for one in trials], float) for field in
                     ("seconds", "edges", "validation_seconds")} for name, trials in outcome.runs.items()}  # fmt: skip
    for name, of in arrays.items():
        lines += [(f"{name:4} {key}_time", value) for key, value in statistics(of["seconds"]).items()]
    lines += [(f"{key}_nedge", value) for key, value in statistics(arrays["bfs"]["edges"]).items()]
    for name, of in arrays.items():
        for key, value in rates(of["seconds"], of["edges"]).items():
            lines.append((f"{name:4} {key}_TEPS", value))
    for name, of in arrays.items():
        lines += [(f"{name:4} {key}_validate", value) for key, value in statistics(of["validation_seconds"]).items()]
    return "\n".join(line_of(key, value) for key, value in lines)


def line_of(key: str, value: float) -> str:
    """One line; the figure by which the list is ordered has a mark."""
    digits = f"{value:.11g}" if "nedge" in key else f"{value:g}" if isinstance(value, float) else str(value)
    return f"{key + ':':<29}{'!' if 'harmonic_mean' in key else ' '}  {digits}"


def rows_of(options: argparse.Namespace, device: str, ranks: int, outcome: Outcome) -> list[dict]:
    """A row for each search."""
    base = {
        "graph": f"graph500-{options.scale}", "scale": options.scale, "edgefactor": options.edgefactor,
        "policy": options.policy, "ranks": ranks, "device": device, "generation_seconds": outcome.generation_seconds,
        "construction_seconds": outcome.construction_seconds, "commit": commit(),
    }  # fmt: skip
    return [
        base | {"app": f"graph500-{name}", "source": one.source, "seconds": one.seconds, "input_edges": one.edges,
                "teps": one.edges / one.seconds, "validation_seconds": one.validation_seconds, "verified": True}
        for name, trials in outcome.runs.items() for one in trials
    ]  # fmt: skip

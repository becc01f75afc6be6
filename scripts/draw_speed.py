"""Draw docs/pictures/speed.svg: the figures of docs/performance.md, compared with other systems.

python -m scripts.draw_speed
"""

import argparse
from pathlib import Path

from scripts.bench.shared.pictures import Bar, draw_bars

TARGET = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "speed.svg"
OURS = "cusp-gluon"
COLORS = {
    OURS: "#1f5f99", "gapbs": "#e3a33b", "D-Galois": "#c8503c", "GSWITCH": "#7d5ba6", "cuGraph": "#2f7d4f",
    "ECL-CC": "#999999",
}  # fmt: skip
PANELS: dict[str, dict[str, dict[str, float]]] = {  # machine and graph -> milliseconds, as in docs/performance.md
    "two CPU cores, 31 M edges (kron20)": {
        "bfs": {OURS: 3.8, "gapbs": 16, "D-Galois": 190},
        "sssp": {OURS: 84, "gapbs": 174, "D-Galois": 600},
        "cc": {OURS: 8.1, "gapbs": 30, "D-Galois": 316},
        "pagerank": {OURS: 87, "gapbs": 122, "D-Galois": 9000},
        "triangles": {OURS: 496, "gapbs": 6950},
    },
    "16 CPU cores, 128 M edges (kron22)": {
        "bfs": {OURS: 5.3, "gapbs": 15},
        "sssp": {OURS: 136, "gapbs": 154},
        "cc": {OURS: 19, "gapbs": 28},
        "pagerank": {OURS: 208, "gapbs": 328},
    },
    "16 CPU cores, a lattice of 24 M nodes": {
        "bfs": {OURS: 135, "gapbs": 340},
        "sssp": {OURS: 226, "gapbs": 339},
        "cc": {OURS: 132, "gapbs": 176},
        "triangles": {OURS: 27, "gapbs": 55},
    },
    "one H200, 521 M edges (kron24)": {
        "bfs": {OURS: 0.27, "GSWITCH": 1.58, "cuGraph": 2.62},
        "sssp": {OURS: 1.2, "GSWITCH": 180, "cuGraph": 73.8},
        "cc": {OURS: 0.43, "ECL-CC": 27.9, "cuGraph": 44.5},
        "pagerank, an iteration": {OURS: 3.4, "cuGraph": 3.9},
    },
    "one H200, a lattice of 24 M nodes, up to 9,292 levels": {
        "bfs": {OURS: 20, "GSWITCH": 151, "cuGraph": 1406},
        "sssp": {OURS: 29, "GSWITCH": 278},
        "cc": {OURS: 2.1, "ECL-CC": 2.1},
    },
}


def draw(path: Path) -> None:
    """A group of bars for each algorithm, as long as its milliseconds, the slowest of a group in full."""
    panels = {
        title: [
            Bar(algorithm * (place == 0), value / max(systems.values()), f"{system} {value:,g}", COLORS[system])
            for algorithm, systems in algorithms.items()
            for place, (system, value) in enumerate(systems.items())
        ]
        for title, algorithms in PANELS.items()
    }
    draw_bars(path, "milliseconds: shorter is better", panels)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    draw(TARGET)

"""Draw docs/pictures/speed.svg: the figures of docs/performance.md, compared with other systems.

python -m scripts.draw_speed
"""

import argparse
from pathlib import Path
from typing import NamedTuple

TARGET = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "speed.svg"
OURS = "cusp-gluon"
COLORS = {
    OURS: "#1f5f99", "gapbs": "#e3a33b", "D-Galois": "#c8503c", "GSWITCH": "#7d5ba6", "cuGraph": "#2f7d4f",
    "ECL-CC": "#999999",
}  # fmt: skip


class Panel(NamedTuple):
    """One machine and graph: milliseconds by algorithm and system, all of them in docs/performance.md."""

    title: str
    milliseconds: dict[str, dict[str, float]]


PANELS = (
    Panel(
        "two CPU cores, 31 M edges (kron20)",
        {
            "bfs": {OURS: 3.8, "gapbs": 16, "D-Galois": 190},
            "sssp": {OURS: 84, "gapbs": 174, "D-Galois": 600},
            "cc": {OURS: 8.1, "gapbs": 30, "D-Galois": 316},
            "pagerank": {OURS: 87, "gapbs": 122, "D-Galois": 9000},
            "triangles": {OURS: 990, "gapbs": 6950},
        },
    ),
    Panel(
        "one H200, 521 M edges (kron24)",
        {
            "bfs": {OURS: 0.27, "GSWITCH": 1.58, "cuGraph": 2.62},
            "sssp": {OURS: 1.3, "GSWITCH": 180, "cuGraph": 73.8},
            "cc": {OURS: 0.54, "ECL-CC": 27.9, "cuGraph": 44.5},
            "pagerank, an iteration": {OURS: 3.4, "cuGraph": 3.9},
        },
    ),
    Panel(
        "one H200, a lattice of 24 M nodes, up to 9,292 levels",
        {
            "bfs": {OURS: 20, "GSWITCH": 151, "cuGraph": 1406},
            "sssp": {OURS: 29, "GSWITCH": 278},
            "cc": {OURS: 2.0, "ECL-CC": 2.1},
        },
    ),
)
WIDTH, LEFT, BAR, GAP, TOP = 720, 190, 14, 12, 34
LONGEST = 400  # pixels of the longest bar


def svg() -> str:
    """The picture: a group of bars for each algorithm, as long as its milliseconds, the slowest of a group in full."""
    lines, y = [], 8
    for panel in PANELS:
        lines.append(f'<text x="{LEFT}" y="{y + 14}" font-size="15" font-weight="bold">{panel.title}</text>')
        y += TOP
        for algorithm, systems in panel.milliseconds.items():
            middle = y + BAR * len(systems) / 2 + 4
            lines.append(f'<text x="{LEFT - 10}" y="{middle:.0f}" text-anchor="end">{algorithm}</text>')
            for system, value in systems.items():
                lines += bar(y, system, value, max(systems.values()))
                y += BAR
            y += GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="13" '
        f'fill="#222222" role="img">\n<title>Milliseconds of algorithms, compared with other systems: shorter is better'
        f'</title>\n<rect width="{WIDTH}" height="{y}" fill="white"/>\n'
        f'<text x="{WIDTH - 10}" y="22" text-anchor="end" fill="#666666">milliseconds: shorter is better</text>\n'
    )
    return head + "\n".join(lines) + "\n</svg>\n"


def bar(y: float, system: str, value: float, slowest: float) -> list[str]:
    """The bar of one system, with its name and milliseconds."""
    length = max(1.0, LONGEST * value / slowest)
    weight = ' font-weight="bold"' if system == OURS else ""
    label = f'<text x="{LEFT + length + 6:.0f}" y="{y + BAR - 3}" font-size="11"{weight}>{system} {value:,g}</text>'
    return [f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 2}" fill="{COLORS[system]}"/>', label]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    TARGET.write_text(svg())

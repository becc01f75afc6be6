"""Published graphs, outside this repository: which they are, where they lie, how they are converted."""

import os
from pathlib import Path

from scripts.bench.common import ROOT

CLEAN = ["--drop-loops", "--dedup"]
FILES = {  # name -> file in its published format, options of scripts.convert
    "cnr-2000": ("cnr-2000.txt.gz", CLEAN),
    "usa-road-ny": ("usa-road-ny.gr.gz", ["--symmetrize", *CLEAN]),
    "wiki-vote": ("wiki-Vote.txt.gz", CLEAN),
    "rome99": ("rome99.gr.gz", CLEAN),
    "mesh-4elt": ("4elt.graph.gz", ["--symmetrize", *CLEAN]),
}


def folder() -> Path:
    """``$CUSP_TEST_GRAPHS``, else ``shared/graphs`` beside the repository; it need not exist."""
    return Path(os.environ.get("CUSP_TEST_GRAPHS") or ROOT.parent / "shared" / "graphs")

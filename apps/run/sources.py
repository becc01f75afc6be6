"""The nodes from which searches start, if none is named."""

import numpy as np

from cusp.apps.shared.splitmix64 import splitmix64
from cusp.errors import OptionError
from cusp.partition import Partition
from cusp.program import report
from cusp.runtime.devices import to_host
from cusp.runtime.mpi import MPI


def draw_sources(part: Partition, comm: MPI.Intracomm, wanted: int, seed: int) -> list[int]:
    """Nodes with out-edges, drawn by a seed: the same for any policy and number of ranks. Collective.

    Raises
    ------
    OptionError
        On every rank: no node has an out-edge.
    """
    candidates = part.gids[: part.num_masters][part.degrees > 0]
    lots = splitmix64(candidates, seed)  # all different
    if wanted < lots.size:
        best = (lots.argsort() if part.device == "gpu" else np.argpartition(lots, wanted))[:wanted]
        lots, candidates = lots[best], candidates[best]
    local = list(zip(to_host(lots).tolist(), to_host(candidates).tolist()))
    drawn = sorted(pair for pairs in comm.allgather(local) for pair in pairs)
    if not drawn:
        raise OptionError("no node has an out-edge, so none can be chosen as a source; name one with --source")
    if len(drawn) < wanted:
        report.warn(comm.rank, f"--sources {wanted}: only {len(drawn)} nodes have out-edges")
    return [gid for _, gid in drawn[:wanted]]

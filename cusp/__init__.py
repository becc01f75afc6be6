"""Partition graphs across the ranks of MPI, and run algorithms on the parts, on CPUs and GPUs.

What is here is loaded when it is first asked for, as in ``from cusp import bfs, partition_graph``.
"""

from cusp.runtime import early

if early.is_program():
    early.listen()

import atexit  # noqa: E402
import importlib  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

from cusp.runtime import signals  # noqa: E402

if TYPE_CHECKING:  # for editors: what is looked up below
    from cusp.apps.edge_operator import EdgeOperator as EdgeOperator
    from cusp.apps.harness import Answer as Answer
    from cusp.apps.harness import App as App
    from cusp.apps.harness import main as main
    from cusp.apps.library import *  # noqa: F403
    from cusp.apps.library import partition_graph as partition_graph
    from cusp.apps.run.checkpoint import Checkpoint as Checkpoint
    from cusp.apps.run.function import function_of as function_of
    from cusp.apps.run.partitioned_graph import PartitionedGraph as PartitionedGraph
    from cusp.apps.run.result import Result as Result
    from cusp.apps.shared.learning.pyg_folders import write_pyg as write_pyg
    from cusp.apps.shared.learning.sampler import Sample as Sample
    from cusp.apps.shared.learning.sampler import Sampler as Sampler
    from cusp.apps.verify import VerificationError as VerificationError
    from cusp.apps.verify import everywhere as everywhere
    from cusp.apps.verify import tell_node as tell_node
    from cusp.errors import InputError as InputError
    from cusp.launch import run_main as run_main
    from cusp.partition import Partition as Partition
    from cusp.policies.policy import load_policy as load_policy
    from cusp.policies.prop import Prop as Prop
    from gluon.label import Label as Label
    from gluon.reduction import ADD as ADD
    from gluon.reduction import MAX as MAX
    from gluon.reduction import MIN as MIN
    from gluon.reduction import OR as OR
    from gluon.reduction import Reduction as Reduction
    from gluon.sync import Sync as Sync

__version__ = "0.1.0"

_PLACES = {  # module -> what of it is found here
    "cusp.apps.library": "partition_graph bfs sssp widest forest path cc scc kcore triangles communities pagerank "
    "betweenness closeness eigenvector katz hits mis coloring msf similarity truss ppr table paths sample walks",
    "cusp.apps.run.function": "function_of",
    "cusp.apps.shared.learning.pyg_folders": "write_pyg",
    "cusp.apps.shared.learning.sampler": "Sample Sampler",
    "cusp.apps.run.partitioned_graph": "PartitionedGraph",
    "cusp.apps.run.result": "Result",
    "cusp.errors": "InputError",
    "cusp.apps.edge_operator": "EdgeOperator",
    "cusp.apps.harness": "App Answer main",
    "cusp.apps.run.checkpoint": "Checkpoint",
    "cusp.apps.verify": "VerificationError everywhere tell_node",
    "cusp.launch": "run_main",
    "cusp.partition": "Partition",
    "cusp.policies.policy": "load_policy",
    "cusp.policies.prop": "Prop",
    "gluon.label": "Label",
    "gluon.reduction": "MIN MAX ADD OR Reduction",
    "gluon.sync": "Sync",
}
_PLACE = {name: module for module, names in _PLACES.items() for name in names.split()}
__all__ = [*_PLACE]  # noqa: PLE0604

if early.is_program():
    signals.start_program()
elif signals.launched()[0] > 1:
    atexit.register(signals.end_all_after_error)


def __getattr__(name: str) -> Any:
    if name not in _PLACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACE[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

"""Cheapest journeys: an edge costs its weight and the toll of where it begins; roads above a limit are closed."""

import numpy as np

from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.harness import Answer, App, main
from cusp.apps.verify.check import everywhere, tell_edge, tell_node
from cusp.launch import run_main
from gluon.label import Label
from gluon.reduction import MAX, MIN

FAR = 2**62
NEXT, OPEN = "src.cost + weight + src.gid % 5", "weight < 40"
TRAVEL = EdgeOperator(NEXT, into="dst.cost", where=OPEN, priority="cost + src.gid % 5", delta=9)
EXPLAIN = EdgeOperator("1", into="dst.explained", where=f"{OPEN} and {NEXT} == dst.cost")


def journey(part, sync, source, prepared, options):
    cost = Label(part, np.int64, FAR, MIN)
    cost.write(source, 0)
    rounds = TRAVEL.until_quiet(part, sync, cost=cost)
    return Answer({"cost": cost.masters()}, unreached=FAR, rounds=rounds)


def verify(part, sync, source, answer, prepared, options):
    cost, explained = everywhere(part, sync, answer.labels["cost"], FAR), Label(part, np.int32, 0, MAX)
    explained.write(source, 1)
    tell_edge(part, sync, f"{OPEN} and src.cost < {FAR} and {NEXT} < dst.cost",
              lambda source, target, weights: f"there is a cheaper way to {part.gids[target]}", cost=cost)  # fmt: skip
    EXPLAIN(part, explained=explained, cost=cost)
    sync.reduce(explained, write="dst")
    tell_node(part, sync, "no way explains node", (cost.masters() < FAR) & (explained.masters() == 0))


APP = App("journey", "cheapest journeys", journey, verify, weighted=True, needs_rounds=lambda options: "")

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))

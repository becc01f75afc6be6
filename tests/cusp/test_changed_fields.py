"""Fields of a state that a rule may change, found in its text (cusp/policies/definitions.py)."""

from collections import namedtuple

import graphs
import numpy as np
import parts
import pytest

from cusp.partitioner import partition_graph
from cusp.policies import load_policy
from cusp.policies import state as state_of_rules
from cusp.policies.definitions import changed_fields

State = namedtuple("State", "one two both")
STATE = State(np.zeros(9), np.zeros(9), np.zeros((9, 9)))
ALL = {*State._fields}
RULE = """
import numpy as np
from numpy import negative

def _write(prop, array, state):
    state.one[0] = array[0]

def _read(prop, state):
    return state.both[prop, 0]

def _span():
    return slice(0, 3)

def _give(state):
    return state

def _again(prop, state):
    return state.two[_again(prop - 1, state)] if prop else 0

def get_master(prop, node, mstate, masters):
    {body}
    return 0
"""
CHANGED = {
    "x = mstate.one[node] + mstate.both[node, 1] + mstate.two[np.int64(mstate.one[0])] + mstate.both.shape[1]": set(),
    "mstate.one[node] = 1": {"one"},
    "mstate.one[node] += 1": {"one"},
    "mstate.one[0], mstate.two[0] = mstate.two[0], mstate.one[0]": {"one", "two"},
    "mstate.both[mstate.one[0], mstate.two[0]] = 1": {"both"},
    "mstate.two[:] = 0": {"two"},
    "mstate.two.fill(0)": {"two"},
    "np.negative(mstate.two, mstate.two)": {"two"},
    "x = mstate.both[0]; x[1] = 1": {"both"},
    "x = mstate.one[3:]; x[1] = 1": {"one"},
    "x = mstate.one[...]; x[1] = 1": {"one"},
    "x = mstate.both[0, None]; x[0, 1] = 1": {"both"},
    "x = mstate.one[np.newaxis]; x[0, 1] = 1": {"one"},
    "x = mstate.one[0] if mstate.one is mstate.two else 0": {"one", "two"},
    "x = slice(3); y = mstate.one[x]; y[0] = 1": ALL,
    "x = mstate.one[_span()]; x[0] = 1": ALL,
    "x = np.s_[0:3]; y = mstate.one[x]; y[0] = 1": ALL,
    "_write(prop, mstate.both, mstate)": {"one", "both"},
    "x = _read(prop, mstate)": set(),
    "_write(prop, state=mstate, array=masters)": ALL,
    "_write(*(prop, masters), mstate)": ALL,
    "x = _again(3, mstate)": ALL,
    "x = _give(mstate); x.one[0] = 1": ALL,
    "x = mstate; x.one[0] = 1": ALL,
    "a, b, c = mstate; a[0] = 1": ALL,
    "mstate[0][0] = 1": ALL,
    "for x in mstate: x[0] = 1": ALL,
    "x = [y[0] for y in mstate]": ALL,
    "x = lambda: mstate.two; x()[0] = 1": {"two"},
    "x = len(mstate)": ALL,
    "negative(mstate.one, mstate.one)": {"one"},
}


@pytest.mark.parametrize("body", CHANGED)
def test_changed(body):
    """What a rule writes to, or hands on, or keeps, is found; what it only reads is not."""
    rule = load_policy(parts.user_file(RULE.format(body=body))).master
    assert changed_fields(rule, 2, STATE) == CHANGED[body]


def test_without_text():
    """A rule that is not in a file may change all."""
    names: dict = {}
    exec("def get_master(prop, node, mstate, masters):\n    return mstate.one[0]", names)
    assert changed_fields(names["get_master"], 2, STATE) == ALL


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("name", ["2ps", "hep", "ldg", "fec"])
def test_same_partition(comm, shared_tmp, monkeypatch, name):
    """Fields that are left out would have told nothing."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(300, 3000))

    def edges_of(part):
        return [np.asarray(values).tolist() for values in (part.gids, part.offsets, part.targets)]

    some = edges_of(partition_graph(path, load_policy(name, rounds=7), comm))
    monkeypatch.setattr(state_of_rules, "changed_fields", lambda rule, place, state: {*state._fields})
    assert some == edges_of(partition_graph(path, load_policy(name, rounds=7), comm))

"""Policies that an installed package adds by name, in the entry-point group cusp.policies."""

import graphs
import numpy as np
import pytest
import spawn

MODULE = '''"""Two policies: a module is one, and so is an object of the class Policy."""

from cusp.policies.edge_rules import destination
from cusp.policies import Policy


def get_master(prop, node, mstate, masters):
    """Nodes go round the ranks."""
    return node % prop.num_parts


def last(prop, node, mstate, masters):
    """All nodes at the last rank."""
    return prop.num_parts - 1


ALL_LAST = Policy("any name", last, destination)
'''
ENTRY_POINTS = """[cusp.policies]
round-robin = tiny_policies
all-last = tiny_policies:ALL_LAST
broken = tiny_policies:NOTHING
"""


@pytest.fixture
def env(tmp_path) -> dict[str, str]:
    """Variables of a process for which the distribution tiny-policies is installed: its folder is on the path."""
    site = tmp_path / "site"
    info = site / "tiny_policies-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "tiny_policies.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-policies\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return {"PYTHONPATH": f"{site}:{spawn.ROOT}"}


def test_used_by_name(tmp_path, env):
    """A partition has the masters that the plugin's rule says, under the name of the entry point."""
    graphs.write_here(tmp_path / "g.h5", graphs.random_directed())
    arguments = ("g.h5", "--policy", "round-robin", "--export", "metis", "--export-to", "who")
    done = spawn.mpirun(2, "-m", "cusp", *arguments, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "policy round-robin: replication factor" in done.stdout
    assert np.loadtxt(tmp_path / "who.part.2", dtype=int).tolist() == [0, 1] * 30


def test_compared_beside_built_in_ones(tmp_path, env):
    """compare takes plugins too, for any number of parts."""
    graphs.write_here(tmp_path / "g.h5", graphs.random_directed())
    asked = ("compare", "g.h5", "--ranks", "5", "--policies", "all-last,oec")
    done = spawn.mpirun(1, "-m", "cusp", *asked, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    figures = {line.split()[0]: line.replace("*", "").split()[1:] for line in done.stdout.splitlines()[3:]}
    replication, _, edge_balance = map(float, figures["all-last"][:3])
    assert (replication, edge_balance) == (1.0, 5.0) and float(figures["oec"][0]) > 1


def test_listed_after_the_built_in_ones(env):
    """With what the name stands for; without the distribution they are not there."""
    with_plugins, without = (
        spawn.mpirun(1, "-m", "cusp", "policies", env=chosen).stdout.splitlines() for chosen in (env, {})
    )
    assert with_plugins[: len(without)] == without
    added = {line.split()[0]: line.split(maxsplit=1)[1] for line in with_plugins[len(without) :]}
    assert added["all-last"] == "plugin tiny_policies:ALL_LAST" and set(added) == {"round-robin", "all-last", "broken"}


def test_plugin_that_cannot_be_loaded(tmp_path, env):
    """One line that names the entry point's target; no traceback."""
    graphs.write_here(tmp_path / "g.h5", graphs.random_directed())
    done = spawn.mpirun(2, "-m", "cusp", "g.h5", "--policy", "broken", env=env, cwd=tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "--policy broken: tiny_policies:NOTHING cannot be imported" in done.stderr


def test_unknown_name_tells_the_plugins(tmp_path, env):
    """A wrong name is answered with all that there are."""
    graphs.write_here(tmp_path / "g.h5", graphs.random_directed())
    done = spawn.mpirun(1, "-m", "cusp", "g.h5", "--policy", "roundrobin", env=env, cwd=tmp_path)
    assert done.returncode == 1 and "round-robin, all-last" in done.stderr

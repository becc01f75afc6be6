"""The partition made on the GPU is that made on the CPU, bit for bit; so are its errors. On any number of ranks."""

from dataclasses import fields

import damage
import graphs
import numpy as np
import parts
import pytest
from test_partition import assert_same

from cusp.errors import InputError, together
from cusp.output.saved import load_partition, save_partition
from cusp.partition import Partition
from cusp.partitioner import partition_graph
from cusp.policies import load_policy
from cusp.policies.compile_rules import CompiledPolicy

cp = pytest.importorskip("cupy")
build_gpu = pytest.importorskip("cusp.kernels.build_gpu")
read_gpu = pytest.importorskip("cusp.input.read_gpu")

KINDS = [  # types of targets, offsets and weights; with HDF5's own storage or not
    {"index": np.int64, "weight": np.float32},
    {"index": np.uint32, "indptr": np.int32, "weight": np.uint8},
    {"index": np.uint32, "weight": None},
    {"index": np.int64, "weight": np.float64, "chunks": (7,), "compression": "gzip"},
    {"index": ">u4", "weight": np.int16},
]
PAIRS = [(name, "cvc") for name in graphs.HARD] + [("random", policy) for policy in parts.POLICIES if policy != "cvc"]


def both(path, policy, comm, **options) -> tuple[Partition, Partition]:
    """The partition made on the GPU, copied to the host, and the one made there. Collective."""
    mine = partition_graph(path, policy, comm, device="gpu", **options)
    for field in fields(Partition):
        value = getattr(mine, field.name)
        if isinstance(value, np.ndarray):
            assert field.name == "mirror_starts", f"{field.name} is on the host"
    assert mine.device == "gpu"
    return mine.on("cpu"), partition_graph(path, policy, comm, **options)


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), PAIRS)
def test_same_as_on_the_cpu(comm, shared_tmp, name, policy):
    """All hard graphs, and every policy on one, with weights and the CSC."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD[name](), sums=True)
    assert_same(*both(path, parts.policy_of(policy), comm, csc=True))


@pytest.mark.mpi
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_types_of_numbers(comm, shared_tmp, kind):
    """Targets and weights of all widths; files that have to be read by HDF5; both orders of local ids."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"](), **KINDS[kind])
    for order in ("natural", "degree"):
        assert_same(*both(path, load_policy("cvc"), comm, csc=True, order=order))


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["cvc", "dbh", "fec", "mixed"])
def test_small_chunks(comm, shared_tmp, policy, monkeypatch):
    """A few edges at a time: buffers, messages and sorts end anywhere."""
    monkeypatch.setattr(read_gpu, "PIECE", 40)
    monkeypatch.setattr(build_gpu, "CHUNK", 7)
    monkeypatch.setattr(build_gpu, "LARGE", 5)
    monkeypatch.setattr(build_gpu, "PIECES", 1000)
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    assert_same(*both(path, parts.policy_of(policy), comm, csc=True))


@pytest.mark.mpi
def test_symmetric_graph_with_sums(comm, shared_tmp):
    """What the file says of itself is checked on the device, and right."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random_symmetric"](), symmetric=True, sums=True)
    assert_same(*both(path, load_policy("hvc", threshold=2), comm))


def errors_of(path: str, comm, policy: str = "oec", **parameters) -> list[str]:
    """What a partition on the GPU and one on the CPU say."""
    found = []
    for device in ("gpu", "cpu"):
        with pytest.raises(InputError) as error:
            with together(comm):
                chosen = load_policy(policy, **parameters)
            partition_graph(path, chosen, comm, device=device)
        found.append(f"{error.type.__name__}: {error.value}")
    return found


@pytest.mark.mpi
@pytest.mark.parametrize("fault", parts.share([*damage.FILES, "flipped_data", "not_a_number"]))
def test_damaged_files(comm, shared_tmp, fault):
    """The same words for everything that can be wrong in a file."""
    damage.make((damage.FILES | damage.WEIGHTED)[fault], shared_tmp / "bad.h5")
    mine, expected = errors_of(str(shared_tmp / "bad.h5"), comm)
    assert mine == expected


@pytest.mark.mpi
@pytest.mark.parametrize("fault", parts.share(damage.POLICIES))
def test_damaged_policies(comm, shared_tmp, fault):
    """The same words for everything that can be wrong in a policy."""
    path = graphs.write(shared_tmp / "g.h5", damage.GRAPH)
    mine, expected = errors_of(path, comm, parts.user_file(damage.POLICIES[fault][0]))
    assert mine == expected


POLICY = """
def get_master(prop, node, mstate, masters):
    return {master}

def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    return {edge}
"""


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("master", "edge"),
    [
        ("node - 5", "src_master"),
        ("10 // (node - 30) * 0", "src_master"),
        ("0", "7 * (src == 20) + 9 * (dst == 3)"),
        ("0", "src_master + 0 * (dst % (src - 11))"),
    ],
)
def test_rules_that_are_wrong(comm, shared_tmp, master, edge):
    """The first node or edge whose rank does not exist, or where a rule divides by zero."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    policy = shared_tmp / "wrong.py"
    if comm.rank == 0:
        policy.write_text(POLICY.format(master=master, edge=edge))
    comm.Barrier()
    mine, expected = errors_of(path, comm, str(policy))
    assert mine == expected


@pytest.mark.mpi
@pytest.mark.parametrize("transpose", [True, False])
def test_questions_that_only_the_reader_can_answer(comm, shared_tmp, transpose):
    """Degrees, in-degrees (read or counted), places and maps; readers tell each other what they are asked."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"](), transpose=transpose)
    policy, nodes = shared_tmp / "asks.py", shared_tmp / "map.txt"
    if comm.rank == 0:
        policy.write_text(
            POLICY.format(
                master="(prop.out_degree(node) + prop.in_degree(node) * 3 + prop.mapped(node)) % prop.num_parts",
                edge="(prop.neighbor_degree(dst) + prop.place(dst) * (prop.rank + 1) + dst_master"
                " + prop.in_degree(dst) * 5) % prop.num_parts",
            )
        )
        nodes.write_text("".join(f"{node * 7 % 5}\n" for node in range(60)))
    comm.Barrier()
    asks = load_policy(str(policy), node_map=str(nodes))
    assert CompiledPolicy(asks, "gpu").where == "device"
    assert_same(*both(path, asks, comm, csc=True))


def test_where_rules_run():
    """On the device, or on the host for a reason."""
    assert CompiledPolicy(load_policy("cvc"), "gpu").where == "device"
    assert CompiledPolicy(load_policy("fec"), "gpu").where == "host (a rule keeps state)"
    assert CompiledPolicy(load_policy("cvc")).where == "host"


@pytest.mark.mpi
def test_copies_and_local_ids(comm, shared_tmp):
    """A partition moved to the GPU and back is the same; local ids are found from either side."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    part = partition_graph(path, load_policy("cvc"), comm, csc=True)
    moved = part.on("gpu")
    assert_same(moved.on("cpu"), part)
    assert moved.on("gpu") is moved
    gids = np.arange(60)
    np.testing.assert_array_equal(moved.lid_map.lids(gids), part.lid_map.lids(gids))
    np.testing.assert_array_equal(moved.lid_map.lids(cp.asarray(gids)).get(), part.lid_map.lids(gids))
    assert [moved.lid(gid) for gid in range(60)] == [part.lid(gid) for gid in range(60)]


@pytest.mark.mpi
def test_saved_from_the_gpu(comm, shared_tmp):
    """What is saved is the same, wherever the partition was made."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    part = partition_graph(path, load_policy("cvc"), comm, device="gpu")
    folder = str(shared_tmp / "saved")
    save_partition(folder, part, comm, graph=path, policy="cvc", parameters={}, order="degree", split="edges")
    loaded = load_partition(folder, comm)
    assert_same(loaded, part.on("cpu"))
    assert_same(loaded.on("gpu").on("cpu"), loaded)


@pytest.mark.mpi
def test_hubs_come_first(comm, shared_tmp):
    """Each row begins with the target of the lowest local id, on both devices; by global id it is left as it is."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    for device in ("gpu", "cpu"):
        part = partition_graph(path, load_policy("cvc"), comm, device=device).on("cpu")
        for lid in np.flatnonzero(part.has_out):
            row = part.targets[part.offsets[lid] : part.offsets[lid + 1]]
            assert row[0] == row.min()

"""Saved partitions that somebody edited, with checksums that fit: refused in one line, and nothing in them is run."""

import json
import os
import shutil

import graphs
import h5py
import numpy as np
import pytest
import ranks

from cusp.apps.bfs import APP
from cusp.apps.harness import main
from cusp.errors import GraphFileError, PolicyError, together
from cusp.input.checksum import checksum
from cusp.input.graph_file import read_header
from cusp.output.dataset_writer import OutputError
from cusp.output.manifest import MANIFEST, SavedError, read_manifest
from cusp.output.saved import load_partition, only_writer, save_partition
from cusp.partitioner import partition_graph

COMM = ranks.COMM
GRAPH = graphs.random_directed(40, 200)


def save(folder, path, policy="oec"):
    """Partition a file and save the result. Collective."""
    part = partition_graph(str(path), "oec", COMM)
    save_partition(
        str(folder), part, COMM, graph=str(path), policy=policy, parameters={}, order="degree", split="edges"
    )


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A graph file with float weights, and its partition on one rank."""
    folder = tmp_path_factory.mktemp("original")
    graphs.write_here(folder / "g.h5", GRAPH, weight=np.float32)
    save(folder / "parts", folder / "g.h5")
    return folder


@pytest.fixture
def folder(original, tmp_path):
    """A copy of it to edit; the graph has a copy of its own too."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    edit_manifest(tmp_path / "parts", graph=str(tmp_path / "g.h5"))
    return tmp_path / "parts"


def edit_manifest(folder, drop=(), **entries):
    """Change entries of a manifest."""
    content = json.loads((folder / MANIFEST).read_text()) | entries
    (folder / MANIFEST).write_text(json.dumps({name: content[name] for name in content if name not in drop}))


def edit_array(part, name, change):
    """Replace an array of a part by ``change(array)``, with a checksum that fits."""
    with h5py.File(part, "r+") as file:
        values = change(file[name][...])
        del file[name]
        file[name] = values
        file[name].attrs["checksum"] = np.uint64(checksum(values.reshape(-1)))


def put(*entries):
    """Set entries: place, value, place, value ..."""

    def change(values):
        values[list(entries[::2])] = entries[1::2]
        return values

    return change


EDITS = {
    "offset too high": ("offsets", put(3, 10**6)),
    "offsets fall": ("offsets", put(3, 0)),
    "offsets begin late": ("offsets", put(0, 1)),
    "offsets end early": ("offsets", put(-1, 199)),
    "target -1": ("targets", put(5, -1)),
    "target too high": ("targets", put(5, 40)),
    "gid too high": ("gids", put(5, 40)),
    "gid twice": ("gids", lambda values: put(0, values[1])(values)),
    "targets of another type": ("targets", lambda values: values.astype(np.int64)),
    "one less": ("degrees", lambda values: values[:-1]),
    "one more": ("weights", lambda values: np.append(values, values[:1])),
    "degrees moved": ("degrees", lambda values: put(0, values[0] - 1, 1, values[1] + 1)(values)),
    "no in-edges": ("has_in", lambda values: put(0, 1 - values[0])(values)),
    "not a truth value": ("has_in", put(0, 2)),
    "mirrors of itself": ("mirror_starts", put(0, 39)),
    "not a number": ("weights", put(7, np.nan)),
    "two dimensions": ("gids", lambda values: values.reshape(2, -1)),
}


@pytest.mark.parametrize("edit", EDITS)
def test_arrays(folder, edit):
    """No array is taken as it is; apps get what the partitioner would give them."""
    edit_array(folder / read_manifest(folder).parts[0], *EDITS[edit])
    with pytest.raises(SavedError, match="damaged") as caught:
        load_partition(str(folder), COMM)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("link", ["external", "soft", "elsewhere"])
def test_values_in_other_files(folder, link):
    """The arrays are in the part itself."""
    with h5py.File(folder / read_manifest(folder).parts[0], "r+") as file:
        values = file["gids"][...]
        values.tofile(folder.parent / "gids")
        file.move("gids", "other")
        if link == "elsewhere":
            file.create_dataset("gids", values.shape, values.dtype, external=[(str(folder.parent / "gids"), 0, 999)])
        else:
            file["gids"] = h5py.SoftLink("/other") if link == "soft" else h5py.ExternalLink("x.h5", "/gids")
    with pytest.raises(SavedError, match="damaged"):
        load_partition(str(folder), COMM)


MANIFESTS = [
    {"policy": 3}, {"policy": "two\nlines"}, {"ranks": "1"}, {"ranks": True}, {"ranks": 2}, {"parts": []},
    {"parts": ["../g.h5"]}, {"parts": ["/dev/zero"]}, {"num_nodes": -1}, {"num_nodes": 41}, {"num_nodes": 10**15},
    {"num_edges": 199}, {"symmetric": True}, {"symmetric": 1}, {"index_dtype": "int7"}, {"weight_dtype": "<f1"},
    {"weight_dtype": None}, {"index_dtype": []}, {"parameters": {"grid": [2, 1]}}, {"parameters": {"exec": 1}},
    {"parameters": {"rounds": 1e9}}, {"order": ["degree"]}, {"split": "0x10"}, {"graph": "/dev/zero"},
    {"checksums": {"x": 1}}, {"fingerprint": {"bytes": -1}}, {"more": 1}, {"drop": ["order"]}, {"format_version": "2"},
    {"added": {"edges": -1}}, {"added": {"edges": 1}}, {"added": {"nodes": 41}}, {"added": {"loops": 1}},
]  # fmt: skip


@pytest.mark.parametrize("entries", MANIFESTS, ids=str)
def test_manifests(folder, entries):
    """Every entry has a type and a range, and parts are files beside the manifest."""
    edit_manifest(folder, **entries)
    with pytest.raises(SavedError) as caught:
        load_partition(str(folder), COMM)
    assert "\n" not in str(caught.value)


def test_not_a_plain_file(folder):
    """A pipe or a link in the place of a file is not opened."""
    part = folder / read_manifest(folder).parts[0]
    part.rename(folder / "moved")
    part.symlink_to(folder / "moved")
    with pytest.raises(SavedError, match="plain file"):
        load_partition(str(folder), COMM)
    (folder / MANIFEST).unlink()
    os.mkfifo(folder / MANIFEST)
    with pytest.raises(SavedError, match="is a pipe or device"):
        load_partition(str(folder), COMM)
    for text in ("[" * 100_000, "[]", "{", '"\ud800"'.encode("utf-8", "surrogatepass")):
        (folder / MANIFEST).unlink()
        (folder / MANIFEST).write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(SavedError):
            load_partition(str(folder), COMM)


def test_version_1(folder):
    """Manifests of the first version have no fingerprint, and have not grown."""
    edit_manifest(folder, drop=["fingerprint", "added"], format_version=1)
    assert load_partition(str(folder), COMM).num_edges == 200


def test_policy_is_not_run(folder, monkeypatch):
    """A policy file is run if a user names it, not if a manifest does."""
    ran = folder / "ran"
    policy = folder / "mine.py"
    policy.write_text(
        f"import os\nos.mkdir({str(ran)!r})\n\ndef get_master(prop, node, mstate, masters):\n    return 0\n"
    )
    arguments = [str(folder), "--source", "0", "--verify"]
    edit_manifest(folder, policy=str(policy))
    assert main(APP, COMM, arguments) == 0
    names = ["part-0-of-2.00.h5", "part-1-of-2.00.h5"]
    for name in (str(policy), "os:system", "no_such_plugin"):
        edit_manifest(folder, policy=name, ranks=2, parts=names)
        with pytest.raises(PolicyError, match=f"not built in.*--policy {name}"):
            main(APP, COMM, arguments)
    assert not ran.exists()
    assert main(APP, COMM, [*arguments, "--policy", str(policy)]) == 0
    assert ran.exists()


def test_changed_graph(folder):
    """A graph file without checksums is known by its size, its time and a sample."""
    graph = folder.parent / "g.h5"
    status = graph.stat()
    save(folder, graph)
    os.utime(graph, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
    with pytest.warns(UserWarning, match="written again"):
        load_partition(str(folder), COMM)
    with h5py.File(graph, "r+") as file:
        file["data"][0] += 1
    with pytest.raises(SavedError, match="not its bytes"):
        load_partition(str(folder), COMM)
    graphs.write_here(graph, graphs.random_directed(40, 201))
    with pytest.raises(SavedError, match="it had 200 edges and now has 201"):
        load_partition(str(folder), COMM)
    graph.unlink()
    assert load_partition(str(folder), COMM).num_nodes == 40


def test_two_jobs(folder):
    """One job saves at a time; what a killed one left is removed by the next, and nothing else is."""
    before = sorted(os.listdir(folder))
    with only_writer(folder), pytest.raises(OutputError, match=f"process {os.getpid()} on .* is saving"):
        save(folder, folder.parent / "g.h5")
    assert sorted(os.listdir(folder)) == before
    for left in ("part-0-of-1.00aa.h5", f".{MANIFEST}.00aa", "part-of-mine.h5"):
        (folder / left).write_text("")
    save(folder, folder.parent / "g.h5")
    assert sorted(os.listdir(folder)) == sorted([".saving", MANIFEST, "part-of-mine.h5", *read_manifest(folder).parts])


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("name", ["gids", "degrees"])
def test_whole(comm, shared_tmp, name):
    """What no rank can see alone: a node with two masters, a degree that the edges of other ranks do not add up to."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["path"]())
    save(shared_tmp / "parts", path)
    with together(comm):
        if comm.rank == 0:
            first, last = (shared_tmp / "parts" / read_manifest(shared_tmp / "parts").parts[end] for end in (0, -1))
            with h5py.File(first) as file:
                gid = file["gids"][0]
            edit_array(last, name, put(0, gid) if name == "gids" else put(0, 2))
    with pytest.raises(SavedError, match="damaged: " + ("some node has two" if name == "gids" else "the degrees")):
        load_partition(str(shared_tmp / "parts"), comm)


@pytest.mark.parametrize("value", ["yes", [1, 0], h5py.Empty("i8"), 0.5])
@pytest.mark.parametrize("file", ["g.h5", "part"])
def test_attributes_of_another_type(folder, monkeypatch, file, value):
    """A text says where in the file it is, and HDF5 would go there, also where bits have flipped: it is not read."""
    path = folder.parent / file if file == "g.h5" else next(folder.glob("part-*.h5"))
    with h5py.File(path, "r+") as changed:
        changed.attrs["symmetric"] = value
    read = h5py.AttributeManager.__getitem__

    def only_numbers(self, name):
        assert self.get_id(name).get_type().get_class() == h5py.h5t.FLOAT or name != "symmetric"
        return read(self, name)

    monkeypatch.setattr(h5py.AttributeManager, "__getitem__", only_numbers)
    with pytest.raises((GraphFileError, SavedError), match=r"attribute symmetric is .*, expected a whole number"):
        load_partition(str(folder), COMM) if file == "part" else read_header(str(path))

"""One form of messages: what a rank on a CPU or a GPU writes, ranks on CPUs and on GPUs read alike."""

from types import SimpleNamespace

import numpy as np
import parts
import pytest

from cusp.runtime.devices import backend, move, to_host, xp_of
from gluon.exchange import block_words
from gluon.interfaces import Message
from gluon.label import Label
from gluon.plan import Lists
from gluon.reduction import ADD, MAX, MIN
from gluon.transports.memory import Buffers

DEVICES = ["cpu", "gpu"] if parts.WANTED == "gpu" else ["cpu"]
KINDS = [[("i4", MIN)], [("f8", ADD)], [("u1", MAX)], [("i2", MIN), ("i8", ADD), ("u1", MAX)]]
NOTHING = 0xAAAAAAAAAAAAAAAA


def buffers(device: str, words: int) -> Buffers:
    """Memory for messages to or from two ranks, the first of which gets none; a word behind it belongs to nobody."""
    pieces = [xp_of(device).full(size, NOTHING, np.uint64) for size in (0, words + 1)]
    addresses = [piece.data.ptr for piece in pieces] if device == "gpu" else None
    return Buffers(pieces, addresses and xp_of("gpu").array(addresses, np.uint64))


def labels_of(device: str, kinds: list, values: list[np.ndarray], chosen: list[np.ndarray]) -> tuple[Label, ...]:
    """Labels of one device with these values, of which some are updated."""
    part = SimpleNamespace(num_proxies=values[0].size, device=device)
    labels = tuple(Label(part, dtype, 0, reduction) for dtype, reduction in kinds)
    for label, of_label, lids in zip(labels, values, chosen):
        label.values[:] = move(of_label, device)
        label.mark(move(lids, device))
    return labels


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("source", DEVICES)
@pytest.mark.parametrize("kinds", KINDS, ids=lambda kinds: "+".join(f"{dtype}-{how.name}" for dtype, how in kinds))
@pytest.mark.parametrize("kind", ["reduce", "broadcast"])
def test_all_devices_read_what_all_write(kind, kinds, source, target):
    """None, one, few, half, all but one and all entries; values that travel and known ones; lists about a tile long."""
    random = np.random.default_rng(len(kinds))
    for entries in (1, 64, 65, 130, 1024, 3000):
        proxies = 2 * entries + 3
        lids, there = (random.permutation(proxies)[:entries].astype(np.int32) for _ in range(2))
        none = lids[:0]
        lists = [Lists((none, at), (none, at), False) for at in (lids, there)]
        routes = [backend(Message, device).Route(of, kind) for device, of in zip((source, target), lists)]
        for count in sorted({0, 1, 2, entries // 40, entries // 2, entries - 1, entries}):
            for implied in (None, 5):
                values = [random.integers(1, 20, proxies).astype(dtype) for dtype, _ in kinds]
                old = [random.integers(1, 20, proxies).astype(dtype) for dtype, _ in kinds]
                counts = [count if place == 0 else (count * 3) % (entries + 1) for place in range(len(kinds))]
                places = [np.sort(random.permutation(entries)[:n]) for n in counts]
                sent = labels_of(source, kinds, values, [lids[at] for at in places])
                widths = [label.values.itemsize if implied is None else 0 for label in sent]
                most = sum(block_words(entries, width) for width in widths)
                out, into = buffers(source, most), buffers(target, most)
                words, _ = routes[0].pack(sent, implied is None, out)
                assert words[0] == 0 and words[1] <= most
                message = to_host(out.pieces[1])
                assert (message[most if source == "gpu" else words[1] :] == NOTHING).all()
                into.pieces[1][: words[1]] = move(message[: words[1]], target)
                got = labels_of(target, kinds, old, [none] * len(kinds))
                routes[1].unpack(got, implied, into, words)
                for (dtype, how), mine, at, new, before, label in zip(kinds, sent, places, values, old, got):
                    known = np.full(at.size, implied, dtype) if implied is not None else new[lids[at]]
                    expected, combine = before.copy(), {MIN: np.minimum, MAX: np.maximum, ADD: np.add}[how]
                    if kind == "broadcast":
                        expected[there[at]] = known
                    else:
                        expected[there[at]] = combine(before[there[at]], known)
                    np.testing.assert_array_equal(to_host(label.values), expected)
                    assert to_host(label.take_updated()).tolist() == np.flatnonzero(expected != before).tolist()
                    reset = kind == "reduce" and how is ADD
                    assert to_host(mine.take_updated()).tolist() == ([] if reset else sorted(lids[at].tolist()))
                    left = new.copy()
                    if reset:
                        left[lids[at]] = 0
                    np.testing.assert_array_equal(to_host(mine.values), left)

"""Updated bits of a label, set for proxies whose values an app wrote without an operator."""

from typing import Any

from gluon.label import Label


def mark_all(label: Label) -> None:
    """Set the updated bits of all proxies."""
    label.updated.fill(~label.updated.dtype.type(0))


def mark(label: Label, lids: Any) -> None:
    """Set the updated bits of some proxies."""
    xp, words = label.device.xp, label.updated
    width = 8 * words.itemsize
    bits = xp.left_shift(words.dtype.type(1), (lids % width).astype(words.dtype))
    xp.bitwise_or.at(words, lids // width, bits)

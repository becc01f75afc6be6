"""How messages of labels travel between the ranks: chosen here, once.

``table`` says what there is for each device; each module, how it works and what it needs. A new one is a ``Transport``
in a file of its own, and a line in ``table.TRANSPORTS``.
"""

from gluon.transports.memory import Transport
from gluon.transports.table import CHOICES, TransportError, get_transport, open_transport

__all__ = ["CHOICES", "Transport", "TransportError", "get_transport", "open_transport"]

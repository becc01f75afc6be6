"""Streams and events. Kernels run when they are launched; only what is copied to the host arrives late.

A copy takes its source at once, but its destination is written when the host waits for the stream. So a program
that forgets to wait reads old numbers here too.
"""

import ctypes
import threading
import time

import numpy as np

from cupy.cuda import runtime

_thread = threading.local()
_streams = {}
_pointers = iter(range(1 << 20, 1 << 40, 64))


class _BaseStream:
    """Copies that are under way, in order."""

    def __init__(self, ptr, device_id=-1):
        self.ptr, self.device_id = ptr, runtime.getDevice() if device_id < 0 else device_id
        self._late, self._before = [], []
        self._written = 0
        _streams[ptr] = self

    def __eq__(self, other):
        return isinstance(other, _BaseStream) and self.ptr == other.ptr

    def __hash__(self):
        return hash(self.ptr)

    def __repr__(self):
        return f"<Stream {self.ptr} (device {self.device_id})>"

    def __enter__(self):
        self._before.append(get_current_stream())
        return self.use()

    def __exit__(self, *_):
        _thread.stream = self._before.pop()

    def use(self):
        """Make it the current one of this thread."""
        _thread.stream = self
        return self

    def write_later(self, destination, source):
        """Copy a NumPy array into another when the host waits."""
        snapshot = source.copy()
        self._late.append(lambda: np.copyto(destination, snapshot))

    def write_bytes_later(self, destination, source, size):
        """Copy bytes to an address when the host waits."""
        snapshot = ctypes.string_at(source, size)
        self._late.append(lambda: ctypes.memmove(destination, snapshot, size))

    def arrive(self, until):
        """Write what was copied before the ``until``-th copy."""
        while self._late and self._written < until:
            self._late.pop(0)()
            self._written += 1

    @property
    def issued(self):
        """Number of copies so far."""
        return self._written + len(self._late)

    @property
    def done(self):
        """Whether all work is done: it is when asked."""
        self.synchronize()
        return True

    def synchronize(self):
        """Wait for everything on this stream."""
        self.arrive(self.issued)

    def record(self, event=None):
        """Note the present state in an event."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event):
        """Work on this stream waits for an event; the order of launches does that already."""

    def launch_host_func(self, callback, arg):
        """Call a function when what was put onto the stream before is done."""
        self._late.append(lambda: callback(arg))

    def add_callback(self, callback, arg):
        """Call a function when what was put onto the stream before is done."""
        self._late.append(lambda: callback(self, 0, arg))

    def begin_capture(self, mode=None):
        """Graphs cannot be imitated."""
        raise NotImplementedError("the stand-in has no CUDA graphs")

    def is_capturing(self):
        """Never."""
        return False


class Stream(_BaseStream):
    """A new stream; ``Stream.null`` is the one that others wait for."""

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self.null, self.is_non_blocking, self.priority = null, non_blocking, priority or 0
        super().__init__(0 if null else next(_pointers))


class ExternalStream(_BaseStream):
    """The stream with a given handle."""

    def __new__(cls, ptr, device_id=-1):
        return at(ptr)

    def __init__(self, ptr, device_id=-1):
        pass


class Event:
    """A moment in a stream."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.disable_timing, self.ptr = disable_timing, next(_pointers)
        self._stream, self._until, self.seconds = None, 0, None

    def record(self, stream=None):
        """Note the present state of a stream."""
        self._stream = stream or get_current_stream()
        self._until, self.seconds = self._stream.issued, time.perf_counter()

    def synchronize(self):
        """Wait for what was on the stream before."""
        if self._stream is not None:
            self._stream.arrive(self._until)

    @property
    def done(self):
        """Whether it is over: it is when asked."""
        self.synchronize()
        return True


def get_elapsed_time(start_event, end_event):
    """Milliseconds between two recorded events."""
    if start_event.disable_timing or end_event.disable_timing or None in (start_event.seconds, end_event.seconds):
        raise runtime.CUDARuntimeError("cudaErrorInvalidResourceHandle: an event without a time", 400)
    return (end_event.seconds - start_event.seconds) * 1000


def get_current_stream(device_id=-1):
    """The current stream of this thread."""
    return getattr(_thread, "stream", Stream.null)


def at(ptr):
    """The stream with a given handle."""
    if ptr not in _streams:
        raise runtime.CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle", 400)
    return _streams[ptr]


def synchronize_all():
    """Wait for every stream."""
    for stream in list(_streams.values()):
        stream.synchronize()


Stream.null = Stream(null=True)

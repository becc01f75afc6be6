"""NVRTC: only its version. The stand-in compiles with g++."""


class NVRTCError(RuntimeError):
    """Never raised."""


def getVersion():  # noqa: N802
    """The version that is imitated."""
    return 12, 9

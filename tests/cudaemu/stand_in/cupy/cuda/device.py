"""Devices: numbers, one of which is the current one."""

from cupy.cuda import runtime


class Device:
    """A device; without an argument the current one."""

    def __init__(self, device=None):
        self.id = runtime.getDevice() if device is None else int(device)
        self._before = []

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self):
        return hash(self.id)

    def __repr__(self):
        return f"<CUDA Device {self.id}>"

    def __enter__(self):
        self._before.append(runtime.getDevice())
        runtime.setDevice(self.id)
        return self

    def __exit__(self, *_):
        runtime.setDevice(self._before.pop())

    def use(self):
        """Make it the current one."""
        runtime.setDevice(self.id)

    def synchronize(self):
        """Wait for all its streams."""
        runtime.deviceSynchronize()

    @property
    def compute_capability(self):
        """That of a Hopper GPU."""
        return "90"

    @property
    def mem_info(self):
        """Free and all bytes."""
        return runtime.memGetInfo()

    @property
    def pci_bus_id(self):
        """A name that differs between devices."""
        return f"0000:{self.id:02X}:00.0"

    @property
    def attributes(self):
        """A few of CUDA's attributes."""
        return {
            "MultiProcessorCount": runtime.MULTIPROCESSORS, "MaxThreadsPerBlock": 1024, "WarpSize": 32,
            "MaxThreadsPerMultiProcessor": 2048, "MaxSharedMemoryPerBlock": 48 << 10, "L2CacheSize": 50 << 20,
            "MaxSharedMemoryPerBlockOptin": 227 << 10, "MaxSharedMemoryPerMultiprocessor": 228 << 10,
            "CooperativeLaunch": 1, "ComputeCapabilityMajor": 9, "ComputeCapabilityMinor": 0,
        }  # fmt: skip


def get_device_id():
    """Number of the current device."""
    return runtime.getDevice()


def get_compute_capability():
    """That of the current device."""
    return Device().compute_capability

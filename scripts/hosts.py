"""Hosts on one machine: own addresses, names, processes and memory, and a switch between them with limited links.

python -m scripts.hosts 2 --rate 1gbit -n 4 -- -m apps.bfs graph.h5 --verify

Each host is a set of Linux namespaces, so its ranks reach others only by messages over its link. All of it is gone when
this process ends, however it ends. It needs ``ip``, ``tc``, ``nsenter`` and ``unshare``, and to be root or allowed to
make user namespaces. Files are those of the machine.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts import mpirun

PATIENCE = 10.0  # seconds in which a host has to be there
NETWORK, SWITCH, LINK = "10.9.0.", 254, "eth0"
BURST, LATENCY = "256kb", "20ms"  # of a token bucket: what passes at once; how long a full queue holds a packet
# In the place of ssh: options, an address, and words for a shell. Files beside it say which process a host is.
LAUNCHER = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
read host < "${0%/*}/$1"
shift
exec nsenter --target "$host" USER --net --mount --uts --ipc --pid --wd="$PWD" sh -c "$*"
"""


class HostsError(Exception):
    """The machine does not let us make hosts."""


class Hosts:
    """So many hosts, while the block lasts.

    ::

        with Hosts(2, rate="1gbit") as hosts:
            subprocess.run([*hosts.launcher(4), sys.executable, "-m", "apps.bfs", "graph.h5"])
            print(hosts.sent())

    Parameters
    ----------
    count : int
        Their addresses are 10.9.0.1 and so on, their names host1 and so on.
    rate : str, optional
        Of each link, in either direction, as ``tc`` has it, such as ``1gbit``.

    Attributes
    ----------
    first : list of int
        The first process of each host, by the numbers of this machine.

    Raises
    ------
    HostsError
        With what the machine refused.
    """

    def __init__(self, count: int, rate: str | None = None) -> None:
        if not 1 <= count < SWITCH:
            raise HostsError(f"{count} hosts: expected 1 to {SWITCH - 1}")
        if missing := [name for name in ("ip", "tc", "nsenter", "unshare") if shutil.which(name) is None]:
            raise HostsError(f"no {' and no '.join(missing)} here: install iproute2 and util-linux")
        self.count, self._rate = count, rate
        self._as_user = os.geteuid() != 0
        self._processes: list[subprocess.Popen[str]] = []
        self.first: list[int] = []
        self._folder = tempfile.TemporaryDirectory(prefix="cusp-hosts-")

    def __enter__(self) -> "Hosts":
        try:
            user = ["--user", "--map-root-user"] if self._as_user else []
            self._keep(["unshare", *user, "--net", "--uts"])
            self._ip(f"link add {LINK} type bridge", f"addr add {NETWORK}{SWITCH}/24 dev {LINK}", f"link set {LINK} up")
            self._ip("link set lo up")
            for host in range(1, self.count + 1):
                self._add(host)
            launcher = Path(self._folder.name) / "launcher"
            launcher.write_text(LAUNCHER.replace("USER", "--user" if self._as_user else ""))
            launcher.chmod(0o700)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.communicate()
        self._folder.cleanup()

    def launcher(self, ranks: int | Sequence[int]) -> list[str]:
        """The words before ``python ...`` that start so many ranks, shared out among the hosts, or on each host."""
        folder = self._folder.name
        shares = [-(-ranks // self.count)] * self.count if isinstance(ranks, int) else ranks
        hosts = ",".join(f"{NETWORK}{host}:{share}" for host, share in enumerate(shares, 1))
        if mpirun.is_open_mpi():
            # rsh, even where an image says that there is no other host
            parameters = {"plm": "rsh", "plm_rsh_agent": f"{folder}/launcher"}
            parameters |= {"btl_tcp_if_include": LINK, "oob_tcp_if_include": LINK}
            options = [word for name, value in parameters.items() for word in ("--mca", name, value)]
            options += ["--host", hosts, "--bind-to", "none"]
        else:
            options = ["-launcher", "ssh", "-launcher-exec", f"{folder}/launcher", "-iface", LINK]
            options += ["-hosts", hosts]
        count = ranks if isinstance(ranks, int) else sum(ranks)
        return [*self._into(self._switch), mpirun.mpirun_path(), *options, "-n", str(count)]

    def sent(self) -> list[int]:
        """Bytes that each host has sent until now, with all headers of its network."""
        shown = json.loads(self._run(self._switch, "ip", "-s", "-j", "link", "show", "type", "veth"))
        by_name = {link["ifname"]: link["stats64"]["rx"]["bytes"] for link in shown}
        return [by_name.get(f"host{host}", 0) for host in range(1, self.count + 1)]

    def connect(self, host: int, up: bool) -> None:
        """Plug the link of a host into the switch, or pull it out."""
        self._ip(f"link set host{host} {'up' if up else 'down'}")

    def kill(self, host: int) -> None:
        """End a host, and with it all of its processes, as if its power had failed."""
        self._processes[host].kill()
        self._processes[host].wait()

    @property
    def _switch(self) -> int:
        """The process that holds the switch."""
        return self._processes[0].pid

    def _add(self, host: int) -> None:
        alone = ["--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
        pid = self._keep([*self._into(self._switch), "unshare", *alone])
        inner = int(Path(f"/proc/{pid}/task/{pid}/children").read_text())
        self.first.append(inner)
        Path(self._folder.name, f"{NETWORK}{host}").write_text(f"{inner}\n")
        self._ip(f"link add host{host} type veth peer name {LINK} netns {inner}")
        self._ip(f"link set host{host} master {LINK} up")
        setup = f"ip addr add {NETWORK}{host}/24 dev {LINK} && ip link set {LINK} up && ip link set lo up"
        self._run(inner, "sh", "-c", f"{setup} && hostname host{host} && mount -t tmpfs tmpfs /dev/shm", alone=True)
        if self._rate:
            bucket = ("root", "tbf", "rate", self._rate, "burst", BURST, "latency", LATENCY)
            self._run(inner, "tc", "qdisc", "add", "dev", LINK, *bucket, alone=True)
            self._run(self._switch, "tc", "qdisc", "add", "dev", f"host{host}", *bucket)

    def _keep(self, words: list[str]) -> int:
        """Start a process that holds namespaces until we end; returns when they are there."""
        process = subprocess.Popen(
            [*words, "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._processes.append(process)
        assert process.stdout and process.stderr
        if process.stdout.readline() != "\n":
            raise HostsError(process.stderr.read().strip())
        return process.pid

    def _ip(self, *commands: str) -> None:
        for command in commands:
            self._run(self._switch, "ip", *command.split())

    def _into(self, pid: int, alone: bool = False) -> list[str]:
        """The words before a command that runs where a process is."""
        rooms = ["--net", "--uts"] + (["--mount", "--ipc", "--pid"] if alone else [])
        return ["nsenter", "--target", str(pid), *(["--user"] if self._as_user else []), *rooms]

    def _run(self, pid: int, *words: str, alone: bool = False) -> str:
        done = subprocess.run([*self._into(pid, alone), *words], capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            raise HostsError(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout


def main() -> int:
    """Run a program on hosts, and say what each has sent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", type=int)
    parser.add_argument("--rate", help="of a link, such as 1gbit (default: no limit)")
    parser.add_argument("-n", "--ranks", type=int, help="of all hosts together (default: one each)")
    parser.add_argument("words", nargs="+", help="after --: those of a Python program")
    options = parser.parse_args()
    try:
        with Hosts(options.hosts, options.rate) as hosts:
            line = [*hosts.launcher(options.ranks or options.hosts), sys.executable, *options.words]
            code = subprocess.call(line, env=mpirun.environment())
            for host, sent in enumerate(hosts.sent(), 1):
                print(f"host{host} sent {sent:,} bytes")
    except HostsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())

"""Ranks that are forks of one process, which has loaded everything: a job starts in a fraction of the time.

The launcher starts ``python forked.py SOCKET ...`` for each rank, a stand-in. It hands what the launcher gave it, such
as its files, variables and the socket to the launcher, to the server, whose fork does the work. The stand-in passes on
the signals that it gets, and ends as the fork did, whose end it is if the stand-in is killed.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys

PASSED = (signal.SIGINT, signal.SIGTERM, signal.SIGCONT)
FAR = 500  # numbers of files that nobody else has
DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl


def stand_in(path: str, argv: list[str]) -> None:
    """Be a rank for the launcher, while a fork of the server does its work."""
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    numbers = [0, 1, 2, *filter(None, [int(os.environ.get("PMI_FD", "0"))])]
    text = json.dumps([argv, dict(os.environ), os.getcwd(), numbers]).encode()
    socket.send_fds(server, [struct.pack("q", len(text))], numbers)
    server.sendall(text)
    for number in numbers:
        os.close(number)
    for number in PASSED:
        signal.signal(number, lambda number, frame: server.send(bytes([number])))
    code = int.from_bytes(server.recv(4, socket.MSG_WAITALL), "little", signed=True)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def serve(path: str) -> list[str]:
    """Fork for each stand-in, until this process is killed; returns in the forks, with the arguments of each."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(100)
    ready = select.poll()
    ready.register(listening, select.POLLIN)
    ranks: dict[int, tuple[int, int, socket.socket]] = {}  # by the process and by the stand-in: pid, pidfd, stand-in
    while True:
        for number, _ in ready.poll():
            if number == listening.fileno():
                stand_in, _ = listening.accept()
                pid, argv = _fork(stand_in)
                if pid == 0:
                    for other in listening, stand_in, *(each for _, _, each in ranks.values()):
                        other.detach()  # their numbers are closed, and given anew
                    return argv
                pidfd = os.pidfd_open(pid)
                for other in pidfd, stand_in.fileno():
                    ranks[other] = pid, pidfd, stand_in
                    ready.register(other, select.POLLIN)
            elif number in ranks:
                pid, pidfd, stand_in = ranks[number]
                if number != pidfd:
                    with contextlib.suppress(ConnectionError):
                        if asked := stand_in.recv(1):
                            os.kill(pid, asked[0])
                            continue
                    os.kill(pid, signal.SIGKILL)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                for other in pidfd, stand_in.fileno():
                    ready.unregister(other)
                    del ranks[other]
                with contextlib.suppress(OSError):
                    stand_in.sendall(code.to_bytes(4, "little", signed=True))
                stand_in.close()
                os.close(pidfd)


def _fork(stand_in: socket.socket) -> tuple[int, list[str]]:
    head, files, _, _ = socket.recv_fds(stand_in, 8, 4)
    text = bytearray()
    while len(text) < struct.unpack("q", head)[0]:
        text += stand_in.recv(1 << 16)
    argv, variables, folder, numbers = json.loads(text)
    if pid := os.fork():
        for file in files:
            os.close(file)
        return pid, []
    ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)  # nothing outlives the server
    os.nice(5)  # the server, stand-ins and launchers come first
    far = [fcntl.fcntl(file, fcntl.F_DUPFD, FAR) for file in files]
    os.closerange(3, FAR)
    for file, number in zip(far, numbers):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    return 0, argv


if __name__ == "__main__":
    stand_in(sys.argv[1], sys.argv[2:])

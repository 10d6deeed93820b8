#!/usr/bin/env python3
"""A slow link: what goes in at one end comes out at the other some time later.

    link.py SECONDS --hosts NAMESPACE NAMESPACE DEVICE      packets between the devices (TUN) of two network namespaces
    link.py SECONDS --command COMMAND...                    standard input and output of a command
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import queue
import struct
import subprocess
import sys
import threading
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def carry(source: int, sink: int, delay: float, packets: bool) -> threading.Thread:
    """Copy from one descriptor to another, each piece `delay` seconds late, until there is no more. Packets that nobody takes are lost."""
    under_way: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

    def take() -> None:
        while True:
            piece = os.read(source, 65536)
            under_way.put((time.monotonic() + delay, piece))
            if not piece:
                return

    def give() -> None:
        while True:
            due, piece = under_way.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not piece:
                return os.close(sink)
            try:
                while piece:
                    piece = piece[os.write(sink, piece) :]
            except OSError:
                if not packets:
                    raise

    threading.Thread(target=take, daemon=True).start()
    thread = threading.Thread(target=give, daemon=True)
    thread.start()
    return thread


def open_tun(namespace: str, device: str) -> int:
    """The device of a namespace, which this thread is in from then on."""
    with open(f"/run/netns/{namespace}") as there:
        if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), 0):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def main() -> None:
    delay, kind, *names = sys.argv[1:]
    if kind == "--hosts":
        one, other = (open_tun(namespace, names[2]) for namespace in names[:2])
        print("ready", flush=True)
        ends = [carry(one, other, float(delay), True), carry(other, one, float(delay), True)]
    else:
        command = subprocess.Popen(names, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        carry(0, command.stdin.fileno(), float(delay), False)
        ends = [carry(command.stdout.fileno(), 1, float(delay), False)]
    for end in ends:
        end.join()


if __name__ == "__main__":
    main()

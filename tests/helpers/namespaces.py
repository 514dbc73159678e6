"""Two network namespaces and a wire between them, made and removed by the test that needs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Self

MISSING = (
    "network namespaces take root"
    if os.geteuid() != 0
    else "network namespaces take the program ip (Debian: iproute2)"
    if shutil.which("ip") is None
    else None
)


# Part of a program that becomes another user: it uses everything once, so that all is imported before files of this
# user cannot be read any more: each wire of software NICs in turn. The program has imported `threading` and `rdma`, and
# HERE is its address.
LOAD = """
def load(wire):
    def answer(listener):
        with listener.get_request().wait(60) as connection:
            connection.recv(connection.reg_mr(bytearray(8)))
            connection.accept().wait(60)
            connection.closed.wait(60)

    with rdma.listen(HERE, 0, wire=wire) as listener:
        thread = threading.Thread(target=answer, args=(listener,), daemon=True)
        thread.start()
        with rdma.connect(HERE, listener.port, wire=wire) as connection:
            connection.send(connection.reg_mr(bytearray(8))).wait(60)
        thread.join(60)


for every_wire in ("rocev2", "rocev2-udp"):
    load(every_wire)
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def may_be_made() -> str | None:
    """Why namespaces cannot be made here, or None."""
    if MISSING is not None:
        return MISSING
    name = f"weftwork-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True, text=True)
    if made.returncode:
        return f"this machine makes no network namespaces: {made.stderr.strip()}"
    ip("netns", "delete", name)
    return None


def users_may_be_two() -> str | None:
    """Why programs of two users cannot run in a namespace of their own here, or None.

    `may_be_made` asks for root already, which becoming another user takes too.
    """
    return may_be_made() or (
        "this takes the program unshare (Debian: util-linux)" if not shutil.which("unshare") else None
    )


def command_in_namespace(program: str, *arguments: str) -> list[str]:
    """Command that runs a Python program in a network namespace that has the loopback alone, and ends with it."""
    begin = 'ip link set lo up && exec "$0" -c "$@"'
    return ["unshare", "-n", "sh", "-c", begin, sys.executable, program, *arguments]


class Wire:
    """A pair of veth devices named ``wire``, each in a namespace of its own; gone when the block ends."""

    def __init__(self, mtu: int, addresses: tuple[str, str]) -> None:
        self.mtu = mtu
        self.addresses = addresses
        self.names = tuple(f"weftwork-{os.getpid()}-{end}" for end in ("a", "b"))

    def __enter__(self) -> Self:
        for name in self.names:
            ip("netns", "add", name)
        first, second = self.names
        mtu = ("mtu", str(self.mtu))
        ip("link", "add", "wire", "netns", first, *mtu, "type", "veth", "peer", "name", "wire", "netns", second, *mtu)
        for name, address in zip(self.names, self.addresses, strict=True):
            ip("-n", name, "address", "add", address, "dev", "wire", *(("nodad",) if ":" in address else ()))
            for device in ("lo", "wire"):
                ip("-n", name, "link", "set", device, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)

    def run(self, end: int, *words: str) -> None:
        subprocess.run(["ip", "netns", "exec", self.names[end], *words], check=True, capture_output=True)

    def python(self, end: int, program: str, *words: str) -> subprocess.Popen[str]:
        """Start a program at one end."""
        return subprocess.Popen(
            ["ip", "netns", "exec", self.names[end], sys.executable, "-c", program, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

"""The kernel's software NICs, rxe (RoCEv2) and siw (iWARP), on a wire to a network namespace with Weftwork in it.

The kernel's NIC stays in the namespace of the test run, since rxe receives in the first namespace alone
(rxe_net_init in Linux rxe_net.c). The test enters the new namespace, so that sockets of Weftwork are made there.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import time
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, Self

from helpers.namespaces import ip, may_be_made

PATIENCE_S: Final = 60.0
MODULES: Final = {"rxe": "rdma_rxe", "siw": "siw"}
PROGRAM: Final = Path(__file__).with_name("pyverbs_end.py")
DEBIAN_PYTHON: Final = "/usr/bin/python3"  # that of the package python3-pyverbs
_CLONE_NEWNET: Final = 0x40000000  # Linux include/uapi/linux/sched.h
_TENTATIVE: Final = 0x40  # IFA_F_TENTATIVE in Linux include/uapi/linux/if_addr.h
_BUFFER: Final = "stdbuf"


def why_no(kind: str) -> str | None:
    """Why the kernel's NIC cannot be had here, or None."""
    missing = [program for program in ("rdma", "nsenter", _BUFFER) if shutil.which(program) is None]
    if may_be_made() is not None or missing:
        return may_be_made() or f"takes the programs {', '.join(missing)} (Debian: iproute2, util-linux, coreutils)"
    name = f"probe{os.getpid()}"
    made = subprocess.run(
        ["rdma", "link", "add", name, "type", kind, "netdev", "lo"], check=False, capture_output=True, text=True
    )
    if made.returncode:
        release = os.uname().release
        return f"the kernel {release} offers no {kind} (module {MODULES[kind]}): {(made.stderr or made.stdout).strip()}"
    subprocess.run(["rdma", "link", "delete", name], check=True, capture_output=True)
    return None


def why_no_program(*programs: str) -> str | None:
    """Why programs of rdma-core cannot be had, or None."""
    missing = [program for program in programs if shutil.which(program) is None]
    return f"takes the programs {', '.join(missing)} (Debian: rdmacm-utils, ibverbs-utils)" if missing else None


def why_no_pyverbs() -> str | None:
    """Why rdma-core's Python module cannot be had, or None."""
    program = (DEBIAN_PYTHON, "-c", "import pyverbs.qp")
    has_it = shutil.which(DEBIAN_PYTHON) and not subprocess.run(program, check=False, capture_output=True).returncode
    return None if has_it else "takes the Python module pyverbs of rdma-core (Debian: python3-pyverbs)"


class KernelNic:
    """A NIC of the kernel, and a namespace at the other end of its wire; the block runs in the namespace.

    Parameters
    ----------
    kind : rxe or siw
    mtu : of the wire
    ipv6 : instead of IPv4

    Attributes
    ----------
    address, peer_address : of the kernel's NIC, and of Weftwork
    """

    def __init__(self, kind: str, *, mtu: int = 1500, ipv6: bool = False) -> None:
        self._kind: Final = kind
        self._mtu: Final = mtu
        self._prefix: Final = 64 if ipv6 else 24
        net = "fd00:215::" if ipv6 else "10.215.1."
        self.address: Final = f"{net}1"
        self.peer_address: Final = f"{net}2"
        self.name: Final = f"knic{os.getpid() % 100_000}"  # of the NIC and of its end of the wire
        self._namespace: Final = f"weftwork-{os.getpid()}-peer"
        self._libc: Final = ctypes.CDLL(None, use_errno=True)
        self._home = -1
        self._programs: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        ip("netns", "add", self._namespace)
        try:
            self._make()
            self._enter(self._namespace)
        except BaseException:
            self._remove()
            raise
        return self

    def _make(self) -> None:
        mtu = ("mtu", str(self._mtu))
        peer = ("peer", "name", "wire", "netns", self._namespace, *mtu)
        ip("link", "add", self.name, *mtu, "type", "veth", *peer)
        for address, where, device in (
            (self.address, (), self.name),
            (self.peer_address, ("-n", self._namespace), "wire"),
        ):
            nodad = ("nodad",) if ":" in address else ()
            ip(*where, "address", "add", f"{address}/{self._prefix}", "dev", device, *nodad)
            ip(*where, "link", "set", device, "up")
        ip("-n", self._namespace, "link", "set", "lo", "up")
        add = ("rdma", "link", "add", self.name, "type", self._kind, "netdev", self.name)
        subprocess.run(add, check=True, capture_output=True)
        end_s = time.monotonic() + PATIENCE_S
        while not self._is_ready():  # the kernel enters addresses a little later
            assert time.monotonic() < end_s, f"no GID for {self.address}"

    def _is_ready(self) -> bool:
        """Whether addresses can be used; the kernel resolves those of IPv6 from its link-local one (ndisc_send_ns)."""
        if self._kind == "rxe" and self.gid_index is None:
            return False
        lines = [line.split() for line in Path("/proc/net/if_inet6").read_text().splitlines()]
        link_local = [int(flags, 16) for *_, scope, flags, name in lines if (name, scope) == (self.name, "20")]
        return ":" not in self.address or any(not flags & _TENTATIVE for flags in link_local)

    def __exit__(self, *_: object) -> None:
        for program in self._programs:
            program.kill()
            program.communicate()
        self._enter(None)
        self._remove()

    def _remove(self) -> None:
        subprocess.run(["rdma", "link", "delete", self.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "delete", self.name], check=False, capture_output=True)
        ip("netns", "delete", self._namespace)
        os.close(self._home)

    def _enter(self, namespace: str | None) -> None:
        """Take this thread into a namespace, or home."""
        into = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC) if namespace else os.dup(self._home)
        try:
            if self._libc.setns(into, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"setns to {namespace or 'the first namespace'}")
        finally:
            os.close(into)

    @property
    def gid_index(self) -> int | None:
        """Index of the address in the table of GIDs, or None."""
        wanted = ip_address(self.address)
        packed = wanted.packed if wanted.version == 6 else bytes(10) + b"\xff\xff" + wanted.packed
        for entry in Path(f"/sys/class/infiniband/{self.name}/ports/1/gids").iterdir():
            try:
                text = entry.read_text()
            except OSError:  # the entry is empty
                continue
            if ip_address(text.strip()).packed == packed:
                return int(entry.name)
        return None

    @property
    def counters(self) -> dict[str, int]:
        """Counters of the kernel's NIC that are not 0."""
        files = Path(f"/sys/class/infiniband/{self.name}/ports/1/hw_counters").iterdir()
        counts = {file.name: int(file.read_text()) for file in files if file.name != "lifespan"}
        return {name: count for name, count in counts.items() if count}

    def lose(self, percent: int) -> None:
        """Let both directions of the wire lose packets at random."""
        loss = ("root", "netem", "loss", f"{percent}%")
        subprocess.run([*self.at_home, "tc", "qdisc", "replace", "dev", self.name, *loss], check=True)
        subprocess.run(["tc", "qdisc", "replace", "dev", "wire", *loss], check=True)

    @property
    def at_home(self) -> tuple[str, ...]:
        """Words in front of a command that runs where the kernel's NIC is."""
        return ("nsenter", f"--net=/proc/{os.getpid()}/fd/{self._home}")

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a program that uses the kernel's NIC; it is ended with the block."""
        program = subprocess.Popen(
            [*self.at_home, _BUFFER, "-oL", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._programs.append(program)
        return program

    def listening(self, *words: str, port: int) -> subprocess.Popen[str]:
        """Start a program and wait until it listens on a port of the RDMA connection manager."""
        program = self.start(*words)
        end_s = time.monotonic() + PATIENCE_S
        while f":{port} " not in self._resources():
            assert program.poll() is None, program.communicate()[0]
            assert time.monotonic() < end_s, f"{words} does not listen: {self._resources()}"
        return program

    def _resources(self) -> str:
        show = [*self.at_home, "rdma", "resource", "show", "cm_id"]
        return subprocess.run(show, check=True, capture_output=True, text=True).stdout + " "


class PyverbsEnd:
    """A queue pair of the kernel's NIC, driven by rdma-core's pyverbs in another process.

    Parameters
    ----------
    nic : of the kernel
    kind : RC, UC or UD
    size_bytes : of its memory
    """

    def __init__(self, nic: KernelNic, kind: str = "RC", size_bytes: int = 1 << 20) -> None:
        self._program: Final = nic.start(DEBIAN_PYTHON, str(PROGRAM))
        self.nic: Final = nic
        made = self.do("open", name=nic.name, gid_index=nic.gid_index, kind=kind, size_bytes=size_bytes)
        self.qp_num: Final[int] = made["qp_num"]
        self.addr: Final[int] = made["addr"]
        self.rkey: Final[int] = made["rkey"]

    def do(self, order: str, **words: Any) -> Any:
        """Give an order of `pyverbs_end` and return its answer."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps({"order": order, **words}) + "\n")
        self._program.stdin.flush()
        answer = self._program.stdout.readline()
        assert answer.startswith("{"), answer + self._program.communicate()[0]
        return json.loads(answer)["answer"]

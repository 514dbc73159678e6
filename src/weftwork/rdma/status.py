"""Status of a device for ``weftwork rdma show``: its objects and counters, without any key.

A device listens on a socket of the Unix domain, which other processes of the same user may ask. The device answers
whenever it moves packets or waits, so that no other thread is needed. The answer is a file in memory, whose descriptor
is sent: a reader that never reads cannot keep the device waiting.
Source: unix(7) (abstract names, SO_PEERCRED, SCM_RIGHTS), memfd_create(2); the objects are those of rdma-resource(8),
the counters those of rdma-statistic(8).
Leaves out: local and remote keys, which would let the reader use memory; devices of simulated hosts.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import socket
import weakref
from ipaddress import ip_address
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.connection_manager import ConnectionManager
from weftwork.rdma.queue_pair import RdmaQueuePair
from weftwork.rdma.verbs import AccessFlags

if TYPE_CHECKING:
    from weftwork.rdma.device import RdmaDevice

__all__ = ["CREDENTIALS", "STATUS_NAME", "STATUS_VERSION", "StatusDoor", "device_status"]

STATUS_NAME: Final = "weftwork-rdma-status/"  # abstract name, then the process and the number of the device
STATUS_VERSION: Final = 1  # of the answer
CREDENTIALS: Final = Struct("=iII")  # struct ucred: pid, uid, gid
_EVERY: Final = 64  # chosen: steps of the device between two looks, since a look is a system call
_BACKLOG: Final = 8  # chosen: readers that may wait
_numbers: Final = itertools.count()


class StatusDoor:
    """The socket at which a device answers.

    Parameters
    ----------
    device : whose; the door closes with it
    """

    def __init__(self, device: RdmaDevice) -> None:
        self._device: Final = weakref.ref(device)
        self._steps = 0
        self._socket: Final = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        self.close: Final = weakref.finalize(device, self._socket.close)
        while True:
            try:
                self._socket.bind(f"\0{STATUS_NAME}{os.getpid()}/{next(_numbers)}")
            except OSError as error:
                if error.errno == errno.EADDRINUSE:  # a process of another container with the same number
                    continue
                self.close()
                raise UsageError(f"device: its status socket could not be opened: {error.strerror}") from error
            break
        self._socket.listen(_BACKLOG)

    def fileno(self) -> int:
        """Descriptor that is readable when somebody asks."""
        return self._socket.fileno()

    def look(self) -> None:
        """Answer those who ask, once in many calls.

        The device calls it at each step, with its lock held.
        """
        self._steps += 1
        if self._steps % _EVERY:
            return
        while True:
            try:
                asker, _ = self._socket.accept()
            except BlockingIOError:
                return
            with asker:
                self._answer(asker)

    def _answer(self, asker: socket.socket) -> None:
        _, uid, _ = CREDENTIALS.unpack(asker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
        device = self._device()
        if uid != os.getuid() or device is None:
            return
        file = os.memfd_create("weftwork-rdma-status", os.MFD_CLOEXEC)
        try:
            data = memoryview(json.dumps(device_status(device)).encode())
            while data:
                data = data[os.write(file, data) :]
            socket.send_fds(asker, [b"\0"], [file])
        except OSError:
            device.port.counters["status_not_sent"] += 1  # the reader has gone
        finally:
            os.close(file)


def device_status(device: RdmaDevice) -> dict[str, Any]:
    """Objects and counters of a device, as JSON holds them.

    It is called with the lock of the device held.
    """
    nic, memory = device.nic, device.nic.memory
    ends = nic.ends()
    managers = [end for end in ends if isinstance(end, ConnectionManager)]
    return {
        "version": STATUS_VERSION,
        "address": str(ip_address(device.port.address)),
        "queue_pairs": [_queue_pair(end) for end in ends if isinstance(end, RdmaQueuePair)],
        "regions": [
            {
                "address": region.addr,
                "bytes": region.length,
                "rights": _rights(region.access),
                "pinned": region.is_pinned,
            }
            for region in memory.regions()
        ],
        "windows": len(memory) - len(memory.regions()),
        "connections": [
            {
                "peer": str(ip_address(conversation.address)),
                "port": conversation.port,
                "asked_here": conversation.is_active,
                "state": conversation.state.value,
                "queue_pair": conversation.qp.qp_num if conversation.qp is not None else None,
            }
            for manager in managers
            for conversation in manager.conversations()
        ],
        "listens": [port for manager in managers for port in manager.ports()],
        "counters": {
            "device": dict(nic.counters),
            "port": dict(device.port.counters),
            "connection_manager": dict(managers[0].counters) if managers else {},
            "ended_queue_pairs": dict(nic.ended_counters),
        },
    }


def _queue_pair(qp: RdmaQueuePair) -> dict[str, Any]:
    has_peer = bool(qp.attr.remote_address)
    return {
        "number": qp.qp_num,
        "type": qp.qp_type.name,
        "state": qp.state.name,
        "peer": str(ip_address(qp.attr.remote_address)) if has_peer else None,
        "peer_queue_pair": qp.attr.dest_qp_num if has_peer else None,
        "path_mtu": qp.attr.path_mtu,
        "sends": len(qp.requester.entries),
        "receives": len(qp.recv_queue),
        "counters": dict(qp.counters),
    }


def _rights(access: AccessFlags) -> list[str]:
    return [str(flag.name).lower() for flag in AccessFlags if flag in access]

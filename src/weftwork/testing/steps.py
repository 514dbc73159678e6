"""Run a policy's plain and compiled steps side by side.

Their records have the same bits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weftwork.base.errors import PolicyError
from weftwork.policies.load import LoadedPolicy
from weftwork.policies.spread import spread_contradiction

__all__ = ["BREAKS", "DifferenceError", "Finding", "Twin", "spread_findings"]

Record = NDArray[np.uint8]
# Checks after which nothing more is asked of a step: it fails, or a run with it would never end.
BREAKS: Final = frozenset(
    {"compiled_equals_plain", "no_packet_breaks_the_step", "no_signal_breaks_the_step", "timers_move_on"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One violation of a policy's contract.

    It has the check's name, and the event in words.
    """

    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.text}"


class DifferenceError(AssertionError):
    """The compiled step and the plain step do not agree."""


class Twin:
    """One state in two forms: a Python object and a compiled record.

    Parameters
    ----------
    policy : the policy
    port_count : ports of the switch, for a port selection

    Attributes
    ----------
    state, receiver, shared : plain states; the last two None where the policy has none
    ports : plain records of the ports of the switch, for a port selection with a ``port_state``; else None
    error : of the last call, where the step failed in both forms; else None
    """

    def __init__(self, policy: LoadedPolicy, *, port_count: int = 0) -> None:
        self.policy = policy
        self.state = policy.new_state()
        self.receiver = policy.new_receiver_state()
        self.shared = policy.new_shared_state()
        self.ports = policy.new_port_states(port_count)
        self.error: PolicyError | None = None
        self._compiled = policy.compile()
        self._params = np.frombuffer(policy.params_bytes, np.uint8).copy()
        pointers = [ctypes.c_void_p] * (5 if policy.kind == "port_selection" else 3)
        self._step = ctypes.CFUNCTYPE(ctypes.c_int32, *pointers)(self._compiled.step_address)
        address = self._compiled.receive_address
        self._receive = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(address) if address else None

    def step(self, signal: Any, candidates: Sequence[Any] | None = None) -> None:  # noqa: ANN401
        """Call both forms of the step.

        Raises
        ------
        DifferenceError : one fails and the other does not, or they write different bits
        """
        layout = self.policy.signal_layout
        state = _record(self.policy.state.pack(self.state))
        record = _record(layout.pack(signal))
        addresses: list[int | None] = [self._params.ctypes.data, state.ctypes.data]
        rows = None
        if candidates is not None:
            array = _record(b"".join(self.policy.candidate_layout.pack(c) for c in candidates))
            if self.policy.port_state is not None:
                rows = _record(b"".join(map(self.policy.port_state.pack, self.ports or ())))
            addresses += [None if rows is None else rows.ctypes.data, record.ctypes.data, array.ctypes.data]
        else:
            addresses.append(record.ctypes.data)
        status = self._step(*addresses)
        if self._fails_alike(status, lambda: self.policy.call_step(self.state, signal, candidates, self.ports)):
            return
        if rows is not None and self.policy.port_state is not None:
            size = self.policy.port_state.dtype.itemsize
            for at, row in enumerate(self.ports or ()):
                self._same(f"state of port {at}", self.policy.port_state, row, rows[at * size : (at + 1) * size])
        self._same("state", self.policy.state, self.state, state)
        self._same("signal", layout, signal, record)

    def receive(self, signal: Any) -> None:  # noqa: ANN401
        """Call both forms of the receiver's step, as `step` does."""
        if self._receive is None or self.policy.receiver is None:
            raise DifferenceError(f"{self.policy.name} has no receiver's step")
        state = _record(self.policy.receiver.pack(self.receiver))
        record = _record(self.policy.signal_layout.pack(signal))
        shared = None if self.policy.shared is None else _record(self.policy.shared.pack(self.shared))
        status = self._receive(
            self._params.ctypes.data, state.ctypes.data, shared.ctypes.data if shared is not None else None,
            record.ctypes.data,
        )  # fmt: skip
        if self._fails_alike(status, lambda: self.policy.call_receive(self.receiver, self.shared, signal)):
            return
        self._same("receiver state", self.policy.receiver, self.receiver, state)
        if self.policy.shared is not None and shared is not None:
            self._same("shared state", self.policy.shared, self.shared, shared)

    def _fails_alike(self, status: int, plain: Callable[[], None]) -> bool:
        self.error = None
        try:
            plain()
        except PolicyError as error:
            self.error = error
            # What is out of range is the engine's to find after a call that returned 0.
            if status == 0 and error.__cause__ is not None:
                raise DifferenceError(f"the plain step failed and the compiled one did not: {error}") from error
            return True
        if status != 0:
            raise DifferenceError(f"the compiled step failed and the plain one did not, with {status}")
        return False

    @staticmethod
    def _same(what: str, layout: Any, plain: Any, record: Record) -> None:  # noqa: ANN401
        packed = layout.pack(plain)
        if packed != record.tobytes():
            theirs = layout.unpack(record.tobytes())
            raise DifferenceError(f"{what} of the plain step: {plain}; of the compiled one: {theirs}")


def spread_findings(policy: LoadedPolicy) -> Iterator[Finding]:
    """Check that a selection spreads packets as its ``PLUGIN`` declares.

    A path or port selection may also declare nothing.
    """
    text = spread_contradiction(policy)
    if text is not None:
        yield Finding(check="spreads_as_declared", text=text)


def _record(data: bytes) -> Record:
    return np.frombuffer(data, np.uint8).copy()

"""What the reference engine decides that no counter of an outcome tells, counted while it runs.

Functions of the reference are wrapped for the time of a block. Results stay as they are: each wrapper returns what the
function returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from weftwork.engine.reference import receiver
from weftwork.engine.reference.port import Port
from weftwork.engine.reference.sender import Sender
from weftwork.engine.reference.shared_buffer import SharedBuffer
from weftwork.engine.reference.switch import SwitchNode
from weftwork.wire.credits import code_to_credits

__all__ = ["DECISIONS", "watched"]

DECISIONS = frozenset(
    {
        "a window that holds back",
        "a message that waits for credit",
        "credits rounded down",
        "classes that share a port by weight",
        "a strict class before another",
        "headroom that counts as used again",
        "a pause that is asked for again",
    }
)


@contextmanager
def watched() -> Generator[Counter[str]]:
    """Count, within the block, each of `DECISIONS`."""
    found: Counter[str] = Counter()

    def window(allows: Callable[..., bool]) -> Callable[..., bool]:
        def counted(sender: Sender, seq: int) -> bool:
            result = allows(sender, seq)
            found["a window that holds back"] += not result
            return result

        return counted

    def credit(lacks: Callable[..., bool]) -> Callable[..., bool]:
        def counted(sender: Sender) -> bool:
            result = lacks(sender)
            found["a message that waits for credit"] += result
            return result

        return counted

    def rounding(code_of: Callable[[int], int]) -> Callable[[int], int]:
        def counted(credit_count: int) -> int:
            code = code_of(credit_count)
            found["credits rounded down"] += code_to_credits(code) != credit_count
            return code

        return counted

    def schedule(choose: Callable[..., int]) -> Callable[..., int]:
        def counted(switch: SwitchNode, egress: Any, ready: list[int]) -> int:
            chosen = choose(switch, egress, ready)
            is_weighted = switch.config.weights[chosen] > 0
            found["classes that share a port by weight"] += len(ready) > 1 and is_weighted
            found["a strict class before another"] += len(ready) > 1 and not is_weighted
            return chosen

        return counted

    def headroom(settle: Callable[..., None]) -> Callable[..., None]:
        def counted(buffer: SharedBuffer, port: int, traffic_class: int) -> None:
            found["headroom that counts as used again"] += buffer.ingress[port][traffic_class].headroom_used_bytes > 0
            settle(buffer, port, traffic_class)

        return counted

    def refresh(again: Callable[..., None]) -> Callable[..., None]:
        def counted(port: Port, traffic_class: int) -> None:
            is_due = port.refresh_at_ps[traffic_class] == port.clock.now_ps
            found["a pause that is asked for again"] += is_due
            again(port, traffic_class)

        return counted

    places: list[tuple[Any, str, Callable[..., Any]]] = [
        (Sender, "_window_allows", window),
        (Sender, "_lacks_credits", credit),
        (receiver, "credits_to_code", rounding),
        (SwitchNode, "_schedule", schedule),
        (SharedBuffer, "settle_headroom", headroom),
        (Port, "_refresh", refresh),
    ]
    with ExitStack() as stack:
        for owner, name, wrap in places:
            stack.enter_context(mock.patch.object(owner, name, wrap(getattr(owner, name))))
        yield found

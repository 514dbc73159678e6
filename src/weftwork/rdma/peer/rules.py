"""The rules of a script, counted: which rule takes a packet.

Leaves out: what is then done, see `scripted`.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weftwork.rdma.peer.packets import SeenPacket
    from weftwork.rdma.peer.script import PeerScript, RuleKeys

__all__ = ["RuleBook"]


class RuleBook:
    """Rules in the order of the script.

    Parameters
    ----------
    script : with the rules and the seed of their draws

    Attributes
    ----------
    applied : packets that each rule took
    """

    def __init__(self, script: PeerScript) -> None:
        self._rules: Final = script.rules
        self._matched: Final = [0] * len(script.rules)
        self._luck: Final = random.Random(script.seed)
        self.applied: Final = [0] * len(script.rules)

    def take(self, packet: SeenPacket) -> RuleKeys | None:
        """Rule for a packet, or None; every rule counts the packets that match it."""
        found = None
        for index, rule in enumerate(self._rules):
            if rule.sender != packet.sender or rule.packet not in packet.words:
                continue
            if rule.psn is not None and rule.psn != packet.psn:
                continue
            self._matched[index] += 1
            number = self._matched[index] - rule.nth
            is_due = number >= 0 and (rule.times is None or number < rule.times)
            if is_due and rule.chance is not None:
                is_due = self._luck.random() < rule.chance
            if is_due and found is None:
                self.applied[index] += 1
                found = rule
        return found

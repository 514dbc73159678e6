"""Memory and time of a packet run, and the machine's limit.

The estimate is that of `weftwork run`, made without routes and tables; seconds follow from packet-hops and messages.
Leaves out: policies of the user's own, whose steps may be slow; other work on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.base.memory import memory_limit, memory_words
from weftwork.study.prepare.engine_settings import policies_of
from weftwork.study.prepare.estimate import amounts_of, estimate
from weftwork.study.prepare.job_volume import volume
from weftwork.study.prepare.queue_pairs import with_queue_pairs
from weftwork.study.prepare.training import training_programs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.prepare.training import TrainingJob

__all__ = ["PacketCost", "PacketLimit", "packet_cost"]

# Fitted to packet runs of gpt-1.7b on 32 GPUs of dgx-h100, one of few messages and one of many, on a 2-core machine
HOP_S: Final = 140e-9
MESSAGE_S: Final = 6e-6
MOST_S: Final = 600.0  # chosen: of a run, ten minutes; about as long as the search itself for 16,384 GPUs


@dataclass(frozen=True, kw_only=True, slots=True)
class PacketCost:
    """The memory and work of a packet run.

    Attributes
    ----------
    memory_bytes : at the most
    packet_hops, messages : of the run; packet-hops are an upper estimate
    """

    memory_bytes: int
    packet_hops: int
    messages: int

    @property
    def wall_s(self) -> float:
        """Seconds of the engine."""
        return HOP_S * self.packet_hops + MESSAGE_S * self.messages

    def __str__(self) -> str:
        return (
            f"about {memory_words(self.memory_bytes)} and {_clock(self.wall_s)} "
            f"({plural(self.packet_hops, 'packet-hop')})"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class PacketLimit:
    """The largest packet run that is allowed."""

    memory_bytes: int
    wall_s: float = MOST_S

    @classmethod
    def of_machine(cls) -> PacketLimit:
        """The limit of this process."""
        return cls(memory_bytes=memory_limit().limit_bytes)

    def holds(self, cost: PacketCost) -> bool:
        """Whether a run fits."""
        return cost.memory_bytes <= self.memory_bytes and cost.wall_s <= self.wall_s

    def __str__(self) -> str:
        return f"{memory_words(self.memory_bytes)} and {_clock(self.wall_s)}"


def packet_cost(scenario: Scenario, fabric: Fabric, jobs: Sequence[TrainingJob]) -> PacketCost:
    """Estimate a packet run of training jobs.

    Parameters
    ----------
    scenario : of ``engine.fidelity: packet``
    fabric : on which it runs
    jobs : of `weftwork.study.prepare.training.training_jobs`

    Raises
    ------
    ConfigError : packets cannot run these jobs
    """
    findings = Findings(source=scenario.source)
    steps = training_programs(scenario, fabric, jobs, findings)
    job = with_queue_pairs(scenario, steps, policies_of(scenario), findings)
    sent = volume(job)
    needed = estimate(scenario, amounts_of(scenario, fabric, job, sent))
    return PacketCost(memory_bytes=needed.memory_bytes, packet_hops=needed.work, messages=sent.messages)


def _clock(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds < 60 else f"{seconds / 60:,.1f} min"

"""Requirements of policies on switches and transport, tested before a run.

A policy names its needs in ``PLUGIN.needs``; a fabric or a transport that lacks one refuses the scenario with a
sentence. What the packet engine always has is never refused: times, echoes and requests cost bytes in headers, and
queues, distances and longer paths (``queue``, ``hops-left``, ``non-minimal``) cost nothing.
Reordering is judged apart (`check_reordering`), since a user may force it. Flow
control needs pauses that last until they are refreshed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from weftwork.base.fix import Settings
from weftwork.engine.ecn import least_unmarked_bytes
from weftwork.engine.headroom import refresh_wait_bytes
from weftwork.policies.interface import HOPS
from weftwork.policies.needed import reads_host_delay, unfilled_reads
from weftwork.policies.reads import accesses
from weftwork.topology.routing import attachments, hops_left

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from weftwork.base.findings import Findings
    from weftwork.policies.interface import PortSelection
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.routing import Routing
    from weftwork.spec.transport import Transport

__all__ = [
    "check_detours", "check_pauses", "check_reordering", "check_requirements", "check_telemetry", "note_host_delays",
    "note_pauses", "note_reordering", "note_unfilled", "switches_on_longest_path",
]  # fmt: skip

_HALF_QUANTUM_BYTES = 32  # a quantum is 512 bit times (IEEE 802.3, annex 31B); a pause is sent again after half of it
_KEYS = ("transport.congestion_control", "transport.path_selection", "transport.port_selection")


def check_requirements(
    fabric: Fabric, transport: Transport, policies: Sequence[LoadedPolicy | None], findings: Findings
) -> None:
    """Find requirements that the fabric or the transport does not meet.

    Parameters
    ----------
    fabric : its switches offer ECN and telemetry, or do not
    transport : its priorities are lossless, or are not
    policies : congestion control, path selection and port selection, in this order; None where there is none
    findings : take each mistake once: switches that differ in their hash alone say the same
    """
    for key, text in dict.fromkeys(_unmet(fabric, transport, policies)):
        findings.wrong(key, text)


def _unmet(fabric: Fabric, transport: Transport, policies: Sequence[LoadedPolicy | None]) -> Iterator[tuple[str, str]]:
    """Yield the key and the words of each requirement that is not met."""
    yield from (("transport", text) for text in transport.contradictions())
    unmarked = least_unmarked_bytes(fabric)
    for key, policy in zip(_KEYS, policies, strict=True):
        if policy is None:
            continue
        needs = policy.plugin.needs
        if "trimming" in needs:
            yield from _untrimmed(transport, key, policy.name)
        for device, unmarked_bytes in zip(fabric.switches, unmarked, strict=True):
            marks = unmarked_bytes < device.buffer_bytes  # whether a queue can ever be long enough for a mark
            if not needs.isdisjoint(("telemetry", "path-load")) and not device.telemetry:
                offered = " and ".join(_offered(transport, marks=marks)) or "neither ECN nor flow control"
                text = f"{policy.name} needs in-band telemetry; switch '{device.name}' offers {offered}; set"
                yield key, f"{text} fabric.switch.telemetry: true"
            if "ecn" in needs and not marks:
                text = f"{policy.name} needs ECN marks; switch '{device.name}' marks above {unmarked_bytes:,} B, "
                which = "kmin, which" if device.ecn.pmax > 0 else "pmax, which is 0, or kmax, which"
                held = (
                    f"more than its buffer of {device.buffer_bytes:,} B can hold; set fabric.switch.ecn.{which}"
                    " otherwise follows the rate of each port, or take a larger buffer"
                )
                yield key, text + held


def _untrimmed(transport: Transport, key: str, name: str) -> Iterator[tuple[str, str]]:
    """Mistakes of trimming without a size of cut packets.

    `Transport.contradictions` asks for selective repeat.
    """
    if not transport.trim_bytes:
        text = (
            f"{name} needs packets that are cut where a queue is full; transport '{transport.name}' drops them"
            " (trim_bytes is 0); set transport.flow_control: none, transport.recovery: selective-repeat and"
            " transport.trimming: true"
        )
        yield key, text
    elif transport.data_priority in transport.lossless_priorities:
        text = (
            f"{name} needs packets that are cut where a queue is full; priority {transport.data_priority}, that of the"
            f" data, is lossless in transport '{transport.name}', so that none is cut; take it out of"
            " lossless_priorities"
        )
        yield key, text


def switches_on_longest_path(fabric: Fabric, link_up: NDArray[np.bool_], *, up_down: bool = False) -> int:
    """Number of switches on the longest route between two hosts.

    Parameters
    ----------
    fabric : whose hosts and switches
    link_up : shape (links,)
    up_down : as of `weftwork.topology.routing.routes`
    """
    attach_node, _ = attachments(fabric)
    if not len(attach_node):
        return 0
    return int(hops_left(fabric, link_up, attach_node, up_down=up_down).hops[attach_node].max()) + 1


def check_telemetry(
    policies: Sequence[LoadedPolicy | None], fabric: Fabric, switches: Sequence[int], findings: Findings
) -> None:
    """Find policies that would see only a part of a path.

    A packet carries `HOPS` switches at most.

    Parameters
    ----------
    policies : congestion control, path selection and port selection, in this order; None where there is none
    fabric : whose name is told
    switches : on the longest path, of each table of routes; the first without faults
    """
    longest = max(switches, default=0)
    if longest <= HOPS:
        return
    when = "a path" if switches[0] == longest else "a path around a fault"
    text = (
        f"needs in-band telemetry, and a packet carries that of {HOPS} switches; {when} in '{fabric.name}' passes"
        f" {longest}; wanted shorter paths, or a policy without telemetry"
    )
    for key, policy in zip(_KEYS, policies, strict=True):
        if policy is not None and "telemetry" in policy.plugin.needs:
            findings.wrong(key, f"{policy.name} {text}")


def check_detours(port_selection: LoadedPolicy, routing: Routing, findings: Findings) -> None:
    """Find port selections that leave up-down routes.

    They lead packets off the routes, where these never go down and then up again.

    Parameters
    ----------
    port_selection : loaded policy
    routing : its rule, and its pins, whose layers packets may change
    """
    if not routing.up_down:
        return
    plugin = cast("PortSelection", port_selection.plugin)
    passes = any((one.record, one.name) == ("signal", "via") for one in accesses(port_selection) if one.is_write)
    ways = {
        "takes ports that lie on no route": "non-minimal" in plugin.needs,
        "sends packets over other leaves (via)": passes,
        "chooses among the layers of pinned paths": plugin.layer_by_word and bool(routing.pins),
    }
    text = " and ".join(words for words, is_there in ways.items() if is_there)
    if not text:
        return
    text = f"'{port_selection.name}' {text}, which may lead down and then up again, and fabric.routing is up-down"
    text += "; wanted another policy, such as ecmp, or fabric.routing: shortest"
    findings.wrong("transport.port_selection", text, "ecmp")


def _offered(transport: Transport, *, marks: bool) -> list[str]:
    control = ["PFC"] if transport.lossless_priorities else ["credits"] if transport.link_credits else []
    return [*(["ECN"] if marks else []), *control]


def note_unfilled(policies: Iterable[LoadedPolicy | None], findings: Findings) -> None:
    """Note a user's policies that read what no engine fills for them.

    A step of Weftwork may have a branch that only a need of its routing opens.

    Parameters
    ----------
    policies : of any kind; None where there is none
    """
    for policy in policies:
        if policy is not None and not policy.is_shipped:
            for need, text in unfilled_reads(policy).items():
                findings.note(f"{policy.name}.{need}", "mismatch", f"'{policy.name}': {text}")


def note_host_delays(
    fabric: Fabric, transport: Transport, policies: Iterable[LoadedPolicy | None], findings: Findings
) -> None:
    """Note host-delay policies if no host delays anything.

    Parameters
    ----------
    fabric : its NICs have a host interface, or have none
    transport : it takes time of the host's processor, or none
    policies : of any kind; None where there is none
    """
    if any(nic.has_host_interface for nic in fabric.nics) or transport.host_packet_ps or transport.host_byte_ps:
        return
    text = (
        "reads the delay in the receiving host, which is always 0 here: the host takes every packet at once; set"
        " fabric.nic.pcie_rate"
    )
    for policy in policies:
        if policy is not None and reads_host_delay(policy):
            findings.note(f"{policy.name}.host_delay", "note", f"'{policy.name}' {text}")


def check_reordering(transport: Transport, policies: Sequence[LoadedPolicy | None], findings: Findings) -> None:
    """Find policies with several paths per queue pair and a strict receiver.

    Such a receiver does not keep packets that come early.

    Parameters
    ----------
    transport : its receiver tolerates reordering, or discards what comes behind a gap
    policies : path selection and port selection; None where there is none
    """
    if transport.reorder_tolerant or transport.recovery == "selective-repeat":
        return
    what = "go-back-n takes for losses" if transport.recovery == "go-back-n" else "the receiver discards"
    for policy in policies:
        if policy is None:
            continue
        reorders = getattr(policy.plugin, "reorders", "never") == "always"
        if reorders or "reorder-tolerance" in policy.plugin.needs:
            text = (
                f"'{policy.name}' brings packets out of order, which {what};"
                " set transport.reorder_tolerant: true, or transport.force: true to see the collapse"
            )
            findings.wrong(f"transport.{policy.kind}", text, Settings((("transport.reorder_tolerant", "true"),)))


def note_reordering(transport: Transport, policies: Sequence[LoadedPolicy | None], findings: Findings) -> None:
    """Note policies that move flows, with a strict receiver.

    Such a receiver keeps no packet that comes early. Parameters are those of `check_reordering`. A flow that moves
    may overtake itself, once for each move.
    """
    if transport.reorder_tolerant or transport.recovery == "selective-repeat":
        return
    answer = "goes back for them" if transport.recovery == "go-back-n" else "waits for a timeout"
    for policy in policies:
        if policy is not None and getattr(policy.plugin, "reorders", "never") == "on-move":
            text = (
                f"'{policy.name}' moves flows, and packets may overtake others at a move: the receiver discards them,"
                f" and the sender {answer}; transport.reorder_tolerant: true would keep them"
            )
            findings.note(f"transport.{policy.kind}", "note", text)


def check_pauses(fabric: Fabric, transport: Transport, lossless: int, findings: Findings) -> None:
    """Find pauses that are too short.

    Their refreshes come faster than a port can send them, so that it sends nothing else.

    Parameters
    ----------
    fabric : its switches, and NICs behind which a host interface can be slow, ask for pauses
    transport : its pause frames
    lossless : how many priorities in use are lossless
    """
    frames = lossless * (transport.pause_frame_bytes + transport.interframe_bytes)
    for key, name, quanta in _pausing(fabric):
        half = quanta * _HALF_QUANTUM_BYTES
        if lossless and half <= frames:
            text = (
                f"found {quanta}: '{name}' would send a pause again after half its length, the time of {half:,} B, and"
                f" the frames for it take {frames:,} B, so that they would fill the link; set at least"
                f" {frames // _HALF_QUANTUM_BYTES + 1}, or flow_control: none"
            )
            findings.wrong(f"fabric.{key}.pause_quanta", text)


def note_pauses(fabric: Fabric, transport: Transport, lossless: int, findings: Findings) -> None:
    """Note pauses that may expire before a refresh.

    Parameters are those of `check_pauses`. A packet is then lost only where
    headroom is short as well.
    """
    wait = refresh_wait_bytes(transport)
    for _, name, quanta in _pausing(fabric):
        half = quanta * _HALF_QUANTUM_BYTES
        if lossless and half <= wait:
            text = (
                "a pause can expire before it is refreshed, so that headroom may not suffice: half of it is the time of"
                f" {half:,} B, and the refresh may wait for {wait:,} B;"
                f" {wait // _HALF_QUANTUM_BYTES + 1:,} or more are safe"
            )
            findings.note(f"{name}.pause_quanta", "note", text)


def _pausing(fabric: Fabric) -> Iterator[tuple[str, str, int]]:
    """Devices that ask for pauses: scenario key, name and quanta."""
    for switch in fabric.switches:
        yield "switch", switch.name, switch.pause_quanta
    for nic in fabric.nics:
        if nic.has_host_interface:
            yield "nic", nic.name, nic.pause_quanta

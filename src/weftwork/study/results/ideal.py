"""The ideal completion time of a message.

The message is alone on an empty fabric, at line rate.

Where flows keep their paths it is that of the path that the flow took. Where that is not known, it is that of the path
of first candidates, if all candidates look alike; else there is none. Its packets follow each other through
store-and-forward links. The last one arrives after the longest monotone walk through the table (packet, link) of
serialisation times, plus the delays; that is exact for one flow that is never held back.
Where packets are sprayed, all candidates of a hop carry the message together, and it is a lower bound: no order of
packets over the links can be faster, and what is reached is up to some packets slower.
Under k-shortest routing the path of first candidates is the first way of the two switches, a shortest one; where
packets are sprayed, the bound counts the links of all ways side by side. Under adaptive routing a detour counts as
slowdown.
Leaves out: windows and pacing, which hold back even a lone flow; faults. Only there a slowdown can be below 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weftwork.base.clock import NEVER_PS, SECOND_PS, serialisation_ps
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.rows.job import Op
from weftwork.spec.fabric import HOST
from weftwork.topology.routing import DELIVER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.engine.flow.flow_input import FlowInput
    from weftwork.spec.transport import Transport
    from weftwork.study.results.path_taken import PathsTaken

__all__ = ["HostCost", "ideal_times_ps", "nic_ports", "pipeline_ps", "spread_ps"]

Hop = tuple[int, int, int]  # rate_bps (0: takes no time), bytes between frames, delay_ps behind it
Stage = tuple[Hop, ...]  # links that carry a sprayed message side by side


@dataclass(frozen=True, kw_only=True, slots=True)
class HostCost:
    """Packet costs of the host's processor at sender and receiver.

    Parameters
    ----------
    transport : its costs and headers
    """

    transport: Transport

    def of_frame_ps(self, size_bytes: int, *, is_first: bool) -> int:
        """Cost of a frame of given bytes.

        The first frame of a message has larger headers.
        """
        transport = self.transport
        headers = transport.data_overhead_bytes + transport.telemetry_bytes
        headers += transport.first_extra_bytes if is_first else 0
        return transport.host_cost_ps(size_bytes - headers)


def pipeline_ps(frames: tuple[int, ...], middle: int, hops: tuple[Hop, ...], host: HostCost | None = None) -> int:
    """Time from the first bit sent to the last bit received.

    Parameters
    ----------
    frames : bytes of the first frame, of one in the middle and of the last; or of one frame alone
    middle : how many frames are in the middle, 0 or more
    hops : links in order
    host : what the first hop takes at least, and the last one more; None: nothing

    Returns
    -------
    picoseconds

    Examples
    --------
    >>> hop = (400_000_000_000, 0, 1_000)
    >>> pipeline_ps((4096,), 0, (hop, hop)), pipeline_ps((4096, 4096, 4096), 1, (hop, hop))
    (165840, 329680)
    """
    delay = sum(hop[2] for hop in hops)
    times = [[serialisation_ps(size + gap, rate) if rate else 0 for rate, gap, _ in hops] for size in frames]
    early = [0] * len(frames)
    if host is not None:
        costs = [host.of_frame_ps(size, is_first=place == 0) for place, size in enumerate(frames)]
        for place, (took, cost) in enumerate(zip(times, costs, strict=True)):
            early[place] = max(0, cost - took[0])
            took[0] = max(took[0], cost)
            took[-1] += cost
    if len(frames) == 1:
        return delay + sum(times[0]) - early[0]
    first, mid, last = times
    count = len(hops)
    if middle == 0:
        return delay + max(sum(first[: at + 1]) + sum(last[at:]) - early[0 if at else 2] for at in range(count))
    # The walk leaves the first frame on link a and joins the last on link b; the rest is spent on the slowest between.
    # The frame with which it leaves the first link is on its way before the processor lets the next one go.
    return delay + max(
        sum(first[: a + 1])
        + sum(mid[a : b + 1])
        + (middle - 1) * max(mid[a : b + 1])
        + sum(last[b:])
        - early[0 if a else 1 if b else 2]
        for a in range(count)
        for b in range(a, count)
    )


def spread_ps(frames: tuple[int, ...], middle: int, stages: tuple[Stage, ...]) -> int:
    """Lower bound of a sprayed message's time, from first to last bit.

    Some packet is the first and some packet the last at every stage, none smaller than the smallest; between them the
    links of the stage send all bytes together. And the largest packet has to cross all of them.

    Parameters
    ----------
    frames, middle : as for `pipeline_ps`
    stages : links in order, side by side where the message may take any of them

    Examples
    --------
    >>> host, uplink = (400_000_000_000, 0, 1_000), (100_000_000_000, 0, 1_000)
    >>> spread_ps((4096,) * 3, 2, ((host,), (uplink,))) == pipeline_ps((4096,) * 3, 2, (host, uplink))
    True
    >>> spread_ps((4096,) * 3, 2, ((host,), (uplink,) * 4))  # now the host's link is the slowest
    657360
    """

    def crossing_ps(stage: Stage, size_bytes: int) -> int:
        return min(delay for _, _, delay in stage) + min(
            serialisation_ps(size_bytes + gap, rate) if rate else 0 for rate, gap, _ in stage
        )

    def sending_ps(stage: Stage) -> int:
        gap = stage[0][1]
        total = sum(frames) + gap * len(frames)
        if middle:  # the frame in the middle occurs that often
            total += (middle - 1) * (frames[1] + gap)
        return total * 8 * SECOND_PS // sum(rate for rate, _, _ in stage) if all(rate for rate, _, _ in stage) else 0

    if middle == 0 and len(frames) > 1:
        frames = (frames[0], frames[-1])
    smallest = [crossing_ps(stage, min(frames)) for stage in stages]
    delays = [min(delay for _, _, delay in stage) for stage in stages]
    return max(
        sum(crossing_ps(stage, max(frames)) for stage in stages),
        *(
            sum(smallest[:at]) + sending_ps(stage) + delays[at] + sum(smallest[at + 1 :])
            for at, stage in enumerate(stages)
        ),
    )


def ideal_times_ps(
    engine_input: PacketInput | FlowInput,
    source_port: NDArray[Any],
    destination_port: NDArray[Any],
    size_bytes: NDArray[Any],
    taken: PathsTaken | None = None,
) -> NDArray[np.int64]:
    """Ideal completion times of messages.

    Most of them share a path that looks the same and a size, so each distinct case is worked out once.

    Parameters
    ----------
    engine_input : the run's
    source_port, destination_port : shape (messages,), NIC ports
    size_bytes : shape (messages,)
    taken : paths of the same messages; None: that of first candidates for all

    Returns
    -------
    shape (messages,), picoseconds; -1 where no path leads there at time 0, or where candidates differ and the path that
    was taken is not known
    """
    if len(size_bytes) == 0:
        return np.empty(0, np.int64)
    first_hop = engine_input.port_peer[source_port]
    last_hop = engine_input.port_peer[destination_port]
    node = engine_input.port_node[destination_port]
    case = np.stack(
        [
            engine_input.port_node[first_hop],
            engine_input.port_rate_bps[source_port],
            engine_input.port_delay_ps[source_port],
            engine_input.attachment[destination_port],
            engine_input.port_rate_bps[last_hop],
            engine_input.port_delay_ps[last_hop],
            engine_input.node_device[node],
            np.where(
                engine_input.node_kind[engine_input.port_node[last_hop]] == HOST, node, -1
            ),  # linked to a host without a switch
            size_bytes,
            np.full(len(size_bytes), -1) if taken is None else taken.of_message,
        ],
        axis=1,
    ).astype(np.int64)
    _, example, which = np.unique(case, axis=0, return_index=True, return_inverse=True)
    takes_all_ways = (
        engine_input.path_selection is not None and engine_input.path_selection.plugin.reorders == "always"  # type: ignore[union-attr]
    )
    is_sprayed = takes_all_ways or engine_input.port_selection.plugin.reorders == "always"  # type: ignore[union-attr]
    paths: dict[tuple[int, int], tuple[tuple[int, ...], ...] | None] = {}
    times: list[int] = []
    for source, destination, size, path in zip(
        source_port[example].tolist(),
        destination_port[example].tolist(),
        size_bytes[example].tolist(),
        case[example, -1].tolist(),
        strict=True,
    ):
        if taken is not None and path >= 0:
            stages = _stages_of_path(engine_input, destination, taken.examples[path])
            times.append(min(_message_ps(engine_input, size, stages), NEVER_PS))
            continue
        ends = int(engine_input.port_node[engine_input.port_peer[source]]), int(engine_input.attachment[destination])
        if ends not in paths:
            ways = _ways(engine_input, int(engine_input.attachment[source]), *ends)
            paths[ends] = (
                _side_by_side(ways if takes_all_ways else ways[:1])
                if ways
                else _walk(engine_input, *ends, width=None if is_sprayed else 1)
            )
            if taken is not None and not is_sprayed and not ways and not _are_alike(engine_input, *ends):
                paths[ends] = None
        middle = paths[ends]
        took = (
            -1
            if middle is None
            else _message_ps(engine_input, size, _stages(engine_input, source, destination, middle))
        )
        times.append(min(took, NEVER_PS))  # at 1 b/s more than int64 has
    return np.array(times, np.int64)[which.ravel()]


def nic_ports(
    engine_input: PacketInput | FlowInput, messages: NDArray[np.void]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """NIC ports at both ends of messages while all links work.

    The rule is in docs/models/packet-engine.md.

    Where a program names several columns for one channel, that of its first SEND on it stands for all.

    Parameters
    ----------
    engine_input : the run's
    messages : `weftwork.engine.rows.outcome.MESSAGE_DTYPE`

    Returns
    -------
    source and destination ports, each of shape (messages,)
    """
    ends = np.append(engine_input.streams["first_op"], len(engine_input.ops))
    of_program = np.repeat(engine_input.streams["rank_program"], np.diff(ends))
    is_send = engine_input.ops["code"] == Op.SEND
    sends = engine_input.ops[is_send]
    channels = int(max(sends["channel"].max(initial=0), messages["channel"].max(initial=0))) + 1
    known, first = np.unique(of_program[is_send] * channels + sends["channel"], return_index=True)
    wanted = engine_input.rank_program[messages["source"]].astype(np.int64) * channels + messages["channel"]
    send = sends[first[np.searchsorted(known, wanted)]]
    source = engine_input.rank_ports[messages["source"], send["nic"]].astype(np.int64)
    destination = engine_input.rank_ports[messages["destination"], send["nic"]].astype(np.int64)
    number = destination - engine_input.port_base[engine_input.port_node[destination]]
    of_peer = engine_input.port_base[engine_input.port_node[source]] + number
    return np.where(send["peer_rail"] == 1, of_peer, source), destination


def _stages(
    engine_input: PacketInput | FlowInput, source_port: int, destination_port: int, middle: tuple[tuple[int, ...], ...]
) -> tuple[Stage, ...]:
    """Links from one NIC port to another, and the last host interface."""
    first = int(engine_input.port_peer[source_port])
    is_direct = engine_input.port_node[first] == engine_input.port_node[destination_port]
    ports = (
        ((source_port,),) if is_direct else ((source_port,), *middle, (int(engine_input.port_peer[destination_port]),))
    )
    return _stages_of(engine_input, destination_port, ports)


def _stages_of_path(
    engine_input: PacketInput | FlowInput, destination_port: int, path: tuple[int, ...]
) -> tuple[Stage, ...]:
    """Links of a path, and the last host interface."""
    return _stages_of(engine_input, destination_port, tuple((port,) for port in path))


def _stages_of(
    engine_input: PacketInput | FlowInput, destination_port: int, ports: tuple[tuple[int, ...], ...]
) -> tuple[Stage, ...]:
    gap = engine_input.transport.interframe_bytes
    stages = [
        tuple((int(engine_input.port_rate_bps[p]), gap, int(engine_input.port_delay_ps[p])) for p in stage)
        for stage in ports
    ]
    nic = engine_input.nics[engine_input.node_device[engine_input.port_node[destination_port]]]
    if nic["pcie_rate_bps"] or nic["pcie_latency_ps"] or _host_cost(engine_input) is not None:
        stages.append(((int(nic["pcie_rate_bps"]), 0, int(nic["pcie_latency_ps"])),))
    return tuple(stages)


def _message_ps(engine_input: PacketInput | FlowInput, size_bytes: int, stages: tuple[Stage, ...]) -> int:
    transport = engine_input.transport
    extra = transport.data_overhead_bytes + transport.telemetry_bytes
    mtu = transport.mtu_bytes
    packets = max(1, -(-size_bytes // mtu))
    tail = size_bytes - (packets - 1) * mtu
    if packets == 1:
        frames: tuple[int, ...] = (size_bytes + extra + transport.first_extra_bytes,)
    else:
        frames = (mtu + extra + transport.first_extra_bytes, mtu + extra, tail + extra)
    host = _host_cost(engine_input)
    if all(len(stage) == 1 for stage in stages):
        return pipeline_ps(frames, max(0, packets - 2), tuple(stage[0] for stage in stages), host)
    ends = (stages[0][0], stages[-1][0])  # which carry all packets, and pay the host's processor
    alone_ps = 0 if host is None else pipeline_ps(frames, max(0, packets - 2), ends, host)
    return max(spread_ps(frames, max(0, packets - 2), stages), alone_ps)


def _host_cost(engine_input: PacketInput | FlowInput) -> HostCost | None:
    """The processor if it costs anything.

    The rates of the flow engine contain it.
    """
    transport = engine_input.transport
    has_cost = transport.host_packet_ps > 0 or transport.host_byte_ps > 0
    return HostCost(transport=transport) if has_cost and isinstance(engine_input, PacketInput) else None


def _ways(engine_input: PacketInput | FlowInput, start: int, node: int, attachment: int) -> list[tuple[int, ...]]:
    """Ports of each path between two attachments without a pin.

    Empty if the shortest paths hold.
    """
    table = engine_input.routes[0]
    layers = table.layer_of[start, attachment, table.pinned_ways :].tolist() if table.layer_of.size else []
    found: list[tuple[int, ...]] = []
    for layer in dict.fromkeys(layers):
        ports: list[int] = []
        at = node
        while layer >= 0 and (group := int(table.layer_group[layer, at, attachment])) >= 0:
            ports.append(int(table.group_ports[table.group_ptr[group]]))
            at = int(engine_input.port_node[engine_input.port_peer[ports[-1]]])
        if ports:
            found.append(tuple(ports))
    return found


def _side_by_side(ways: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Links of all paths as stages that every packet passes.

    The first links are one stage, the second links another, and so on.
    """
    shortest = min(len(way) for way in ways)
    places = [*range(shortest - 1), -1]
    return tuple(tuple(sorted({way[place] for way in ways})) for place in places)


def _are_alike(engine_input: PacketInput | FlowInput, node: int, attachment: int) -> bool:
    """Whether all candidates of each hop between a switch and an attachment have one rate and one delay."""
    return all(
        len({(int(engine_input.port_rate_bps[port]), int(engine_input.port_delay_ps[port])) for port in stage}) == 1
        for stage in _walk(engine_input, node, attachment, width=None) or ()
    )


def _walk(
    engine_input: PacketInput | FlowInput, node: int, attachment: int, *, width: int | None
) -> tuple[tuple[int, ...], ...] | None:
    """Ports from a switch to an attachment; None without a path.

    Parameters
    ----------
    width : how many candidates of every switch are taken; None: all, and their links carry a message side by side
    """
    table = engine_input.routes[0]
    stages: list[tuple[int, ...]] = []
    nodes = [node]
    # All candidates lie on shortest paths, so that the switches of one stage are equally far from the attachment.
    while (groups := [int(table.group_of[one, attachment]) for one in nodes])[0] >= 0:
        ports = [
            int(port)
            for group in groups
            for port in table.group_ports[table.group_ptr[group] : table.group_ptr[group + 1]][:width]
        ]
        stages.append(tuple(ports))
        nodes = sorted({int(engine_input.port_node[engine_input.port_peer[port]]) for port in ports})
    own = engine_input.attachment[engine_input.port_base[nodes[0]] : engine_input.port_base[nodes[0] + 1]]
    return tuple(stages) if groups[0] == DELIVER or (own == attachment).any() else None

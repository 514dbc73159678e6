"""Suspects that a record of the run makes: settings and policies that were at work.

Each row of `_ROWS` is one kind of suspect: what a run has to have recorded, and the run without it.
Leaves out: suspects that the scenario or the fabric names (`weftwork.study.answer.suspects`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.grammar import plural
from weftwork.base.units import DURATION, RATE, SIZE, format_quantity
from weftwork.engine.flow.flow_input import FlowInput, Mode
from weftwork.spec.scenario.policies import PRESETS, PolicyChoice
from weftwork.study.answer.direct_suspects import direct_suspects
from weftwork.study.answer.evidence import evidence_of
from weftwork.study.answer.suspect import BUSY, COLLIDED, Suspect, changed
from weftwork.study.prepare import what_if
from weftwork.study.results.ideal import ideal_times_ps, nic_ports
from weftwork.study.results.intra_server import PACKETS, carriers
from weftwork.study.results.link_use import link_use, siblings_use, up_use
from weftwork.topology.oversubscription import oversubscription_by_tier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from weftwork.spec.answer import Evidence
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["NO_OVERSUBSCRIPTION", "recorded_suspects", "round_trip_ps", "short_duration"]

NO_OVERSUBSCRIPTION: Final = "no oversubscription"
_BUFFERS: Final = 16  # times the memory; chosen: more than any switch of its generation has
_HASTY: Final = 16  # of the timeout; chosen: what is left of it costs little beside the whole
_PATIENT: Final = 1_000  # times the timeout; chosen: longer than any run that ends
_SHORT: Final = 16  # of the delays of links and switches; chosen: what is left costs little beside the whole
_OF_LINKS: Final = ("drop_link_loss", "drop_corrupted")
_OF_BUFFERS: Final = ("drop_buffer_full", "drop_egress_threshold")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Records:
    """The records of a run by which its settings are suspected.

    Attributes
    ----------
    prepared, execution : the run
    counters : of the outcome
    use : shape (ports,), of `link_use`
    evidence : of its network
    """

    prepared: Prepared
    execution: Execution
    counters: Mapping[str, int]
    use: NDArray[np.float64]
    evidence: Evidence

    @property
    def is_by_packet(self) -> bool:
        """Whether packets and queues exist, and not flows alone."""
        return self.execution.flows is None

    def drops(self, *reasons: str) -> int:
        """Count packets that were lost for some reasons; for all of them without a reason."""
        return sum(
            count for name, count in self.counters.items() if (name in reasons if reasons else name.startswith("drop_"))
        )


def recorded_suspects(prepared: Prepared, execution: Execution) -> Iterator[Suspect]:
    """Suspects among the settings and policies of a run that ended.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    """
    records = _Records(
        prepared=prepared,
        execution=execution,
        counters=execution.outcome.counters,
        use=link_use(prepared, execution),
        evidence=evidence_of(prepared, execution),
    )
    for row in _ROWS:
        yield from row(records)


def round_trip_ps(prepared: Prepared, source: int, destination: int, channel: int) -> int:
    """Least round trip of a full packet and its acknowledgement between two ranks, on an empty fabric.

    Parameters
    ----------
    prepared : the run, on packets
    source, destination, channel : of a message between servers
    """
    message = np.zeros(1, [(name, np.int64) for name in ("source", "destination", "channel")])
    message["source"], message["destination"], message["channel"] = source, destination, channel
    ends = nic_ports(prepared.engine_input, message)
    sizes = np.array([prepared.transport.mtu_bytes]), np.array([0])
    there, back = (int(ideal_times_ps(prepared.engine_input, *ends, size)[0]) for size in sizes)
    return max(0, there) + max(0, back)


def short_duration(duration_ps: float) -> str:
    """A time as text with three digits.

    Examples
    --------
    >>> short_duration(12_345_678)
    '12.3us'
    """
    return format_quantity(DURATION, _three_digits(duration_ps))


def _three_digits(value: float) -> int:
    return int(float(f"{value:.3g}"))


# One suspect each


def _timeout(records: _Records) -> Iterator[Suspect]:
    """The timeout: too short if nothing was lost, else too long."""
    timeouts, prepared = records.counters["timeouts"], records.prepared
    if not records.is_by_packet or not timeouts:
        return
    timeout_ps = prepared.transport.retransmission_timeout_ps
    length = format_quantity(DURATION, timeout_ps)
    often = "once" if timeouts == 1 else f"{timeouts:,} times"
    has_losses = records.drops() > 0
    text = f"of {length} ran out {often} though nothing was lost"
    if has_losses:
        text = f"of {length} passed before lost packets were sent again, {often}"
    elif (trip_ps := _longest_trip_ps(records)) > timeout_ps:
        text = f"of {length} is shorter than the round trip of {short_duration(trip_ps)}, and ran out {often}"
    other_ps = max(1, timeout_ps // _HASTY) if has_losses else timeout_ps * _PATIENT
    yield Suspect(
        kind="setting",
        name="timeout",
        key="transport.timeout",
        text=text,
        change=changed(_with_transport, timeout_ps=other_ps),
    )


def _longest_trip_ps(records: _Records) -> int:
    """The round trip of the message with the longest; 0 without a message between servers."""
    trips = [
        round_trip_ps(records.prepared, *message)
        for message in _between_servers(records)[:64][["source", "destination", "channel"]].tolist()
    ]
    return max(trips, default=0)


def _between_servers(records: _Records) -> NDArray[np.void]:
    messages = records.execution.outcome.messages
    engine_input = records.prepared.engine_input
    kept: NDArray[np.void] = messages[carriers(engine_input, messages["source"], messages["destination"]) == PACKETS]
    return kept


def _headroom(records: _Records) -> Iterator[Suspect]:
    """Headroom that does not hold what still arrives after a pause was asked for."""
    fabric, lost = records.prepared.fabric, records.drops("drop_headroom_full")
    headroom_bytes = [switch.headroom_bytes for switch in fabric.switches if switch.headroom_bytes is not None]
    if not lost or not headroom_bytes:
        return
    needed = tuple(switch.model_copy(update={"headroom_bytes": None}) for switch in fabric.switches)
    yield Suspect(
        kind="setting",
        name="headroom",
        key="fabric.switch.headroom",
        text=(
            f"of {format_quantity(SIZE, min(headroom_bytes))} overflowed: {plural(lost, 'packet')} that came after a"
            " pause found no room"
        ),
        change=changed(what_if.on_fabric, switches=needed),
    )


def _small_buffer(records: _Records) -> Iterator[Suspect]:
    """Memory of switches that overflowed, or that paused links while the port behind them was idle."""
    fabric = records.prepared.fabric
    is_idle = records.evidence.is_troubled and records.evidence.paused_share > 0 and not records.evidence.is_full
    has_credits = records.prepared.transport.link_credits and not records.evidence.is_full
    lost = records.drops(*_OF_BUFFERS)
    if not records.is_by_packet or not (lost or is_idle or has_credits):
        return
    switches = tuple(
        switch.model_copy(update={"buffer_bytes": switch.buffer_bytes * _BUFFERS}) for switch in fabric.switches
    )
    smallest = min(switch.buffer_bytes for switch in fabric.switches)
    why = "overflowed" if lost else "gave too few credits" if has_credits else "paused links before they were needed"
    yield Suspect(
        kind="setting",
        name="buffer",
        key="fabric.switch.buffer",
        text=f"of {format_quantity(SIZE, smallest)} {why}",
        change=changed(what_if.on_fabric, switches=switches),
    )


def _receive_buffer(records: _Records) -> Iterator[Suspect]:
    """Memory of NICs that overflowed, since the host takes packets more slowly than the link brings them."""
    fabric, lost = records.prepared.fabric, records.drops("drop_receive_buffer")
    if not lost:
        return
    nics = tuple(
        nic.model_copy(update={"receive_buffer_bytes": nic.receive_buffer_bytes * _BUFFERS}) for nic in fabric.nics
    )
    smallest = min(nic.receive_buffer_bytes for nic in fabric.nics)
    yield Suspect(
        kind="setting",
        name="receive buffer",
        key="fabric.nic.receive_buffer",
        text=f"of {format_quantity(SIZE, smallest)} overflowed: {plural(lost, 'packet')} reached a NIC without room",
        change=changed(what_if.on_fabric, nics=nics),
    )


def _host_interface(records: _Records) -> Iterator[Suspect]:
    """PCIe of all hosts that is slower than their links."""
    fabric = records.prepared.fabric
    if not records.is_by_packet:
        return
    ports, rate_bps = fabric.ports, fabric.links["rate_bps"]
    of_hosts = np.flatnonzero(np.isin(ports.node, fabric.hosts))
    pcie_bps = np.array([nic.pcie_rate_bps for nic in fabric.nics])[fabric.node_device[ports.node[of_hosts]]]
    is_slower = (pcie_bps > 0) & (pcie_bps < rate_bps[ports.link[of_hosts]])
    if not is_slower.any() or records.evidence.is_full:
        return
    nics = tuple(nic.model_copy(update={"pcie_rate_bps": 0}) for nic in fabric.nics)
    slow = of_hosts[is_slower]
    yield Suspect(
        kind="setting",
        name="PCIe",
        key="fabric.nic.pcie_rate",
        text=(
            f"takes {format_quantity(RATE, int(pcie_bps[is_slower].min()))} at"
            f" {plural(len(slow), 'NIC port')}, whose links bring"
            f" {format_quantity(RATE, int(rate_bps[ports.link[slow]].max()))}"
        ),
        change=changed(what_if.on_fabric, nics=nics),
    )


def _lossy_links(records: _Records) -> Iterator[Suspect]:
    """Links that lose packets, all alike; a link unlike its peers is a suspect of its own."""
    links, lost = records.prepared.fabric.links, records.drops(*_OF_LINKS)
    worst = float(max(links["loss"].max(initial=0.0), links["corruption"].max(initial=0.0)))
    if not lost or not worst:
        return
    mended = links.copy()
    mended["loss"] = mended["corruption"] = 0.0
    yield Suspect(
        kind="setting",
        name="loss of links",
        key="fabric.loss",
        text=f"of up to {100 * worst:g} % took {plural(lost, 'packet')}",
        change=changed(what_if.on_fabric, links=mended),
    )


def _recovery(records: _Records) -> Iterator[Suspect]:
    """Go-back-N, which sends again what arrived behind a lost packet."""
    transport, repeated = records.prepared.transport, records.counters["out_of_order_discards"]
    if not repeated or transport.recovery != "go-back-n":
        return
    if not records.drops() and not transport.reorder_tolerant:
        yield Suspect(
            kind="setting",
            name="order of packets",
            key="transport.reorder_tolerant",
            text=f"was lost on the way, and receivers discarded {plural(repeated, 'packet')} that came early",
            change=changed(_with_transport, reorder_tolerant=True),
        )
    else:
        yield Suspect(
            kind="setting",
            name="go-back-n",
            key="transport.recovery",
            text=f"discarded {plural(repeated, 'packet')} that arrived behind lost packets, to send them again",
            change=changed(_with_transport, recovery="selective-repeat"),
        )


def _window(records: _Records) -> Iterator[Suspect]:
    """A window of fixed size below the bandwidth-delay product of the longest path."""
    prepared = records.prepared
    control = prepared.policies["congestion_control"]
    window_bytes = int(dict(control.values).get("window_bytes", 0) or 0)
    if not records.is_by_packet or not window_bytes or records.evidence.is_full:
        return
    trip_ps = _longest_trip_ps(records)
    ports = prepared.fabric.ports
    of_hosts = np.isin(ports.node, prepared.fabric.hosts)
    rate_bps = int(prepared.fabric.links["rate_bps"][ports.link[of_hosts]].max())
    product_bytes = _three_digits(rate_bps * trip_ps / 8 / SECOND_PS)
    if window_bytes >= product_bytes:
        return
    parameters = dict(prepared.scenario.transport.congestion_control.parameters)
    key = next((key for key in ("window", "window_bytes") if key in parameters), "window")
    parameters.pop(key, None)
    choice = prepared.scenario.transport.congestion_control.model_copy(update={"parameters": parameters})
    yield Suspect(
        kind="setting",
        name="window",
        key=f"transport.congestion_control.{key}",
        text=(
            f"of {format_quantity(SIZE, window_bytes)} is less than a bandwidth-delay product:"
            f" {format_quantity(RATE, rate_bps)} x {short_duration(trip_ps)} = {format_quantity(SIZE, product_bytes)}"
        ),
        change=changed(_with_transport, congestion_control=choice),
    )


def _oversubscription(records: _Records) -> Iterator[Suspect]:
    prepared = records.prepared
    ratios = {tier: ratio for tier, ratio in oversubscription_by_tier(prepared.fabric).items() if ratio > 1.001}
    if any(up_use(prepared, records.use, tier) > BUSY for tier in ratios):
        shown = ", ".join(f"{ratio:.3g}:1" for ratio in ratios.values())
        yield Suspect(
            kind="setting",
            name="oversubscription",
            key="fabric.oversubscription" if prepared.scenario.fabric.topology != "file" else "fabric",
            text=f"is {shown} (a switch's rate down to its rate up)",
            change=what_if.without_oversubscription,
            case=NO_OVERSUBSCRIPTION,
        )


def _hashes(records: _Records) -> Iterator[Suspect]:
    prepared = records.prepared
    if not _is_hashed(prepared):
        return
    uneven, port, its_use = siblings_use(prepared, records.execution, records.use)
    if uneven > COLLIDED and its_use > BUSY:
        yield Suspect(
            kind="policy",
            name=prepared.policies["port_selection"].name,
            key="transport.load_balancing",
            text=f"put {uneven:.3g} times the mean load of equal ports on {port}: hashes collide",
            change=_sprayed,
        )


def _direct(records: _Records) -> Iterator[Suspect]:
    yield from direct_suspects(records.prepared, records.execution, records.use)


def _control(records: _Records) -> Iterator[Suspect]:
    """A congestion control that was told of congestion, or that left all resources idle."""
    control, outcome = records.prepared.policies["congestion_control"], records.execution.outcome
    was_asked = bool(records.counters["cnps_sent"]) or bool(outcome.ports["marks"].any())
    if not records.is_by_packet or control.name == "none" or not (was_asked or not records.evidence.is_full):
        return
    # a network without flow and congestion control loses what it cannot carry: a window of a round trip stands in
    transport = records.prepared.transport
    other = "none" if transport.lossless_priorities or transport.link_credits else "fixed-window"
    if other == control.name:
        return
    yield Suspect(
        kind="policy",
        name=control.name,
        key="transport.congestion_control",
        text=f"holds senders back, compared with {other}",
        change=changed(_with_transport, congestion_control=PolicyChoice(name=other)),
    )


def _latency(records: _Records) -> Iterator[Suspect]:
    """Delays of links and switches, where a collective leaves all resources idle."""
    prepared = records.prepared
    if prepared.scenario.collective is None or records.evidence.is_full:
        return
    yield Suspect(
        kind="part",
        name="latency",
        key="fabric",
        text=f"of links and switches adds up over the steps, compared with a {_SHORT}th of it",
        change=_with_short_delays,
    )


def _overheads(records: _Records) -> Iterator[Suspect]:
    """The library of a collective: it launches the collective and starts each of its steps."""
    if records.prepared.scenario.collective is None or records.evidence.is_full:
        return
    yield Suspect(
        kind="part",
        name="overhead of the library",
        key="collective.size",
        text="launches the collective and starts each of its steps, which a larger size would hide",
        change=what_if.without_overheads,
    )


_ROWS: Final[tuple[Callable[[_Records], Iterator[Suspect]], ...]] = (
    _timeout,
    _headroom,
    _small_buffer,
    _receive_buffer,
    _host_interface,
    _lossy_links,
    _oversubscription,
    _hashes,
    _direct,
    _window,
    _recovery,
    _control,
    _overheads,
    _latency,
)


# Changes


def _with_short_delays(prepared: Prepared) -> Prepared:
    links = prepared.fabric.links.copy()
    links["delay_ps"] = np.maximum(1, links["delay_ps"] // _SHORT)
    servers = tuple(
        server.model_copy(update={"nvlink_latency_ps": server.nvlink_latency_ps // _SHORT})
        for server in prepared.fabric.servers
    )
    return what_if.on_fabric(prepared, links=links, servers=servers)


def _is_hashed(prepared: Prepared) -> bool:
    if isinstance(prepared.engine_input, FlowInput):
        return prepared.engine_input.mode in {Mode.HASHED, Mode.WEIGHTED}
    chosen = (prepared.policies["path_selection"], prepared.policies["port_selection"])
    by_hash = getattr(chosen[1].plugin, "spreads", None) in {"hash", "weighted-hash"}
    return by_hash and not any(getattr(one.plugin, "reorders", "never") == "always" for one in chosen)


def _sprayed(prepared: Prepared) -> Prepared:
    by_entropy = prepared.scenario.fabric.routing == "k-shortest"  # which leaves switches nothing to choose
    path, port = (PolicyChoice(name=name) for name in PRESETS["spray" if by_entropy else "switch-spray"])
    return _with_transport(prepared, path_selection=path, port_selection=port, reorder_tolerant=True)


def _with_transport(prepared: Prepared, **keys: object) -> Prepared:
    transport = prepared.scenario.transport.model_copy(update=keys)
    return what_if.with_section(prepared, transport=transport)

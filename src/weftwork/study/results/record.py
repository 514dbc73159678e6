"""Tables and summary of a run from an engine's output."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean, harmonic_mean
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.flow_identity import flow_identity
from weftwork.base.grammar import plural
from weftwork.base.units import SIZE, format_quantity
from weftwork.engine.outcome import EVENT_KINDS, SERIES_KINDS
from weftwork.engine.packet_input import DROP_REASONS
from weftwork.spec.result import TABLES, Quantity
from weftwork.spec.scenario.choices import PATTERNS
from weftwork.store.tables import table_schema
from weftwork.study.prepare.calibrated import calibration_of
from weftwork.study.results.assumptions import assumptions
from weftwork.study.results.collective_times import collective_times
from weftwork.study.results.fabric_tables import node_rows, path_rows, timeline_rows, wire_bytes
from weftwork.study.results.ideal import ideal_times_ps, nic_ports
from weftwork.study.results.intra_server import (
    CARRIERS,
    NVLINK,
    PACKETS,
    PCIE,
    carriers,
    inside_summary,
    message_times_ps,
)
from weftwork.study.results.link_use import link_use, mean_rates_bps, rate_rows, sent_bytes
from weftwork.study.results.path_taken import paths_taken, queue_pair_of
from weftwork.study.results.planned_paths import planned_summary
from weftwork.topology.oversubscription import end_to_end, oversubscription_by_tier, oversubscription_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from weftwork.engine.outcome import Outcome
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["MOST_LINKS", "about", "message_rows", "port_names", "summarise", "table", "words"]

QUANTILES: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999))
MOST_LINKS: Final = 100_000  # chosen: some megabytes
KEPT_LINKS: Final = 2_000  # chosen: of those the busiest, more than anybody reads
_NAMED_JOBS: Final = 3  # chosen: in a heading; the table jobs has all
_OF_QUEUES: Final = (
    "max_queue_bytes",
    "marks",
    "pauses",
    "paused_ps",
    "credit_frames",
    "nic_state_bytes",
    "reorder_buffer_bytes",
)
_COUNTED: Final = {  # events that are counted over the whole fabric, by the name of the counter
    "retransmission": "retransmissions",
    "timeout": "timeouts",
    "nak": "naks_sent",
    "cnp": "cnps_sent",
    "out of order discard": "out_of_order_discards",
    "duplicate": "duplicates",
    "queue pair error": "queue_pair_errors",
}
_COUNTERS: Final = {
    "data_sent": "Data packets sent, retransmissions included.",
    "retransmissions": "Data packets sent again.",
    "trims": "Data packets that a switch cut to their headers for lack of room.",
    "timeouts": "Retransmission timeouts: a sender went back because no acknowledgement came.",
    "naks_sent": "Negative acknowledgements sent: a packet was missing.",
    "cnps_sent": "Congestion notification packets sent.",
    "acks_sent": "Acknowledgements sent.",
    "out_of_order_discards": "Packets that a receiver discarded because an earlier packet was missing.",
    "duplicates": "Packets received more than once.",
    "queue_pair_errors": "Connections that failed after too many timeouts.",
    "packet_hops": "Packets times the links that they crossed, ACKs and CNPs included.",
}


def port_names(fabric: Fabric, chosen: NDArray[np.int64] | None = None) -> list[str]:
    """Name of every port: ``leaf0->spine1``.

    Parallel links have ``.2``, ``.3`` behind it, in order.

    Parameters
    ----------
    fabric : whose ports
    chosen : ports to name; None: all of them
    """
    ports = fabric.ports
    numbers = np.arange(len(ports.node)) if chosen is None else chosen
    of_chosen = np.zeros(len(fabric.node_kind), np.bool_)
    of_chosen[ports.node[numbers]] = True
    beside = np.flatnonzero(of_chosen[ports.node])  # parallel ports are of one node
    pair = ports.node[beside].astype(np.int64) * len(of_chosen) + ports.node[ports.peer[beside]]
    order = np.argsort(pair, kind="stable")
    is_first = np.append(True, pair[order][1:] != pair[order][:-1])
    place = np.empty(len(beside), np.int64)
    place[order] = np.arange(len(beside)) - np.maximum.accumulate(np.where(is_first, np.arange(len(beside)), 0))
    before = place[np.searchsorted(beside, numbers)].tolist()
    ends = np.concatenate([ports.node[numbers], ports.node[ports.peer[numbers]]])
    named, index = np.unique(ends, return_inverse=True)
    words = np.array([fabric.node_names[node] for node in named.tolist()], object)[index].reshape(2, -1).tolist()
    return [
        f"{node}->{peer}" + (f".{count + 1}" if count else "") for node, peer, count in zip(*words, before, strict=True)
    ]


def about(prepared: Prepared) -> dict[str, str]:
    """Description of a run in words."""
    scenario, fabric = prepared.scenario, prepared.fabric
    switches, links = len(fabric.node_names) - len(fabric.hosts), int(fabric.links_at_start.sum())
    parts = (f"{fabric.name}: {_hosts(fabric)}", plural(switches, "switch", "switches"),
             plural(links, "link"), oversubscription_text(fabric), _routing(prepared))  # fmt: skip
    return {
        "name": scenario.name,
        "workload": _workload(prepared),
        "fabric": ", ".join(part for part in parts if part),
        "transport": _transport(prepared),
        **({"assumes": assumptions(prepared)} if prepared.jobs else {}),
        **_calibrated(scenario),
    }


def _calibrated(scenario: Scenario) -> dict[str, str]:
    """Constants of a calibration in words; empty without one."""
    found = calibration_of(scenario)
    if found is None:
        return {}
    workload = "training" if scenario.trainings else "collective"
    drawn = "intervals by the ratio of closed forms" if found.draws else "no draws, so no intervals"
    return {"calibrated": f"{found.constants_of(workload)}; fitted on {found.words} ({Path(found.file).name}); {drawn}"}


def _routing(prepared: Prepared) -> str:
    """Rules of routing besides all shortest paths; empty without them."""
    section = prepared.scenario.fabric
    rules = {
        "k-shortest": f"{plural(section.paths or 0, 'shortest path')} a pair",
        "up-down": "routes up and then down",
    }
    ways = [rules[section.routing]] if section.routing in rules else []
    if section.engineering is not None:
        ways.append(f"paths planned by {Path(section.engineering.scheme).name}")
    return ", ".join([*ways, *([f"{len(section.pinned)} pinned"] if section.pinned else [])])


def _transport(prepared: Prepared) -> str:
    transport, policies = prepared.transport, prepared.policies
    paths = f"paths by {policies['path_selection'].name}, ports by {policies['port_selection'].name}"
    if prepared.is_folded:
        return f"{transport.name}, {paths}; max-min shares, no queues"
    control = "credits on every link" if transport.link_credits else "lossy"
    if transport.lossless_priorities:
        control = "lossless by PFC"
    return f"{transport.name}, {policies['congestion_control'].name}, {paths}, {control}, {transport.recovery}"


def _hosts(fabric: Fabric) -> str:
    """Number of hosts, with their kinds if they have several GPUs."""
    hosts, kinds = len(fabric.hosts), {server.name for server in fabric.servers}
    if fabric.gpus == hosts:
        return plural(hosts, "host")
    return f"{plural(hosts, 'server')} ({', '.join(sorted(kinds))}) with {plural(fabric.gpus, 'GPU')}"


def _workload(prepared: Prepared) -> str:
    scenario, jobs = prepared.scenario, prepared.jobs
    if len(jobs) > 1:
        told = [f"{job.name} ({job.model.name} on {plural(job.plan.ranks, 'GPU')})" for job in jobs[:_NAMED_JOBS]]
        more = [f"{len(jobs) - len(told):,} more"] if len(jobs) > len(told) else []
        return f"{plural(len(jobs), 'training job')} on one fabric: {', '.join(told + more)}"
    if jobs:
        return f"an iteration of {jobs[0].model.name} on {plural(jobs[0].plan.ranks, 'GPU')} ({jobs[0].words})"
    if scenario.collective is not None:
        found = scenario.collective
        size = "" if found.operation == "barrier" else f" of {format_quantity(SIZE, found.size_bytes)}"
        times = f", {found.repeat:,} times" if found.repeat > 1 else ""
        return f"{prepared.job.name}{size} among {plural(prepared.job.gpus, 'GPU')}{times}"
    found_ = scenario.traffic
    if found_ is None:
        return prepared.job.name
    with PATTERNS.blaming(found_.pattern):
        return PATTERNS.load(found_.pattern).words(found_.options, prepared.job)


def message_rows(prepared: Prepared, execution: Execution) -> dict[str, dict[str, Any]]:
    """Columns of the tables about messages and links.

    Only tables of `weftwork.spec.result` that the run has.
    """
    outcome = execution.outcome
    kept = _kept_links(prepared, execution)
    names = port_names(prepared.fabric, kept)
    found = {
        "links": _links(prepared, execution, kept, names),
        "nodes": node_rows(prepared.fabric),
        "rates": rate_rows(prepared, execution, kept),
        "events": _events(prepared, outcome, names),
    }
    if prepared.is_folded:
        return found
    return found | {
        "flows": _flows(prepared, outcome),
        "collectives": collective_times(prepared, outcome),
        "series": _series(prepared, outcome, names),
        "timeline": timeline_rows(outcome),
        "paths": path_rows(outcome),
    }


def table(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """A table of `weftwork.spec.result` from its columns."""
    import pyarrow as pa

    schema = table_schema(name)
    arrays = []
    for field in schema:
        column = columns[field.name]
        if not isinstance(column, pa.Array):
            column = pa.array(column if len(column) else [], field.type, from_pandas=field.nullable)
        arrays.append(column.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def words(names: Sequence[str], index: NDArray[Any]) -> pa.Array:
    """A column of few words, given by an index for each row."""
    import pyarrow as pa

    return pa.array(names, pa.string()).take(pa.array(np.asarray(index, np.int64)))


def _where(values: NDArray[Any], there: NDArray[np.bool_]) -> Any:  # noqa: ANN401 - an Arrow array
    import pyarrow as pa

    return pa.array(values, mask=~there)


def _flows(prepared: Prepared, outcome: Outcome) -> dict[str, Any]:
    messages, engine_input, fabric = outcome.messages, prepared.engine_input, prepared.fabric
    count = len(messages)
    done = messages["delivered_at_ps"] >= 0
    fct = messages["delivered_at_ps"] - messages["posted_at_ps"]
    port = engine_input.rank_ports[:, 0]
    source, destination, size_bytes = (messages[name] for name in ("source", "destination", "size_bytes"))
    carrier = carriers(engine_input, source, destination)
    ideal = np.empty(count, np.int64)
    by_packet = carrier == PACKETS
    taken = paths_taken(prepared, outcome)
    taken = replace(taken, of_message=taken.of_message[by_packet])
    ideal[by_packet] = ideal_times_ps(
        engine_input, *nic_ports(engine_input, messages[by_packet]), size_bytes[by_packet], taken
    )
    for inside in (NVLINK, PCIE):
        own = carrier == inside
        ideal[own] = message_times_ps(engine_input, inside, source[own], destination[own], size_bytes[own])
    measurable = done & (ideal > 0)
    hosts = np.array(fabric.node_names, object)[engine_input.port_node[port]]
    with np.errstate(divide="ignore", invalid="ignore"):
        slowdown = fct / ideal
        goodput = messages["size_bytes"] * 8.0 * SECOND_PS / fct
    return {
        "flow": np.arange(count),
        "queue_pair": queue_pair_of(messages),
        "source": hosts[messages["source"]],
        "destination": hosts[messages["destination"]],
        "source_rank": source,
        "destination_rank": destination,
        "carrier": np.array(CARRIERS, object)[carrier],
        "channel": messages["channel"],
        "size_bytes": messages["size_bytes"],
        "wire_bytes": wire_bytes(prepared.transport, messages["size_bytes"]),
        "start_ps": messages["posted_at_ps"],
        "delivered_ps": _where(messages["delivered_at_ps"], done),
        "acked_ps": _where(messages["acked_at_ps"], messages["acked_at_ps"] >= 0),
        "fct_ps": _where(fct, done),
        "ideal_fct_ps": _where(ideal, ideal >= 0),
        "slowdown": _where(slowdown, measurable),
        "goodput_bps": _where(goodput, done & (fct > 0)),
    }


def _kept_links(prepared: Prepared, execution: Execution) -> NDArray[np.int64]:
    """Ports with a row in the table.

    All of them; if ranks are folded and ports very many, the busiest.
    """
    every = np.arange(len(prepared.fabric.ports.link))
    if not prepared.is_folded or len(every) <= MOST_LINKS:
        return every
    rate_bps = prepared.fabric.links["rate_bps"][prepared.fabric.ports.link]
    return np.sort(np.argsort(-sent_bytes(prepared, execution) / rate_bps, kind="stable")[:KEPT_LINKS])


def _links(prepared: Prepared, execution: Execution, kept: NDArray[np.int64], names: Sequence[str]) -> dict[str, Any]:
    fabric, outcome = prepared.fabric, execution.outcome
    ports = fabric.ports
    rate_bps = fabric.links["rate_bps"][ports.link]
    utilisation, mean_bps = link_use(prepared, execution), mean_rates_bps(prepared, execution)[ports.link]
    counted = outcome.ports[kept]
    columns: dict[str, Any] = {
        "port": kept,
        "name": list(names),
        "link": _link_names(fabric, ports.link[kept]),
        "node": ports.node[kept],
        "peer": ports.node[ports.peer[kept]],
        "rate_bps": rate_bps[kept],
        "mean_rate_bps": np.rint(mean_bps[kept]).astype(np.int64),
        "utilisation": utilisation[kept],
    }
    return columns | {name: counted[name] for name in counted.dtype.names or ()}


def _link_names(fabric: Fabric, links: NDArray[np.integer]) -> list[str]:
    """Names of links, each made once.

    Both directions use it, and making all names in order is faster.
    """
    asked, place = np.unique(links, return_inverse=True)
    every = list(fabric.link_names) if 2 * len(asked) > len(fabric.links) else None
    names = [fabric.link_names[index] if every is None else every[index] for index in asked.tolist()]
    return [names[index] for index in place.tolist()]


def _series(prepared: Prepared, outcome: Outcome, names: Sequence[str]) -> dict[str, Any]:
    series = outcome.series
    if outcome.complete:  # timers that find nothing to do outlast the last packet, and samples with them
        series = series[series["at_ps"] <= outcome.counters["end_ps"]]
    is_port = series["kind"] == SERIES_KINDS.index("queue_bytes")
    of_flows = [str(number) for number in range(1 + int(series["index"][~is_port].max(initial=-1)))]
    of_state = [] if prepared.series is None else [field.name for field in prepared.series.state]
    place = np.where(is_port, series["index"] + len(of_flows), series["index"])  # ports behind flows
    return {
        "at_ps": series["at_ps"],
        "kind": _words(series["kind"], [*SERIES_KINDS, *of_state]),
        "place": _words(place, [*of_flows, *names]),
        "value": series["value"],
    }


def _words(index: NDArray[np.int64], words: Sequence[str]) -> pa.Array:
    """A column of words by number, without Python objects for each row."""
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(index, pa.int32()), pa.array(words, pa.string())).cast(pa.string())


def _events(prepared: Prepared, outcome: Outcome, names: Sequence[str]) -> dict[str, Any]:
    rows: list[tuple[str, str, str, int | None, int]] = []
    for event, field in (
        ("pause", "pauses_sent"),
        ("resume", "resumes_sent"),
        ("mark", "marks"),
        ("drop at port", "drops"),
        ("trim", "trims"),
    ):
        counts = outcome.ports[field]
        rows += [(event, "", names[port], None, int(counts[port])) for port in np.flatnonzero(counts).tolist()]
    for reason in DROP_REASONS:
        if outcome.counters[f"drop_{reason}"]:
            rows.append(("drop", reason, "all", None, outcome.counters[f"drop_{reason}"]))
    for event, counter in _COUNTED.items():
        if outcome.counters[counter]:
            rows.append((event, "", "all", None, outcome.counters[counter]))
    rows += [
        ("fault", fault.event, fault.where, fault.at_ps, 1)
        for fault in prepared.faults
        if fault.at_ps <= outcome.simulated_ps
    ]
    rows += [
        ("straggler", f"computes {slow.factor:g} times longer", f"GPU {slow.gpu}", None, 1)
        for slow in prepared.scenario.stragglers
    ]
    rows += _instants(prepared, outcome, names)
    return {column.name: [row[place] for row in rows] for place, column in enumerate(TABLES["events"])}


def _class_names(prepared: Prepared) -> list[str]:
    """Traffic classes in words: priority, and virtual channel if several."""
    engine_input = prepared.engine_input
    channels = getattr(engine_input, "virtual_channels", 1)  # flows have none
    return [
        f"priority {priority}" + (f", channel {index % channels}" if channels > 1 else "")
        for index, priority in enumerate(engine_input.class_priority.tolist())
    ]


def _instants(
    prepared: Prepared, outcome: Outcome, names: Sequence[str]
) -> list[tuple[str, str, str, int | None, int]]:
    """One row for each recorded event, and one that counts the rest."""
    pairs = _pair_words(outcome) if len(outcome.events) else []
    priorities = _class_names(prepared)
    details: Mapping[str, Sequence[str]] = {
        "pause": priorities, "resume": priorities, "mark": priorities, "drop": DROP_REASONS,
    }  # fmt: skip
    rows: list[tuple[str, str, str, int | None, int]] = []
    for at_ps, kind, place, detail in outcome.events.tolist():
        event = EVENT_KINDS[kind]
        is_port = event in details
        rows.append((event, details[event][detail] if is_port else "", (names if is_port else pairs)[place], at_ps, 1))
    if outcome.events_left_out:
        rows.append(("left out", "events with an instant that did not fit", "all", None, outcome.events_left_out))
    return rows


def _pair_words(outcome: Outcome) -> list[str]:
    """Both ranks of each queue pair, in the order of their numbers."""
    messages = outcome.messages
    last = np.diff(flow_identity(*(messages[name] for name in ("source", "destination", "channel"))), prepend=-1) != 0
    pairs = messages[["source", "destination"]][last].tolist()
    return [f"rank {source}->rank {destination}" for source, destination in pairs]


def summarise(prepared: Prepared, execution: Execution, tables: Mapping[str, pa.Table]) -> dict[str, Quantity]:
    """Make the numbers of a run about messages and links.

    If ranks are folded, only the numbers about links.
    """
    found = (_of_folded if prepared.is_folded else _of_messages)(prepared, execution, tables)
    if ratios := oversubscription_by_tier(prepared.fabric):
        text = "Rate of the hosts over the rate of the top tier: the product of the tiers' oversubscriptions."
        found["oversubscription"] = Quantity(value=end_to_end(ratios), unit="ratio", text=text)
    return found | planned_summary(prepared)


def _of_folded(prepared: Prepared, execution: Execution, tables: Mapping[str, pa.Table]) -> dict[str, Quantity]:
    simulated_ps = execution.outcome.simulated_ps
    busiest = float(np.max(tables["links"]["utilisation"].to_numpy(), initial=0.0))
    carried = float(sent_bytes(prepared, execution).sum())
    return {
        "simulated_ps": Quantity(value=simulated_ps, unit="ps", text="Simulated time of the run."),
        "busiest_link": Quantity(value=busiest, unit="share", text="Utilisation of the busiest link."),
        "network_bytes": Quantity(value=carried, unit="B", text="Bytes that all links carried, headers included."),
    }


def _of_messages(prepared: Prepared, execution: Execution, tables: Mapping[str, pa.Table]) -> dict[str, Quantity]:
    outcome = execution.outcome
    flows, links = tables["flows"], tables["links"]
    delivered = flows["fct_ps"].is_valid().to_numpy()
    size = flows["size_bytes"].to_numpy()
    payload = int(size[delivered].sum())
    last = int(np.max(flows["delivered_ps"].drop_null().to_numpy(), initial=0))
    first = int(np.min(flows["start_ps"].to_numpy(), initial=last))
    counters = outcome.counters
    found: dict[str, Quantity] = {}

    def put(name: str, value: float | None, unit: str, text: str) -> None:
        found[name] = Quantity(value=value, unit=unit, text=text)

    put("flows", len(size), "count", "Messages that were posted.")
    put("flows_completed", int(delivered.sum()), "count", "Messages that arrived completely.")
    put("payload_bytes", payload, "B", "Payload of the messages that arrived completely.")
    put("completion_ps", last - first, "ps", "Time from the first posted message to the last delivered message.")
    put("goodput_bps", payload * 8 * SECOND_PS / (last - first) if last > first else None, "b/s",
        "Delivered payload per completion time, summed over all hosts.")  # fmt: skip
    for name, suffix, unit, words in (
        ("fct", "_ps", "ps", "Flow completion time"),
        ("slowdown", "", "ratio", "Slowdown"),
    ):
        values = flows[f"{name}{suffix}"].drop_null().to_numpy().astype(np.float64)
        some = len(values) > 0
        for label, quantile in QUANTILES:
            value = float(np.quantile(values, quantile)) if some else None
            put(f"{name}_{label}{suffix}", value, unit, f"{words}, {label} of the flows that completed.")
        put(
            f"{name}_mean{suffix}",
            float(values.mean()) if some else None,
            unit,
            f"{words}, mean of the flows that completed.",
        )
        put(
            f"{name}_max{suffix}",
            float(values.max()) if some else None,
            unit,
            f"{words}, largest of a flow that completed.",
        )
    put(
        "jain_index",
        _jain(flows),
        "ratio",
        "Fairness of the goodputs of the flows (Jain): 1 is equal, 1/n is one flow alone.",
    )
    _put_collectives(tables["collectives"], put)
    found |= inside_summary(prepared.engine_input, flows, counters["end_ps"])
    put(
        "busiest_link",
        float(np.max(links["utilisation"].to_numpy(), initial=0.0)),
        "share",
        "Utilisation of the busiest link.",
    )
    put("max_queue_bytes", int(np.max(links["max_queue_bytes"].to_numpy(), initial=0)), "B", "Longest egress queue.")
    for name, column, unit, words in (
        ("marks", "marks", "count", "Packets marked by ECN."),
        ("pauses", "pauses_sent", "count", "PFC frames that asked for a pause."),
        ("paused_ps", "paused_ps", "ps", "Time for which ports were paused, summed over all ports."),
    ):
        put(name, int(links[column].to_numpy().sum()), unit, words)
    ports = outcome.ports
    put("credit_frames", int(ports["credit_frames"].sum()), "count", "Frames that returned credit to the other end of a"
        " link.")  # fmt: skip
    put("nic_state_bytes", int(ports["nic_state_bytes"].max(initial=0)), "B", "State of connections at a NIC port, the"
        " largest of all ports.")  # fmt: skip
    early = int(ports["max_early_packets"].max(initial=0)) * prepared.engine_input.transport.mtu_bytes
    put("reorder_buffer_bytes", early, "B", "Out-of-order packets kept at a NIC port, the largest of all ports and"
        " times; each counts as a full packet.")  # fmt: skip
    put(
        "drops",
        sum(counters[f"drop_{reason}"] for reason in DROP_REASONS),
        "count",
        "Packets lost, for all reasons.",
    )
    for reason in DROP_REASONS:
        put(f"drop_{reason}", counters[f"drop_{reason}"], "count", f"Packets lost: {reason.replace('_', ' ')}.")
    for name, words in _COUNTERS.items():
        put(name, counters[name], "count", words)
    end_ps = counters["end_ps"] if outcome.complete else outcome.simulated_ps
    put("simulated_ps", end_ps, "ps", "Simulated time of the run: the last arrival of a packet, or its stop.")
    if prepared.scenario.engine.fidelity == "flow":  # nothing to measure, which is not the same as none
        found |= {name: replace(found[name], value=None) for name in found if _is_of_packets(name)}
    return found


def _is_of_packets(name: str) -> bool:
    """Whether only an engine with packets has this number."""
    return name in _COUNTERS or name.startswith("drop") or name in _OF_QUEUES


def _jain(flows: pa.Table) -> float | None:
    goodput = flows["goodput_bps"].drop_null().to_numpy()
    if not goodput.any():  # no flow, or those of a barrier, which carry nothing
        return None
    return float(goodput.sum() ** 2 / (len(goodput) * np.square(goodput).sum()))


def _put_collectives(collectives: pa.Table, put: Any) -> None:  # noqa: ANN401 - the closure above
    if collectives.num_rows == 0:
        return
    put("collective_repetitions", collectives.num_rows, "count", "Number of times that the collective started.")
    for name, unit, words, mean in (
        ("duration_ps", "ps", "Time of a collective, mean over the repetitions.", fmean),
        ("algorithm_bandwidth_bps", "b/s", "Algorithm bandwidth at the mean time.", harmonic_mean),
        ("bus_bandwidth_bps", "b/s", "Bus bandwidth as nccl-tests defines it, at the mean time.", harmonic_mean),
    ):
        values = collectives[name].drop_null().to_pylist()
        put(f"collective_{name}", float(mean(values)) if values else None, unit, words)

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
from weftwork.engine.packet_input import DROP_REASONS
from weftwork.engine.rows.outcome import EVENT_KINDS, SERIES_KINDS
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.numbers import QUANTILES, declared, numbers_shown, quantities
from weftwork.spec.result import TABLES, Quantity
from weftwork.spec.routings import ROUTINGS
from weftwork.store.tables import table_schema
from weftwork.study.prepare.calibrated import calibration_of
from weftwork.study.prepare.workload import ROADS
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
from weftwork.topology.port_names import port_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from weftwork.engine.outcome import Outcome
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["MOST_LINKS", "about", "message_rows", "summarise", "table", "words"]

MOST_LINKS: Final = 100_000  # chosen: some megabytes
KEPT_LINKS: Final = 2_000  # chosen: of those the busiest, more than anybody reads
_COUNTED: Final = {  # events that are counted over the whole fabric, by the name of the counter
    "retransmission": "retransmissions",
    "timeout": "timeouts",
    "nak": "naks_sent",
    "cnp": "cnps_sent",
    "out of order discard": "out_of_order_discards",
    "duplicate": "duplicates",
    "queue pair error": "queue_pair_errors",
}


def about(prepared: Prepared) -> dict[str, str]:
    """Description of a run in words."""
    scenario, fabric = prepared.scenario, prepared.fabric
    switches, links = len(fabric.node_names) - len(fabric.hosts), int(fabric.links_at_start.sum())
    parts = (f"{fabric.name}: {_hosts(fabric)}", plural(switches, "switch", "switches"),
             plural(links, "link"), oversubscription_text(fabric), _routing(prepared))  # fmt: skip
    return {
        "name": scenario.name,
        "workload": ROADS[scenario.workload_kind.name].words(prepared),
        "fabric": ", ".join(part for part in parts if part),
        "transport": _transport(prepared),
        **({"assumes": assumptions(prepared)} if scenario.workload_kind.is_training else {}),
        **_calibrated(scenario),
    }


def _calibrated(scenario: Scenario) -> dict[str, str]:
    """Constants of a calibration in words; empty without one."""
    found = calibration_of(scenario)
    if found is None:
        return {}
    constants = found.constants_of(scenario.workload_kind.calibrated_as)
    drawn = "intervals by the ratio of closed forms" if found.draws else "no draws, so no intervals"
    return {"calibrated": f"{constants}; fitted on {found.words} ({Path(found.file).name}); {drawn}"}


def _routing(prepared: Prepared) -> str:
    """Rules of routing besides all shortest paths; empty without them."""
    section = prepared.scenario.fabric
    words = ROUTINGS[section.routing].words.format(paths=plural(section.paths or 0, "shortest path"))
    ways = [words] if words else []
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
    if prepared.scenario.workload_kind.is_collective:
        found["collectives"] = collective_times(prepared, outcome)
    return found | {
        "flows": _flows(prepared, outcome),
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
        arrays.append(column if column.type == field.type else column.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def words(names: Sequence[str], index: NDArray[Any]) -> pa.Array:
    """A column of few words, given by an index for each row."""
    import pyarrow as pa
    from pyarrow._compute import call_function  # of `pyarrow.compute`, which takes 25 ms to write all its functions

    column: pa.Array = call_function("take", [pa.array(names, pa.string()), pa.array(np.asarray(index, np.int64))])
    return column


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
        found |= quantities("oversubscription", end_to_end(ratios))
    return found | planned_summary(prepared)


def _of_folded(prepared: Prepared, execution: Execution, tables: Mapping[str, pa.Table]) -> dict[str, Quantity]:
    busiest = float(np.max(tables["links"]["utilisation"].to_numpy(), initial=0.0))
    return {
        **quantities("simulated_ps", execution.outcome.simulated_ps, until=""),
        **quantities("busiest_link", busiest),
        **quantities("network_bytes", float(sent_bytes(prepared, execution).sum())),
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

    def put(name: str, value: float | None, **words: str) -> None:
        found.update(quantities(name, value, **words))

    put("flows", len(size))
    put("flows_completed", int(delivered.sum()))
    put("payload_bytes", payload)
    put("completion_ps", last - first)
    put("goodput_bps", payload * 8 * SECOND_PS / (last - first) if last > first else None)
    for name, suffix in (("fct", "_ps"), ("slowdown", "")):
        values = flows[f"{name}{suffix}"].drop_null().to_numpy().astype(np.float64)
        some = len(values) > 0
        for label, quantile in QUANTILES:
            put(f"{name}_{label}{suffix}", float(np.quantile(values, quantile)) if some else None)
        put(f"{name}_mean{suffix}", float(values.mean()) if some else None)
        put(f"{name}_max{suffix}", float(values.max()) if some else None)
    put("jain_index", _jain(flows))
    found |= _of_collectives(tables["collectives"])
    found |= inside_summary(prepared.engine_input, flows, counters["end_ps"])
    put("busiest_link", float(np.max(links["utilisation"].to_numpy(), initial=0.0)))
    put("max_queue_bytes", int(np.max(links["max_queue_bytes"].to_numpy(), initial=0)))
    for name, column in (("marks", "marks"), ("pauses", "pauses_sent"), ("paused_ps", "paused_ps")):
        put(name, int(links[column].to_numpy().sum()))
    ports = outcome.ports
    put("credit_frames", int(ports["credit_frames"].sum()))
    put("nic_state_bytes", int(ports["nic_state_bytes"].max(initial=0)))
    early = int(ports["max_early_packets"].max(initial=0)) * prepared.engine_input.transport.mtu_bytes
    put("reorder_buffer_bytes", early)
    put("drops", sum(counters[f"drop_{reason}"] for reason in DROP_REASONS))
    for reason in DROP_REASONS:
        put("drop_{reason}", counters[f"drop_{reason}"], reason=reason, words=reason.replace("_", " "))
    for number in numbers_shown("counter"):
        put(number.name, counters[number.name])
    end_ps = counters["end_ps"] if outcome.complete else outcome.simulated_ps
    put("simulated_ps", end_ps, until=": the last arrival of a packet, or its stop")
    if not FIDELITIES[
        prepared.scenario.engine.fidelity
    ].has_packets:  # nothing to measure, which is not the same as none
        found |= {name: replace(found[name], value=None) for name in found if _is_of_packets(name)}
    return found


def _is_of_packets(name: str) -> bool:
    """Whether only an engine with packets has this number."""
    number = declared(name)
    return number is not None and "packets" in number.places


def _jain(flows: pa.Table) -> float | None:
    goodput = flows["goodput_bps"].drop_null().to_numpy()
    if not goodput.any():  # no flow, or those of a barrier, which carry nothing
        return None
    return float(goodput.sum() ** 2 / (len(goodput) * np.square(goodput).sum()))


def _of_collectives(collectives: pa.Table) -> dict[str, Quantity]:
    if collectives.num_rows == 0:
        return {}
    found = quantities("collective_repetitions", collectives.num_rows)
    for name, mean in (
        ("duration_ps", fmean), ("algorithm_bandwidth_bps", harmonic_mean), ("bus_bandwidth_bps", harmonic_mean)
    ):  # fmt: skip
        values = collectives[name].drop_null().to_pylist()
        found |= quantities(f"collective_{name}", float(mean(values)) if values else None)
    return found

"""The slowest flows of a run, and why they were slow.

Reasons are queues, shared paths, pauses, and packets sent again.

For every port on the path of a flow the time of the flow is split by what the port did meanwhile: it sent this flow, it
sent others, it was paused. The port at which others and pauses took most is the one that held the flow back.
Reads `flows`, `links`, `paths`, `timeline`, `events` and `series`. Leaves out: what happens inside a host; packets that
were sent again count with the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weftwork.base.clock import SECOND_PS
from weftwork.base.grammar import plural
from weftwork.report.link_rates import read_link_rates
from weftwork.report.words import amount, sentence

if TYPE_CHECKING:
    from weftwork.report.over_time import OverTime
    from weftwork.store.runs import Run

__all__ = ["FlowHop", "SlowFlow", "SlowReason", "slow_flows", "why"]

_WORTH_TELLING = 0.02  # chosen: of the flow's time; less explains nothing
_LEAST_BINS = 3  # chosen: of the timeline; what lasted less cannot be told from its neighbours in the same bins
_MOSTLY_IDLE = 0.3  # chosen: of the flow's time
_HARDLY_SLOWER = 1.1  # chosen: slowdown


@dataclass(frozen=True, kw_only=True)
class FlowHop:
    """A port on the path of a flow.

    Attributes
    ----------
    name, peer : of the port, and of the node at its other end
    share : of the flow's packets that took it
    wait_ps : time to send what a packet found queued there, on average
    queue_bytes : that
    own_ps, others_ps, paused_ps : what the port did while the flow lasted; None without a timeline, or where the flow
        is too short for its bins
    sharers : names of other flows that took the port and lasted at the same time
    sharers_count : how many
    """

    name: str
    peer: str
    share: float
    wait_ps: float
    queue_bytes: float
    own_ps: float | None
    others_ps: float | None
    paused_ps: float | None
    sharers: tuple[str, ...]
    sharers_count: int

    @property
    def held_ps(self) -> float:
        """Time in which other flows and pauses held the flow back."""
        return (self.others_ps or 0.0) + (self.paused_ps or 0.0)


@dataclass(frozen=True, kw_only=True)
class SlowFlow:
    """A flow and the facts known about it.

    Attributes
    ----------
    flow, queue_pair : numbers
    name : such as ``host3 -> host9``
    took_ps : completion time, or until the end of the run
    is_done : whether it completed
    slowdown : None where there is none
    carrier : ``packets``, or what carried it inside a server
    size_bytes : payload
    start_ps : when it was posted
    behind_ps, behind : how long, and for how many messages, it waited on its own queue pair
    timeouts, returns : of its queue pair, within its time; None where they cannot be told apart
    hops : the ports on its path, by number; None where the run has not recorded paths
    """

    flow: int
    queue_pair: int
    name: str
    took_ps: int
    is_done: bool
    slowdown: float | None
    carrier: str
    size_bytes: int
    start_ps: int
    behind_ps: int
    behind: int
    timeouts: int
    returns: int
    hops: tuple[FlowHop, ...] | None

    @property
    def held(self) -> FlowHop | None:
        """The port that held the flow back most."""
        if not self.hops:
            return None
        return max(self.hops, key=lambda hop: (hop.held_ps, hop.wait_ps))


@dataclass(frozen=True, kw_only=True)
class SlowReason:
    """One reason why a flow was slow.

    Attributes
    ----------
    kind, where : what it is, and at which port; flows with equal ones tell the same story
    weight_ps : about how much time it explains
    text : a sentence
    """

    kind: str
    where: str
    weight_ps: float
    text: str


def slow_flows(run: Run, over_time: OverTime | None, *, most: int = 10) -> list[SlowFlow]:
    """The flows with the largest slowdown.

    Before them come up to half as many incomplete flows, the oldest first.
    """
    end_ps = int(run.value("simulated_ps") or 0)
    unfinished = run.query(
        f"select * from flows where fct_ps is null order by start_ps, flow limit {most // 2}"  # noqa: S608 - a number
    ).to_pylist()
    rest = most - len(unfinished)
    finished = run.query(
        "select * from flows where fct_ps is not null "  # noqa: S608 - a number
        "order by coalesce(slowdown, 0) desc, fct_ps desc, flow "
        f"limit {rest}"
    ).to_pylist()
    return [_slow_flow(run, over_time, row, end_ps) for row in [*unfinished, *finished]]


def _slow_flow(run: Run, over_time: OverTime | None, row: dict[str, Any], end_ps: int) -> SlowFlow:
    pair, start = int(row["queue_pair"]), int(row["start_ps"])
    is_done = row["delivered_ps"] is not None
    end = int(row["delivered_ps"]) if is_done else end_ps
    before = run.query(
        f"select count(*) as behind, max(coalesce(delivered_ps, {end_ps})) as last from flows "  # noqa: S608 - numbers
        f"where queue_pair = {pair} and flow < {row['flow']} and coalesce(delivered_ps, {end_ps}) > {start}"
    ).to_pylist()[0]
    behind = int(before["behind"])
    waited = min(int(before["last"]), end) - start if behind else 0
    counts = {"timeout": 0, "go back": 0}
    ranks = f"rank {row['source_rank']}->rank {row['destination_rank']}"
    for event in run.query(
        "select event, sum(count)::bigint as count from events where event in ('timeout', 'go back') "  # noqa: S608
        f"and place = '{ranks}' and at_ps between {start} and {end} group by event"
    ).to_pylist():
        counts[event["event"]] = int(event["count"])
    return SlowFlow(
        flow=int(row["flow"]),
        queue_pair=pair,
        name=_name(row),
        took_ps=end - start,
        is_done=is_done,
        slowdown=row["slowdown"],
        carrier=str(row["carrier"]),
        size_bytes=int(row["size_bytes"]),
        start_ps=start,
        behind_ps=waited,
        behind=behind,
        timeouts=counts["timeout"],
        returns=counts["go back"],
        hops=_hops(run, over_time, row, start + waited, end),
    )


def _name(row: dict[str, Any]) -> str:
    if row["source"] == row["destination"]:
        return f"{row['source']}, rank {row['source_rank']} \u2192 {row['destination_rank']}"
    return f"{row['source']} \u2192 {row['destination']}"


def _hops(
    run: Run, over_time: OverTime | None, row: dict[str, Any], start_ps: int, end_ps: int
) -> tuple[FlowHop, ...] | None:
    pair = int(row["queue_pair"])
    ports = run.query(
        "select p.*, l.name, n.name as peer from paths p join links l using (port) "  # noqa: S608 - numbers
        f"join nodes n on n.node = l.peer where queue_pair = {pair} order by port"
    ).to_pylist()
    others_of = {
        found["port"]: found
        for found in run.query(
            f"with mine as (select port from paths where queue_pair = {pair}), "  # noqa: S608 - numbers
            "meanwhile as (select queue_pair, any_value(source || ' \u2192 ' || destination || case when "
            f"source_rank = {row['source_rank']} and destination_rank = {row['destination_rank']} "
            "then ', channel ' || channel else '' end) as name from flows "
            f"where start_ps < {end_ps} and coalesce(delivered_ps, {end_ps}) > {start_ps} and queue_pair <> {pair} "
            "group by queue_pair) "
            "select port, count(*) as count, list(name order by queue_pair)[1:3] as names from paths "
            "join mine using (port) join meanwhile using (queue_pair) group by port"
        ).to_pylist()
    }
    if not ports:
        return None
    sent = max(port["packets"] for port in ports)  # all of them by the port of the host
    hops = []
    rates = read_link_rates(run) if over_time is None else over_time.rates
    for port in ports:
        share = port["packets"] / sent
        rate_bps = rates.mean_bps(port["port"], start_ps, end_ps)
        own = others = paused = None
        if over_time is not None and end_ps - start_ps >= _LEAST_BINS * over_time.bin_ps:
            own = _sending_ps(share * row["wire_bytes"], rate_bps, end_ps - start_ps)
            number = port["port"]
            wire = over_time.within("bytes", number, start_ps, end_ps) * over_time.wire_factor[number]
            busy = _sending_ps(wire, rate_bps, end_ps - start_ps)
            own = min(own, busy)
            others = busy - own
            paused = min(over_time.within("paused_ps", number, start_ps, end_ps), end_ps - start_ps - busy)
        sharing = others_of.get(port["port"], {"names": [], "count": 0})
        hops.append(
            FlowHop(
                name=port["name"],
                peer=port["peer"],
                share=share,
                wait_ps=_sending_ps(port["mean_queue_bytes"], rate_bps, end_ps - start_ps),
                queue_bytes=port["mean_queue_bytes"],
                own_ps=own,
                others_ps=others,
                paused_ps=None if paused is None else max(paused, 0.0),
                sharers=tuple(sharing["names"]),
                sharers_count=int(sharing["count"]),
            )
        )
    return tuple(hops)


def _sending_ps(size_bytes: float, rate_bps: float, most_ps: int) -> float:
    """Time in which a port sends bytes, up to a maximum.

    The maximum if the port had no rate.
    """
    if rate_bps <= 0:
        return float(most_ps) if size_bytes else 0.0
    return min(size_bytes * 8 * SECOND_PS / rate_bps, float(most_ps))


def why(slow: SlowFlow) -> list[SlowReason]:
    """The reasons for a flow's slowness, the weightiest first."""
    found: list[SlowReason] = []

    def say(kind: str, where: str, weight_ps: float, text: str) -> None:
        found.append(SlowReason(kind=kind, where=where, weight_ps=weight_ps, text=text))

    took = max(slow.took_ps, 1)
    held = slow.held
    if slow.behind_ps > _WORTH_TELLING * took:
        messages = plural(slow.behind, "message")
        text = f"It waited {_time(slow.behind_ps, took)} behind {messages} on its own queue pair."
        say("behind", "", slow.behind_ps, text)
    idle_ps = _idle_ps(slow, held)
    if slow.timeouts or slow.returns:
        say("again", "", took if slow.timeouts else idle_ps, _sent_again(slow, held, idle_ps))
    if held is None:
        inside = f"It went inside a server, by message over {slow.carrier}: no packets, no queues."
        say("unknown", "", 0.0, "The run has not recorded its path." if slow.carrier == "packets" else inside)
        return sorted(found, key=lambda reason: -reason.weight_ps)
    if held.own_ps is None and held.sharers_count:
        others = plural(held.sharers_count, "other flow was", "other flows were")
        say("shared", held.name, held.wait_ps, f"{sentence(others)} on {held.name} at the same time ({_names(held)}).")
    shared = max(slow.hops or (), key=lambda hop: hop.others_ps or 0.0)
    if shared.others_ps is not None and shared.others_ps > _WORTH_TELLING * took:
        say("collided", shared.name, shared.others_ps, _collided(shared, took))
    for hop in slow.hops or ():
        if hop.paused_ps is not None and hop.paused_ps > _WORTH_TELLING * took:
            say("paused", hop.name, hop.paused_ps, f"{hop.peer} paused {hop.name} for {_time(hop.paused_ps, took)}.")
    queued = max(slow.hops or (), key=lambda hop: hop.wait_ps * hop.share)
    if queued.wait_ps > _WORTH_TELLING * took:
        say("queued", queued.name, queued.wait_ps, _queued(queued, slow.hops or ()))
    is_hardly_slower = slow.slowdown is not None and slow.slowdown < _HARDLY_SLOWER
    if not found and is_hardly_slower:
        say("nothing", "", 0.0, "Nearly as fast as alone on an empty fabric.")
    elif held.own_ps is None:
        text = "The traffic of its ports is not known: there is no timeline, or the flow is too short for its steps."
        say("untimed", "", 0.0, text)
    elif not slow.timeouts and (not found or idle_ps > _MOSTLY_IDLE * took):
        text = (
            f"{held.name} was idle for {_time(idle_ps, took)}: the sender held back (its rate or window), or waited "
            "for acknowledgements."
        )
        say("idle", held.name, idle_ps, text)
    return sorted(found, key=lambda reason: -reason.weight_ps)


def _idle_ps(slow: SlowFlow, held: FlowHop | None) -> float:
    """Idle time of the port without a known reason; 0 if unknown."""
    if held is None or held.own_ps is None:
        return 0.0
    return max(slow.took_ps - slow.behind_ps - held.own_ps - held.held_ps, 0.0)


def _sent_again(slow: SlowFlow, held: FlowHop | None, idle_ps: float) -> str:
    parts = []
    if slow.timeouts:
        parts.append(f"ran into {plural(slow.timeouts, 'timeout')}")
    if slow.returns:
        parts.append(f"went back to a lost packet {plural(slow.returns, 'time')}")
    text = f"{sentence(' and '.join(parts))} and sent packets again"
    if held is not None and idle_ps > _MOSTLY_IDLE * slow.took_ps:
        return f"{text}; {held.name} meanwhile was idle for {_time(idle_ps, max(slow.took_ps, 1))}."
    return f"{text}."


def _time(value_ps: float, took_ps: int) -> str:
    return f"{amount(value_ps, 'ps')} ({amount(min(value_ps / took_ps, 1.0), 'share')} of its time)"


def _collided(hop: FlowHop, took: int) -> str:
    text = f"{hop.name} sent other traffic for {_time(hop.others_ps or 0.0, took)}"
    if not hop.sharers_count:
        return text + ", not of another flow: acknowledgements, or packets sent again."
    return f"{text}: the flow collided there with {plural(hop.sharers_count, 'other flow')} ({_names(hop)})."


def _names(hop: FlowHop) -> str:
    more = hop.sharers_count - len(hop.sharers)
    return ", ".join(hop.sharers) + (f" and {more:,} more" if more else "")


def _queued(hop: FlowHop, hops: tuple[FlowHop, ...]) -> str:
    total = sum(one.wait_ps * one.share for one in hops)
    text = (
        f"Queued at {hop.name}: a packet found {amount(hop.queue_bytes, 'B')} ahead on average, "
        f"{amount(hop.wait_ps, 'ps')} of waiting"
    )
    share = hop.wait_ps * hop.share / total
    return f"{text}, {amount(share, 'share')} of all queueing on its path." if len(hops) > 1 else f"{text}."

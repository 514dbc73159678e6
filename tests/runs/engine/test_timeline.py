"""The timeline of all ports and the paths of packets: in step with the counters, of a fixed size, and no part of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from laws.scenarios import random_plan

from weftwork.base.clock import US_PS
from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.packet import Series
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import Ecn, Nic, Switch
from weftwork.spec.transport import Transport
from weftwork.topology.shapes.fat_tree import fat_tree
from weftwork.workload.traffic.patterns.incast import incast
from weftwork.workload.traffic.patterns.permutation import permutation

if TYPE_CHECKING:
    from weftwork.engine.outcome import Outcome
    from weftwork.engine.packet_input import PacketInput

SEEDS = (3, 7, 19, 27, 33, 45)
BINS = 8
MTU_BYTES = 4_096
COLUMNS = ("bytes", "marks", "drops", "pauses")
COUNTERS = ("bytes", "marks", "drops", "pauses_sent")

pytestmark = pytest.mark.sanitize


@cache
def _plan(*, sprayed: bool = False, crowded: bool = False, packets: int = 64) -> PacketInput:
    """16 hosts in a fat tree of 4-port switches; crowded: all of them send to one, through small buffers."""
    fabric = fat_tree(
        tiers=3,
        radix=4,
        host_rate_bps=100 * 10**9,
        fabric_rate_bps=100 * 10**9,
        host_delay_ps=US_PS // 2,
        fabric_delay_ps=US_PS // 2,
        switch=Switch(buffer_bytes=400_000, ecn=Ecn(kmin_bytes=10_000, kmax_bytes=60_000)),
        nic=Nic(),
    )
    size = packets * MTU_BYTES
    job = (
        incast(hosts=16, senders=8, size_bytes=size, seed=1)
        if crowded
        else permutation(hosts=16, size_bytes=size, seed=1)
    )
    return lower(
        fabric=fabric,
        job=job,
        transport=Transport(mtu_bytes=MTU_BYTES, reorder_tolerant=sprayed),
        congestion_control=load("congestion_control", "dcqcn"),
        settings=EngineSettings(port_selection=load("port_selection", "spray" if sprayed else "ecmp")),
    )


def _run(engine_input: PacketInput, **series: Any) -> Outcome:
    return packet.run(engine_input, series=Series(**series))


def _sums(outcome: Outcome, column: str) -> np.ndarray:
    found = np.zeros(len(outcome.ports), np.int64)
    np.add.at(found, outcome.timeline["port"], outcome.timeline[column])
    return found


@pytest.mark.parametrize("bins", [1, 7, BINS, 240])
@pytest.mark.parametrize("seed", SEEDS)
def test_bins_add_up_to_the_counters_and_change_nothing(seed: int, bins: int) -> None:
    """However often bins were merged, their sums are the counters of the port, and the digest is what it was."""
    engine_input = random_plan(seed)
    silent, told = packet.run(engine_input), _run(engine_input, timeline_bins=bins, path_sample=1)
    assert silent.digest() == told.digest()
    assert len(silent.timeline) == len(silent.paths) == silent.timeline_bin_ps == 0
    for column, counter in zip(COLUMNS, COUNTERS, strict=True):
        assert np.array_equal(_sums(told, column), told.ports[counter])
    places = (told.timeline["at_ps"] - 1) // told.timeline_bin_ps
    assert places.max(initial=0) < bins
    keys = list(zip(places.tolist(), told.timeline["port"].tolist(), strict=True))
    assert keys == sorted(set(keys))
    assert all(any(row[name] for name in (*COLUMNS, "queue_bytes", "paused_ps")) for row in told.timeline)


def test_the_chosen_plans_fill_every_column() -> None:
    """Without something in every column the sums above could not be wrong."""
    tables = [_run(random_plan(seed), timeline_bins=BINS).timeline for seed in SEEDS]
    for column in (*COLUMNS, "queue_bytes", "paused_ps"):
        assert any(table[column].any() for table in tables)


@pytest.mark.parametrize("crowded", [False, True])
def test_a_bin_never_holds_more_than_the_line_carries(*, crowded: bool) -> None:
    """Rate times length, and one frame whose transmission starts in the bin and ends behind it; it gets full, too."""
    engine_input = _plan(crowded=crowded)
    told = _run(engine_input, timeline_bins=240).timeline
    length = _run(engine_input, timeline_bins=240).timeline_bin_ps
    begin = (told["at_ps"] - 1) // length * length
    most = engine_input.port_rate_bps[told["port"]] * (told["at_ps"] - begin) / 8e12
    frame = MTU_BYTES + 100
    assert np.all(told["bytes"] <= most + frame)
    assert np.any(told["bytes"] >= most - 2 * frame)


def test_merging_keeps_sums_and_largest_queues() -> None:
    """A short timeline is the long one with its bins put together."""
    engine_input = _plan(crowded=True)
    long, short = _run(engine_input, timeline_bins=4096), _run(engine_input, timeline_bins=BINS)
    assert long.timeline_bin_ps == US_PS
    assert short.timeline_bin_ps > 4 * US_PS
    wanted: dict[tuple[int, int], list[int]] = {}
    for row in long.timeline:
        sums = wanted.setdefault(((int(row["at_ps"]) - 1) // short.timeline_bin_ps, int(row["port"])), [0] * 6)
        for index, column in enumerate((*COLUMNS, "paused_ps")):
            sums[index] += int(row[column])
    found = {
        ((int(row["at_ps"]) - 1) // short.timeline_bin_ps, int(row["port"])): [
            *(int(row[column]) for column in (*COLUMNS, "paused_ps")), 0,
        ]
        for row in short.timeline
    }  # fmt: skip
    assert found == {key: sums for key, sums in wanted.items() if key in found}
    assert not any(any(sums) for key, sums in wanted.items() if key not in found)
    assert short.timeline["queue_bytes"].max() <= long.timeline["queue_bytes"].max()


def test_a_merged_bin_has_the_largest_queue_of_the_ends_that_it_saw() -> None:
    """Bins begin with 1 us and double whenever there would be nine; each end is looked at once, by what holds then.

    Where the largest queue is not the last one of a bin, and several have one, a sum or the last would be seen.
    """
    engine_input = _plan(crowded=True)
    long, short = _run(engine_input, timeline_bins=4096), _run(engine_input, timeline_bins=BINS)
    at_ps, ends_ps, bin_ps = US_PS, [], US_PS
    while at_ps < long.timeline["at_ps"].max():
        ends_ps.append(at_ps)
        while (at_ps - 1) // bin_ps >= BINS:
            bin_ps *= 2
        at_ps = (at_ps // bin_ps + 1) * bin_ps
    assert bin_ps == short.timeline_bin_ps
    seen: dict[tuple[int, int], list[int]] = {}
    for row in long.timeline[np.isin(long.timeline["at_ps"], ends_ps)]:
        seen.setdefault(((int(row["at_ps"]) - 1) // bin_ps, int(row["port"])), []).append(int(row["queue_bytes"]))
    last_bin = int(short.timeline["at_ps"].max() - 1) // bin_ps  # which ends with the run
    found = {((int(row["at_ps"]) - 1) // bin_ps, int(row["port"])): int(row["queue_bytes"]) for row in short.timeline}
    for key, queues in seen.items():
        if key[0] < last_bin:
            assert found[key] == max(queues)
    assert sum(max(queues) not in {queues[-1], sum(queues)} for queues in seen.values()) > 5


def test_a_pause_is_told_as_it_passes() -> None:
    """What a port was paused in a bin is no longer than the bin, and together what its counter says but for the end."""
    engine_input = _plan(crowded=True, packets=256)
    told = _run(engine_input, timeline_bins=240)
    assert told.ports["paused_ps"].any()
    begin = (told.timeline["at_ps"] - 1) // told.timeline_bin_ps * told.timeline_bin_ps
    assert np.all(told.timeline["paused_ps"] >= 0)
    assert np.all(told.timeline["paused_ps"] <= (told.timeline["at_ps"] - begin))
    assert np.all(_sums(told, "paused_ps") <= told.ports["paused_ps"])
    assert _sums(told, "paused_ps").sum() > 0.9 * told.ports["paused_ps"].sum()


def test_the_last_bin_ends_with_the_run() -> None:
    """No later than the last arrival, or where the run was cut off."""
    engine_input = _plan()
    whole = _run(engine_input, timeline_bins=240)
    end_ps = whole.counters["end_ps"]
    assert end_ps - whole.timeline_bin_ps < whole.timeline["at_ps"].max() <= end_ps
    longer = _run(engine_input, timeline_bins=3)
    assert end_ps % longer.timeline_bin_ps
    assert longer.timeline["at_ps"].max() == end_ps
    cut_ps = end_ps // 2
    assert cut_ps % whole.timeline_bin_ps
    assert _run(replace(engine_input, until_ps=cut_ps), timeline_bins=240).timeline["at_ps"].max() == cut_ps


def test_a_quiet_fabric_keeps_short_bins() -> None:
    """A stale timer long behind the end makes no bin, and no bin longer."""
    engine_input = _plan(packets=1)
    told = _run(engine_input, timeline_bins=240)
    assert engine_input.transport.retransmission_timeout_ps > 10_000 * US_PS
    assert told.timeline_bin_ps == US_PS
    assert told.timeline["at_ps"].max() < 100 * US_PS


@pytest.mark.parametrize("sprayed", [False, True])
def test_paths_list_the_ports_that_a_flow_crosses(*, sprayed: bool) -> None:
    """Port by port from host to host without a gap; by ECMP the only way, sprayed as many packets on every hop."""
    engine_input = _plan(sprayed=sprayed)
    told = _run(engine_input, path_sample=1)
    assert told.counters["retransmissions"] == 0
    pairs = sorted({(int(row["source"]), int(row["destination"])) for row in told.messages})
    assert set(told.paths["queue_pair"].tolist()) == set(range(len(pairs)))
    for number, (source, destination) in enumerate(pairs):
        rows = told.paths[told.paths["queue_pair"] == number]
        assert rows["port"].tolist() == sorted(set(rows["port"].tolist()))
        comes: dict[int, int] = {}
        goes: dict[int, int] = {}
        for row in rows:
            here, there = (
                int(engine_input.port_node[row["port"]]),
                int(engine_input.port_node[engine_input.port_peer[row["port"]]]),
            )
            goes[here] = goes.get(here, 0) + int(row["packets"])
            comes[there] = comes.get(there, 0) + int(row["packets"])
        first, last = (int(engine_input.port_node[engine_input.rank_ports[rank, 0]]) for rank in (source, destination))
        assert goes.pop(first) == comes.pop(last) == 64
        assert goes == comes
        assert rows["queue_bytes"][rows["port"] == engine_input.rank_ports[source, 0]].tolist() == [0]
        if not sprayed:
            assert len(rows) == len(goes) + 1
    if sprayed:
        assert len(told.paths) > len(_run(_plan(), path_sample=1).paths)


def test_every_kth_packet_is_followed() -> None:
    """Of packets 0 to 63 those whose number 16 divides, and the queues that they met are among those that all met."""
    engine_input = _plan(crowded=True)
    every, some = _run(engine_input, path_sample=1).paths, _run(engine_input, path_sample=16).paths
    assert np.array_equal(every[["queue_pair", "port"]], some[["queue_pair", "port"]])
    assert set(some["packets"].tolist()) == {4}
    assert np.all(some["queue_bytes"] <= every["queue_bytes"])
    assert some["queue_bytes"].any()


@pytest.mark.parametrize("limit", [100, 700, 3_000])
def test_samples_beyond_the_limit_leave_out_every_second_instant(limit: int) -> None:
    asked_ps = US_PS // 5
    engine_input = _plan(crowded=True)
    every = _run(engine_input, every_ps=asked_ps, ports=tuple(range(10)), flows=None)
    kept = _run(engine_input, every_ps=asked_ps, ports=tuple(range(10)), flows=None, row_limit=limit)
    assert len(every.series) > 4 * limit
    assert every.caveats == {}
    steps = np.unique(np.diff(np.unique(kept.series["at_ps"])))
    (kept_ps,) = steps.tolist()
    assert kept_ps in {asked_ps * 2**times for times in range(1, 12)}
    wanted = every.series[every.series["at_ps"] % kept_ps == 0]
    assert np.array_equal(kept.series, wanted)
    rows_each = int((kept.series["at_ps"] == kept_ps).sum())
    assert limit / 2 - rows_each <= len(kept.series) <= limit + rows_each
    assert "samples are" in kept.caveats["engine.record.every"].text
    assert kept.digest() == every.digest()

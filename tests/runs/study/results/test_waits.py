"""A run that cannot go on says who waits for what and what stopped it: tables ``waits`` and ``deadlock``, lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.gallery import Gallery
from helpers.tiny import wired
from helpers.waiting import PROGRAMS, run_of, run_programs

import weftwork
from weftwork.cli.run import _is_stuck
from weftwork.report.answer import answer
from weftwork.report.waiting import waiting_lines
from weftwork.spec.device import Switch
from weftwork.store.runs import Run

COLLECTIVE = """schema: 3
fabric: {topology: leaf-spine, hosts: 8, radix: 8, link_rate: 100Gbps}
transport: {congestion_control: none, timeout: 100us}
collective: {operation: all-reduce, size: 4MiB, algorithm: ring}
"""
TRAINING = """schema: 3
fabric: {topology: leaf-spine, hosts: 8, radix: 8, node: {gpus: 1}, link_rate: 100Gbps}
transport: {congestion_control: none, timeout: 100us}
training: {model: gpt-1.7b, gpu: h100, pipeline: 2, micro_batch: 1, global_batch: 8, gradients: bf16,
           overlap: {data: 0}}
"""
DEAD = "faults: [{at: 50us, nic: host3, event: down}]\n"


def rows(run: Run, **wanted: object) -> list[dict[str, Any]]:
    found = run.table("waits").to_pylist()
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_a_dead_link_under_a_collective_is_the_root(gallery: Gallery, fidelity: str) -> None:
    run = gallery.run(f"{COLLECTIVE}{DEAD}engine: {{fidelity: {fidelity}}}\n")
    assert run.status == ("stuck" if fidelity == "flow" else "gave-up")
    stopped = [row for row in rows(run) if row["stopped_by"] is not None]
    assert {(row["stopped_by"], row["place"], row["since_ps"]) for row in stopped} == {
        ("dead link", "host3-leaf0", 50_000_000)
    }
    assert all(3 in (row["rank"], row["peer"]) and row["operation"] == "all-reduce" for row in stopped)
    assert {row["size_bytes"] for row in stopped} == {4 * 2**20 // 32}
    held_up = rows(run, stopped_by=None, waits_for="receive")
    assert {row["rank"] for row in held_up} == {0, 1, 2, 5, 6, 7}
    assert all(row["blocked_by"] == row["peer"] for row in held_up)
    told = waiting_lines(run)
    assert told[0].endswith("link host3-leaf0 is down since 50 us.")
    assert "in all-reduce, step " in told[0]
    assert " rank 3 (host3), channel 0, 131 kB" in told[0]
    assert told[1].endswith("has not sent it.")
    assert told[-1] == "8 ranks wait in all."
    said = answer(run)
    assert said[said.index(told[0]) :][: len(told)] == told


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_a_dead_link_under_training_is_the_root(gallery: Gallery, fidelity: str) -> None:
    run = gallery.run(f"{TRAINING}{DEAD}engine: {{fidelity: {fidelity}}}\n")
    assert run.status == ("stuck" if fidelity == "flow" else "gave-up")
    told = waiting_lines(run)
    assert told[0].endswith(": link host3-leaf0 is down since 50 us.")
    assert " waits in pipeline, forward of micro batch 0, step 0 for message 0 " in told[0]
    assert "rank 3 (host3)" in told[0].replace("Rank", "rank")
    collective = rows(run, waits_for="collective" if fidelity == "flow" else "receive", blocked_by=3)
    assert len(collective) > 0
    assert {row["operation"].split()[0] for row in collective} == {"data"}
    assert {row["job"] for row in rows(run)} == {run.table("jobs")["job"][0].as_py()}


def test_a_switch_that_dies_leaves_no_path(gallery: Gallery) -> None:
    run = gallery.run(f"{COLLECTIVE}faults: [{{at: 50us, switch: spine0, event: down}}]\n")
    assert run.status == "gave-up"
    assert {row["stopped_by"] for row in rows(run)} == {"no path", None}
    assert "no path to it is left (down: leaf0-spine0" in waiting_lines(run)[0]


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_a_message_that_nobody_sends(tmp_path: Path, fidelity: str) -> None:
    streams = "(((send, Wait()),), ((receive, receive, Wait()),))"
    run = run_programs(tmp_path, streams, f"engine: {{fidelity: {fidelity}}}\n")
    assert run.status == "stuck"
    (row,) = rows(run)
    assert (row["rank"], row["waits_for"], row["peer"], row["ordinal"], row["state"]) == (
        1,
        "receive",
        0,
        1,
        "not posted",
    )
    assert row["stopped_by"] == "never sent"
    assert waiting_lines(run) == [
        "Rank 1 (host1) waits for message 1 from rank 0 (host0), channel 0: rank 0 has ended without sending it."
    ]


def test_a_receive_that_nobody_posts(tmp_path: Path) -> None:
    # One buffer: the second message waits for a credit that comes with a second receive.
    streams = "(((send, send, send, Wait()),), ((receive, Wait()),))"
    run = run_programs(tmp_path, streams, "transport: {end_to_end_credits: 1}\nengine: {until: 5ms}\n")
    assert run.status == "stopped"
    assert [(row["rank"], row["waits_for"], row["ordinal"]) for row in rows(run, stopped_by="receive missing")] == [
        (0, "send", 2)
    ]
    assert "rank 1 posts no receive for it" in waiting_lines(run)[0]


def test_ranks_that_wait_for_each_other(tmp_path: Path) -> None:
    back = 'Peer(rule="rank", shift=0)'
    streams = (
        f"(((Receive(peer=to), Wait(), send, Wait()),), ((receive, Wait(), Send(peer={back},"
        " size=Size(total_bytes=1)), Wait()),))"
    )
    run = run_programs(tmp_path, streams)
    assert run.status == "stuck"
    assert [(row["rank"], row["blocked_by"], row["stopped_by"]) for row in rows(run)] == [(0, 1, None), (1, 0, None)]
    (told,) = waiting_lines(run)
    assert told.startswith("2 ranks had work left: ranks wait for each other and no rank sends (0, 1, and again).")


def test_a_stream_that_nobody_notifies(tmp_path: Path) -> None:
    run = run_programs(tmp_path, "(((send, Wait(), Await(token=0)),), ((receive, Wait()),))")
    assert run.status == "stuck"
    (row,) = rows(run)
    assert (row["waits_for"], row["ordinal"], row["stopped_by"]) == ("token", 0, "never notified")
    assert waiting_lines(run)[0].endswith("no other stream of the rank is left that would notify it.")


def test_a_ring_deadlocks_and_its_cycle_is_told_port_by_port(tmp_path: Path) -> None:
    count = 8
    links = [(host, count + host) for host in range(count)]
    links += [(count + i, count + (i + 1) % count) for i in range(count)]
    switch = Switch(forwarding_latency_ps=0, buffer_bytes=300_000, headroom_bytes=30_000)
    text = """schema: 3
fabric: {topology: leaf-spine, hosts: 8, radix: 8, cycles: allow}
transport: {congestion_control: none, timeout: 1ms}
traffic: {pattern: ./waits.py}
"""
    (tmp_path / "waits.py").write_text(
        PROGRAMS.replace(
            "{streams}",
            'tuple(((Send(peer=Peer(rule="rank", shift=(i + 3) % 8), size=Size(total_bytes=3_000_000)), Wait()),)'
            " for i in range(8))",
        ),
        encoding="utf-8",
    )
    run = run_of(tmp_path, text, fabric=wired(links, hosts=count, switch=switch))
    assert run.status == weftwork.open_run(run.path).status == "deadlocked"
    assert _is_stuck(run)  # so that the command exits with 1
    cycle = run.table("deadlock").to_pylist()
    assert [row["name"] for row in cycle] == [f"n{8 + i}->n{8 + (i + 1) % 8}" for i in range(count)]
    assert [row["paused_by"] for row in cycle] == [f"n{8 + (i + 1) % 8}" for i in range(count)]
    assert {row["stopped_by"] for row in rows(run)} == {"deadlock"}
    told = waiting_lines(run)
    assert told[0].startswith("Deadlock: 8 ports in a circle")
    assert [line.split(":")[0].strip() for line in told[1:9]] == [row["name"] for row in cycle]
    assert told[9].endswith(": it is held in the deadlock.")
    assert answer(run)[0].startswith("Took NOT FINISHED: a deadlock by ")


@pytest.mark.parametrize(
    ("text", "fidelity"),
    [
        pytest.param(COLLECTIVE, "packet", id="collective by packets"),
        pytest.param(COLLECTIVE, "flow", id="collective by flows"),
        pytest.param(TRAINING, "packet", id="training by packets", marks=pytest.mark.deep),
        pytest.param(TRAINING, "flow", id="training by flows"),
    ],
)
def test_a_healthy_run_has_no_rows(gallery: Gallery, text: str, fidelity: str) -> None:
    run = gallery.run(f"{text}engine: {{fidelity: {fidelity}}}\n")
    assert run.status == "complete"
    assert run.table("waits").num_rows == 0
    assert run.table("deadlock").num_rows == 0
    assert waiting_lines(run) == []


def test_a_run_that_was_cut_says_what_was_under_way(gallery: Gallery) -> None:
    run = gallery.run(f"{COLLECTIVE}engine: {{until: 20us}}\n")
    assert run.status == "stopped"
    (told,) = waiting_lines(run)
    assert told.startswith("8 ranks had work left; rank ")
    assert told.endswith("which is in progress.")

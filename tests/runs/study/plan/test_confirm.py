"""A plan packet by packet: the whole job, some of its replicas, or each kind of traffic alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from weftwork.base.findings import Findings
from weftwork.spec.scenario.scenario import Scenario
from weftwork.study.plan.alone import alone_job, largest_calls
from weftwork.study.plan.confirm import Confirmation, confirm, largest_fit, with_replicas
from weftwork.study.plan.confirm_words import confirmation_document, left_out, why_no_more
from weftwork.study.plan.packet_cost import PacketCost, PacketLimit, packet_cost
from weftwork.study.plan.search import search
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.prepare.prepared import Prepared
from weftwork.study.prepare.training import training_jobs
from weftwork.study.record.road import execute, results

TINY = """{"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
"num_attention_heads": 8, "vocab_size": 4096, "max_position_embeddings": 512, "tie_word_embeddings": true}"""
FABRIC = "{topology: rail-optimized, gpus: 16, node: dgx-h100, switch: tomahawk-5}"
PLAN = "tensor: 2, pipeline: 2, data: 4, micro_batch: 1, zero: 1"
AMPLE = PacketLimit(memory_bytes=2**40, wall_s=60)


def written(folder: Path, *, plan: str = PLAN, model: str = "tiny.json", more: str = "", name: str = "job") -> Scenario:
    (folder / "tiny.json").write_text(TINY, encoding="utf-8")
    file = folder / f"{name}.yaml"
    training = f"{{model: {model}, global_batch: 16, sequence: 512, {plan}}}"
    file.write_text(f"schema: 3\nfabric: {FABRIC}\ntraining: {training}\nengine: {{fidelity: flow}}\n{more}", "utf-8")
    return read_scenario(file)


def at(scenario: Scenario, fidelity: str) -> Scenario:
    return scenario.model_copy(update={"engine": scenario.engine.model_copy(update={"fidelity": fidelity})})


def iteration_ps(scenario: Scenario) -> float | None:
    prepared = prepare(scenario)
    return results(prepared, execute(prepared, what_if="none")).summary["iteration_ps"].value


def cost_of(whole: Prepared, replicas: int) -> PacketCost:
    part, placement = with_replicas(whole, replicas)
    part = at(part, "packet")
    return packet_cost(part, whole.fabric, training_jobs(part, whole.fabric, Findings(), placement))


def test_the_winner_of_a_search_takes_as_long_as_it_said_and_as_a_packet_run_of_it_takes(tmp_path: Path) -> None:
    asked = written(tmp_path, plan="tensor: 2")
    found = search(asked, fixed=frozenset({"tensor"}))
    confirmed = confirm(found.winner, limit=AMPLE)
    assert confirmed.how == "whole"
    assert (confirmed.gpus, confirmed.replicas) == (16, found.best[0].candidate.plan.data)
    assert confirmed.flow_ps == found.best[0].iteration_ps
    assert confirmed.packet_ps == iteration_ps(at(found.winner, "packet"))
    assert confirmed.longer is not None
    assert confirmed.longer == pytest.approx(confirmed.packet_ps / confirmed.flow_ps - 1)
    assert abs(confirmed.longer) < 0.2
    assert why_no_more(confirmed) == ""


@pytest.mark.parametrize(("replicas", "how"), [(4, "whole"), (2, "replicas"), (1, "replicas"), (0, "collectives")])
def test_as_many_replicas_run_as_the_limit_holds(tmp_path: Path, replicas: int, how: str) -> None:
    scenario = written(tmp_path)
    whole = prepare(scenario)
    seconds = cost_of(whole, replicas).wall_s if replicas else 0.9 * cost_of(whole, 1).wall_s
    confirmed = confirm(scenario, limit=PacketLimit(memory_bytes=2**40, wall_s=seconds))
    assert (confirmed.how, confirmed.replicas, confirmed.gpus) == (how, replicas, 4 * replicas)
    assert (confirmed.flow_ps is None) == (confirmed.packet_ps is None) == (replicas == 0)
    assert ("4 replicas" in left_out(confirmed)) == (how == "replicas")
    assert ("would take" in why_no_more(confirmed)) == (how != "whole")
    assert [one.kind for one in confirmed.collectives] == ["tensor", "pipeline", "data"]
    assert all(one.packet_ps for one in confirmed.collectives)


def test_where_nothing_fits_the_estimate_says_so(tmp_path: Path) -> None:
    confirmed = confirm(written(tmp_path), limit=PacketLimit(memory_bytes=1))
    assert (confirmed.how, confirmed.flow_ps, confirmed.packet_ps) == ("none", None, None)
    assert "a packet run of 1 replica would take about" in why_no_more(confirmed)
    assert all("would take about" in one.reason and one.packet_ps is None for one in confirmed.collectives)
    told = confirmation_document(confirmed)
    assert (told["how"], told["left_out"]) == ("none", "everything")
    assert [one["reason"] for one in told["collectives"]] == [one.reason for one in confirmed.collectives]


def test_what_packets_do_not_know_is_named(tmp_path: Path) -> None:
    confirmed = confirm(written(tmp_path, more="transport: {congestion_control: hpcc}\n"), limit=AMPLE)
    assert confirmed.how == "none"
    assert "telemetry" in why_no_more(confirmed)


COST = PacketCost(memory_bytes=1_000, packet_hops=1_000_000, messages=100)
LARGE, SLOW = replace(COST, memory_bytes=5_000), replace(COST, packet_hops=10**12)


@pytest.mark.parametrize(
    ("costs", "replicas", "too_large"),
    [
        ([COST, COST, COST], 4, None),
        ([COST, COST, LARGE], 2, (4, LARGE)),
        ([COST, SLOW, COST], 1, (2, SLOW)),
        ([LARGE, COST, COST], 0, (1, LARGE)),
    ],
)
def test_the_estimate_chooses(costs: list[PacketCost], replicas: int, too_large: tuple[int, PacketCost] | None) -> None:
    fit = largest_fit(zip((1, 2, 4), costs, strict=True), PacketLimit(memory_bytes=1_000, wall_s=10))
    assert (fit.replicas, fit.too_large) == (replicas, too_large)
    assert (fit.cost is None) == (replicas == 0)


@pytest.mark.parametrize("order", ["tp-cp-dp-pp", "tp-cp-pp-dp"])
def test_a_replica_stays_where_it_is_and_has_its_micro_batches(tmp_path: Path, order: str) -> None:
    whole = prepare(written(tmp_path, plan=f"{PLAN}, order: {order}"))
    scenario, placement = with_replicas(whole, 2)
    part = prepare(scenario, fabric=whole.fabric, placement=placement)
    assert part.jobs[0].plan.micro_batches == whole.jobs[0].plan.micro_batches
    of_gpu = {
        (int(host), int(gpu)): int(program)
        for host, gpu, program in zip(
            whole.job.placement.host, whole.job.placement.gpu, whole.job.rank_program, strict=True
        )
    }
    there = [
        of_gpu[int(host), int(gpu)] for host, gpu in zip(part.job.placement.host, part.job.placement.gpu, strict=True)
    ]
    assert there == part.job.rank_program.tolist()  # each GPU has the pipeline stage that it has in the whole job
    assert len({*zip(part.job.placement.host.tolist(), part.job.placement.gpu.tolist(), strict=True)}) == 8


def test_calls_alone_are_those_of_the_job_where_it_has_them(tmp_path: Path) -> None:
    whole = prepare(written(tmp_path))
    calls = {one.kind: one for one in largest_calls(whole.jobs[0])}
    tokens_bytes = 2 * 512 * 512  # values of 2 bytes, tokens, hidden
    assert calls["tensor"].size_bytes == tokens_bytes
    assert calls["pipeline"].size_bytes == tokens_bytes // 2
    assert [one.ranks.tolist() for one in calls.values()] == [[0, 1], [0, 8], [0, 2, 4, 6]]
    job = alone_job(whole.jobs[0], calls["data"])
    assert np.array_equal(job.placement.host, whole.job.placement.host[[0, 2, 4, 6]])
    assert np.array_equal(job.placement.nics, whole.job.placement.nics[[0, 2, 4, 6]])


def test_experts_and_context_are_timed_too_and_replicas_are_those_that_experts_spread_over(tmp_path: Path) -> None:
    plan = "tensor: 1, context: 2, expert: 8, data: 8, micro_batch: 1, memory: 200GB"
    scenario = written(tmp_path, plan=plan, model="mixtral-8x7b")
    whole = prepare(scenario)
    seconds = 0.9 * cost_of(whole, 8).wall_s
    confirmed = confirm(scenario, limit=PacketLimit(memory_bytes=2**40, wall_s=seconds))
    assert (confirmed.how, confirmed.replicas) == ("replicas", 4)  # eight experts over two context ranks need four
    times = {one.kind: one for one in confirmed.collectives}
    assert set(times) == {"context", "expert", "data"}
    for one in times.values():
        assert one.packet_ps is not None, one.reason
        assert one.flow_ps == pytest.approx(one.closed_form_ps, rel=0.02)
        assert 0.98 * one.flow_ps < one.packet_ps < 1.2 * one.flow_ps


def test_a_setting_of_the_transport_that_flows_do_not_know_moves_the_packets(tmp_path: Path) -> None:
    def confirmed(control: str) -> Confirmation:
        more = f"transport: {{congestion_control: {control}}}\n"
        return confirm(written(tmp_path, more=more, name="control"), limit=AMPLE)

    slow, usual = confirmed("{name: fixed-window, window_bytes: 4096}"), confirmed("none")
    assert slow.flow_ps == usual.flow_ps
    assert slow.packet_ps is not None
    assert usual.packet_ps is not None
    assert slow.packet_ps > 1.05 * usual.packet_ps
    alone = {
        one.kind: (one.packet_ps, other.packet_ps)
        for one, other in zip(slow.collectives, usual.collectives, strict=True)
    }
    assert alone["pipeline"][0] > alone["pipeline"][1]


def test_a_stopped_confirmation_stops(tmp_path: Path) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        confirm(written(tmp_path), limit=AMPLE, on_progress=stop)

"""Training jobs from a scenario to a run folder."""

from pathlib import Path

import pytest

import weft
from weft.base.errors import ConfigError
from weft.store.runs import Run

FABRIC = "{topology: rail-optimized, gpus: 32, node: dgx-h100, switch: tomahawk-5}"
TRAINING = "{model: llama-3-8b, tensor: 4, pipeline: 2, global_batch: 32, recompute: selective}"


class Ask:
    """Run scenarios, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def __call__(self, *, training: str = TRAINING, more: str = "", seeds: int = 1, **settings: str) -> Run:
        self.count += 1
        file = self.folder / f"asked{self.count}.yaml"
        work = f"training: {training}\n" if training else ""
        file.write_text(f"schema: 1\nfabric: {FABRIC}\n{work}{more}\n", encoding="utf-8")
        overrides = {key.replace("__", "."): value for key, value in settings.items()}
        return weft.run(file, out=self.folder / f"run{self.count}", overrides=overrides, seeds=seeds)


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    return Ask(tmp_path)


def cases(run: Run, job: str = "training") -> dict[str, int]:
    return {row["case"]: row["iteration_ps"] for row in run.table("what_if").to_pylist() if row["job"] == job}


def iteration_ps(run: Run) -> float:
    found = run.value("iteration_ps")
    assert found is not None
    return found


def test_the_time_of_every_rank_adds_up_to_the_iteration(ask: Ask) -> None:
    run = ask()
    assert run.status == "complete"
    total = run.query(
        "select sum((end_ps - start_ps)::double * ranks) / 32 as total, min(start_ps) as first, max(end_ps) as last "
        "from segments"
    ).to_pylist()[0]
    assert total["last"] - total["first"] == iteration_ps(run)
    assert total["total"] == pytest.approx(iteration_ps(run), rel=1e-12)
    gaps = run.query(
        "select count(*) as n from (select start_ps, lag(end_ps) over (partition by rank order by start_ps) as before "
        "from segments) where before is not null and before != start_ps"
    )
    assert gaps["n"][0].as_py() == 0


def test_every_micro_batch_goes_forward_and_backward_on_every_stage(ask: Ask) -> None:
    run = ask()
    found = run.query(
        "select stage, pass, count(distinct micro_batch) as n from segments where micro_batch >= 0 "
        "group by all order by all"
    ).to_pylist()
    assert found == [
        {"stage": stage, "pass": name, "n": 8} for stage in (0, 1) for name in ("backward", "forward")
    ]  # fmt: skip


def test_other_worlds_are_faster(ask: Ask) -> None:
    run = ask()
    found = cases(run)
    assert set(found) == {"infinite network", "no bubble", "perfect overlap"}
    assert all(value < iteration_ps(run) for value in found.values())


def test_tokens_and_flops_follow_from_the_iteration(ask: Ask) -> None:
    run = ask()
    row = run.table("jobs").to_pylist()[0]
    seconds = iteration_ps(run) / 1e12
    assert row["tokens"] == 32 * 8192
    assert row["tokens_per_s"] == pytest.approx(row["tokens"] / seconds)
    assert row["mfu"] == pytest.approx(row["model_flops"] / seconds / (32 * 989e12))
    assert 0.2 < row["mfu"] < 0.7


def test_two_iterations_take_twice_as_long(ask: Ask) -> None:
    once, twice = ask(), ask(training__iterations="2")
    assert iteration_ps(twice) == pytest.approx(iteration_ps(once), rel=0.02)
    assert max(twice.table("segments")["end_ps"].to_pylist()) > 1.9 * iteration_ps(once)


def test_a_slow_gpu_makes_all_wait(ask: Ask) -> None:
    plain, slow = ask(), ask(more="stragglers: [{gpu: 3, factor: 1.5}]")
    assert 1.2 < iteration_ps(slow) / iteration_ps(plain) < 1.5
    kinds = slow.query("select kind, sum(end_ps - start_ps) as t from segments group by all").to_pylist()
    assert any(row["kind"] == "skew" and row["t"] > 0 for row in kinds)


def test_a_link_that_dies_is_told_and_costs_time(ask: Ask) -> None:
    plain = ask()
    slow = ask(more="faults: [{at: 1ms, link: host0-leaf0, event: degrade, rate: 1Gbps}]")
    assert iteration_ps(slow) > iteration_ps(plain)
    assert slow.events.to_pylist()[0]["event"] == "fault"


def test_two_jobs_have_a_result_each_and_one_alone(ask: Ask) -> None:
    jobs = (
        "jobs:\n  - {name: left, model: llama-3-8b, tensor: 4, gpus: 16, global_batch: 16, recompute: selective}\n"
        "  - {name: right, model: llama-3-8b, tensor: 2, pipeline: 2, gpus: 16, global_batch: 16, recompute: full}\n"
    )
    run = ask(training="", more=jobs)
    rows = {row["job"]: row for row in run.table("jobs").to_pylist()}
    assert set(rows) == {"left", "right"}
    for name, row in rows.items():
        assert cases(run, name)["alone"] <= row["iteration_ps"] * (1 + 1e-9)


def test_what_fails_over_weeks_is_asked_by_a_section(ask: Ask) -> None:
    run = ask(more="reliability: {}")
    share = run.value("effective_share")
    assert share is not None
    assert 0.9 < share < 1


def test_a_plan_that_cannot_be_is_refused_with_the_nearest_that_can(ask: Ask) -> None:
    with pytest.raises(ConfigError) as refused:
        ask(training="{model: llama-3-70b, tensor: 2, pipeline: 1, global_batch: 32}")
    text = str(refused.value)
    assert "training" in text
    assert "--set" in text


def test_seeds_of_a_random_placement_give_an_interval(ask: Ask) -> None:
    run = ask(training__placement="random", seeds=3)
    number = run.summary["iteration_ps"]
    assert number["low"] < number["value"] < number["high"]


TINY = """{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1024,
"max_position_embeddings": 512, "tie_word_embeddings": false}"""


def test_packets_and_flows_agree_on_a_small_model(ask: Ask) -> None:
    (ask.folder / "tiny.json").write_text(TINY, encoding="utf-8")
    training = "{model: tiny.json, tensor: 2, pipeline: 2, global_batch: 16}"
    flows = ask(training=training, fabric__gpus="16")
    packets = ask(training=training, fabric__gpus="16", engine__fidelity="packet")
    assert packets.status == "complete"
    assert iteration_ps(flows) == pytest.approx(iteration_ps(packets), rel=0.02)


def test_packets_know_no_stragglers(ask: Ask) -> None:
    with pytest.raises(ConfigError, match="packets know no stragglers"):
        ask(more="stragglers: [{gpu: 3, factor: 1.5}]", engine__fidelity="packet")

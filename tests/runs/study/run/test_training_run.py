"""Training jobs from a scenario to a run folder."""

import pytest
from helpers.gallery import Gallery

from weftwork.base.errors import ConfigError
from weftwork.store.runs import Run

FABRIC = "{topology: rail-optimized, gpus: 32, node: dgx-h100, switch: tomahawk-5}"
TRAINING = "{model: llama-3-8b, tensor: 4, pipeline: 2, global_batch: 32, recompute: selective}"


class Ask:
    """Runs of scenarios, each made once; other worlds only where a test asks for them."""

    def __init__(self, gallery: Gallery) -> None:
        self.gallery = gallery

    def __call__(
        self,
        *,
        training: str = TRAINING,
        more: str = "",
        fabric: str = FABRIC,
        seeds: int = 1,
        what_if: str = "none",
        **settings: str,
    ) -> Run:
        work = f"training: {training}\n" if training else ""
        text = f"schema: 3\nfabric: {fabric}\n{work}{more}\n"
        overrides = {key.replace("__", "."): value for key, value in settings.items()}
        files = {"tiny.json": TINY} if "tiny.json" in text else {}
        run: Run = self.gallery.run(text, files=files, overrides=overrides, seeds=seeds, what_if=what_if)
        return run


@pytest.fixture(scope="module")
def ask(gallery: Gallery) -> Ask:
    return Ask(gallery)


def cases(run: Run, job: str = "training") -> dict[str, int]:
    return {row["change"]: row["iteration_ps"] for row in run.table("what_if").to_pylist() if row["job"] == job}


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
    run = ask(what_if="auto")
    found = cases(run)
    bought = {"infinitely fast fabric", "infinitely fast NVLink", "NICs of 800Gbps (custom)"}
    assert set(found) == {"infinite network", "no bubble", "perfect overlap"} | bought
    assert all(value <= iteration_ps(run) for value in found.values())
    assert found["infinite network"] < min(found[name] for name in bought)
    how = {row["change"]: row["text"] for row in run.table("what_if").to_pylist()}
    assert {name for name, text in how.items() if text == "simulated again"} == bought | {"infinite network"}


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
    run = ask(training="", more=jobs, what_if="auto")
    rows = {row["job"]: row for row in run.table("jobs").to_pylist()}
    assert set(rows) == {"left", "right"}
    for name, row in rows.items():
        assert cases(run, name)["alone"] <= row["iteration_ps"] * (1 + 1e-9)


def idle(run: Run, where: str = "true") -> dict[str, float]:
    """Time of the ranks that ``where`` chooses which they spend waiting, by kind, ps a rank."""
    rows = run.query(
        f"select kind, sum((end_ps - start_ps)::double * ranks) as t from segments where {where} group by all"  # noqa: S608
    ).to_pylist()
    found = {row["kind"]: row["t"] for row in rows}
    total = sum(found.values()) / iteration_ps(run)  # every rank has the whole iteration
    return {kind: found.get(kind, 0.0) / total for kind in ("bubble", "skew")}


def test_of_a_slow_gpu_and_its_neighbours_it_alone_never_waits_for_others(ask: Ask) -> None:
    slow = ask(more="stragglers: [{gpu: 3, factor: 1.5}]")
    # 4 tensor ranks, 4 copies, 2 stages: ranks 0 to 3 share every matrix, 16 to 19 are the second stage behind them
    alone, beside = idle(slow, "rank = 3"), idle(slow, "rank < 3")
    behind, others = idle(slow, "rank between 16 and 19"), idle(slow, "rank // 4 % 4 > 0")
    assert alone["skew"] < 0.01 * beside["skew"]
    assert others["skew"] > 0.5 * beside["skew"]
    assert behind["bubble"] > others["bubble"] + 0.45 * beside["skew"]


def test_slower_costs_more_and_more_slow_ones_of_one_stage_no_more(ask: Ask) -> None:
    some = [iteration_ps(ask(more=f"stragglers: [{{gpu: 20, factor: {factor}}}]")) for factor in (1, 1.2, 1.4, 1.8)]
    assert some[0] == iteration_ps(ask())
    slopes = [(b - a) / step for a, b, step in zip(some, some[1:], (0.2, 0.2, 0.4), strict=False)]
    assert 0 < slopes[0] <= slopes[1] * 1.001
    assert slopes[1] <= slopes[2] * 1.001
    both = ask(more="stragglers: [{gpu: 20, factor: 1.4}, {gpu: 21, factor: 1.4}]", what_if="auto")
    assert iteration_ps(both) == pytest.approx(some[2], rel=1e-6)
    assert cases(both)["infinite network"] < iteration_ps(both)


def test_a_link_that_limps_makes_others_wait_for_its_update_and_is_no_bubble(ask: Ask) -> None:
    behind = {
        "training__overlap__data": "0",
        "what_if": "auto",
    }  # else gradients share the link with what stages send each other
    plain = ask(**behind)
    slow = ask(more="faults: [{at: 0ps, link: host1-leaf4, event: degrade, fraction: 0.02}]", **behind)
    longer = iteration_ps(slow) - iteration_ps(plain)
    assert longer > 0.1 * iteration_ps(plain)
    assert idle(slow)["bubble"] - idle(plain)["bubble"] < 0.1 * longer
    assert idle(slow)["skew"] > 0.5 * longer
    assert cases(slow)["infinite network"] == cases(plain)["infinite network"]


PODS = "{topology: rail-optimized, gpus: 64, pods: 2, node: dgx-h100, switch: tomahawk-5, oversubscription: 4}"
ZERO = "model: llama-3-8b, zero: 3, prefetch: false, gpus: 32, global_batch: 32, recompute: full"


def beside(ask: Ask, *, placement: str, left: str = ZERO, right: str = ZERO, seed: int = 1) -> Run:
    """Two jobs of 32 GPUs on two pods of 32."""
    jobs = f"[{{name: left, {left}, placement: {placement}}}, {{name: right, {right}, placement: {placement}}}]"
    return ask(training="", fabric=PODS, more=f"jobs: {jobs}", what_if="auto", engine__seed=str(seed))


def test_jobs_in_pods_of_their_own_cost_each_other_nothing(ask: Ask) -> None:
    run = beside(ask, placement="packed")
    for row in run.table("jobs").to_pylist():
        assert cases(run, row["job"])["alone"] == pytest.approx(row["iteration_ps"], rel=1e-9)


def test_jobs_on_the_same_uplinks_share_them(ask: Ask) -> None:
    run = beside(ask, placement="pods")
    for row in run.table("jobs").to_pylist():
        other = cases(run, row["job"])
        assert row["iteration_ps"] > 1.05 * other["alone"]
        assert row["iteration_ps"] - other["infinite network"] <= 2.01 * (other["alone"] - other["infinite network"])


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_alone_a_job_has_the_paths_that_it_has_beside_others(ask: Ask, seed: int) -> None:
    quiet = "model: llama-3-8b, tensor: 8, gpus: 32, global_batch: 32, recompute: full"
    run = beside(ask, placement="pods", left=f"{quiet}, overlap: {{data: 1}}", right=quiet, seed=seed)
    for row in run.table("jobs").to_pylist():
        assert row["iteration_ps"] >= cases(run, row["job"])["alone"] * (1 - 1e-12)


def test_two_jobs_on_one_gpu_are_refused(ask: Ask) -> None:
    jobs = f"jobs: [{{name: left, {ZERO}}}, {{name: right, {ZERO}, first_gpu: 8}}]"
    with pytest.raises(ConfigError, match="GPUs 8 to 31 belong to jobs"):
        ask(training="", fabric=PODS, more=jobs)
    mixed = f"jobs: [{{name: left, {ZERO}}}, {{name: right, {ZERO}, placement: pods}}]"
    with pytest.raises(ConfigError, match="is taken by 'left' and by 'right'"):
        ask(training="", fabric=PODS, more=mixed)


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
    training = "{model: tiny.json, tensor: 2, pipeline: 2, global_batch: 16}"
    flows = ask(training=training, fabric__gpus="16")
    packets = ask(training=training, fabric__gpus="16", engine__fidelity="packet")
    assert packets.status == "complete"
    assert iteration_ps(flows) == pytest.approx(iteration_ps(packets), rel=0.02)


@pytest.mark.parametrize("fidelity", ["packet", "reference"])
def test_a_straggler_costs_as_much_on_packets_as_on_flows(fidelity: str, ask: Ask) -> None:
    training = "{model: tiny.json, tensor: 2, pipeline: 2, global_batch: 16}"
    slow = "stragglers: [{gpu: 3, factor: 1.5}, {gpu: 4, factor: 1.2}]"
    costs_ps = [
        iteration_ps(ask(training=training, fabric__gpus="16", engine__fidelity=each, more=more)) * (1 if more else -1)
        for each in (fidelity, "flow")
        for more in (slow, "")
    ]
    assert costs_ps[2] + costs_ps[3] > 0
    assert costs_ps[0] + costs_ps[1] == pytest.approx(costs_ps[2] + costs_ps[3], rel=0.02)


def test_checkpoints_are_counted_once_over_weeks(ask: Ask) -> None:
    """Nothing fails, so what counts is training alone: tokens over the iteration with its checkpoint."""
    more = "reliability: {gpu: 0, host: 0, maintenance: 0, network: 0, software: 0, runs: 2}"
    run = ask(more=more, training__checkpoint="{every: 1}")
    every, whole = run.value("effective_tokens_per_s"), run.value("tokens_per_s")
    assert every is not None
    assert every == pytest.approx(whole, rel=1e-3)

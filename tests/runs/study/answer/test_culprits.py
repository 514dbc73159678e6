"""Who is to blame: one thing is wrong in each scenario, and the answer names it, with what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.gallery import Gallery

import weftwork
from weftwork.report.page import run_page
from weftwork.report.three_lines import other_suspects, repair_text, three_lines
from weftwork.report.words import amount
from weftwork.spec.answer import Culprit
from weftwork.store.runs import Run
from weftwork.study.answer.suspects import suspects
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.prepare.what_if import on_fabric, with_fast_fabric, with_rates
from weftwork.study.record.road import execute, results

EXAMPLES = Path(__file__).parents[4] / "examples"

TRAINING = """schema: 3
fabric: {{topology: rail-optimized, gpus: 64, node: dgx-h100, switch: tomahawk-5}}
training: {{model: llama-3-8b, tensor: 8, pipeline: {pipeline}, global_batch: 64, recompute: none}}
transport: {{load_balancing: switch-spray, reorder_tolerant: true}}
engine: {{fidelity: flow}}
{more}
"""
EVEN = """schema: 3
fabric: {{topology: rail-optimized, gpus: 64, node: dgx-h100, switch: tomahawk-5}}
training: {{model: llama-3-8b, pipeline: {pipeline}, global_batch: 1024, zero: 2, recompute: none}}
engine: {{fidelity: flow}}
"""
NETWORK = """schema: 3
fabric: {{topology: leaf-spine, leaves: 4, spines: {spines}, hosts_per_leaf: 4, link_rate: 400Gbps{fabric}}}
transport: {{congestion_control: {control}, load_balancing: {balancing}{transport}}}
traffic: {{pattern: permutation, size: 4MiB}}
{more}
"""


def training(more: str = "", *, pipeline: int = 1) -> str:
    return TRAINING.format(pipeline=pipeline, more=more)


def network(more: str = "", *, balancing: str = "switch-spray", spines: int = 4, control: str = "none",
            fabric: str = "", transport: str = "") -> str:  # fmt: skip
    tolerant = ", reorder_tolerant: true" if balancing == "switch-spray" else ""
    return NETWORK.format(
        spines=spines, fabric=fabric, control=control, balancing=balancing, transport=tolerant + transport, more=more
    )


def dragonfly(routing: str, fidelity: str, traffic: str = "{pattern: shift, distance: 8, size: 256KiB}") -> str:
    """All hosts of a group send to the next group, over the one link that joins the two."""
    return f"""schema: 3
fabric: {{topology: dragonfly, radix: 7, link_rate: 100Gbps, routing: {routing}}}
transport: {{congestion_control: none, reorder_tolerant: true}}
traffic: {traffic}
engine: {{fidelity: {fidelity}}}
"""


def pod(algorithm: str) -> str:
    return f"""schema: 3
fabric: {{topology: tpu-pod, slice: [4, 4, 8]}}
collective: {{operation: all-reduce, size: 8MiB, algorithm: {algorithm}}}
engine: {{fidelity: flow}}
"""


def answered(text: str, gallery: Gallery, **options: object) -> Run:
    run: Run = gallery.run(text, **options)
    return run


def culprit(run: Run) -> Culprit:
    assert run.answer is not None
    return run.answer.culprit


DEGRADED = "faults: [{at: 0s, link: host3-leaf0, event: degrade, fraction: 0.25}]"
CASES = {
    "a link at a quarter of its rate": (training(DEGRADED), "link", "host3-leaf0", "faults.0"),
    "a flapping link": (
        training("faults: [{at: 1s, link: host3-leaf0, event: down, for: 30ms, times: 5, every: 60ms}]"),
        "link", "host3-leaf0", "faults.0",
    ),
    "a slow GPU": (training("stragglers: [{gpu: 12, factor: 1.25}]", pipeline=2), "gpu", "GPU 12", "stragglers.0"),
    "a slow NIC": (
        training("faults: [{at: 0s, nic: host3/nic0, event: slow, fraction: 0.1}]"), "nic", "host3/nic0", "faults.0"
    ),
    "a stage with too much work": (EVEN.format(pipeline=4), "stage", "stage 3", "training.pipeline"),
    "a neighbour": ((EXAMPLES / "two_jobs/scenario.yaml").read_text(encoding="utf-8"), "job", "right", "jobs.1"),
    "a lossy link": (
        network("faults: [{at: 0s, link: leaf0-spine0, event: lossy, loss: 0.001}]", balancing="ecmp",
                control="fixed-window"),
        "link", "leaf0-spine0", "faults.0",
    ),
    "a link that dies": (
        network("faults: [{at: 20us, link: leaf0-spine0, event: down}]", balancing="ecmp", transport=", timeout: 1ms"),
        "link", "leaf0-spine0", "faults.0",
    ),
    "a timeout": (
        (EXAMPLES / "link_dies/scenario.yaml").read_text(encoding="utf-8"), "setting", "timeout", "transport.timeout"
    ),
    "a buffer": (
        network(balancing="ecmp", fabric=", switch: {buffer: 1MB}",
                transport=", flow_control: none, recovery: selective-repeat, timeout: 1ms").replace(
            "{pattern: permutation, size: 4MiB}", "{pattern: incast, senders: 8, receiver: 0, size: 2MiB}"
        ),
        "setting", "buffer", "fabric.switch.buffer",
    ),
    "a rate limiter that recovers too slowly": (
        network("faults: [{at: 10us, link: host5-leaf1, event: degrade, fraction: 0.1, for: 100us}]",
                control="{name: dcqcn, variant: paper}").replace("4MiB", "64MiB"),
        "policy", "dcqcn", "transport.congestion_control",
    ),
    "oversubscription": (network(spines=1), "setting", "oversubscription", "fabric.oversubscription"),
    "a collision of hashes": (network(balancing="ecmp"), "policy", "ecmp", "transport.load_balancing"),
    "the root of a pause storm": (
        network("faults: [{at: 0s, nic: host3/nic0, event: slow, fraction: 0.02}]", balancing="ecmp"),
        "nic", "host3/nic0", "faults.0",
    ),
    "minimal routing": (dragonfly("minimal", "packet"), "setting", "minimal routing", "fabric.routing"),
    "shortest paths of flows": (dragonfly("shortest", "flow"), "setting", "shortest routing", "fabric.routing"),
    "a ring on a pod": (pod("ring"), "setting", "ring", "collective.algorithm"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_culprit_is_named_with_what_it_costs(gallery: Gallery, case: str) -> None:
    text, kind, name, key = CASES[case]
    run = answered(text, gallery, what_if="all")
    found = culprit(run)
    assert (found.kind, found.name, found.key) == (kind, name, key)
    assert found.how == "simulated"
    assert run.answer is not None
    assert run.answer.took.seconds is not None
    assert found.cost_s is not None
    assert found.cost_share is not None
    assert 0.01 <= found.cost_share < 1
    if found.of == "the run":
        assert found.cost_s == pytest.approx(found.cost_share * run.answer.took.seconds, rel=1e-9)


QUICK = ("a lossy link", "oversubscription", "a collision of hashes", "a slow GPU")  # the others in the step truth


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case in QUICK else [pytest.mark.deep]) for case in CASES]
)
def test_nobody_costs_more_than_the_bound_says(gallery: Gallery, case: str) -> None:
    text = CASES[case][0]
    bounds, costs = (
        {(one.kind, one.name, one.of): one for one in (run.answer.culprit, *run.answer.others)}
        for what_if in ("none", "all")
        for run in [answered(text, gallery, what_if=what_if)]
        if run.answer is not None
    )
    compared = [who for who in bounds if bounds[who].how == "bound" and who in costs and costs[who].how == "simulated"]
    assert compared
    for who in compared:
        assert (costs[who].cost_share or 0) <= (bounds[who].cost_share or 0) + 1e-6


def test_of_two_faults_the_one_that_cost_more_is_to_blame_and_the_other_is_told_with_its_cost(gallery: Gallery) -> None:
    text = """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link_rate: 100Gbps}
transport: {congestion_control: none, load_balancing: switch-spray, reorder_tolerant: true}
collective: {operation: all-reduce, size: 16MiB, algorithm: ring}
faults:
  - {at: 100us, link: host1-leaf0, event: degrade, fraction: 0.1, for: 100us}
  - {at: 500us, link: host2-leaf0, event: degrade, fraction: 0.1, for: 400us}
"""
    run = answered(text, gallery, what_if="all")
    found = culprit(run)
    assert run.answer is not None
    both, other, *_ = run.answer.others
    assert (found.name, both.name, other.name) == ("host2-leaf0", "host1-leaf0 and host2-leaf0", "host1-leaf0")
    assert (both.cost_share or 0) > (found.cost_share or 0)
    assert 0.01 <= (other.cost_share or 0) < (found.cost_share or 0) / 2
    shares = [one.cost_share or 0 for one in run.answer.others]
    assert shares == sorted(shares, reverse=True)


def test_a_routing_is_suspect_where_one_link_carried_more_than_its_equals(gallery: Gallery) -> None:
    even = answered(dragonfly("minimal", "packet", "{pattern: all-to-all, size: 64KiB}"), gallery)
    detours = answered(dragonfly("ugal", "packet"), gallery)
    uneven = answered(dragonfly("minimal", "packet"), gallery)
    for run, has_suspect in ((even, False), (detours, False), (uneven, True)):
        assert run.answer is not None
        told = [run.answer.culprit, *run.answer.others]
        assert ("fabric.routing" in {one.key for one in told}) is has_suspect
    assert culprit(uneven).text.startswith("put 7.84 times the mean load of its equals on router0->router4, ")
    saved_s = (uneven.summary["completion_ps"]["value"] - detours.summary["completion_ps"]["value"]) / 1e12
    assert culprit(uneven).cost_s == pytest.approx(saved_s, rel=1e-9)


def test_a_job_that_folds_is_not_simulated_under_a_routing_that_folds_nothing(gallery: Gallery) -> None:
    text = """schema: 3
fabric: {topology: dragonfly, radix: 7, node: dgx-h100, routing: shortest}
transport: {load_balancing: switch-spray, reorder_tolerant: true}
training: {model: llama-3-8b, tensor: 8, global_batch: 72}
engine: {fidelity: flow}
"""
    run = answered(text, gallery, what_if="all")
    assert run.answer is not None
    assert "fabric.routing" not in {one.key for one in (run.answer.culprit, *run.answer.others)}


def test_the_algorithm_that_auto_takes_is_no_suspect(gallery: Gallery) -> None:
    ring, auto = (answered(pod(algorithm), gallery) for algorithm in ("ring", "auto"))
    assert culprit(ring).text == "is slower here than swing, which auto takes"
    took_s = [run.summary["collective_duration_ps"]["value"] / 1e12 for run in (ring, auto)]
    assert culprit(ring).cost_s == pytest.approx(took_s[0] - took_s[1], rel=1e-9)
    own = answered(pod("swing"), gallery)
    for run in (auto, own):
        assert run.answer is not None
        assert "collective.algorithm" not in {one.key for one in (run.answer.culprit, *run.answer.others)}


def test_the_flow_to_a_slow_receiver_is_no_victim_of_it(gallery: Gallery) -> None:
    text = network("faults: [{at: 0s, nic: host0/nic0, event: slow, fraction: 0.02}]", balancing="ecmp")
    text = text.replace("pattern: permutation", "pattern: incast, senders: 1, receiver: 0")
    run = answered(text, gallery, what_if="none")
    assert run.summary["pauses"]["value"] > 0
    assert run.answer is not None
    assert culprit(run).kind == "unknown"
    assert [(one.name, one.of, one.how) for one in run.answer.others if one.kind == "nic"] == [
        ("host0/nic0", "the run", "bound")
    ]
    assert "not simulated: host0/nic0" in three_lines(run)[2]


def test_the_cost_is_what_the_run_saves_without_the_culprit(gallery: Gallery) -> None:
    slow = answered(training(DEGRADED), gallery)
    plain = answered(training(), gallery)
    saved_ps = slow.summary["iteration_ps"]["value"] - plain.summary["iteration_ps"]["value"]
    assert (culprit(slow).cost_s or 0) * 1e12 == pytest.approx(saved_ps, abs=2)


def test_a_victim_of_pauses_is_told_with_the_root_and_what_it_lost(gallery: Gallery) -> None:
    run = answered((EXAMPLES / "pfc_victim/scenario.yaml").read_text(encoding="utf-8"), gallery)
    found = culprit(run)
    assert (found.kind, found.name, found.how) == ("link", "host0-leaf0", "recorded")
    assert "host10->host2" in found.of
    (victim,) = run.query(
        "select fct_ps, ideal_fct_ps from flows where source = 'host10' and destination = 'host2'"
    ).to_pylist()
    assert (found.cost_s or 0) * 1e12 == pytest.approx(victim["fct_ps"] - victim["ideal_fct_ps"], abs=1)
    assert found.cost_share == pytest.approx(1 - victim["ideal_fct_ps"] / victim["fct_ps"])


@pytest.mark.parametrize("text", [EVEN.format(pipeline=1), network()], ids=["training", "network"])
def test_a_healthy_run_says_that_its_own_size_limits_it(gallery: Gallery, text: str) -> None:
    found = culprit(answered(text, gallery, what_if="all"))
    assert (found.kind, found.cost_s) == ("none", 0)
    assert "its own size" in found.text


def test_a_run_that_cannot_end_names_what_is_down(gallery: Gallery) -> None:
    run = answered(training("faults: [{at: 1s, link: host3-leaf0, event: down}]"), gallery)
    assert run.status == "stuck"
    found = culprit(run)
    assert (found.kind, found.name, found.key, found.cost_s) == ("link", "host3-leaf0", "faults.0", None)
    assert run.answer is not None
    assert run.answer.took.seconds is None


def test_without_another_simulation_the_cost_is_a_bound_with_the_command(gallery: Gallery) -> None:
    asked = answered(training(DEGRADED), gallery, what_if="all")
    silent = answered(training(DEGRADED), gallery, what_if="none")
    found = culprit(silent)
    assert silent.answer is not None
    (bound,) = (one for one in silent.answer.others if one.name == "host3-leaf0")
    assert (found.kind, found.how, bound.how) == ("part", "recorded", "bound")
    assert bound.command is not None
    assert "--what-if all" in bound.command
    assert (bound.cost_s or 0) >= (culprit(asked).cost_s or 0) > 0
    assert "1 suspect was not simulated: host3-leaf0" in three_lines(silent)[2]
    assert silent.summary["iteration_ps"] == asked.summary["iteration_ps"]


def test_a_link_that_was_slowed_is_as_busy_as_its_rate_allows(gallery: Gallery) -> None:
    slow = answered(training(DEGRADED), gallery)
    links = {row["name"]: row for row in slow.links.to_pylist()}
    own, peer = links["host3->leaf0"], links["host4->leaf0"]
    assert own["rate_bps"] == peer["rate_bps"] == peer["mean_rate_bps"] == 4 * own["mean_rate_bps"]
    assert own["bytes"] == peer["bytes"]
    assert own["utilisation"] == pytest.approx(4 * peer["utilisation"])
    assert own["utilisation"] == max(row["utilisation"] for row in links.values())


@pytest.mark.parametrize(("timeouts", "often"), [(1, "once"), (2, "2 times"), (1_234, "1,234 times")])
def test_how_often_a_timeout_passed_is_told_in_words(timeouts: int, often: str, tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(network(), encoding="utf-8")
    prepared = weftwork.prepare(weftwork.read_scenario(file))
    execution = execute(prepared, what_if="none")

    def text(lost: int) -> str:
        counted = {**execution.outcome.counters, "timeouts": timeouts, "drop_buffer_full": lost}
        ran = replace(execution, outcome=replace(execution.outcome, counters=counted))
        (suspect,) = (one for one in suspects(prepared, ran) if one.name == "timeout")
        return suspect.text

    assert text(1).endswith(f" before lost packets were sent again, {often}")
    assert f" ran out {often} though nothing was lost" in text(0)


def test_a_link_in_the_fabric_that_is_slower_than_its_peers_is_named(gallery: Gallery) -> None:
    run = answered(network(), gallery, what_if="none")
    prepared = prepare(read_scenario(run.path / "scenario.yaml"))
    rates = prepared.fabric.links["rate_bps"].copy()
    slow = prepared.fabric.link("host5-leaf1")
    rates[slow] //= 4
    uneven = with_rates(prepared, rates)
    found = results(uneven, execute(uneven)).answer
    assert (found.culprit.kind, found.culprit.name) == ("link", "host5-leaf1")
    assert found.took.seconds is not None
    whole_ps = run.value("completion_ps")
    assert whole_ps is not None
    assert found.took.seconds - (found.culprit.cost_s or 0) == pytest.approx(whole_ps / 1e12, rel=0.01)
    untried = results(uneven, execute(uneven, what_if="none")).answer
    assert untried.culprit.kind == "unknown"
    (bound,) = (one for one in untried.others if one.name == "host5-leaf1")
    assert bound.how == "bound"
    assert (bound.cost_s or 0) >= (found.culprit.cost_s or 0)


def test_one_odd_switch_of_a_few_is_named_with_all_that_it_costs(gallery: Gallery) -> None:
    """Also where it is one of eight; and no fabric is slower with infinitely fast links and switches."""
    healthy = prepare(read_scenario(answered(training(), gallery, what_if="none").path / "scenario.yaml"))
    fabric = healthy.fabric
    slow = fabric.switches[0].model_copy(update={"name": "slow", "forwarding_latency_ps": 200_000_000})
    device = fabric.node_device.copy()
    device[fabric.node_names.index("leaf3")] = len(fabric.switches)
    odd = on_fabric(healthy, node_device=device, switches=(*fabric.switches, slow))
    taken_ps, usual_ps = (results(one, execute(one)).summary["iteration_ps"].value for one in (odd, healthy))
    answer = results(odd, execute(odd)).answer
    (leaf,) = (one for one in (answer.culprit, *answer.others) if one.name == "leaf3")
    assert leaf.text == "has forwarding latency 200us where its peers have 750ns"
    assert leaf.cost_s == pytest.approx((taken_ps - usual_ps) / 1e12, rel=0.02)
    fast = with_fast_fabric(odd)
    assert results(fast, execute(fast)).summary["iteration_ps"].value <= taken_ps


def test_slow_pcie_of_one_host_is_told_once(gallery: Gallery) -> None:
    healthy = prepare(read_scenario(answered(training(), gallery, what_if="none").path / "scenario.yaml"))
    fabric = healthy.fabric
    slow = fabric.nics[0].model_copy(update={"name": "slow", "pcie_rate_bps": 20 * 10**9})
    device = fabric.node_device.copy()
    device[fabric.hosts[5]] = len(fabric.nics)
    odd = on_fabric(healthy, node_device=device, nics=(*fabric.nics, slow))
    answer = results(odd, execute(odd)).answer
    names = [one.name for one in (answer.culprit, *answer.others)]
    assert names.count("host5") == 1
    assert "PCIe" not in names


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("nvlink_rate_bps", 90 * 10**9, "has NVLink rate 90Gbps where its peers have 2.9232Tbps"),
        ("nvlink_latency_ps", 100_000_000, "has NVLink latency 100us where its peers have 1us"),
    ],
)
def test_a_server_unlike_its_peers_inside_is_named_with_what_it_costs(
    gallery: Gallery, field: str, value: int, words: str
) -> None:
    """Also where no fault is listed; GPUs of other servers wait for its GPUs."""
    text = """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, node: dgx-h100}
transport: {congestion_control: none, load_balancing: switch-spray, reorder_tolerant: true}
collective: {operation: all-reduce, size: 64MiB, algorithm: ring}
engine: {fidelity: flow}
"""
    healthy = prepare(read_scenario(answered(text, gallery, what_if="none").path / "scenario.yaml"))
    fabric = healthy.fabric
    slow = fabric.servers[0].model_copy(update={"name": "odd", field: value})
    kind = np.zeros(len(fabric.node_names), np.int32)
    kind[fabric.hosts[2]] = 1
    odd = on_fabric(healthy, node_server=kind, servers=(*fabric.servers, slow))
    taken_ps, usual_ps = (results(one, execute(one)).summary["collective_duration_ps"].value for one in (odd, healthy))
    answer = results(odd, execute(odd)).answer
    (server,) = (one for one in (answer.culprit, *answer.others) if one.kind == "server")
    assert server.name == "host2"
    assert server.text == words
    assert server.cost_s == pytest.approx((taken_ps - usual_ps) / 1e12, rel=1e-9)
    assert server.cost_share > 0.1


def test_a_fault_that_the_scenario_lists_is_told_also_where_it_costs_next_to_nothing(gallery: Gallery) -> None:
    more = """faults: [{at: 0s, link: host3-leaf0, event: degrade, fraction: 0.99}]
stragglers: [{gpu: 9, factor: 1.3}]"""
    run = answered(training(more), gallery)
    assert culprit(run).key == "stragglers.0"
    (line,) = (text for text in other_suspects(run) if "faults.0" in text)
    assert line.startswith("host3-leaf0 (faults.0) has 99 % of its rate")
    (fault,) = (one for one in run.answer.others if one.key == "faults.0")  # type: ignore[union-attr]
    assert fault.cost_share is not None
    assert fault.cost_share < 0.01


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_a_hash_into_weights_collides_as_any_hash(gallery: Gallery, fidelity: str) -> None:
    text = network(balancing="wcmp", spines=8)
    found = culprit(answered(text, gallery, overrides={"engine.fidelity": fidelity}))
    assert found.name == "wcmp"
    assert "hashes collide" in found.text


EXPERTS = TRAINING.replace("model: llama-3-8b, tensor: 8", "model: qwen3-30b-a3b, recipe: none, tensor: 1, expert: 32")


def test_settings_of_experts_say_what_they_cost_and_which_value_mends_them(gallery: Gallery) -> None:
    """A subject and a verb, the present value, and the other value."""
    run = gallery.run(EXPERTS.format(pipeline=1, more=""), what_if="all")
    lines = [three_lines(run)[2], *other_suspects(run)]
    copies = next(line for line in lines if "deduplicated_experts" in line)
    assert copies.startswith(
        "repeated copies of tokens (training.software.deduplicated_experts) cross the network: a token is sent to each"
        " of its experts, even if several of them are on one server; with true, as in DeepEP and HybridEP, one copy"
        " goes to a server: "
    )
    hidden = next(line for line in lines if "overlap.expert" in line)
    assert hidden.startswith(
        "an exchange of experts with little overlap (training.overlap.expert) hides at most 0 % of its time behind"
        " computation by default; tuned recipes hide 90 %: "
    )
    assert all("(simulated again without it)" in line for line in (copies, hidden))


SLOW_NICS = (
    "{at: 0ps, nic: host2/nic1, event: slow, fraction: 0.2}",
    "{at: 0ps, nic: host5/nic3, event: slow, fraction: 0.15}",
)
LISTED_PAIRS = {
    "two NICs": (f"faults: [{SLOW_NICS[0]}]", f"faults: [{SLOW_NICS[1]}]", f"faults: [{', '.join(SLOW_NICS)}]"),
    "a NIC and a GPU": (
        f"faults: [{SLOW_NICS[0]}]",
        "stragglers: [{gpu: 9, factor: 1.3}]",
        f"faults: [{SLOW_NICS[0]}]\nstragglers: [{{gpu: 9, factor: 1.3}}]",
    ),
}


@pytest.mark.parametrize("pair", LISTED_PAIRS)
def test_repairs_have_the_times_of_runs_without_what_is_repaired(gallery: Gallery, pair: str) -> None:
    """With either and with both repaired, against runs of scenarios that do not list them."""
    one, other, both = LISTED_PAIRS[pair]
    text = TRAINING.replace("tensor: 8", "tensor: 2")
    run = gallery.run(text.format(pipeline=1, more=both), what_if="all")
    took_ps = {
        frozenset(left): gallery.run(text.format(pipeline=1, more=more), what_if="none").value("iteration_ps")
        for left, more in ((("both",), both), (("one",), one), (("other",), other), ((), ""))
    }
    suspects = {each.key: each for each in (run.answer.culprit, *run.answer.others) if each.key}
    keys = ["faults.0", "faults.1" if "stragglers" not in both else "stragglers.0"]
    (joint,) = [each for each in run.answer.others if each.members]
    assert set(joint.members) == {suspects[key].name for key in keys}
    for suspect, left in ((suspects[keys[0]], "other"), (suspects[keys[1]], "one"), (joint, "")):
        without_s = run.answer.took.seconds - suspect.cost_s
        assert without_s * 1e12 == pytest.approx(took_ps[frozenset([left] if left else [])], rel=1e-6)
    said = repair_text(run.answer)
    assert said.endswith(f"; both: {amount(took_ps[frozenset()], 'ps')}")
    first = max((suspects[key] for key in keys), key=lambda each: each.cost_s)
    assert said.startswith(f"{first.name} first: ")

    page = run_page(run)
    top = page[page.index('<dl class="lines">') : page.index("</dl>", page.index('<dl class="lines">'))]
    assert all(suspects[key].name in top for key in keys)
    assert "<dt>also</dt>" in top
    assert "<dt>repair</dt>" in top

    unknown = gallery.run(text.format(pipeline=1, more=both), what_if="none")
    names = [suspects[key].name for key in keys]
    said = repair_text(unknown.answer)
    assert all(f"without {name}" in said for name in names)
    assert said.endswith("without both were not simulated; weftwork run FILE --what-if all does it")


def test_two_dear_settings_are_both_at_the_top_and_their_joint_repair_is_not_claimed(gallery: Gallery) -> None:
    run = gallery.run(EXPERTS.format(pipeline=1, more=""), what_if="all")
    said = repair_text(run.answer)
    assert " first: " in said
    assert said.endswith("together were not simulated")
    top = run_page(run).partition("</dl>")[2].partition("</dl>")[0]
    assert "repeated copies of tokens" in top
    assert "an exchange of experts with little overlap" in top


def test_one_suspect_has_no_order_of_repair(gallery: Gallery) -> None:
    run = answered(training("stragglers: [{gpu: 9, factor: 1.3}]"), gallery)
    assert repair_text(run.answer) == ""
    assert "<dt>repair</dt>" not in run_page(run)

"""A straggler and a lossy link in one question, on both fidelities; and what a run on flows tells of losses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import flow_losses
import numpy as np
import pytest
from helpers.command import command_of
from helpers.gallery import Gallery
from helpers.pages import plain

TINY = """{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2048,
"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1024,
"max_position_embeddings": 512, "tie_word_embeddings": false}"""
BOTH = """schema: 3
name: both
fabric: {topology: rail-optimized, gpus: 32, node: dgx-h100, switch: tomahawk-5}
training: {model: tiny.json, tensor: 2, pipeline: 2, data: 8, global_batch: 32, sequence: 512}
transport: {timeout: 1ms}
faults: [{at: 0s, link: host0-leaf0, event: lossy, loss: 0.01}]
stragglers: [{gpu: 3, factor: 1.5}]
"""
ASSUMED = "losses are their expected cost; of 1,000 runs with drawn losses, 999 take between"


@pytest.mark.parametrize("fidelity", ["flow", "packet"])
def test_a_straggler_and_a_lossy_link_are_both_named(fidelity: str, gallery: Gallery) -> None:
    run = gallery.run(BOTH, files={"tiny.json": TINY}, overrides={"engine.fidelity": fidelity}, what_if="all")
    assert run.status == "complete"
    assert run.answer.culprit is not None
    named = {each.key: each for each in (run.answer.culprit, *run.answer.others)}
    assert named["stragglers.0"].name == "GPU 3"
    assert named["faults.0"].name == "host0-leaf0"
    assert min(named[key].cost_s or 0 for key in ("stragglers.0", "faults.0")) > 0


def test_packets_lie_in_the_range_that_flows_tell(gallery: Gallery) -> None:
    """Of the straggler and the link at once, on both engines."""
    made: dict[str, Any] = {"files": {"tiny.json": TINY}, "what_if": "none"}
    flows = gallery.run(BOTH, overrides={"engine.fidelity": "flow"}, **made)
    (text,) = (caveat.text for caveat in flows.caveats if caveat.subject == "engine.losses")
    low, high = (float(word.rstrip("ms")) for word in text.replace(ASSUMED, "").split(" and "))
    packets = gallery.run(BOTH, overrides={"engine.fidelity": "packet"}, seeds=5, **made)
    iterations_ms = [part.value("iteration_ps") / 1e9 for part in packets.seeds]
    assert low * 0.98 <= np.mean(iterations_ms) <= high * 1.02
    assert low <= flows.value("iteration_ps") / 1e9 <= high


CHEAP = (1, 10, 20, 32, 39)  # drawn scenarios whose packet runs take some milliseconds each


@pytest.mark.parametrize("number", CHEAP)
def test_the_expected_cost_is_near_the_mean_of_packet_runs(number: int) -> None:
    row = flow_losses.measure(flow_losses.drawn(number), seeds=5)
    assert row.holds, row
    assert row.low_ps <= row.flow_ps <= row.high_ps


SMALL = """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 400Gbps, loss: 0.001}
traffic: {pattern: permutation, size: 1MiB}
transport: {timeout: 1ms}
engine: {fidelity: flow}
"""


def test_the_range_is_on_screen_and_page_and_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = command_of(capsys)
    Path("small.yaml").write_text(SMALL, encoding="utf-8")
    screen = command("run", "small.yaml", "--what-if", "none", "-o", "words").out
    assert " ".join(screen.split()).count(f"Assumed: {ASSUMED}") == 1
    found = json.loads(command("run", "small.yaml", "--what-if", "none", "-o", "json", "--json").out)
    assert [text for text in found["assumed"] if text.startswith(ASSUMED)]
    assert command("report", "words", "-o", "page.html").code == 0
    assert ASSUMED in plain(Path("page.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("transport.timeout", "2ms"),
        ("transport.recovery", "selective-repeat"),
        ("transport.reorder_tolerant", "true"),
        ("fabric.loss", "0.002"),
        ("fabric.corruption", "0.001"),
    ],
)
def test_keys_of_losses_matter_on_flows_and_are_no_longer_said_to_be_ignored(
    key: str, value: str, gallery: Gallery
) -> None:
    usual = gallery.run(SMALL, what_if="none")
    other = gallery.run(SMALL, overrides={key: value}, what_if="none")
    assert other.value("completion_ps") != usual.value("completion_ps")
    assert key not in {caveat.subject for caveat in other.caveats}


def test_losses_of_all_links_the_timeout_and_the_recovery_are_suspects(gallery: Gallery) -> None:
    run = gallery.run(SMALL, what_if="all")
    assert run.answer.culprit is not None
    costs_s = {each.key: each.cost_s for each in (run.answer.culprit, *run.answer.others)}
    assert run.answer.culprit.key == "fabric.loss"
    for key in ("transport.timeout", "transport.recovery"):
        cost_s = costs_s[key]
        assert cost_s is not None
        assert 0 < cost_s < (costs_s["fabric.loss"] or 0)


def test_a_control_that_slows_down_after_losses_is_told(gallery: Gallery) -> None:
    run = gallery.run(SMALL, overrides={"transport.congestion_control": "cubic"}, what_if="none")
    assert any("'cubic' may slow down after a loss" in caveat.text for caveat in run.caveats)


def test_a_lossy_link_that_nothing_crosses_costs_nothing(gallery: Gallery) -> None:
    text = SMALL.replace(", loss: 0.001", "").replace("permutation", "incast, senders: 1")
    fault = "faults: [{at: 1s, link: leaf0-spine0, event: lossy, loss: 0.1}]\n"
    run = gallery.run(text + fault, what_if="none")
    assert run.value("completion_ps") == gallery.run(text, what_if="none").value("completion_ps")
    assert any("which is nothing here" in caveat.text for caveat in run.caveats)

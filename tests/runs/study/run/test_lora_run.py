"""LoRA, from a scenario to a run folder: both fidelities, trained parameters, the checkpoint, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.gallery import Gallery

from weftwork.base.errors import ConfigError
from weftwork.store.runs import Run

MODEL = Path(__file__).parents[1] / "keys" / "llama.json"  # 8 layers of width 256, heads of 32, MLPs of 512
LAYERS, HIDDEN, FFN = 8, 256, 512


def scenario(lora: str = "", *, fidelity: str = "flow", more: str = "") -> str:
    phase = "pre-training" if lora == "no" else "fine-tuning-lora"
    adapters = f", lora: {{{lora}}}" if lora not in {"", "no"} else ""
    return f"""schema: 3
fabric: {{topology: rail-optimized, gpus: 16, node: dgx-h100, switch: tomahawk-5}}
training: {{model: {MODEL}, sequence: 128, tensor: 2, global_batch: 16, phase: {phase}{adapters}{more}}}
engine: {{fidelity: {fidelity}}}
transport: {{congestion_control: none}}
"""


def value(run: Run, name: str) -> float:
    found = run.value(name)
    assert found is not None
    return found


@pytest.mark.parametrize("more", ["", ", zero: 3", ", zero: 0, overlap: {data: 0}"])
def test_packets_and_flows_agree(gallery: Gallery, more: str) -> None:
    flows, packets = (
        gallery.run(scenario("rank: 8", fidelity=fidelity, more=more), what_if="none")
        for fidelity in ("flow", "packet")
    )
    assert value(flows, "iteration_ps") == pytest.approx(value(packets, "iteration_ps"), rel=0.05)


def test_the_result_says_how_many_parameters_are_trained(gallery: Gallery) -> None:
    run = gallery.run(scenario("rank: 8, targets: [linear_qkv, linear_fc2]"), what_if="none")
    assert value(run, "trained_parameters") == LAYERS * 8 * ((HIDDEN + 3 * HIDDEN) + (FFN + HIDDEN))
    assert "trained_parameters" not in gallery.run(scenario("no"), what_if="none").summary


def test_a_checkpoint_holds_adapters_alone(gallery: Gallery) -> None:
    """14 bytes of each at 1 GB/s of each of 16 GPUs: weights, a master copy and two moments."""
    run = gallery.run(scenario("rank: 8", more=", checkpoint: {every: 1}"), what_if="none")
    trained = value(run, "trained_parameters")
    assert value(run, "spent_checkpoint_ps") == pytest.approx(14 * trained / 16 * 1_000, rel=1e-3)


def test_less_is_sent_than_with_all_weights(gallery: Gallery) -> None:
    whole, lora = (gallery.run(scenario(words, more=", zero: 0"), what_if="none") for words in ("no", "rank: 8"))
    assert 0 < value(lora, "network_bytes") < 0.2 * value(whole, "network_bytes")
    assert value(lora, "memory_bytes") < value(whole, "memory_bytes")


def test_adapters_without_their_phase_are_refused(gallery: Gallery) -> None:
    text = scenario("no", more=", lora: {rank: 8}")
    with pytest.raises(ConfigError) as caught:
        gallery.run(text, what_if="none")
    assert [one.path for one in caught.value.mistakes] == ["training.lora"]

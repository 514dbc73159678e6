"""Arguments of Megatron-LM that its own checks accept."""

from __future__ import annotations

import pytest

from weftwork.spec.scenario.scenario import loads
from weftwork.workload.imports.megatron_write import MegatronArguments, write_megatron
from weftwork.workload.models.catalogue import model


def written(keys: str) -> MegatronArguments:
    section = loads(f"{{schema: 3, fabric: {{radix: 4}}, training: {{model: llama-2-7b, {keys}}}}}").training
    assert section is not None
    return write_megatron(section, model("llama-2-7b"))


@pytest.mark.parametrize("sequence", [2_048, 4_096, 8_192, 65_536])
def test_positions_reach_as_far_as_a_sequence(sequence: int) -> None:
    """validate_args of Megatron-LM asserts it."""
    words = written(f"tensor: 4, global_batch: 64, sequence: {sequence}").words
    positions, length = (int(words[words.index(name) + 1]) for name in ("--max-position-embeddings", "--seq-length"))
    assert length == sequence
    assert positions == max(sequence, model("llama-2-7b").sequence)


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize("order", ["tp-cp-dp-pp", "tp-cp-pp-dp"])
def test_an_order_that_megatron_fsdp_lacks_is_left_out(zero: int, order: str) -> None:
    left_out = written(f"tensor: 4, global_batch: 64, zero: {zero}, order: {order}").left_out
    assert ("training.order" in left_out) == (zero > 1 and order == "tp-cp-pp-dp")

"""A GPU whose products in eight bits nobody has timed gives an iteration a longest plausible time."""

from __future__ import annotations

import pytest
from helpers.gallery import Gallery

import weftwork
from weftwork.hardware.catalogue import GPUS, SERVERS, gpu, server_gpu
from weftwork.report.three_lines import three_lines

NAME = "iteration_unmeasured_ps"


def run(gallery: Gallery, chip: str, precision: str) -> weftwork.Run:
    server = next(name for name in SERVERS if server_gpu(name) == chip)
    made: weftwork.Run = gallery.run(
        f"""\
schema: 3
fabric: {{topology: leaf-spine, node: {server}, leaves: 1, spines: 1, hosts_per_leaf: 2}}
training: {{model: llama-3-8b, gpus: 8, data: 8, global_batch: 16, sequence: 8192, precision: {precision}}}
engine: {{fidelity: flow}}
""",
        what_if="none",
    )
    return made


@pytest.mark.parametrize("precision", ["fp8", "mxfp8"])
def test_an_iteration_in_eight_bits_on_a_gb300_has_a_longest_time_and_the_answer_says_it(
    gallery: Gallery, precision: str
) -> None:
    found = run(gallery, "gb300", precision)
    made = gpu("gb300")
    most = made.achieved_fp8_share / made.achieved_fp8_low_share
    assert 1 < found.value(NAME) / found.value("iteration_ps") < most
    assert "its products in eight bits are not measured" in "\n".join(three_lines(found))


@pytest.mark.parametrize(("chip", "precision"), [("gb300", "bf16"), ("gb200", "mxfp8"), ("b300", "fp8")])
def test_rates_that_were_measured_have_no_such_time(gallery: Gallery, chip: str, precision: str) -> None:
    found = run(gallery, chip, precision)
    assert NAME not in found.summary
    assert "not measured)" not in "\n".join(three_lines(found))


def test_only_unverified_figures_have_a_low_end() -> None:
    low = {name for name in GPUS if "achieved_fp8_low_flops" in GPUS[name].figures}
    assert low == {"gb300"}
    assert all(gpu(name).achieved_fp8_low_share == gpu(name).achieved_fp8_share for name in GPUS if name not in low)

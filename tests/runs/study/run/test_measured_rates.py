"""Measured rates of products, from a scenario to a run: the time, the interval, what they rest on, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.gallery import Gallery

from weftwork.base.errors import ConfigError
from weftwork.store.runs import Run

MODEL = Path(__file__).parents[1] / "keys" / "llama.json"


def scenario(more: str = "", *, fidelity: str = "flow") -> str:
    return f"""schema: 3
fabric: {{topology: rail-optimized, gpus: 8, node: dgx-h100, switch: tomahawk-5}}
training: {{model: {MODEL}, sequence: 128, tensor: 2, global_batch: 16{more}}}
engine: {{fidelity: {fidelity}}}
transport: {{congestion_control: none}}
"""


def iteration_ps(run: Run) -> float:
    value = run.value("iteration_ps")
    assert value is not None
    return value


BURST, KEPT = ", rates: measured, sustained_rate: 1", ", rates: measured"
SLOW = f"{KEPT}, sustained_rate: 0.001"


def test_a_run_computes_as_fast_as_its_rates(gallery: Gallery) -> None:
    """The model is small, so that its products show where they are a thousand times as slow."""
    burst, slow = (gallery.run(scenario(more), what_if="none") for more in (BURST, SLOW))
    assert iteration_ps(slow) > 1.5 * iteration_ps(burst)


def test_every_fidelity_obeys(gallery: Gallery) -> None:
    flows, packets = (gallery.run(scenario(SLOW, fidelity=fidelity), what_if="none") for fidelity in ("flow", "packet"))
    assert iteration_ps(flows) == pytest.approx(iteration_ps(packets), rel=0.05)


def test_no_published_time_was_compared_with_it(gallery: Gallery) -> None:
    usual, measured = (gallery.run(scenario(more), what_if="none").answer.took.interval for more in ("", KEPT))
    assert usual is not None
    assert usual.low is not None
    assert measured is not None
    assert measured.low is None
    assert "rates of the best shape" in measured.basis


def test_the_run_rests_on_the_figures_that_it_uses(gallery: Gallery) -> None:
    usual, measured = (
        {caveat.subject for caveat in gallery.run(scenario(more), what_if="none").caveats} for more in ("", KEPT)
    )
    assert "plain.matmul_efficiency" in usual - measured
    assert "h100.sustained_bf16_share" in measured - usual


def test_a_share_without_measured_rates_is_refused(gallery: Gallery) -> None:
    with pytest.raises(ConfigError, match=r"sustained_rate.*only with measured"):
        gallery.run(scenario(", sustained_rate: 0.9"), what_if="none")

"""The flow engine against the packet engine, on every shape that both run: mean flow completion times.

PFC on, windows of several round trips, so that links are never idle for a window, and an acknowledgement for every
sixteenth packet. The bounds are those of the design: 3 % where switches spread packets, 10 % where a hash spreads
connections. Shapes over them are named here with what they reach, and with the reason in docs/models/flow-engine.md.
"""

from __future__ import annotations

import flow_against_packet as against
import pytest

LONG = {"halving-doubling", "poisson", "rails-direct", "rails-ring", "ring", "tree"}  # more than a second each
SHAPES = [pytest.param(shape, marks=[pytest.mark.deep] if shape in LONG else []) for shape in against.SHAPES]
BOUND = {"sprayed": 0.03, "hashed": 0.10}
OVER = {  # shares of the packet engine's mean
    ("incast", "sprayed"): 0.09,
    ("incast", "hashed"): 0.30,
    ("victim", "sprayed"): 0.09,
    ("victim", "hashed"): 0.29,
}
WHOLE_BOUND = 0.08  # of the completion of everything, which hangs on the last flow


@pytest.mark.parametrize("routing", list(against.ROUTING))
@pytest.mark.parametrize("shape", SHAPES)
def test_mean_flow_completion_times_agree(shape: str, routing: str) -> None:
    by_packet = against.measure(shape, routing, against.FIXED_WINDOW, "packet")
    by_flow = against.measure(shape, routing, against.FIXED_WINDOW, "flow")
    difference = abs(by_flow[0] / by_packet[0] - 1)
    if (shape, routing) in OVER:
        assert BOUND[routing] < difference <= OVER[shape, routing]
    else:
        assert difference <= BOUND[routing]
    assert abs(by_flow[1] / by_packet[1] - 1) <= WHOLE_BOUND


SHORT = {  # flows over packets, less one: of the mean, and of the whole
    ("incast-4-100kB", "sprayed"): (0.27, 0.15),
    ("incast-4-100kB", "hashed"): (0.38, 0.15),
    ("incast-16-100kB", "sprayed"): (0.19, 0.04),
    ("incast-16-100kB", "hashed"): (0.38, 0.04),
    ("incast-48-100kB", "sprayed"): (0.16, 0.01),
    ("permutation-8-100kB", "sprayed"): (-0.02, -0.07),
    ("permutation-32-1MiB", "sprayed"): (-0.13, -0.24),
    ("permutation-64-1MiB", "sprayed"): (-0.04, -0.08),
}


@pytest.mark.parametrize(("shape", "routing"), SHORT)
def test_short_messages_and_few_paths_are_as_far_apart_as_the_page_says(shape: str, routing: str) -> None:
    by_packet, by_flow = (against.measure(shape, routing, against.FIXED_WINDOW, one) for one in ("packet", "flow"))
    differences = (by_flow[0] / by_packet[0] - 1, by_flow[1] / by_packet[1] - 1)
    assert differences == pytest.approx(SHORT[shape, routing], abs=0.01)


def test_fair_windows_close_the_gap_of_an_incast() -> None:
    """With windows of one round trip no sender gets ahead: what was over the bound is then under it."""
    control = "{name: fixed-window, window_bytes: 150KB}"
    by_packet = against.measure("incast", "sprayed", control, "packet")
    by_flow = against.measure("incast", "sprayed", control, "flow")
    assert by_flow[0] / by_packet[0] == pytest.approx(1, abs=0.03)

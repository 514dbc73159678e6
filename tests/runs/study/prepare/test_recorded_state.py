"""Names of state fields in a scenario: found in the policies, or refused with what there is and the nearest."""

from pathlib import Path

import pytest

from weftwork.base.errors import ConfigError
from weftwork.engine.packet import StateField
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.written import dump
from weftwork.study.prepare.prepare import known_names, prepare

CONTROL = '''"""Mine."""
from weftwork.policies.interface import CongestionControl, SenderState, array
class Params: ...
class State(SenderState):
    cwnd: float
    queue_bytes: int
    sent: int
    ring_ps: list[int] = array(8)
def step(params, state, signal):
    state.cwnd = 1.0
PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset(), source="a test")
'''
SCENARIO = """schema: 3
fabric: {{topology: leaf-spine, hosts: 8, radix: 8}}
transport: {{congestion_control: {file}, path_selection: oblivious, reorder_tolerant: true}}
traffic: {{pattern: permutation}}
engine: {{fidelity: {fidelity}, record: {{flows: {flows}, state: {state}}}}}
"""


def fields(tmp_path: Path, state: str, *, flows: str = "[0]", fidelity: str = "packet") -> tuple[StateField, ...]:
    (tmp_path / "mine.py").write_text(CONTROL, encoding="utf-8")
    text = SCENARIO.format(file=tmp_path / "mine.py", state=state, flows=flows, fidelity=fidelity)
    scenario = loads(text, known=known_names())
    assert loads(dump(scenario), known=known_names()).engine == scenario.engine
    series = prepare(scenario).series
    assert series is not None
    return series.state


def refused(tmp_path: Path, state: str, **others: str) -> list[tuple[str, str, str | None]]:
    with pytest.raises(ConfigError) as caught:
        fields(tmp_path, state, **others)
    return [(mistake.path, mistake.text, mistake.fix and str(mistake.fix)) for mistake in caught.value.mistakes]


def test_fields_are_found_at_their_places(tmp_path: Path) -> None:
    found = fields(tmp_path, '[cwnd, "ring_ps[3]", "congestion_control.timer_at_ps[1]", entropy, mask]')
    assert [(field.name, field.of_path, field.place, field.is_float) for field in found] == [
        ("cwnd", False, 10, True),  # behind rate, window, four timers and four more
        ("ring_ps[3]", False, 16, False),
        ("congestion_control.timer_at_ps[1]", False, 3, False),
        ("entropy", True, 0, False),
        ("mask", True, 6, False),
    ]


def test_each_is_kept_once_and_rate_and_window_anyway(tmp_path: Path) -> None:
    assert [field.name for field in fields(tmp_path, "[cwnd, rate_bps, congestion_control.cwnd, window_bytes]")] == [
        "cwnd"
    ]


def test_a_name_that_others_have_is_told_apart(tmp_path: Path) -> None:
    found = fields(tmp_path, "[queue_bytes, path_selection.sent, congestion_control.sent]")
    assert [field.name for field in found] == [
        "congestion_control.queue_bytes",  # ports have a series of that name
        "path_selection.sent",
        "congestion_control.sent",
    ]
    assert refused(tmp_path, "[sent]") == [
        (
            "engine.record.state",
            "found 'sent', a field of both policies, wanted congestion_control.sent or path_selection.sent",
            "congestion_control.sent",
        )
    ]


def test_all_unknown_names_are_refused_at_once_with_the_nearest(tmp_path: Path) -> None:
    found = refused(tmp_path, '[cwmd, "ring_ps[8]", ring_ps, "cwnd[0]", port_selection.cwnd, "cwnd[-1]", banana]')
    assert {path for path, _, _ in found} == {"engine.record.state"}
    texts = [text.partition(", of mine: ")[0] for _, text, _ in found]
    assert texts == [
        "found 'cwmd', wanted a field of a state",
        "found 'ring_ps[8]', wanted ring_ps[0] to ring_ps[7]",
        "found 'ring_ps', an array, wanted one of ring_ps[0] to ring_ps[7]",
        "found 'cwnd[0]', but the field is a number, not an array",
        "found 'port_selection.cwnd', wanted a field of a state",
        "found 'cwnd[-1]', wanted a field of a state",
        "found 'banana', wanted a field of a state",
    ]
    assert [fix for _, _, fix in found] == ["cwnd", None, None, "cwnd", None, "cwnd", None]
    assert found[0][1].endswith(
        "cwnd, queue_bytes, sent, ring_ps[0..7]; of oblivious: entropy, timer_at_ps[0..3], sent, mask"
    )


@pytest.mark.parametrize(
    ("flows", "fidelity", "paths"),
    [("none", "packet", ["engine.record.state"]), ("[0]", "flow", ["engine.record"]),
     ("[0]", "reference", ["engine.record"])],
)  # fmt: skip
def test_what_records_no_flow_records_no_state(tmp_path: Path, flows: str, fidelity: str, paths: list[str]) -> None:
    assert [path for path, _, _ in refused(tmp_path, "[cwnd]", flows=flows, fidelity=fidelity)] == paths

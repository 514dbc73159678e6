"""Parts that policies share: imported by name, checked and compiled as the policy's own functions, named in errors."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from pathlib import Path

import pytest

from weftwork.base.errors import PolicyError
from weftwork.policies import compile as compiler
from weftwork.policies import policy_file
from weftwork.policies.check import Checked, check_imports
from weftwork.policies.compiled_parts import CompiledParts
from weftwork.policies.interface import Kind
from weftwork.policies.load import LoadedPolicy, load
from weftwork.policies.parts import retransmission_timer, tcp_window
from weftwork.policies.step_file import part_file, part_names
from weftwork.testing.congestion_control import check_congestion_control

HEAD = '''"""A window of its own on the timer of TCP. Source: a test. Leaves out: all else."""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, Signal, row
from weftwork.policies.parts.retransmission_timer import (
    FIRST_TIMEOUT, MAX_TIMEOUT, MIN_TIMEOUT, TIMEOUT_ABOVE_RTT, TimerState, first_timeout, measure as estimate,
)
'''
MINE = (
    HEAD
    + '''

class Params:
    """The timer's."""

    first_timeout_ps: int = FIRST_TIMEOUT
    min_timeout_ps: int = MIN_TIMEOUT
    timeout_above_rtt: bool = TIMEOUT_ABOVE_RTT
    max_timeout_ps: int = row(default="120s", source="a test", text="Longest timeout.")


class State(TimerState):
    """The timer's, and a count."""

    acks: int


def step(params: Params, state: State, signal: Signal) -> None:
    """Keep four round trips of line rate in flight."""
    if signal.kind == Kind.START:
        first_timeout(params, state, signal.base_rtt_ps)
        state.window_bytes = 4.0 * signal.line_rate_bps * signal.base_rtt_ps / 8e12
    elif signal.rtt_ps > 0:
        estimate(params, state, float(signal.rtt_ps))
        state.acks += 1


PLUGIN = CongestionControl(
    params=Params, state=State, step=step, signals=frozenset({Kind.ACK}), needs=frozenset({"rtt"}), source="a test"
)
'''
)


def mine(folder: Path, text: str = MINE) -> Path:
    path = folder / "mine.py"
    path.write_text(text, encoding="utf-8")
    return path


def told(policy: LoadedPolicy, kind: Kind, **fields: int) -> tuple[object, object]:
    """State and signal of a call."""
    state, signal = policy.new_state(), policy.new_signal()
    signal.kind, signal.line_rate_bps, signal.base_rtt_ps, signal.mtu_bytes = int(kind), 10**11, 10**7, 4096
    for name, value in fields.items():
        setattr(signal, name, value)
    state.rate_bps = 1e11
    return state, signal


def test_a_users_policy_takes_functions_rows_and_fields_of_a_part_and_keeps_the_contract(tmp_path: Path) -> None:
    policy = load("congestion_control", mine(tmp_path))
    names = [field.name for field in policy.state.fields]
    assert names[-3:] == ["smoothed_ps", "variation_ps", "acks"]
    assert policy.values["min_timeout_ps"] == 200_000_000_000
    state, signal = told(policy, Kind.ACK, rtt_ps=2 * 10**7)
    policy.call_step(state, signal)
    assert (state.smoothed_ps, state.variation_ps, state.timeout_ps) == (2e7, 1e7, 200_020_000_000)  # type: ignore[attr-defined]
    assert not check_congestion_control(policy)


@pytest.mark.parametrize(
    "line",
    [
        "import weftwork.policies.parts.tcp_window",
        "from weftwork.policies.parts import tcp_window",
        "from weftwork.policies.parts.tcp_window import *",
        "from weftwork.policies.parts.tcp_windows import begin",
    ],
)
def test_names_of_a_part_are_imported_and_nothing_else(tmp_path: Path, line: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load("congestion_control", mine(tmp_path, MINE.replace("from __future__", f"{line}\nfrom __future__", 1)))
    assert caught.value.line == 3
    assert "from weftwork.policies.parts.<part> import <name>; parts are delivery_rate, int_memory" in caught.value.text


def test_a_part_is_checked_with_the_records_of_the_policy_that_calls_it(tmp_path: Path) -> None:
    text = MINE.replace("    min_timeout_ps: int = MIN_TIMEOUT\n", "")
    with pytest.raises(PolicyError) as caught:
        load("congestion_control", mine(tmp_path, text))
    lines = inspect.getsource(retransmission_timer).splitlines()
    assert caught.value.file == retransmission_timer.__file__
    assert "least_ps = float(params.min_timeout_ps)" in lines[caught.value.line - 1]
    assert "'params' has no field 'min_timeout_ps'" in caught.value.text


def test_a_field_of_a_part_has_one_declaration(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"'State\.smoothed_ps': the name is that of a field of a part") as caught:
        load(
            "congestion_control",
            mine(tmp_path, MINE.replace("    acks: int\n", "    acks: int\n    smoothed_ps: float\n")),
        )
    assert caught.value.line == MINE[: MINE.index("    acks")].count("\n") + 2


def test_an_exception_in_a_part_names_its_file_and_line() -> None:
    policy = load("congestion_control", "reno", {"initial_bytes": 14_600})
    state, signal = told(policy, Kind.START, mtu_bytes=0)
    with pytest.raises(PolicyError, match="ZeroDivisionError") as caught:
        policy.call_step(state, signal)
    assert caught.value.file == tcp_window.__file__
    assert "params.initial_bytes" in inspect.getsource(tcp_window).splitlines()[caught.value.line - 1]
    with pytest.raises(PolicyError, match="ZeroDivisionError") as replayed:
        policy.replay(policy.initial_state_bytes, policy.signal_layout.pack(signal))
    assert (replayed.value.file, replayed.value.line) == (caught.value.file, caught.value.line)


def test_a_value_that_no_sender_can_obey_names_the_line_of_the_part_that_wrote_it(tmp_path: Path) -> None:
    policy = load("congestion_control", mine(tmp_path), {"max_timeout_ps": -1})
    state, signal = told(policy, Kind.ACK, rtt_ps=10**7)
    with pytest.raises(PolicyError, match="timeout_ps became -1, wanted 0 or more") as caught:
        policy.call_step(state, signal)
    assert caught.value.file == retransmission_timer.__file__
    assert "state.timeout_ps = min(" in inspect.getsource(retransmission_timer).splitlines()[caught.value.line - 1]


def test_the_cache_and_the_hash_of_a_policy_know_the_text_of_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = load("congestion_control", mine(tmp_path))
    file, hash_before = policy.step_file, policy.hash
    before = compiler._footer(file, Checked(functions={"step"}), ())
    changed = tuple(replace(part, text=part.text + "\n") for part in compiler.parts_of(file.tree))
    monkeypatch.setattr(compiler, "parts_of", lambda _: changed)
    assert before != compiler._footer(file, Checked(functions={"step"}), ())
    monkeypatch.setattr(policy_file, "parts_of", lambda _: changed)
    policy_file.checked_file.cache_clear()
    assert load("congestion_control", mine(tmp_path)).hash != hash_before
    policy_file.checked_file.cache_clear()


def test_policies_share_no_compiled_function_of_a_part() -> None:
    """Numba would take DCTCP's state, which begins with Reno's, for Reno's."""
    needed = {(tcp_window.__name__, "collapse"), (retransmission_timer.__name__, "back_off")}
    first, second = CompiledParts(needed), CompiledParts(needed)
    collapse = first.function(tcp_window.__name__, "collapse")
    assert collapse is first.function(tcp_window.__name__, "collapse")
    assert collapse is not second.function(tcp_window.__name__, "collapse")
    assert collapse.py_func.__globals__["back_off"] is first.function(retransmission_timer.__name__, "back_off")


def test_a_part_imports_as_a_policy_does() -> None:
    for name in part_names():
        part = part_file(name)
        check_imports(part.path, part.tree)
        assert ast.get_docstring(part.tree), name


@pytest.mark.parametrize(
    "words", ["marked_bytes .via .word", "state.segment_bytes", "signal.hops Kind.TRIM", ".paused"]
)
def test_a_comment_changes_nothing_that_the_core_knows_of_a_policy(tmp_path: Path, words: str) -> None:
    plain = load("congestion_control", mine(tmp_path))
    worded = load("congestion_control", mine(tmp_path, MINE.replace("state.acks += 1", f"state.acks += 1  # {words}")))
    assert (worded.fields, worded.kinds) == (plain.fields, plain.kinds)
    assert ("Signal", "rtt_ps") in plain.fields
    assert ("State", "smoothed_ps") in plain.fields
    assert ("State", "segment_bytes") not in worded.fields
    assert plain.kinds == {Kind.START}

"""The check on loading: what a step may not do is refused with the file, the line and what is allowed."""

from pathlib import Path

import pytest

from weftwork.base.errors import PolicyError
from weftwork.policies.load import load

HEAD = """from __future__ import annotations
import math
from weftwork.policies.interface import CongestionControl, Kind, array, row
SEVEN = 7
HALF = 0.5
class Params:
    gain: float = row(default=0.5, source="chosen: a test", text="A gain.")
class State:
    level: float
    count: int
    flag: bool
    ring: list[int] = array(4)
"""
TAIL = """
PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset({Kind.ACK}), source="a test")
"""


def written(tmp_path: Path, *body: str, above: str = "") -> tuple[Path, int]:
    """A policy file whose step has this body, and the line on which the body begins."""
    head = HEAD + above + "def step(params, state, signal):\n"
    path = tmp_path / "mine.py"
    path.write_text(head + "".join(f"    {line}\n" for line in body) + TAIL, encoding="utf-8")
    return path, head.count("\n") + 1


def refusal(tmp_path: Path, *body: str, above: str = "") -> tuple[str, int]:
    path, first = written(tmp_path, *body, above=above)
    with pytest.raises(PolicyError) as caught:
        load("congestion_control", path)
    assert caught.value.file == str(path)
    return caught.value.text, caught.value.line - first


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("state.level = state.level ** 2", "'**' rounds differently when compiled; write products"),
        ("state.level = math.cbrt(2.0)", "'math.cbrt' rounds differently when compiled, or is unknown"),
        ("state.level = math.pow(2.0, 3.0)", "'math.pow' rounds differently"),
        ("state.level = round(2.5)", "'round' cannot be called like this in a step"),
        ("state.count = signal.now_ps / 2", "'state.count' is an int and would be given a float; write int(...)"),
        ("state.count += 0.5", "'state.count' is an int and would be given a float"),
        ("state.ring[0] = 0.5", "'state.ring[...]' is an int and would be given a float"),
        ("state.ring[0.5] = 1", "an index takes an int"),
        ("state.ring = 3", "'state.ring' is an array; write its elements"),
        ("state.level = state.level // 2.0", "'//' and '%' take ints"),
        ("state.level = state.level % 2", "'//' and '%' take ints"),
        ("state.level = max(0, state.level)", "an int and a float meet in 'max(0, state.level)'; give all one type"),
        ("state.level = 1 if state.flag else 0.5", "an int and a float meet in"),
        ("state.level = signal.draw / 4", "'draw' and 'hash' have 62 bits"),
        (
            "state.nothing = 1",
            "'state' has no field 'nothing'; it has rate_bps, window_bytes, timer_at_ps, timeout_ps, segment_bytes, ",
        ),
        ("state.level = signal.speed", "'signal' has no field 'speed'"),
        ("signal.bytes = 1", "'signal.bytes' is read only"),
        ("params.gain = 1.0", "'params.gain' is read only"),
        ("state.level = 'high'", "''high'' cannot be compiled in a step; allowed are + - * /"),
        ("x = [1, 2]", "'[1, 2]' cannot be compiled in a step"),
        ("x = {}", "'{}' cannot be compiled in a step"),
        ("x = state", "'x' would hold a record; a variable holds a number"),
        ("x = lambda: 1", "'lambda: 1' cannot be compiled in a step"),
        ("a, b = 1, 2", "cannot be compiled in a step"),
        ("a = b = 1", "cannot be compiled in a step"),
        ("print(1)", "'print' cannot be called like this in a step"),
        ("state.level = unknown", "'unknown' is not an argument, a variable or a number at the top of the file"),
        ("state.level = HEAD.x", "'HEAD' is not an argument"),
        ("state.level = 99999999999999999999", "does not fit 64 bits"),
        ("state.count = 1 << 3", "this operator cannot be used here"),
        ("state.count = signal.bytes >> signal.seq", "'>>' takes a literal from 0 to 62"),
        ("state.count = ~signal.bytes", "cannot be compiled in a step"),
        ("state.flag = state is None", "cannot be compiled in a step"),
        ("state.flag = signal.kind in (1, 2)", "cannot be compiled in a step"),
        ("state.flag = signal.kind == Kind.ARRIVED", "there is no Kind.ARRIVED; there are START, RESUME"),
        ("state.count = Kind.ACK", "a Kind is not a number"),
        ("del state.level", "'del' cannot be compiled in a step"),
        ("import os", "a policy may not import os: its steps become machine code, which cannot use modules"),
        ("global SEVEN", "'global' cannot be compiled in a step"),
        ("assert state.flag", "'assert' cannot be compiled in a step"),
        ("return 1", "'step' returns a value; a step writes its state instead"),
        ("state.level = math.sqrt(2.0, 3.0)", "'math.sqrt' takes one argument here"),
        ("state.level = min(*state.ring)", "a call in a step has plain arguments only"),
        ("state.level = helper(1.0)", "'helper' cannot be called like this"),
    ],
)
def test_a_forbidden_line_is_named_with_what_is_allowed(tmp_path: Path, line: str, told: str) -> None:
    text, at = refusal(tmp_path, "state.level = 1.0", line)
    assert told in text
    assert at in ((-1,) if line == "return 1" else (1,))


def test_a_loop_over_anything_but_a_range_is_refused(tmp_path: Path) -> None:
    text, at = refusal(tmp_path, "for x in state.ring:", "    state.count += x")
    assert "a loop runs over range(...)" in text
    assert at == 0


def test_try_is_refused(tmp_path: Path) -> None:
    text, at = refusal(tmp_path, "try:", "    state.count += 1", "except ValueError:", "    pass")
    assert "'try' cannot be compiled" in text
    assert at == 0


def test_a_variable_that_changes_its_type_is_refused(tmp_path: Path) -> None:
    text, at = refusal(tmp_path, "x = 0", "x = x + 0.5", "state.level = x")
    assert text.startswith("'x' was an int in line ")
    assert "is a float here; write float(...)" in text
    assert at == 1


def test_a_variable_set_in_one_branch_only_is_refused(tmp_path: Path) -> None:
    text, at = refusal(tmp_path, "if state.flag:", "    x = 1", "state.count = x")
    assert "'x' may not be set here yet" in text
    assert at == 2


def test_a_variable_set_in_a_loop_only_is_refused(tmp_path: Path) -> None:
    text, at = refusal(tmp_path, "for i in range(signal.hops):", "    x = i", "state.count = x")
    assert "'x' may not be set here yet" in text
    assert at == 2


def test_a_helper_is_checked_with_the_types_of_its_call(tmp_path: Path) -> None:
    above = "def half(x):\n    return x // 2\n"
    text, _ = refusal(tmp_path, "state.level = half(1.0)", above=above)
    assert "'//' and '%' take ints" in text


def test_recursion_is_refused(tmp_path: Path) -> None:
    above = "def again(x):\n    return again(x)\n"
    text, _ = refusal(tmp_path, "state.level = again(1.0)", above=above)
    assert text == "'again' calls itself; a step has no recursion"


def test_a_helper_that_may_return_nothing_is_refused(tmp_path: Path) -> None:
    above = "def sometimes(x):\n    if x > 0.0:\n        return x\n"
    text, _ = refusal(tmp_path, "state.level = sometimes(1.0)", above=above)
    assert text == "'sometimes' may end without a value, but returns a value elsewhere"


def test_a_helper_with_a_default_is_refused(tmp_path: Path) -> None:
    text, _ = refusal(tmp_path, "state.level = scaled(1.0)", above="def scaled(x, by=2.0):\n    return x * by\n")
    assert "plain arguments only" in text


def test_while_is_refused_since_nothing_could_stop_it(tmp_path: Path) -> None:
    text, at = refusal(tmp_path, "state.count = 1", "while True:", "    state.count += 1")
    assert text.startswith("'while' cannot be used in a step, since nothing could stop an endless loop")
    assert "range(most)" in text
    assert at == 1


def test_what_is_allowed_loads(tmp_path: Path) -> None:
    path, _ = written(
        tmp_path,
        "level: float = HALF * SEVEN - 1",
        "for i in range(1, 4):",
        "    if state.ring[i] > 2 and not state.flag:",
        "        continue",
        "    level += clamped(float(i), 0.0, 2.0)",
        "for i in range(64):",
        "    if level <= 10.0:",
        "        break",
        "    level = level / 2",
        "state.flag = signal.kind == Kind.ACK or level != level",
        "state.count = math.floor(level) % 3 ^ (signal.draw >> 40 & 255)",
        "state.level = math.sqrt(abs(level)) + math.exp(-level) if level > 0.5 else math.log(3.0)",
        above="def clamped(x, low, high):\n    return min(max(x, low), high)\n",
    )
    assert load("congestion_control", path).plugin.source == "a test"

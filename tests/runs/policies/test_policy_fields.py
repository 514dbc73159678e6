"""A wrong field of a plug-in of any kind is refused before the file runs: each with its line and the nearest name."""

import copy
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import weftwork
from weftwork.base.errors import CodeError, ConfigError, PolicyError
from weftwork.policies.load import KINDS, load
from weftwork.spec.scenario.choices import ALGORITHMS, PATTERNS, TOPOLOGIES, TRANSPORTS
from weftwork.testing.files import kind_of

MINE = '''"""Mine."""
from weftwork.policies.interface import CongestionControl as Control
from weftwork.policies.interface import SenderState


class Params:
    """None."""


class State(SenderState):
    """None."""


def step(params, state, signal):
    state.rate_bps = 1.0


PLUGIN = Control(
    params=Params,
    state=State,
    step=step,
    signals=frozenset(),
    source="a test",
)
raise ValueError("the file was run")
'''
FOLDERS = {"collective": ALGORITHMS, "topology": TOPOLOGIES, "traffic": PATTERNS, "transport": TRANSPORTS}


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def refused(tmp_path: Path, text: str) -> PolicyError:
    file = tmp_path / "mine.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        load("congestion_control", file)
    assert caught.value.file == str(file)
    return caught.value


def test_an_unknown_field_is_told_with_its_line_and_what_is_allowed(tmp_path: Path) -> None:
    error = refused(tmp_path, MINE.replace("    signals=", "    recieve=None,\n    signals="))
    assert error.line == line_of(MINE, "    signals=")
    assert error.text.startswith(
        "CongestionControl(...): unknown field 'recieve'; did you mean 'receive'? It needs params, state, step, source,"
        " signals, and may have receiver_state, receive,"
    )


def test_a_missing_field_is_told(tmp_path: Path) -> None:
    error = refused(tmp_path, MINE.replace('    source="a test",\n', ""))
    assert error.line == line_of(MINE, "PLUGIN")
    assert error.text.startswith("CongestionControl(...): no value for the field 'source'. It needs params")


def test_all_wrong_fields_are_told_at_once(tmp_path: Path) -> None:
    text = MINE.replace("    state=State", "    staet=State").replace("    source=", "    colour=")
    error = refused(tmp_path, text.replace("    signals=", "    varaints={},\n    signals="))
    first = line_of(MINE, "PLUGIN")
    assert [(m.path, m.line, m.fix and str(m.fix)) for m in error.mistakes] == [
        ("source", first, None),
        ("staet", first + 2, "state"),  # and so 'state' is not missing
        ("varaints", first + 4, "variants"),
        ("colour", first + 6, None),
    ]
    assert error.line == first
    shown = str(error).splitlines()
    assert "4 fields of CongestionControl(...) are wrong. It needs params" in shown[0]
    assert shown[2] == f"  line {first + 2}  staet     unknown field; did you mean 'state'?"
    assert str(copy.copy(error)) == str(error)  # a worker of a sweep sends it home


def test_a_field_without_its_name_is_told(tmp_path: Path) -> None:
    error = refused(tmp_path, MINE.replace("    params=Params", "    Params"))
    assert error.line == line_of(MINE, "    params=Params")
    assert "a field is given by its name, not by place as 'Params'" in error.text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(MINE.replace('    source="a test",\n', '    **{"source": "x"},\n'), id="by-a-dict"),
        pytest.param(MINE, id="all-right"),
        pytest.param(MINE.replace("PLUGIN =", "PLUGIN: Control ="), id="annotated"),
    ],
)
def test_what_is_right_or_known_to_the_run_alone_is_not_refused(tmp_path: Path, text: str) -> None:
    assert "the file was run" in refused(tmp_path, text).text


def test_a_wrong_field_of_a_record_in_a_step_gets_the_nearest(tmp_path: Path) -> None:
    text = MINE.replace("state.rate_bps = 1.0", "state.window_byte = 1.0").partition("raise ")[0]
    error = refused(tmp_path, text)
    assert error.line == line_of(MINE, "    state.rate_bps")
    assert "'state' has no field 'window_byte'; it has rate_bps, window_" in error.text
    assert error.text.endswith("; did you mean 'window_bytes'?")


@pytest.mark.parametrize("kind", [*KINDS, *FOLDERS])
def test_every_kind_refuses_unknown_and_missing_fields_at_once(tmp_path: Path, kind: str) -> None:
    text = files("weftwork.templates").joinpath(f"{kind}.py").read_text(encoding="utf-8")
    head, constant, tail = text.rpartition("source=")
    assert constant
    text = f"{head}sources={tail.rstrip().removesuffix(')').rstrip().removesuffix(',')}, colours=3)\n"
    file = tmp_path / "mine.py"
    file.write_text(text, encoding="utf-8")
    doors: list[Any] = [lambda: kind_of(file)]
    doors.append((lambda: load(kind, file)) if kind in KINDS else (lambda: FOLDERS[kind].load(str(file))))
    for door in doors:
        with pytest.raises(CodeError) as caught:
            door()
        assert isinstance(caught.value, PolicyError) == (kind in KINDS)
        found = {mistake.path: (mistake.line, mistake.fix and str(mistake.fix)) for mistake in caught.value.mistakes}
        assert found == {
            "sources": (line_of(text, "sources="), "source"),
            "colours": (line_of(text, "colours="), None),
        }


def test_a_scenario_tells_them_beside_its_other_mistakes(tmp_path: Path) -> None:
    text = files("weftwork.templates").joinpath("traffic.py").read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text(text.replace("job=job, source=", "jop=job, sauce="), encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(
        f"schema: 3\nfabric: {{radix: 4, loss: 2}}\ntraffic: {{pattern: {tmp_path / 'mine.py'}}}\n", encoding="utf-8"
    )
    with pytest.raises(ConfigError) as caught:
        weftwork.read_scenario(str(tmp_path / "mine.yaml"))
    found = {mistake.path: mistake.text for mistake in caught.value.mistakes}
    assert set(found) == {"fabric.loss", "traffic.pattern"}
    line = line_of(text, "PATTERN = ")
    assert (
        f"line {line}: 2 fields of Pattern(...) are wrong. It needs source, job, and may have keys"
        in (found["traffic.pattern"])
    )
    last = str(caught.value).splitlines()[-1]
    assert last.startswith(" " * 20)
    assert last.endswith("sauce  unknown field; did you mean 'source'?")

"""The flow engine reads what policies declare, not what their files are called; what is not true is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers.flow_declarations import lowered

from weftwork.base.errors import ConfigError, PolicyError
from weftwork.engine.flow.flow_input import Mode
from weftwork.policies.load import catalogue, load

OWN = """
from weftwork.policies.interface import PortSelection
class Params: pass
class State: pass
def step(params, state, signal, candidates):
    signal.choice = {choice}
PLUGIN = PortSelection(params=Params, state=State, step=step, source="a test"{more})
"""


def own(tmp_path: Path, name: str, choice: str, more: str = "") -> Path:
    path = tmp_path / name
    path.write_text(OWN.format(choice=choice, more=more), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("ecmp", Mode.HASHED),
        ("destination-modulo", Mode.DETERMINISTIC),
        ("wcmp", Mode.WEIGHTED),
        ("spray", Mode.SPRAY),
        ("least-loaded", Mode.SPRAY),
    ],
)
def test_a_copy_under_another_name_is_what_it_was(tmp_path: Path, name: str, mode: Mode) -> None:
    original = next(entry.path for entry in catalogue("port_selection") if entry.name == name)
    copy = shutil.copy(original, tmp_path / "quite_another.py")
    assert lowered(name).mode == lowered(Path(copy)).mode == mode


def test_a_file_of_a_known_name_that_does_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as silent:
        lowered(own(tmp_path, "ecmp.py", "0"))
    assert "transport.port_selection  'ecmp' does not declare how it spreads packets" in str(silent.value)
    assert "declare spreads='hash' or spreads='weighted-hash' or spreads='destination' or spreads='evenly'" in str(
        silent.value
    )
    with pytest.raises(ConfigError) as lying:
        lowered(own(tmp_path, "ecmp.py", "0", ", spreads='hash'"))
    assert "'ecmp' declares spreads='hash', but it chose candidate 0 of 2 for hash" in str(lying.value)
    with pytest.raises(ConfigError) as unweighted:
        lowered(own(tmp_path, "ecmp.py", "signal.hash % signal.candidates", ", spreads='weighted-hash'"))
    assert "declares spreads='weighted-hash', but it chose candidate" in str(unweighted.value)
    honest = own(tmp_path, "mine.py", "signal.hash % signal.candidates", ", spreads='hash'")
    assert lowered(honest).mode == Mode.HASHED


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (", spreads='often'", "spreads is 'often', wanted 'hash', 'weighted-hash', 'destination', 'evenly' or None"),
        (", spreads='evenly'", "spreads is 'evenly' and its reorders 'never'"),
        (", spreads='hash', reorders='always'", "spreads is 'hash' and its reorders 'always'"),
        (", needs={'telemetry'}", "a port selection sees its own candidates: wanted 'queue'"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused_on_loading(tmp_path: Path, more: str, told: str) -> None:
    with pytest.raises(PolicyError) as error:
        load("port_selection", own(tmp_path, "mine.py", "0", more))
    assert told in error.value.text


@pytest.mark.parametrize(
    ("port", "path", "mode"),
    [
        ("ecmp", "ecmp", Mode.HASHED),
        ("ecmp", "spray", Mode.SPRAY),
        ("ecmp", "oblivious", Mode.SPRAY),
        ("spray", "ecmp", Mode.SPRAY),
        ("destination-modulo", "spray", Mode.DETERMINISTIC),  # which does not look at the entropy
    ],
)
def test_both_ends_decide(port: str, path: str, mode: Mode) -> None:
    assert lowered(port, path).mode == mode

"""The flow engine reads what policies declare, not what their files are called; what is not true is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers.tiny import Message, sends, wired

from weftwork.base.errors import ConfigError, PolicyError
from weftwork.engine.flow.flow_input import FlowInput, Mode
from weftwork.engine.flow.lower import lower_flow
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import catalogue, load
from weftwork.spec.transport import Transport

FABRIC = wired([(0, 2), (1, 3), (2, 4), (2, 5), (4, 3), (5, 3)], hosts=2)


JOB = sends(2, [Message(source=0, destination=1, size_bytes=10_000)])


OWN = """
from weftwork.policies.interface import PortSelection
class Params: pass
class State: pass
def step(params, state, signal, candidates):
    signal.choice = {choice}
PLUGIN = PortSelection(params=Params, state=State, step=step, source="a test"{more})
"""


def lowered(port: str | Path, path: str | Path | None = None, **parameters: Any) -> FlowInput:
    return lower_flow(
        fabric=FABRIC,
        job=JOB,
        transport=Transport(reorder_tolerant=True),
        settings=EngineSettings(
            port_selection=load("port_selection", port),
            path_selection=None if path is None else load("path_selection", path, parameters),
        ),
    )


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

"""What a preset of load balancing chose is told at the key that the user wrote, with a preset as the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.reader import Places

TORUS = """schema: 3
fabric: {topology: torus, shape: [3, 3], routing: %s}
transport:
  congestion_control: fixed-window
  %s
  reorder_tolerant: true
traffic: {pattern: permutation, size: 4KiB}
engine: {fidelity: %s}
"""


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
@pytest.mark.parametrize(
    ("key", "path", "text"),
    [
        ("load_balancing: switch-spray", "transport.load_balancing", "its port_selection: found 'spray', but "),
        ("port_selection: spray", "transport.port_selection", "found 'spray', but "),
    ],
)
def test_a_choice_is_refused_where_it_stands(key: str, path: str, text: str, fidelity: str, tmp_path: Path) -> None:
    file = tmp_path / "torus.yaml"
    file.write_text(TORUS % ("ugal", key, fidelity), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        weftwork.prepare(weftwork.read_scenario(file))
    (mistake,) = refused.value.mistakes
    assert (mistake.path, mistake.line, mistake.fix) == (path, 5, "ecmp")
    assert mistake.text.startswith(text)


def test_the_fix_of_a_preset_is_a_preset() -> None:
    """A port selection and a path selection may have the same name."""
    places = Places(lines={"transport.load_balancing": 7})
    fixes = {"transport.port_selection": "switch-spray", "transport.path_selection": "spray"}
    for path, fix in fixes.items():
        mistake = places.mistake(path, "found 'x'", "spray")
        assert (mistake.path, mistake.line, mistake.fix) == ("transport.load_balancing", 7, fix)
    assert places.mistake("transport.port_selection", "found 'x'", "no such").fix is None
    assert Places(lines={"transport": 7}).mistake("transport.port_selection", "found 'x'", "spray").fix == "spray"

"""From a scenario to a plan: what a built fabric or a plan refuses is told with the file and the line to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.base.errors import ConfigError
from weftwork.study.prepare.prepare import fabric_of_scenario, prepare, read_scenario

SCENARIO = """schema: 3
fabric:
  topology: leaf-spine
  leaves: 2
  spines: 2
  hosts_per_leaf: 2
{more}
traffic: {{pattern: permutation, size: 10KB}}
"""


def refusal(path: Path, more: str, **overrides: str) -> str:
    path.write_text(SCENARIO.format(more=more), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        prepare(read_scenario(path, overrides))
    return str(error.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.yaml"


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ("  switch: {radix: 1}", "line 7  fabric.switch.radix  leaf0: 4 links, but switch 'plain' has 1 port\n"),
        ("  switch:\n    alpha: 1\n    radix: 3", "line 9  fabric.switch.radix  leaf0: 4 links"),
        (
            "  switch: {pause_quanta: 1}",
            "line 7  fabric.switch.pause_quanta  found 1: 'plain' would send a pause again",
        ),
        (
            "  switch: {buffer: 100KB, ecn: {kmin: 5KB, kmax: 50KB}}",
            "line 7  fabric.switch.buffer  the buffer of 'leaf0', 100,000 B, is too small",
        ),
    ],
)
def test_a_mistake_that_a_built_fabric_shows_has_its_line(file: Path, more: str, where: str) -> None:
    text = refusal(file, more)
    assert text.startswith(f"{file}: ")
    assert where in text


def test_a_key_that_is_not_there_gets_the_line_of_the_section_around_it(file: Path) -> None:
    # As many ports as the switch has at 100 Gb/s, but the uplinks are faster.
    text = refusal(
        file,
        "  switch: tomahawk-3\n  link_rate: 100Gbps\n  fabric_rate: 400Gbps",
        **{"fabric.hosts_per_leaf": "100", "fabric.spines": "8"},
    )
    assert "line 7  fabric.switch  leaf0: links of 13.2Tbps together, but 'tomahawk-3' switches 12.8Tbps" in text


def test_a_mistake_that_came_by_set_says_so(file: Path) -> None:
    text = refusal(file, "", **{"fabric.switch.radix": "1"})
    assert "--set fabric.switch.radix  leaf0: 4 links" in text


def test_pauses_that_can_expire_are_among_the_facts_of_the_run(file: Path) -> None:
    file.write_text(SCENARIO.format(more="  switch: {pause_quanta: 20}"), encoding="utf-8")
    assert "137 or more are safe" in prepare(read_scenario(file)).notes["plain.pause_quanta"].text


def test_notes_of_the_run_stand_beside_its_fabric_which_knows_its_devices_alone(file: Path) -> None:
    file.write_text(SCENARIO.format(more="  switch: {model: tomahawk-3, pause_quanta: 20}"), encoding="utf-8")
    prepared = prepare(read_scenario(file))
    own = fabric_of_scenario(file).caveats
    assert own
    assert prepared.fabric.caveats == own
    assert own.items() <= prepared.notes.items()
    assert list(prepared.notes)[-1] == "tomahawk-3.pause_quanta"
    again = prepare(prepared.scenario, fabric=prepared.fabric)
    assert again.notes == prepared.notes


def test_a_job_of_too_many_messages_is_refused_before_it_runs(tmp_path: Path) -> None:
    file = tmp_path / "many.yaml"
    file.write_text(
        "{schema: 3, fabric: {topology: rail-optimized, node: dgx-h100, switch: tomahawk-5, gpus: 4096},"
        " collective: {algorithm: ring, size: 1GiB}}"
    )
    text = r"collective\.gpus +the run needs about [0-9.,]+ [GT]iB of memory, wanted at most .* job [0-9.,]+ [GT]iB"
    with pytest.raises(ConfigError, match=text):
        prepare(read_scenario(file))

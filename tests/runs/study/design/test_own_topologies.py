"""A topology of a user's own takes part in a design by its file alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.own_topology import DESIGN, DESIGN_FIELD, write_circle

from weftwork.base.errors import CodeError, ConfigError
from weftwork.hardware.prices import price_book
from weftwork.study.design.built import FabricAsked, build
from weftwork.study.design.candidates import candidates, choices_of, searched_topologies
from weftwork.study.design.own_topologies import own_topologies, with_whole_paths
from weftwork.study.design.question import DesignQuestion

BOOK = price_book(None)
JOB = """schema: 3
fabric: {topology: ./circle.py, node: dgx-h100, gpus: 64}
collective: {operation: all-reduce, size: 1MB}
"""
FABRIC = {"topology": "./circle.py", "node": "dgx-h100", "gpus": 64}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job on a circle of switches."""
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "job.yaml"
    made.write_text(JOB, encoding="utf-8")
    write_circle(tmp_path, functions=DESIGN, fields=DESIGN_FIELD)
    return made


def test_the_topology_of_the_scenario_is_searched_behind_those_of_the_catalogue(file: Path) -> None:
    own = own_topologies(DesignQuestion(file=file), FABRIC)
    assert own.note == ""
    assert [Path(name).name for name in own.files] == ["circle.py"]
    choices = choices_of("dgx-h100", BOOK, {}, own.files)
    assert choices.topologies == (*searched_topologies(), *own.files)
    found = list(candidates("dgx-h100", 64, choices, BOOK, {}, {}))
    circles = [one for one in found if one.fabric["topology"] == own.files[0]]
    assert circles == found[-len(circles) :]
    first = circles[0]
    assert first.words.startswith("circle.py, ")
    assert (first.fabric["switches"], first.fabric["routing"]) == (8, "minimal")
    built = build(FabricAsked(candidate=first, file=file, settings={}, book=BOOK))
    assert (built.reason, built.family, built.switches) == ("", "circle", (8,))
    assert built.price_usd.typical > 0


def test_a_topology_that_does_not_say_what_may_vary_names_the_field(file: Path, tmp_path: Path) -> None:
    write_circle(tmp_path)
    own = own_topologies(DesignQuestion(file=file), FABRIC)
    assert own.files == ()
    assert own.note == (
        "'circle.py' does not say what a design may vary of it; give its Topology(...) design=DesignSpace(...)"
    )
    with pytest.raises(ConfigError, match="design=DesignSpace"):
        choices_of("dgx-h100", BOOK, {"topology": [str(tmp_path / "circle.py")]})


def test_only_names_files_by_their_path_from_here(file: Path, tmp_path: Path) -> None:
    asked = DesignQuestion(file=file, only={"topology": ["rail-only", "./circle.py"]})
    question = with_whole_paths(asked)
    assert question.only == {"topology": ["rail-only", str(tmp_path / "circle.py")]}
    own = own_topologies(question, FABRIC)
    assert (own.files, list(own.digests)) == ((), [str(tmp_path / "circle.py")])
    with pytest.raises(ConfigError, match="there is no such file"):
        with_whole_paths(DesignQuestion(file=file, only={"topology": ["./square.py"]}))


def test_user_code_that_must_not_run_is_refused_or_left_out(file: Path) -> None:
    with pytest.raises(ConfigError, match="--no-user-code refuses"):
        with_whole_paths(DesignQuestion(file=file, only={"topology": ["./circle.py"]}, user_code=False))
    own = own_topologies(DesignQuestion(file=file, user_code=False), FABRIC)
    assert own.files == ()
    assert own.note.endswith("which --no-user-code refuses")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("design=7,", "design is 7, wanted a DesignSpace"),
        ("design=DesignSpace(shape=7),", "shape is 7, wanted a function of a ServersAndSwitch"),
        ("design=DesignSpace(ratio_tiers='leaf'),", "ratio_tiers is 'leaf'"),
        ("design=DesignSpace(planes=(2, 1)),", "planes is"),
        ("limits=7,", "limits is 7, wanted a function of a MeasuredNetwork"),
    ],
)
def test_a_wrong_field_is_blamed_on_the_file(file: Path, tmp_path: Path, fields: str, text: str) -> None:
    write_circle(tmp_path, fields=fields)
    with pytest.raises(CodeError, match=text) as caught:
        own_topologies(DesignQuestion(file=file), FABRIC)
    assert "circle.py" in str(caught.value)

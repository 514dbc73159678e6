"""The collector of mistakes and notes: places, stages and sections."""

from __future__ import annotations

import pytest

from weftwork.base.caveat import Caveat
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.findings import Findings


def told(findings: Findings) -> list[tuple[str, str]]:
    return [(mistake.path, mistake.text) for mistake in findings.mistakes]


def test_mistakes_stand_in_the_order_of_their_places_and_not_of_their_checks() -> None:
    findings = Findings(source="a.yaml")
    first, second = findings.reserved(), findings.reserved()
    findings.wrong("fabric", "last")
    second.wrong("faults.0", "middle")
    first.wrong("jobs.0", "first")
    assert told(findings) == [("jobs.0", "first"), ("faults.0", "middle"), ("fabric", "last")]
    assert (told(first), told(second)) == ([("jobs.0", "first")], [("faults.0", "middle")])


def test_a_reserved_place_knows_its_own_mistakes_alone() -> None:
    findings = Findings()
    place = findings.reserved("fabric.pinned.3")
    findings.wrong("fabric.paths", "is wrong")
    assert (place.has_mistakes, findings.has_mistakes) == (False, True)
    place.wrong("from", "is nobody")
    place.wrong("", "is no path")
    place.reserved("path").wrong("0", "is no switch")
    assert told(place) == [
        ("fabric.pinned.3.from", "is nobody"),
        ("fabric.pinned.3", "is no path"),
        ("fabric.pinned.3.path.0", "is no switch"),
    ]
    assert place.is_sound("to", "path")
    assert not place.is_sound("to", "from")


def test_a_section_of_a_file_gives_its_line_and_goes_to_the_same_place() -> None:
    findings = Findings(source="fabric.json")
    node, link = findings.at("nodes.a", 3), findings.at("links.b", 7)
    link.wrong("rate", "is wrong")
    node.wrong("kind", "is wrong")
    findings.at("nodes.c").wrong("", "has no id", line=9)
    assert [(mistake.path, mistake.line) for mistake in findings.mistakes] == [
        ("links.b.rate", 7),
        ("nodes.a.kind", 3),
        ("nodes.c", 9),
    ]


def test_a_stage_stops_at_its_end_with_all_mistakes() -> None:
    findings = Findings(source="a.yaml")
    with findings.stage("reading"):
        pass

    def check() -> None:
        with findings.stage("parts"):
            findings.wrong("fabric", "is wrong", "right", line=3)
            findings.wrong("faults", "are wrong")

    with pytest.raises(ConfigError) as caught:
        check()
    assert (caught.value.source, caught.value.stage) == ("a.yaml", "parts")
    assert caught.value.mistakes == (
        Mistake(path="fabric", text="is wrong", fix="right", line=3),
        Mistake(path="faults", text="are wrong"),
    )


def test_an_error_in_a_stage_is_told_alone() -> None:
    findings = Findings(source="a.yaml")

    def check() -> None:
        with findings.stage("parts"):
            findings.wrong("fabric", "is wrong")
            raise ConfigError("b.csv", [Mistake(path="row", text="is wrong")])

    with pytest.raises(ConfigError, match=r"b\.csv: 1 mistake"):
        check()


def test_the_last_note_of_a_subject_holds_at_the_place_of_the_first() -> None:
    findings = Findings()
    findings.note("fabric.routing", "note", "bends")
    findings.reserved("jobs.0").note("recipe", "assumed", "is open")
    findings.note_each([Caveat(subject="fabric.routing", kind="note", text="bends twice")])
    assert [(note.subject, note.text) for note in findings.notes.values()] == [
        ("fabric.routing", "bends twice"),
        ("recipe", "is open"),
    ]


def test_another_collector_is_joined_whole() -> None:
    kept = Findings(source="kept")
    kept.wrong("jobs.1", "is too long")
    kept.note("recipe", "assumed", "is open")
    findings = Findings(source="a.yaml")
    findings.wrong("jobs.0", "is too long")
    findings.join(kept)
    assert [mistake.path for mistake in findings.mistakes] == ["jobs.0", "jobs.1"]
    assert list(findings.notes) == ["recipe"]

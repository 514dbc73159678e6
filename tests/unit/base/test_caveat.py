"""Caveats survive a file, and what is no caveat is refused with its place."""

import pytest

from weftwork.base.caveat import CAVEAT_KINDS, Caveat, CaveatKind, caveats_by_subject, caveats_of, caveats_to_json
from weftwork.base.errors import ConfigError

KINDS: tuple[CaveatKind, ...] = ("mismatch", "assumed", "unverified", "chosen", "approximate", "ignored", "note")


def test_caveats_survive_a_file() -> None:
    assert KINDS == CAVEAT_KINDS
    found = caveats_by_subject(Caveat(subject=f"figure.{kind}", kind=kind, text="as chosen") for kind in KINDS)
    assert caveats_of({"caveats": caveats_to_json(found)}, "file") == found
    assert caveats_of({}, "file") == {}


def test_all_that_is_no_caveat_is_told() -> None:
    records = [{"subject": "a", "kind": "choosen", "text": ""}, {"subject": "a", "text": ""}, "word"]
    with pytest.raises(ConfigError) as refused:
        caveats_of({"caveats": records}, "file")
    told = refused.value.mistakes
    assert [mistake.path for mistake in told] == ["caveats.0.kind", "caveats.1", "caveats.2"]
    assert told[0].fix == "chosen"
    with pytest.raises(ConfigError, match="wanted a list of records"):
        caveats_of({"caveats": {"a": "b"}}, "file")

"""The folder is the catalogue: a file that is put into it is known everywhere, with no other edit."""

from __future__ import annotations

import pytest

from weftwork.spec.scenario.choices import PATTERNS, TOPOLOGIES, TRANSPORTS
from weftwork.spec.scenario.schema import json_schema


@pytest.mark.parametrize("section", ["fabric", "transport", "collective", "traffic"])
def test_the_schema_lets_the_keys_of_a_users_file_pass_and_no_others(section: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    chooser = {"fabric": "topology", "transport": "protocol", "collective": "algorithm", "traffic": "pattern"}[section]
    validator = jsonschema.Draft202012Validator(json_schema()["properties"][section])
    assert validator.is_valid({chooser: "./mine.py", "whatever": 3})
    name = {"fabric": "fat-tree", "transport": "rocev2", "collective": "ring", "traffic": "incast"}[section]
    assert not validator.is_valid({chooser: name, "whatever": 3})
    assert validator.is_valid({chooser: name})


def test_a_name_and_a_path_are_told_apart() -> None:
    assert TRANSPORTS.load("rocev2") is TRANSPORTS["rocev2"]
    assert TOPOLOGIES.load(str(TOPOLOGIES.paths["fat-tree"])) is not TOPOLOGIES["fat-tree"]
    assert PATTERNS.text("incast").startswith("Incast: many hosts")

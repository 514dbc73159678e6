"""Scripts of the peer: mistakes with their lines, the schema for editors, the words of the workload."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from weftwork.base.errors import ConfigError
from weftwork.rdma.peer.reading import find_script, peer_schema, read_script, scenario_names


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_script(tmp_path / "none.yaml")


def test_a_file_of_other_bytes(tmp_path: Path) -> None:
    file = tmp_path / "bytes.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="looks like text in UTF-16"):
        read_script(file)


def test_the_schema_takes_every_shipped_script_and_refuses_a_wrong_one() -> None:
    schema = peer_schema()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    for name in scenario_names():
        document = yaml.safe_load(find_script(name).read_text(encoding="utf-8"))
        assert list(validator.iter_errors(document)) == [], name
    assert list(validator.iter_errors({"schema": 1, "name": "n", "shows": "s", "source": "x", "rule": []}))

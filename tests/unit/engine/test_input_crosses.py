"""What the lowering makes reaches the core: no field of the input and no key of it is left behind on either side."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from weftwork.engine import packet
from weftwork.engine.packet_input import PacketInput, RouteTable

NATIVE = Path(__file__).parents[3] / "native"
SOURCE = Path(packet.__file__).read_text(encoding="utf-8")
# Functions of `weftwork.engine.packet` that fill the dictionaries for the core; test_records.py has the transport's.
MAKERS = ("_raw_input", "_packet_parts", "_raw_step", "_raw_congestion", "_raw_path", "_raw_port")


def keys_of(function: ast.FunctionDef) -> set[str]:
    """Names under which a function hands over: keys of dictionaries, subscripts, and tuples of names."""
    nodes: list[ast.expr | None] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Dict):
            nodes += node.keys
        elif isinstance(node, ast.Assign):
            nodes += [target.slice for target in node.targets if isinstance(target, ast.Subscript)]
            nodes += node.value.elts if isinstance(node.value, ast.Tuple) else []
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


KEYS = {
    node.name: sorted(keys_of(node))
    for node in ast.parse(SOURCE).body
    if isinstance(node, ast.FunctionDef) and node.name in MAKERS
}


@pytest.mark.parametrize("record", [PacketInput, RouteTable])
def test_every_field_of_the_input_is_handed_over(record: type) -> None:
    names = [field.name for field in fields(record)]
    assert names
    used = r'"{0}"|\b(?:engine_input|table)\.{0}\b'
    assert [name for name in names if re.search(used.format(name), SOURCE) is None] == []


def test_the_core_reads_every_key_that_it_is_handed() -> None:
    files = [path for pattern in ("*.cpp", "*.hpp") for path in NATIVE.glob(pattern)]
    core = "".join(path.read_text(encoding="utf-8") for path in files)
    assert set(KEYS) == set(MAKERS)
    assert len(KEYS["_raw_input"]) > len(fields(PacketInput)) - len(fields(RouteTable))
    unread = {name: [key for key in keys if f'"{key}"' not in core] for name, keys in KEYS.items()}
    assert {name: keys for name, keys in unread.items() if keys} == {}

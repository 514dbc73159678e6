"""What crosses between Python and the core has the same fields at the same places on both sides."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from weftwork.engine import _native, outcome, packet, packet_input, waits
from weftwork.engine.columns import column
from weftwork.engine.flow import outcome as flow_outcome
from weftwork.engine.flow import paths as flow_paths
from weftwork.engine.flow import run as flow_run
from weftwork.engine.flow.route_rule import route_rule
from weftwork.policies import interface
from weftwork.spec.routing import SHORTEST
from weftwork.spec.transport import Transport

MODULES: tuple[ModuleType, ...] = (packet_input, outcome, waits, flow_outcome, flow_paths, flow_run, interface)
IN_PYTHON_ALONE = {"TIER_DTYPE"}  # made from TIER_BYTES_DTYPE
BY_NAME = {  # records that cross as dictionaries: their keys
    "TransportRow": set(packet._raw_transport(Transport())),
    "flow::WireSizes": set(flow_run._raw_wire(Transport())),
}
Record = tuple[str, str, int, list[tuple[str, int, str, int, int]]]
RECORDS: list[Record] = _native.records()


def dtype_of(described: object) -> np.dtype[Any]:
    if isinstance(described, np.dtype):
        return described
    assert isinstance(described, tuple)
    return np.dtype([(each, np.int64) if isinstance(each, str) else each for each in described])


def described_in(module: ModuleType) -> dict[str, object]:
    """The dtypes, prefixes and counters that a module itself defines."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    return {
        name: getattr(module, name)
        for name in re.findall(r"^([A-Z_]+(?:_DTYPE|_PREFIX)|COUNTERS): Final", source, re.MULTILINE)
    }


IN_PYTHON = {name: found for module in MODULES for name, found in described_in(module).items()}


@pytest.mark.parametrize("record", [each for each in RECORDS if each[1]], ids=lambda each: each[0])
def test_a_record_has_the_fields_of_its_dtype(record: Record) -> None:
    _, name, size, fields = record
    dtype = dtype_of(IN_PYTHON[name])
    assert dtype.itemsize == size
    assert fields == [
        (field, dtype.fields[field][1], each.base.kind, each.base.itemsize, int(np.prod(each.shape)))
        for field in dtype.names or ()
        if dtype.fields is not None
        for each in [dtype[field]]
    ]


def test_every_dtype_of_the_engines_crosses_and_every_record_has_one() -> None:
    assert {name for _, name, _, _ in RECORDS if name} == set(IN_PYTHON) - IN_PYTHON_ALONE
    assert {struct for struct, name, _, _ in RECORDS if not name} == set(BY_NAME)


@pytest.mark.parametrize("record", [each for each in RECORDS if not each[1]], ids=lambda each: each[0])
def test_a_record_that_crosses_by_name_has_the_keys_of_its_dictionary(record: tuple[Any, ...]) -> None:
    assert {field for field, *_ in record[3]} == BY_NAME[record[0]]


def test_two_fields_that_change_places_would_be_noticed() -> None:
    fields = next(fields for struct, _, _, fields in RECORDS if struct == "OpRow")
    swapped = [*fields[:3], (fields[4][0], *fields[3][1:]), (fields[3][0], *fields[4][1:]), *fields[5:]]
    with pytest.raises(AssertionError):
        test_a_record_has_the_fields_of_its_dtype(("OpRow", "OP_DTYPE", packet_input.OP_DTYPE.itemsize, swapped))


def test_a_column_of_another_type_is_refused() -> None:
    arrays = {name: column(values) for name, values in flow_paths.fabric_arrays(_fabric()).items()}
    layers = flow_paths.raw_layers([], flow_paths.node_attachments(_fabric()), spreads_ways=False)
    arrays["node_attachment"] = layers.pop("node_attachment")
    rule = route_rule(_fabric(), SHORTEST).raw()
    arrays |= {name: rule.pop(name) for name in list(rule) if isinstance(rule[name], np.ndarray)}
    layers |= rule
    arrays |= layers
    _native.FlowRouter(arrays, 0, 1_000)
    for name, values in arrays.items():
        if name == "switches" or name in layers:
            continue
        wrong = values.astype(np.float32) if values.dtype != np.float32 else values.astype(np.int16)
        with pytest.raises(TypeError, match=f"'{name}' has another type or shape"):
            _native.FlowRouter(arrays | {name: wrong}, 0, 1_000)
    with pytest.raises(ValueError, match="rows of another size"):
        _native.FlowRouter(arrays | {"switches": arrays["switches"][:-1]}, 0, 1_000)


def _fabric() -> Any:
    from weftwork.topology.build import fabric_of

    return fabric_of(topology="leaf-spine", leaves=2, spines=1, hosts_per_leaf=1)

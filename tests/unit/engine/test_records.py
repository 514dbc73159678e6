"""What crosses between Python and the core is declared once: the committed headers and the built core agree with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from weftwork.base.errors import EngineError
from weftwork.engine import _native
from weftwork.engine.flow import paths as flow_paths
from weftwork.engine.flow.flow_input import Mode
from weftwork.engine.flow.route_rule import route_rule
from weftwork.engine.rows.declare import (
    Enum,
    Header,
    Input,
    RowType,
    column,
    flag,
    identity,
    members_of,
    real,
    record_bytes,
    setting,
    whole,
)
from weftwork.engine.rows.flow_run import FLOW_FABRIC, FLOW_ROUTER, ROUTE_RULE
from weftwork.engine.rows.headers import HEADERS, INPUTS, RECORDS, files
from weftwork.spec.routing import SHORTEST

FOLDER = Path(__file__).parents[3] / "native" / "rows"
OF_CORE = _native.records()
PLAIN = RowType(
    struct="Plain",
    text="A row.",
    fields=(whole("size_bytes", "of it"), real("share", "of it", size=2)),
    starts_empty=True,
)


def described(record: RowType) -> dict[str, Any]:
    """A declaration as the core describes the struct that it was built with."""
    dtype = record.dtype
    places: Any = dtype.fields or {}
    fields = [
        {
            "name": name,
            "offset": places[name][1],
            "kind": each.base.kind,
            "bytes": each.base.itemsize,
            "count": int(np.prod(each.shape)),
        }
        for name in record.names
        for each in [dtype[name]]
    ]
    return {"bytes": dtype.itemsize, "fields": fields}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.full_name)
def test_the_core_lays_a_record_out_as_it_is_declared(record: RowType) -> None:
    assert OF_CORE[record.full_name] == described(record)


def test_the_core_has_the_declared_records_and_no_others() -> None:
    assert list(OF_CORE) == [record.full_name for record in RECORDS]


@pytest.mark.parametrize("name", sorted(files()))
def test_a_committed_header_is_what_its_declarations_give(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == files()[name], "run python -m weftwork.engine.rows"


def test_there_are_no_headers_without_declarations() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(files())


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: header.name)
def test_every_declaration_has_its_text(header: Header) -> None:
    assert header.text.endswith(".")
    for part in header.parts:
        assert part.text.endswith("."), part
        fields: tuple[Any, ...] = ()
        if not isinstance(part, Enum):
            fields = part.fields if isinstance(part, RowType) else part.members
        assert [field.name for field in fields if not field.text or field.text.endswith(".")] == [], part


def test_two_fields_that_change_places_would_be_noticed() -> None:
    record = next(record for record in RECORDS if record.struct == "OpRow")
    first, second, *others = record.fields
    swapped = RowType(struct=record.struct, text=record.text, fields=(second, first, *others))
    assert OF_CORE["OpRow"] != described(swapped)


def test_a_record_becomes_a_struct_and_a_dtype() -> None:
    assert PLAIN.dtype == np.dtype([("size_bytes", np.int64), ("share", np.float64, (2,))])
    header = Header(name="plain", text="Plain rows.", parts=(PLAIN,))
    text = files((header,))["plain.hpp"]
    assert "struct Plain {\n  /// of it [byte]\n  std::int64_t size_bytes = 0;\n" in text
    assert "  double share[2] = {};\n};" in text


def test_fields_of_several_sizes_lie_as_a_compiler_puts_them() -> None:
    mixed = RowType(
        struct="Mixed", text="A row.", fields=(identity("link", "LinkId", "of it"), real("weight", "of it"))
    )
    assert described(mixed) == {
        "bytes": 16,
        "fields": [
            {"name": "link", "offset": 0, "kind": "i", "bytes": 4, "count": 1},
            {"name": "weight", "offset": 8, "kind": "f", "bytes": 8, "count": 1},
        ],
    }
    flags = RowType(struct="Flags", text="A row.", fields=(flag("up", "of it"), whole("place", "of it")))
    assert flags.dtype.itemsize == 16


def test_words_become_the_members_of_an_enumeration() -> None:
    kinds = Enum.of_words(("pause", "go back"), name="EventKind", text="Kinds.", stored="uint8")
    text = files((Header(name="kinds", text="Kinds.", parts=(kinds,)),))["kinds.hpp"]
    assert "enum class EventKind : std::uint8_t {\n  kPause = 0,\n  kGoBack = 1,\n};" in text


def test_a_name_tells_its_unit() -> None:
    names = ("at_ps", "rate_bps", "size_bytes", "kept_packets", "rank")
    assert [whole(name, "of it").unit for name in names] == ["ps", "bit/s", "byte", "packet", ""]


@pytest.mark.parametrize("part", INPUTS, ids=lambda part: part.full_name)
def test_the_core_reads_the_members_of_an_input_by_their_names(part: Input) -> None:
    assert _native.inputs()[part.full_name] == list(part.names)


def test_the_core_has_the_declared_inputs_and_no_others() -> None:
    assert list(_native.inputs()) == [part.full_name for part in INPUTS]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Members of an input, and a field that stays in Python."""

    seed: int = field(metadata=setting("of the run", "uint64"))
    is_wide: bool = field(default=False, metadata=setting("packets are", "bool"))
    port_loss: NDArray[np.float64] = field(metadata=column("(P,), probability", by="PortId"))
    peers: NDArray[np.int32] = field(metadata=column("of ranks", holds="RankId", part="job"))
    name: str = "plain"


ASKED = Input(struct="AskedRows", text="An input.", members=(*members_of(Asked), whole("ports", "how many")))


def test_fields_of_a_dataclass_are_the_members_of_an_input() -> None:
    assert ASKED.names == ("seed", "is_wide", "port_loss", "ports")
    assert [member.name for member in members_of(Asked, "job")] == ["peers"]
    text = files((Header(name="asked", text="Asked.", parts=(ASKED,)),))["asked.hpp"]
    assert "  std::uint64_t seed = 0;\n" in text
    assert "  bool is_wide = false;\n" in text
    assert "  /// (P,), probability\n  IdSpan<PortId, const double> port_loss;\n" in text


def test_an_input_crosses_as_a_dictionary_by_name() -> None:
    asked = Asked(seed=np.int64(7), port_loss=np.zeros((2, 1)), peers=np.zeros(1, np.int32))
    values = ASKED.values(asked, {"ports": 2.0})
    assert {name: type(value) for name, value in values.items()} == {
        "seed": int, "is_wide": bool, "port_loss": np.ndarray, "ports": int
    }  # fmt: skip
    assert np.shape(values["port_loss"]) == (2,)


def test_a_member_without_a_value_and_a_value_without_a_member_are_errors() -> None:
    asked = Asked(seed=7, port_loss=np.zeros(2), peers=np.zeros(1, np.int32))
    with pytest.raises(AttributeError, match="ports"):
        ASKED.values(asked)
    with pytest.raises(EngineError, match="AskedRows has no lanes"):
        ASKED.values(asked, {"ports": 2, "lanes": 1})


def test_bytes_of_a_record_know_with_which_record_they_begin() -> None:
    members = (record_bytes("state", "of it", begins=PLAIN), record_bytes("params", "of it"))
    text = files(
        (Header(name="owned", text="Owned.", parts=(Input(struct="OwnedRows", text="An input.", members=members),)),)
    )
    assert "  /// of it\n  RecordBytes<Plain> state;\n  /// of it\n  RecordBytes<> params;\n" in text["owned.hpp"]


def test_a_column_that_is_no_array_is_an_error() -> None:
    @dataclass
    class Wrong:
        peers: list[int] = field(metadata=column("of ranks"))

    with pytest.raises(EngineError, match="wanted NDArray"):
        members_of(Wrong)


def test_a_column_of_another_type_is_refused() -> None:
    fabric = _fabric()
    arrays = FLOW_FABRIC.values(None, flow_paths.fabric_arrays(fabric))
    arrays |= flow_paths.raw_layers([], flow_paths.node_attachments(fabric), spreads_ways=False)
    arrays |= ROUTE_RULE.values(route_rule(fabric, SHORTEST))
    arrays |= FLOW_ROUTER.values(None, {"mode": Mode.SPRAY, "most_steps": 1_000})
    _native.FlowRouter(arrays)
    columns = {name: values for name, values in arrays.items() if isinstance(values, np.ndarray)}
    assert len(columns) > len(FLOW_FABRIC.members)
    for name, values in columns.items():
        if name == "switches":
            continue
        wrong = values.astype(np.float32) if values.dtype != np.float32 else values.astype(np.int16)
        with pytest.raises(TypeError, match=f"'{name}' has another type or shape"):
            _native.FlowRouter(arrays | {name: wrong})
    with pytest.raises(ValueError, match="rows of another size"):
        _native.FlowRouter(arrays | {"switches": columns["switches"][:-1]})


def _fabric() -> Any:
    from weftwork.topology.build import fabric_of

    return fabric_of(topology="leaf-spine", leaves=2, spines=1, hosts_per_leaf=1)

"""What the files of the core include: what is below them, as pyproject.toml has it of Python, and what they use."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest
from helpers.native_headers import (
    declared_names,
    includes_of,
    missing_includes,
    reached_headers,
    standard_headers,
)

NATIVE = Path(__file__).parents[2] / "native"
FLOORS: Final = {  # folder: those whose headers its files may include
    "base": {"base", "rows"},
    "rows": {"base", "rows"},
    "paths": {"base", "rows", "paths"},
    "packet": {"base", "rows", "paths", "packet"},
    "flow": {"base", "rows", "paths", "flow"},
}
IDS: Final = {"packet/ids.hpp", "flow/ids.hpp"}  # what the columns of rows are typed with
TEXTS: Final = {
    path.relative_to(NATIVE).as_posix(): path.read_text(encoding="utf-8")
    for pattern in ("*/*.[ch]pp", "*.[ch]pp")
    for path in sorted(NATIVE.glob(pattern))
}
INCLUDES: Final = {  # those of the core
    file: {name for name in includes_of(text) if name.partition("/")[0] in FLOORS}
    for file, text in TEXTS.items()
    if "/" in file
}


def refused_includes(file: str, includes: Iterable[str]) -> list[str]:
    """Headers that a file of a folder of the core includes and may not."""
    folder = file.partition("/")[0]
    return [
        name
        for name in includes
        if name.partition("/")[0] not in FLOORS[folder] and not (folder == "rows" and name in IDS)
    ]


def reached(file: str) -> set[str]:
    """Headers that a file includes, over any number of others."""
    seen: set[str] = set()
    rest = [file]
    while rest:
        new = INCLUDES.get(rest.pop(), set()) - seen
        seen |= new
        rest += new
    return seen


def test_each_folder_has_a_floor() -> None:
    assert {file.partition("/")[0] for file in INCLUDES} == set(FLOORS)


@pytest.mark.parametrize("folder", FLOORS)
def test_a_folder_includes_what_is_below_it(folder: str) -> None:
    refused = {
        file: names
        for file, includes in INCLUDES.items()
        if file.startswith(f"{folder}/") and (names := refused_includes(file, includes))
    }
    assert refused == {}


@pytest.mark.parametrize(
    ("folder", "engines"),
    [("flow", ("packet/",)), ("packet", ("flow/",)), ("paths", ("packet/", "flow/")), ("base", ("packet/", "flow/"))],
)
def test_no_folder_reaches_an_engine_but_its_own(folder: str, engines: tuple[str, ...]) -> None:
    ways = {
        file: names
        for file in INCLUDES
        if file.startswith(f"{folder}/") and (names := [name for name in reached(file) if name.startswith(engines)])
    }
    assert ways == {}


def test_both_engines_share_paths() -> None:
    for engine in ("flow", "packet"):
        names = {name for file in INCLUDES if file.startswith(f"{engine}/") for name in INCLUDES[file]}
        assert {"paths/detours.hpp", "paths/hash_function.hpp", "paths/way_table.hpp"} <= names


@pytest.mark.parametrize(
    ("file", "name", "refused"),
    [
        ("flow/rule.hpp", "packet/detours.hpp", ["packet/detours.hpp"]),
        ("packet/switch.hpp", "flow/router.hpp", ["flow/router.hpp"]),
        ("paths/digest.hpp", "packet/ids.hpp", ["packet/ids.hpp"]),
        ("base/pins.hpp", "paths/digest.hpp", ["paths/digest.hpp"]),
        ("rows/flow_run.hpp", "flow/ids.hpp", []),
        ("rows/flow_run.hpp", "flow/router.hpp", ["flow/router.hpp"]),
        ("flow/rule.hpp", "paths/detours.hpp", []),
    ],
)
def test_the_rule_knows_up_from_down(file: str, name: str, refused: list[str]) -> None:
    assert refused_includes(file, [name]) == refused


@pytest.mark.parametrize("file", [file for file in TEXTS if file.endswith(".hpp")])
def test_a_header_includes_what_it_uses(file: str) -> None:
    assert missing_includes(file, TEXTS) == {}


@pytest.mark.parametrize("file", [file for file in TEXTS if file.endswith(".cpp")])
def test_a_source_reaches_what_it_uses(file: str) -> None:
    """Also by itself: where sources are one unit for the compiler, a header that one includes serves them all."""
    unreached = set(missing_includes(file, TEXTS)) & set(TEXTS) - reached_headers(file, TEXTS)
    assert unreached == set()


def test_a_name_of_std_asks_for_its_header() -> None:
    text = "#include <vector>\nstd::vector<std::int32_t> a;  // std::string\nauto b = std::ranges::max_element(a);\n"
    assert standard_headers(text) == {
        "vector": "std::vector",
        "cstdint": "std::int32_t",
        "algorithm": "std::max_element",
    }


def test_what_a_header_declares() -> None:
    text = """namespace weftwork {
struct alignas(64) Port {
  int inner(int) { return 0; }
};
enum class Kind : int { kFirst };
using PortId = Id<struct PortKind>;
inline constexpr std::int64_t kMost = 5;
[[nodiscard]] inline Port& port_of(State& s,
                                   PortId id) {
  return s.ports[id];
}
}
"""
    assert set(declared_names(text)) == {"Port", "Kind", "PortId", "kMost", "port_of"}


def test_a_type_and_a_function_ask_for_the_header_that_declares_them() -> None:
    texts = {
        "base/ids.hpp": "struct PortId {};\ninline constexpr int kNone = -1;\n",
        "packet/line.hpp": '#include "base/ids.hpp"\ninline int rate_of(PortId port) { return kNone; }\n',
        "packet/use.hpp": '#include "packet/line.hpp"\ninline int twice(PortId port) { return 2 * rate_of(port); }\n',
        "packet/member.hpp": '#include "packet/line.hpp"\nint of(Row row) { return row.rate_of(Kind::kNone); }\n',
    }
    assert missing_includes("packet/line.hpp", texts) == {}
    assert missing_includes("packet/use.hpp", texts) == {"base/ids.hpp": "PortId"}
    assert missing_includes("packet/member.hpp", texts) == {}

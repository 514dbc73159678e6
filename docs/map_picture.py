"""The picture of docs/dev/map.md: the road of a value from the scenario to the page.

    python docs/map_picture.py

Writes ``dev/map.svg`` beside this file. A station names its package, the file to look in, and the text there that has
the value; tests/unit/test_dev_pages.py looks for these texts. Narrow, so that a phone shows it without scrolling.
Leaves out: what else the records hold, and the roads of other workloads, which are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

WIDTH: Final = 400  # chosen: about a phone, so that letters keep their size there
MARGIN: Final = 14
LINE: Final = 18
PAD: Final = 10
GAP: Final = 40  # between stations, for the arrow and the record that it carries
TOP: Final = 66
FONT: Final = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
MONO: Final = "ui-monospace, 'SFMono-Regular', Menlo, Consolas, monospace"
STYLE: Final = (
    ".paper{fill:#FCFCFA;stroke:#DCDCD8}.box{fill:#FFFFFF;stroke:#B9B9B4}.core{fill:#EAF3F5;stroke:#0B5A6B}"
    ".ink{fill:#1B1B1F}.quiet{fill:#55555C}.value{fill:#A34F00}.record{fill:#0B5A6B}"
    ".line{stroke:#0B5A6B;fill:none}.tip{fill:#0B5A6B}"
    "@media (prefers-color-scheme: dark){"
    ".paper{fill:#161B22;stroke:#2B333E}.box{fill:#1E252E;stroke:#4A5564}.core{fill:#12303A;stroke:#6CC7D8}"
    ".ink{fill:#E7EBF0}.quiet{fill:#A7B2BF}.value{fill:#F2A33A}.record{fill:#6CC7D8}"
    ".line{stroke:#6CC7D8;fill:none}.tip{fill:#6CC7D8}}"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A line of a station.

    Parameters
    ----------
    file : of the repository; empty: the line is a value alone
    text : in that file, where the value is named
    value : as it stands there, in words or code
    """

    file: str = ""
    text: str = ""
    value: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Station:
    """A box of the picture.

    Parameters
    ----------
    package : its name
    does : in a few words
    places : where the value is
    hands_over : the record that goes on to the next station
    is_core : whether it is C++
    """

    package: str
    does: str
    places: tuple[Place, ...]
    hands_over: str
    is_core: bool = False


ROAD: Final = (
    Station(
        package="scenario.yaml",
        does="a file of the user",
        places=(Place(value="fabric: {switch: {ecn: {kmin: 5KB}}}"),),
        hands_over="text",
    ),
    Station(
        package="spec",
        does="declares the key, and reads it",
        places=(
            Place(
                file="src/weftwork/spec/device.py",
                text="kmin_bytes: int | None",
                value="field, bounds, sentence, source",
            ),
            Place(file="src/weftwork/spec/scenario/devices.py", text="def device_rows", value="key of the user"),
            Place(file="src/weftwork/spec/scenario/reader.py", text="def _device", value="5KB becomes 5_000"),
        ),
        hands_over="Scenario",
    ),
    Station(
        package="study.prepare",
        does="builds all parts of a run",
        places=(
            Place(file="src/weftwork/study/prepare/prepare.py", text="def prepare", value="the one way in"),
            Place(
                file="src/weftwork/topology/build.py", text="def fabric_of_section", value="Switch.ecn of the Fabric"
            ),
            Place(
                file="src/weftwork/study/prepare/ignored_keys.py",
                text="row.effect.instead(",
                value="what flows say of it",
            ),
        ),
        hands_over="Fabric, Job, Transport, EngineSettings",
    ),
    Station(
        package="engine (lowering)",
        does="makes plain arrays",
        places=(
            Place(file="src/weftwork/engine/ecn.py", text="def thresholds_bytes", value="one threshold a port"),
            Place(
                file="src/weftwork/engine/packet_input.py", text="port_kmin_bytes", value="port_kmin_bytes: int64, (P,)"
            ),
        ),
        hands_over="Prepared, with its PacketInput",
    ),
    Station(
        package="study.run",
        does="execute chooses the engine",
        places=(
            Place(file="src/weftwork/study/run/execute.py", text="def execute", value="packet, reference or flow"),
            Place(file="src/weftwork/engine/packet.py", text="PACKET_INPUT.values", value="arrays by name"),
            Place(file="src/weftwork/engine/reference/switch.py", text="kmin_bytes", value="the same in Python"),
        ),
        hands_over="dict of arrays: from here on C++",
    ),
    Station(
        package="native",
        does="simulates",
        places=(
            Place(file="native/bindings.cpp", text="PacketInputRows", value="borrows the array"),
            Place(file="native/rows/packet_run.hpp", text="port_kmin_bytes", value="Input.port_kmin_bytes"),
            Place(file="native/packet/departures.hpp", text="kmin_bytes", value="marks a packet, or not"),
            Place(file="native/rows/outcome.hpp", text="struct PortCounters", value="PortCounters.marks"),
        ),
        hands_over="rows of records: back in Python",
        is_core=True,
    ),
    Station(
        package="engine (outcome)",
        does="views the rows by their dtype",
        places=(Place(file="src/weftwork/engine/rows/outcome.py", text="PORT_DTYPE", value='PORT_DTYPE "marks"'),),
        hands_over="Execution, with its Outcome",
    ),
    Station(
        package="study.results",
        does="makes tables and numbers",
        places=(
            Place(file="src/weftwork/spec/port_counts.py", text='"marks"', value="column and unit of links"),
            Place(file="src/weftwork/study/results/record.py", text='("marks", "marks"', value="number of the summary"),
        ),
        hands_over="Results",
    ),
    Station(
        package="store",
        does="writes and opens the run folder",
        places=(Place(file="src/weftwork/store/runs.py", text="def write_run", value="links.parquet, summary.json"),),
        hands_over="Run",
    ),
    Station(
        package="report",
        does="words and page",
        places=(
            Place(
                file="src/weftwork/report/answer.py", text="ECN marked", value="\u201cECN marked \u2026 packets\u201d"
            ),
            Place(file="src/weftwork/spec/numbers.py", text='"ECN marks"', value="tile \u201cECN marks\u201d"),
        ),
        hands_over="",
    ),
)


def drawing() -> str:
    """The picture as SVG."""
    parts: list[str] = []
    y = TOP
    for station in ROAD:
        y = _station(parts, station, y)
    height = y + MARGIN
    title = "The road of fabric.switch.ecn.kmin from the scenario to the page"
    says = " -> ".join(f"{each.package} ({each.does})" for each in ROAD)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="narrow" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" role="img" font-family="{escape(FONT)}">\n<title>{escape(title)}</title>\n'
        f"<desc>{escape(says)}</desc>\n<style>{STYLE}</style>\n"
        f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>\n'
    )
    words = [
        _text("The road of a value", MARGIN, 28, kind="ink", size=17, bold=True),
        _text("fabric.switch.ecn.kmin, from the scenario to the page", MARGIN, 49, kind="quiet", size=13),
    ]
    return head + "\n".join([*words, *parts]) + "\n</svg>\n"


def _station(parts: list[str], station: Station, top: int) -> int:
    """Draw a box and the arrow below it; returns where the next one begins."""
    lines = sum(1 + bool(place.file) for place in station.places)
    height = 2 * PAD + LINE * (1 + lines)
    kind = "core" if station.is_core else "box"
    parts.append(f'<rect class="{kind}" x="{MARGIN}" y="{top}" width="{WIDTH - 2 * MARGIN}" height="{height}" rx="6"/>')
    y = top + PAD + 13
    left = MARGIN + PAD
    name = f'<tspan class="ink" font-weight="600">{escape(station.package)}</tspan>'
    says = f'<tspan class="quiet" font-size="13" dx="8">{escape(station.does)}</tspan>'
    parts.append(f'<text x="{left}" y="{y}" font-size="15">{name}{says}</text>')
    for place in station.places:
        if place.file:
            y += LINE
            parts.append(_text(place.file, left, y, kind="quiet", size=12, mono=True))
        y += LINE
        parts.append(
            _text(place.value, left + (12 if place.file else 0), y, kind="value", size=13, mono=not place.file)
        )
    bottom = top + height
    if not station.hands_over:
        return bottom
    x = MARGIN + 22
    parts.append(f'<path class="line" stroke-width="2" d="M{x} {bottom + 3}V{bottom + GAP - 9}"/>')
    parts.append(f'<path class="tip" d="M{x - 6} {bottom + GAP - 11}h12l-6 9z"/>')
    parts.append(_text(station.hands_over, x + 16, bottom + GAP // 2 + 5, kind="record", size=14, bold=True))
    return bottom + GAP


def _text(words: str, x: int, y: int, *, kind: str, size: int, bold: bool = False, mono: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    family = f' font-family="{escape(MONO)}"' if mono else ""
    return f'<text class="{kind}" x="{x}" y="{y}" font-size="{size}"{weight}{family}>{escape(words)}</text>'


if __name__ == "__main__":
    (Path(__file__).parent / "dev" / "map.svg").write_text(drawing(), encoding="utf-8")

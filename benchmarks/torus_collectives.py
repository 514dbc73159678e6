"""An all-reduce on a torus by each algorithm that fits, from 32 B to 512 MiB, on flows, in one figure.

    python benchmarks/torus_collectives.py [--figure docs/models/collectives-torus.svg]

64 GPUs on a torus of 8x8 with four links of 100 Gb/s each, without latencies of software. Prints the bus bandwidth.
Leaves out: other shapes, which the closed forms compare in docs/models/collectives.md.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from html import escape
from pathlib import Path
from typing import Final

from weftwork.report.figures.cards import BLUE, CARD, DARK_STYLE, FONT, GREEN, GRID, INK, ORANGE, QUIET, VERMILION
from weftwork.study.prepare.prepare import prepare
from weftwork.study.record.collective import collective_scenario, measure_collective

__all__ = ["curves", "figure", "main"]

SIZES: Final = tuple(1 << power for power in range(5, 30, 2))  # 32 B to 512 MiB
SCENARIO: Final = {
    "schema": 3,
    "fabric": {"topology": "torus", "shape": [8, 8], "link_rate": "400Gbps", "fabric_rate": "100Gbps"},
    "transport": {"congestion_control": "fixed-window", "flow_control": "none"},
    "engine": {"fidelity": "flow"},
}
WAYS: Final = {
    "ring in rank order": ({"algorithm": "ring"}, QUIET),
    "halving-doubling": ({"algorithm": "halving-doubling"}, GREEN),
    "bucket": ({"algorithm": "bucket"}, BLUE),
    "swing": ({"algorithm": "swing"}, VERMILION),
    "swing, version latency": ({"algorithm": "swing", "version": "latency"}, ORANGE),
}
LOWEST, HIGHEST = 0.001, 100.0  # GB/s
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 780, 420, 62, 560, 84, 376
SIZE_TICKS: Final = ((1 << 5, "32 B"), (1 << 10, "1 KiB"), (1 << 15, "32 KiB"), (1 << 20, "1 MiB"), (1 << 25, "32 MiB"))


def curves() -> dict[str, list[tuple[int, float]]]:
    """Bus bandwidth in GB/s by size, of each algorithm."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "torus.yaml"
        file.write_text(json.dumps(SCENARIO), encoding="utf-8")
        for name, (keys, _) in WAYS.items():
            asked = {"operation": "all-reduce", "size": SIZES[-1], "protocol": "none", "chunks": 1, **keys}
            scenario = collective_scenario(asked, file=file)
            rows = measure_collective(scenario, prepare(scenario).fabric, SIZES)
            found[name] = [(row.size_bytes, (row.bus_bandwidth_bps or 0.0) / 8e9) for row in rows]
    return found


def figure(found: dict[str, list[tuple[int, float]]]) -> str:
    """The figure, as SVG text."""
    title = "All-reduce of 64 GPUs on a torus of 8x8"
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{escape(FONT)}">',
        f"<title>{title}: bus bandwidth by size, five algorithms</title>",
        DARK_STYLE,
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{CARD}" stroke="{GRID}"/>',
        _text(24, 36, title, size=17, weight=600),
        _text(24, 58, "bus bandwidth in GB/s, by size of the buffer; both axes are logarithmic", fill=QUIET),
    ]
    for power in range(-3, 3):
        parts.append(f'<path d="M{LEFT} {_y(10.0**power):.1f}H{RIGHT}" stroke="{GRID}" fill="none"/>')
        parts.append(_text(LEFT - 6, _y(10.0**power) + 4, f"{10.0**power:g}", fill=QUIET, anchor="end", size=11))
    for tick, word in SIZE_TICKS:
        parts.append(_text(_x(tick), BOTTOM + 18, word, fill=QUIET, anchor="middle", size=11))
    for place, (name, (_, colour)) in enumerate(WAYS.items()):
        points = [(_x(at), _y(value)) for at, value in found[name] if value >= LOWEST]
        path = " ".join(f"{'L' if index else 'M'}{x:.1f} {y:.1f}" for index, (x, y) in enumerate(points))
        parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="2.5" fill="none"/>')
        y = TOP + 24 + 24 * place
        parts.append(f'<path d="M{RIGHT + 16} {y}h24" stroke="{colour}" stroke-width="2.5" fill="none"/>')
        parts.append(_text(RIGHT + 48, y + 4, name))
    return "\n".join([*parts, "</svg>\n"])


def _x(size: float) -> float:
    return LEFT + (RIGHT - LEFT) * math.log(size / SIZES[0]) / math.log(SIZES[-1] / SIZES[0])


def _y(gbyte_per_s: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * math.log(gbyte_per_s / LOWEST) / math.log(HIGHEST / LOWEST)


def _text(
    x: float, y: float, text: str, *, size: int = 13, fill: str = INK, anchor: str = "start", weight: int = 400
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )


def main() -> None:
    """Print the bus bandwidths, and write the figure if its place is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--figure", type=Path, help="where the figure goes, as SVG")
    place = parser.parse_args().figure
    found = curves()
    print(f"{'bytes':>12} " + " ".join(f"{name:>24}" for name in found))
    for index, size in enumerate(SIZES):
        print(f"{size:12,} " + " ".join(f"{points[index][1]:24.3f}" for points in found.values()))
    if place is not None:
        place.write_text(figure(found), encoding="utf-8")


if __name__ == "__main__":
    main()

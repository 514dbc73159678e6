"""Every published curve of nccl-tests beside Weftwork's, from 1 KiB to 16 GiB, in one figure; and the drift with scale.

    python benchmarks/nccl_curves.py [--figure docs/models/collectives-nccl.svg]

Weftwork's curves are the closed form with the method that NCCL's tuner takes, which training jobs have and which
`weftwork collective` runs as programs. On AWS p5 two of them: blind, and with what was fitted on 16 GPUs.
Leaves out: the runs of the programs, which the scorecard has.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from weftwork.base.clock import SECOND_PS
from weftwork.data.measured import measured
from weftwork.hardware.catalogue import node
from weftwork.report.figures.cards import BLUE, CARD, DARK_STYLE, FONT, GRID, INK, QUIET, VERMILION
from weftwork.study.validation.network_fit import OPERATIONS, P5_FITTED, p5_figures, signed_errors
from weftwork.workload.collectives.call import bus_bandwidth_factor
from weftwork.workload.collectives.closed_form import GroupShape, alone
from weftwork.workload.collectives.figures import CollectiveFigures, collective_figures
from weftwork.workload.collectives.tuner import chosen_method

__all__ = ["Panel", "curve", "figure", "main", "panels"]

SIZES: Final = tuple(1 << power for power in range(10, 35))  # 1 KiB to 16 GiB
LOWEST_GBYTE_PER_S, HIGHEST_GBYTE_PER_S = 0.001, 1_000.0
LARGE_BYTES: Final = 256 << 20
WIDTH, PANEL_WIDTH, PANEL_HEIGHT, LEFT, TOP = 960, 296, 196, 62, 108
SIZE_TICKS: Final = ((1 << 10, "1 KiB"), (1 << 20, "1 MiB"), (1 << 30, "1 GiB"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """One published curve: its name, how it was done, and its points (bytes, GB/s of bus bandwidth)."""

    title: str
    operation: str
    gpus: int
    figures: CollectiveFigures
    points: tuple[tuple[int, float], ...]
    fitted: CollectiveFigures | None = None


def panels() -> list[Panel]:
    """All published curves, one server first."""

    def of_server(name: str) -> CollectiveFigures:
        model = node(name)
        return collective_figures(model.server, nic_port_rate_bps=model.nic_port_rate_bps)

    one = measured("nccl-all-reduce-one-node").to_pylist()
    other = measured("nccl-all-reduce-a100-nvlink").to_pylist()
    found = [
        Panel(
            title=f"8 {gpu.upper()}, Azure: all-reduce (fitted)", operation="all-reduce", gpus=8,
            figures=of_server(f"azure-nd-{gpu}-{version}"),
            points=tuple((row["size_bytes"], row[f"{gpu}_bus_bandwidth_gbyte_per_s"]) for row in one),
        )
        for gpu, version in (("a100", "v4"), ("h100", "v5"))
    ]  # fmt: skip
    found.insert(
        1,
        Panel(
            title="8 A100, another lab: all-reduce", operation="all-reduce", gpus=8,
            figures=of_server("azure-nd-a100-v4"),
            points=tuple((row["size_bytes"], row["bus_bandwidth_gbyte_per_s"]) for row in other),
        ),
    )  # fmt: skip
    told = p5_figures()
    for gpus in (16, 64):
        for operation in OPERATIONS:
            table = measured(f"nccl-{operation}-h100-efa").to_pylist()
            points = [(row["size_bytes"], row["bus_bandwidth_gbyte_per_s"]) for row in table if row["gpus"] == gpus]
            found.append(
                Panel(
                    title=f"{gpus} H100, AWS p5: {operation}", operation=operation, gpus=gpus, figures=told,
                    points=tuple(points), fitted=P5_FITTED.on(told),
                )
            )  # fmt: skip
    return found


def curve(panel: Panel, figures: CollectiveFigures) -> list[tuple[int, float]]:
    """Bus bandwidth in GB/s at each of `SIZES`.

    Parameters
    ----------
    panel : what is done by whom
    figures : of the servers; the method is what the tuner takes by the panel's own
    """
    group = GroupShape(members=panel.gpus, per_domain=8, domain_gpus=8)
    factor = float(bus_bandwidth_factor(panel.operation, panel.gpus))
    found = []
    for size in SIZES:
        method = chosen_method(panel.operation, group, size, panel.figures)
        took_ps = alone(panel.operation, method, group, size, figures).time_ps
        found.append((size, size * factor * SECOND_PS / took_ps / 1e9))
    return found


def figure() -> str:
    """The figure, as SVG text."""
    found = panels()
    height = TOP + 3 * (PANEL_HEIGHT + 62) + 6
    title = "nccl-tests as published, and Weftwork"
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{escape(FONT)}">',
        f"<title>{title}: bus bandwidth by size, nine curves</title>",
        DARK_STYLE,
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{CARD}" stroke="{GRID}"/>',
        _text(24, 36, title, size=17, weight=600),
        _text(24, 58, "bus bandwidth in GB/s, by size of the operation; both axes are logarithmic", fill=QUIET),
        f'<circle cx="30" cy="76" r="3.5" fill="{INK}"/>',
        _text(42, 80, "published"),
        f'<path d="M130 76h28" stroke="{BLUE}" stroke-width="2.5" fill="none"/>',
        _text(166, 80, "Weftwork, on AWS p5 blind"),
        f'<path d="M350 76h28" stroke="{VERMILION}" stroke-width="2.5" stroke-dasharray="6 3" fill="none"/>',
        _text(386, 80, "with what EFA adds fitted on 16 GPUs, so that 64 judge"),
    ]
    for index, panel in enumerate(found):
        row, column = divmod(index, 3)
        parts += _panel(panel, LEFT + column * PANEL_WIDTH, TOP + row * (PANEL_HEIGHT + 62))
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Panel, left: float, top: float) -> list[str]:
    right, bottom = left + PANEL_WIDTH - 44, top + PANEL_HEIGHT + 14

    def x_of(size: float) -> float:
        return left + (right - left) * math.log(size / SIZES[0]) / math.log(SIZES[-1] / SIZES[0])

    def y_of(gbyte_per_s: float) -> float:
        share = math.log(gbyte_per_s / LOWEST_GBYTE_PER_S) / math.log(HIGHEST_GBYTE_PER_S / LOWEST_GBYTE_PER_S)
        return bottom - (bottom - top - 14) * share

    parts = [_text(left, top + 4, panel.title, weight=600)]
    for power in range(-3, 4):
        y = y_of(10.0**power)
        parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="{GRID}" fill="none"/>')
        parts.append(_text(left - 6, y + 4, f"{10.0**power:g}", fill=QUIET, anchor="end", size=11))
    for size, word in SIZE_TICKS:
        parts.append(_text(x_of(size), bottom + 16, word, fill=QUIET, anchor="middle", size=11))
    lines = [(panel.figures, BLUE, "none")]
    if panel.fitted is not None:
        lines.append((panel.fitted, VERMILION, "6 3"))
    for figures, colour, dashes in lines:
        points = [(x_of(size), y_of(value)) for size, value in curve(panel, figures) if value > LOWEST_GBYTE_PER_S]
        path = " ".join(f"{'L' if place else 'M'}{x:.1f} {y:.1f}" for place, (x, y) in enumerate(points))
        parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dashes}" fill="none"/>')
    parts += [
        f'<circle cx="{x_of(size):.1f}" cy="{y_of(value):.1f}" r="3" fill="{INK}"/>' for size, value in panel.points
    ]
    return parts


def _text(
    x: float, y: float, text: str, *, size: int = 13, fill: str = INK, anchor: str = "start", weight: int = 400
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )


def main() -> None:
    """Print how the signed error moves with scale, and write the figure if its place is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--figure", type=Path, help="where the figure goes, as SVG")
    place = parser.parse_args().figure
    print("| operation | figures | 16 GPUs | 64 GPUs | drift |\n|---|---|---:|---:|---:|")
    for operation in OPERATIONS:
        for name, fitted in (("blind", None), ("fitted on 16 GPUs", P5_FITTED)):
            small, large = (signed_errors(operation, gpus, least_bytes=LARGE_BYTES, fitted=fitted) for gpus in (16, 64))
            print(f"| {operation} | {name} | {small:+.1%} | {large:+.1%} | {100 * (large - small):+.1f} points |")
    if place is not None:
        place.write_text(figure(), encoding="utf-8")


if __name__ == "__main__":
    main()

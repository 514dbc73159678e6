"""The figures of `packet_engine` as text for a terminal, or as Markdown for docs/models/speed.md.

Leaves out: which rows there are, and what is wanted of them (`rows`).
"""

from __future__ import annotations

from typing import Any

__all__ = ["markdown", "text"]

HEAD = ("row", "median", "least", "wanted", "reached", "packet-hops", "pauses", "per 100", "drops", "marks", "run s",
        "set-up s", "lower s", "compile s", "peak MiB")  # fmt: skip
BRIEF = ("row", "median", "least", "wanted", "reached", "packet-hops", "pauses", "per 100", "run s", "peak MiB")


def text(report: dict[str, Any]) -> str:
    """The report for a terminal.

    Parameters
    ----------
    report : as ``--json`` writes it
    """
    cells = [_cells(name, row) for name, row in report["rows"].items()]
    widths = {head: max(len(head), *(len(row[head]) for row in cells)) for head in HEAD}
    lines = [circumstances(report), ""]
    lines.append("  ".join(head.ljust(widths[head]) if head == "row" else head.rjust(widths[head]) for head in HEAD))
    lines += [
        "  ".join(row[head].ljust(widths[head]) if head == "row" else row[head].rjust(widths[head]) for head in HEAD)
        for row in cells
    ]
    lines += ["", *(f"{name.ljust(widths['row'])}  {row['text']}" for name, row in report["rows"].items()), ""]
    if report["ratios"]:
        lines.append(f"{'ratio':42}{'medians':>9}{'least':>9}{'wanted':>9}")
    lines += [
        f"{ratio['text']:42}{ratio['of_medians']:9.2f}{ratio['of_least']:9.2f}{_wish(ratio):>9}"
        for ratio in report["ratios"]
    ]
    return "\n".join(lines).rstrip()


def markdown(report: dict[str, Any]) -> str:
    """The report for the page: what was measured, and what each row is.

    Parameters
    ----------
    report : as ``--json`` writes it
    """
    lines = [circumstances(report), "", _line(BRIEF), _line(["---", *["---:"] * (len(BRIEF) - 1)])]
    for name, row in report["rows"].items():
        cells = _cells(name, row)
        lines.append(_line([f"`{name}`", *(cells[head] for head in BRIEF[1:])]))
    lines += ["", _line(("row", "what it is")), _line(("---", "---"))]
    lines += [_line((f"`{name}`", row["text"])) for name, row in report["rows"].items()]
    lines += ["", _line(("ratio", "of the medians", "of the least", "wanted")), _line(("---", "---:", "---:", "---:"))]
    lines += [
        _line((ratio["text"], f"{ratio['of_medians']:.2f}", f"{ratio['of_least']:.2f}", _wish(ratio)))
        for ratio in report["ratios"]
    ]
    return "\n".join(lines)


def circumstances(report: dict[str, Any]) -> str:
    """When, on what and how the figures were made.

    Parameters
    ----------
    report : as ``--json`` writes it
    """
    changed = " with uncommitted changes" if report["uncommitted_changes"] else ""
    return (
        f"{report['date']}, commit {report['commit']}{changed}, Python {report['python']}, {report['cpu']};"
        f" CPU ns per packet-hop, one thread, median and least of {report['rounds']} rounds"
    )


def _cells(name: str, row: dict[str, Any]) -> dict[str, str]:
    wanted = row.get("target_ns_per_hop")
    return {
        "row": name,
        "median": f"{row['ns_per_hop']:,.1f}",
        "least": f"{row['ns_per_hop_least']:,.1f}",
        "wanted": "" if wanted is None else f"{wanted:g}",
        "reached": "" if wanted is None else ", ".join(row["lacks"]) or "yes",
        "packet-hops": f"{row['packet_hops']:,}",
        "pauses": f"{row['pauses']:,}",
        "per 100": f"{row['pauses_per_100_data']:.1f}",
        "drops": f"{row['drops']:,}",
        "marks": f"{row['marks']:,}",
        "run s": f"{row['run_s']:.3f}",
        "set-up s": f"{row['set_up_s']:.3f}",
        "lower s": f"{row['lower_s']:.3f}" if "lower_s" in row else "",
        "compile s": f"{row['compile_s']:.2f}" if "compile_s" in row else "",
        "peak MiB": f"{row['peak_rss_bytes'] / 2**20:,.0f}",
    }


def _wish(ratio: dict[str, Any]) -> str:
    return "" if ratio["wanted"] is None else str(ratio["wanted"])


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"

"""The output of ``weftwork plan --confirm``.

It has packets beside flows, omissions, and each kind of traffic alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from weftwork.base.grammar import plural
from weftwork.report.words import amount, sentence
from weftwork.study.plan.confirm_words import left_out, why_no_more

if TYPE_CHECKING:
    from rich.console import Console

    from weftwork.study.plan.confirm import Confirmation

__all__ = ["print_confirmation"]


def print_confirmation(found: Confirmation, out: Console) -> None:
    """Print a confirmation.

    Parameters
    ----------
    found : to print
    out : where
    """
    lines = [_headline(found)]
    if reason := why_no_more(found):
        lines.append(f"{sentence(reason)}.")
    lines.append(f"Left out: {left_out(found)}.")
    for line in lines:
        out.print(Text(line), soft_wrap=True)
    if found.collectives:
        out.print()
        out.print(
            Text("The largest call of each kind of traffic, alone, and the exposed time of each kind in an iteration:")
        )
        out.print(_table(found))
        for one in found.collectives:
            if one.reason:
                out.print(Text(f"No packet run for {one.kind}: {one.reason}."), soft_wrap=True)
    out.print()


def _headline(found: Confirmation) -> str:
    if found.how == "collectives":
        return "Packet by packet: each kind of traffic alone, not the job."
    if found.how == "none":
        return "Packet by packet: not confirmed."
    part = f"all {plural(found.of_gpus, 'GPU')}"
    if found.how == "replicas":
        part = (
            f"{found.replicas:,} of {plural(found.of_replicas, 'replica')}, {found.gpus:,} of "
            f"{plural(found.of_gpus, 'GPU')}"
        )
    if found.packet_ps is None or found.flow_ps is None or found.longer is None:
        return f"Packet by packet ({part}): the run did not finish; its status is {found.status}."
    word = "longer" if found.longer >= 0 else "shorter"
    same = "" if found.how == "whole" else " of the same replicas"
    return (
        f"Packet by packet ({part}): an iteration takes {amount(found.packet_ps, 'ps')},"
        f" {amount(abs(found.longer), 'share')} {word} than the {amount(found.flow_ps, 'ps')} of the flow engine{same}."
    )


def _table(found: Confirmation) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("kind")
    table.add_column("largest call")
    for name in ("exposed", "closed form", "flows", "packets", "longer"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found.collectives:
        packets = "none" if one.packet_ps is None else amount(one.packet_ps, "ps")
        longer = "" if one.packet_ps is None else f"{100 * (one.packet_ps / one.flow_ps - 1):+.2f} %"
        table.add_row(
            one.kind,
            f"{one.operation}, {amount(one.size_bytes, 'B')}, {plural(one.ranks, 'rank')}",
            amount(found.exposed_ps[one.kind], "ps"),
            amount(one.closed_form_ps, "ps"),
            amount(one.flow_ps, "ps"),
            packets,
            longer,
        )
    return table

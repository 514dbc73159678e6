"""``weftwork topology FILE --without leaf3``: the effect of a loss.

It has who is cut off, and the remaining bandwidth.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from weftwork.base.grammar import number_ranges, plural
from weftwork.base.units import RATE, format_quantity
from weftwork.report.words import amount
from weftwork.spec.numbers import NUMBERS
from weftwork.spec.verdicts import verdict_text

if TYPE_CHECKING:
    from rich.console import Console

    from weftwork.spec.fabric import Fabric
    from weftwork.study.loss import JobLoss
    from weftwork.topology.valleys import Valleys
    from weftwork.topology.without import Loss, RailLoss, WorstPair

__all__ = ["loss_record", "print_job_loss", "print_loss"]

SHOWN: Final = 6  # chosen: names in a line
LEAST_CHANGE: Final = 0.005  # per cent; chosen: less rounds to 0.00


def loss_record(loss: Loss, job: JobLoss | None = None) -> dict[str, Any]:
    """The effect of a loss as JSON values, with units in the names.

    ``job`` is present if the job was run.
    """
    return asdict(loss) | ({} if job is None else {"job": asdict(job)})


def print_loss(out: Console, fabric: Fabric, loss: Loss) -> None:
    """Print a loss, who is cut off, and the remaining bandwidth.

    Words come first, then figures by rail.
    """
    out.print(f"{fabric.name}, without {_names(loss.names)}", style="bold", markup=False, soft_wrap=True)
    for line in [*_sentences(loss), *_valley_sentences(loss)]:
        out.print(line, markup=False, soft_wrap=True)
    out.print()
    table = Table(box=None, pad_edge=False)
    for heading, justify in (("", "left"), ("before", "right"), ("after", "right"), ("left", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]  # rich types it as a literal
    before, after = loss.bisection_before.rate_bps, loss.bisection_after.rate_bps
    table.add_row("bisection", *_rates(before, after))
    if loss.legal_before is not None and loss.legal_after is not None:
        before, after = loss.legal_before.rate_bps, loss.legal_after.rate_bps
        if (before, after) != (loss.bisection_before.rate_bps, loss.bisection_after.rate_bps):
            table.add_row("bisection without valleys", *_rates(before, after))
    if loss.worst_before is not None:
        worst = 0 if loss.worst_after is None else loss.worst_after.rate_bps
        table.add_row("least of two hosts", *_rates(loss.worst_before.rate_bps, worst))
    for alike in _alike(loss.rails):
        table.add_row(_rail_words(loss.rails, alike), *_rates(alike[0].before.rate_bps, alike[0].after.rate_bps))
    for row in _path_rows(loss):
        table.add_row(*row)
    if loss.disjoint_before is not None and loss.disjoint_after is not None:
        fewest, left = loss.disjoint_before.paths, loss.disjoint_after.paths
        table.add_row("disjoint paths of two leaves, least", f"{fewest:,}", f"{left:,}", f"{left / fewest:.1%}")
    out.print(table)
    if loss.worst_after is not None:
        out.print(_worst_words(loss.worst_after), markup=False, soft_wrap=True)
    found = loss.disjoint_after
    if found is not None and loss.disjoint_before is not None and found.paths < loss.disjoint_before.paths:
        out.print(f"The fewest disjoint paths join {found.source} and {found.target}.", markup=False, soft_wrap=True)
    if loss.worst_before is None:
        out.print(
            "The fabric is too large for flows by rail and by pairs of hosts; bisection is exact.", soft_wrap=True
        )


def _path_rows(loss: Loss) -> list[tuple[str, str, str]]:
    """Shortest paths of NIC ports by hops, before and after.

    Each has the least and the median.
    """
    before = {row.hops: row for row in loss.paths_before}
    after = {row.hops: row for row in loss.paths_after}
    rows = []
    for hops in sorted(before.keys() | after.keys()):
        cells = [f"{row.paths_min:,}, {row.paths_median:,.0f}" if (row := found.get(hops)) else "none"
                 for found in (before, after)]  # fmt: skip
        rows.append((f"shortest paths of {plural(hops, 'hop')}: least, median", cells[0], cells[1]))
    return rows


def _sentences(loss: Loss) -> list[str]:
    """The hosts and GPUs that are cut off, in words."""
    before, after = loss.before, loss.after
    what = plural(loss.links_lost, "link is", "links are") if loss.links_lost else "No link is"
    if len(loss.nodes) > 1:
        what = f"{plural(len(loss.nodes), 'node')} and {plural(loss.links_lost, 'link')} are"
    lines = [f"{what} gone."]
    alone = after.hosts_alone - before.hosts_alone
    if alone:
        lines.append(f"{plural(alone, 'host reaches', 'hosts reach')} no other host.")
    apart = before.host_pairs_joined - after.host_pairs_joined
    if apart:
        lines.append(
            f"{plural(apart, 'pair')} of hosts no longer reach each other, of {before.host_pairs_joined:,} before."
        )
    else:
        lines.append(verdict_text("topology.all-joined"))
    if loss.gpus_without:
        lines.append(
            f"{plural(loss.gpus_without, 'GPU has', 'GPUs have')} no NIC port left"
            + ("." if alone else "; the path to other servers is through other GPUs of the same server.")
        )
    if loss.gpus_with_less:
        fewer = plural(loss.gpus_with_less, "GPU has", "GPUs have")
        lines.append(f"{fewer} lost some NIC ports and can move to the others.")
    pairs = before.gpu_pairs_joined - after.gpu_pairs_joined
    if pairs:
        share = after.gpu_pairs_joined / before.gpu_pairs_joined
        lines.append(f"{share:.2%} of the pairs of GPUs that reached each other by their own NIC ports still do.")
    if after.networks > before.networks:
        lines.append(f"{plural(after.networks, 'network')} where there were {before.networks:,}: no link joins them.")
    return lines


def _valley_sentences(loss: Loss) -> list[str]:
    """Routes that go down and up again, in words."""
    before, after = loss.valleys_before, loss.valleys_after
    if before is None or after is None:
        return ["Valleys were not checked: switches of one tier are linked, so routes have no up and down."]
    lines = []
    of = f"{plural(before.pairs_legal, 'pair')} of leaves that keep hosts"
    if after.sample < after.leaves:
        of += f" (those of {after.sample:,} of {plural(after.leaves, 'leaf', 'leaves')})"
    lost = before.pairs_legal - after.pairs_legal
    if lost:
        apart = before.pairs_joined - after.pairs_joined
        rest = f", {apart:,} of them without any path" if apart else ""
        lines.append(f"No route up and then down any more: {lost:,} of {of}{rest}.")
    if after.pairs_bent:
        lines += _bent_sentences(after)
    elif not lost and before.pairs_legal:
        lines.append("All leaves keep routes up and then down; no shortest route has a valley.")
    return lines


def _bent_sentences(after: Valleys) -> list[str]:
    some = after.pairs_bent - after.pairs_only_bent
    parts = [f"all of {plural(after.pairs_only_bent, 'pair')}"] * (after.pairs_only_bent > 0)
    parts += [f"some of {plural(some, 'pair')}"] * (some > 0)
    pairs, route = " and ".join(parts), " - ".join(after.example)
    return [
        f"Shortest routes go down and up again (a valley): {pairs} of leaves, such as {route}.",
        "Weftwork's engines use them. Under PFC they can deadlock, unless packets have another class after the turn.",
        f"`fabric.routing: up-down` forbids them: {_forbidden(after)}.",
    ]


def _forbidden(after: Valleys) -> str:
    """Consequences for pairs with a valley if valleys are forbidden, in words."""
    none = after.pairs_joined - after.pairs_legal
    longer, fewer = after.pairs_only_bent - none, after.pairs_bent - after.pairs_only_bent
    parts = [f"{plural(fewer, 'pair keeps', 'pairs keep')} the other shortest routes"] * (fewer > 0)
    parts += [f"{plural(longer, 'pair takes', 'pairs take')} longer routes"] * (longer > 0)
    parts += [f"{plural(none, 'pair has', 'pairs have')} no route left"] * (none > 0)
    return ", ".join(parts)


def print_job_loss(out: Console, job: JobLoss) -> None:
    """Print the job's time before and after, or why it cannot finish."""
    out.print()
    if job.faults_left_out:
        faults = plural(job.faults_left_out, "fault")
        out.print(f"Both runs leave out {faults} of the scenario: this is the price of the loss alone.", soft_wrap=True)
    what = NUMBERS[job.quantity].subject
    if job.before_ps is None:
        text = f"The job does not finish on the whole fabric either: its status is {job.status_before}."
        out.print(text, soft_wrap=True)
    elif job.after_ps is not None and job.slowdown is not None:
        change = 100 * (job.slowdown - 1)
        than = f"{'longer' if change >= 0 else 'shorter'} than the {amount(job.before_ps, 'ps')} before"
        than = f"{abs(change):.2f} % {than}" if abs(change) >= LEAST_CHANGE else "as long as before"
        out.print(f"On the flow engine {what} takes {amount(job.after_ps, 'ps')}, {than}.", soft_wrap=True)
        out.print("Routes and queue pairs know of the loss from the start.", soft_wrap=True)
    else:
        out.print(f"The job cannot continue. Before, {what} took {amount(job.before_ps, 'ps')}.", soft_wrap=True)
    if job.cut_off:
        out.print(f"No NIC port is left for {_names(job.cut_off)}.", markup=False, soft_wrap=True)
    if job.stopped:
        out.print(f"Stopped: {job.stopped}.", markup=False, soft_wrap=True)


def _names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _rates(before: int, after: int) -> tuple[str, str, str]:
    share = f"{after / before:.1%}" if before else ""
    return format_quantity(RATE, before), format_quantity(RATE, after), share


def _alike(rails: tuple[RailLoss, ...]) -> list[list[RailLoss]]:
    """Rails grouped by equal figures, in the order of their first."""
    groups: dict[tuple[int, int, int, int], list[RailLoss]] = {}
    for rail in rails:
        key = (rail.hosts_before, rail.hosts_after, rail.before.rate_bps, rail.after.rate_bps)
        groups.setdefault(key, []).append(rail)
    return list(groups.values())


def _rail_words(rails: tuple[RailLoss, ...], alike: list[RailLoss]) -> str:
    numbers = [rails.index(rail) for rail in alike]
    words = number_ranges(numbers, " to ")
    hosts = "" if alike[0].hosts_after == alike[0].hosts_before else (
        f", {alike[0].hosts_after:,} of {plural(alike[0].hosts_before, 'host')}")  # fmt: skip
    return f"{'rails' if len(numbers) > 1 else 'rail'} {words}{hosts}{', each' if len(numbers) > 1 else ''}"


def _worst_words(worst: WorstPair) -> str:
    how = "all pairs" if worst.is_all else f"{plural(worst.pairs, 'pair')}, identical hosts counted once"
    return f"The lowest rate is from {worst.source} to {worst.target} ({how})."

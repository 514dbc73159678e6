"""``weftwork topology FILE --limits``: the largest size of a fabric.

It has free ports, and the next steps.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.units import RATE, format_quantity
from weftwork.cli.limits_of_switches import plain_table
from weftwork.topology.oversubscription import ratio_text
from weftwork.topology.picture import tier_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console
    from rich.table import Table

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.topology_growth import DirectLimits, DirectSize
    from weftwork.topology.largest import FabricLimits, NextStep, TreeEnding
    from weftwork.topology.limits import TreeLimit

__all__ = ["limits_record", "print_limits", "refuse_options"]

Words = dict[int, tuple[str, str]]  # what a switch of a tier and several are called
_CLOSED: Final = {
    "tier": "No further tier",
    "planes": "No more planes",
    "switches": "No larger switches",
    "rails": "No rails to part",
}


def refuse_options(
    *, has_file: bool, limits: bool, with_file: Mapping[str, object], with_none: Mapping[str, object]
) -> None:
    """Refuse options that do not fit together.

    Parameters
    ----------
    has_file : whether there is a fabric
    limits : whether its limits are asked for
    with_file : values of options that need a fabric
    with_none : values of options that ask about switches

    Raises
    ------
    ConfigError : with all of them
    """
    mistakes = []
    if not has_file:
        mistakes += [Mistake(path=key, text="needs FILE, a fabric") for key, value in with_file.items() if value]
    if has_file or not limits:
        text = "is about trees of a switch, wanted --limits without FILE; for a fabric, use --set"
        mistakes += [Mistake(path=key, text=text) for key, value in with_none.items() if value is not None]
    if has_file and limits and with_file["--without"]:
        mistakes.append(
            Mistake(path="--without", text="found together with --limits, which measures whole fabrics; leave one out")
        )
    if mistakes:
        raise ConfigError("command line", mistakes)


def limits_record(fabric: Fabric, limits: FabricLimits) -> dict[str, Any]:
    """The limits of a fabric as JSON values, with units in the names."""
    record: dict[str, Any] = {
        "name": fabric.name,
        "gpus": fabric.gpus,
        "hosts": len(fabric.hosts),
        "ports_by_tier": [asdict(row) for row in limits.ports],
        "ports_left": sum(row.left for row in limits.ports),
        "is_endless": limits.is_endless,
        "unknown": limits.unknown or None,
        "largest": None,
        "with_todays_top_tier": None,
        "next_steps": [],
        "no_steps": {},
    }
    if limits.direct is not None:
        record["family"] = {
            **asdict(limits.direct),
            "sizes": [{**asdict(size), "gpus": _gpus(fabric, size)} for size in limits.direct.sizes],
        }
        record["is_endless"] = not limits.direct.ends
    if (ending := limits.ending) is not None:
        plan, end = ending.plan, ending.end
        record["largest"] = {
            "gpus": ending.gpus,
            **_counts(ending.limit, ending.gpus),
            "ports_down_by_tier": list(end.down),
            "ports_up_by_tier": list(end.up),
            "oversubscription_by_tier": [float(ratio) for ratio in plan.ratios],
            "networks": plan.networks,
            "part_filled_tiers": list(plan.part_filled),
        }
        gpus = ending.today.servers * plan.gpus
        record["with_todays_top_tier"] = {"gpus": gpus, **_counts(ending.today, gpus)}
        record["next_steps"] = [
            {
                "step": step.step,
                "count": step.count,
                "switches": list(step.switches),
                "nic_port_rate_bps": step.rate_bps,
                "gpus": step.gpus,
                **_counts(step.limit, step.gpus),
            }
            for step in ending.steps
        ]
        record["no_steps"] = dict(ending.closed)
    return record


def _counts(limit: TreeLimit, gpus: int) -> dict[str, Any]:
    """Counts of a full tree, in total and for each GPU."""
    return {
        "hosts": limit.servers,
        "switches": limit.switches,
        "switches_by_tier": list(limit.switches_by_tier),
        "host_links": limit.host_links,
        "switch_links": limit.switch_links,
        "hops": limit.longest_path_switches + 1,
        "switches_per_gpu": limit.switches / gpus,
        "links_per_gpu": limit.links / gpus,
    }


def print_limits(out: Console, fabric: Fabric, limits: FabricLimits) -> None:
    """Print the limit of a fabric, its free ports, and the next steps."""
    words = tier_words(fabric)
    ending = limits.ending
    out.print(fabric.name, style="bold", markup=False)
    lines = _first_lines(fabric, limits, words) if limits.direct is None else _direct_lines(fabric, limits.direct)
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)
    out.print()
    table = plain_table("tier", "switches", "ports", "used", "left over", left=1)
    for row in limits.ports:
        used = f"{row.used_min:,}" if row.used_min == row.used_max else f"{row.used_min:,} to {row.used_max:,}"
        ports, left = (f"{row.ports:,}", f"{row.left:,}") if row.ports else ("any", "-")
        table.add_row(words[row.tier][0], f"{row.switches:,}", ports, used, left)
    out.print(table)
    if limits.direct is not None and limits.direct.sizes:
        out.print()
        out.print(_sizes_table(fabric, limits.direct))
    if ending is None:
        return
    out.print()
    table = plain_table("full fabric", "GPUs", "switches / GPU", "links / GPU", "hops", left=1)
    now = ending.limit
    table.add_row("of this kind", f"{ending.gpus:,}", f"{now.switches / ending.gpus:.4f}",
                  f"{now.links / ending.gpus:.4g}", f"{now.longest_path_switches + 1}")  # fmt: skip
    for step in ending.steps:
        table.add_row(_step_words(step, ending, words), f"{step.gpus:,}", *_price(step, ending))
    out.print(table)
    for kind, reason in ending.closed.items():
        out.print(f"{_CLOSED[kind]}: {reason}.", markup=False, soft_wrap=True)


def _gpus(fabric: Fabric, size: DirectSize) -> int:
    """GPUs of a size with servers like the first."""
    server = fabric.server(int(fabric.hosts[0]))
    return size.endpoints // max(server.nic_ports, 1) * server.gpus


def _direct_lines(fabric: Fabric, limits: DirectLimits) -> list[str]:
    """What ends a direct network, and what else a planner should know."""
    if limits.ends and limits.sizes:
        most = _gpus(fabric, limits.sizes[0])
        lines = [f"{limits.ends}, {plural(most, 'GPU')}. It has {fabric.gpus:,} ({fabric.gpus / most:.1%})."]
    elif limits.ends:
        lines = [f"{limits.ends}; its switches have too few ports for one of full rate."]
    elif limits.ports or limits.facts:
        lines = ["This fabric has no largest size: no port of a switch is used up by more switches."]
    else:
        how = "Set fabric.radix, or a switch of the catalogue as fabric.switch."
        lines = [f"This fabric has no largest size: its switches have any number of ports. {how}"]
    return [*lines, *limits.facts]


def _sizes_table(fabric: Fabric, limits: DirectLimits) -> Table:
    """Full sizes of the family, with what a GPU takes of them."""
    table = plain_table("full fabric", "GPUs", "switches / GPU", "links / GPU", "hops", left=1)
    for size in limits.sizes:
        gpus = _gpus(fabric, size)
        table.add_row(size.words, f"{gpus:,}", f"{size.switches / gpus:.4f}",
                      f"{(size.switch_links + size.endpoints) / gpus:.4g}", f"{size.diameter_links + 2}")  # fmt: skip
    return table


def _first_lines(fabric: Fabric, limits: FabricLimits, words: Words) -> list[str]:
    """The fabric's limit, its distance, and its top tier's filling."""
    ending = limits.ending
    left = sum(row.left for row in limits.ports)
    if limits.is_endless:
        how = "Set fabric.radix, or a switch of the catalogue as fabric.switch (in a fabric file, of each node)."
        return [f"This fabric has no largest size: {limits.unknown}. {how}"]
    if ending is None:
        has_number = all(row.ports for row in limits.ports)
        told = f" Free ports: {left:,}." if has_number else ""
        return [f"The largest size of such fabrics is not known: {limits.unknown}.{told}"]
    plan, end, limit = ending.plan, ending.end, ending.limit
    top = len(end.down)
    one = words[top][0]
    networks = plural(plan.networks, "network")
    article = "an" if one[0] in "aeiou" else "a"
    who = f"{article.capitalize()} {one}'s {plural(end.down[-1], 'port')}"
    share = f"It has {fabric.gpus:,} ({fabric.gpus / ending.gpus:.1%})."
    lines = [f"{who} end this fabric: {_joined_words(ending, words)}, {plural(ending.gpus, 'GPU')}. {share}"]
    by_tier = ", ".join(f"{count:,} {words[tier][count != 1]}" for tier, count in enumerate(limit.switches_by_tier, 1))
    ratios = ", ".join(f"{words[tier][0]} {ratio_text(ratio)}" for tier, ratio in enumerate(plan.ratios, 1))
    lines.append(
        f"The largest of its kind: {plural(limit.servers, 'server')}, {by_tier}, {networks}"
        + (f"; oversubscription {ratios}." if ratios else ".")
    )
    today = ending.today
    if top > 1 and today.servers < limit.servers:
        each, cables = words[1][0] if top == 2 else "group", plan.today.cables[-1]
        joined = _groups(today.groups[top - 2], top - 1, words)
        lines.append(
            f"Without another {one} it ends at {plural(today.servers * plan.gpus, 'GPU')}: {joined} as today's, with "
            f"{plural(cables, 'link')} from every {one} to each {each}."
        )
    for tier in plan.part_filled:
        what = f"The only {words[1][0]}" if tier == 1 else f"The only group of {words[tier][1]}"
        lines.append(f"{what} is not full; it counts as filled, to {ratio_text(plan.ratios[tier - 1])}.")
    return lines


def _groups(count: int, tier: int, words: Words) -> str:
    """A number of groups of a tier in words.

    A group of leaves is a leaf.
    """
    return f"{count:,} {words[1][count != 1]}" if tier == 1 else f"{plural(count, 'group')} of {words[tier][1]}"


def _joined_words(ending: TreeEnding, words: Words) -> str:
    """The nodes at the ports of a switch of the top tier."""
    end, top = ending.end, len(ending.end.down)
    if top == 1:
        return f"{plural(end.down[0] // end.each, 'server')}" + (
            f" with {plural(end.each, 'port')} each" if end.each > 1 else ""
        )
    text = _groups(ending.limit.groups[top - 2], top - 1, words)
    wide = end.spread[-1]
    return text if wide == 1 else f"{text} ({wide} for a server)"


def _step_words(step: NextStep, ending: TreeEnding, words: Words) -> str:
    """A step in a few words."""
    top = words[len(ending.end.down)][1]
    if step.step == "tier":
        return f"a tier above the {top}"
    if step.step == "planes":
        rate = format_quantity(RATE, step.rate_bps)
        if step.rate_bps == ending.plan.rates_bps[0]:
            return f"planes: {plural(step.count, 'port')} of a GPU on {plural(step.count, 'leaf', 'leaves')}"
        return f"planes: NIC ports split in {step.count}, {rate} each"
    if step.step == "switches":
        return f"switches of {plural(step.count, 'port')}: {', '.join(step.switches)}"
    return f"rails not joined: {plural(step.count, 'network')}"


def _price(step: NextStep, ending: TreeEnding) -> tuple[str, str, str]:
    """The extra cost of a step for each GPU, between full fabrics."""
    now, then = ending.limit, step.limit
    switches = then.switches / step.gpus - now.switches / ending.gpus
    links = then.links / step.gpus - now.links / ending.gpus
    hops = then.longest_path_switches - now.longest_path_switches
    return _signed(switches, ".4f"), _signed(links, ".4g"), _signed(hops, "d")


def _signed(value: float, form: str) -> str:
    """A difference with its sign.

    A difference that rounds to zero is the word same.
    """
    text = format(value, f"+{form}")
    return "same" if not float(text) else text

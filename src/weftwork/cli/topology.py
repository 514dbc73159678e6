"""``weftwork topology FILE``: a fabric in numbers, as a picture or file.

Nothing is simulated.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from weftwork.base.caveat import caveats_to_json
from weftwork.base.errors import ConfigError
from weftwork.base.grammar import plural
from weftwork.base.units import DURATION, RATE, format_quantity
from weftwork.cli.console import console
from weftwork.cli.limits_of_switches import limits_of_switches
from weftwork.cli.topology_host_hops import host_hop_notes, host_hop_rows, host_hops_table
from weftwork.cli.topology_limits import limits_record, print_limits, refuse_options
from weftwork.cli.topology_without import asked_loss, tell_loss
from weftwork.spec.device import Server
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.draw import draw
from weftwork.topology.export import export as write_export
from weftwork.topology.from_file import FABRIC_FILES
from weftwork.topology.host_hops import host_hops
from weftwork.topology.largest import fabric_limits
from weftwork.topology.measures import Measures, measure
from weftwork.topology.oversubscription import ratio_text
from weftwork.topology.picture import tier_words
from weftwork.topology.reach import rails_of, reach
from weftwork.topology.without import find_lost

_HEADINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "Parts that do not fit": ("mismatch",),
    "Assumed": ("assumed",),
    "Not verified": ("unverified", "chosen", "approximate"),
    "Notes": ("ignored", "note"),
}

__all__ = ["fabric_in", "print_measures", "record", "topology"]


def topology(  # noqa: PLR0913 - the options of the command, all by name
    file: Path | None,
    *,
    as_json: bool = False,
    export: Path | None = None,
    picture: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    without: Sequence[str] = (),
    seeds: int | None = None,
    has_iteration: bool = False,
    limits: bool = False,
    radix: int | None = None,
    switch: str | None = None,
    oversubscription: str | None = None,
    user_code: bool = True,
) -> None:
    """Print the measures of a fabric, and write or draw it if asked.

    Parameters
    ----------
    file : a scenario, or a fabric as JSON or GraphML; None with ``limits`` for those of switches
    as_json : print one JSON object with units in the names
    export : also write the fabric; the name ends in .json, .graphml or .dot
    picture : also draw it; the name ends in .svg or .html
    overrides : keys of a scenario set from the command line
    without : names of what is lost (`weftwork.topology.lost_names`); what that means is printed instead of the measures
    seeds : of a random loss whose seed is not named; None: `weftwork.topology.random_loss.SEEDS`
    has_iteration : whether the job of the scenario is run with and without the loss
    limits : print where the fabric ends and what the next step takes instead of the measures
    radix, switch, oversubscription : with ``limits`` and no file, see `limits_of_switches`
    user_code : False refuses every Python file of the user's own that the scenario names

    Raises
    ------
    ConfigError : the file describes no fabric, a name ends in something else, a lost part does not exist, or options do
        not go together
    """
    with_file = {"--export": export, "--picture": picture, "--set": overrides, "--without": without,
                 "--seeds": seeds, "--iteration": has_iteration}  # fmt: skip
    with_none = {"--radix": radix, "--switch": switch, "--oversubscription": oversubscription}
    refuse_options(has_file=file is not None, limits=limits, with_file=with_file, with_none=with_none)
    if file is None:
        limits_of_switches(radix=radix, switch=switch, oversubscription=oversubscription, as_json=as_json)
        return
    asked = asked_loss(file, without, seeds=seeds, has_iteration=has_iteration)
    fabric = fabric_in(file, overrides, user_code=user_code)
    lost = find_lost(fabric, asked.certain)
    if export is not None:
        write_export(fabric, export)
    if picture is not None:
        draw(fabric, picture, lost_nodes=lost[0], lost_links=lost[1])
    out = console()
    if without:
        tell_loss(asked, fabric, file, out, as_json=as_json, overrides=overrides, user_code=user_code)
        if as_json:
            return
    elif limits:
        ends = fabric_limits(fabric, topology_in(file, overrides, user_code=user_code))
        if as_json:
            typer.echo(json.dumps(limits_record(fabric, ends), indent=2))
            return
        print_limits(out, fabric, ends)
    else:
        measures = measure(fabric)
        if as_json:
            typer.echo(json.dumps(record(fabric, measures), indent=2))
            return
        print_measures(out, fabric, measures)
    for path in (export, picture):
        if path is not None:
            out.print(f"wrote {path}", soft_wrap=True)


def fabric_in(file: Path, overrides: Mapping[str, str] | None = None, *, user_code: bool = True) -> Fabric:
    """The fabric of a scenario or a fabric file.

    Of a scenario's Python files only the topology is run.

    Raises
    ------
    ConfigError : with all reasons, and their lines where the file has lines
    """
    if file.suffix in FABRIC_FILES and not overrides:
        return fabric_of(file=file)
    from weftwork.study.prepare.prepare import fabric_of_scenario  # brings much that a fabric file does not need

    if file.suffix in FABRIC_FILES:  # a scenario on this fabric, whose keys are set
        given = {"fabric": {"file": file}, "traffic": {"pattern": "permutation"}}
        try:
            return fabric_of_scenario(given, overrides, user_code=user_code)
        except ConfigError as wrong:
            raise ConfigError(str(file), list(wrong.mistakes)) from wrong
    return fabric_of_scenario(file, overrides, user_code=user_code)


def topology_in(file: Path, overrides: Mapping[str, str] | None = None, *, user_code: bool = True) -> str | None:
    """Name or file of the topology that makes the fabric of a scenario; None for a fabric file.

    Raises
    ------
    ConfigError : as `fabric_in`
    """
    if file.suffix in FABRIC_FILES:
        return None
    from weftwork.study.prepare.prepare import topology_of_scenario  # as in fabric_in

    return topology_of_scenario(file, overrides, user_code=user_code)


def record(fabric: Fabric, measures: Measures) -> dict[str, Any]:
    """The measures and unverified values as JSON values."""
    hops = {"host_hops": asdict(host_hops(fabric))} if fabric.hosts_forward else {}
    return {
        "name": fabric.name,
        "tree": fabric.tree,
        "gpus": fabric.gpus,
        "servers": [{"count": count, **server.model_dump()} for server, count in _servers(fabric)],
        "pods": _pods(fabric),
        "rails": [group.tolist() for group in rails_of(fabric)],
        **asdict(reach(fabric)),
        **asdict(measures),
        **hops,
        "link_rates_bps": np.unique(fabric.links["rate_bps"]).tolist(),
        "link_delays_ps": np.unique(fabric.links["delay_ps"]).tolist(),
        "caveats": caveats_to_json(fabric.caveats),
    }


def print_measures(out: Console, fabric: Fabric, measures: Measures) -> None:
    """Print the measures as two tables, with unverified values below them."""
    words = tier_words(fabric)
    out.print(fabric.name, style="bold", markup=False)
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    tiers = ", ".join(f"{count:,} {words[tier][count > 1]}" for tier, count in measures.switches_by_tier.items())
    by_tier = measures.oversubscription_by_tier
    ratios = ", ".join(f"{words[tier][0]} {ratio_text(ratio)}" for tier, ratio in by_tier.items())
    flow = measures.bisection
    share = flow.rate_bps / flow.hosts_bps if flow.hosts_bps else 0.0
    if fabric.tree:
        table.add_row("tree", fabric.tree)
    table.add_row("hosts", f"{measures.hosts:,}")
    if (servers := _servers(fabric)) and any(server != Server() for server, _ in servers):
        for label, text in _server_lines(fabric, servers):
            table.add_row(label, text)
    table.add_row("switches", f"{measures.switches:,}" + (f" ({tiers})" if tiers else ""))
    table.add_row("links", f"{measures.host_links:,} to hosts, {measures.switch_links:,} between switches")
    table.add_row("link rates", ", ".join(format_quantity(RATE, rate) for rate in _span(fabric.links["rate_bps"])))
    table.add_row("link delays", ", ".join(format_quantity(DURATION, ps) for ps in _span(fabric.links["delay_ps"])))
    if not fabric.hosts_forward:  # the levels of a BCube are no tiers above another
        table.add_row("oversubscription", ratios or "none: no tier above another")
    table.add_row(
        "bisection", f"{format_quantity(RATE, flow.rate_bps)}, {share:.1%} of the sending rate of half of the hosts"
    )
    table.add_row("", f"({flow.method})")
    if (cut := measures.cut) is not None:
        where = f"across the middle of {cut.axis}" if cut.axis else "between the halves of the switches"
        table.add_row("designed cut", f"{plural(cut.links, 'link')} {where}, {format_quantity(RATE, cut.rate_bps)}")
    if (uniform := measures.uniform) is not None:
        limit = f"{uniform.dimension} links are the fullest"
        table.add_row("uniform traffic", f"{uniform.share:.1%} of the NIC rate over minimal paths: {limit}")
    hops = host_hops(fabric) if fabric.hosts_forward else None
    for label, text in [("diameter", plural(measures.diameter_hops, "hop"))] if hops is None else host_hop_rows(hops):
        table.add_row(label, text)
    out.print(table)
    out.print()
    out.print(_paths_table(measures) if hops is None else host_hops_table(hops))
    for text in _notes(measures) if hops is None else host_hop_notes(hops, measures.hosts):
        out.print(text, soft_wrap=True)
    for heading, kinds in _HEADINGS.items():
        told = [caveat for caveat in fabric.caveats.values() if caveat.kind in kinds]
        if told:
            out.print(f"\n{heading}:")
        for caveat in told:
            out.print(f"  {caveat.subject}  {caveat.text}", markup=False, soft_wrap=True)


def _servers(fabric: Fabric) -> list[tuple[Server, int]]:
    """The different servers, and the number of each."""
    index = [0] * len(fabric.hosts) if fabric.node_server is None else fabric.node_server[fabric.hosts].tolist()
    return [(fabric.servers[kind], count) for kind, count in sorted(Counter(index).items())]


def _pods(fabric: Fabric) -> int:
    """Number of pods; their numbers may have gaps."""
    return 0 if fabric.node_pod is None else len(np.unique(fabric.node_pod[fabric.node_pod >= 0]))


def _server_lines(fabric: Fabric, servers: Sequence[tuple[Server, int]]) -> list[tuple[str, str]]:
    """Rows about servers, GPUs, rails, pods and reachability."""
    lines = []
    for server, count in servers:
        parts = [f"{plural(server.gpus, 'GPU')}"]
        if server.nvlink_domain_gpus:
            domains = "one NVLink domain" if server.nvlink_domain_gpus == server.gpus else (
                f"NVLink domains of {server.nvlink_domain_gpus}")  # fmt: skip
            reduces = ", reduces in the switch" if server.nvls else ""
            parts.append(f"{domains} ({format_quantity(RATE, server.nvlink_rate_bps)} a GPU{reduces})")
        parts.append(plural(server.nic_ports, "NIC port"))
        lines.append(("servers", f"{count:,} x {server.name}: {', '.join(parts)}"))
    lines.append(("GPUs", f"{fabric.gpus:,}"))
    if fabric.hosts_forward:  # rails and networks are about paths over switches alone
        return lines
    found = reach(fabric)
    if len(rails := rails_of(fabric)) > 1:
        lines.append(("rails", f"{len(rails):,}: groups of NIC ports that share a leaf in every server"))
    if fabric.node_pod is not None:
        lines.append(("pods", f"{_pods(fabric):,}"))
    if found.networks > 1:
        lines.append(("networks", f"{found.networks:,} that no link joins"))
    if found.gpu_pairs_joined < found.gpu_pairs:
        share = found.gpu_pairs_joined / found.gpu_pairs
        text = f"{share:.2%} of the pairs of GPUs on different servers; others meet only through GPUs of their servers"
        lines.append(("reach each other", text))
    return lines


def _paths_table(measures: Measures) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("hops", "share of pairs", "shortest paths: least", "median", "most", "base RTT"):
        table.add_column(heading, justify="right")
    for row in measures.paths:
        slowest = f" to {format_quantity(DURATION, row.rtt_max_ps)}" if row.rtt_max_ps > row.rtt_min_ps else ""
        table.add_row(
            str(row.hops), f"{row.share:.2%}", f"{row.paths_min:,}", f"{row.paths_median:,.0f}", f"{row.paths_max:,}",
            format_quantity(DURATION, row.rtt_min_ps) + slowest,
        )  # fmt: skip
    return table


def _notes(measures: Measures) -> list[str]:
    """Lines below the table of paths."""
    lines = ["RTT: propagation, forwarding and receive latency there and back; no serialisation, no queue."]
    if measures.sample < measures.attachments:
        leaves = plural(measures.attachments, "leaf", "leaves")
        lines.insert(0, f"Paths to {measures.sample:,} of {leaves}, evenly spaced.")
    return lines


def _span(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    """All different values if they are few, else the least and the most."""
    different: list[int] = np.unique(values).tolist()
    return different if len(different) <= 4 else [different[0], different[-1]]

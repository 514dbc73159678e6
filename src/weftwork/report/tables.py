"""Tables about a run, made from its folder by SQL.

The busiest links, which every answer shows, are made without: DuckDB takes a tenth of a second to import.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.report.words import amount

if TYPE_CHECKING:
    import pyarrow as pa

    from weftwork.store.runs import Run

__all__ = ["SIZE_BINS", "busiest_groups", "busiest_links", "drops_by_reason", "flows_by_size", "pausing_ports"]

# chosen: the bins of most papers on flow completion times; upper ends in bytes
SIZE_BINS: Final = (10_000, 100_000, 1_000_000, 10_000_000)
_READ: Final = 1_000  # chosen: links among which those alike are counted; fewer than a run keeps
_LABELS: Final = ("up to 10 kB", "10 to 100 kB", "100 kB to 1 MB", "1 to 10 MB", "over 10 MB")


def flows_by_size(run: Run) -> pa.Table:
    """Completion time and slowdown of completed flows, by size.

    Returns
    -------
    one row per bin with flows: ``size``, ``flows``, ``fct_p50_ps``, ``fct_p95_ps``, ``fct_p99_ps``, ``fct_p999_ps``,
    the same four of ``slowdown``, and ``goodput_mean_bps``; percentiles are linear between the two nearest flows
    """
    cases = " ".join(f"when size_bytes <= {top} then {place}" for place, top in enumerate(SIZE_BINS))
    labels = " ".join(f"when {place} then '{label}'" for place, label in enumerate(_LABELS))
    quantiles = ", ".join(
        f"quantile_cont({column}, {share}) as {name}"
        for column, prefix, suffix in (("fct_ps", "fct", "_ps"), ("slowdown", "slowdown", ""))
        for share, name in (
            (0.5, f"{prefix}_p50{suffix}"),
            (0.95, f"{prefix}_p95{suffix}"),
            (0.99, f"{prefix}_p99{suffix}"),
            (0.999, f"{prefix}_p999{suffix}"),
        )
    )
    sql = f"""
        with binned as (select *, case {cases} else {len(SIZE_BINS)} end as bin from flows where fct_ps is not null)
        select case bin {labels} end as size, count(*) as flows, {quantiles}, avg(goodput_bps) as goodput_mean_bps
        from binned group by bin order by bin
        """  # noqa: S608 - from constants
    return run.query(sql)


def busiest_links(run: Run, top: int = 5) -> list[dict[str, Any]]:
    """The most used directions of links that carried something, by their use and then by their port.

    Returns
    -------
    ``name``, ``utilisation``, ``mean_rate_bps``, ``max_queue_bytes``, ``marks``, ``drops`` of each
    """
    links = run.links
    order = np.lexsort((links["port"].to_numpy(), -links["utilisation"].to_numpy()))
    busiest = order[links["bytes"].to_numpy()[order] > 0][:top].tolist()
    names = ("name", "utilisation", "mean_rate_bps", "max_queue_bytes", "marks", "drops")
    return [{name: links[name][place].as_py() for name in names} for place in busiest]


def busiest_groups(run: Run, top: int) -> list[dict[str, str]]:
    """The most used directions of links, equal ones in one row.

    Parameters
    ----------
    run : of one seed
    top : how many rows at most

    Returns
    -------
    ``name`` of the first, ``names`` with how many are like it, and ``rate``, ``use``, ``queue``, ``marks``, ``drops``
    as people read them
    """
    rows = [
        {
            "name": row["name"],
            "rate": amount(row["mean_rate_bps"], "b/s"),
            "use": amount(row["utilisation"], "share"),
            "queue": amount(row["max_queue_bytes"], "B"),
            "marks": f"{row['marks']:,}",
            "drops": f"{row['drops']:,}",
        }
        for row in busiest_links(run, _READ)
    ]
    groups = [list(alike) for _, alike in groupby(rows, key=lambda row: [*row.values()][1:])]
    found: list[dict[str, str]] = []
    for first, *others in groups[:top]:
        count = f"{len(others):,} " if len(rows) < _READ or len(found) + 1 < len(groups) else "others "
        found.append({**first, "names": f"{first['name']} and {count}like it" if others else first["name"]})
    return found


def pausing_ports(run: Run, top: int = 5) -> pa.Table:
    """Ports that were paused longest.

    Columns: ``name``, ``paused_ps``, and ``pauses``, the frames that asked for a pause.
    """
    table = run.query(
        "select paused.name, paused.paused_ps, asking.pauses_sent as pauses from links paused "
        "join links asking on asking.link = paused.link and asking.port <> paused.port "
        "where paused.paused_ps > 0 order by paused.paused_ps desc, paused.port"
    )
    return table.slice(0, top)


def drops_by_reason(run: Run) -> pa.Table:
    """Packets lost, by reason: ``reason``, ``packets``.

    The counts are from the totals, since rows with an instant repeat them.
    """
    return run.query(
        "select replace(detail, '_', ' ') as reason, sum(count)::bigint as packets from events "
        "where event = 'drop' and at_ps is null group by detail order by packets desc, reason"
    )

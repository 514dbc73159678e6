"""Rows that the keys of several trees share.

Each key has one text, one range and one source.
Leaves out: keys of one name that mean something else elsewhere, which stand beside their tree.
"""

from __future__ import annotations

from typing import Any

from weftwork.spec.plug_in import RatesByTier, Ratio, Whole, row

__all__ = ["links_per_pair", "oversubscription", "uplink_rate"]


def links_per_pair() -> Any:  # noqa: ANN401 - as `row`
    """Parallel links between a leaf and a spine."""
    return row(
        "links_per_pair",
        Whole(low=1, high=1_024, unit="links"),
        absent="1 if spines are given, else derived",
        text="Parallel links between a leaf and a spine.",
        source="chosen: derived",
    )


def oversubscription() -> Any:  # noqa: ANN401 - as `row`
    """The ratio of leaves, or of leaves and spines."""
    return row(
        "oversubscription",
        Ratio(tiers=("leaf", "spine")),
        absent="1:1, non-blocking, unless the counts of switches say otherwise",
        text="Bandwidth of a switch's links down divided by that of its links up: of the leaves, such as 2:1, or by"
        " tier, such as {leaf: 2:1, spine: 1.5:1} with cores above the spines. The groups of hosts become equal.",
        source="Alizadeh and Edsall, HotI 2013, doi:10.1109/HOTI.2013.23",
    )


def uplink_rate(tiers: tuple[str, ...]) -> Any:  # noqa: ANN401 - as `row`
    """Rates of the links upwards from the named tiers."""
    return row(
        "uplink_rate",
        RatesByTier(tiers=tiers),
        absent="fabric_rate",
        text="Rate of the links upwards from a tier, if it differs from `fabric_rate`.",
        source="chosen: one speed everywhere",
    )

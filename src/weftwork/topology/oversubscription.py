"""Oversubscription: wanted ratios by tier, equal groups, and real ratios.

The oversubscription of a switch is the bandwidth of its links down divided by that of its links up; of a tier it is
that of its worst switch (Alizadeh and Edsall, Hot Interconnects 2013, doi:10.1109/HOTI.2013.23).
Leaves out: the shapes, which decide how many links there are (`weftwork.topology.shapes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.fabric import HOST, Fabric

__all__ = [
    "Split",
    "Wanted",
    "end_to_end",
    "equal_groups",
    "exact_ratio",
    "most_cables",
    "nearest_sizes",
    "oversubscription_by_tier",
    "oversubscription_text",
    "ratio_of",
    "ratio_text",
    "wanted_ratio",
]

Wanted = float | Fraction | Mapping[str, float] | None  # of the leaves, or by tier; None: nobody asks

MOST_GROUPS = 2  # chosen: more than twice the leaves of the fewest is another fabric than the one that was asked for


def exact_ratio(value: float | Fraction) -> Fraction:
    """The ratio of small whole numbers nearest to a number.

    1.1 is 11/10, not its binary neighbour.
    """
    return Fraction(value).limit_denominator(1000)


def wanted_ratio(wanted: Wanted, tier: str) -> Fraction | None:
    """The wanted ratio of a tier; a single number is for leaves.

    Examples
    --------
    >>> wanted_ratio(2, "leaf"), wanted_ratio(2, "spine"), wanted_ratio({"spine": 1.5}, "spine")
    (Fraction(2, 1), None, Fraction(3, 2))
    """
    if isinstance(wanted, Mapping):
        return None if tier not in wanted else exact_ratio(wanted[tier])
    return None if wanted is None or tier != "leaf" else exact_ratio(wanted)


def ratio_text(ratio: float | Fraction) -> str:
    """A ratio as people write it.

    Examples
    --------
    >>> ratio_text(2), ratio_text(1.5), ratio_text(Fraction(64, 43))
    ('2:1', '1.5:1', '64:43')
    """
    value = exact_ratio(ratio)
    is_short = (value * 100).denominator == 1
    return f"{float(value):g}:1" if is_short else f"{value.numerator}:{value.denominator}"


def ratio_of(text: str) -> float:
    """The number of a ratio on the command line; 0 for no ratio.

    Examples
    --------
    >>> ratio_of("3:2"), ratio_of("1.5"), ratio_of("1:0"), ratio_of("many")
    (1.5, 1.5, 0.0, 0.0)
    """
    over, _, under = text.partition(":")
    try:
        return float(over) / float(under or 1)
    except (ValueError, ZeroDivisionError):
        return 0.0


def equal_groups(total: int, fitting: Sequence[int]) -> int | None:
    """The largest size that divides a total.

    A size is not taken if it makes more than twice as many groups as are needed.

    Parameters
    ----------
    total : hosts to be grouped
    fitting : sizes of a group that have the ratio and fit a switch, ascending

    Examples
    --------
    >>> equal_groups(256, range(2, 85, 2)), equal_groups(254, range(2, 85, 2))
    (64, None)
    """
    if not fitting:
        return None
    size = max((count for count in fitting if total % count == 0), default=None)
    fewest = -(-total // min(fitting[-1], total))
    return size if size is not None and total // size <= MOST_GROUPS * fewest else None


def most_cables(links: int, groups: int, ports: int) -> int:
    """The most parallel links between two switches.

    Links of a group then spread over the fewest switches above.

    Parameters
    ----------
    links : up from a switch, which its cables to each switch above must divide
    groups : switches below each switch above
    ports : of a switch above; 0: any number

    Returns
    -------
    links of a pair; 0 where the ports are fewer than the groups

    Examples
    --------
    >>> most_cables(32, 16, 64), most_cables(32, 22, 64), most_cables(32, 65, 64)
    (4, 2, 0)
    """
    most = min(links, ports // groups) if ports else links
    return next((count for count in range(most, 0, -1) if links % count == 0), 0)


def nearest_sizes(total: int, fitting: Sequence[int]) -> list[int]:
    """The next smaller and larger total that makes equal groups.

    The smaller is None if there is none.
    """
    if not fitting:
        return []
    reach = fitting[-1]  # every multiple of the largest size will do
    below = (size for size in range(total - 1, max(0, total - reach - 1), -1))
    above = (size for size in range(total + 1, total + reach + 1))
    return [size for sizes in (below, above)
            if (size := next((one for one in sizes if equal_groups(one, fitting)), 0))]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """Split of a leaf's ports between hosts and uplinks.

    Parameters
    ----------
    hosts : to be grouped, one group under a leaf or, on rails, under one leaf for each rail
    ports : of a leaf; 0: any number
    each : ports of a leaf that a host takes
    speed : bandwidth of those over that of one uplink
    what : the groups are called
    gpus : of a host
    """

    hosts: int
    ports: int
    each: int
    speed: Fraction
    what: str
    gpus: int = 1

    def uplinks(self, count: int, ratio: Fraction) -> int:
        """Uplinks of a leaf with a number of hosts.

        They have the ratio within 0.1 %; else they are the fewest below the ratio.
        """
        exact = count * self.speed / ratio
        return max(1, round(exact) if self._has(count, ratio) else math.ceil(exact))

    def fits(self, count: int, uplinks: int) -> bool:
        """Whether a leaf has ports for these hosts and uplinks."""
        return not self.ports or count * self.each + uplinks <= self.ports

    def most_at_most(self, ratio: Fraction) -> int:
        """The most hosts of a leaf at exactly a ratio, or below it.

        Raises
        ------
        ConfigError : not even one host fits
        """
        fitting = self._fitting(ratio)
        exact = [count for count in fitting if (count * self.speed / ratio).denominator == 1]
        return max(exact or fitting)

    def equal(self, ratio: Fraction) -> int:
        """The most hosts of a leaf at a ratio, in equal groups.

        Raises
        ------
        ConfigError : there are none; with the sizes next to this one that have them, and the ratios next to this one
        """
        fitting = [count for count in self._fitting(ratio) if self._has(count, ratio)]
        size = equal_groups(self.hosts, fitting)
        if size is not None:
            return size
        if not fitting:
            text = f"found {ratio_text(ratio)}, which no split of the {plural(self.ports, 'port')} of a leaf has"
        else:
            text = (
                f"found {ratio_text(ratio)}, but {self._sized([self.hosts])} do not divide into equal {self.what} of at"
                f" most {fitting[-1]:,} with this ratio; the nearest possible sizes are"
                f" {self._sized(nearest_sizes(self.hosts, fitting))}"
            )
        if others := self._ratios_beside(ratio):
            text += f"; the nearest possible ratios are {' and '.join(ratio_text(other) for other in others)}"
        raise ConfigError("fabric", [Mistake(path="fabric.oversubscription", text=text)])

    def equal_of(self, count: int, ratio: Fraction) -> int:
        """A given number of hosts of a leaf.

        Raises
        ------
        ConfigError : see `unequal`
        """
        if (text := self.unequal(count, ratio)) is not None:
            raise ConfigError("fabric", [Mistake(path="fabric.oversubscription", text=text)])
        return count

    def unequal(self, count: int, ratio: Fraction) -> str | None:
        """Why groups of a size are unequal or miss the ratio, or None."""
        if not self._has(count, ratio):
            exact = count * self.speed / ratio
            around = sorted({count * self.speed / max(1, up) for up in (math.floor(exact), math.ceil(exact))})
            return (
                f"found {ratio_text(ratio)}, which gives a leaf of {plural(count, 'host')} "
                f"{plural(float(exact), 'uplink', shown=f'{float(exact):g}')}; a whole number of uplinks makes "
                f"{' or '.join(ratio_text(other) for other in around)}"
            )
        if self.hosts % count:
            near = [size for size in (self.hosts // count * count, -(-self.hosts // count) * count) if size]
            return (
                f"found {ratio_text(ratio)}, but {self._sized([self.hosts])} do not divide into equal {self.what} of"
                f" {count:,}; {self._sized(near)} do"
            )
        return None

    def _has(self, count: int, ratio: Fraction) -> bool:
        uplinks = round(count * self.speed / ratio)
        return uplinks > 0 and abs(count * self.speed / uplinks - ratio) <= ratio / 1000

    def _fitting(self, ratio: Fraction) -> list[int]:
        """Numbers of hosts for which a leaf has enough ports."""
        fitting = [count for count in range(1, self.ports // self.each + 1)
                   if self.fits(count, self.uplinks(count, ratio))]  # fmt: skip
        if not fitting:
            host = "host" if self.gpus == 1 else "server"
            text = (
                f"found {float(ratio):g}: one {host} and its uplinks need more than the "
                f"{plural(self.ports, 'port')} of a leaf"
            )
            raise ConfigError("fabric", [Mistake(path="fabric.oversubscription", text=text)])
        return fitting

    def _ratios_beside(self, ratio: Fraction) -> list[Fraction]:
        """The nearest ratios to a wanted ratio with equal groups of hosts.

        The smaller comes first.
        """
        size = equal_groups(self.hosts, self._fitting(ratio))
        if size is None:
            return []
        exact = size * self.speed / ratio
        return sorted({size * self.speed / up for up in (max(1, math.floor(exact)), math.ceil(exact))
                       if self.fits(size, up)})  # fmt: skip

    def _sized(self, sizes: Sequence[int]) -> str:
        """Numbers of hosts in words, with GPUs if there are more GPUs."""
        *few, most = sizes
        words = [f"{size:,}" for size in few]
        if self.gpus == 1:
            return " or ".join([*words, plural(most, "host")])
        gpus = " or ".join([*(f"{size * self.gpus:,}" for size in few), plural(most * self.gpus, "GPU")])
        return f"{' or '.join([*words, plural(most, 'server')])} ({gpus})"


def oversubscription_by_tier(fabric: Fabric) -> dict[int, float]:
    """Bandwidth down divided by bandwidth up, by tier.

    It is the largest of any switch of the tier that has links up.
    """
    nodes, tier = len(fabric.node_names), fabric.node_tier
    links = fabric.links[tier[fabric.links["a"]] != tier[fabric.links["b"]]]  # those within a tier count for neither
    is_a_lower = tier[links["a"]] < tier[links["b"]]
    up_bps = np.bincount(np.where(is_a_lower, links["a"], links["b"]), links["rate_bps"], minlength=nodes)
    down_bps = np.bincount(np.where(is_a_lower, links["b"], links["a"]), links["rate_bps"], minlength=nodes)
    counts = (fabric.node_kind != HOST) & (up_bps > 0)
    ratio = down_bps[counts] / up_bps[counts]
    return {level: float(ratio[tier[counts] == level].max()) for level in np.unique(tier[counts]).tolist()}


def end_to_end(by_tier: Mapping[int, float]) -> float:
    """Host bandwidth over top-tier bandwidth: the product of all tiers.

    It is 1 with a single tier.
    """
    return math.prod(by_tier.values())


def oversubscription_text(fabric: Fabric) -> str:
    """The ratio of a fabric in words, such as ``oversubscription 2:1``.

    Tiers have separate ratios if they differ. Empty where no tier is above another.
    """
    by_tier = oversubscription_by_tier(fabric)
    texts = {tier: ratio_text(ratio) for tier, ratio in by_tier.items()}
    if len(set(texts.values())) <= 1:
        return "".join(f"oversubscription {text}" for text in set(texts.values()))
    return "oversubscription " + ", ".join(f"{_word(fabric, tier)} {text}" for tier, text in texts.items())


def _word(fabric: Fabric, tier: int) -> str:
    """Name of a tier's switches, such as ``leaf``.

    It is the name of the first switch before its number.
    """
    first = int(np.flatnonzero((fabric.node_tier == tier) & (fabric.node_kind != HOST))[0])
    stem = fabric.node_names[first].rstrip("0123456789")
    return stem if stem.isalpha() else f"tier {tier}"

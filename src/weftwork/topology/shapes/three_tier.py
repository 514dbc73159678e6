"""Three tiers with convergence: access, aggregation and core switches.

They are oversubscribed at each tier. Access switches of a block hang on the same few aggregation switches (two, as a
redundant pair), and these on cores of their own. What a server gets across the core is its rate over the product of the
ratios.
Source: the classic data-centre tree, as in Al-Fares, Loukissas and Vahdat, SIGCOMM 2008,
doi:10.1145/1402958.1402967, section 2.1.
Leaves out: links between the switches of a pair, and spanning trees: all links carry traffic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.device import Record
from weftwork.spec.plug_in import DesignSpace, Findings, Ground, Parts, Ratio, Whole, row
from weftwork.topology import tree_rows
from weftwork.topology.oversubscription import equal_groups, nearest_sizes, ratio_text, wanted_ratio
from weftwork.topology.pgft import Pgft, Tier
from weftwork.topology.tree_topology import tree_topology

__all__ = ["TOPOLOGY"]

TIERS: Final = ("access", "aggregation")  # those that have another above them
SOURCE: Final = "Al-Fares et al., SIGCOMM 2008, doi:10.1145/1402958.1402967, section 2.1"


class Keys(Record):
    """The keys of a tree of access, aggregation and core."""

    hosts_per_access: int | None = row(
        "hosts_per_access",
        Whole(low=1, high=1_024, unit="servers"),
        absent="as many as the ports and the oversubscription allow",
        text="Servers below an access switch.",
        source="chosen: derived",
    )
    access_per_block: int | None = row(
        "access_per_block",
        Whole(low=1, high=1_024, unit="switches"),
        absent="as many as the ports and the oversubscription allow",
        text="Access switches below the same aggregation switches.",
        source="chosen: derived",
    )
    redundancy: int = row(
        "redundancy",
        Whole(low=1, high=64, unit="switches"),
        default=2,
        text="Aggregation switches of an access switch, and cores of an aggregation switch.",
        source=f"{SOURCE}: pairs",
    )
    oversubscription: float | dict[str, float] | None = row(
        "oversubscription",
        Ratio(tiers=TIERS),
        absent="1:1 at both tiers, non-blocking",
        text="Bandwidth of a switch's links down divided by that of its links up: of the access switches, or by tier,"
        " such as {access: 3:1, aggregation: 4:1}. The groups of servers become equal.",
        source=SOURCE,
    )
    uplink_rate_bps: dict[str, int] | None = tree_rows.uplink_rate(TIERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Split:
    """Split of ports between groups below and links above.

    ``each``: links of a group; ``speed``: rate of a link down over that of one up; ``ways``: switches above.
    """

    ports: int
    each: int
    speed: Fraction
    ratio: Fraction
    ways: int

    def uplinks(self, count: int) -> int | None:
        """Links up for a number of groups; None if impossible.

        There are equally many to each switch above. None if no number has the ratio or fits.
        """
        exact = count * self.each * self.speed / self.ratio
        if exact.denominator != 1 or exact % self.ways:
            return None
        up = int(exact)
        return up if not self.ports or count * self.each + up <= self.ports else None

    def fitting(self, most: int) -> list[int]:
        """Numbers of groups with the wanted ratio, ascending."""
        limit = min(most, self.ports // self.each) if self.ports else most
        return [count for count in range(1, limit + 1) if self.uplinks(count)]


def _wrong(key: str, text: str, fix: str | None = None) -> ConfigError:
    return ConfigError("fabric", [Mistake(path=f"fabric.{key}", text=text, fix=fix)])


def _groups(split: _Split, total: int, given: int | None, key: str, *, what: str, is_asked: bool) -> tuple[int, int]:
    """Groups below a switch and its links up.

    They are given, or else the most; groups are equal if a ratio is wanted.
    """
    if given is not None:
        up = split.uplinks(given)
        if up is None:
            near = ", ".join(f"{one:,}" for one in split.fitting(max(total, given))[-3:])
            text = f"found {given}, which has no whole number of links at {ratio_text(split.ratio)} to each of"
            raise _wrong(
                key,
                f"{text} {plural(split.ways, 'switch', 'switches')} above, within the ports; {near or 'nothing'} "
                "would do",
            )
        return given, up
    fitting: Sequence[int] = split.fitting(total)
    size = equal_groups(total, fitting) if is_asked else max(fitting, default=None)
    if size is None:
        text = f"found {ratio_text(split.ratio)}, which "
        if fitting:
            near = " or ".join(f"{one:,}" for one in nearest_sizes(total, fitting))
            text += f"{total:,} {what} in equal groups of at most {max(fitting):,} do not have; {near} {what} do"
        else:
            above = plural(split.ways, "switch", "switches")
            text += f"no split of the {plural(split.ports, 'port')} of a switch has, with {above} above"
        raise _wrong("oversubscription", text)
    return size, split.uplinks(size) or 0


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    if ground.hosts is None and found.is_sound("hosts", "gpus"):
        found.wrong("gpus", "missing: give gpus (or hosts, the servers)")
    counted = keys.hosts_per_access is not None and keys.access_per_block is not None
    if not ground.has_ports and not counted and found.is_sound("radix"):
        text = "missing: give the ports of a switch, or hosts_per_access and access_per_block"
        found.wrong("radix", text)
    return keys, ground.hosts


def _ratio(keys: Keys, tier: str) -> Fraction:
    wanted = keys.oversubscription
    by_tier = wanted if isinstance(wanted, dict) or wanted is None else {TIERS[0]: wanted}
    return wanted_ratio(by_tier, tier) or Fraction(1)


def _tree(keys: Keys, parts: Parts) -> Pgft:
    servers, rates, ways = parts.hosts or 0, keys.uplink_rate_bps or {}, keys.redundancy
    access_bps, core_bps = (rates.get(tier, parts.fabric_rate_bps) for tier in TIERS)
    is_asked = keys.oversubscription is not None
    each = parts.server.nic_ports
    access = _Split(
        ports=parts.ports, each=each, speed=Fraction(parts.host_rate_bps, access_bps), ratio=_ratio(keys, "access"),
        ways=ways,
    )  # fmt: skip
    per_access, up = _groups(
        access, servers, keys.hosts_per_access, "hosts_per_access", what="servers", is_asked=is_asked
    )
    switches = -(-servers // per_access)
    middle = _Split(
        ports=parts.ports, each=up // ways, speed=Fraction(access_bps, core_bps), ratio=_ratio(keys, "aggregation"),
        ways=ways,
    )  # fmt: skip
    per_block, above = _groups(
        middle, switches, keys.access_per_block, "access_per_block", what="access switches", is_asked=is_asked
    )
    blocks = -(-switches // per_block)
    if parts.ports and blocks * (above // ways) > parts.ports:
        room = parts.ports // (above // ways) * per_block * per_access
        text = (
            f"{plural(servers, 'server needs', 'servers need')} {plural(blocks, 'block')}, but the "
            f"{plural(parts.ports, 'port')} of a core join {plural(room, 'server')}"
        )
        raise _wrong("hosts", f"{text}; more redundancy, larger switches or a higher ratio of 'aggregation' join more")
    return Pgft(
        servers=servers,
        server=parts.server,
        per_leaf=per_access,
        pods=switches,
        leaf_word="access",
        tiers=(
            Tier(word="aggregation", children=per_block, parents=ways, cables=up // ways, rate_bps=access_bps),
            Tier(word="core", children=blocks, parents=ways, cables=above // ways, rate_bps=core_bps),
        ),
        host_rate_bps=parts.host_rate_bps,
    )


def _name(tree: Pgft) -> str:
    ratios = " and ".join(ratio_text(ratio) for ratio in tree.oversubscription())
    return f"three-tier, {plural(tree.pods, 'access switch', 'access switches')}, {ratios}"


TOPOLOGY: Final = tree_topology(
    keys=Keys,
    resolve=_resolve,
    tree=_tree,
    name=_name,
    has_pods=False,
    design=DesignSpace(ratio_tiers=("access", "aggregation"), order=6),
    source=SOURCE,
)

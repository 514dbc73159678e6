"""Number of switches for rails: pods, spines, blocks and cores.

They follow from servers, ports and ratios.
Source: docs.nvidia.com/networking, InfiniBand Cluster Bring-up Procedure v1.0; docs.nvidia.com, Enterprise Reference
Architectures, HGX AI Factory (rail-optimized leaf-spine); Wang et al., Hot Interconnects 2024, arXiv:2307.12169
(rail-only); Qian et al., SIGCOMM 2024, doi:10.1145/3651890.3672265 (planes).
Leaves out: pods of different sizes, except that the last may be filled in part where nobody asks for a ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.device import Server
from weftwork.spec.rails import rail_mistakes
from weftwork.topology.oversubscription import (
    Split,
    Wanted,
    equal_groups,
    most_cables,
    nearest_sizes,
    ratio_text,
    wanted_ratio,
)

__all__ = ["RailCounts", "rail_counts", "wrong_pods"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RailCounts:
    """The shape of a rail-optimized fabric.

    Attributes
    ----------
    servers, pods, nodes_per_pod : the last pod may be filled in part
    rails, planes : leaves of a pod are rails x planes
    rail_only : whether every rail is a network of its own
    spines : of a network (a plane, or a rail of it), and of one of its blocks where there are cores; 0: none
    links_per_pair : between a leaf and a spine
    pods_per_block : pods whose leaves share spines
    cores : that join spine j of all blocks of a network; 0: two tiers
    links_per_core : between a spine and a core
    oversubscription : bandwidth of a leaf down divided by up; 0 where there are no spines
    """

    servers: int
    pods: int
    nodes_per_pod: int
    rails: int
    planes: int
    rail_only: bool
    spines: int
    links_per_pair: int
    pods_per_block: int
    cores: int
    links_per_core: int
    oversubscription: Fraction

    @property
    def networks(self) -> int:
        """Number of sets of switches that no link joins."""
        return self.planes * (self.rails if self.rail_only else 1)

    @property
    def blocks(self) -> int:
        """Groups of pods that share spines."""
        return -(-self.pods // self.pods_per_block)

    @property
    def switches(self) -> int:
        """Leaves, spines and cores."""
        spines = self.networks * self.blocks * self.spines
        return self.planes * self.pods * self.rails + spines + self.networks * self.spines * self.cores


def rail_counts(  # noqa: PLR0913 - the parameters of a shape, all by name
    *,
    servers: int,
    server: Server,
    rails: int,
    planes: int = 1,
    radix: int = 0,
    oversubscription: Wanted = None,
    host_rate_bps: int = 1,
    fabric_rate_bps: int = 1,
    core_rate_bps: int | None = None,
    pods: int | None = None,
    nodes_per_pod: int | None = None,
    spines: int | None = None,
    links_per_pair: int | None = None,
    rail_only: bool = False,
    tiers: int | None = None,
) -> RailCounts:
    """Derive a shape; given values are kept.

    The rest follows from the ports of a switch and the oversubscription. At a ratio that is asked for, pods are equal:
    each gets the most servers that divide and for which a leaf has ports at exactly that ratio. Without one, a pod gets
    as many servers as a leaf has ports for without blocking, and the last what is left. Then the fewest spines that
    carry all uplinks are taken. Where the leaves are more than a spine has ports, blocks of pods have spines of their
    own, and cores join the blocks, without oversubscription unless a ratio is asked for of the spines; then blocks are
    equal, too.

    Parameters
    ----------
    servers, server : how many of which
    rails, planes : see `weftwork.spec.rails`
    radix : ports of every switch; 0: any number, and then pods and spines must be given
    oversubscription : bandwidth down divided by up, above 0, of the leaves, or by tier (``leaf``, ``spine``); by
        default 1, or what the given spines make
    host_rate_bps, fabric_rate_bps : of the links to servers and of those between switches
    core_rate_bps : of the links between spines and cores, where it differs
    pods, nodes_per_pod, spines, links_per_pair : given instead of derived; 0 spines: nothing joins the leaves
    rail_only : each rail has spines of its own
    tiers : 2 or 3; by default 2 where they suffice

    Raises
    ------
    ConfigError : the ports do not suffice, no equal pods have the ratio, or what is given contradicts itself

    Examples
    --------
    >>> dgx = Server(gpus=8, nic_ports=8)
    >>> unit = rail_counts(servers=127, server=dgx, rails=8, radix=64)
    >>> unit.pods, unit.nodes_per_pod, unit.spines, unit.switches
    (4, 32, 16, 48)
    """
    wrong = [Mistake(path=f"fabric.{key}", text=text, fix=fix)
             for key, text, fix in rail_mistakes(server, rails=rails, planes=planes)]  # fmt: skip
    if wrong:
        raise ConfigError("fabric", wrong)
    width = server.nic_ports // (planes * rails)  # ports of a server on one leaf
    speed = Fraction(host_rate_bps, fabric_rate_bps)
    asked, asked_of_spines = (_asked(oversubscription, tier) for tier in ("leaf", "spine"))
    if not radix and (spines is None or (pods is None and nodes_per_pod is None)):
        raise _refusal(
            "radix", "is needed: 'plain' switches have any number of ports; give the radix, a switch of the catalogue,"
            " or pods and spines"
        )  # fmt: skip
    if links_per_pair is not None and spines is None:
        raise _refusal("links_per_pair", "follows from the uplinks of a leaf; give it together with spines")
    alone = spines == 0 or (
        spines is None and (rail_only or rails == 1) and servers * width <= (radix or servers * width)
    )
    split = Split(hosts=servers, ports=radix, each=width, speed=width * speed, what="pods", gpus=server.gpus)
    if alone and pods is None and nodes_per_pod is None:
        per_pod = servers
    else:
        per_pod = _per_pod(split, asked, pods, nodes_per_pod, has_spines=bool(spines))
    if spines is not None and spines > 0 and pods is None and nodes_per_pod is None:
        room = (radix - spines * (links_per_pair or 1)) // width
        if room < 1:
            raise _refusal("spines", f"found {spines}, which leaves no port of {radix} for a server")
        per_pod = min(per_pod, room)
    found = -(-servers // per_pod)
    if pods is not None and pods != found:
        raise _refusal("pods", *wrong_pods(pods, servers, per_pod, found))
    leaves = found * (1 if rail_only or spines == 0 else rails)
    if spines == 0 or (spines is None and leaves == 1):
        if oversubscription is not None:
            raise _refusal("oversubscription", "found a ratio, but nothing is above these leaves; leave it out")
        return _without_spines(servers, found, per_pod, rails, planes, width, radix, is_rail_only=rails > 1)
    uplinks = split.uplinks(per_pod, asked or Fraction(1)) if spines is None else spines * (links_per_pair or 1)
    actual = per_pod * width * speed / uplinks
    if spines is not None and asked is not None:
        _agree(split, per_pod, asked, actual)
    if radix and per_pod * width + uplinks > radix:
        raise _refusal(
            "nodes_per_pod",
            f"{plural(per_pod, 'server')} with {plural(width, 'port')} each and {plural(uplinks, 'uplink')} need"
            f" {plural(per_pod * width + uplinks, 'port')} of a leaf, wanted at most {radix}",
        )
    common = {"servers": servers, "pods": found, "nodes_per_pod": per_pod, "rails": rails, "planes": planes}
    lower = _Lower(
        leaves=leaves, uplinks=uplinks, per_pair=links_per_pair if spines is not None else 0, radix=radix,
        core_speed=Fraction(fabric_rate_bps, core_rate_bps or fabric_rate_bps),
    )  # fmt: skip
    if tiers == 2 or (tiers is None and (not radix or leaves * max(1, lower.per_pair or 1) <= radix)):
        per_pair = _per_pair(lower, leaves, radix, spines)
        if asked_of_spines is not None:
            text = "found a ratio of 'spine', but these spines have nothing above them; leave it out, or give tiers: 3"
            raise _refusal("oversubscription", text)
        return RailCounts(
            **common, rail_only=rail_only, spines=uplinks // per_pair, links_per_pair=per_pair, pods_per_block=found,
            cores=0, links_per_core=0, oversubscription=actual,
        )  # fmt: skip
    return _three_tiers(lower, common, spines, actual, asked_of_spines, rail_only=rail_only)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lower:
    """Lower part of a shape: leaves, uplinks, links per pair, ports.

    Leaves are those of a network, uplinks those of each leaf. Links of a pair are 0 if they are derived; ports of a
    switch are 0 for any number. ``core_speed`` is the rate of a link below the spines over that of one above.
    """

    leaves: int
    uplinks: int
    per_pair: int | None
    radix: int
    core_speed: Fraction


def _refusal(key: str, text: str, fix: str | None = None) -> ConfigError:
    return ConfigError("fabric", [Mistake(path=f"fabric.{key}", text=text, fix=fix)])


def wrong_pods(pods: int, servers: int, per_pod: int, wanted: int) -> tuple[str, str]:
    """Text and fix for a number of pods that the servers do not fill."""
    return f"found {pods:,}, but {plural(servers, 'server')} in pods of {per_pod:,} make {wanted:,}", str(wanted)


def _asked(oversubscription: Wanted, tier: str) -> Fraction | None:
    ratio = wanted_ratio(oversubscription, tier)
    if ratio is not None and ratio <= 0:
        raise _refusal("oversubscription", f"found {float(ratio):g}, wanted more than 0")
    return ratio


def _agree(split: Split, per_pod: int, asked: Fraction, actual: Fraction) -> None:
    """Refuse a ratio that the given spines contradict, and unequal pods."""
    if abs(actual - asked) > asked / 1000:
        text = f"found {ratio_text(asked)}, but spines and links_per_pair make {ratio_text(actual)}; leave it out"
        raise _refusal("oversubscription", text)
    split.equal_of(per_pod, asked)


def _per_pod(
    split: Split, asked: Fraction | None, pods: int | None, wanted: int | None, *, has_spines: bool
) -> int:  # fmt: skip
    """Servers of a pod: as given, or the most at the wanted ratio.

    Pods are equal unless given spines make the ratio.
    """
    if wanted is None and pods is None:
        if asked is None or has_spines:
            return min(split.most_at_most(asked or Fraction(1)), split.hosts)
        return split.equal(asked)
    count = min(wanted, split.hosts) if wanted is not None else -(-split.hosts // (pods or 1))
    return count if asked is None or has_spines else split.equal_of(count, asked)


def _without_spines(
    servers: int, pods: int, per_pod: int, rails: int, planes: int, width: int, radix: int, *, is_rail_only: bool
) -> RailCounts:
    if pods > 1:
        text = f"found 0, but the servers are in {plural(pods, 'pod')}, which only spines join"
        raise _refusal("spines", text)
    if radix and per_pod * width > radix:
        each = "one port" if width == 1 else plural(width, "port")
        text = (
            f"found 0, but {plural(per_pod, 'server')} with {each} each on a leaf need "
            f"{plural(per_pod * width, 'port')} of {radix}"
        )
        raise _refusal("spines", text)
    return RailCounts(
        servers=servers, pods=1, nodes_per_pod=per_pod, rails=rails, planes=planes, rail_only=is_rail_only, spines=0,
        links_per_pair=0, pods_per_block=1, cores=0, links_per_core=0, oversubscription=Fraction(0),
    )  # fmt: skip


def _per_pair(lower: _Lower, leaves: int, ports: int, spines: int | None) -> int:
    """Links between a leaf and a spine: given, or by the spine's ports."""
    if lower.per_pair is None or lower.per_pair:
        per_pair = lower.per_pair or 1
        if ports and leaves * per_pair > ports:
            text = (
                f"found {spines}: each needs {plural(leaves * per_pair, 'port')} for "
                f"{plural(leaves, 'leaf', 'leaves')}, wanted at most {ports}"
            )
            raise _refusal("spines", text)
        return per_pair
    most = most_cables(lower.uplinks, leaves, ports)
    if not most:
        text = (
            f"found 2, but {plural(leaves, 'leaf needs', 'leaves need')} a third tier: a spine has "
            f"{plural(ports, 'port')}"
        )
        raise _refusal("tiers", text, fix="3")
    return most


def _three_tiers(
    lower: _Lower,
    common: Mapping[str, int],
    spines: int | None,
    actual: Fraction,
    asked: Fraction | None,
    *,
    rail_only: bool,
) -> RailCounts:
    """Blocks of pods with separate spines, which are linked to cores.

    Half of the spines' ports go to the cores, or a share by the wanted ratio.
    """
    ports = (asked or Fraction(1)) / lower.core_speed  # down over up, of a spine
    down = int(lower.radix * ports / (1 + ports))
    leaves_of_pod = 1 if rail_only else common["rails"]
    most = min(down // leaves_of_pod, common["pods"])
    if most < 1:
        which = "half of the ports of a spine, which go down" if asked is None else "the ports of a spine that go down"
        raise _refusal("rails", f"found {leaves_of_pod}, wanted at most {down}, {which}")
    if asked is None:
        per_pair = _per_pair(lower, most * leaves_of_pod, down, spines)
        block = (most, per_pair, math.ceil(most * leaves_of_pod * per_pair * lower.core_speed))
    else:
        block = _equal_block(lower, common, leaves_of_pod, down, asked)
    pods_per_block, per_pair, up = block
    blocks = -(-common["pods"] // pods_per_block)
    if blocks > lower.radix:
        room = lower.radix * pods_per_block * common["nodes_per_pod"]
        text = (
            f"{plural(common['servers'], 'server needs', 'servers need')} {plural(blocks, 'block')}, wanted at most "
            f"{lower.radix}, the ports of a core,"
            f" which join {plural(room, 'server')}; take a switch with more ports at this rate, or planes at a lower "
            "rate"
        ) + ("" if rail_only or common["rails"] == 1 else ", or topology: rail-only")
        raise _refusal("hosts", text)
    per_core = most_cables(up, blocks, lower.radix)
    return RailCounts(
        **common, rail_only=rail_only, spines=lower.uplinks // per_pair, links_per_pair=per_pair,
        pods_per_block=pods_per_block, cores=up // per_core, links_per_core=per_core, oversubscription=actual,
    )  # fmt: skip


def _equal_block(
    lower: _Lower, common: Mapping[str, int], leaves_of_pod: int, down: int, ratio: Fraction
) -> tuple[int, int, int]:
    """Size of equal blocks at exactly a ratio.

    The result is pods of a block, links of a pair and uplinks of a spine.
    """
    fitting: dict[int, tuple[int, int, int]] = {}
    given = [lower.per_pair or 1] if lower.per_pair is None or lower.per_pair else None
    pairs = given or [m for m in range(lower.uplinks, 0, -1) if lower.uplinks % m == 0]
    for count in range(1, down // leaves_of_pod + 1):
        for per_pair in pairs:
            links = count * leaves_of_pod * per_pair
            up = links * lower.core_speed / ratio
            if up.denominator == 1 and links + up <= lower.radix and count not in fitting:
                fitting[count] = (count, per_pair, int(up))
    pods = common["pods"]
    size = equal_groups(pods, list(fitting))
    if size is not None:
        return fitting[size]
    text = f"found {ratio_text(ratio)} of 'spine', "
    if fitting:
        near = " or ".join(f"{one:,}" for one in nearest_sizes(pods, list(fitting)))
        text += f"but {plural(pods, 'pod does', 'pods do')} not divide into equal blocks of at most {max(fitting)}; "
        text += f"{near} pods do"
    else:
        text += f"which no split of the {plural(lower.radix, 'port')} of a spine has, {leaves_of_pod} for each pod"
    raise _refusal("oversubscription", text)

"""Build a candidate: its tree or direct network, bill and bandwidth by distance.

An infeasible candidate has a reason instead.

Leaves out: how long a job takes on it, which the flow engine says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weftwork.base.errors import ConfigError
from weftwork.hardware.price_rows import PriceBook, Range
from weftwork.study.design.candidates import FabricCandidate
from weftwork.study.design.profile import Profile, direct_profile, direct_share, profile_of
from weftwork.study.prepare.prepare import read_scenario
from weftwork.topology.bill import KINDS, bill
from weftwork.topology.build import fabric_of_section, tree_of_section
from weftwork.topology.measures import counts
from weftwork.topology.pgft import Pgft

__all__ = ["Built", "FabricAsked", "build", "overrides_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricAsked:
    """A candidate, and its job.

    Attributes
    ----------
    candidate : one
    file : scenario of the job
    settings : keys that the user has set besides
    book : prices
    user_code : whether Python files of the user's own may run
    """

    candidate: FabricCandidate
    file: Path
    settings: Mapping[str, str]
    book: PriceBook
    user_code: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """A built candidate, or the reason why it is infeasible.

    Attributes
    ----------
    candidate : one
    reason, detail : why it cannot be, in a few words and whole; empty where it can
    name, tree : of the fabric; None where it cannot be
    switches, links : by tier; of links those below each
    price_usd, power_w, money_by_kind : of the bill
    cables : of the bill
    not_priced : items without a price
    unverified_money_share, unverified_power_share : of the totals
    profile : bandwidth and hops by distance; of a direct network the best of them
    family : of a direct network; empty: a tree
    least_share : share of a server's bandwidth to the farthest server; of a direct network under uniform traffic
    """

    candidate: FabricCandidate
    reason: str = ""
    detail: str = ""
    name: str = ""
    tree: Pgft | None = None
    switches: tuple[int, ...] = ()
    links: tuple[int, ...] = ()
    price_usd: Range = Range(low=0, typical=0, high=0)  # noqa: RUF009 - frozen
    power_w: Range = Range(low=0, typical=0, high=0)  # noqa: RUF009 - frozen
    money_by_kind: Mapping[str, Range] | None = None
    cables: int = 0
    not_priced: tuple[str, ...] = ()
    unverified_money_share: float = 0.0
    unverified_power_share: float = 0.0
    profile: Profile | None = None
    family: str = ""
    least_share: float | None = None


def overrides_of(candidate: FabricCandidate, settings: Mapping[str, str]) -> dict[str, str]:
    """Overrides of the file that run its job on a candidate, by flows."""
    return {**settings, "fabric": json.dumps(candidate.fabric), "engine.fidelity": "flow"}


def build(asked: FabricAsked) -> Built:
    """Build a candidate and count its parts."""
    candidate = asked.candidate
    overrides = overrides_of(candidate, asked.settings)
    try:
        section = read_scenario(asked.file, overrides, user_code=asked.user_code).fabric
        tree = tree_of_section(section)
        fabric = fabric_of_section(section, directory=asked.file.parent)
        found = bill(fabric, asked.book)
    except ConfigError as error:
        return Built(candidate=candidate, reason=_reason(error), detail=_detail(error))
    if tree is None and fabric.direct is None:
        return Built(candidate=candidate, reason=_NO_DISTANCES, detail=f"fabric.topology: {_NO_DISTANCES}")
    profile, least_share = None if tree is None else profile_of(tree), None
    switches, links = ((), ()) if tree is None else (tuple(tree.counts()), tuple(tree.links()))
    if fabric.direct is not None:
        size = counts(fabric)
        profile, least_share = direct_profile(fabric, size.diameter_hops), direct_share(fabric)
        switches, links = (size.switches,), (size.host_links, size.switch_links)
    elif profile is not None:
        least_share = profile.least_bps / profile.same_bps[0]
    return Built(
        candidate=candidate,
        name=fabric.name,
        tree=tree,
        switches=switches,
        links=links,
        price_usd=found.price_usd,
        power_w=found.power_w,
        money_by_kind={kind: found.price_of_kind_usd(kind) for kind in KINDS},
        cables=found.count("cable"),
        not_priced=tuple(row.item for row in found.not_priced),
        unverified_money_share=found.unverified_money_share,
        unverified_power_share=found.unverified_power_share,
        profile=profile,
        family="" if fabric.direct is None else fabric.direct.family,
        least_share=least_share,
    )


# a topology of a user's own; those of the catalogue that a design searches are the one or the other
_NO_DISTANCES: Final = (
    "it is neither a tree nor a direct network (`direct_fabric`), so its bandwidth by distance is not known"
)
_REASONS: Final = (  # words of a refusal, and what they come to
    (" links, but ", "its switches have too few ports for so many servers"),
    ("do not fit", "its switch has no port of that rate"),
    ("found a ratio of", "it has no third tier that could be oversubscribed"),
    ("nothing is above", "one switch per rail joins all servers, so nothing is oversubscribed"),
    ("ports of a", "its switches have too few ports for so many servers"),
    ("equal", "its servers do not divide into equal groups at the ratio"),
    ("no split", "no split of its switch's ports has the ratio"),
    ("need", "its switches have too few ports for so many servers"),
    ("wanted at most", "its switches have too few ports for so many servers"),
    ("third", "its switches have too few ports for so many servers"),
)


def _reason(error: ConfigError) -> str:
    """The kind of the first mistake, shared by many candidates."""
    mistake = error.mistakes[0]
    found = next((reason for words, reason in _REASONS if words in mistake.text), None)
    return found or f"{mistake.path.removeprefix('fabric.')}: {mistake.text}"


def _detail(error: ConfigError) -> str:
    return "; ".join(f"{mistake.path}: {mistake.text}" for mistake in error.mistakes)

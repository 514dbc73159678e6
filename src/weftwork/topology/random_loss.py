"""Random losses: ``random:2%`` loses links with a probability.

Each link between switches is lost with that probability, by a seed. ``random:2%`` means links between switches,
``random:2%:switches`` switches, ``random:3:links`` exactly three links, and ``random:2%@17`` what seed 17 draws. A part
that is lost at 2 % is lost at 3 % of the same seed, too.
Source: interval of a share by Wilson, JASA 22, 1927, doi:10.1080/01621459.1927.10502953.
Leaves out: parts that fail together, such as a line card; times between failures (`weftwork.workload.reliability`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.random import Stream, draws, uniforms
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.topology.reach import networks_of_links
from weftwork.topology.valleys import leaves_left, legal_pairs

if TYPE_CHECKING:
    from weftwork.topology.measures import Bisection

__all__ = ["KEEPS", "RandomLoss", "RandomPart", "SeedShare", "draw_lost", "measure_random", "random_part"]

KEEPS: Final = 0.9  # chosen: a tenth of the bandwidth is what operators plan to lose before they act
SEEDS: Final = 100  # chosen: an interval of some ten points around a share; the work is a second on 1,024 hosts
Z_95: Final = 1.959964  # two-sided 95 % of the normal distribution
MAX_SEED: Final = 2**31 - 1  # as engine.seed allows
PREFIX: Final = "random:"
_RANDOM: Final = re.compile(
    r"random:(?P<number>[0-9]+(\.[0-9]+)?)(?P<percent>%?)(:(?P<kind>links|switches))?(@(?P<seed>[0-9]{1,10}))?"
)
_WANTED: Final = "random:2%, random:2%:switches or random:3:links, with @17 for the loss that seed 17 draws"


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomPart:
    """A random loss: the candidates and the probability.

    Attributes
    ----------
    text : as it was written, without the seed
    kind : ``links`` between switches, or ``switches``
    probability : of each, by itself; None where a count is given
    count : of those that are lost; None where a probability is given
    seed : None for many
    """

    text: str
    kind: str
    probability: float | None
    count: int | None
    seed: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedShare:
    """The share of seeds with a property, and its 95 % interval (Wilson).

    Attributes
    ----------
    seeds, of : how many
    share, low, high : from 0 to 1
    """

    seeds: int
    of: int
    share: float
    low: float
    high: float

    @classmethod
    def counted(cls, seeds: int, of: int) -> SeedShare:
        """Make the interval.

        Examples
        --------
        >>> found = SeedShare.counted(95, 100)
        >>> round(found.low, 4), round(found.high, 4)
        (0.8882, 0.9785)
        """
        share, z2 = seeds / of, Z_95**2
        middle = (share + z2 / (2 * of)) / (1 + z2 / of)
        half = Z_95 / (1 + z2 / of) * math.sqrt(share * (1 - share) / of + z2 / (4 * of**2))
        low = middle - half if seeds else 0.0  # exact at the ends, where rounding would leave some 1e-17
        high = middle + half if seeds < of else 1.0
        return cls(seeds=seeds, of=of, share=share, low=low, high=high)


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomLoss:
    """The bandwidth that random losses leave in a fabric.

    Attributes
    ----------
    text : what is lost, such as ``random:2%``
    kind, candidates : ``links`` or ``switches``, and how many could be lost
    probability, count : one of them, the other None
    seeds : from 0 on
    lost_mean : mean number of parts that were lost
    whole : bisection of the whole fabric
    crosses : whether some of it needs links between switches; not where each switch has hosts of both halves, such as
        the leaves of a single pod of rails
    kept : by seed, share of ``whole`` that is left
    mean, p5, p50, p95 : of ``kept``; percentiles are shares of one seed, at least so many seeds keep no more
    keeps : for which share of the seeds at least `KEEPS` of the bisection is left
    joined : for which share all hosts that reached each other still do
    legal : for which share all pairs of leaves that a path without a valley joined keep one; None where valleys mean
        nothing or the fabric is too large
    worst_seed, worst_kept : the first seed with the least left
    """

    text: str
    kind: str
    candidates: int
    probability: float | None
    count: int | None
    seeds: int
    lost_mean: float
    whole: Bisection
    crosses: bool
    kept: tuple[float, ...]
    mean: float
    p5: float
    p50: float
    p95: float
    keeps: SeedShare
    joined: SeedShare
    legal: SeedShare | None
    worst_seed: int
    worst_kept: float


def random_part(name: str) -> RandomPart | None:
    """Read ``random:...``; None for any other name.

    Raises
    ------
    ConfigError : the name begins like a random loss and is none

    Examples
    --------
    >>> found = random_part("random:2%:switches@17")
    >>> found.text, found.kind, found.probability, found.seed
    ('random:2%:switches', 'switches', 0.02, 17)
    """
    if not name.startswith(PREFIX):
        return None
    match = _RANDOM.fullmatch(name)
    if match is None:
        raise _wrong(f"found '{name}', wanted {_WANTED}")
    number, kind = float(match["number"]), match["kind"] or "links"
    if match["percent"] and number > 100:
        raise _wrong(f"found '{name}', wanted at most 100%")
    if not match["percent"] and "." in match["number"]:
        raise _wrong(f"found '{name}', wanted a whole number of {kind}, or a probability such as {match['number']}%")
    seed = None if match["seed"] is None else int(match["seed"])
    if seed is not None and seed > MAX_SEED:
        raise _wrong(f"found seed {seed}, wanted 0 to {MAX_SEED}")
    return RandomPart(
        text=name.partition("@")[0],
        kind=kind,
        probability=number / 100 if match["percent"] else None,
        count=None if match["percent"] else int(number),
        seed=seed,
    )


def _wrong(text: str) -> ConfigError:
    return ConfigError("--without", [Mistake(path="--without", text=text)])


def draw_lost(fabric: Fabric, part: RandomPart, seed: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Draw the lost nodes and links.

    The identity of a draw is the place of the link among those between switches, or of the switch among switches.

    Returns
    -------
    lost nodes, shape (nodes,), and lost links, shape (links,), without those of the lost nodes

    Raises
    ------
    ConfigError : the fabric has fewer parts than are to be lost
    """
    lost = np.zeros(len(fabric.node_names), np.bool_), np.zeros(len(fabric.links), np.bool_)
    candidates = _candidates(fabric, part)
    draw = uniforms(draws(seed, Stream.LOST_PART, np.arange(len(candidates)), 0, 0))
    if part.probability is not None:
        chosen = candidates[draw < part.probability]
    else:
        chosen = candidates[np.argsort(draw, kind="stable")[: part.count]]
    lost[0 if part.kind == "switches" else 1][chosen] = True
    return lost


def _candidates(fabric: Fabric, part: RandomPart) -> NDArray[np.int64]:
    is_switch = fabric.node_kind == SWITCH
    if part.kind == "switches":
        found = np.flatnonzero(is_switch)
    else:
        found = np.flatnonzero(is_switch[fabric.links["a"]] & is_switch[fabric.links["b"]])
    if len(found) < (part.count or 1):
        what = part.kind if part.kind == "switches" else "links between switches"
        raise _wrong(f"found '{part.text}', wanted at most {len(found):,}: the fabric has no more {what}")
    return found


def measure_random(
    fabric: Fabric,
    part: RandomPart,
    *,
    seeds: int = SEEDS,
    lost_links: NDArray[np.bool_] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> RandomLoss:
    """Draw a loss for each seed and measure the remaining bandwidth.

    Each is an exact max-flow, without valleys in a tiered fabric.

    Parameters
    ----------
    fabric : as it was
    part : what is lost at random
    seeds : how many, from 0 on
    lost_links : shape (links,), lost for certain besides
    on_progress : called before each seed with how many are done, and of how many

    Raises
    ------
    ConfigError : the fabric has fewer parts than are to be lost
    """
    from weftwork.topology.up_down import UpDown

    certain = np.zeros(len(fabric.links), np.bool_) if lost_links is None else lost_links
    network, hosts = UpDown(fabric), _Hosts(fabric, certain)
    whole_up = np.ones(len(fabric.links), np.bool_)
    whole, joined_before = network.bisection(whole_up), hosts.pairs_joined(whole_up)
    leaves = leaves_left(fabric, whole_up)
    legal_before = legal_pairs(fabric, whole_up, leaves)
    candidates = len(_candidates(fabric, part))
    a, b = fabric.links["a"], fabric.links["b"]
    kept: list[float] = []
    joined = legal = lost_count = 0
    for seed in range(seeds):
        if on_progress is not None:
            on_progress(seed, seeds)
        nodes, links = draw_lost(fabric, part, seed)
        lost_count += int(nodes.sum() + links.sum())
        links |= nodes[a] | nodes[b] | certain
        left = network.bisection(~links).rate_bps
        kept.append(left / whole.rate_bps if whole.rate_bps else 0.0)
        joined += hosts.pairs_joined(~links) == joined_before
        legal += legal_before is not None and legal_pairs(fabric, ~links, leaves) == legal_before
    shares = np.array(kept)
    p5, p50, p95 = np.quantile(shares, [0.05, 0.5, 0.95], method="inverted_cdf").tolist()
    return RandomLoss(
        text=part.text,
        kind=part.kind,
        candidates=candidates,
        probability=part.probability,
        count=part.count,
        seeds=seeds,
        lost_mean=lost_count / seeds,
        whole=whole,
        crosses=network.bisection(~network.between).rate_bps < whole.rate_bps,
        kept=tuple(kept),
        mean=float(shares.mean()),
        p5=p5,
        p50=p50,
        p95=p95,
        keeps=SeedShare.counted(int((shares >= KEEPS).sum()), seeds),
        joined=SeedShare.counted(joined, seeds),
        legal=None if legal_before is None else SeedShare.counted(legal, seeds),
        worst_seed=int(shares.argmin()),
        worst_kept=float(shares.min()),
    )


class _Hosts:
    """Hosts by their switches, so that equal hosts are measured once per seed."""

    def __init__(self, fabric: Fabric, lost_links: NDArray[np.bool_]) -> None:
        self._fabric = fabric
        ports, base = fabric.ports, fabric.ports.base
        alike: Counter[tuple[int, ...]] = Counter()
        links: dict[tuple[int, ...], NDArray[np.int64]] = {}
        for host in fabric.hosts.tolist():
            own = np.arange(base[host], base[host + 1])
            far = ports.node[ports.peer[own]]
            is_alone = bool(lost_links[ports.link[own]].any() or (fabric.node_kind[far] == HOST).any())
            key = (-1, host) if is_alone else tuple(far.tolist())
            alike[key] += 1
            links.setdefault(key, ports.link[own].astype(np.int64))
        self._groups = [(links[key], count) for key, count in alike.items()]

    def pairs_joined(self, link_up: NDArray[np.bool_]) -> int:
        """Ordered pairs of hosts that share a network.

        A host with itself counts if it has a network.
        """
        network = networks_of_links(self._fabric, link_up)
        sets: Counter[frozenset[int]] = Counter()
        for links, count in self._groups:
            sets[frozenset(network[links].tolist()) - {-1}] += count
        return sum(many * more for one, many in sets.items() for other, more in sets.items() if one & other)

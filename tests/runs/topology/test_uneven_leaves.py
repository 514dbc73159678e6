"""Summaries of fabrics whose leaves have different numbers of hosts, of which a summary looks at some."""

from __future__ import annotations

import re
from html import unescape
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from weftwork.report.figures.fabric import MOST_CELLS, fabric_picture
from weftwork.spec.fabric import Fabric
from weftwork.topology.fabric_formats import Draft
from weftwork.topology.from_file import fabric_from
from weftwork.topology.measures import paths

HOSTS = (1, 9, 2, 8, 1, 7, 1)  # of the leaves in order: most hosts are on the few leaves that have two uplinks


def uneven() -> Fabric:
    """Leaves of one to nine hosts; leaves 0, 2, 4, 6 have an uplink to spine 0, the others one to each spine."""
    draft = Draft()
    hosts = [(leaf, number) for leaf, count in enumerate(HOSTS) for number in range(count)]
    nodes = [{"id": f"host{place}", "kind": "host"} for place in range(len(hosts))]
    nodes += [{"id": f"leaf{leaf}", "kind": "switch", "tier": 1} for leaf in range(len(HOSTS))]
    nodes += [{"id": f"spine{spine}", "kind": "switch", "tier": 2} for spine in range(2)]
    links = [(f"host{place}", f"leaf{leaf}") for place, (leaf, _) in enumerate(hosts)]
    links += [(f"leaf{leaf}", f"spine{spine}") for leaf in range(len(HOSTS)) for spine in range(1 + leaf % 2)]
    draft.nodes += [(1, dict(node)) for node in nodes]
    draft.links += [(1, {"source": a, "target": b, "rate": "100Gbps", "delay": "500ns"}) for a, b in links]
    return fabric_from(draft, "uneven.json")


def ways(a: int, b: int) -> int:
    """Shortest paths between hosts of two leaves: the spines that both have."""
    return 1 if a == b else min(1 + a % 2, 1 + b % 2)


@pytest.mark.parametrize("sample", [1, 2, 3, 5, 7, None])
def test_shares_of_pairs_count_hosts_and_not_leaves(sample: int | None) -> None:
    """Of a sample of leaves: the pairs of any host with any host of those, by hops, as a share of all such pairs."""
    seen = len(HOSTS) if sample is None else sample
    chosen = [place * len(HOSTS) // seen for place in range(seen)]
    leaves = [leaf for leaf, count in enumerate(HOSTS) for _ in range(count)]
    pairs = [(a, b) for (i, a), (j, b) in product(enumerate(leaves), repeat=2) if i != j and b in chosen]
    found = {row.hops: row for row in paths(uneven(), sample=sample)}
    wanted = {hops: [pair for pair in pairs if (pair[0] == pair[1]) == (hops == 2)] for hops in (2, 4)}
    assert set(found) == {hops for hops, mine in wanted.items() if mine}
    for hops, row in found.items():
        assert row.share == pytest.approx(len(wanted[hops]) / len(pairs))
        counts = sorted(ways(a, b) for a, b in wanted[hops])
        assert (row.paths_min, row.paths_max) == (counts[0], counts[-1])
        assert row.paths_median == counts[(len(counts) - 1) // 2]
    assert sum(row.share for row in found.values()) == pytest.approx(1.0)


def test_a_picture_of_many_uneven_leaves_shows_the_busiest_link_of_every_cell() -> None:
    """More leaves than cells: neighbours share one, and no link of any of them is lost or shown at another place."""
    leaves = MOST_CELLS + 37
    counts = [1 + leaf * 7 % 3 for leaf in range(leaves)]
    names = [f"host{place}" for place in range(sum(counts))] + [f"leaf{leaf}" for leaf in range(leaves)] + ["spine0"]
    hosts, spine = sum(counts), len(names) - 1
    leaf_of = np.repeat(np.arange(leaves), counts)
    pairs = [(host, hosts + int(leaf_of[host])) for host in range(hosts)] + [
        (hosts + leaf, spine) for leaf in range(leaves)
    ]
    ends = [end for pair in pairs for end in (pair, pair[::-1])]
    used = np.random.default_rng(1).permutation(len(ends)) / len(ends)
    tier = [0] * hosts + [1] * leaves + [2]
    role = ["host"] * hosts + ["leaf"] * leaves + ["spine"]
    nodes = pa.table({"name": names, "role": role, "tier": tier, "kind": ["host"] * hosts + ["switch"] * (leaves + 1)})
    links = pa.table({
        "node": [a for a, _ in ends], "peer": [b for _, b in ends], "utilisation": used,
        "link": [f"link{place // 2}" for place in range(len(ends))],
    })  # fmt: skip
    drawing, hot, note = fabric_picture(nodes, links)
    assert "several neighbours share one cell" in note
    number = {name: place for place, name in enumerate(names)}

    def members(cell: str) -> set[int]:
        found = re.fullmatch(r"([\d,]+) \w+ \((\w+) \u2026 (\w+)\)", cell)
        if found is None:
            return {number[cell]}
        inside = set(range(number[found[2]], number[found[3]] + 1))
        assert len(inside) == int(found[1].replace(",", ""))
        return inside

    drawn, seen = set(), 0
    for text in re.findall(r"<title>(.*?)</title></path>", drawing):
        title = unescape(text).replace("\u202f", " ")
        found = re.fullmatch(
            r"(.*?) to (.*?): ([\d.]+) % that way, ([\d.]+) % back(?:; busiest of (\d+) links)?", title
        )
        assert found, title
        low, high = members(found[1]), members(found[2])
        there = [place for place, (a, b) in enumerate(ends) if a in low and b in high]
        back = [place for place, (a, b) in enumerate(ends) if a in high and b in low]
        assert float(found[3]) == pytest.approx(100 * used[there].max(), abs=0.06)
        assert float(found[4]) == pytest.approx(100 * used[back].max(), abs=0.06)
        assert int(found[5] or 1) == len(there) == len(back)
        drawn.add((found[1], found[2]))
        seen += len(there)
    assert seen == len(pairs)
    assert [one.row for one in hot] == np.argsort(-used, kind="stable")[: len(hot)].tolist()

"""What load balancing at the NIC buys: queue pairs, PLB, REPS and the number of entropies, beside what was published.

    python benchmarks/balancers_nic.py [--only queue-pairs|plb|reps|replies|entropies]... [--seeds 3] [--markdown]
        [--figure SVG]

The tables of docs/models/load-balancing-nic.md are what this prints. Leaves out: jobs that share the fabric.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.report.figures import cards
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.road import execute
from weftwork.study.results.link_use import sent_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = [
    "TABLES",
    "all_reduce",
    "data_packets",
    "entropies",
    "main",
    "permutation",
    "queue_pair_times_us",
    "ran",
    "took_us",
    "uplink_bytes",
    "uplinks",
]

FAULTS: Final[dict[str, list[dict[str, str]]]] = {
    "all links as built": [],
    "one uplink at 200 Gb/s": [{"at": "0us", "link": "leaf0-spine0", "event": "degrade", "rate": "200Gbps"}],
    "one link down for 200 us": [{"at": "50us", "link": "leaf0-spine0", "event": "down", "for": "200us"}],
    # as the two flaps of arXiv:2407.21625, of 100 and 200 us
    "two links down in turn": [
        {"at": "50us", "link": "leaf0-spine0", "event": "down", "for": "100us"},
        {"at": "250us", "link": "leaf0-spine1", "event": "down", "for": "200us"},
    ],
}
CONTROLS: Final = ("fixed-window", "swift")  # swift takes a loss for congestion, as controls of NICs do
QUEUE_PAIRS: Final = (("split", 1), ("in-turn", 4), ("in-turn", 16), ("split", 4), ("split", 16))
QUEUE_PAIR_SEEDS: Final = 8  # chosen: one queue pair is 513 to 1,022 us, so that three seeds say little
BITS: Final = (4, 6, 8, 10, 12)


def ran(document: Mapping[str, Any]) -> tuple[Prepared, Execution]:
    """Run a scenario, given as a mapping."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scenario.yaml"
        file.write_text(json.dumps({"schema": 3, **document}), encoding="utf-8")
        prepared = prepare(read_scenario(file))
    execution = execute(prepared, what_if="none")
    if not execution.outcome.complete:
        raise SystemExit("not everything was delivered")
    return prepared, execution


def took_us(execution: Execution) -> float:
    """When the last message was delivered."""
    return float(execution.outcome.messages["delivered_at_ps"].max()) / 1e6


def data_packets(prepared: Prepared, execution: Execution) -> NDArray[np.float64]:
    """Full data packets that each port has sent, from its bytes and frames; ACKs are all the others."""
    ports, transport = execution.outcome.ports, prepared.transport
    full_bytes = transport.mtu_bytes + transport.data_overhead_bytes
    found: NDArray[np.float64] = (ports["bytes"] - ports["frames"] * transport.ack_bytes) / (
        full_bytes - transport.ack_bytes
    )
    return found


def uplink_bytes(
    prepared: Prepared, execution: Execution, *, sent: NDArray[np.float64] | None = None
) -> dict[str, NDArray[np.float64]]:
    """What each leaf has sent to each spine, bytes where ``sent`` of each port is not given."""
    names, ports = prepared.fabric.node_names, prepared.fabric.ports
    sent = sent_bytes(prepared, execution) if sent is None else sent
    ends = [(names[node], names[peer]) for node, peer in zip(ports.node, ports.node[ports.peer], strict=True)]
    leaves = sorted({name for name in names if name.startswith("leaf")})
    return {
        leaf: np.array([sent[at] for at, end in enumerate(ends) if end[0] == leaf and end[1].startswith("spine")])
        for leaf in leaves
    }


# Scenarios


def all_reduce(
    queue_pairs: int, seed: int = 1, *, use: str = "in-turn", fidelity: str = "flow", size: str = "64MiB"
) -> dict[str, Any]:
    """A ring all-reduce of 128 GPUs: two servers of 8 GPUs and NICs below a leaf, 18 spines for 16 ports (1:1.125).

    16 rings, two for each NIC, as NCCL has 2 to 4 for a NIC of 400 Gb/s.
    """
    return {
        "name": "queue pairs",
        "fabric": {
            "topology": "leaf-spine", "leaves": 8, "spines": 18, "hosts_per_leaf": 2, "link_rate": "400Gbps",
            "node": "dgx-h100",
        },
        "transport": {
            "congestion_control": "fixed-window", "load_balancing": "ecmp", "queue_pairs": queue_pairs,
            "queue_pair_use": use,
        },
        "collective": {
            "operation": "all-reduce", "algorithm": "ring", "size": size, "protocol": "none", "channels": 16,
        },
        "engine": {"fidelity": fidelity, "seed": seed},
    }  # fmt: skip


def permutation(balancing: str, seed: int = 1, *, size: str = "32MB", fidelity: str = "packet") -> dict[str, Any]:
    """A permutation of 64 hosts; switches mark at 20 KB, so that two flows on a link are marked all the time."""
    return {
        "name": "permutation",
        "fabric": {
            "topology": "leaf-spine", "leaves": 8, "spines": 8, "hosts_per_leaf": 8, "link_rate": "100Gbps",
            "switch": {"ecn": {"kmin": "20KB", "kmax": "20KB"}},
        },
        "transport": {
            "congestion_control": "fixed-window", "load_balancing": balancing, "recovery": "selective-repeat",
        },
        "traffic": {"pattern": "permutation", "size": size},
        "engine": {"fidelity": fidelity, "seed": seed},
    }  # fmt: skip


def uplinks(
    balancing: str, faults: list[dict[str, str]], seed: int = 1, *, hosts: int = 16, size: str = "32MB",
    control: str = "fixed-window", replies: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """As many flows as uplinks, both ways between two leaves, at 400 Gb/s; routes do not change."""
    chosen = {} if replies is None else {"reply_entropy": replies}
    return {
        "name": "uplinks",
        "fabric": {
            "topology": "leaf-spine", "leaves": 2, "spines": hosts, "hosts_per_leaf": hosts, "link_rate": "400Gbps",
            "link_delay": "500ns", "reconvergence_delay": "10ms",
        },
        "transport": {
            "congestion_control": control, "load_balancing": balancing, "recovery": "selective-repeat",
            "flow_control": "none", "timeout": "70us", **chosen,
        },
        "collective": {
            "operation": "send-receive", "algorithm": "direct", "size": size, "shift": hosts, "protocol": "none",
        },
        "faults": faults,
        "engine": {"fidelity": "packet", "seed": seed},
    }  # fmt: skip


def entropies(bits: int, seed: int = 1, *, size: str = "32MB") -> dict[str, Any]:
    """32 flows over 32 uplinks, sprayed over so many entropies in turns, by a hash that is not affine."""
    document = uplinks("oblivious", [], seed, hosts=32, size=size)
    document["transport"] |= {"path_selection": {"name": "oblivious", "paths": 2**bits}, "port_selection": "ecmp"}
    document["fabric"]["switch"] = {"hash": {"algorithm": "mix"}}
    del document["transport"]["load_balancing"]
    return document


# Tables


def _spread(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{statistics.mean(values):,.1f} ({low:,.1f} to {high:,.1f})"


def _of_queue_pairs(seeds: int) -> list[list[str]]:
    rows = [["queue pairs", "messages", "all-reduce (us)", "gain over one (%)", "median gain (%)"]]
    first: list[float] = []
    for use, pairs in QUEUE_PAIRS:
        found = queue_pair_times_us(pairs, use, max(seeds, QUEUE_PAIR_SEEDS))
        first = first or found
        gains = [100 * (one / several - 1) for one, several in zip(first, found, strict=True)]
        told = [_spread(gains), f"{statistics.median(gains):.1f}"] if pairs > 1 else ["", ""]
        rows.append([str(pairs), use if pairs > 1 else "", _spread(found), *told])
    return rows


def queue_pair_times_us(queue_pairs: int, use: str, seeds: int = QUEUE_PAIR_SEEDS) -> list[float]:
    """How long the all-reduce takes, by seed."""
    return [took_us(ran(all_reduce(queue_pairs, seed, use=use))[1]) for seed in range(1, seeds + 1)]


def _imbalance(document: dict[str, Any]) -> tuple[float, float, float]:
    """Median over leaves of (max - min) / mean of what uplinks carried; mean and last completion in us."""
    prepared, execution = ran(document)
    uneven = [np.ptp(sent) / sent.mean() for sent in uplink_bytes(prepared, execution).values()]
    messages = execution.outcome.messages
    lasted_us = (messages["delivered_at_ps"] - messages["posted_at_ps"]) / 1e6
    return float(np.median(uneven)), float(lasted_us.mean()), float(lasted_us.max())


def _of_plb(seeds: int) -> list[list[str]]:
    rows = [["load balancing", "(max - min) / mean of uplinks (%)", "mean completion (us)", "last completion (us)"]]
    for name in ("ecmp", "plb", "reps"):
        found = [_imbalance(permutation(name, seed)) for seed in range(1, seeds + 1)]
        uneven, mean, last = (list(values) for values in zip(*found, strict=True))
        rows.append([name, _spread([100 * value for value in uneven]), _spread(mean), _spread(last)])
    return rows


def _of_reps(seeds: int) -> list[list[str]]:
    rows = [["links", "control", "load balancing", "last completion (us)", "packets sent again"]]
    for links, faults in FAULTS.items():
        for control in CONTROLS if "down" in links else CONTROLS[:1]:
            names = ("ecmp", "spray", "oblivious", "reps")
            rows += [[links, control, name, *_ended(seeds, name, faults, control)] for name in names]
    return rows


def _of_replies(seeds: int) -> list[list[str]]:
    rows = [["ACKs and NAKs", "control", "load balancing", "last completion (us)", "packets sent again"]]
    faults = FAULTS["one link down for 200 us"]
    for replies in ("own", "echoed"):
        for control in CONTROLS:
            names = ("spray", "reps")
            rows += [[replies, control, name, *_ended(seeds, name, faults, control, replies)] for name in names]
    return rows


def _ended(
    seeds: int, name: str, faults: list[dict[str, str]], control: str, replies: str | None = None
) -> tuple[str, str]:
    """When the last message was delivered, and how many packets were sent again."""
    runs = [ran(uplinks(name, faults, seed, control=control, replies=replies))[1] for seed in range(1, seeds + 1)]
    again = [float(run.outcome.counters["retransmissions"]) for run in runs]
    return _spread([took_us(run) for run in runs]), _spread(again)


def _of_entropies(seeds: int) -> list[list[str]]:
    rows = [["entropies", "max / mean - 1 of 32 uplinks (%)"]]
    for bits in BITS:
        found = []
        for seed in range(1, seeds + 1):
            run = ran(entropies(bits, seed))
            sent = uplink_bytes(*run, sent=data_packets(*run))["leaf0"]
            found.append(float(100 * (sent.max() / sent.mean() - 1)))
        rows.append([f"2^{bits}", _spread(found)])
    return rows


TABLES: Final[dict[str, Callable[[int], list[list[str]]]]] = {
    "queue-pairs": _of_queue_pairs, "plb": _of_plb, "reps": _of_reps, "replies": _of_replies,
    "entropies": _of_entropies,
}  # fmt: skip


def _figure(rows: list[list[str]]) -> str:
    """Last completions of the table ``reps`` where a link is slow or down."""
    found = []
    for links, control in (("one uplink at 200 Gb/s", "fixed-window"), ("two links down in turn", "swift")):
        shown = [row for row in rows[1:] if row[:2] == [links, control]]
        means = [(row[2], row[3].split(" ")[0]) for row in shown]
        found += [
            cards.Bar(name=f"{name}, {links}", value=float(mean.replace(",", "")), text=f"{mean} us")
            for name, mean in means
        ]
    return cards.bars(
        "16 flows on 16 uplinks: fixed window, and Swift where links are down", found, axis="last completion (us)"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=sorted(TABLES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--figure", type=Path)
    chosen = parser.parse_args()
    for name in chosen.only or TABLES:
        rows = TABLES[name](chosen.seeds)
        print(f"\n{name}, {chosen.seeds} seeds: mean (least to most)", flush=True)
        for number, row in enumerate(rows):
            print("| " + " | ".join(row) + " |" if chosen.markdown else "\t".join(row))
            if number == 0 and chosen.markdown:
                print("|" + "---|" * len(row))
        if name == "reps" and chosen.figure:
            chosen.figure.write_text(_figure(rows), encoding="utf-8")


if __name__ == "__main__":
    main()

"""A sprayed permutation of 8,192 hosts beside the Ultra Ethernet reference model: tail and least flow completion time.

    python benchmarks/published_permutation.py [--full] [--hash mix] [--markdown]

The reference model ran 128 leaves of 64 hosts and 64 uplinks at 200 Gb/s, links of 1 us, no latency in switches,
packets of 4,150 B with a header of 64 B, one ACK of 64 B for four packets, flows of n x 10^6 bytes that all start at 0
and end with the last ACK at the sender. Weftwork runs the same, with what it has: entropies taken in turn (`oblivious`)
and a window of 75 packets that never moves.
Source: github.com/ultraethernet/uet-htsim, main_uec.cpp, uec.cpp and topologies/leaf_spine_8192_200g.topo.
Leaves out, so far: NSCC and RCCC, which move the window; paths chosen by feedback (`mixed`: a bitmap of marked paths,
and recycled entropies), trimming above 50 packets, marks between 12 and 37, and its very permutation.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.clock import US_PS
from weftwork.data.measured import measured
from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import HashFunction, Nic, Switch
from weftwork.spec.fabric import SWITCH, Fabric
from weftwork.spec.transport import Transport
from weftwork.topology.shapes.leaf_spine import leaf_spine
from weftwork.workload.traffic.patterns.permutation import permutation

if TYPE_CHECKING:
    from weftwork.engine.outcome import Outcome
    from weftwork.engine.packet_input import PacketInput

__all__ = ["Row", "fabric", "main", "measure", "published"]

TABLE: Final = "htsim-permutation-8192-hosts"
LEAVES: Final = 128
PER_LEAF: Final = 64  # hosts below a leaf, and uplinks of it
HEADER_BYTES: Final = 64  # uec.cpp, UecSrc::_hdr_size
PACKET_BYTES: Final = 4_150  # main_uec.cpp, packet_size
PAYLOAD_BYTES: Final = PACKET_BYTES - HEADER_BYTES
WINDOW_PACKETS: Final = 75  # -cwnd of the published runs
QUEUE_PACKETS: Final = 50  # -q: what is above it is trimmed there
ACK_BYTES: Final = 64  # for ACK_EVERY packets: uec.cpp, 16,384 B not acknowledged
ACK_EVERY: Final = 4
SEED: Final = 1
QUICK_BYTES: Final = 4_000_000  # larger messages only with --full
PS_PER_US: Final = float(US_PS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One message size and number of paths.

    Parameters
    ----------
    message_bytes, paths : of every flow
    nscc_us, rccc_us : tail and least completion time that the reference model printed
    weftwork_us : the same of Weftwork
    queue_packets : the longest queue of a switch in Weftwork, in full packets
    """

    message_bytes: int
    paths: int
    nscc_us: tuple[float, float]
    rccc_us: tuple[float, float]
    weftwork_us: tuple[float, float]
    queue_packets: float


def published() -> dict[tuple[int, int], dict[str, tuple[float, float]]]:
    """Tail and least completion time in us, by (message bytes, paths), then by congestion control."""
    rows: dict[tuple[int, int], dict[str, tuple[float, float]]] = {}
    for row in measured(TABLE).to_pylist():
        both = rows.setdefault((row["message_bytes"], row["paths"]), {})
        both[row["control"]] = (row["tail_fct_us"], row["min_fct_us"])
    return rows


def fabric(hash_name: str, leaves: int = LEAVES) -> Fabric:
    """The leaf-spine fabric.

    Parameters
    ----------
    hash_name : of a switch, as in `weftwork.spec.device.HashFunction`; the reference model's mixes, as `mix` does
    leaves : fewer make a smaller fabric with the same leaves
    """
    rate_bps = 200_000_000_000
    hashing = HashFunction.model_validate({"algorithm": hash_name})
    return leaf_spine(
        leaves=leaves,
        spines=PER_LEAF,
        hosts_per_leaf=PER_LEAF,
        host_rate_bps=rate_bps,
        fabric_rate_bps=rate_bps,
        host_delay_ps=US_PS,
        fabric_delay_ps=US_PS,
        switch=Switch(forwarding_latency_ps=0, buffer_bytes=1_000_000_000, hash=hashing),
        nic=Nic(receive_latency_ps=0),
    )


def measure(built: Fabric, message_bytes: int, paths: int) -> tuple[PacketInput, Outcome]:
    """Run one permutation; nothing is lost, since no queue of the reference model's length limits it.

    Parameters
    ----------
    built : from `fabric`
    message_bytes : of every flow
    paths : entropies that a flow takes in turn
    """
    engine_input = lower(
        fabric=built,
        job=permutation(hosts=len(built.hosts), size_bytes=message_bytes, seed=SEED),
        transport=Transport(
            name="sprayed",
            mtu_bytes=PAYLOAD_BYTES,
            data_overhead_bytes=HEADER_BYTES,
            first_extra_bytes=0,
            ack_bytes=ACK_BYTES,
            ack_every=ACK_EVERY,
            interframe_bytes=0,
            lossless_priorities=(),
            reorder_tolerant=True,
            reorder_window_packets=4_096,
        ),
        congestion_control=load("congestion_control", "fixed-window", {"window_bytes": WINDOW_PACKETS * PAYLOAD_BYTES}),
        settings=EngineSettings(
            path_selection=load("path_selection", "oblivious", {"paths": paths}),
            port_selection=load("port_selection", "ecmp"),
            seed=SEED,
        ),
    )
    outcome = packet.run(engine_input)
    lost = sum(value for name, value in outcome.counters.items() if name.startswith("drop_"))
    if lost or outcome.counters["retransmissions"] or not outcome.complete:
        raise SystemExit(f"found {lost} packets lost or sent again, wanted none")
    return engine_input, outcome


def main() -> None:
    """Run the rows and print the table."""
    arguments = _arguments()
    wanted = sorted(key for key in published() if arguments.full or key[0] <= QUICK_BYTES)
    built = fabric(arguments.hash)
    rows = []
    begin_s = time.perf_counter()
    for message_bytes, paths in wanted:
        if sys.stderr.isatty():
            print(f"\r\033[K{message_bytes // 10**6} MB, {paths} paths", end="", file=sys.stderr)
        rows.append(_row(built, message_bytes, paths))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    took_s = time.perf_counter() - begin_s
    print(f"{dt.datetime.now(dt.UTC).date().isoformat()}, hash {arguments.hash}, {took_s:.0f} s\n")
    print(_table(rows, is_markdown=arguments.markdown))
    for index, name in enumerate(("tail", "least")):
        mean = sum(abs(row.weftwork_us[index] / row.nscc_us[index] - 1) for row in rows) / len(rows)
        print(f"\nmean absolute difference of the {name} from NSCC: {mean:.1%}", end="")
    print()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="all sizes, up to 100 MB: some twenty minutes")
    parser.add_argument("--hash", choices=["mix", "crc32", "crc32c"], default="mix", help="of the switches")
    parser.add_argument("--markdown", action="store_true", help="print a table for docs/models/published.md")
    return parser.parse_args()


def _row(built: Fabric, message_bytes: int, paths: int) -> Row:
    engine_input, outcome = measure(built, message_bytes, paths)
    ends_ps = outcome.messages["acked_at_ps"]
    of_switches = engine_input.node_kind[engine_input.port_node] == SWITCH
    theirs = published()[message_bytes, paths]
    return Row(
        message_bytes=message_bytes,
        paths=paths,
        nscc_us=theirs["nscc"],
        rccc_us=theirs["rccc"],
        weftwork_us=(float(ends_ps.max()) / PS_PER_US, float(ends_ps.min()) / PS_PER_US),
        queue_packets=float(outcome.ports["max_queue_bytes"][of_switches].max()) / PACKET_BYTES,
    )


def _table(rows: list[Row], *, is_markdown: bool) -> str:
    head = ["size", "paths", "NSCC tail", "RCCC tail", "Weftwork tail", "to NSCC", "NSCC least", "Weftwork least",
            "to NSCC", "queue"]  # fmt: skip
    cells = [head, *([str(value) for value in _cells(row)] for row in rows)]
    if is_markdown:
        lines = [f"| {' | '.join(line)} |" for line in cells]
        lines.insert(1, "|---" + "|---:" * (len(head) - 1) + "|")
        return "\n".join(lines)
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _cells(row: Row) -> list[Any]:
    return [
        f"{row.message_bytes // 10**6} MB",
        row.paths,
        f"{row.nscc_us[0]:.1f} us",
        f"{row.rccc_us[0]:.1f} us",
        f"{row.weftwork_us[0]:.1f} us",
        f"{row.weftwork_us[0] / row.nscc_us[0] - 1:+.1%}",
        f"{row.nscc_us[1]:.2f} us",
        f"{row.weftwork_us[1]:.2f} us",
        f"{row.weftwork_us[1] / row.nscc_us[1] - 1:+.2%}",
        f"{row.queue_packets:.0f}",
    ]


if __name__ == "__main__":
    main()

"""The software NIC over a wire of this machine, next to UCX over TCP, libfabric's udp;ofi_rxd and TCP sockets.

Makes two network namespaces with a pair of veth devices of MTU 9000, measures in rounds, all contenders in each, and
prints best and median of each with CPU time, system calls and latency. Both ends of the software NIC check every ICRC.
Needs root, iproute2, and for two of the columns ucx_perftest and fi_pingpong (Debian: ucx-utils, libfabric-bin).
Usage: python benchmarks/rdma.py [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from machine import circumstances

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

HERE: Final = Path(__file__).resolve().parent
CLIENT, SERVER = "10.213.0.1", "10.213.0.2"
MTU: Final = 9000
BIG_BYTES: Final = 1 << 20
TASKS: Final = ("bandwidth", "latency", "rate")
PATIENCE_S: Final = 60.0
UCX_PORT: Final = 13_337
FI_ITERATIONS: Final = {"bandwidth": 20, "latency": 2000}
UCX: Final = {
    "bandwidth": ("ucp_put_bw", BIG_BYTES, 1000),
    "latency": ("ucp_put_lat", 8, 3000),
    "rate": ("ucp_put_bw", 8, 50_000),
}


class Namespaces:
    """Two namespaces and the wire between them, gone when the block ends."""

    def __init__(self) -> None:
        self.names = [f"weftwork-{os.getpid()}-{end}" for end in ("a", "b")]

    def __enter__(self) -> Self:
        for name in self.names:
            run("ip", "netns", "add", name)
        first, second = self.names
        here = ("wire", "netns", first, "mtu", str(MTU))
        there = ("name", "wire", "netns", second, "mtu", str(MTU))
        run("ip", "link", "add", *here, "type", "veth", "peer", *there)
        for name, address in zip(self.names, (CLIENT, SERVER), strict=True):
            run("ip", "-n", name, "address", "add", f"{address}/24", "dev", "wire")
            for device in ("lo", "wire"):
                run("ip", "-n", name, "link", "set", device, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False)

    def start(self, end: int, *command: str, **env: str) -> subprocess.Popen[str]:
        """Start a program at one end."""
        return subprocess.Popen(
            ["ip", "netns", "exec", self.names[end], *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | env,
        )


def run(*command: str) -> None:
    """Run a command that has to work."""
    subprocess.run(command, check=True)


def pair(wire: Namespaces, kind: str, task: str, **env: str) -> dict[str, Any]:
    """Both ends of one measurement of our own, and what they print."""
    script = str(HERE / "rdma_end.py")
    server = wire.start(1, sys.executable, script, kind, "server", SERVER, CLIENT, task, **env)
    client = wire.start(0, sys.executable, script, kind, "client", CLIENT, SERVER, task, **env)
    first = [said(end) for end in (server, client)]
    for end, other in ((server, first[1]), (client, first[0])):
        end.stdin.write(json.dumps(other) + "\n")
        end.stdin.flush()
    figures = {"client": said(client), "server": said(server), "checksum": first[0].get("checksum", "")}
    for end in (server, client):
        end.wait(PATIENCE_S)
    return figures


def said(end: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line of an end; what is no JSON is its error."""
    line = end.stdout.readline()
    if not line.startswith("{"):
        raise SystemExit(line + end.stdout.read())
    return dict(json.loads(line))


def ours(wire: Namespaces, task: str) -> dict[str, Any]:
    """The software NIC."""
    return summed(pair(wire, "rdma", task), task)


def by_zlib(wire: Namespaces, task: str) -> dict[str, Any]:
    """The software NIC with the CRC of the standard library."""
    return summed(pair(wire, "rdma", task, CRC_OF="zlib"), task) if task == "bandwidth" else {}


def tcp(wire: Namespaces, task: str) -> dict[str, Any]:
    """TCP sockets of Python; they have no messages, so that there is no message rate."""
    return {} if task == "rate" else summed(pair(wire, "tcp", task), task)


def summed(figures: dict[str, Any], task: str) -> dict[str, Any]:
    """Figures of both ends for one message."""
    client, server = figures["client"], figures["server"]
    count, wall_s = client["count"], client["wall_s"]
    calls = sum((client["calls"] | {}).values()) + sum(server["calls"].values())
    found = {
        "messages_per_s": count / wall_s,
        "cpu_s_per_message": (client["cpu_s"] + server["cpu_s"]) / count,
        "calls_per_message": calls / count,
        "cores": (client["cpu_s"] + server["cpu_s"]) / wall_s,
        "checksum": figures["checksum"],
    }
    if task == "bandwidth":
        found["bits_per_s"] = count * BIG_BYTES * 8 / wall_s
    if task == "latency":
        found |= {"p50_s": client["p50_s"], "p99_s": client["p99_s"]}
    return found


def ucx(wire: Namespaces, task: str) -> dict[str, Any]:
    """ucx_perftest over TCP: median and averages of the latency in us, of the bandwidth in MiB/s, and of the rate."""
    test, size_bytes, count = UCX[task]
    env = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "wire"}
    server = wire.start(1, "ucx_perftest", "-p", str(UCX_PORT), **env)
    await_listener(wire, 1, UCX_PORT)
    how = ("-p", str(UCX_PORT), "-t", test, "-s", str(size_bytes), "-n", str(count), "-w", "100")
    client = wire.start(0, "ucx_perftest", SERVER, *how, **env)
    text, _ = client.communicate(timeout=PATIENCE_S)
    server.communicate(timeout=PATIENCE_S)
    numbers = re.findall(r"[\d.]+", text.partition("Final:")[2])
    if len(numbers) < 8:
        raise SystemExit(f"ucx_perftest: {text}")
    _, median_us, _, average_us, _, mib_per_s, _, messages_per_s = map(float, numbers[:8])
    found = {"messages_per_s": messages_per_s}
    if task == "bandwidth":
        found["bits_per_s"] = mib_per_s * BIG_BYTES * 8
    if task == "latency":
        found |= {"p50_s": 2 * median_us / 1e6, "average_s": 2 * average_us / 1e6}  # it prints one way
    return found


def libfabric(wire: Namespaces, task: str) -> dict[str, Any]:
    """fi_pingpong: one message after the other, so that it has no message rate."""
    if task == "rate":
        return {}
    size_bytes = BIG_BYTES if task == "bandwidth" else 8
    command = ("fi_pingpong", "-p", "udp;ofi_rxd", "-e", "rdm", "-I", str(FI_ITERATIONS[task]), "-S", str(size_bytes))
    server = wire.start(1, *command, "-d", "wire")
    await_listener(wire, 1, 47_592)
    client = wire.start(0, *command, "-d", "wire", SERVER)
    text, _ = client.communicate(timeout=PATIENCE_S)
    server.communicate(timeout=PATIENCE_S)
    row = text.strip().splitlines()[-1].split()
    if len(row) < 8:
        raise SystemExit(f"fi_pingpong: {text}")
    one_way_s = float(row[6]) / 1e6
    if task == "bandwidth":
        return {"bits_per_s": size_bytes * 8 / one_way_s}
    return {"average_s": 2 * one_way_s}


def await_listener(wire: Namespaces, end: int, port: int) -> None:
    """Wait until a program listens on a TCP port."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        command = ["ip", "netns", "exec", wire.names[end], "ss", "-Hltn", f"sport = :{port}"]
        if subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip():
            return
        time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


CONTENDERS: Final[dict[str, tuple[Callable[[Namespaces, str], dict[str, Any]], str]]] = {
    "Weftwork": (ours, ""),
    "Weftwork, CRC of the standard library": (by_zlib, ""),
    "UCX over TCP": (ucx, "ucx_perftest"),
    "libfabric udp;ofi_rxd": (libfabric, "fi_pingpong"),
    "TCP sockets": (tcp, ""),
}


def measured(wire: Namespaces, rounds: int, names: Sequence[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """All contenders in each round, so that they share whatever else the machine does."""
    for task in TASKS:
        for number in range(rounds):
            for name in names:
                print(f"{task}, round {number + 1} of {rounds}: {name}", file=sys.stderr)
                yield task, name, CONTENDERS[name][0](wire, task)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    missing = [program for program in ("ip", "ss") if shutil.which(program) is None]
    if os.geteuid() != 0 or missing:
        why = f"{' and '.join(missing)} (Debian: iproute2)" if missing else "root, which makes network namespaces"
        print(f"skipped: this benchmark needs {why}")
        return 0
    names = [name for name, (_, program) in CONTENDERS.items() if not program or shutil.which(program)]
    for name in CONTENDERS.keys() - set(names):
        print(f"left out: {name}, since {CONTENDERS[name][1]} is not installed", file=sys.stderr)
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {task: {name: [] for name in names} for task in TASKS}
    with Namespaces() as wire:
        for task, name, figures in measured(wire, given.rounds, names):
            rows[task][name].append(figures)
    if given.json:
        print(json.dumps({**circumstances(given.rounds), "rows": rows}, indent=2))
    else:
        print_tables(rows, given.rounds)
    return 0


def print_tables(rows: dict[str, dict[str, list[dict[str, Any]]]], rounds: int) -> None:
    """Print what the documentation shows."""
    told = circumstances(rounds)
    checksum = rows["bandwidth"]["Weftwork"][0]["checksum"]
    changed = ", with uncommitted changes" if told["uncommitted_changes"] else ""
    print(
        f"{told['date']}, commit {told['commit']}{changed}, Python {told['python']}, {told['cpu']}, CRC by {checksum}"
    )
    print(f"\n| {rounds} rounds | 1 MiB: best | median | 8 bytes, there and back | messages of 8 bytes per second |")
    print("|---|--:|--:|--:|--:|")
    for name in rows["bandwidth"]:
        bits = [row["bits_per_s"] / 1e9 for row in rows["bandwidth"][name]]
        trip = [1e6 * row.get("p50_s", row.get("average_s", 0.0)) for row in rows["latency"][name] if row]
        rate = [row["messages_per_s"] for row in rows["rate"][name] if row]
        cells = [
            f"{max(bits):.2f} Gbit/s",
            f"{statistics.median(bits):.2f} Gbit/s",
            f"{statistics.median(trip):.0f} us" if trip else "-",
        ]
        print("|", " | ".join([name, *cells, f"{statistics.median(rate):,.0f}" if rate else "-"]), "|")
    print("\n| both ends together, per message | system calls | CPU time | cores busy |")
    print("|---|--:|--:|--:|")
    for task, what in (("bandwidth", "1 MiB"), ("latency", "8 bytes")):
        for name in ("Weftwork", "TCP sockets"):
            found = rows[task][name]
            calls = statistics.median(row["calls_per_message"] for row in found)
            cpu_us = 1e6 * statistics.median(row["cpu_s_per_message"] for row in found)
            cores = statistics.median(row["cores"] for row in found)
            print(f"| {name}, {what} | {calls:.1f} | {cpu_us:,.0f} us | {cores:.2f} |")


if __name__ == "__main__":
    sys.exit(main())

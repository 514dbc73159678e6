"""What happens when a link dies in mid-collective: prints the table of README.md and draws its figure.

python -m examples.link_dies.answer
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards
from weftwork.spec.endings import FAILED_ENDINGS

__all__ = ["Case", "figure", "measure", "report"]

MS_PS = 1e9
STEP_MS = 0.1
SHOWN_MS = 9.0


def _fault(text: str) -> dict[str, str]:
    return {"faults": f"[{{at: 500us, {text}}}]"}


CASES = {
    "nothing happens": {"faults": "[]"},
    "dies, timeout 1 ms": {"transport.timeout": "1ms"},
    "dies, timeout 4 ms": {},
    "dies, timeout 4 ms, selective repeat": {"transport.recovery": "selective-repeat"},
    "dies, timeout 67 ms (the default)": {"transport.timeout": "67.108864ms"},
    "dies, routes know after 50 us, timeout 0.5 ms": {
        "fabric.reconvergence_delay": "50us",
        "transport.timeout": "500us",
    },
    "is back after 100 us, timeout 4 ms": _fault("link: leaf0-spine0, event: down, for: 100us"),
    "its spine dies, timeout 4 ms": _fault("switch: spine0, event: down"),
    "falls to 100 Gb/s and stays": _fault("link: leaf0-spine0, event: degrade, rate: 100Gbps"),
    "loses one packet in 1,000": _fault("link: leaf0-spine0, event: lossy, loss: 0.001"),
    "loses one in 1,000, selective repeat": {
        **_fault("link: leaf0-spine0, event: lossy, loss: 0.001"),
        "transport.recovery": "selective-repeat",
    },
}
TWO_PORTS = {"fabric.dual_homed": "true", "fabric.node": "{gpus: 1, nic_ports: 2}"}
CASES |= {
    "the only NIC port of a host dies": _fault("nic: host3, event: down"),
    "two NIC ports on two leaves, nothing happens": {**TWO_PORTS, "faults": "[]"},
    "two NIC ports, one dies, queues move after 1 ms": {**TWO_PORTS, **_fault("nic: host3/nic0, event: down")},
    "two NIC ports, one dies, queues move after 0.1 ms": {
        **TWO_PORTS,
        **_fault("nic: host3/nic0, event: down"),
        "fabric.failover_delay": "100us",
    },
}
DRAWN = ("nothing happens", "dies, timeout 1 ms", "dies, timeout 4 ms", "falls to 100 Gb/s and stays")


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """How long the all-reduce takes, what was lost and sent again, and its progress: (ms, % of the bytes delivered)."""

    name: str
    took_ms: float
    lost: int
    again: int
    flows: int
    progress: tuple[tuple[float, float], ...]


def measure() -> list[Case]:
    """Run all cases."""

    def read(run: weftwork.Run) -> tuple[float, int, int, int, tuple[tuple[float, float], ...]]:
        is_stuck = run.provenance["status"] in FAILED_ENDINGS
        took_ms = math.inf if is_stuck else cases.number(run, "completion_ps") / MS_PS
        done = run.query("select delivered_ps, size_bytes from flows where delivered_ps is not null").to_pylist()
        delivered = sorted((row["delivered_ps"] / MS_PS, row["size_bytes"]) for row in done)
        total = sum(size for _, size in delivered)
        instants = [STEP_MS * step for step in range(round(min(took_ms, SHOWN_MS) / STEP_MS) + 2)]
        progress = tuple((at, 100 * sum(size for end, size in delivered if end <= at) / total) for at in instants)
        waited = run.query("select count(*) as n from flows where fct_ps > 2 * ideal_fct_ps").to_pylist()[0]["n"]
        lost = int(cases.number(run, "drops"))
        return took_ms, lost, int(cases.number(run, "retransmissions")), waited, progress

    found = [(name, cases.run(cases.in_folder(__file__), changes, read)) for name, changes in CASES.items()]
    return [
        Case(name=name, took_ms=took_ms, lost=lost, again=again, flows=flows, progress=progress)
        for name, (took_ms, lost, again, flows, progress) in found
    ]


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [("the link", "all-reduce", "costs", "packets lost", "sent again", "messages held up")]
    least_ms = math.inf
    for case in measured:
        if case.name.endswith("nothing happens"):  # those that follow are held against it
            least_ms = case.took_ms
        costs = f"{case.took_ms - least_ms:+.2f} ms" if least_ms < case.took_ms < math.inf else ""
        took = "never done" if case.took_ms == math.inf else f"{case.took_ms:.2f} ms"
        rows.append((case.name, took, costs, f"{case.lost}", f"{case.again}", f"{case.flows}"))
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    drawn = [cards.Polyline(name=case.name, points=case.progress) for case in measured if case.name in DRAWN]
    return cards.lines(
        "A ring all-reduce of 64 MiB on 16 hosts; a link dies after 0.5 ms",
        drawn,
        x_axis="time, ms",
        y_axis="bytes delivered, % of all",
        x_ticks=[(float(ms), str(ms)) for ms in range(int(SHOWN_MS) + 1)],
        is_log=False,
        has_dots=False,
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)

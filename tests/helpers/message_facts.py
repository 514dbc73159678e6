"""What the tests of reports compute from the tables of a run of messages, without anything of `weftwork.report`."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from helpers.message_runs import GAP_BYTES
from helpers.shown import columns
from numpy.typing import NDArray

from weftwork.store.runs import Run

PS = 1e12


class Facts:
    """What the tests compute from."""

    def __init__(self, run: Run) -> None:
        self.flows, self.links, self.nodes = (columns(run.path, name) for name in ("flows", "links", "nodes"))
        self.events, self.timeline = columns(run.path, "events"), columns(run.path, "timeline")
        self.end_ps = float(run.summary["simulated_ps"]["value"])
        self.done = ~np.isnan(self.flows["delivered_ps"].astype(float))
        self.fct_ps = (self.flows["delivered_ps"] - self.flows["start_ps"]).astype(float)[self.done]
        self.slowdown = self.fct_ps / self.flows["ideal_fct_ps"].astype(float)[self.done]
        self.size_bytes = self.flows["size_bytes"][self.done]
        self.took_ps = float(self.flows["delivered_ps"].astype(float)[self.done].max() - self.flows["start_ps"].min())
        self.port = {name: place for place, name in enumerate(self.links["name"])}
        self.role = self.nodes["role"]
        self.faults: dict[str, list[tuple[float, str]]] = {}  # of a link: when, and what
        for event, where, what, at_ps in zip(
            *(self.events[name] for name in ("event", "place", "detail", "at_ps")), strict=True
        ):
            if event == "fault":
                self.faults.setdefault(where, []).append((float(at_ps), what))

    def totals(self, event: str) -> dict[str, int]:
        """Counts of an event over the whole run, by detail."""
        mine = (self.events["event"] == event) & np.isnan(self.events["at_ps"].astype(float))
        return {str(d): int(c) for d, c in zip(self.events["detail"][mine], self.events["count"][mine], strict=True)}

    def direction(self, name: str) -> NDArray[np.int64]:
        """Ports that send from one role to another, such as ``leaf -> spine``."""
        low, _, high = name.partition(" \u2192 ")
        sends, receives = self.role[self.links["node"]], self.role[self.links["peer"]]
        return np.flatnonzero((sends == low) & (receives == high))

    @property
    def edges_ps(self) -> NDArray[np.int64]:
        """Ends of the bins, with 0 before them."""
        length = int((self.timeline["at_ps"] - self.timeline["start_ps"]).max())
        end = int(self.timeline["at_ps"].max())
        return np.array([*range(0, end, length), end])

    def by_bin(self, name: str, ports: NDArray[np.int64]) -> NDArray[np.float64]:
        """A column of the timeline, shape (ports, bins)."""
        found = np.zeros((len(self.links["port"]), len(self.edges_ps) - 1))
        place = np.searchsorted(self.edges_ps, self.timeline["at_ps"]) - 1
        np.add.at(found, (self.timeline["port"], place), self.timeline[name])
        return found[ports]

    def shares(self, ports: NDArray[np.int64]) -> NDArray[np.float64]:
        """Share of the time of each bin that sending took of what the link was up, gaps included; (ports, bins)."""
        sending = np.stack([self.sending_ps(int(port)) for port in ports])
        edges = self.edges_ps
        up = np.array([[self.up_ps(int(port), a, b) for a, b in pairwise(edges)] for port in ports])
        return np.minimum(np.divide(sending, up, out=np.zeros_like(sending), where=up > 0), 1.0)

    def up_ps(self, port: int, start_ps: float, end_ps: float) -> float:
        """For how long between two instants a port's link was up: faults of these runs do nothing else to a rate."""
        left, since = 0.0, start_ps
        is_up = True
        for at, what in [*sorted(self.faults.get(self.links["link"][port], ())), (end_ps, "end")]:
            now = min(max(at, start_ps), end_ps)
            left += (now - since) if is_up else 0.0
            since, is_up = now, what != "down"
        return left

    def mean_bps(self, port: int, start_ps: float, end_ps: float) -> float:
        """Rate of a port's link between two instants."""
        return float(self.links["rate_bps"][port]) * self.up_ps(port, start_ps, end_ps) / (end_ps - start_ps)

    def sending_ps(self, port: int) -> NDArray[np.float64]:
        """Time that what a port began to send in each bin takes at its nominal rate, gaps included; shape (bins,)."""
        frames, sent, rate = (float(self.links[name][port]) for name in ("frames", "bytes", "rate_bps"))
        gap = frames * GAP_BYTES / sent if sent else 0.0
        return np.asarray(self.by_bin("bytes", np.array([port]))[0] * (1 + gap) * 8 * PS / rate)

"""A small document of a design, as ``weftwork design`` writes it, and a real design of four fabrics."""

from __future__ import annotations

from typing import Any

__all__ = ["JOB", "ONLY", "design_document", "fabric"]

MS = 10**9
JOB = "schema: 3\nname: tiny\nfabric: {node: dgx-h100}\ncollective: {operation: all-reduce, size: 1MB}\n"
ONLY = [
    word
    for text in ("topology=rail-only,rail-optimized", "switch=spectrum-4", "link_rate=200Gbps,400Gbps", "planes=1",
                 "oversubscription=1", "upper=1")
    for word in ("--only", text)
]  # fmt: skip


def fabric(name: str, *, money: float, power: float, ms: float | None, **more: Any) -> dict[str, Any]:
    """A candidate that was left; a third of its money is switches."""
    kinds = {"switch": money / 3, "module": money / 3, "cable": 0.0, "nic": money / 3, "optical": 0.0, "appliance": 0.0}
    return {
        "name": name,
        "words": f"rail-only, <{name}>, 400Gbps",
        "fabric": {"topology": "rail-only"},
        "fabric_name": f"fabric {name}",
        "tree": "PGFT(2; 4,4; 1,2; 1,1)",
        "networks": 8,
        "switches": [32, 16],
        "links": [128, 64],
        "price_usd": {"low": money * 0.8, "typical": money, "high": money * 1.2},
        "power_w": {"low": power * 0.9, "typical": power, "high": power * 1.1},
        "money_by_kind_usd": {
            kind: {"low": part * 0.8, "typical": part, "high": part * 1.2} for kind, part in kinds.items()
        },
        "unverified_money_share": 0.75,
        "unverified_power_share": 1.0,
        "least_bandwidth_share": 0.5,
        "time_ps": None if ms is None else ms * MS,
        "useful_share": 1.0,
        "counting_time_ps": None if ms is None else ms * MS,
        "closed_form_ps": {"least": 90.0 * MS, "most": 120.0 * MS},
        "limited_by": "computing",
        "run": f"runs/{name} & 1",
        "reason": "",
        "is_front": False,
        "is_knee": False,
        "is_take": False,
        "placed": [],
        "placed_time_ps": None,
        "cables": 192,
        "cluster_usd": {"low": 8e6 + money, "typical": 10e6 + money, "high": 12e6 + money},
        "network_life_usd": {"low": money, "typical": money + 4 * power, "high": money + 5 * power},
        "work_per_usd": None if ms is None else 3e15 / (ms * MS) / (10e6 + money) * 1e6,
        **more,
    }


def design_document(**more: Any) -> dict[str, Any]:
    """Three fabrics on the front, two that lose, and some that were pruned."""
    beaten = {"loses_to": "f002", "loses_by": {"money": 0.25, "power": 0.0, "time": 0.1}}
    return {
        "weftwork": "0",
        "name": "tiny & small",
        "node": "dgx-h100",
        "gpus": 64,
        "file": "tiny <job>.yaml",
        "prices": "street-2025",
        "budget_usd": None,
        "power_budget_w": None,
        "number": "iteration_ps",
        "by": "flow engine",
        "plan": {},
        "chosen_anew": [],
        "counted": 20,
        "pruned": [
            {"reason": "no <port> of that rate", "count": 9, "example": "fat-tree, a & b",
             "detail": "fabric.switch: x < y", "better": None},
            {"reason": "another is better", "count": 6, "example": "hpn", "detail": "", "better": "f002"},
        ],
        "front": ["f001", "f002", "f003"],
        "knee": "f002",
        "criterion": "work-per-dollar",
        "take": "f002",
        "take_packed": None,
        "placed_key": "",
        "cluster": {
            "gpus": 64, "life_hours": 35_064.0, "gpu_hour_usd": {"low": 1.0, "typical": 1.25, "high": 1.5},
            "is_given": False, "source": "a <list>", "date": "2026", "verified": False, "work": 1e6,
            "work_unit": "token",
        },
        "price_regions": [
            {"name": "f001", "from_usd": 0.0, "to_usd": 0.5}, {"name": "f002", "from_usd": 0.5, "to_usd": None},
        ],
        "price_corners": [{"prices": "low prices of GPUs and high ones of the network", "name": "f002"}],
        "kinds": [],
        "end": "done",
        "kept": 0,
        "candidates": [
            fabric("f001", money=1e6, power=10_000, ms=150, is_front=True),
            fabric("f002", money=1.2e6, power=12_000, ms=100, is_front=True, is_knee=True, is_take=True),
            fabric("f004", money=1.5e6, power=12_000, ms=110, **beaten),
            fabric("f005", money=1.6e6, power=13_000, ms=180, **{**beaten, "loses_to": "f001"}),
            fabric("f003", money=2e6, power=20_000, ms=98, is_front=True),
        ],
        **more,
    }  # fmt: skip

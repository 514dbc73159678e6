"""A small document of a search for plans, as ``weftwork plan`` writes it."""

from __future__ import annotations

from typing import Any

from weftwork.study.plan.words import KINDS

__all__ = ["GB", "MS", "plan_document"]

GB = 10**9
MS = 10**9


def plan_document(*, best: int = 3, pruned: dict[str, int] | None = None, unsure: int = 0) -> dict[str, Any]:
    """Plans of which each next one computes as long, and has 10 ms more of bubble and 4 ms less of data traffic."""
    ranked = [
        {
            "plan": f"DP {8 >> place}, {place} & 'more'",
            "short": f"DP{8 >> place} <mb{place}>",
            "keys": {"data": 8 >> place},
            "iteration_ps": (100 + 6 * place) * MS,
            "closed_form_ps": (98 + 6 * place) * MS,
            "limited_by": "computing",
            "tokens_per_s": 1e6 / (100 + 6 * place),
            "mfu": 0.5,
            "memory_bytes": (60 - 10 * place) * GB,
            "exposed_share": 0.2,
            "near_peaks": [],
            "near_words": "no measured row is near",
            **dict.fromkeys(KINDS, 0),
            "compute_ps": 80 * MS,
            "exposed_data_ps": (20 - 4 * place) * MS,
            "bubble_ps": 10 * place * MS,
            **({"loses_by": "bubble", "loses_ps": 10 * place * MS} if place else {}),
        }
        for place in range(best)
    ]
    front = [
        {
            "short": f"F{place}",
            "keys": {},
            "closed_form_ps": (98 + 20 * place) * MS,
            "memory_bytes": (60 - 5 * place) * GB,
        }
        for place in range(8)
    ]
    cloud = [*front, {"short": "slow", "closed_form_ps": 900 * MS, "memory_bytes": 30 * GB}]
    return {
        "name": "tiny & small",
        "about": {"workload": "an iteration of tiny", "fabric": "one switch", "assumes": "nothing"},
        "kinds": dict(KINDS),
        "gpus": 8,
        "fixed": ["zero"],
        "counted": 40,
        "pruned": {"memory": 7, "context": 3} if pruned is None else pruned,
        "gpu_bytes": 80 * GB,
        "headroom": 0.1,
        "limit_bytes": 72 * GB,
        "run": best,
        "not_run_within_margin": unsure,
        "closed_form_s": 0.5,
        "flow_s": 0.25,
        "best": ranked,
        "own": None,
        "megatron": {"plan": 0, "arguments": ["--bf16", "--seq-length", "2048"], "left_out": {}},
        "front": front,
        "cloud": cloud,
    }

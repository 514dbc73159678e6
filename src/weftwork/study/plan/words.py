"""A search in words: plans, and the loss of slower plans.

Leaves out: tables and colours (`weftwork.cli.plan`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from weftwork.study.plan.megatron import megatron_lacks, megatron_of
from weftwork.study.validation.nearest_peaks import fit_words, near_words, peaks_document
from weftwork.workload.imports.megatron import EXPERT_OVERLAP, TENSOR_OVERLAP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.study.plan.search import Counted, Ranked, Search

__all__ = ["KINDS", "kept_words", "loss", "search_document", "short_words"]

# Numbers of a run's summary that add up to an iteration, and what people call them
KINDS: Final = {
    "compute_ps": "computing",
    "exposed_tensor_ps": "tensor traffic",
    "exposed_context_ps": "context traffic",
    "exposed_expert_ps": "expert traffic",
    "exposed_pipeline_ps": "stage messages",
    "exposed_data_ps": "data traffic",
    "spent_offload_ps": "offloaded activations",  # of plans that offload
    "bubble_ps": "bubble",
    "spent_skew_ps": "waiting for others",
}
# Traffic that Megatron-LM hides only where an argument asks for it: the share with the argument, and the argument
_SWITCHED: Final = {
    "expert": (EXPERT_OVERLAP, "--overlap-moe-expert-parallel-comm"),
    "tensor": (TENSOR_OVERLAP, "--tp-comm-overlap"),
}
_USUAL: Final = {"order": "tp-cp-dp-pp", "balanced_ends": False, "recompute": "none", "placement": "packed"}
_SCHEDULES: Final = {"gpipe": "GPipe", "zb-h1": "ZB-H1", "dualpipe": "DualPipe"}  # beside 1F1B, which is the usual one


def kept_words(one: Ranked) -> str:
    """A plan as people write it, with keys that differ from the default."""
    keys = one.candidate.keys
    extra = [_SCHEDULES[keys["schedule"]]] if keys["schedule"] in _SCHEDULES else []
    if keys["recompute"] != _USUAL["recompute"]:
        extra.append(f"{keys['recompute']} recomputation")
    if keys["balanced_ends"]:
        extra.append("balanced ends")
    if keys["order"] != _USUAL["order"]:
        extra.append(str(keys["order"]))
    if keys["placement"] != _USUAL["placement"]:
        extra.append(f"placed as {keys['placement']}")
    return ", ".join([one.words, *extra])


def short_words(keys: Mapping[str, Any]) -> str:
    """A plan in a table, such as ``TP2 CP4 PP2x10 DP32 ZeRO2 mb1``.

    Degrees of 1 are left out.

    Parameters
    ----------
    keys : of the plan; stages are written with their virtual stages, ``mb`` is the micro batch
    """
    degrees = (("TP", "tensor"), ("CP", "context"), ("EP", "expert"), ("ETP", "expert_tensor"))
    found = [f"{name}{keys[key]}" for name, key in degrees if keys[key] > 1]
    if keys["pipeline"] > 1:
        virtual = f"x{keys['virtual_stages']}" if keys["virtual_stages"] > 1 else ""
        found.append(f"PP{keys['pipeline']}{virtual}")
    found += [_SCHEDULES[keys["schedule"]]] if keys["schedule"] in _SCHEDULES else []
    found.append(f"DP{keys['data']}")
    found += [f"ZeRO{keys['zero']}"] if keys["zero"] else []
    found.append(f"mb{keys['micro_batch']}")
    found += [f"{keys['recompute']}-recompute"] if keys["recompute"] != _USUAL["recompute"] else []
    found += ["balanced"] if keys["balanced_ends"] else []
    found += [str(keys["order"])] if keys["order"] != _USUAL["order"] else []
    found += [str(keys["placement"])] if keys["placement"] != _USUAL["placement"] else []
    return " ".join(found)


def loss(slower: Ranked, faster: Ranked) -> tuple[str, int]:
    """The part in which a plan loses most against another plan.

    Returns
    -------
    the kind of time, of `KINDS`, and by how many ps it is longer
    """
    more = {
        words: round((slower.numbers[name].value or 0) - (faster.numbers[name].value or 0))
        for name, words in KINDS.items()
        if name in slower.numbers and name in faster.numbers
    }
    words = max(more, key=lambda name: more[name])
    return words, more[words]


def search_document(found: Search) -> dict[str, Any]:
    """A search as one JSON object."""
    best = found.best[0]
    is_for_other = found.trainer is not None and found.trainer.name != "megatron"
    arguments = None if is_for_other else megatron_of(found)
    return {
        "name": found.scenario.name,
        "about": dict(best.about),
        "kinds": {name: words for name, words in KINDS.items() if name in best.numbers},
        "gpus": best.candidate.plan.ranks,
        "fixed": list(found.fixed),
        "assumed": list(found.assumed),
        "counted": found.counted,
        "pruned": dict(found.pruned),
        "gpu_bytes": found.gpu_bytes,
        "headroom": found.headroom,
        "trainer": None if found.trainer is None else {"name": found.trainer.name, "title": found.trainer.title},
        "left_ways": found.left_ways,
        "limit_bytes": found.limit_bytes,
        "run": len(found.best),
        "not_run_within_margin": found.unsure,
        "waiting": [_counted(one) for one in found.waiting],
        "closed_form_s": round(found.closed_s, 3),
        "flow_s": round(found.flow_s, 3),
        "within_s": found.within_s,
        "took_s": round(found.closed_s + found.flow_s, 3),
        "best": [_ranked(one, best, found.gpu_bytes) for one in found.best],
        "own": _own(found),
        "megatron": None
        if arguments is None
        else {
            "plan": arguments.place,
            "arguments": list(arguments.words),
            "left_out": dict(arguments.left_out),
        },
        "overlap": _overlap(found),
        "megatron_lacks": megatron_lacks(found, best),
        "front": [{"keys": dict(one.candidate.keys), **_counted(one)} for one in found.front],
        "cloud": [_counted(one) for one in found.cloud],
    }


def _overlap(found: Search) -> list[dict[str, Any]]:
    """Shares of communication that may hide behind computation, of the kinds that the listed plans have."""
    overlaps = []
    for degree in ("expert", "tensor", "context", "pipeline", "data"):
        plans = [one.candidate.plan for one in found.best if getattr(one.candidate.plan, degree) > 1]
        for share in sorted({getattr(plan.overlap, degree) for plan in plans}):
            of_plans = {plan.virtual_stages > 1 for plan in plans if getattr(plan.overlap, degree) == share}
            row: dict[str, Any] = {"kind": KINDS[f"exposed_{degree}_ps"], "key": f"training.overlap.{degree}"}
            if degree == "pipeline" and len(of_plans) == 1:
                row["kind"] += " with virtual stages" if True in of_plans else " without virtual stages"
            row["share"] = share
            if degree in _SWITCHED:
                share_with, argument = _SWITCHED[degree]
                row |= {"share_with": share_with, "argument": argument, "trainer": "Megatron-LM"}
            overlaps.append(row)
    return overlaps


def _own(found: Search) -> dict[str, Any] | None:
    """Place of the user's plan among the best, or its mistakes.

    None without a plan of the user's.
    """
    if found.own is not None:
        return {"plan": found.best.index(found.own)}
    mistakes = [f"{one.path}: {one.text}" for one in found.own_mistakes]
    return {"plan": None, "mistakes": mistakes} if mistakes else None


def _ranked(one: Ranked, best: Ranked, gpu_bytes: int) -> dict[str, Any]:
    numbers = ("tokens_per_s", "mfu", "memory_bytes", "exposed_share", *KINDS)
    found: dict[str, Any] = {
        "plan": kept_words(one),
        "short": short_words(one.candidate.keys),
        "keys": dict(one.candidate.keys),
        "iteration_ps": one.iteration_ps,
        "closed_form_ps": one.time.total_ps,
        "limited_by": one.limited_by,
        "interval": None if one.interval is None else asdict(one.interval),
        **{name: one.numbers[name].value for name in numbers if name in one.numbers},
    }
    found["near_peaks"] = peaks_document(one.near_peaks)
    found["near_words"] = near_words(one.near_peaks) + fit_words(one.candidate.memory_bytes, gpu_bytes, one.near_peaks)
    if one is best:
        return found
    kind, more_ps = loss(one, best)
    return {**found, "loses_by": kind, "loses_ps": more_ps}


def _counted(one: Counted) -> dict[str, Any]:
    return {
        "short": short_words(one.candidate.keys),
        "closed_form_ps": one.time.total_ps,
        "memory_bytes": one.candidate.memory_bytes,
    }

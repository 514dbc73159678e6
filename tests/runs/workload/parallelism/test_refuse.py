"""Plans that cannot be: each reason, all at once, and the nearest plan, which itself can be."""

from __future__ import annotations

from helpers.cases import case_count
from helpers.parallelism_refuse import changed
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.base.fix import Fix
from weftwork.hardware.catalogue import gpu
from weftwork.spec.training import Parallelism
from weftwork.workload.models.catalogue import MODELS, model
from weftwork.workload.parallelism.refuse import refuse

PLANS = st.fixed_dictionaries(
    {
        "tensor": st.sampled_from([1, 2, 3, 4, 8, 16]),
        "context": st.sampled_from([1, 2, 3]),
        "pipeline": st.sampled_from([1, 2, 3, 5, 8]),
        "data": st.sampled_from([1, 2, 4, 7]),
        "expert": st.sampled_from([1, 2, 6, 8]),
        "virtual_stages": st.sampled_from([1, 1, 2, 3]),
        "micro_batch": st.sampled_from([1, 2, 3]),
        "global_batch": st.sampled_from([1, 48, 64, 100]),
        "schedule": st.sampled_from(["1f1b", "gpipe", "zb-h1", "dualpipe"]),
        "recompute": st.sampled_from(["none", "full"]),
        "zero": st.sampled_from([0, 1, 3]),
        "is_sequence_parallel": st.booleans(),
        "sequence": st.just(4096),
    }
)


@given(
    name=st.sampled_from(sorted(MODELS)),
    gpus=st.sampled_from([8, 24, 64, 100, 512]),
    plan=PLANS,
    device=st.sampled_from(["a100", "h100", "gb200"]),
)
@settings(max_examples=case_count(plain=15, deep=200), deadline=None)
def test_a_proposed_plan_is_never_refused(name: str, gpus: int, plan: dict[str, object], device: str) -> None:
    asked = {"gpus": gpus, "gpu": gpu(device)}
    near = _proposed(name, plan, **asked)
    if near is not None:
        refuse(model(name), Parallelism.model_validate(changed(plan, near)), **asked)  # type: ignore[arg-type]


def _proposed(name: str, plan: dict[str, object], **asked: object) -> Fix | None:
    """The line that proposes another plan; None where the plan can be, or none can."""
    try:
        refuse(model(name), Parallelism.model_validate(plan), **asked)  # type: ignore[arg-type]
    except ConfigError as error:
        return error.mistakes[-1].fix
    return None

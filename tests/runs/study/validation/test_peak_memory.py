"""What Weftwork counts of a GPU's memory, beside peaks that others measured, and every plan that others ran."""

from __future__ import annotations

from weftwork.study.validation.published_cases import Case, bridge, sc21, vtrain_multi_node, vtrain_single_node
from weftwork.workload.parallelism.memory import fullest_stage


def published() -> list[Case]:
    found = [*vtrain_multi_node(), *vtrain_single_node(), *sc21()]
    for family in ("dense-fp8", "dense-nvfp4", "experts", "gpt-oss"):
        found += bridge(family)[0]
    return found


def test_every_published_plan_fits_its_gpu() -> None:
    cases = published()
    assert len(cases) > 480
    over = []
    for case in cases:
        memory = fullest_stage(case.model, case.plan, has_flash_attention=case.software.has_flash_attention)
        if memory.total_bytes > case.gpu.memory_bytes:
            over.append(f"{case.name}: {memory.total_bytes / case.gpu.memory_bytes:.1%}: {memory.text}")
    assert not over

"""Random questions for a search of plans: a scenario with some keys of its plan, and what a search makes of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.scenario import Scenario
from weftwork.study.plan.space import SEARCHED, Degrees, Space, parts
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.prepare.training import TrainingSetting, training_setting
from weftwork.topology.build import fabric_of_section
from weftwork.workload.models.catalogue import MODELS

FEW_GPUS: Final = (8, 16, 32, 64)
MORE_GPUS: Final = (16, 64, 256, 1024)
FIXED: Final = {
    "pipeline": (1, 2, 4, 8), "tensor": (1, 2, 4, 8), "zero": (0, 1, 2, 3), "virtual_stages": (1, 2, 4),
    "schedule": ("1f1b", "zb-h1", "dualpipe", "gpipe"), "expert": (1, 2, 8), "context": (1, 2), "micro_batch": (1, 2),
    "recompute": ("none", "full"), "balanced_ends": (True, False),
}  # fmt: skip
BESIDE: Final[dict[str, tuple[Any, ...]]] = {  # keys that no search looks for
    "recompute_every": (2, 3), "precision": ("fp8",), "bf16_first_layers": (1,), "gradients": ("bf16", "bf16+fp32"),
    "overlap": ({"data": 0.0}, {"tensor": 0.5}, {"expert": 0.6, "pipeline": 0.3}, {"data": 1.0, "context": 0.0}),
    "context_exchange": ("all-to-all",), "prefetch": (False,), "offloaded_layers": (2, 6, 40), "sequence": (2048, 8192),
}  # fmt: skip


class Searched(NamedTuple):
    scenario: Scenario
    setting: TrainingSetting
    space: Space
    spread: list[Degrees]  # ways to spread the GPUs, in a random order


def question(
    seed: int, *, gpus: Sequence[int] = FEW_GPUS, share_beside: float = 0.0
) -> tuple[dict[str, Any], frozenset[str]]:
    """A scenario with some keys of its plan, and the names of those of a search."""
    draw = random.Random(seed)
    count = draw.choice(gpus)
    fixed = {key: draw.choice(values) for key, values in FIXED.items() if draw.random() < 0.2}
    beside = {key: draw.choice(values) for key, values in BESIDE.items() if draw.random() < share_beside}
    batch = count * draw.choice([1, 2, 4, 8])
    training = {"model": draw.choice(list(MODELS)), "global_batch": batch, **beside, **fixed}
    if draw.random() < 0.2:
        training["phase"] = draw.choice(["long-context", "fine-tuning-lora"])
    node = draw.choice(["dgx-h100", "dgx-a100", "dgx-b200"])
    fabric = {"topology": "rail-optimized", "gpus": count, "node": node, "switch": "tomahawk-5"}
    return {"schema": 3, "fabric": fabric, "training": training}, frozenset(fixed) & frozenset(SEARCHED)


def searched(seed: int, folder: Path, *, gpus: Sequence[int] = FEW_GPUS, share_beside: float = 0.0) -> Searched | None:
    """What a search makes of a question; None where the user's own keys cannot be."""
    tree, fixed = question(seed, gpus=gpus, share_beside=share_beside)
    return searched_tree(tree, fixed, folder, seed=seed)


def searched_tree(tree: dict[str, Any], fixed: frozenset[str], folder: Path, *, seed: int = 0) -> Searched | None:
    """What a search makes of a scenario; ``fixed`` are those of its keys that a search would vary."""
    file = folder / "question.yaml"
    file.write_text(yaml.dump(tree), encoding="utf-8")
    try:
        scenario = read_scenario(file)
        fabric = fabric_of_section(scenario.fabric, directory=folder)
        assert scenario.training is not None
        setting = training_setting(scenario, fabric, scenario.training)
    except ConfigError:
        return None
    space = Space(
        section=scenario.training, model=setting.model, gpu=setting.gpu, gpus=fabric.gpus,
        domain_gpus=setting.cluster.domain_gpus, has_flash_attention=setting.software.has_flash_attention,
        fixed=fixed,
    )  # fmt: skip
    spread = [degrees for part in parts(space) for degrees in part]
    random.Random(seed).shuffle(spread)
    return Searched(scenario, setting, space, spread)

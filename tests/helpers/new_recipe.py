"""A recipe whose plan has to divide its GPUs, and the exit code of `weftwork new` on it."""

from __future__ import annotations

import pytest

from weftwork.cli import main
from weftwork.workload.models.catalogue import MODELS
from weftwork.workload.recipes.catalogue import recipe_names

NAME = "26.06/deepseek-v3/gb300/mxfp8"


DIVISIBLE = {
    name: found
    for name, found in recipe_names().items()
    if found[0].model in MODELS and found[0].gpus // found[0].pipeline % (found[0].expert * found[0].expert_tensor) == 0
}


def left_code(*words: str) -> object:
    with pytest.raises(SystemExit) as left:
        main(list(words))
    return left.value.code

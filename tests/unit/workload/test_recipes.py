"""The catalogue of public recipes: every row reads, its words are known, and its plan fits its GPUs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final, get_args

import pytest

from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import GPUS, gpu
from weftwork.spec.training import GraphModule, Precision, RecomputeModule
from weftwork.workload.models.catalogue import MODELS, model
from weftwork.workload.parallelism.layout_text import layout_mistakes
from weftwork.workload.recipes.catalogue import RELEASES, Recipe, recipes

# Models of recipes that the catalogue of models lacks: multimodal ones, ones of other attention, and new ones.
ABSENT: Final = {
    "deepseek-v4-flash", "deepseek-v4-pro", "glm-5.1", "glm-5.2", "qwen3-vl-235b-a22b", "qwen3-vl-30b-a3b",
    "qwen3.5-vl-122b-a10b", "qwen3.5-vl-35b-a3b", "qwen3.5-vl-397b-a17b",
}  # fmt: skip
# Words of recipes that no key obeys: hyper-connections; whole layers, with a method and how many.
UNKNOWN_MODULES: Final = {"mhc"}
# As the files have them: an expert on more ranks than a stage has, and a batch that its ranks do not divide.
EXPERTS_BEYOND_A_STAGE: Final = 9
BATCHES_THAT_DO_NOT_DIVIDE: Final = 2


def test_every_row_is_one_recipe_of_a_release() -> None:
    found = recipes()
    assert len(found) > 400
    tags = set(RELEASES.values())
    for one in found:
        assert one.tags
        assert set(one.tags) <= tags
        assert list(one.tags) == sorted(one.tags, key=list(RELEASES.values()).index)
    assert {tag for one in found for tag in one.tags} == tags
    named = Counter((tag, one.file, one.recipe, one.model, one.gpu, one.precision) for one in found for tag in one.tags)
    assert named.most_common(1)[0][1] == 1


def test_every_model_and_gpu_is_of_the_catalogue_or_said_to_be_absent() -> None:
    models = {one.model for one in recipes()}
    assert models - set(MODELS) == ABSENT
    assert {one.gpu for one in recipes()} <= set(GPUS)
    assert {one.precision for one in recipes()} <= set(get_args(Precision))
    assert {one.task for one in recipes()} == {"pretrain", "sft", "lora"}


def test_every_module_is_a_known_word() -> None:
    graphs = {word for one in recipes() for word in one.graphs.split("+") if word}
    assert graphs <= set(get_args(GraphModule))
    again = {word for one in recipes() for word in one.recompute.split("+") if word}
    methods = {word for word in again if word.startswith("full ")}
    assert again - methods - UNKNOWN_MODULES <= set(get_args(RecomputeModule))
    for word in methods:
        _, method, layers = word.split()
        assert method in {"uniform", "block"}
        assert int(layers) > 0
    for one in recipes():
        assert set(one.graph_modules) == set(filter(None, one.graphs.split("+")))
        assert set(one.recompute_modules) == set(one.recompute.split("+")) & set(get_args(RecomputeModule))


def test_module_precisions_are_read() -> None:
    mixed = [one for one in recipes() if one.module_precision]
    assert mixed
    for one in mixed:
        written = dict(part.split(":") for part in one.module_precision.split())
        assert one.modules.model_dump(exclude_none=True) == written
    assert all(not one.modules.model_dump(exclude_none=True) for one in recipes() if not one.module_precision)


def data_ranks(one: Recipe) -> int:
    return one.gpus // (one.tensor * one.pipeline * one.context)


def test_plans_divide_their_gpus_and_batches() -> None:
    for one in recipes():
        assert one.gpus % (one.tensor * one.pipeline * one.context) == 0, one.recipe
    beyond = [one for one in recipes() if one.gpus // one.pipeline % (one.expert * one.expert_tensor)]
    assert len(beyond) == EXPERTS_BEYOND_A_STAGE
    assert {one.gpus for one in beyond} == {64}  # the file sets a model's experts, and the launcher the number of GPUs
    odd = [one for one in recipes() if one.global_batch % (one.micro_batch * data_ranks(one))]
    assert len(odd) == BATCHES_THAT_DO_NOT_DIVIDE
    assert {one.model for one in odd} == {"nemotron-h-56b"}


def test_layouts_lay_out_the_layers_of_their_model() -> None:
    laid_out = [one for one in recipes() if "L" in one.layout and one.model in MODELS]
    assert len(laid_out) > 10
    for one in laid_out:
        made = model(one.model).model_copy(update={"prediction_layers": one.prediction_layers})
        assert layout_mistakes(one.layout, made, one.pipeline * one.chunks) == [], (one.recipe, one.layout)
    others = {one.layout for one in recipes() if "L" not in one.layout}
    assert all(text in {"", "ends"} or text.startswith("first=") for text in others)


def test_an_exchange_hides_where_the_recipe_says_so() -> None:
    for one in recipes():
        assert (one.overlap.expert > 0) == one.hides_exchange
        assert (one.overlap.tensor > 0) == one.hides_tensor
        assert (one.overlap.pipeline or 0) == (0.8 if one.chunks > 1 else 0)
        assert one.dispatcher_multiprocessors < gpu(one.gpu).streaming_multiprocessors


@pytest.mark.parametrize(
    ("dispatcher", "multiprocessors", "share"),
    [("hybridep", 16, 0.82), ("hybridep", 32, 0.88), ("deepep", 20, 0.48), ("deepep", 128, 0.70), ("alltoall", 0, 1.0)],
)
def test_a_dispatcher_gets_more_of_nvlink_with_more_multiprocessors(
    dispatcher: str, multiprocessors: int, share: float
) -> None:
    one = replace(recipes()[0], dispatcher=dispatcher, dispatcher_multiprocessors=multiprocessors)
    assert one.exchange_efficiency == share


@pytest.mark.parametrize("release", RELEASES)
def test_the_software_of_a_recipe_is_that_of_its_release_with_what_it_sets(release: str) -> None:
    for one in recipes():
        if RELEASES[release] not in one.tags:
            continue
        made = one.software(release)
        assert made.name.startswith("megatron-bridge-26.0")
        assert made.graphs == one.graph_modules
        assert made.has_deduplicated_experts == (one.dispatcher in {"hybridep", "deepep"})
        assert (made.expert_streams == 0) == one.has_fused_activations
        assert made.exchange_multiprocessors == one.dispatcher_multiprocessors


def test_a_release_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ConfigError):
        recipes()[0].software("25.01")

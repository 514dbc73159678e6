"""The catalogue of models: what it holds, and that shapes give the parameters their authors publish."""

from __future__ import annotations

import math

import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.training import Model
from weftwork.workload.models.catalogue import ABSENT, MODELS, model, model_caveats
from weftwork.workload.models.size import (
    LayerKind,
    active_parameters,
    attended_tokens,
    layer_kinds,
    model_flops_per_token,
    parameters,
)

# Authors who count the head among the active parameters and the embedding not.
HEAD_ONLY = {"deepseek-v3", "gpt-oss-20b", "gpt-oss-120b", "nemotron-3-ultra"}


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_those_that_are_published(name: str) -> None:
    published = MODELS[name].value("parameters")
    rounding = 50_000_000 if name in {"gpt-1.7b", "gpt-3.6b"} else 0  # published as 1.7 and 3.6 billion, to two digits
    assert abs(parameters(model(name)).total - published) <= 0.01 * published + rounding


@pytest.mark.parametrize("name", [name for name, row in MODELS.items() if "active_parameters" in row.figures])
def test_active_parameters_are_those_that_are_published(name: str) -> None:
    counted = active_parameters(model(name)) - (parameters(model(name)).embedding if name in HEAD_ONLY else 0)
    assert math.isclose(counted, MODELS[name].value("active_parameters"), rel_tol=0.012)


@pytest.mark.parametrize(
    ("name", "embeddings", "others"),
    [
        ("nemotron-4-15b", 3.2, 12.5),  # arXiv:2402.16819, section 2
        ("nemotron-4-340b", 9.4, 331.6),  # arXiv:2406.11704, section 2.2
        ("minitron-8b", 2.1, 6.2),  # arXiv:2407.14679
    ],
)
def test_squared_relu_has_two_matrices(name: str, embeddings: float, others: float) -> None:
    """An MLP with a gate would have half as many parameters again."""
    counted = parameters(model(name))
    assert (counted.embedding + counted.head) / 1e9 == pytest.approx(embeddings, abs=0.06)
    assert (counted.attention + counted.dense) / 1e9 == pytest.approx(others, abs=0.06)
    assert counted.total == counted.embedding + counted.head + counted.attention + counted.dense


def test_a_quarter_of_grok_is_active() -> None:
    """xAI, "Open release of Grok-1": 25 % of the weights are active on a given token."""
    found = model("grok-1")
    assert active_parameters(found) / parameters(found).total == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("name", MODELS)
def test_layers_are_of_the_kinds_that_the_record_counts(name: str) -> None:
    found, kinds = model(name), layer_kinds(model(name))
    assert len(kinds) == found.layers
    assert sum(kind.mlp == "experts" for kind in kinds) == found.expert_layers
    assert sum(kind.mixer == "state-space" for kind in kinds) == found.state_space_layers
    assert sum(kind.mixer == "window" for kind in kinds) == found.window_layers
    assert sum(kind.mixer == "delta" for kind in kinds) == found.delta_layers
    attention = found.layers - found.delta_layers if found.attention_layers is None else found.attention_layers
    assert sum(kind.mixer in {"attention", "window"} for kind in kinds) == attention


def test_every_model_with_experts_has_all_of_their_figures() -> None:
    for name in MODELS:
        found = model(name)
        given = [found.experts, found.experts_per_token, found.expert_ffn, found.expert_layers]
        assert all(given) or not any(given), name


def test_flops_of_sc21_are_its_formula_without_recomputation() -> None:
    """Narayanan et al., SC 2021, section 5.1: 96 B s l h^2 (1 + s/6h + V/16lh), a quarter of it done twice."""
    found = model("gpt-39.1b")
    with_again = 96 * 48 * 8192**2 * (1 + 2048 / (6 * 8192) + 51200 / (16 * 48 * 8192))
    head = 6 * 51200 * 8192
    without = (with_again - head) * 3 / 4 + head
    assert model_flops_per_token(found, causal=False) == pytest.approx(without, rel=1e-12)


def test_causal_attention_is_half_of_all_attention() -> None:
    found = model("llama-3-8b")
    whole, causal = (model_flops_per_token(found, 8192, causal=flag) for flag in (False, True))
    assert whole - causal == 6 * 32 * 32 * 128 * 8192


def test_a_window_bounds_what_is_attended() -> None:
    found = model("gpt-oss-20b")
    window, full = LayerKind(mixer="window", mlp="experts"), LayerKind(mixer="attention", mlp="experts")
    assert attended_tokens(found, window, 4096) == 128 - 128 * 128 / 8192
    assert attended_tokens(found, window, 64) == attended_tokens(found, full, 64) == 32
    assert [kind.mixer for kind in layer_kinds(found)[:4]] == ["window", "attention", "window", "attention"]


def test_prediction_modules_cost_flops_and_stand_apart_in_the_count() -> None:
    found = model("deepseek-v3")
    assert parameters(found).prediction == pytest.approx(11.5e9, rel=0.012)  # README_WEIGHTS.md of the model: 11.5 B
    without = found.model_copy(update={"prediction_layers": 0})
    assert parameters(without).total == parameters(found).total
    assert model_flops_per_token(found) > model_flops_per_token(without)


def test_a_module_that_is_passed_twice_is_held_once() -> None:
    found = model("nemotron-3-super")
    assert parameters(found).prediction == pytest.approx(2_942_324_736, rel=1e-4)  # of its weights on Hugging Face
    apart = found.model_copy(update={"has_shared_predictions": False})
    assert parameters(apart).prediction == 2 * parameters(found).prediction
    assert model_flops_per_token(apart) == model_flops_per_token(found)


def test_weights_that_stand_still_need_two_products_of_three_and_all_of_the_attention() -> None:
    found = model("llama-3-8b")
    frozen, free = (model_flops_per_token(found, 8192, has_frozen_weights=flag) for flag in (True, False))
    attention = 6 * 2 * 32 * 32 * 128 * 4096
    assert frozen - attention == pytest.approx(2 / 3 * (free - attention), rel=1e-12)


def test_delta_nets_come_three_to_each_attention() -> None:
    found = model("qwen3-next-80b-a3b")
    assert [kind.mixer for kind in layer_kinds(found)[:4]] == ["delta", "delta", "delta", "attention"]
    assert parameters(found).total == pytest.approx(79_674_391_296, rel=1e-5)  # of Qwen3-Coder-Next's weights
    with_prediction = parameters(found).total + parameters(found).prediction
    assert with_prediction == pytest.approx(81_324_862_720, rel=1e-5)  # of Qwen3-Next's weights


@pytest.mark.parametrize("name", ABSENT)
def test_an_absent_model_says_what_is_missing_and_what_is_nearest(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        model(name)
    (mistake,) = caught.value.mistakes
    assert ABSENT[name].missing in mistake.text
    assert mistake.fix is None or mistake.fix in MODELS
    assert name not in MODELS


def test_an_unknown_model_names_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        model("lama-3-70b")
    assert caught.value.mistakes[0].fix == "llama-3-70b"


def test_facts_are_figures_of_the_shape_that_are_not_verified() -> None:
    assert "gpt-3-175b.hidden" in model_caveats("gpt-3-175b")
    assert "gpt-1.7b.hidden" not in model_caveats("gpt-1.7b")
    assert not any(key.endswith("parameters") for key in model_caveats("llama-2-7b"))
    assert model_caveats("mine") == {}


def test_a_tied_embedding_is_counted_once_and_computed_once() -> None:
    tied = Model(name="t", layers=2, hidden=64, heads=4, key_value_heads=4, head_dim=16, ffn=256, vocabulary=1000)
    free = tied.model_copy(update={"has_tied_embeddings": False})
    assert parameters(free).total - parameters(tied).total == 64_000
    assert model_flops_per_token(free) == model_flops_per_token(tied)

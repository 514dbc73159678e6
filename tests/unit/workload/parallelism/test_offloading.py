"""Which layers are offloaded, and the units beside their transfers, against the program that the rule was read from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from helpers.cases import case_count
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.workload.models.size import LayerKind
from weftwork.workload.parallelism.layout import Unit
from weftwork.workload.parallelism.offloading import Transfer, offloaded_counts, transfers

LAYER = Unit(part="layer", layer=LayerKind(mixer="attention", mlp="dense"))
MIXTURE = Unit(part="layer", layer=LayerKind(mixer="attention", mlp="experts"))
EMBEDDING, HEAD = Unit(part="embedding"), Unit(part="head")


def test_windows_are_as_long_as_each_other_and_longer_ones_come_first() -> None:
    found = transfers([LAYER] * 8, 3)
    assert [(one.behind, one.last) for one in found] == [(0, 2), (2, 5), (5, 7)]
    assert [(one.behind, one.last) for one in transfers([LAYER] * 5, 4)] == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_ends_of_the_model_are_not_offloaded() -> None:
    units = (EMBEDDING, LAYER, MIXTURE, LAYER, HEAD)
    assert transfers(units, 2) == (Transfer(LAYER, 1, 2), Transfer(MIXTURE, 2, 3))


@pytest.mark.parametrize(
    ("layers", "wanted", "counts"),
    [
        ([80], 20, (20,)),
        ([80], 80, (79,)),
        ([4, 4], 3, (1, 2)),
        ([1, 1, 1], 3, (0, 0, 0)),
        ([5, 0, 3], 9, (4, 0, 2)),
        ([4, 4], 0, (0, 0)),
    ],
)
def test_the_last_layer_of_each_part_stays(layers: list[int], wanted: int, counts: tuple[int, ...]) -> None:
    assert offloaded_counts(layers, wanted) == counts


@given(layers=st.lists(st.integers(0, 12), min_size=1, max_size=6), wanted=st.integers(0, 80))
@settings(max_examples=case_count(plain=100, deep=1_000), deadline=None)
def test_parts_share_what_is_offloaded_as_far_as_they_have_layers(layers: list[int], wanted: int) -> None:
    counts = offloaded_counts(layers, wanted)
    assert sum(counts) == min(wanted, sum(max(0, count - 1) for count in layers))
    assert all(0 <= count <= max(0, own - 1) for count, own in zip(counts, layers, strict=True))


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Forward and backward times of layers, and times of the transfers of the first ones."""
    layers = draw(st.integers(2, 12))
    count = draw(st.integers(1, layers - 1))
    times = st.integers(0, 100)
    forward, backward = (draw(st.lists(times, min_size=layers, max_size=layers)) for _ in range(2))
    return forward, backward, draw(st.lists(times, min_size=count, max_size=count))


@given(case=cases())
@settings(max_examples=case_count(plain=60, deep=2_000), deadline=None)
def test_both_passes_take_as_long_as_with_the_streams_of_transformer_engine(
    case: tuple[list[int], list[int], list[int]],
) -> None:
    forward, backward, moved = case
    found = transfers([LAYER] * len(forward), len(moved))
    assert [one.beside.start for one in found[1:]] == [one.beside.stop for one in found[:-1]]
    for times, simulated in ((forward, forward_by_streams(forward, moved)), (backward, backward_by_streams(*case[1:]))):
        exposed = [max(0, taken - sum(times[one.beside])) for one, taken in zip(found, moved, strict=True)]
        assert sum(times) + sum(exposed) == simulated


def window_map(layers: int, count: int) -> list[int]:
    """Last layer of each window, by the sizes of the windows."""
    sizes = [layers // count + (place < layers % count) for place in range(count)]
    return [sum(sizes[: place + 1]) - 1 for place in range(count)]


def forward_by_streams(times: Sequence[int], moved: Sequence[int]) -> int:
    """Two streams: behind each layer a program starts a transfer, waits for it, or goes on."""
    ends = window_map(len(times), len(moved))
    computed = copied = 0
    done = 0
    for layer, taken in enumerate(times):
        computed += taken
        if layer == 0:
            copied = computed + moved[0]
        if done < len(ends) and ends[done] == layer:
            computed = max(computed, copied)
            if done + 1 < len(moved):
                copied = computed + moved[done + 1]
            done += 1
    return computed


def backward_by_streams(times: Sequence[int], moved: Sequence[int]) -> int:
    """The same from behind: in front of each layer it waits for the transfer before, and starts the next one."""
    ends = window_map(len(times), len(moved))
    computed = copied = 0
    left = len(moved)
    for layer in reversed(range(len(times))):
        if left and ends[left - 1] == layer:
            computed = max(computed, copied)
            copied = computed + moved[left - 1]
            left -= 1
        if layer == 0:
            computed = max(computed, copied)
        computed += times[layer]
    return computed


def test_longer_windows_hide_more() -> None:
    lengths = [[len(range(20)[one.beside]) for one in transfers([LAYER] * 20, count)] for count in (1, 5, 10, 19)]
    assert [min(found) for found in lengths] == [19, 3, 1, 1]
    assert all(first >= later for first, later in pairwise(min(found) for found in lengths))

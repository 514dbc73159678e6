"""Names that follow from numbers: the same as when all of them are written out, and found without a list."""

from __future__ import annotations

import numpy as np
import pytest

from weftwork.spec.fabric_names import LinkNames, NodeNames


def test_node_names_are_words_with_numbers() -> None:
    names = NodeNames([("host", 11), ("leaf", 2), ("core", 0)])
    assert len(names) == 13
    assert names[0] == "host0"
    assert names[-1] == "leaf1"
    assert names[9:12] == ("host9", "host10", "leaf0")
    assert names == [f"host{index}" for index in range(11)] + ["leaf0", "leaf1"]
    assert names != ["host0"]
    assert [names.find(name) for name in names] == list(range(13))
    assert [names.find(wrong) for wrong in ("host11", "core0", "host01", "host", "spine0", "host-1")] == [None] * 6
    with pytest.raises(IndexError):
        names[13]


def test_a_link_is_named_from_the_lower_tier() -> None:
    nodes = NodeNames([("spine", 1), ("leaf", 1)])
    names = LinkNames(nodes, np.array([2, 1]), np.array([0, 1, 0]), np.array([1, 0, 1]))
    assert list(names) == ["leaf0-spine0", "leaf0-spine0.2", "leaf0-spine0.3"]
    assert names.find("leaf0-spine0.3") == 2
    assert names.find("spine0-leaf0") is None

"""Each fidelity and each workload of spec has its file in study, and the other way round."""

from __future__ import annotations

from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.workloads import WORKLOADS
from weftwork.study.prepare.engine import ENGINES
from weftwork.study.prepare.workload import ROADS


def test_each_fidelity_has_an_engine() -> None:
    assert sorted(ENGINES) == sorted(FIDELITIES)
    assert [
        name for name in ENGINES if (ENGINES[name].folded_memory_bytes is None) == FIDELITIES[name].folds_training
    ] == []


def test_engines_count_memory_by_the_same_parts() -> None:
    packet = ENGINES["packet"].memory_bytes
    assert [name for name in ENGINES if ENGINES[name].memory_bytes.keys() != packet.keys()] == []


def test_each_workload_has_a_road() -> None:
    assert sorted(ROADS) == sorted(WORKLOADS)

"""What two plans of engines differ in, and the engine input that a run would give to its engine."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weftwork
from weftwork.engine import packet
from weftwork.engine.flow import run as flow
from weftwork.engine.reference import simulation
from weftwork.policies.load import LoadedPolicy


class EngineIsCalled(Exception):  # noqa: N818 - no error: the run is stopped where the engine begins
    """The engine input that an engine was asked to run."""

    def __init__(self, engine_input: object) -> None:
        super().__init__()
        self.engine_input = engine_input


def plan_of_run(file: Path, monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> object:
    """The input of the engine of `weftwork.run`, which goes no further and writes nothing."""

    def stop(engine_input: object, *_: object, **__: object) -> None:
        raise EngineIsCalled(engine_input)

    with monkeypatch.context() as patch:
        patch.setattr(packet, "run", stop)
        patch.setattr(flow, "run", stop)
        patch.setattr(simulation, "Simulation", stop)
        with pytest.raises(EngineIsCalled) as called:
            weftwork.run(file, out=file.parent / "never written", **arguments)
    return called.value.engine_input


def differences(one: object, other: object, path: str = "engine_input") -> list[str]:
    """Where two plans differ, array by array."""
    if type(one) is not type(other):
        return [f"{path}: {type(one).__name__} and {type(other).__name__}"]
    if isinstance(one, LoadedPolicy) and isinstance(other, LoadedPolicy):
        is_same = (one.name, one.hash, dict(one.values)) == (other.name, other.hash, dict(other.values))
        return [] if is_same else [path]
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        is_same = one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
        return [] if is_same else [path]
    if isinstance(one, tuple) and isinstance(other, tuple):
        if len(one) != len(other):
            return [f"{path}: {len(one)} and {len(other)} entries"]
        return [
            text for at, pair in enumerate(zip(one, other, strict=True)) for text in differences(*pair, f"{path}.{at}")
        ]
    if is_dataclass(one):
        return [
            text
            for field in fields(one)
            for text in differences(getattr(one, field.name), getattr(other, field.name), f"{path}.{field.name}")
        ]
    return [] if one == other or one is other else [path]

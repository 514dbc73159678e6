"""Optuna behind its interface: it finds known optima, repeats itself, and is asked for where it is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from helpers.sweeps import SCENARIO

from weftwork.base.errors import ConfigError
from weftwork.study.tune.question import TuneQuestion
from weftwork.study.tune.sampler import refuse_without_optuna
from weftwork.study.tune.search import run_tune


@pytest.fixture
def optuna() -> None:
    pytest.importorskip("optuna", reason="Optuna comes with the extra 'plan'")


def test_without_optuna_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "optuna" else there(name, *more)
    )
    with pytest.raises(ConfigError, match=r"install it with: pip install 'weftwork\[plan\]'"):
        refuse_without_optuna()
    (tmp_path / "a.yaml").write_text(SCENARIO)
    question = TuneQuestion(files=(tmp_path / "a.yaml",), parameters=("fabric.switch.alpha",))
    with pytest.raises(ConfigError, match="Optuna, which chooses the values, is not installed"):
        run_tune(question, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()

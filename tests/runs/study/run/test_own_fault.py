"""Training that waits for itself for ever is called a fault of Weftwork, where no fault of the scenario explains it."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.waiting import run_of, run_programs

from weftwork.report.waiting import OWN_FAULT, waiting_lines
from weftwork.spec.job import Await, Operation
from weftwork.workload.training.programs import Stage

TRAINING = """\
schema: 3
fabric: {topology: rail-optimized, node: dgx-h100, gpus: 16, switch: tomahawk-5}
training: {model: llama-3-8b, global_batch: 16, sequence: 1024, memory: 1TB}
"""
FAULT = "faults: [{at: 1ms, link: host0-leaf0, event: degrade, fraction: 0.5}]\n"


def waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each stage end with a wait for what nobody tells."""
    usual = Stage._update

    def update(stage: Stage) -> list[Operation]:
        return [*usual(stage), Await(token=99)]

    monkeypatch.setattr(Stage, "_update", update)


@pytest.mark.parametrize("more", ["", FAULT])
def test_training_that_waits_for_itself(tmp_path: Path, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits_for_ever(monkeypatch)
    run = run_of(tmp_path, TRAINING + more, what_if="none")
    assert run.status == "stuck"
    assert run.has_own_fault == (not more)
    assert (OWN_FAULT.format(folder=run.path) in waiting_lines(run)) == (not more)


def test_programs_of_the_user_may_wait_for_themselves(tmp_path: Path) -> None:
    run = run_programs(tmp_path, "[((Await(token=1),),)]")
    assert run.status == "stuck"
    assert not run.has_own_fault


def test_training_that_ends_has_no_fault(tmp_path: Path) -> None:
    run = run_of(tmp_path, TRAINING, what_if="none")
    assert run.status == "complete"
    assert not run.has_own_fault

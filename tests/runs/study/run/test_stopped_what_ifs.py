"""A run that is stopped while its what-ifs run: what is known of the run itself is told."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from weftwork.cli.run import run_document
from weftwork.report.answer import print_answer
from weftwork.report.page import run_page
from weftwork.store.runs import Run
from weftwork.study.record.run import run_scenario
from weftwork.study.run.execute import Progress

COLLECTIVE: dict[str, Any] = {
    "schema": 3,
    "name": "two slow links",
    "fabric": {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "link_rate": "100Gbps"},
    "collective": {"operation": "all-reduce", "size": "1MB"},
    "faults": [
        {"at": "0ps", "link": "leaf0-spine0", "event": "degrade", "fraction": 0.5},
        {"at": "0ps", "link": "leaf1-spine1", "event": "degrade", "fraction": 0.5},
    ],
}
TRAINING = {
    **{key: COLLECTIVE[key] for key in ("schema", "faults")},
    "name": "tiny training",
    "fabric": {**COLLECTIVE["fabric"], "hosts_per_leaf": 1, "node": "dgx-h100"},
    "training": {"model": "gpt-1.7b", "tensor": 8, "global_batch": 4, "sequence": 2048},
    "faults": [{"at": "0ps", "nic": "host0/nic0", "event": "slow", "fraction": 0.5}],
}


def stopped_at(number: int, scenario: dict[str, Any], out: Path, fidelity: str) -> Run:
    """A run that somebody stops at the start of a what-if."""

    def watch(now: Progress) -> None:
        if now.world.startswith(f"what-if {number} of "):
            raise KeyboardInterrupt

    document = {**scenario, "engine": {"fidelity": fidelity}}
    return run_scenario(document, out=out, what_if="all", progress=watch)


def printed(run: Run) -> str:
    console = Console(file=io.StringIO(), width=200)
    print_answer(run, console)
    return console.file.getvalue()


@pytest.mark.parametrize(("scenario", "fidelity"), [(COLLECTIVE, "packet"), (COLLECTIVE, "flow"), (TRAINING, "flow")])
def test_a_stop_in_the_what_ifs_keeps_what_the_run_took(
    scenario: dict[str, Any], fidelity: str, tmp_path: Path
) -> None:
    whole = stopped_at(0, scenario, tmp_path / "whole", fidelity)
    assert "what_ifs_stopped" not in whole.provenance
    for number in (1, 2):
        run = stopped_at(number, scenario, tmp_path / str(number), fidelity)
        assert run.status == "complete"
        assert run.summary == whole.summary
        assert (run.answer.took, run.answer.limited_by) == (whole.answer.took, whole.answer.limited_by)
        stop = run.provenance["what_ifs_stopped"]
        assert (stop["made"], stop["lacks_goodput"]) == (number - 1, False)
        assert stop["wanted"] > number
        simulated = [one.name for one in (run.answer.culprit, *run.answer.others) if one.how == "simulated"]
        assert len(simulated) <= number - 1
        said = printed(run)
        assert f"what-ifs   stopped after {number - 1} of {stop['wanted']}: the run itself had ended" in said
        assert f"What-ifs stopped after {number - 1} of " in run_page(run)
        assert run_document(run)["what_ifs_stopped"] == stop
    assert "what-ifs   stopped" not in printed(whole)
    assert run_document(whole)["what_ifs_stopped"] is None


def test_a_stop_in_the_run_itself_is_partial(tmp_path: Path) -> None:
    def watch(now: Progress) -> None:
        assert not now.world
        raise KeyboardInterrupt

    document = {**COLLECTIVE, "engine": {"fidelity": "packet"}}
    run = run_scenario(document, out=tmp_path / "run", progress=watch)
    assert run.status == "interrupted"
    assert "PARTIAL: interrupted" in printed(run)

"""At the end of simulated time a run stops and says so, in every engine; what alone outlasts it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from weftwork.base.clock import NEVER_PS
from weftwork.base.errors import ConfigError
from weftwork.report.answer import answer
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.run import run_scenario

if TYPE_CHECKING:
    from weftwork.store.runs import Run

FABRIC = {"topology": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2, "link_rate": "100Gbps"}
TRAINED = {
    "fabric": {"topology": "rail-optimized", "gpus": 16, "node": "dgx-h100", "switch": "tomahawk-5"},
    "training": {"model": "llama-3-8b", "tensor": 8, "micro_batch": 1, "global_batch": 2},
}


def ran(folder: Path, **sections: object) -> Run:
    path = folder / "late.yaml"
    path.write_text(yaml.safe_dump({"schema": 3, **sections}), encoding="utf-8")
    return run_scenario(path, out=folder / "run")


@pytest.mark.parametrize("fidelity", ["packet", "flow", "reference"])
def test_latencies_of_weeks_add_up_to_the_end_of_the_clock(tmp_path: Path, fidelity: str) -> None:
    late = {"operation": "all-reduce", "size": "4KiB", "protocol": "none", "step_latency": "2000000s"}
    run = ran(tmp_path, fabric=FABRIC, collective=late, engine={"fidelity": fidelity})
    assert run.status == "stopped"
    assert run.value("simulated_ps") == NEVER_PS
    assert answer(run)[0].startswith(
        "Took NOT FINISHED: simulated time ends after 2,305,843 s, and there was work left."
    )


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_a_job_that_waits_for_ever_is_still_stuck(tmp_path: Path, fidelity: str) -> None:
    down = [{"at": "0ps", "link": "leaf0-spine0", "event": "down"}]
    transport = {"recovery": "timeout", "retry_limit": 1, "timeout": "10us"}
    run = ran(
        tmp_path,
        fabric=FABRIC,
        traffic={"pattern": "incast", "size": "4KiB", "senders": 3},
        engine={"fidelity": fidelity},
        faults=down,
        transport=transport,
    )
    assert run.status == ("stuck" if fidelity == "flow" else "gave-up")
    ended = "nothing was left to do" if fidelity == "flow" else "a queue pair gave up"
    assert ended in answer(run)[0]


def test_training_in_which_one_operation_outlasts_the_clock_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "late.yaml"
    training = {**TRAINED["training"], "software": {"matmul_efficiency": 1e-300}}
    path.write_text(yaml.safe_dump({"schema": 3, **TRAINED, "training": training}), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        prepare(read_scenario(path))
    (mistake,) = refused.value.mistakes
    assert (mistake.path, mistake.line is not None) == ("training", True)
    assert "would take longer than simulated time, 2,305,843 s; look at" in mistake.text

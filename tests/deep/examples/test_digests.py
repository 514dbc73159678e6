"""Digests of all examples and of the benchmarks' rows: a change that says that it moves no result moves none of these.

A digest is SHA-256 over completion times and counters of a run (`weftwork.engine.digest`). What an example runs by
itself is held in `test_examples`, which runs it anyway. Leaves out: rows that other programs run.
"""

from __future__ import annotations

from pathlib import Path

import flow_against_packet
import published_nccl
import pytest
import rows
import training_scale
from helpers.digests import LONG, SMALL, Check, check_scenario, digest_of_row

import weftwork
from weftwork.engine import packet
from weftwork.engine.flow import run as flow
from weftwork.study.prepare.prepare import prepare, read_scenario

LARGE = sorted(set(rows.ROWS) - set(SMALL))
LARGEST_BYTES = 64 << 20  # of a published collective; larger ones differ by the number of packets alone


@pytest.mark.parametrize("scenario", LONG)
def test_a_scenario_of_the_examples_keeps_its_digest(scenario: str, tmp_path: Path, check_golden: Check) -> None:
    check_scenario(scenario, tmp_path, check_golden)


@pytest.mark.parametrize("name", LARGE)
def test_a_large_row_of_the_packet_engine_keeps_its_digest(name: str, check_golden: Check) -> None:
    check_golden(f"digests/packet_engine/{name}.txt", f"{digest_of_row(name)}\n")


@pytest.mark.parametrize("routing", list(flow_against_packet.ROUTING))
@pytest.mark.parametrize("shape", list(flow_against_packet.SHAPES))
def test_a_shape_of_both_fidelities_keeps_its_digests(
    shape: str, routing: str, tmp_path: Path, check_golden: Check
) -> None:
    found = []
    for fidelity in ("packet", "flow"):
        file = tmp_path / f"{fidelity}.yaml"
        file.write_text(
            flow_against_packet.scenario_text(shape, routing, flow_against_packet.FIXED_WINDOW, fidelity),
            encoding="utf-8",
        )
        engine_input = prepare(read_scenario(file)).engine_input
        outcome = packet.run(engine_input) if fidelity == "packet" else flow.run(engine_input).packets
        found.append(f"{fidelity} {outcome.digest()}\n")
    check_golden(f"digests/flow_against_packet/{shape}.{routing}.txt", "".join(found))


@pytest.mark.parametrize("name", list(published_nccl.CURVES))
def test_a_curve_of_collectives_packet_by_packet_keeps_its_numbers(name: str, check_golden: Check) -> None:
    found = published_nccl.rows_of(published_nccl.CURVES[name], largest_bytes=LARGEST_BYTES)
    lines = [f"{row.gpus} {row.size_bytes} {row.weftwork!r} {row.algorithm} {row.protocol}\n" for row in found]
    check_golden(f"digests/published_nccl/{name}.txt", "".join(lines))


@pytest.mark.parametrize("gpus", [16_384, 131_072])
@pytest.mark.parametrize("routing", list(training_scale.ROUTINGS))
def test_a_row_of_training_at_scale_keeps_its_digest(
    routing: str, gpus: int, tmp_path: Path, check_golden: Check
) -> None:
    overrides = training_scale.settings_of(gpus, routing)
    run = weftwork.run(training_scale.SCENARIO, out=tmp_path / "run", overrides=overrides)
    check_golden(f"digests/training_scale/{gpus}.{routing}.txt", f"{run.provenance['digest']}\n")

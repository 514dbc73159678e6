"""``weftwork collective``: the columns of nccl-tests, one line for each size, on any fabric."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import weftwork
from weftwork.cli import main
from weftwork.workload.collectives.call import bus_bandwidth_factor

if TYPE_CHECKING:
    from pathlib import Path


FABRIC = (
    "{schema: 3, fabric: {topology: leaf-spine, hosts: 8, radix: 8, link_rate: 100Gbps}, traffic: {pattern: incast}}"
)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["collective", *arguments])
    return int(left.value.code or 0)


@pytest.fixture
def fabric(tmp_path: Path) -> str:
    file = tmp_path / "fabric.yaml"
    file.write_text(FABRIC)
    return str(file)


def test_a_line_for_each_size_in_the_columns_of_nccl_tests(fabric: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("all-reduce", "--fabric", fabric, "--sizes", "64KiB:256KiB") == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(line for line in lines if "busbw" in line)
    columns = ["size", "count", "type", "redop", "root", "time", "algbw", "busbw", "proto", "algorithm"]
    assert head.lstrip("#").split() == columns
    rows = [line.split() for line in lines if not line.startswith("#")]
    assert [int(row[0]) for row in rows] == [65_536, 131_072, 262_144]
    for row in rows:
        size, count, time_us, algbw, busbw = int(row[0]), int(row[1]), *(float(text) for text in row[5:8])
        assert count == size // 4
        assert algbw == pytest.approx(size / time_us / 1e3, rel=0.02)
        assert busbw == pytest.approx(algbw * float(bus_bandwidth_factor("all-reduce", 8)), rel=0.02)


def test_each_line_says_by_which_algorithm_and_protocol(fabric: str, capsys: pytest.CaptureFixture[str]) -> None:
    for given, protocol in (([], "simple"), (["--set", "collective.protocol=none"], "none")):
        assert run("all-reduce", "--fabric", fabric, "--sizes", "64KiB", "--algorithm", "tree", *given) == 0
        (row,) = (line.split() for line in capsys.readouterr().out.splitlines() if not line.startswith("#"))
        assert row[-2:] == [protocol, "tree"]


def test_auto_takes_the_protocol_that_is_the_fastest_at_a_size(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ("8KiB", "32MiB", "4GiB")
    given = ["all-reduce", "--gpus", "16", "--sizes", ",".join(sizes), "--json", "--set", "engine.fidelity=flow"]
    given += ["--algorithm", "ring"]
    found: dict[str, list[dict[str, object]]] = {}
    for protocol in ("auto", "simple", "ll128", "ll"):
        assert run(*given, "--set", f"collective.protocol={protocol}") == 0
        found[protocol] = json.loads(capsys.readouterr().out)["sizes"]
    auto = found.pop("auto")
    assert [row["protocol"] for row in auto] == ["ll", "ll128", "simple"]
    for index, row in enumerate(auto):
        times = {protocol: rows[index]["time_ps"] for protocol, rows in found.items()}
        assert row["time_ps"] == times[str(row["protocol"])]
        assert row["protocol"] == min(times, key=lambda one: times[one])  # type: ignore[arg-type, return-value]


def test_the_same_as_json(fabric: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("all-gather", "--fabric", fabric, "--sizes", "64KiB,1MiB", "--gpus", "4", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["operation"], document["gpus"]) == ("all-gather", 4)
    assert [row["size_bytes"] for row in document["sizes"]] == [65_536, 1_048_576]
    assert all(row["bus_bandwidth_bps"] <= 100e9 for row in document["sizes"])
    assert [(row["algorithm"], row["protocol"]) for row in document["sizes"]] == [("ring", "ll"), ("ring", "ll128")]
    assert document["algorithm"] == "auto"


def test_it_takes_as_long_as_the_same_scenario_in_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rails.yaml"
    file.write_text(
        "{schema: 3, fabric: {topology: rail-optimized, hosts: 2, node: dgx-h100, radix: 64},"
        " collective: {operation: all-reduce, algorithm: auto, size: 64KiB}}"
    )  # the node brings its NIC
    assert run("all-reduce", "--fabric", str(file), "--sizes", "64KiB", "--json") == 0
    row = json.loads(capsys.readouterr().out)["sizes"][0]
    assert row["time_ps"] == weftwork.run(file, out=tmp_path / "run").value("collective_duration_ps")


def test_without_a_fabric_it_is_a_rail_fabric_of_h100_servers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("all-reduce", "--gpus", "16", "--sizes", "8MiB") == 0
    out = capsys.readouterr().out
    assert "rail-optimized" in out
    assert "16 GPUs" in out


def test_some_gpus_of_the_last_server_may_take_no_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("all-reduce", "--gpus", "2", "--sizes", "1MiB") == 0
    out = capsys.readouterr().out
    assert "among 2 GPUs" in out
    assert "with 8 GPUs" in out
    assert "# note" not in out
    assert run("all-reduce", "--gpus", "12", "--sizes", "1KiB") == 0
    out = capsys.readouterr().out
    assert "with 16 GPUs" in out
    assert "the algorithm knows no domain" in out  # 8 and 4: not of one length


def test_bandwidths_are_those_of_the_mean_time(fabric: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = "faults=[{at: 0us, nic: host0, event: slow, fraction: 0.05, for: 1ms}]"  # the first repetition takes longer
    pcie, given = "fabric.nic={pcie_rate: 100Gbps}", ("--set", slow, "--sizes", "1MiB", "--repeat", "3", "--json")
    assert run("all-reduce", "--algorithm", "ring", "--fabric", fabric, "--set", pcie, *given) == 0
    row = json.loads(capsys.readouterr().out)["sizes"][0]
    assert row["algorithm_bandwidth_bps"] == pytest.approx(8e12 * (1 << 20) / row["time_ps"], rel=1e-6)
    keys = {"traffic": "null", "collective": "{operation: all-reduce, size: 1MiB, repeat: 3}"}
    overrides = keys | {"fabric.nic": pcie.partition("=")[2], "faults": slow.partition("=")[2]}
    folder = weftwork.run(fabric, out=tmp_path / "run", overrides=overrides)
    durations = folder.table("collectives")["duration_ps"].to_pylist()
    assert durations[0] > 1.5 * durations[2]
    assert folder.value("collective_bus_bandwidth_bps") == pytest.approx(row["bus_bandwidth_bps"], rel=1e-6)


def test_whoever_takes_part_is_counted(fabric: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("all-gather", "--fabric", fabric, "--sizes", "64KiB", "--json") == 0
    assert json.loads(capsys.readouterr().out)["gpus"] == 8


def test_a_barrier_has_a_time_and_no_bandwidth(fabric: str, capsys: pytest.CaptureFixture[str]) -> None:
    algorithm = "ring"
    assert run("barrier", "--algorithm", algorithm, "--fabric", fabric, "--sizes", "1B", "--json") == 0
    row = json.loads(capsys.readouterr().out)["sizes"][0]
    assert row["time_ps"] > 0
    assert row["bus_bandwidth_bps"] is None
    assert run("barrier", "--fabric", fabric, "--sizes", "1B") == 0
    assert capsys.readouterr().out.startswith("# ring barrier among 8 GPUs; simulated")


def test_a_run_with_a_dead_fabric_says_that_it_never_ends(fabric: str, capsys: pytest.CaptureFixture[str]) -> None:
    dead = "faults=[{at: 0us, switch: leaf0, event: down}]"
    assert run("all-reduce", "--fabric", fabric, "--sizes", "64KiB", "--set", dead) == 1
    found = capsys.readouterr()
    assert "never" in found.out
    assert "did not end" in found.err


TORUS = """
schema: 3
fabric: {topology: torus, shape: [4, 4], link_rate: 400Gbps, fabric_rate: 100Gbps, routing: dimension-order}
transport: {congestion_control: fixed-window}
"""


def on_torus(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, list[list[str]]]:
    """The head and the rows of an all-reduce on a lossless torus, packet by packet."""
    file = tmp_path / "torus.yaml"
    file.write_text(TORUS)
    assert run("all-reduce", "--fabric", str(file), "--set", "collective.protocol=none", *arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    return lines[0], [line.split() for line in lines if not line.startswith("#")]


def test_algorithms_of_a_torus_use_all_of_its_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    busbw = {}
    for name in ("ring", "bucket", "swing"):
        _, [row] = on_torus(tmp_path, capsys, "--algorithm", name, "--sizes", "4MiB")
        busbw[name] = float(row[7])
    assert busbw["ring"] < 12.5  # GB/s: a ring has one link of 100 Gb/s in each direction
    assert 40 < busbw["bucket"] < 50  # four links
    assert 40 < busbw["swing"] < 50


def test_auto_says_what_it_takes_on_a_torus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, rows = on_torus(tmp_path, capsys, "--sizes", "4KiB,64KiB", "--set", "fabric.shape=[3,3]")
    assert "all-reduce as auto chooses among 9 GPUs" in head
    assert [row[-1] for row in rows] == ["bucket", "bucket"]
    _, [row] = on_torus(tmp_path, capsys, "--sizes", "4KiB")
    assert row[-1] == "swing"


def test_gpus_that_fill_no_box_are_refused_with_the_missing_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "torus.yaml"
    file.write_text(TORUS)
    assert run("all-reduce", "--fabric", str(file), "--algorithm", "swing", "--gpus", "6", "--sizes", "4KiB") == 2
    assert "2 places without a GPU, (2, 1), (3, 1)" in capsys.readouterr().err

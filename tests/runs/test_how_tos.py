"""How users add a file of their own, or bring a job: each page is followed to the letter, in an empty folder."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.how_to import DOCS, follow
from helpers.workers_here import use_workers_here
from page_blocks import Block

import weftwork


@pytest.fixture(autouse=True)
def workers_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    use_workers_here(monkeypatch)


def own_file(done: list[Block]) -> str:
    """The one Python file of a page."""
    (file,) = (step.name for step in done if step.name.endswith(".py"))
    return file


def summary(folder: Path, run: str, name: str) -> float:
    return float(weftwork.open_run(folder / "runs" / run).summary[name]["value"])


def kept(folder: Path, run: str, file: str) -> str:
    """Where the folder of a run has its copy of a file of the user's own."""
    return str(folder / "runs" / run / "files" / file)


def test_a_job_for_megatron_lm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow("../import.md", tmp_path, monkeypatch)
    assert summary(tmp_path, "imported", "iteration_ps") > 0
    assert not (tmp_path / "wrong.yaml").exists()


def test_a_topology_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = follow("own-topology.md", tmp_path, monkeypatch)
    assert weftwork.read_scenario("runs/ring/scenario.yaml").fabric.topology == kept(tmp_path, "ring", own_file(done))
    assert summary(tmp_path, "ring", "fct_max_ps") == summary(tmp_path, "again", "fct_max_ps")
    assert (tmp_path / "ring.svg").is_file()


def test_a_traffic_pattern_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = follow("own-traffic.md", tmp_path, monkeypatch)
    traffic = weftwork.read_scenario("runs/near/scenario.yaml").traffic
    assert traffic is not None
    assert traffic.pattern == kept(tmp_path, "near", own_file(done))
    # across, four flows of 100 Gb/s share two uplinks of 100 Gb/s, hashed; near, the one that crosses has its own
    assert summary(tmp_path, "across", "fct_max_ps") > 1.9 * summary(tmp_path, "near", "fct_max_ps")


def test_a_collective_algorithm_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = follow("own-collective.md", tmp_path, monkeypatch)
    collective = weftwork.read_scenario("runs/chain/scenario.yaml").collective
    assert collective is not None
    assert collective.algorithm == kept(tmp_path, "chain", own_file(done))
    # seven hops of the whole buffer, or of a sixteenth with fifteen more behind it
    whole, pieces = (summary(tmp_path, run, "completion_ps") for run in ("whole", "chain"))
    assert whole / pieces == pytest.approx(7 / ((7 + 15) / 16), rel=0.12)


def test_a_transport_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = follow("own-transport.md", tmp_path, monkeypatch)
    transport = weftwork.read_scenario("runs/tunnel/scenario.yaml").transport
    assert transport.protocol == kept(tmp_path, "tunnel", own_file(done))
    # 1,024 bytes of payload, 62 of headers and 20 between frames; the tunnel adds 50
    ratio = summary(tmp_path, "tunnel", "fct_max_ps") / summary(tmp_path, "plain", "fct_max_ps")
    assert ratio == pytest.approx((1_024 + 82 + 50) / (1_024 + 82), rel=0.02)


def test_a_suspect_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow("own-suspect.md", tmp_path, monkeypatch)
    answer = weftwork.open_run(tmp_path / "runs" / "halls").answer
    (own,) = (suspect for suspect in answer.others if suspect.file is not None)
    # two links between switches of 10 us each way; cables of 10 m take 50 ns
    assert own.cost_s == pytest.approx(2 * (10e-6 - 50e-9), rel=0.05)


def test_a_file_of_your_own_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow("own-policy.md", tmp_path, monkeypatch)
    assert {file.name for file in (tmp_path / "pictures").iterdir()} == {"my_cc-goodput.svg", "my_port-uplinks.svg"}
    # the parameter counts, and a quarter of the queueing delay still fills the link
    first, short = (summary(tmp_path, run, "fct_max_ps") for run in ("first", "short"))
    assert first < short < 1.1 * first


def test_a_capture_is_written_and_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow("capture.md", tmp_path, monkeypatch)
    assert (tmp_path / "lost.pcapng").stat().st_size > 9 * 1024


@pytest.mark.deep
def test_rdma_on_a_simulated_fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow("rdma-in-simulation.md", tmp_path, monkeypatch)
    # what the page says of the two incasts: 1,995.93 us by software NICs
    assert summary(tmp_path, "own", "fct_max_ps") == pytest.approx(1_995_930_000, rel=0.015)


@pytest.mark.deep
def test_rdma_between_two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow("rdma.md", tmp_path, monkeypatch)
    assert both("server.py", "client.py", 7471) == [
        "the table of the server: [ 0 42  2  3]\n",
        "before the addition: 1\nwhat the client reads: [ 0 42  2  3]\n",
    ]
    assert both("server_async.py", "client_async.py", 7472) == [
        "a letter of 21 bytes\n",
        "one after the other: [0, 10, 20]\n",
    ]


def both(server: str, client: str, port: int) -> list[str]:
    """What two programs print, of which the second starts when the first listens; the page says the same."""
    with contextlib.ExitStack() as stack:
        ends: list[subprocess.Popen[str]] = []
        for name in (server, client):
            start = subprocess.Popen(
                [sys.executable, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            ends.append(stack.enter_context(start))
            stack.callback(start.kill)
            while ends[0].poll() is None and not is_listening(port):
                pass
        told = [end.communicate(timeout=60)[0] for end in ends]
    page = (DOCS / "rdma.md").read_text(encoding="utf-8")
    assert [line for text in told for line in text.splitlines() if line not in page] == []
    return told


def is_listening(port: int) -> bool:
    """Whether a process takes requests on a port of 127.0.0.1."""
    return f"@weftwork-rdma/127.0.0.1/listen/{port}\n" in Path("/proc/net/unix").read_text(encoding="utf-8")


def test_comparing_six_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow("compare.md", tmp_path, monkeypatch)
    page = (tmp_path / "runs" / "llama-1to1-and-5-more.html").read_text(encoding="utf-8")
    assert "6 runs compared: llama-3-8b and qwen3-30b-a3b" in page
    assert str(tmp_path) not in page


def test_a_peer_that_misbehaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = follow("rdma-peer.md", tmp_path, monkeypatch)
    assert [step.name for step in done if step.name] == ["twice.yaml", "wrong.yaml"]


def test_a_pyverbs_program_without_an_rdma_nic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = follow("pyverbs.md", tmp_path, monkeypatch)
    program = tmp_path / "program.py"
    program.write_text(done[0].text.split("install()\n", 1)[1])  # without the two lines that hardware does not need
    words = [sys.executable, "-m", "weftwork.compat.pyverbs", str(program)]
    assert "received 5 bytes" in subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.deep
def test_tools_for_rdma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = follow("rdma-tools.md", tmp_path, monkeypatch)
    assert [step.text.split()[1] for step in done if step.is_command] == [
        "perf",
        "perf",
        "perf",
        "simulate",
    ]

"""``weftwork rdma perf``, ``ping`` and ``show``: columns, JSON, both ends as programs, and what errors say."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from helpers.command import command_of

if TYPE_CHECKING:
    from collections.abc import Iterator


HERE = "127.{}.{}.85".format(*divmod(os.getpid() % 60_000, 250))


PATIENCE_S = 60.0


# perftest_parameters.h of linux-rdma/perftest: RESULT_FMT, RESULT_FMT_G and RESULT_FMT_LAT
PERFTEST_BW = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]"


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A command as a program of its own that has printed its first line."""
    program = "from weftwork.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("waiting for a client; on its machine start: weftwork rdma p")
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


@pytest.mark.parametrize(
    ("verb", "ours", "perftests"),
    [
        ("write", "-s 4KiB --iterations 20 --qps 2 --inline 64 --report-gbits --cpu-util --rdma-cm",
         "-s 4K --iters 20 --qp 2 --inline_size 64 --report_gbits --cpu_util --rdma_cm"),
        ("atomic", "--iterations 20 --outstanding 4 --atomic-type cmp-swap",
         "--iters 20 --outs 4 --atomic_type CMP_AND_SWAP"),
    ],
    ids=["write", "atomic"],
)  # fmt: skip
def test_options_are_taken_as_perftest_spells_them(
    verb: str, ours: str, perftests: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names and sizes of perftest_parameters.c of linux-rdma/perftest; what was understood stands in the head."""
    command = command_of(capsys, "rdma", "perf", verb, "--loopback", "--address", HERE)
    heads = []
    for options in (ours, perftests):
        code, out, err = command(*options.split())
        assert (code, err) == (0, "")
        lines = out.splitlines()
        table = next(at for at, line in enumerate(lines) if line.startswith(" #bytes"))
        told = [line for line in lines[: table + 1] if not re.search(r"QPN|RKey|VAddr|GID", line)]
        heads.append([*told, *lines[table + 1].split()[:2]])
    assert heads[0] == heads[1]


def test_both_ends_by_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    command = command_of(capsys, "rdma", "perf")
    code, out, err = command("send", "--loopback", "--address", HERE, "-n", "20", "-s", "1KiB", "-q", "2", "-c", "uc")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[1].strip() == "Send BW Test"
    assert {" Number of qps   : 2", " Connection type : UC", " TX depth        : 128"} <= set(lines)
    assert (
        len([line for line in lines if re.match(rf" local address:  {HERE} QPN 0x\w{{6}} PSN 0x\w{{6}}$", line)]) == 2
    )
    at = lines.index(PERFTEST_BW)
    assert lines[at + 1].split()[:2] == ["1024", "40"]


def test_json_has_the_plan_and_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    command = command_of(capsys, "rdma", "perf")
    words = ("read", "--loopback", "--address", HERE, "-n", "10", "--latency", "-m", "1024", "--json")
    code, out, _ = command(*words)
    found = json.loads(out)
    assert code == 0
    assert (found["path_mtu"], found["plan"]["iterations"], found["plan"]["verb"]) == (1024, 10, "read")
    (row,) = found["rows"]
    assert row["size_bytes"] == 2
    assert row["min_us"] <= row["typical_us"] <= row["p99_9_us"] == row["max_us"]


def test_a_server_needs_no_options_and_insists_on_those_that_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    command = command_of(capsys, "rdma", "perf")
    with running("rdma", "perf", "write", "--server", "--address", HERE, "--persistent", "--mtu", "512") as server:
        to = ("--client", HERE, "--address", HERE)
        code, out, err = command("read", *to, "--json")
        assert code == 1
        wanted = "the server refused the plan: VERB: the server wants write, the client read; --mtu: "
        assert err.startswith(wanted)
        assert json.loads(out)["error"]["kind"] == "PeerError"
        code, out, err = command("write", *to, "-m", "512", "-n", "5", "-a", "-t", "1")
        assert (code, err) == (0, "")
        sizes = [line.split()[0] for line in out.partition(PERFTEST_BW)[2].splitlines()[1:-1]]
        assert sizes == [str(2**power) for power in range(1, 24)]
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE_S) == 130
        assert server.stdout is not None
        assert f"served {HERE}: RDMA_Write BW Test; the client has the figures" in server.stdout.read()


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["perf", "write"], 2, "found none, wanted one of --server, --client ADDRESS and --loopback"),
        (["perf", "write", "--server", "--loopback"], 2, "found --server and --loopback, wanted one of"),
        (["perf", "write", "--loopback", "-s", "64kb"], 2, "did you mean '64KB'?"),
        (["perf", "write", "--loopback", "-a", "-s", "8"], 2, "found --size and --all, wanted one of them"),
        (["perf", "read", "--loopback", "-c", "UD"], 2, "found UD, which has no read; wanted RC"),
        (["perf", "write", "--loopback", "--wire", "morse"], 2, "wire: found 'morse', wanted one of rocev2"),
        (["perf", "write", "--client", "no such host"], 2, "for which no address is known"),
        (
            ["perf", "write", "--client", HERE, "--address", HERE],
            1,
            f"weftwork rdma perf write --server --address {HERE} --port 18515",
        ),
        (["ping"], 2, "found neither an address nor --server"),
        (["ping", HERE, "--server"], 2, "found an address and --server"),
        (["ping", HERE, "-s", "25", "-i", "-1"], 2, "2 mistakes, nothing was run"),
        (
            ["ping", HERE, "--address", HERE, "-p", "9"],
            1,
            f"Start on the machine with this address: weftwork rdma ping --server --address {HERE} --port 9",
        ),
        (["show", "--address", "here", "--wait", "0"], 2, "2 mistakes, nothing was run"),
    ],
    ids=itertools.count(),  # an address of this process is in the words
)
def test_mistakes_say_what_to_do(capsys: pytest.CaptureFixture[str], words: list[str], code: int, text: str) -> None:
    found = command_of(capsys, "rdma")(*words)
    assert found.code == code
    assert text in found.err


def test_pings_are_printed_and_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    command = command_of(capsys, "rdma", "ping")
    with running("rdma", "ping", "--server", "--address", HERE, "-P") as server:
        code, out, err = command(HERE, "--address", HERE, "-c", "3", "-i", "0")
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[0] == f"PING {HERE}: 64 bytes of data by SEND, READ and WRITE"
        for number, line in enumerate(lines[1:4], 1):
            assert re.fullmatch(rf"64 bytes from {HERE}: seq={number} time=\d+\.\d{{3}} ms", line)
        assert lines[5:7] == [f"--- {HERE} rdma ping statistics ---", "3 pings sent, 3 answered and verified, 0 % lost"]
        least, average, most, _ = map(float, lines[7].removeprefix("rtt min/avg/max/mdev = ")[:-3].split("/"))
        assert least <= average <= most
        code, out, err = command(HERE, "--address", HERE, "-c", "1", "-s", "1000", "--json")
        found = json.loads(out)
        assert (found["sent"], found["verified"], found["error"], found["size_bytes"]) == (1, 1, None, 1000)
        assert found["figures"]["min_ms"] == found["round_trips_ms"][0]
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE_S) == 130
        assert server.stdout is not None
        assert f"answered 3 pings of {HERE}\n" in server.stdout.read()

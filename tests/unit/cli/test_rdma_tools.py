"""``weftwork rdma perf``, ``ping`` and ``show``: columns, JSON, both ends as programs, and what errors say."""

from __future__ import annotations

import json
import os

import pytest
from helpers.command import command_of

from weftwork import rdma
from weftwork.cli.rdma_perf import PerfStyle, head_line, row_line
from weftwork.rdma.perf.figures import BandwidthFigures, LatencyFigures
from weftwork.rdma.perf.session import PerfRow

HERE = "127.{}.{}.85".format(*divmod(os.getpid() % 60_000, 250))


# perftest_parameters.h of linux-rdma/perftest: RESULT_FMT, RESULT_FMT_G and RESULT_FMT_LAT
PERFTEST_BW = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]"


PERFTEST_BW_GBITS = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"


PERFTEST_LAT = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec]"
)


BANDWIDTH = PerfRow(
    figures=BandwidthFigures(
        size_bytes=65_536,
        messages=5_000,
        duration_s=0.25,
        peak_bytes_per_s=1_500_000_000.0,
        average_bytes_per_s=1_310_720_000.0,
        messages_per_s=20_000.0,
    ),
    cpu_share=0.987,
    peer_cpu_share=1.0,
    sent=5_000,
    received=5_000,
)


LATENCY = PerfRow(
    figures=LatencyFigures(
        size_bytes=2,
        messages=1_000,
        min_us=1.0,
        max_us=123_456.789,
        typical_us=2.5,
        average_us=3.0,
        stdev_us=0.25,
        p99_us=7.0,
        p99_9_us=100.0,
    ),
    cpu_share=0.5,
    peer_cpu_share=0.25,
    sent=1_000,
    received=1_000,
)


def test_heads_are_those_of_perftest() -> None:
    assert head_line(PerfStyle(), latency=False) == PERFTEST_BW
    assert head_line(PerfStyle(in_gbits=True), latency=False) == PERFTEST_BW_GBITS
    assert head_line(PerfStyle(), latency=True) == PERFTEST_LAT
    assert head_line(PerfStyle(with_cpu=True), latency=False) == PERFTEST_BW + "    CPU_Util[%]   Peer CPU_Util[%]"


def test_units_are_those_of_perftest() -> None:
    assert row_line(BANDWIDTH, PerfStyle()).split() == ["65536", "5000", "1430.51", "1250.00", "0.020000"]
    assert row_line(BANDWIDTH, PerfStyle(in_gbits=True)).split() == ["65536", "5000", "12.00", "10.49", "0.020000"]
    line = row_line(BANDWIDTH, PerfStyle(with_cpu=True))
    assert line.split()[5:] == ["98.70", "100.00"]
    assert [line.index(cell) for cell in ("65536", "5000", "1430", "1250", "0.02", "98.7")] == [1, 12, 27, 46, 67, 84]
    cells = row_line(LATENCY, PerfStyle()).split()
    assert cells == ["2", "1000", "1.00", "123456.79", "2.50", "3.00", "0.25", "7.00", "100.00"]


def test_show_prints_the_devices_of_a_process(capsys: pytest.CaptureFixture[str]) -> None:
    command = command_of(capsys, "rdma", "show", "--pid", str(os.getpid()), "--wait", "60")
    with rdma.listen(HERE, 7171) as listener:
        pd, cq = listener.device.alloc_pd(), listener.device.create_cq(8)
        region = listener.device.reg_mr(pd, bytearray(8192), rdma.AccessFlags.LOCAL_WRITE)
        qp = listener.device.create_qp(pd, rdma.QpType.UD, (cq, cq))
        listener.device.nic.counters["malformed"] += 3
        code, out, err = command()
        assert (code, err) == (0, "")
        lines = [line.rstrip() for line in out.splitlines()]
        assert lines[0].startswith(f"pid {os.getpid()}  {HERE}  ")
        assert lines[1].split() == [
            "queue",
            "pair",
            "type",
            "state",
            "peer",
            "path",
            "MTU",
            "sends",
            "receives",
            "counters",
        ]
        assert lines[2].split() == [f"{qp.qp_num:#08x}", "UD", "RESET", "1,024", "0", "0"]
        assert lines[4].split() == [f"{region.addr:#x}", "8,192", "local", "write"]
        assert lines[5:] == ["  listens on port 7171", "  device: malformed 3"]
        found = json.loads(command("--json").out)
        assert [device["listens"] for device in found["devices"]] == [[7171]]
        assert command("--address", "127.0.0.1").out.startswith("No process with the process number")
    assert "No process with the process number" in command().out


def test_show_names_a_process_that_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    device = rdma.RdmaDevice(HERE)
    command = command_of(capsys, "rdma", "show", "--pid", str(os.getpid()), "--wait", "0.01")
    code, out, _ = command()
    assert code == 0
    assert out.startswith(f"pid {os.getpid()}  ")
    assert "no answer within 0.01 s: it is busy with its own code, or stopped" in out
    (found,) = json.loads(command("--json").out)["devices"]
    assert found["why_not"].startswith("no answer")
    device.close()

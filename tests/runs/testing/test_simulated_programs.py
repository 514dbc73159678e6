"""Unchanged programs in virtual time: their clocks, threads, locks, sockets and devices."""

from __future__ import annotations

import asyncio
import io
import os
import queue
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.tiny import Message, packet_input_of, sends, star

from weftwork import rdma
from weftwork.base.errors import ProgramError, UsageError
from weftwork.rdma.verbs import AccessFlags, QpAttr, QpState, QpType, SendFlags, SendWr, Sge, WrOpcode
from weftwork.testing.simulated_programs.effects import fabric_effects
from weftwork.testing.simulated_programs.run import HostedProgram, ProgramsRun, SimulatedPrograms

MIB = 1 << 20
PORT = 7471


def made_of(*mains: Callable[[], object], hosts: int = 0, **more: Any) -> SimulatedPrograms:
    """Each function as a program on a host of a star."""
    programs = [HostedProgram(host=host, file=main) for host, main in enumerate(mains)]
    count = max(2, hosts, len(mains))
    return SimulatedPrograms(packet_input_of(star(count), sends(count, [])), programs, **more)


def run(*mains: Callable[[], object], **more: Any) -> tuple[ProgramsRun, str]:
    """Run functions as programs; what they print is returned, and an error in them is raised here."""
    output = io.StringIO()
    ended = made_of(*mains, **more).run(output, names_lines=False)
    assert not any(ended.exit_codes), output.getvalue()
    return ended, output.getvalue()


def took_s(main: Callable[[], object]) -> float:
    """Virtual seconds that a program takes."""
    return run(main)[0].ended_ps[0] / 1e12


# Clocks


def test_a_long_sleep_takes_virtual_time_alone() -> None:
    before_s = time.monotonic()
    assert took_s(lambda: time.sleep(1e6)) == 1e6
    assert time.monotonic() - before_s < 60


def test_every_clock_of_a_program_shows_virtual_time() -> None:
    seen: dict[str, float] = {}

    def main() -> None:
        for name in ("time", "monotonic", "perf_counter"):
            begin, begin_ns = getattr(time, name)(), getattr(time, f"{name}_ns")()
            time.sleep(2.5)
            seen[name] = getattr(time, name)() - begin
            seen[f"{name}_ns"] = (getattr(time, f"{name}_ns")() - begin_ns) / 1e9

    run(main)
    assert seen == {name: pytest.approx(2.5, rel=1e-6) for name in seen}
    assert len(seen) == 6


def test_what_was_put_in_place_is_gone_afterwards() -> None:
    names = [(time, "sleep"), (time, "time"), (threading, "Lock"), (threading.Thread, "start"), (queue, "SimpleQueue")]
    before = [getattr(of, name) for of, name in names]
    run(lambda: None)
    assert [getattr(of, name) for of, name in names] == before
    assert "recv" not in vars(socket.socket)


def test_a_loop_that_reads_the_clock_sees_time_pass() -> None:
    def main() -> None:
        end_s = time.monotonic() + 1e-4
        while time.monotonic() < end_s:
            pass

    assert 1e-4 <= took_s(main) < 1.2e-4


# Threads


def test_a_thread_is_joined_at_the_instant_of_its_end() -> None:
    def main() -> None:
        thread = threading.Thread(target=time.sleep, args=(3,))
        thread.start()
        thread.join(timeout=1)
        assert thread.is_alive()
        thread.join()

    assert took_s(main) == 3


def test_a_queue_hands_over_without_time_and_times_out_in_time() -> None:
    def main() -> None:
        waiting: queue.Queue[float] = queue.Queue()
        seen: list[float] = []

        def work() -> None:
            while pause_s := waiting.get():
                time.sleep(pause_s)
                seen.append(time.monotonic())

        worker = threading.Thread(target=work)
        worker.start()
        for pause_s in (1.5, 2.5, 0):
            waiting.put(pause_s)
        worker.join()
        assert seen == [1.5, 4.0]
        with pytest.raises(queue.Empty):
            waiting.get(timeout=7)

    assert took_s(main) == 11


def test_a_lock_lets_one_thread_in_after_the_other() -> None:
    def main() -> None:
        order: list[int] = []
        lock = threading.Lock()

        def work(number: int) -> None:
            with lock:
                order.append(number)
                time.sleep(1)
                order.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert order == [0, 0, 1, 1, 2, 2]
        assert not lock.locked()

    assert took_s(main) == 3


def test_a_notified_thread_waits_for_the_lock_of_the_condition() -> None:
    def main() -> None:
        condition = threading.Condition()

        def notify() -> None:
            with condition:
                condition.notify()
                time.sleep(2)  # still with the lock

        with condition:
            threading.Thread(target=notify).start()
            assert condition.wait(timeout=100)

    assert took_s(main) == 2


def test_a_pool_of_threads_works_in_parallel() -> None:
    def main() -> None:
        with ThreadPoolExecutor(3) as pool:
            assert list(pool.map(lambda pause_s: time.sleep(pause_s) or pause_s, (3, 2, 1))) == [3, 2, 1]

    assert took_s(main) == 3


def test_a_barrier_opens_when_the_last_has_come() -> None:
    def main() -> None:
        barrier = threading.Barrier(2)
        threading.Thread(target=lambda: (time.sleep(4), barrier.wait())).start()
        barrier.wait()

    assert took_s(main) == 4


def test_a_daemon_does_not_keep_its_program() -> None:
    def main() -> None:
        threading.Thread(target=threading.Event().wait, daemon=True).start()

    assert took_s(main) == 0


def test_a_program_cannot_fork() -> None:
    with pytest.raises(AssertionError, match="wanted a thread or a second program"):
        run(lambda: os.fork())  # noqa: PLW0108 - looked up while the program runs


# Sockets and asyncio


def test_a_socket_between_threads_takes_no_virtual_time() -> None:
    def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:

            def call() -> None:
                time.sleep(1)
                with socket.create_connection(server.getsockname()) as client:
                    time.sleep(1)
                    client.sendall(b"hello")
                    assert client.recv(8) == b"ok"

            thread = threading.Thread(target=call)
            thread.start()
            accepted, _ = server.accept()
            with accepted:
                assert accepted.recv(8) == b"hello"
                assert time.monotonic() == 2
                accepted.sendall(b"ok")
                accepted.settimeout(5)
                assert accepted.recv(8) == b""
            thread.join()

    assert took_s(main) == 2


def test_asyncio_waits_in_virtual_time() -> None:
    async def main() -> None:
        await asyncio.gather(asyncio.sleep(5), asyncio.sleep(10))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.get_running_loop().create_future()

    assert took_s(lambda: asyncio.run(main())) == 13


# Programs


def test_programs_that_wait_for_each_other_are_told_where(tmp_path: Path) -> None:
    hung = tmp_path / "hung.py"
    hung.write_text("import threading\n\nthreading.Event().wait()\n")
    made = SimulatedPrograms(packet_input_of(star(2), sends(2, [])), [HostedProgram(host=0, file=hung)])
    with pytest.raises(ProgramError, match=r"hung\.py at line 3 waits for another thread"):
        made.run(io.StringIO())


def test_an_error_of_a_program_is_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("raise ValueError('found 3')\n")
    (tmp_path / "left.py").write_text("import sys\nsys.exit(7)\n")
    programs = [HostedProgram(host=host, file=tmp_path / name) for host, name in ((0, "bad.py"), (1, "left.py"))]
    output = io.StringIO()
    ended = SimulatedPrograms(packet_input_of(star(2), sends(2, [])), programs).run(output)
    assert ended.exit_codes == (1, 7)
    assert "[host 0, bad.py] ValueError: found 3" in output.getvalue()


def test_each_program_has_its_own_name_and_arguments(tmp_path: Path) -> None:
    file = tmp_path / "says.py"
    file.write_text("import sys, time\nfor _ in range(2):\n    print(__name__, *sys.argv[1:])\n    time.sleep(1)\n")
    programs = [HostedProgram(host=host, file=file, arguments=(word,)) for host, word in ((0, "one"), (1, "two"))]
    output = io.StringIO()
    SimulatedPrograms(packet_input_of(star(2), sends(2, [])), programs).run(output, names_lines=False)
    assert output.getvalue().split("\n") == ["__main__ one", "__main__ two"] * 2 + [""]


def test_a_program_names_an_address_of_its_own_host_alone() -> None:
    def main() -> None:
        with pytest.raises(UsageError, match=r"wanted 10\.0\.0\.0 or a loopback address: the program runs on host 0"):
            rdma.RdmaDevice("10.0.0.1")
        rdma.RdmaDevice("10.0.0.0").close()
        rdma.RdmaDevice("192.0.2.1").close()

    run(main, addresses={"192.0.2.1": 0})


def test_the_traffic_of_the_scenario_keeps_off_the_hosts_of_programs() -> None:
    busy = packet_input_of(star(3), sends(3, [Message(source=0, destination=1, size_bytes=MIB)]))
    with pytest.raises(UsageError, match="use by the scenario's own traffic"):
        SimulatedPrograms(busy, [HostedProgram(host=0, file=lambda: None)], runs_job=True)


# RDMA


def offer(memory: np.ndarray, peers: int = 1) -> None:
    """A listener that offers a part of its memory to each peer."""
    part = len(memory) // peers
    with rdma.listen("127.0.0.1", PORT) as listener:
        connections = []
        for at in range(0, len(memory), part):
            connection = listener.get_request().wait()
            region = connection.reg_mr(memory, AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ)
            connection.accept(region.remote[at : at + part].encode()).wait()
            connections.append(connection)
        for connection in connections:
            connection.closed.wait()


def write(value: int, size_bytes: int) -> float:
    """A connector that writes bytes; returns the virtual seconds that the WRITE took."""
    with rdma.connect("127.0.0.1", PORT) as connection:
        table = rdma.RemoteRange.decode(connection.private_data)
        mine = connection.reg_mr(np.full(size_bytes, value, np.uint8))
        begin_s = time.perf_counter()
        connection.write(mine, table).wait()
        return time.perf_counter() - begin_s


def test_a_write_takes_the_time_of_the_closed_form() -> None:
    memory, times = np.zeros(MIB, np.uint8), []
    run(lambda: offer(memory), lambda: times.append(write(7, MIB)))
    assert (memory == 7).all()
    alone = made_of(lambda: None).fabric
    frames_bytes = MIB // 4096 * (4096 + 62 + 20) + 16  # BTH, UDP, IPv4, Ethernet, ICRC, FCS; gap; one RETH
    line_s = frames_bytes * 8 / alone.rate_bps(0)
    assert line_s < times[0] < line_s + 20e-6


def test_two_senders_share_the_port_of_their_receiver() -> None:
    memory, times = np.zeros(2 * MIB, np.uint8), []
    mains = (lambda: offer(memory, 2), lambda: times.append(write(1, MIB)), lambda: times.append(write(2, MIB)))
    programs = made_of(*mains)
    output = io.StringIO()
    ended = programs.run(output)
    assert not any(ended.exit_codes), output.getvalue()
    assert sorted(set(memory.tolist())) == [1, 2]
    alone = np.zeros(MIB, np.uint8)
    single: list[float] = []
    run(lambda: offer(alone), lambda: single.append(write(1, MIB)))
    assert max(times) == pytest.approx(2 * single[0], rel=0.1)
    effects = fabric_effects(programs.fabric, [str(port.id) for port in programs.fabric.simulation.ports])
    assert effects.culprit is not None
    assert effects.culprit.max_queue_bytes == max(port.max_queue_bytes for port in effects.ports)
    received = {report.host: report.traffic.received_bytes for report in ended.hosts}
    assert received[0] > 2 * MIB > received[1]


def test_one_sender_congests_nothing() -> None:
    memory = np.zeros(MIB, np.uint8)
    programs = made_of(lambda: offer(memory), lambda: write(1, MIB))
    programs.run(io.StringIO())
    effects = fabric_effects(programs.fabric, [str(port.id) for port in programs.fabric.simulation.ports])
    assert effects.culprit is None
    assert effects.ports


def test_a_run_repeats_to_the_picosecond() -> None:
    def once() -> tuple[ProgramsRun, str]:
        memory = np.zeros(2 * MIB, np.uint8)
        return run(
            lambda: offer(memory, 2),
            lambda: print(write(1, MIB)),  # noqa: T201
            lambda: print(write(2, MIB)),  # noqa: T201
        )

    first, second = once(), once()
    assert first[1] == second[1]
    assert first[0].ended_ps == second[0].ended_ps
    assert first[0].hosts == second[0].hosts


def test_two_devices_of_one_host_meet_without_the_fabric() -> None:
    memory = np.zeros(MIB, np.uint8)

    def main() -> None:
        thread = threading.Thread(target=offer, args=(memory,))
        thread.start()
        time.sleep(1)
        write(9, MIB)
        thread.join()

    ended, _ = run(main)
    assert (memory == 9).all()
    assert ended.hosts[0].traffic.sent == 0


def test_a_program_that_polls_takes_no_longer_than_one_that_waits() -> None:
    waited, polled = [], []

    def poll(seen: list[float], *, waits: bool) -> None:
        device = rdma.RdmaDevice()
        pd, cq = device.alloc_pd(), device.create_cq(8)
        memory = np.zeros(2 * 65536, np.uint8)
        mr = device.reg_mr(pd, memory, AccessFlags.LOCAL_WRITE | AccessFlags.REMOTE_WRITE)
        qps = [device.create_qp(pd, QpType.RC, (cq, cq)) for _ in (0, 1)]
        for qp, peer in (qps, qps[::-1]):
            attr = QpAttr(
                remote_address=device.port.address, dest_qp_num=peer.qp_num, qp_access_flags=AccessFlags.REMOTE_WRITE
            )
            for state in (QpState.INIT, QpState.RTR, QpState.RTS):
                device.modify_qp(qp, state, attr)
        piece = Sge(mr.addr, 65536, mr.lkey)
        place = {"remote_addr": mr.addr + 65536, "rkey": mr.rkey}
        device.post_send(
            qps[0],
            SendWr(wr_id=1, opcode=WrOpcode.RDMA_WRITE, sg_list=(piece,), flags=SendFlags.SIGNALED, **place),
        )
        if waits:
            device.wait_cq(cq)
        while not device.poll_cq(cq):
            pass
        seen.append(time.monotonic())
        device.close()

    run(lambda: poll(waited, waits=True))
    run(lambda: poll(polled, waits=False))
    assert polled == waited


def test_a_poll_for_what_never_comes_ends_by_the_clock() -> None:
    def main() -> None:
        device = rdma.RdmaDevice()
        cq = device.create_cq(8)
        end_s = time.monotonic() + 10
        while not device.poll_cq(cq) and time.monotonic() < end_s:
            pass
        device.close()

    assert took_s(main) == pytest.approx(10, rel=1e-3)

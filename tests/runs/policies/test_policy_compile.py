"""Compiled steps: the same bits as plain Python, errors that name the user's line, a cache that is safe and pays."""

import functools
import os
import random
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from helpers.cases import case_count
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError, PolicyError
from weftwork.policies import compile as compile_module
from weftwork.policies.interface import HOPS, OFF, Kind
from weftwork.policies.load import LoadedPolicy, catalogue, load
from weftwork.testing.steps import Twin

OURS = Path(__file__).parents[2] / "policies"
CONTROLS = [
    *((entry.name, None) for entry in catalogue("congestion_control")), ("dcqcn", "vendor"), ("dcqcn", "hpcc-repo"),
]  # fmt: skip
PATHS = [entry.name for entry in catalogue("path_selection")]
PORTS = [entry.name for entry in catalogue("port_selection")]

small = st.integers(0, 2**36)
draws = st.integers(0, 2**62 - 1)
sizes = st.one_of(st.sampled_from([0, 1, 4_096]), st.integers(0, 10**9))
signals = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([int(kind) for kind in Kind]),
        "now_ps": small,
        "bytes": sizes,
        "rtt_ps": small,
        "ecn": st.integers(0, 1),
        "host_delay_ps": small,
        "seq": st.integers(0, 2**30),
        "next_seq": st.integers(0, 2**30),
        "entropy": st.integers(0, 65_535),
        "timer": st.integers(0, 3),
        "line_rate_bps": st.sampled_from([10**10, 10**11, 4 * 10**11]),
        "base_rtt_ps": st.integers(1_000, 10**10),
        "mtu_bytes": st.sampled_from([256, 1_000, 4_096]),
        "inflight_bytes": sizes,
        "backlog_bytes": sizes,
        "draw": draws,
        "hops": st.integers(0, HOPS),
        "hop": st.lists(
            st.tuples(sizes, small, st.sampled_from([10**10, 4 * 10**11]), small), min_size=HOPS, max_size=HOPS
        ),
    }
)


known = functools.cache(load)  # the check takes some milliseconds, and hypothesis asks a hundred times


def filled(policy: LoadedPolicy, values: dict) -> object:
    signal = policy.new_signal()
    for name, value in values.items():
        if name != "hop":
            setattr(signal, name, value)
    for i, (queue, sent, rate, at) in enumerate(values["hop"]):
        signal.hop_queue_bytes[i], signal.hop_tx_bytes[i] = queue, sent
        signal.hop_rate_bps[i], signal.hop_at_ps[i] = rate, at
    return signal


def short(value: object) -> str:
    return Path(str(value)).stem


@pytest.mark.parametrize(("name", "variant"), CONTROLS, ids=short)
@settings(max_examples=case_count(plain=8, deep=60))
@given(told=st.lists(signals, min_size=1, max_size=10))
def test_a_compiled_control_equals_the_plain_one_to_the_bit(name: str, variant: str | None, told: list[dict]) -> None:
    twin = Twin(known("congestion_control", name, variant=variant))
    twin.state.rate_bps = told[0]["line_rate_bps"]
    for values in [{**told[0], "kind": int(Kind.START)}, *told]:
        signal = filled(twin.policy, values)
        twin.step(signal)
        assert twin.error is None
        if twin.receiver is not None:
            twin.receive(signal)
            assert twin.error is None


@pytest.mark.parametrize("name", PATHS, ids=short)
@given(told=st.lists(signals, min_size=1, max_size=20))
def test_a_compiled_path_selection_equals_the_plain_one_to_the_bit(name: str, told: list[dict]) -> None:
    twin = Twin(known("path_selection", name))
    for values in told:
        twin.step(filled(twin.policy, values))
        assert twin.error is None


@pytest.mark.parametrize("name", PORTS, ids=short)
@settings(max_examples=case_count(plain=15, deep=60))
@given(
    packets=st.lists(
        st.tuples(small, draws, draws, st.lists(st.tuples(sizes, st.integers(0, 1)), min_size=1, max_size=9)),
        min_size=1,
        max_size=20,
    )
)
def test_a_compiled_port_selection_equals_the_plain_one_to_the_bit(name: str, packets: list[tuple]) -> None:
    twin = Twin(known("port_selection", name), port_count=9)
    for now_ps, hashed, drawn, ports in packets:
        signal = twin.policy.new_port_signal()
        signal.now_ps, signal.hash, signal.draw, signal.candidates = now_ps, hashed, drawn, len(ports)
        signal.destination, signal.stride = drawn >> 40, 1 + hashed % 64
        signal.via, signal.ports, signal.bytes, signal.is_data = OFF, 9, hashed % 5_000, drawn % 2
        candidates = twin.policy.new_candidates(len(ports))
        for port, (candidate, (queue, paused)) in enumerate(zip(candidates, ports, strict=True)):
            candidate.queue_bytes, candidate.paused, candidate.rate_bps = queue, paused, 400_000_000_000
            candidate.port, candidate.weight = port, 1 + queue % 7
        twin.step(signal, candidates)
        assert twin.error is None


ARITHMETIC = """
from __future__ import annotations
import math
from math import ceil
from weftwork.policies.interface import CongestionControl, array

class Params: pass

class State:
    f: list[float] = array(24)
    i: list[int] = array(24)
    flag: bool
    total: float

def spread(x, n):
    for _ in range(n):
        x = x * 0.5 + 1.0
    return x

def step(params, state, signal):
    a = state.f[0]
    b = state.f[1]
    m = state.i[0]
    n = state.i[1]
    state.f[2] = a * b + m
    state.f[3] = a - b * n
    state.f[4] = min(a, b)
    state.f[5] = max(b, a)
    state.f[6] = abs(a)
    state.f[7] = -b
    state.f[8] = spread(a, n % 7)
    state.f[9] = float(m) / 3
    state.f[10] = m
    state.f[11] = 1.0 if a < b <= 2.0 else a
    state.i[2] = m + n * 3
    state.i[3] = m % 1000
    state.i[4] = -m // 1000
    state.i[5] = -m % 7
    state.i[6] = (m & 255) | (n ^ 21)
    state.i[7] = m >> 5
    state.i[8] = int(a > b)
    state.i[9] = min(m, n, 4)
    state.i[-1] = abs(-n)
    state.flag = a == b or m > n
    state.total += a
    state.f[12] = math.sqrt(abs(a))
    state.f[13] = math.exp(b / 1e300)
    state.f[14] = math.log(abs(b) + 1.0)
    state.f[20] = math.exp(min(max(a, -700.0), 700.0))
    state.i[10] = math.floor(min(max(a, -1e15), 1e15))
    state.i[11] = ceil(min(max(b, -1e15), 1e15))
    state.i[12] = int(min(max(b, -9e15), 9e15))
    state.f[15] = a / b
    state.i[13] = m // n
    state.f[16] = math.log(a)
    state.f[17] = math.sqrt(b)
    state.i[14] = int(a)
    state.i[15] = math.floor(b)
    state.f[18] = math.exp(a)
    state.i[16] = state.i[n]
    state.rate_bps = 1.0

PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset(), source="a test")
"""


@settings(max_examples=case_count(plain=60, deep=1_000))
@given(
    a=st.floats(allow_nan=False),
    b=st.floats(allow_nan=False),
    m=st.integers(-(2**60), 2**60),
    n=st.one_of(st.integers(-30, 30), st.integers(-(2**60), 2**60)),
)
def test_every_permitted_operation_gives_the_same_bits_or_fails_in_both(
    tmp_path_factory: pytest.TempPathFactory, a: float, b: float, m: int, n: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "arithmetic.py"
    if not path.exists():
        path.write_text(ARITHMETIC, encoding="utf-8")
    twin = Twin(known("congestion_control", path))
    twin.state.f[0], twin.state.f[1], twin.state.i[0], twin.state.i[1] = a, b, m, n
    twin.step(twin.policy.new_signal())  # raises Difference


def mine(tmp_path: Path, body: str, state: str = "count: int") -> Path:
    path = tmp_path / "mine.py"
    text = """
    import math
    from weftwork.policies.interface import CongestionControl, PathSelection, PortSelection, Kind, array

    class Params: pass

    class State:
        {state}

    def third(x):
        return x / (x - 3.0)

    def step(params, state, signal):
        state.rate_bps = 1.0
        {body}

    PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset(), source="a test")
    """
    path.write_text(textwrap.dedent(text).lstrip().format(body=body, state=state), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("body", "line", "told"),
    [
        ("state.rate_bps = 1.0 / state.count", 14, "ZeroDivisionError: float division by zero"),
        ("state.count = 1 // state.count", 14, "ZeroDivisionError: integer division or modulo by zero"),
        ("state.rate_bps = third(3.0)", 10, "ZeroDivisionError"),
        ("state.rate_bps = math.inf - math.inf", 14, "rate_bps became nan, wanted a finite rate above 0"),
        ("state.rate_bps = 1e308 * 10.0", 14, "rate_bps became inf, wanted a finite rate above 0"),
        ("state.rate_bps = -signal.bytes", 14, "rate_bps became 0.0, wanted a finite rate above 0"),
        ("state.window_bytes = math.inf * 0.0", 14, "window_bytes became nan, wanted a finite window from 0 on"),
        ("state.window_bytes = -1.0", 14, "window_bytes became -1.0"),
        ("state.window_bytes = math.sqrt(-1.0)", 14, "ValueError: math domain error"),
        ("state.window_bytes = math.log(0.0)", 14, "ValueError: math domain error"),
        ("state.window_bytes = math.exp(1000.0)", 14, "OverflowError: math range error"),
        ("state.count = int(math.inf)", 14, "OverflowError: cannot convert float infinity to integer"),
        ("state.count = math.floor(math.inf - math.inf)", 14, "ValueError: cannot convert float NaN to integer"),
        ("state.timer_at_ps[signal.hops + 4] = 1", 14, "IndexError"),
        ("state.count = 4611686018427387904 * 4", 14, "OverflowError: 18446744073709551616 does not fit 64 bits"),
    ],
)
def test_a_failing_step_is_replayed_to_its_file_and_line(tmp_path: Path, body: str, line: int, told: str) -> None:
    policy = load("congestion_control", mine(tmp_path, body))
    state, signal = policy.initial_state_bytes, policy.signal_layout.initial_bytes
    with pytest.raises(PolicyError) as caught:
        policy.replay(state, signal)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "mine.py"), line)
    assert told in caught.value.text


@pytest.mark.parametrize(
    "body", ["state.rate_bps = 1.0 / state.count", "state.count = 1 % state.count", "state.timer_at_ps[7] = 1"]
)
def test_a_compiled_step_that_fails_says_so(tmp_path: Path, body: str) -> None:
    twin = Twin(load("congestion_control", mine(tmp_path, body)))
    twin.step(twin.policy.new_signal())
    assert twin.error is not None
    assert twin.error.line == 14


def test_entropy_and_choice_out_of_range_are_replayed_too(tmp_path: Path) -> None:
    text = mine(tmp_path, "pass").read_text(encoding="utf-8").replace("state.rate_bps = 1.0", "{}")
    path = tmp_path / "path.py"
    path.write_text(text.format("state.entropy = 70_000").replace("= CongestionControl", "= PathSelection").replace(
        "signals=frozenset(), ", ""), encoding="utf-8")  # fmt: skip
    policy = load("path_selection", path)
    with pytest.raises(PolicyError, match=r"path.py, line 13: entropy became 70000, wanted 0 to 65535"):
        policy.replay(policy.initial_state_bytes, policy.signal_layout.initial_bytes)
    path = tmp_path / "port.py"
    path.write_text(
        text.format("signal.choice = signal.candidates").replace("= CongestionControl", "= PortSelection").replace(
        "signals=frozenset(), ", "").replace("signal):", "signal, candidates):"), encoding="utf-8")  # fmt: skip
    policy = load("port_selection", path)
    signal = policy.new_port_signal()
    signal.candidates = 3
    candidates = b"".join(policy.candidate_layout.pack(c) for c in policy.new_candidates(3))
    with pytest.raises(PolicyError, match=r"port.py, line 13: choice became 3, wanted 0 to 2, the last candidate"):
        policy.replay(policy.initial_state_bytes, policy.signal_layout.pack(signal), candidate_bytes=candidates)


def test_a_receiver_is_replayed_with_its_shared_record() -> None:
    policy = load("congestion_control", "rccc")
    assert policy.receiver is not None
    assert policy.shared is not None
    signal = policy.new_signal()
    signal.kind, signal.request_bytes, signal.line_rate_bps, signal.mtu_bytes = int(Kind.DATA), 1, 0, 4_096
    with pytest.raises(PolicyError, match=r"rccc.py, line \d+: ZeroDivisionError"):
        policy.replay(
            policy.receiver.initial_bytes, policy.signal_layout.pack(signal),
            shared_bytes=policy.shared.initial_bytes, receiver=True,
        )  # fmt: skip


def test_a_plain_state_keeps_the_compiled_types(tmp_path: Path) -> None:
    state = load("congestion_control", mine(tmp_path, "pass", "f: list[float] = array(2)\n    n: int")).new_state()
    state.rate_bps = 2**60 + 1
    state.f[0] = 1
    state.n = True
    assert (type(state.rate_bps), state.rate_bps, type(state.f[0]), type(state.n)) == (float, 2.0**60, float, int)
    with pytest.raises(TypeError, match=r"an int field was given the float 0.5"):
        state.n = 0.5
    with pytest.raises(TypeError, match=r"an int field was given the float 1.0"):
        state.timer_at_ps[0] = 1.0
    with pytest.raises(OverflowError):
        state.n = 2**63
    with pytest.raises(TypeError, match="'f' is an array"):
        state.f = [1.0, 2.0]
    with pytest.raises(AttributeError):
        state.nothing = 1


def test_what_numba_refuses_names_the_users_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The check knows no such case today, so it is told to look away.
    monkeypatch.setenv("WEFTWORK_CACHE_DIR", str(tmp_path / "cache"))
    path = mine(tmp_path, "state.count = len('a text' + signal.draw)")
    with monkeypatch.context() as patched:
        from weftwork.policies import policy_file as module
        from weftwork.policies.check import Checked

        patched.setattr(module, "check_step", lambda *_: Checked(functions={"step", "third"}))
        policy = load("congestion_control", path)
    with pytest.raises(PolicyError) as caught:
        policy.compile()
    assert (caught.value.file, caught.value.line) == (str(path), 14)
    assert "cannot compile this" in caught.value.text


@pytest.mark.deep  # three processes compile
def test_the_cache_is_shared_by_processes_that_start_together(tmp_path: Path) -> None:
    code = (
        "from weftwork.policies.load import load\n"
        "compiled = load('port_selection', 'ecmp').compile()\n"
        "print(compiled.keep_alive[1].cache_hits)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "WEFTWORK_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", code]
    together = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] is not None and process.returncode for process in together] == [0, 0]
    assert [folder.name.startswith("ecmp-") for folder in (tmp_path / "policies").iterdir()] == [True]
    again = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert again.stdout == "1\n"


def as_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("weftwork_compiled_ecmp")]:
        monkeypatch.delitem(sys.modules, name)


def test_a_damaged_cache_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFTWORK_CACHE_DIR", str(tmp_path / "cache"))

    def compiled() -> tuple[Path, int]:
        as_a_new_process(monkeypatch)
        found = load("path_selection", "ecmp").compile()
        (folder,) = (tmp_path / "cache" / "policies").iterdir()
        return folder, found.keep_alive[1].cache_hits

    folder, hits = compiled()
    assert hits == 0
    assert compiled() == (folder, 1)
    shutil.copytree(folder, tmp_path / "good")
    files = [file.relative_to(folder) for file in sorted(folder.rglob("*")) if file.is_file()]
    assert len(files) == 4  # text, list, index and machine code
    text = (folder / "policy.py").read_text(encoding="utf-8")
    for file in files:
        good = (tmp_path / "good" / file).read_bytes()
        flipped = bytearray(good)
        flipped[len(good) // 2] ^= 0xFF
        for bad in (b"", good[: len(good) // 2], random.Random(1).randbytes(len(good)), bytes(flipped)):
            (folder / file).write_bytes(bad)
            assert not compile_module._is_whole(folder, text)
        (folder / file).unlink()
        assert not compile_module._is_whole(folder, text)
        os.mkfifo(folder / file)
        assert not compile_module._is_whole(folder, text)
        (folder / file).unlink()
        (folder / file).write_bytes(good)
    assert compiled()[1] == 1
    for file in files:
        (folder / file).write_bytes(b"damaged")
    assert compiled() == (folder, 0)
    assert compiled() == (folder, 1)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("WEFTWORK_CACHE_DIR", str(tmp_path / "file" / "below"))
    as_a_new_process(monkeypatch)
    with pytest.raises(ConfigError, match="set WEFTWORK_CACHE_DIR to a folder"):
        load("path_selection", "ecmp").compile()

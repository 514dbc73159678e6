"""`weftwork rdma peer`: lists, texts, the test of the own NIC, and mistakes."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from helpers.command import Command, command_of

from weftwork.rdma.peer.live import connect
from weftwork.rdma.peer.reading import find_script, read_script, scenario_names

BROKEN = """
schema: 1
name: never
shows: The end is expected to fail where it does not.
source: own
end: {does: write}
expect:
  - {says: The request fails., see: statuses, are: [RETRY_EXC_ERR]}
  - {says: The bytes arrive., see: peer-memory, is: written}
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "never.yaml").write_text(BROKEN, encoding="utf-8")
    shipped = find_script("lost-first").read_text(encoding="utf-8")
    patient = shipped.replace("does: write", "does: write, timeout: 22")  # 17 s, which a busy machine does not reach
    (tmp_path / "patient.yaml").write_text(patient, encoding="utf-8")
    return command_of(capsys, "rdma", "peer")


def test_the_list_names_every_scenario(run: Command) -> None:
    answer = run("--list")
    assert answer.code == 0
    assert all(name in answer.out for name in scenario_names())
    rows = json.loads(run("--list", "--json").out)["scenarios"]
    assert [row["name"] for row in rows] == scenario_names()


def test_a_script_is_shown_as_it_is(run: Command) -> None:
    assert run("--show", "lost-last").out == find_script("lost-last").read_text(encoding="utf-8")


def test_the_schema_is_printed(run: Command) -> None:
    assert json.loads(run("--schema").out)["title"] == "Weftwork script of an RDMA peer"


def test_one_script_against_the_own_nic(run: Command) -> None:
    answer = run("--self-test", "--script", "lost-last")
    assert answer.code == 0
    assert "as expected         The end sends the last packet again after 1 to 4 timeouts. (1 packet" in answer.out
    assert "lost-last: 3 as expected" in answer.out


def test_the_packets_of_a_script(run: Command) -> None:
    answer = run("--self-test", "--script", "lost-last", "--packets")
    assert "write-last" in answer.out.splitlines()[-2]
    document = json.loads(run("--self-test", "--script", "lost-last", "--packets", "--json").out)
    lost = [packet for packet in document["packets"] if packet["rule"] == "drop"]
    assert [(one["from"], one["packet"], one["psn"], one["payload_bytes"]) for one in lost] == [
        ("end", "write-last", 15, 1024)
    ]
    assert document["packets"][0]["at_ps"] == 0


def test_all_scripts_against_the_own_nic(run: Command) -> None:
    count = len(scenario_names())
    answer = run("--self-test")
    assert answer.code == 0
    assert f"{count} of {count} scenarios as expected on Weftwork's own NIC" in answer.out
    document = json.loads(run("--self-test", "--json").out)
    assert document["passed"] == count == len(document["scenarios"])


def test_what_is_not_as_expected_gives_exit_code_1(run: Command) -> None:
    answer = run("--self-test", "--script", "never.yaml")
    assert answer.code == 1
    assert "not as expected     The request fails. (SUCCESS, wanted RETRY_EXC_ERR)" in answer.out
    assert "never: 1 as expected, 1 not as expected" in answer.out
    document = json.loads(run("--self-test", "--script", "never.yaml", "--json").out)
    assert document["passed"] is False
    assert [one["result"] for one in document["expectations"]] == ["not as expected", "as expected"]


def test_a_peer_on_a_socket_judges_what_it_sees(run: Command) -> None:
    script = read_script(Path("patient.yaml"))
    end = threading.Thread(target=lambda: connect(script, "127.0.0.93", 7471, 60.0, source="127.0.0.94"))
    end.start()
    answer = run("--script", "patient.yaml", "--address", "127.0.0.93")
    end.join()
    assert answer.code == 0, answer
    assert "listening on 127.0.0.93, port 7471" in answer.err
    assert "not seen from here  The request succeeds. (statuses of SUCCESS: look at the other end)" in answer.out


def test_an_end_without_a_peer_says_so(run: Command) -> None:
    arguments = ("--script", "lost-first", "--connect", "127.0.0.95", "--address", "127.0.0.94", "--limit", "50ms")
    answer = run(*arguments)
    assert answer.code == 1
    assert "not as expected     The request succeeds. (none, wanted SUCCESS)" in answer.out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "--script  missing, wanted a script"),
        (("--script", "lost-lats"), "did you mean 'lost-last'?"),
        (("--script", "none.yaml"), "cannot be read"),
        (("--script", "lost-last", "--limit", "soon"), "--limit"),
        (("--script", "lost-last", "--limit", "0s"), "found 0"),
        (("--script", "lost-last", "--address", "nowhere"), "wanted an IP address"),
        (("--script", "wrong-source"), "Run it with --self-test"),
        (("--show", "lost-lats"), "did you mean 'lost-last'?"),
    ],
)
def test_a_mistake_of_the_user_gives_exit_code_2(run: Command, arguments: tuple[str, ...], text: str) -> None:
    answer = run(*arguments)
    assert answer.code == 2
    assert text in answer.err

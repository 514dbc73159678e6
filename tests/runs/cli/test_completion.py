"""Shell completion: what a shell asks for in its own protocol, and what it gets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weftwork.cli import completed, main
from weftwork.cli.list import KINDS
from weftwork.spec.scenario.scenario import rows
from weftwork.workload.models.catalogue import MODELS

PROGRAM = [sys.executable, "-c", "from weftwork.cli import main; main()"]


class Shell:
    """A shell that asks for completions in this process, whose import of Weftwork it then spares."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, shell: str, line: str) -> list[str]:
        """What is offered for the last word of a line."""
        with self.monkeypatch.context() as patched:
            for name, text in environment_of(shell, line).items():
                patched.setenv(name, text)
            patched.setattr("sys.argv", ["weftwork"])
            with pytest.raises(SystemExit):
                main()
        out, err = self.capsys.readouterr()
        assert err == ""
        return offered_in(out)


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(capsys, monkeypatch)


def environment_of(shell: str, line: str) -> dict[str, str]:
    """What a shell sets to ask for the last word of a line."""
    words = line.split(" ")
    protocol = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    return protocol | {"_WEFTWORK_COMPLETE": f"complete_{shell}"}


def offered_in(out: str) -> list[str]:
    """Words that a shell is given."""
    offered = out.replace("_arguments '*: :((", "").replace("))'", "")
    return [word.strip('"').partition('":"')[0] for word in offered.split("\n") if word]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_offered_names_of_the_catalogue(shell: str, asked: Shell) -> None:
    assert asked(shell, "weftwork list co") == ["congestion_control", "collective"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("weftwork cal", ["calibrate"]),
        ("weftwork explain training.mod", ["training.model"]),
        ("weftwork run a.yaml --set fabric.link_r", ["fabric.link_rate="]),
        ("weftwork run a.yaml --set fab", ["fabric"]),
        ("weftwork new congestion", ["congestion-control"]),
        ("weftwork collective all-r", ["all-reduce"]),
        ("weftwork run a.yaml --what-if n", ["none"]),
        ("weftwork run tests/", []),  # the shell completes files
    ],
)
def test_bash_is_offered(line: str, offered: list[str], asked: Shell) -> None:
    assert asked("bash", line) == offered


def test_a_process_of_its_own_answers_a_shell() -> None:
    environment = os.environ | environment_of("bash", "weftwork list co")
    done = subprocess.run(PROGRAM, env=environment, capture_output=True, text=True, check=False)
    assert (offered_in(done.stdout), done.stderr) == (["congestion_control", "collective"], "")


def test_every_function_offers_what_there_is_and_nothing_else() -> None:
    assert completed.kinds("") == list(KINDS)
    assert completed.models("") == list(MODELS)
    assert set(completed.keys("")) == {one.path.partition(".")[0] for one in rows()}
    for path in {one.path for one in rows()}:
        assert path in completed.keys(path)
        assert {path, f"{path}="} & {*completed.set_keys(path)}
    for offers, known in (
        (completed.controls, "dcqcn"),
        (completed.path_selections, "ecmp"),
        (completed.port_selections, "ecmp"),
        (completed.nodes, "dgx-h100"),
        (completed.operations, "all-to-all"),
        (completed.templates, "recipe"),
    ):
        assert known in offers("")
        assert offers(known[:3])
        assert offers("no such word") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_shown_and_asks_this_program(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("_WEFTWORK_COMPLETE", f"source_{shell}")
    monkeypatch.setattr("sys.argv", ["weftwork"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code in {0, None}
    assert f"_WEFTWORK_COMPLETE=complete_{shell}" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_the_help_says_how_to_install_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert "--install-completion" in out
    assert "--show-completion" in out

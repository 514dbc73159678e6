"""Shell completion: what a shell asks for in its own protocol, and what it gets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weftwork.cli import completed
from weftwork.cli.list import KINDS
from weftwork.spec.scenario.scenario import rows
from weftwork.workload.models.catalogue import MODELS

PROGRAM = [sys.executable, "-c", "from weftwork.cli import main; main()"]


def asked(shell: str, line: str) -> list[str]:
    """What a shell is offered for the last word of a line."""
    words = line.split(" ")
    protocol = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    environment = os.environ | protocol | {"_WEFTWORK_COMPLETE": f"complete_{shell}"}
    done = subprocess.run(PROGRAM, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    offered = done.stdout.replace("_arguments '*: :((", "").replace("))'", "")
    return [word.strip('"').partition('":"')[0] for word in offered.split("\n") if word]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_offered_names_of_the_catalogue(shell: str) -> None:
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
def test_bash_is_offered(line: str, offered: list[str]) -> None:
    assert asked("bash", line) == offered


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
def test_the_script_of_a_shell_is_shown_and_asks_this_program(shell: str, tmp_path: Path) -> None:
    environment = os.environ | {"HOME": str(tmp_path), "_WEFTWORK_COMPLETE": f"source_{shell}"}
    done = subprocess.run(PROGRAM, env=environment, capture_output=True, text=True, check=True)
    assert f"_WEFTWORK_COMPLETE=complete_{shell}" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_help_says_how_to_install_it() -> None:
    done = subprocess.run([*PROGRAM, "--help"], capture_output=True, text=True, check=True)
    assert "--install-completion" in done.stdout
    assert "--show-completion" in done.stdout

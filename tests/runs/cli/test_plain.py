"""Commands that need no parser print what they print with it, and a process imports what its command uses.

Leaves out: time, which `benchmarks/command_time.py` measures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from helpers.command import command_of

from weftwork.cli.commands import root_command
from weftwork.cli.plain import HELP_FILE, parsed_help, plain_command

MODULES: Final = """
import json, sys
from weftwork.cli import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def modules_of(*arguments: str) -> tuple[set[str], int]:
    """Packages of others that a command has imported by its end, and how many modules of Weftwork."""
    asked = [sys.executable, "-c", MODULES, *arguments]
    where = {**os.environ, "COLUMNS": "80", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(asked, capture_output=True, text=True, check=False, env=where)
    assert done.returncode == 0, done.stderr
    modules = json.loads(done.stderr.splitlines()[-1])
    roots = {name.partition(".")[0] for name in modules}
    ours = sum(name.partition(".")[0] == "weftwork" for name in modules)
    return {name for name in roots - {"weftwork"} if name in PACKAGES}, ours


# of the dependencies, and what they bring
PACKAGES: Final = frozenset(
    {"duckdb", "jinja2", "joblib", "numba", "numpy", "optuna", "pandas", "pyarrow", "pydantic", "rich", "scipy",
     "typer", "yaml"}
)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "packages", "most_modules"),
    [
        ("--help", set(), 15),
        ("list", set(), 20),
        ("list --json", set(), 20),
        ("run --help", {"pydantic", "typer"}, 45),
    ],
)
def test_a_command_imports_what_it_uses(words: str, packages: set[str], most_modules: int) -> None:
    imported, ours = modules_of(*words.split())
    assert imported == packages
    assert ours <= most_modules


def test_a_training_run_on_flows_asks_no_database_and_no_compiler(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(
        "schema: 3\nfabric: {topology: rail-optimized, gpus: 64, node: dgx-h100, switch: tomahawk-5}\n"
        "training: {model: llama-3-8b, tensor: 8, pipeline: 2, global_batch: 32}\n",
        encoding="utf-8",
    )
    imported, ours = modules_of("run", str(file), "-o", str(tmp_path / "out"))
    assert imported == {"numpy", "pyarrow", "pydantic", "rich", "typer", "yaml"}
    assert ours <= 490


def test_the_kept_help_is_that_of_the_parser() -> None:
    assert Path(HELP_FILE).read_text(encoding="utf-8") == parsed_help(), "python -m weftwork.cli.plain writes it anew"


@pytest.mark.parametrize("words", [[], ["--json"], ["gpu"], ["routing", "--sources"], ["traffic", "--json"], ["gp"]])
def test_a_list_without_the_parser_is_that_of_the_parser(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    answer = command_of(capsys, "list")(*words)
    # an option that is given last and means nothing brings the parser
    assert plain_command(["list", *words]) is not None
    assert plain_command(["list", *words, "--"]) is None
    assert command_of(capsys, "list")(*words, "--") == answer


def test_every_command_is_listed_and_built_by_its_name() -> None:
    commands = root_command().commands
    assert [command.name for command in commands.values()] == list(commands)
    assert {"run", "list", "rdma", "runs"} <= set(commands)

"""The rules of the house that a program can check: floors, sizes of files, names, one screen of public names."""

from pathlib import Path

import pytest

from weftwork.cli import main

ROOT = Path(__file__).parents[3]


@pytest.mark.golden
def test_the_readme_shows_what_weftwork_collective_prints(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = next(line for line in readme.splitlines() if line.startswith("weftwork collective all-reduce"))
    with pytest.raises(SystemExit) as left:
        main(command.split()[1:])
    printed = capsys.readouterr().out.rstrip().rpartition("\n")[0]  # the last line has the time on the clock
    assert left.value.code in {0, None}
    assert f"```text\n{printed}\n```" in readme

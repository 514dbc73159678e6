"""Shell scripts read without being run: each rule of the shell that scripts of Megatron-LM use, on a line or two."""

from __future__ import annotations

import shutil
import string
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.workload.imports import shell_expansion
from weftwork.workload.imports.shell import read_shell


def words(script: str, **variables: str) -> list[str]:
    """Words of the last command."""
    return [word.text for word in read_shell(script, variables).commands[-1]]


def test_a_variable_that_doubles_itself_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell_expansion.MOST_LETTERS <= 1_000_000
    monkeypatch.setattr(
        shell_expansion, "MOST_LETTERS", 10_000
    )  # a hundredth of the letters in a hundredth of the time
    script = 'A="x x x x"\n' + 'A="$A $A"\n' * 24 + "run $A"
    assert 1_000 < len(words(script)) < 10_000


def test_a_script_that_makes_endless_work_is_cut() -> None:
    assert read_shell("f() { f; f; }\nf").is_cut
    assert not read_shell("while true; do run; done").is_cut


WORDS = st.text(string.ascii_letters + string.digits + " '\"\\$-_=./#~", max_size=8)


@pytest.mark.skipif(shutil.which("bash") is None, reason="nothing to compare with")
@given(values=st.lists(WORDS, min_size=1, max_size=5))
def test_quoted_words_are_those_of_bash(values: list[str]) -> None:
    quoted = ["'" + value.replace("'", "'\\''") + "'" for value in values]
    script = f'A=({" ".join(quoted)})\nB={quoted[0]}\nprintf \'%s\\0\' "${{A[@]}}" "$B" x"$B"y'
    told = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout.decode()
    assert words(script)[2:] == told.split("\0")[:-1]

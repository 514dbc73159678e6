"""Shell scripts read without being run: each rule of the shell that scripts of Megatron-LM use, on a line or two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.workload.imports.shell import read_shell, without_value


def words(script: str, **variables: str) -> list[str]:
    """Words of the last command."""
    return [word.text for word in read_shell(script, variables).commands[-1]]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("run a 'b c' \"d e\" f\\ g", ["a", "b c", "d e", "f g"]),
        ("run --a 1 \\\n  --b 2 # --c 3", ["--a", "1", "--b", "2"]),
        ("N=8\nrun $N ${N} a${N}b '$N' \"$N\"", ["8", "8", "a8b", "$N", "8"]),
        ("A=(--x 1 # no\n  # nor this\n --y '2 3')\nrun ${A[@]}", ["--x", "1", "--y", "2", "3"]),
        ("A=(--x '2 3')\nrun \"${A[@]}\" z", ["--x", "2 3", "z"]),
        ("A=(1 2)\nA+=(3)\nrun ${A[@]} $A", ["1", "2", "3", "1"]),
        ('O="--x 1"\nO="$O --y 2"\nO+=" --z"\nrun $O', ["--x", "1", "--y", "2", "--z"]),
        ('O="--x 1"\nrun "$O"', ["--x 1"]),
        ('O=" 1 "\nrun a${O}b', ["a", "1", "b"]),
        ("E=()\nrun a ${E[@]} b", ["a", "b"]),
        ("run ${N:-4} ${M-5} ${N:=$((2 * 3))}", ["4", "5", "6"]),
        ("G=8; N=4\nrun $(($G * N / 2 - 1)) $((9 % 4))", ["15", "1"]),
        ("export A=1 B=2\nC=3 run $A$B", ["12"]),
        ("declare -a L=(1 2)\nrun ${L[*]}", ["1", "2"]),
        ("run a > log 2>&1 b", ["a", "b"]),
        ("run a &> log", ["a"]),
        ("cat <<EOF\nrun --not-this\nEOF\nrun --this", ["--this"]),
        ("cd x && run a", ["a"]),
        ("f() { run a; }\nrun b", ["b"]),
        ("run '' \"\"", ["", ""]),
        ("run $@ a $*", ["a"]),
    ],
)
def test_words_are_those_of_a_shell(script: str, found: list[str]) -> None:
    assert words(script)[1:] == found


@pytest.mark.parametrize(
    ("script", "missing"),
    [
        ("run $N", ("N",)),
        ("run x$(nvidia-smi -L | wc -l)y", ("$(nvidia-smi -L | wc -l)",)),
        ("run `hostname -f`", ("$(hostname -f)",)),
        ("run ${N%.*}", ("${N%.*}",)),
        ("run $((N * 2))", ("$((N * 2))",)),
        ("run $((1 / 0))", ("$((1 / 0))",)),
        ("run $1$2", ("1", "2")),
        ("if x; then N=1; else N=2; fi\nrun $N", ("N",)),
        ("for N in $(ls); do\nrun $N\ndone\nrun $N", ("N",)),
    ],
)
def test_what_would_have_to_be_run_has_no_value(script: str, missing: tuple[str, ...]) -> None:
    (word,) = words(script)[1:]
    assert without_value(word) == missing


def test_a_variable_of_the_user_stands_whatever_the_script_says() -> None:
    assert words("N=1\nrun $N $M $((M + N))", N="7", M="8") == ["run", "7", "8", "15"]


def test_lines_are_those_of_the_file() -> None:
    script = read_shell("A=(\n  --x 1\n  --y\n)\n\nrun ${A[@]} \\\n  --z")
    assert [(word.text, word.line) for word in script.commands[-1]] == [
        ("run", 6), ("--x", 2), ("1", 2), ("--y", 3), ("--z", 7),
    ]  # fmt: skip


def test_words_below_a_condition_know_it() -> None:
    script = read_shell("A=(--x)\nif t; then A+=(--y); fi\nB=1\n[ -f a ] && B=1\nrun ${A[@]} $B")
    assert [(word.text, word.is_conditional) for word in script.commands[-1]] == [
        ("run", False), ("--x", False), ("--y", True), ("1", False),
    ]  # fmt: skip


@given(text=st.text("a \n\\'\"`$(){}[]=+;|&<>#-:EOF@\0\1", max_size=60))
def test_any_text_has_an_end(text: str) -> None:
    for command in read_shell(text).commands:
        assert all(1 <= word.line <= text.count("\n") + 1 for word in command)

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
        ('run "$@" a "${NONE[@]}"', ["a"]),
        ("cmd='run a \"b c\" > log 2>&1'\neval $cmd", ["a", "b c"]),
        ("bash -c 'run a' _ b", ["-c", "run", "a"]),
        ("bash -c 'run $1' _ b", ["-c", "run", "b"]),
        ("f() { local n=$1; shift; run $n $#; }\nf 1 2 3", ["1", "2"]),
        ("function f { run $1; return; run no; }\nf 1", ["1"]),
        ("N=8\nif [ $N -gt 4 ]; then A=x; else A=y; fi\nrun $A", ["x"]),
        ("N=8\nif [[ $N == 7* || ! -z $N && $N -le 8 ]]; then A=x; else A=y; fi\nrun $A", ["x"]),
        ("if (( 8 % 3 == 2 )); then A=x; else A=y; fi\nrun $A", ["x"]),
        ('if [ "$Q" = 1 ]; then A=x; else A=y; fi\nrun $A', ["y"]),
        ("if [ $# -lt 1 ]; then exit; fi\nrun a", ["a"]),
        ("A=1\nif t; then A=2; exit; fi\nrun $A", ["1"]),
        ("if t; then A='x y'; else A='x y'; fi\nrun $A", ["x", "y"]),
        ("A=--x\nif t; then A=\"$A --y\"; else A+=' --z'; fi\nrun $A", ["--x", "--y", "--z"]),
        ("case 7b in 13b) A=1;; 7*|8b) A=2;; *) A=3;; esac\nrun $A", ["2"]),
        ("for i in 1 2 3; do A+=$i; done\nrun $A", ["123"]),
        ("i=0\nwhile [ $i -lt 3 ]; do ((i++)); done\nrun $i", ["3"]),
        ("for i in {2..4}; do run $i; done", ["4"]),
        ("for i in a b; do run $i; break; done", ["a"]),
        ("A=$(echo 4 \\* 8 | bc)\nrun $A $(expr 9 / 2) $(seq 2) $(basename /a/b.py .py)", ["32", "4", "1", "2", "b"]),
        ("A=$(cat <<EOF\n--x $((1 + 1))\n--y\nEOF\n)\nrun $A", ["--x", "2", "--y"]),
        ("read -r -d '' A <<EOF\n--x\n--y\nEOF\nrun $A", ["--x", "--y"]),
        ("bash <<'EOF'\nA=1\nrun $A\nEOF", ["run", "1"]),
        ("cat > j.sh <<EOF\nrun a\nEOF\nsbatch j.sh", ["run", "a"]),
        ("echo run a | sh", ["run", "a"]),
        ("srun -l sh -c 'x.py a'", ["-l", "sh", "-c", "x.py", "a"]),
        ("declare -A S=([7b]=32 [8b]=48)\nM=8b\nrun ${S[$M]} ${#M}", ["48", "2"]),
        ("A=(1 2 3)\nrun ${A[1]} ${#A[@]}", ["2", "3"]),
        (
            "M=llama-8b.yaml\nrun ${M%.*} ${M##*.} ${M/llama/x} ${M:0:5} ${M^^}",
            ["llama-8b", "yaml", "x-8b.yaml", "llama", "LLAMA-8B.YAML"],
        ),
        ("A=B; B=3\nrun ${!A} ${NO:+x} ${A:+x}", ["3", "x"]),
        ("printf -v A '%s-%d' x 3\nlet 'B = 2 * 3'\nrun $A $B", ["x-3", "6"]),
        ("run $'a\\tb' a>log b", ["a\tb", "a", "b"]),
        ("[ -d x ] || mkdir x\nrun a && true", ["a"]),
        ("set -- 1 2\nrun $2", ["2"]),
        ("run <(ls) a >(cat)", ["\0$(ls)\1", "a", "\0$(cat)\1"]),
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
        ("if t; then N=1; else N=16; fi\nrun $N", ("N",)),
        ("N=1\nwhile t; do N=2; done\nrun $N", ("N",)),
        ("N=8\nt || N=4\nrun $N", ("N",)),
        ("case $(date) in a) N=1;; *) N=2;; esac\nrun $N", ("N",)),
        ("read N\nrun $N", ("N",)),
        ("while getopts n: o; do case $o in n) N=$OPTARG;; esac; done\nrun $N", ("OPTARG",)),
        ('[ -z "$M" ] && exit 1\ncase $M in a) N=1;; b) N=2;; esac\nrun $N', ("N",)),
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


@pytest.mark.parametrize("branch", ["A=", "{\nA=\n}", "A=''", "A=\nA+="])
def test_a_name_that_one_branch_alone_sets_to_nothing_adds_nothing(branch: str) -> None:
    """Unset in one branch and empty in the other: no word differs from what stood before."""
    script = read_shell(f"if nvidia-smi; then\n{branch}\nfi\necho x${{A}}y\n", {})
    assert [word.text for word in script.commands[-1]] == ["echo", "xy"]


def test_what_conditions_ask_for_is_noted() -> None:
    script = read_shell('[ -n "$A" ] && run\n[ -n "$SLURM_NNODES" ] && run\n[ -z "$B" ] && exit\n[ -n "$B" ] && run')
    assert [(one.name, one.line, one.is_set) for one in script.assumed] == [("A", 1, False), ("B", 3, True)]
    assert script.end_line is None


def test_the_end_of_a_script_and_files_that_are_not_read_are_noted() -> None:
    script = read_shell("source env.sh\nbash train.sh a\nexit 0\nrun a")
    assert (script.end_line, dict(script.unread)) == (3, {"env.sh": 1, "train.sh": 2})
    assert "run" not in {word.text for command in script.commands for word in command}


@given(text=st.text("a \n\\'\"`$(){}[]=+;|&<>#-:EOF@\0\1", max_size=60))
def test_any_text_has_an_end(text: str) -> None:
    for command in read_shell(text).commands:
        assert all(1 <= word.line <= text.count("\n") + 1 for word in command)

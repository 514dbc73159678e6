"""Launch scripts say what their plain command says, whatever the shell's way of saying it; and any script has an end.

The forms are those of real scripts: shown and then run, arrays, branches that are decided, redirections, texts that a
shell runs, functions, here-documents, loops over ranks. They are put into each other.
Leaves out: what single rules of the shell mean (`tests/unit/workload/imports/test_shell.py`).
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable

from helpers.cases import case_count
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.workload.imports.megatron import MegatronImport, read_megatron

LAUNCHER = "torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py"
NEEDED = {
    "--num-layers": ("8", "32"),
    "--hidden-size": ("512", "4096"),
    "--num-attention-heads": ("8", "32"),
    "--seq-length": ("1024", "2048"),
    "--max-position-embeddings": ("2048", "4096"),
    "--vocab-size": ("1000", "50304"),
    "--micro-batch-size": ("1", "2"),
    "--global-batch-size": ("64", "128"),
}
MORE = {
    "--tensor-model-parallel-size": ("2", "4"),
    "--pipeline-model-parallel-size": ("2", "4"),
    "--sequence-parallel": ("",),
    "--use-distributed-optimizer": ("",),
    "--overlap-grad-reduce": ("",),
    "--swiglu": ("",),
    "--recompute-modules": ("mlp", "core_attn mlp"),
    "--moe-layer-freq": ("'([0]*1+[1]*7)'", "[1]*8"),
    "--data-path": ("/data/a_b", "'1.0 /a' 2.0"),
    "--lr": ("1e-4",),
    "--save": ("/checkpoints/x",),
    "--own-switch": ("", "3"),
}
OTHER = f"{LAUNCHER} --num-layers 99 --hidden-size 99 --micro-batch-size 9 --seq-length 9"


@st.composite
def arguments(draw: st.DrawFn) -> list[str]:
    """Arguments of a job, each with its values, in any order."""
    pairs = [(name, draw(st.sampled_from(values))) for name, values in NEEDED.items()]
    names = draw(st.lists(st.sampled_from(sorted(MORE)), unique=True, max_size=5))
    pairs += [(name, draw(st.sampled_from(MORE[name]))) for name in names]
    pairs.append((draw(st.sampled_from(["--bf16", "--fp16"])), ""))
    return [f"{name} {value}".strip() for name, value in draw(st.permutations(pairs))]


# A command with its arguments as one line, or as several.
COMMANDS: dict[str, Callable[[list[str]], str]] = {
    "line": lambda words: f"{LAUNCHER} {' '.join(words)}",
    "lines": lambda words: f"{LAUNCHER} \\\n  " + " \\\n  ".join(words),
    "text": lambda words: f"WORDS={shlex.quote(' '.join(words))}\neval {LAUNCHER} $WORDS",
    "array": lambda words: "WORDS=(  # all of them\n  " + "\n  ".join(words) + f'\n)\n{LAUNCHER} "${{WORDS[@]}}"',
    "two arrays": lambda words: (
        "A=(" + " ".join(words[:5]) + ")\nA+=(" + " ".join(words[5:]) + f')\n{LAUNCHER} "${{A[@]}}"'
    ),
    "whole array": lambda words: f'CMD=({LAUNCHER} {" ".join(words)})\necho "${{CMD[@]}}"\n"${{CMD[@]}}"',
    "function": lambda words: f'go() {{\n  local n=$1; shift\n  {LAUNCHER} "$@"\n}}\ngo 1 {" ".join(words)}',
    "variables": lambda words: (
        f"G=8; N=$((32 / G))\ntorchrun --nnodes ${{N}} --nproc_per_node $G pretrain_gpt.py {' '.join(words)}"
    ),
    "redirected": lambda words: f"{LAUNCHER} {' '.join(words)} > log 2>&1",
    "redirected in front": lambda words: f"{LAUNCHER} > $LOG {' '.join(words)} 2> /dev/null",
    "shown and run": lambda words: f"cmd={shlex.quote(f'{LAUNCHER} ' + ' '.join(words))}\necho $cmd; eval $cmd",
    "redirected text": lambda words: (
        f'cmd={shlex.quote(f"{LAUNCHER} " + " ".join(words) + " > log 2>&1 &")}\neval "$cmd"'
    ),
    "piped text": lambda words: f'cmd={shlex.quote(f"{LAUNCHER} " + " ".join(words) + " |& tee log")}\nbash -c "$cmd"',
}
# A script around a script.
FORMS: dict[str, Callable[[str], str]] = {
    "tee": lambda script: f"{{\n{script}\n}} 2>&1 | tee -a log",
    "subshell": lambda script: f"(\ncd /x\n{script}\n) &\nwait",
    "branch taken": lambda script: f"SIZE=70\nif [[ $SIZE -eq 70 ]]; then\n{script}\nelse\n{OTHER}\nfi",
    "branch passed over": lambda script: f"SIZE=${{SIZE:-70}}\nif [ $SIZE = 8 ]; then\n{OTHER}\nelse\n{script}\nfi",
    "branch of a variable that is not set": lambda script: f'if [ "$QUIET" = 1 ]; then\n{OTHER}\nelse\n{script}\nfi',
    "equal branches": lambda script: f"if nvidia-smi > /dev/null; then\n{script}\nelse\n{script}\nfi",
    "case": lambda script: f"M=7b\ncase $M in\n13b|70b) {OTHER};;\n7*)\n{script}\n;;\n*) exit 1;;\nesac",
    "usage": lambda script: f"if [ $# -lt 2 ]; then echo usage; exit 1; fi\n{script}",
    "bash -c": lambda script: f"bash -c {shlex.quote(script)}",
    "srun": lambda script: f"srun -l bash -c {shlex.quote(script)}",
    "here-document": lambda script: f"bash <<'END'\n{script}\nEND",
    "file": lambda script: f"cat > job.sh <<'FILE'\n#!/bin/bash\n{script}\nFILE\nchmod +x job.sh\n./job.sh",
    "main": lambda script: f'main() {{\n{script}\n}}\nmain "$@"',
    "ranks": lambda script: f"for RANK_NUMBER in 0 1 2; do\n{script}\ndone",
    "again": lambda script: f"while true; do\n{script}\nsleep 1\ndone",
    "set": lambda script: f"#!/bin/bash\n# a job\nset -euo pipefail\nexport NCCL_DEBUG=INFO\n{script}\necho done",
    "other program": lambda script: f"python tools/data.py --input a --tokenizer-type GPT2BPETokenizer\n{script}",
    "log in front": lambda script: f"echo '{LAUNCHER} --num-layers 99' > note.txt\n{script}",
}  # fmt: skip
UNIQUE = {"here-document": "END", "file": "FILE"}  # a text cannot hold its own end


@st.composite
def scripts(draw: st.DrawFn) -> tuple[list[str], str]:
    """Arguments, and a script that gives them to the program."""
    words = draw(arguments())
    script = COMMANDS[draw(st.sampled_from(sorted(COMMANDS)))](words)
    for name in draw(
        st.lists(st.sampled_from(sorted(FORMS)), max_size=3, unique_by=lambda name: UNIQUE.get(name, name))
    ):
        script = FORMS[name](script)
    return words, script


def meaning(found: MegatronImport) -> tuple[object, ...]:
    """What an import says, without lines and without what conditions asked for."""
    return dict(found.keys), found.model, found.gpus, dict(found.read), sorted(found.unknown)


@settings(max_examples=case_count(plain=60, deep=600))
@given(drawn=scripts())
def test_a_script_says_what_its_plain_command_says(drawn: tuple[list[str], str]) -> None:
    words, script = drawn
    plain = read_megatron(f"{LAUNCHER} {' '.join(words)}")
    assert plain.gpus == 32
    assert meaning(read_megatron(script)) == meaning(plain)


SIGNS = st.sampled_from(
    ["\n", " ", ";", "&&", "||", "|", "&", "(", ")", "{", "}", "[[", "]]", "[", "]", "((", "))", "$(", "`", "'", '"',
     "\\", "#", "<<EOF\n", "EOF\n", ">", "<", "2>&1", "if", "then", "else", "elif", "fi", "for i in 1 2", "do", "done",
     "while", "case", "esac", "in", ";;", "function f", "f()", "f", "eval", "bash -c", "source", "exit", "return",
     "break", "$", "${", "$((", "${A[@]}", "${#A[@]}", "${A%%*}", "${A/b/c}", "${!A}", "${A:1:2}", "$@", "$#", "$1",
     "shift", "set --", "read A", "local A=1", "A=(", "A+=", "A=$A$A", "declare -A", "!", "true", "false", "-eq", "=~",
     "==", "*", "?", "{1..9}", "seq 9", "printf '%s'", "cat", "tee x", "./x", "exec", "unset A", "#SBATCH -N x",
     "\0", "\1", "\r\n", "\t", "é", "=", "--num-layers", "x.py", "torchrun"]
)  # fmt: skip


@settings(max_examples=case_count(plain=150, deep=3_000))
@given(drawn=scripts(), data=st.data())
@example(drawn=([], "f() { f; f; }\nf x.py --num-layers 8"), data=None)
@example(drawn=([], "A=aaaaaaaa\n" + "A=$A$A\n" * 40 + "x.py --num-layers $A"), data=None)
@example(drawn=([], "while true; do A=$((A+1)); for i in 1 2 3 4 5; do x.py --num-layers $A; done; done"), data=None)
@example(drawn=([], "(" * 3_000 + "$(" * 3_000 + "{ " * 3_000), data=None)
@example(drawn=([], "$((" + "(" * 3_000 + "1"), data=None)
@example(drawn=([], "[ " + "( " * 3_000 + "! " * 3_000), data=None)
@example(drawn=([], "eval " * 500 + "x.py"), data=None)
def test_any_script_is_read_or_refused(drawn: tuple[list[str], str], data: st.DataObject | None) -> None:
    script = drawn[1]
    for _ in range(data.draw(st.integers(1, 6)) if data is not None else 0):
        assert data is not None
        at = data.draw(st.integers(0, len(script)))
        more = data.draw(st.one_of(SIGNS, st.just(""), st.just(script[at : at + 40])))
        script = script[:at] + more + script[at + data.draw(st.sampled_from([0, 0, 1, 5, 50])) :]
    with contextlib.suppress(ConfigError):  # any other error fails
        found = read_megatron(script, gpus=8)
        lines = [line for _, line in found.places.values() if line is not None]
        assert all(1 <= line <= script.count("\n") + 1 for line in lines)

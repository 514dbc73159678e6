"""A count agrees with its noun: "1 servers" and "1 and 1 times as long" are impossible."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest
from helpers.command import command_of
from hypothesis import given
from hypothesis import strategies as st

import weftwork as package
from weftwork.base.grammar import plural, times_as_long

SOURCE = Path(package.__file__).parent
Kind = TypeVar("Kind", bound=ast.AST)
GOLDEN = Path(__file__).parent.parent / "golden"
# What a noun is followed by in `plural`, and units and counts of times, which no message says of one.
NO_NOUNS = {
    "are", "bits", "do", "find", "have", "hold", "keep", "lost", "need", "not", "reach", "reached", "sent", "take",
    "times", "wait", "were",
}  # fmt: skip
NO_ADJECTIVES = r"(?:of|in|for|to|and|with|from|on|or|wanted)\b"
# Values before a plural noun that are no count: texts of several counts, and lists of numbers.
NOT_COUNTS = {
    ("cli/topology_host_hops.py", "several"),  # words
    ("cli/topology_slices.py", "shape_text(grid_of(cubes))"),  # a shape, as 4x4x4
    ("topology/shapes/hyperx.py", "' x '.join((str(side) for side in shape.sides))"),  # "4 x 4 routers"
    ("topology/galois.py", "size"),  # a size that no field has is 6 or more
    ("topology/shapes/slim_fly.py", "q"),
    ("study/prepare/routing_steps.py", "name"),  # "minimal routing chooses ports itself"
    ("workload/collectives/algorithms/hierarchical.py", "call.operation"),  # "all-to-all has two levels"
    ("cli/progress.py", "hops / elapsed_s / 1000000.0"),  # a rate in millions
    ("cli/rdma_decode.py", "trains"),  # has its verb: "1 frame holds several packets"
    ("report/page_comparison.py", "100 * (found[1][name] - found[0][name])"),  # a difference with its sign
    ("report/plan_words.py", "best['tokens_per_s']"),
    ("study/answer/suspicions/thin_links.py", "name"),  # "thin global links"
    ("study/answer/suspicions/thin_links.py", "rate"),  # "2 links of 400 Gb/s between two switches"
    ("testing/port_selection.py", "port"),  # "chose port 3 between two packets"
    ("topology/tree_plan.py", "tier"),  # "switches of tier 2 have different ports"
    ("workload/imports/megatron_model.py", "names"),
    ("cli/topology.py", "measures.switch_links"),  # "64 to hosts, 64 between switches"
    ("engine/lower.py", "sorted(shapes)"),  # lists of numbers
    ("engine/pins.py", "sorted(plans)"),
    ("engine/programs.py", "', '.join(map(str, lengths))"),
    ("report/answer.py", "_amount(run, 'packets_bytes')"),  # an amount with its unit
    ("report/page_design.py", "document['node']"),  # the name of a server
    ("report/three_lines.py", "_whole(run, 'tokens_per_s')"),  # rates: "1 tokens/s" is a unit
    ("report/training_answer.py", "told['effective_tokens_per_s']"),
    ("study/validation/curves.py", "'64' if is_calibrated else '16 and 64'"),
    ("testing/network.py", "', '.join((f'{frames:,}' for frames in usage.frames))"),
}


@cache
def sources() -> tuple[tuple[str, ast.Module], ...]:
    return tuple(
        (file.relative_to(SOURCE).as_posix(), ast.parse(file.read_text(encoding="utf-8")))
        for file in sorted(SOURCE.rglob("*.py"))
    )


@cache
def all_nodes() -> list[tuple[str, ast.AST]]:
    """Calls, f-strings and their values, each with its file; each file is walked once."""
    kinds = (ast.Call, ast.JoinedStr, ast.FormattedValue)
    return [(name, node) for name, tree in sources() for node in ast.walk(tree) if isinstance(node, kinds)]


def nodes(kind: type[Kind]) -> list[tuple[str, Kind]]:
    return [(name, node) for name, node in all_nodes() if isinstance(node, kind)]


@cache
def nouns() -> frozenset[str]:
    """The last word of everything that the program counts, in the plural."""
    found: set[str] = set()
    for _, node in nodes(ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "plural":
            words = [one.value for one in node.args[1:] if isinstance(one, ast.Constant)]
            if words and all(" " not in str(word) for word in words):
                found.add(str(words[1]) if len(words) > 1 else f"{words[0]}s")
            elif words:
                found.add((str(words[1]) if len(words) > 1 else f"{words[0]}s").split()[-1])
    return frozenset(word for word in found if word not in NO_NOUNS)


@cache
def pasted() -> tuple[tuple[str, int, str, str], ...]:
    """Values of f-strings that stand right before a noun in the plural."""
    return tuple(_pasted())


def _pasted() -> Iterator[tuple[str, int, str, str]]:
    for name, node in nodes(ast.JoinedStr):
        for value, text in zip(node.values, node.values[1:], strict=False):
            if not (isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant)):
                continue
            # up to two adjectives may stand between: "3 virtual stages", "3 other flows"
            found = re.match(rf" (?:(?!{NO_ADJECTIVES})[A-Za-z-]+ ){{0,2}}([A-Za-z-]+)\b", str(text.value))
            if found and found[1] in nouns():
                yield name, node.lineno, ast.unparse(value.value), found[0]


def test_no_message_pastes_a_count_before_a_plural_noun() -> None:
    wrong = [
        f"{name}:{line}: {{{value}}}{noun}"
        for name, line, value, noun in pasted()
        if (name, value) not in NOT_COUNTS
        and not re.fullmatch(r"_?[A-Z][A-Z_]*(?:\s[-+*/]+\s\d+)?", value)  # a constant, which is more than 1
        and not value.startswith(("plural(", "plural_role("))
    ]
    assert wrong == []


def test_the_exceptions_are_still_there() -> None:
    assert NOT_COUNTS - {(name, value) for name, _, value, _ in pasted()} == set()


def test_no_message_pastes_an_s() -> None:
    """As in ``f"{count} row{'s' * (count > 1)}"``."""
    wrong = []
    for name, node in nodes(ast.FormattedValue):
        text = ast.unparse(node.value)
        if re.search(r"'e?s' (?:\*|if)|else 'e?s'|'(?:is|are|has|have|was|were)' if", text):
            wrong.append(f"{name}:{node.lineno}: {text}")
    assert wrong == []


def ill_counted(text: str) -> list[str]:
    """Places where 1 stands before a noun in the plural, or a time is "1 times as long"."""
    named = "|".join(sorted(nouns(), key=len, reverse=True))
    found = re.findall(rf"(?<![\w.,:/-])1 (?:virtual |micro |other |NIC |queue )?(?:{named})\b(?! of \d)", text)
    return found + re.findall(r"(?<![\w.,])1(?: and 1)? times as long", text)


RAILS = "fabric: {{topology: rail-optimized, hosts: {hosts}, node: dgx-h100, switch: tomahawk-5}}\n"
SMALLEST = (
    "fabric: {topology: leaf-spine, hosts: 2, radix: 4}\ntraffic: {pattern: permutation, size: 4KiB}\n",
    "fabric: {topology: leaf-spine, hosts: 2, radix: 2}\ntraffic: {pattern: incast, senders: 1, size: 1KiB}\n",
    f"{RAILS.format(hosts=2)}collective: {{operation: all-reduce, gpus: 2, size: 1MiB}}\n",
    f"{RAILS.format(hosts=1)}training: {{model: llama-3-8b, tensor: 8, global_batch: 1}}\n",
)


@pytest.mark.parametrize("document", SMALLEST)
def test_the_smallest_scenarios_are_counted_in_the_singular(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    weftwork = command_of(capsys)
    file = tmp_path / "small.yaml"
    file.write_text(f"schema: 3\n{document}", encoding="utf-8")
    for command in ("run small.yaml -o run", "topology small.yaml", "topology small.yaml --limits", "cost small.yaml"):
        done = weftwork(*command.split())
        assert ill_counted(done.out) == [], done.out
        assert ill_counted(done.err) == [], done.err
    assert weftwork("report", "run").code == 0
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert ill_counted(re.sub(r"<[^>]*>", "", page)) == []


def test_what_is_kept_as_golden_output_counts_in_the_singular() -> None:
    files = [file for file in GOLDEN.rglob("*.txt") if "digests" not in file.parts]
    assert len(files) > 100
    wrong = {file.name: found for file in files if (found := ill_counted(file.read_text(encoding="utf-8")))}
    assert wrong == {}


def test_the_search_sees_what_it_should() -> None:
    assert ill_counted("with 1 servers and 1 GPUs, which took 1 and 1 times as long") == [
        "1 servers", "1 GPUs", "1 and 1 times as long",
    ]  # fmt: skip
    assert ill_counted("1 server, 11 servers, 2.1 servers, 0.1 GPUs, leaf1 hosts, 1,001 flows") == []


@given(count=st.integers(0, 10**9))
def test_only_one_is_singular(count: int) -> None:
    assert plural(count, "flow").endswith(" flow") == (count == 1)


@given(ratios=st.lists(st.sampled_from(["1", "1.02", "2.94", "0.98"]), min_size=1, max_size=3))
def test_nothing_takes_one_times_as_long(ratios: list[str]) -> None:
    text = times_as_long(ratios, "alone")
    assert ill_counted(text) == []
    assert re.search(r"(?<![\w.])1(?: and| times)", text) is None
    assert text.endswith("as alone")

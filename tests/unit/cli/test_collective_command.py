"""``weftwork collective``: the columns of nccl-tests, one line for each size, on any fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from weftwork.base.errors import ConfigError
from weftwork.cli import main
from weftwork.cli.collective import parse_sizes

if TYPE_CHECKING:
    from pathlib import Path


FABRIC = (
    "{schema: 3, fabric: {topology: leaf-spine, hosts: 8, radix: 8, link_rate: 100Gbps}, traffic: {pattern: incast}}"
)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["collective", *arguments])
    return int(left.value.code or 0)


@pytest.fixture
def fabric(tmp_path: Path) -> str:
    file = tmp_path / "fabric.yaml"
    file.write_text(FABRIC)
    return str(file)


def test_auto_is_refused_where_nothing_says_which_is_the_fastest(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("broadcast", "--gpus", "16", "--sizes", "8KiB", "--algorithm", "ring")
    assert run(*given, "--set", "collective.protocol=auto") == 2
    said = capsys.readouterr().err
    assert "broadcast by ring has no closed form from which" in said
    assert "did you mean 'simple'" in said


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("all-redcue", "--gpus", "16"), "did you mean 'all-reduce'?"),
        (("all-reduce", "--gpus", "16", "--algorithm", "rign"), "--algorithm  found 'rign'"),
        (("all-reduce", "--gpus", "16", "--algorithm", "rign"), "did you mean 'ring'?"),
        (("all-reduce", "--gpus", "1"), "--gpus  found '1', wanted a whole number from 2"),
        (("all-reduce", "--gpus", "16", "--set", "collective.gpus=0"), "--set collective.gpus  found '0'"),
        (
            ("all-reduce", "--gpus", "100", "--set", "fabric.node=gb200-nvl72"),
            "--gpus  found 100, wanted a multiple of 72",
        ),
        (
            ("all-reduce", "--gpus", "16", "--set", "collective.inner=nvls"),
            "means nothing with algorithm auto, only with hierarchical",
        ),
        (("send-receive", "--gpus", "16", "--set", "collective.shift=99"), "collective.shift  found 99"),
        (("all-reduce",), "--gpus  is missing: give the number of GPUs"),
        (("all-reduce", "--gpus", "16", "--sizes", "1MiB:"), "--sizes"),
        (("all-reduce", "--gpus", "16", "--sizes", "2MiB:1MiB"), "wanted the smallest and the largest size"),
        (("all-reduce", "--gpus", "16", "--factor", "1"), "--factor  found 1, wanted 2 or more"),
    ],
)
def test_a_mistake_is_told_and_nothing_runs(
    arguments: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert text in capsys.readouterr().err


def test_sizes_that_are_too_many_are_refused() -> None:
    with pytest.raises(ConfigError, match="wanted at most 64"):
        parse_sizes(",".join(["1KiB"] * 65))

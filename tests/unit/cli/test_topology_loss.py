"""``weftwork topology FILE --without``: valleys, random losses and the job, in words and as JSON."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from helpers.tiny import wired
from helpers.topology_loss import FABRIC, console, told

from weftwork.base.errors import ConfigError
from weftwork.cli.topology_loss import print_job_loss
from weftwork.cli.topology_random import SeedsLine, print_random
from weftwork.cli.topology_without import asked_loss
from weftwork.study.loss import JobLoss
from weftwork.topology.build import fabric_of
from weftwork.topology.random_loss import measure_random, random_part


def test_what_up_down_does_to_pairs_that_have_other_routes() -> None:
    """Without n2-n5, n2 and n3 are four hops apart through the valley n6, and six over n8, the top."""
    links = [(0, 2), (1, 3), (2, 4), (3, 5), (2, 5), (4, 6), (6, 5), (4, 7), (7, 8), (8, 9), (9, 5)]
    fabric = wired(links, hosts=2)
    tiers = np.array([0, 0, 1, 1, 2, 2, 1, 3, 4, 3], fabric.node_tier.dtype)
    text = told(replace(fabric, node_tier=tiers), ["n2-n5"])
    assert "`fabric.routing: up-down` forbids them: 1 pair takes longer routes." in text
    near = wired([*links[:8], (7, 5)], hosts=2)  # now the top is as near as the valley
    text = told(replace(near, node_tier=tiers[:8]), ["n2-n5"])
    assert "`fabric.routing: up-down` forbids them: 1 pair keeps the other shortest routes." in text


def test_random_losses_in_words() -> None:
    chance = random_part("random:20%")
    assert chance is not None
    out, text = console()
    found = measure_random(FABRIC, chance, seeds=20)
    print_random(out, FABRIC, found, ("spine1",))
    said = text.getvalue()
    assert "without random:20%, and without spine1" in said
    assert "Lost of 16 links between switches, each with probability 20%" in said
    assert f"{found.keeps.seeds} of 20; 95% interval" in said
    assert f"--without random:20%@{found.worst_seed}" in said
    assert "does not tell" not in said


def test_rails_of_one_pod_say_what_bisection_does_not_tell() -> None:
    fabric = fabric_of(topology="rail-optimized", gpus=64, node="dgx-h100", radix=32)
    chance = random_part("random:3:links")
    assert chance is not None
    out, text = console()
    print_random(out, fabric, measure_random(fabric, chance, seeds=2))
    assert "3 of them" in text.getvalue()
    assert "It does not measure losses of traffic between rails" in text.getvalue()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "an iteration takes 1.5 s, 50.00 % longer than the 1 s before."),
        ({"after_ps": 10**12, "slowdown": 1.0}, "an iteration takes 1 s, as long as before."),
        ({"quantity": "completion_ps", "after_ps": None, "slowdown": None, "cut_off": ("rank 3 (host0, GPU 3)",)},
         "The job cannot continue. Before, all traffic took 1 s.\nNo NIC port is left for rank 3 (host0, GPU 3).\n"),
        ({"faults_left_out": 2}, "Both runs leave out 2 faults of the scenario: this is the price of the loss alone."),
        ({"before_ps": None, "slowdown": None, "status_before": "stuck"}, "does not finish on the whole fabric either"),
        ({"after_ps": None, "slowdown": None, "stopped": "rank 1 waits"}, "Stopped: rank 1 waits."),
    ],
)  # fmt: skip
def test_a_job_in_words(changes: dict[str, object], words: str) -> None:
    kept: dict[str, object] = {
        "quantity": "iteration_ps", "before_ps": 10**12, "after_ps": 15 * 10**11, "slowdown": 1.5,
        "status_before": "complete", "status_after": "complete", "cut_off": (), "stopped": "", "faults_left_out": 0,
    }  # fmt: skip
    out, text = console()
    print_job_loss(out, JobLoss(**{**kept, **changes}))  # type: ignore[arg-type]
    assert words in text.getvalue()


@pytest.mark.parametrize(
    ("without", "more", "words"),
    [
        (["spine0"], {"seeds": 3}, "--seeds .*found no random loss"),
        ([], {"has_iteration": True}, "--iteration .*found no loss, wanted --without"),
        (["random:2%"], {"has_iteration": True}, "such as --without random:2%@17"),
        (["random:2%", "random:1:switches"], {}, "wanted one; give the others a seed"),
        (["random:2"], {"file": Path("mine.json"), "has_iteration": True}, "'mine.json', which is a fabric"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(without: list[str], more: dict[str, object], words: str) -> None:
    options: dict[str, object] = {"file": Path("mine.yaml"), "seeds": None, "has_iteration": False, **more}
    with pytest.raises(ConfigError, match=words):
        asked_loss(without=without, **options)  # type: ignore[arg-type]


def test_seeds_are_told_where_somebody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("weftwork.cli.topology_random.QUIET_S", 0.0)
    with SeedsLine() as line:
        line(0, 200)
        line(50, 200)
    assert "0 of 200 seeds" in terminal.getvalue()
    assert "50 of 200 seeds, 0 s left" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\033[K")
    monkeypatch.setattr("sys.stderr", StringIO())
    with SeedsLine() as line:
        line(50, 200)
    assert not StringIO().getvalue()

"""``weftwork cost``: what it says first, its table, JSON and CSV, and how it refuses."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from helpers.command import Command, command_of

from weftwork.hardware.prices import DEFAULT, shipped_text

SCENARIO = """schema: 3
fabric: {topology: rail-optimized, hosts: 127, node: dgx-h100, switch: quantum-2}
traffic: {pattern: permutation, size: 2MiB}
"""


@pytest.fixture
def cost(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.yaml").write_text(SCENARIO, encoding="utf-8")
    return command_of(capsys, "cost")


def test_text(cost: Command, check_golden: Callable[[str, str], None]) -> None:
    code, out, err = cost("pod.yaml")
    assert (code, err) == (0, "")
    check_golden("cost/pod.txt", "\n".join(line.rstrip() for line in out.splitlines()) + "\n")


def test_the_largest_item_and_its_share_come_first(cost: Command) -> None:
    head = cost("pod.yaml").out.splitlines()[1]
    assert head.startswith("Optics are 33 % of $5.633M ($4.960M to $6.520M); $5,545 ($4,881 to $6,417) per GPU.")
    assert head.endswith("100 % of the money rests on unverified rows.")


def test_what_the_total_lacks_is_said(cost: Command) -> None:
    out = cost("pod.yaml", "--set", "fabric.link_delay=20us", "--set", "fabric.switch=tomahawk-6").out
    assert "Not priced: 135 x switch 'tomahawk-6' with 256 ports; " in out
    assert "1,016 x no medium of the book for 400Gbps, 4,000 m, host to switch" in out
    assert "NICs are 100 % of $1.778M ($1.524M to $2.032M), without unpriced items;" in out


def test_a_microsecond_of_delay_is_200_metres(cost: Command) -> None:
    found = json.loads(cost("pod.yaml", "--set", "fabric.link_delay=1us", "--json").out)
    assert {row["length_m"] for row in found["rows"] if row["kind"] == "cable"} == {200}
    assert {row["item"] for row in found["rows"] if row["kind"] == "module"} == {"800G 2xDR4"}


def test_json_has_units_totals_and_marks(cost: Command) -> None:
    found = json.loads(cost("pod.yaml", "--json", "--prices", "deepseek-2025").out)
    assert found["gpus"] == 1_016
    assert found["total"]["price_usd"]["typical"] == 48 * 21_500 + 1_024 * 2_410 + 1_016 * 970
    assert found["per_gpu"]["price_usd"]["typical"] == pytest.approx(found["total"]["price_usd"]["typical"] / 1_016)
    assert found["by_kind"]["switch"]["count"] == 48
    assert found["unverified_share_of_money"] == 1
    assert {row["item"] for row in found["power_unknown"]} == {row["item"] for row in found["rows"]}
    assert all(row["source"] and row["date"] for row in found["rows"])


def test_csv_has_the_rows_and_the_totals(cost: Command) -> None:
    code, out, _ = cost("pod.yaml", "--csv", "bill.csv")
    assert code == 0
    assert out.endswith("wrote bill.csv\n")
    rows = list(csv.DictReader(StringIO(Path("bill.csv").read_text(encoding="utf-8"))))
    total, each = rows[-2:]
    assert (total["kind"], each["kind"]) == ("total", "per GPU")
    for column in ("price_low_usd", "price_typical_usd", "price_high_usd", "power_typical_w"):
        assert float(total[column]) == pytest.approx(sum(float(row[column]) for row in rows[:-2]))
        assert float(each[column]) == pytest.approx(float(total[column]) / 1_016)
    assert {row["verified"] for row in rows[:-2]} == {"False"}


def test_a_fabric_file_and_prices_of_ones_own(cost: Command) -> None:
    shipped = shipped_text(DEFAULT)
    Path("mine.toml").write_text(shipped.replace("[35_000, 38_000, 45_000]", "40_000"), encoding="utf-8")
    code, out, _ = cost("pod.yaml", "--prices", "mine.toml")
    assert code == 0
    assert "$40,000" in out
    assert "Prices: mine.toml." in out


def test_the_template_is_the_shipped_book(cost: Command) -> None:
    assert cost("--template").out == shipped_text(DEFAULT)
    assert cost("--template", "--prices", "slim-fly-2014").out == shipped_text("slim-fly-2014")
    assert cost("--template", "--prices", "mine.toml").code == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "wanted a scenario or a fabric file"),
        (("pod.yaml", "--prices", "street"), "did you mean 'street-2025'?"),
        (("pod.yaml", "--prices", "bad.toml"), "line 1  version"),
        (("none.yaml",), "none.yaml"),
    ],
)
def test_mistakes_of_the_user_end_with_2(cost: Command, arguments: tuple[str, ...], told: str) -> None:
    Path("bad.toml").write_text("version = 9\ntitle = 'x'\n", encoding="utf-8")
    code, out, err = cost(*arguments)
    assert (code, out) == (2, "")
    assert told in err

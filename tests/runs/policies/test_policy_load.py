"""Loading a policy: names, files, parameters, variants, and errors with all mistakes at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weftwork.base.errors import PolicyError
from weftwork.policies.load import KINDS, catalogue, load

MINE = '''"""Mine."""
from weftwork.policies.interface import CongestionControl, row

class Params:
    gap_ps: int = row(default="1us", minimum=1000, source="chosen: a test", text="A time.")
    on: bool = row(default=False, source="chosen: a test", text="A switch.")

class State:
    pass

def step(params, state, signal):
    state.rate_bps = 1.0

PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset(), source="a test")
'''


def test_the_folder_is_the_catalogue() -> None:
    names = {kind: [entry.name for entry in catalogue(kind)] for kind in KINDS}
    controls = (
        "bbr bbr3 cubic dcqcn dctcp eqds falcon fixed-window hpcc hpcc-pint ib-cca ndp none nscc powertcp powertcp-int"
        " rccc reno swift timely vivace"
    )
    assert names["congestion_control"] == controls.split()
    assert names["path_selection"] == ["bitmap", "ecmp", "mixed", "oblivious", "plb", "reps", "spray"]
    ports = "adaptive ars conga destination-modulo drill ecmp least-loaded letflow round-robin spray wcmp"
    assert names["port_selection"] == ports.split()


def test_numba_waits_until_something_is_compiled() -> None:
    code = (
        "import sys; from weftwork.policies.load import load, catalogue\n"
        "catalogue('congestion_control'); load('congestion_control', 'dcqcn').new_state()\n"
        "sys.exit('numba' in sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


def test_a_users_file_comes_through_the_same_door(tmp_path: Path) -> None:
    path = tmp_path / "my_own.py"
    path.write_text(MINE, encoding="utf-8")
    policy = load("congestion_control", path, {"on": True})
    assert (policy.name, policy.params.on, policy.params.gap_ps) == ("my-own", 1, 1_000_000)


def test_a_changed_file_is_loaded_anew(tmp_path: Path) -> None:
    path = tmp_path / "my_own.py"
    path.write_text(MINE, encoding="utf-8")
    before = load("congestion_control", path)
    path.write_text(MINE.replace("1.0", "2.0"), encoding="utf-8")
    after = load("congestion_control", path)
    states = [before.new_state(), after.new_state()]
    before.call_step(states[0], before.new_signal())
    after.call_step(states[1], after.new_signal())
    assert [state.rate_bps for state in states] == [1.0, 2.0]
    assert before.hash != after.hash


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("def step(", "def step(:", 11, "this is not Python"),
        ("PLUGIN = ", "OTHER = ", 1, "the file offers no PLUGIN = CongestionControl(...)"),
        ("import CongestionControl, row", "import row; import numpy", 2, "may not import numpy"),
        ('source="a test")', 'source="a test", colour="red")', 14, "unknown field 'colour'"),
        ("    pass", "    names: str", 9, "'State.names': wanted int, float, bool, list[int] or list[float]"),
        ("    pass", "    rate_bps: float", 9, "'State.rate_bps': the name is taken by Weftwork"),
        ("    pass", "    ring: list[int]", 9, "'State.ring': an array needs its size, such as array(8)"),
        ("    pass", "    count: int = 0.5", 9, "'State.count': the default 0.5 does not fit its type"),
        ('"1us"', '"1 year"', 5, "'Params.gap_ps': the default is wrong: found '1 year'"),
        ("= row(default=False", "= bool(default=False", 6, "TypeError"),
        ("step=step", "step=lambda p, s, x: None", 14, "a step is a function at the top of the file"),
        ("def step(params, state, signal)", "def step(params, state)", 11, "'step' takes 2 arguments, wanted 3"),
    ],
)
def test_a_wrong_file_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, told: str) -> None:
    path = tmp_path / "my_own.py"
    assert old in MINE
    path.write_text(MINE.replace(old, new), encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        load("congestion_control", path)
    assert told in caught.value.text
    assert (caught.value.file, caught.value.line) == (str(path), line)


@pytest.mark.parametrize(
    ("content", "line", "told"),
    [
        (b"\n# caf\xe9\n", 2, "not UTF-8"),
        (b"x = 1\0\n", 1, "this is not Python"),
        (b"x = " + b"(" * 5_000 + b")" * 5_000, 1, "this is not Python"),
        (b"x = " + b"-" * 100_000 + b"1", 1, "nested too deeply"),
        (MINE.replace("state.rate_bps = 1.0", "state.rate_bps = 1.0" + " + 1.0" * 1_500).encode(), 14, "too deeply"),
        (MINE.replace("signals=frozenset()", "signals=5").encode(), 14, "signals is 5, wanted a frozenset of Kind"),
        (MINE.replace("signals=frozenset()", "signals=frozenset({1})").encode(), 14, "wanted a frozenset of Kind"),
        (MINE.replace("params=Params", "params=3").encode(), 14, "params is 3, wanted a class"),
        (MINE.replace("step=step", "step='step'").encode(), 14, "step is 'step', wanted a function"),
        (MINE.replace('source="a test"', "source=b'x'").encode(), 14, "source is b'x', wanted text"),
        (MINE.replace("signals=", "variants=3, signals=").encode(), 14, "variants is 3, wanted a dict"),
        (MINE.replace("signals=", "needs={'ears'}, signals=").encode(), 14, "needs is {'ears'}, wanted a frozenset"),
    ],
)
def test_a_file_that_is_no_policy_at_all_is_told(tmp_path: Path, content: bytes, line: int, told: str) -> None:
    file = tmp_path / "mine.py"
    file.write_bytes(content)
    with pytest.raises(PolicyError) as caught:
        load("congestion_control", file)
    assert told in caught.value.text
    assert (caught.value.file, caught.value.line) == (str(file), line)


DOCS = Path(__file__).parents[3] / "docs" / "models"


@pytest.mark.parametrize(
    ("kind", "page"),
    [("congestion_control", None), ("path_selection", "load-balancing"), ("port_selection", "load-balancing")],
)
def test_every_policy_has_its_page_in_the_docs(kind: str, page: str | None) -> None:
    for entry in catalogue(kind):
        shared = {"none": "fixed-window", "hpcc-pint": "hpcc", "powertcp-int": "powertcp"}
        name = page or shared.get(entry.name, entry.name)
        assert entry.name in (DOCS / f"{name}.md").read_text(encoding="utf-8").lower()
    # Parameters and variants are written into this page from their rows.
    assert f"<!-- rows: {kind} -->\n" in (DOCS.parent / "catalogue" / f"{kind.replace('_', '-')}.md").read_text(
        encoding="utf-8"
    )


def test_an_error_names_a_file_below_the_current_folder_as_the_user_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "study"
    (folder / "policies").mkdir(parents=True)
    path = folder / "policies" / "broken.py"
    path.write_text("import os\n", encoding="utf-8")
    said = []
    for current in (folder, folder / "policies", tmp_path.parent / tmp_path.name / "study" / ".." / "study"):
        monkeypatch.chdir(current)
        with pytest.raises(PolicyError) as caught:
            load("congestion_control", path)
        assert caught.value.file == str(path)
        said.append(str(caught.value).partition(",")[0])
    assert said == [str(Path("policies", "broken.py")), "broken.py", str(Path("policies", "broken.py"))]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert str(caught.value).startswith(f"{path}, line 1: ")


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_says_what_it_is_and_where_it_is_from(kind: str) -> None:
    for entry in catalogue(kind):
        policy = load(kind, entry.name)
        assert entry.text.endswith((".", ":"))
        assert entry.source == policy.plugin.source != ""
        assert all(row.text.endswith(".") and row.source for row in policy.rows)

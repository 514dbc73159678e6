"""Every table of a run is an attribute; a wrong name says the nearest."""

import copy
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from helpers.run_folders import ABOUT, ANSWER, OF_SEVERAL, PROVENANCE

from weftwork.base.errors import UsageError
from weftwork.spec.result import TABLES, Quantity
from weftwork.store.run_tables import RunTables
from weftwork.store.runs import Run, write_run, write_run_set
from weftwork.store.tables import table_schema

HELD = ("flows", "links", "what_if")


def of_one_row(name: str) -> pa.Table:
    """A table whose texts are its name."""
    value = {"int64": 7, "float64": 0.5, "string": name}
    return pa.Table.from_pylist([{column.name: value[column.type] for column in TABLES[name]}], table_schema(name))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return write_run(
        tmp_path / "run",
        scenario="schema: 3\n",
        about=ABOUT,
        summary={"completion_ps": Quantity(value=1, unit="ps", text="")},
        answer=ANSWER,
        tables={name: of_one_row(name) for name in HELD},
        provenance=PROVENANCE,
    )


def test_every_table_is_an_attribute_and_gives_itself(run: Run) -> None:
    own = [name for name, value in vars(RunTables).items() if isinstance(value, property) and name != "tables"]
    assert own == list(TABLES)
    assert run.tables == HELD
    for name in HELD:
        assert getattr(run, name).equals(of_one_row(name))
    for name in set(TABLES) - set(HELD):
        with pytest.raises(UsageError, match=f"no table '{name}'"):
            getattr(run, name)


def test_completion_offers_the_tables_that_are_there(run: Run) -> None:
    offered = {*dir(run)}
    assert offered & {*TABLES} == {*HELD}
    assert {"query", "summary", "value", "answer", "seeds", "tables"} <= offered


@pytest.mark.parametrize(("wrong", "right"), [("flow", "flows"), ("timelin", "timeline"), ("sumary", "summary")])
def test_a_wrong_name_says_the_nearest(run: Run, wrong: str, right: str) -> None:
    with pytest.raises(AttributeError, match=f"'Run' object has no attribute '{wrong}'; did you mean '{right}'"):
        getattr(run, wrong)


def test_what_a_notebook_and_a_copy_ask_for_is_not_there_without_noise(run: Run) -> None:
    assert not hasattr(run, "_ipython_canary_method_should_not_exist_")
    assert copy.copy(run).path == run.path
    assert pickle.loads(pickle.dumps(run)).path == run.path  # noqa: S301 - its own


def test_a_folder_of_seeds_sends_to_its_runs(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    run.path.rename(folder / "seed-4")
    write_run_set(folder, scenario="", about=ABOUT, numbers={}, answer=ANSWER, provenance=OF_SEVERAL)
    several = Run(folder)
    assert several.tables == ()
    assert [one.flows.num_rows for one in several.seeds] == [1]
    with pytest.raises(UsageError, match=r"see Run\.seeds"):
        _ = several.flows

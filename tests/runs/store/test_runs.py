"""Run folders: written once and whole, with a unit for every number, and read by query."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.run_folders import ABOUT, ANSWER, OF_SEVERAL, PROVENANCE

from weftwork.base.errors import ConfigError, UsageError
from weftwork.spec.result import TABLES, Quantity
from weftwork.store import damage as runs_damage
from weftwork.store import runs
from weftwork.store.runs import Run, fresh_folder, new_folder, open_run, refuse_existing, write_run, write_run_set
from weftwork.store.tables import create_views, read_table, table_schema

EMPTY = ("waits", "deadlock", "series")


def filled(name: str) -> pa.Table:
    """A table with one row; of those that a run may lack, none."""
    schema, value = table_schema(name), {"int64": 7, "float64": 0.5, "string": "x"}
    row = {column.name: value[column.type] for column in TABLES[name]}
    return pa.Table.from_pylist([] if name in EMPTY else [row], schema)


def written(path: Path) -> Run:
    return write_run(
        path,
        scenario="schema: 3\n",
        about=ABOUT,
        answer=ANSWER,
        summary={
            "fct_p50_ps": Quantity(value=1.5, unit="ps", text="Half."),
            "none": Quantity(value=None, unit="B", text=""),
        },
        tables={name: filled(name) for name in TABLES},
        provenance=PROVENANCE,
    )


def test_a_run_reads_as_it_was_written(tmp_path: Path) -> None:
    written(tmp_path / "a" / "run")
    run = open_run(tmp_path / "a" / "run")
    assert run.scenario == "schema: 3\n"
    assert run.about == ABOUT
    assert run.answer == ANSWER
    assert (run.status, run.is_complete) == ("complete", True)
    assert run.value("fct_p50_ps") == 1.5
    assert run.value("none") is None
    assert run.summary["fct_p50_ps"] == {"value": 1.5, "unit": "ps", "text": "Half."}
    assert [table.num_rows for table in (run.flows, run.links, run.collectives, run.series, run.events)] == [
        1,
        1,
        1,
        0,
        1,
    ]
    assert run.query("select count(*) as n from flows").to_pylist() == [{"n": 1}]
    assert repr(run) == f"Run({str(tmp_path / 'a' / 'run')!r}, status='complete')"


def test_the_folder_holds_what_the_design_names(tmp_path: Path) -> None:
    written(tmp_path / "run")
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == [
        "activities.parquet", "collectives.parquet", "events.parquet", "flows.parquet", "jobs.parquet",
        "links.parquet", "nodes.parquet", "paths.parquet", "provenance.json", "rates.parquet", "scenario.yaml",
        "segments.parquet", "summary.json", "tiers.parquet", "timeline.parquet", "victims.parquet",
            "what_if.parquet",
    ]  # fmt: skip
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("name", EMPTY)
def test_a_table_without_rows_has_no_file_and_is_read_with_its_columns(tmp_path: Path, name: str) -> None:
    written(tmp_path / "run")
    run = open_run(tmp_path / "run")
    assert not (run.path / f"{name}.parquet").exists()
    assert run.provenance["tables"] == {table: int(table not in EMPTY) for table in sorted(TABLES)}
    assert run.has_table(name)
    assert run.table(name).schema == table_schema(name)
    asked = run.query(f"from {name}")
    assert asked.num_rows == 0
    assert asked.schema.names == table_schema(name).names
    assert asked.schema.types == table_schema(name).types


def test_a_run_is_written_once(tmp_path: Path) -> None:
    written(tmp_path / "run")
    before = (tmp_path / "run" / "summary.json").read_bytes()
    with pytest.raises(ConfigError, match="a run is written once"):
        written(tmp_path / "run")
    assert (tmp_path / "run" / "summary.json").read_bytes() == before


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="no folder that can be written"):
        refuse_existing(tmp_path / "file" / "run")
    refuse_existing(tmp_path / "deep" / "er" / "run")


def test_a_folder_that_cannot_be_made_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be made: File name too long"), fresh_folder(tmp_path / ("x" * 250)):
        pass


def test_what_fails_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    def half() -> None:
        with fresh_folder(tmp_path / "run") as folder:
            (folder / "half").write_text("", encoding="utf-8")
            assert folder.name.startswith(".run-")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_run(
            tmp_path / "run", scenario="", about={}, answer=ANSWER, tables={}, provenance={},
            summary={"bad": Quantity(value=float("nan"), unit="ps", text="")},
        )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_names_become_folders(tmp_path: Path) -> None:
    first = new_folder("Llama 3/70b: 1,024 H100", tmp_path)
    assert first.name.startswith("llama-3-70b-1-024-h100-")
    first.mkdir()
    assert new_folder("Llama 3/70b: 1,024 H100", tmp_path) != first
    assert new_folder("../..", tmp_path).parent == tmp_path
    assert new_folder("../..", tmp_path).name.startswith("run-")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"summary\.json and provenance\.json are missing"):
        open_run(tmp_path)
    with pytest.raises(ConfigError, match="there is no such folder"):
        open_run(tmp_path / "nowhere")


def test_a_run_of_a_newer_weftwork_is_refused(tmp_path: Path) -> None:
    run = written(tmp_path / "run")
    file = run.path / "provenance.json"
    file.write_text(json.dumps({**PROVENANCE, "format": runs.FORMAT + 1}), encoding="utf-8")
    with pytest.raises(ConfigError, match="it comes from a newer Weftwork"):
        open_run(run.path)
    file.write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be read"):
        open_run(run.path)


def test_a_run_that_lacks_what_it_lists_is_damaged(tmp_path: Path) -> None:
    run = written(tmp_path / "run")
    (run.path / "flows.parquet").unlink()
    with pytest.raises(ConfigError, match=r"flows\.parquet +is missing"):
        open_run(run.path)
    os.mkfifo(run.path / "flows.parquet")
    with pytest.raises(ConfigError, match="cannot be read: it is a FIFO, wanted a file"):
        open_run(run.path)


def test_provenance_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    write = runs._write_json
    monkeypatch.setattr(runs, "_write_json", lambda path, document: (order.append(path.name), write(path, document)))
    monkeypatch.setattr(pq, "write_table", lambda _, path, **_options: order.append(path.name))
    written(tmp_path / "run")
    assert order[-1] == "provenance.json"
    assert len(order) == len(set(order)) > 2


def test_seeds_that_are_missing_or_lead_back_are_damage(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for seed in (1, 2):
        written(run / f"seed-{seed}")
    write_run_set(
        run, scenario="schema: 3\n", about=ABOUT, numbers={}, answer=ANSWER, provenance={**OF_SEVERAL, "seeds": [1, 2]}
    )
    assert len(open_run(run).seeds) == 2
    (run / "seed-2").rename(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=r"seed-2/provenance\.json"):
        open_run(run)
    (run / "seed-2").symlink_to(".")
    with pytest.raises(ConfigError, match="seed-2  holds several seeds itself"):
        open_run(run)


def test_a_link_that_leads_round_in_a_circle_is_no_run_and_no_place_for_one(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(ConfigError, match="there is no such folder"):
        open_run(loop)
    with pytest.raises(ConfigError, match="exists already"):
        refuse_existing(loop)


def test_wrong_questions_are_told(tmp_path: Path) -> None:
    run = written(tmp_path / "it's a run")
    with pytest.raises(UsageError, match="has no number 'fct'"):
        run.value("fct")
    with pytest.raises(UsageError, match="no table 'flow'"):
        run.table("flow")
    with pytest.raises(UsageError, match="gives no table"):
        run.query("")
    with pytest.raises(UsageError, match="DuckDB refuses 'select nothing from flows'"):
        run.query("select nothing from flows")
    assert run.query("select * from links").num_rows == 1


def test_no_name_of_a_table_or_column_has_to_be_quoted(tmp_path: Path) -> None:
    run = written(tmp_path / "run")
    known = duckdb.sql("select keyword_name, keyword_category from duckdb_keywords()").fetchall()
    keywords = {word for word, category in known if category != "unreserved"}
    assert {"where", "case", "select", "left"} <= keywords
    for table, columns in TABLES.items():
        names = [column.name for column in columns]
        assert not keywords & {table, *names}
        assert run.query(f"select {', '.join(names)} from {table}").column_names == names  # noqa: S608 - our own names


def test_a_statement_leaves_nothing_behind(tmp_path: Path) -> None:
    written(tmp_path / "run")
    run = open_run(tmp_path / "run")
    for statement in ("create table kept as select 1 as one", "drop view flows", "commit"):
        with suppress(UsageError):  # some of them give no table
            run.query(statement)
    with pytest.raises(UsageError):
        run.query("from kept")
    assert run.query("select count(*) as n from flows")["n"].to_pylist() == [1]


def test_parquet_is_plain(tmp_path: Path) -> None:
    run = written(tmp_path / "run")
    assert pq.read_schema(run.path / "flows.parquet").names == [column.name for column in TABLES["flows"]]


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("scenario.yaml", None, "cannot be read"),
        ("provenance.json", None, "cannot be read"),
        ("summary.json", None, "cannot be read"),
        ("scenario.yaml", b"{a: ", "not YAML"),
        ("scenario.yaml", b"\xff", "cannot be read"),
        ("scenario.yaml", b"- 1\n", "wanted a scenario"),
        ("provenance.json", b"[]", "wanted a JSON object"),
        ("provenance.json", b"{", "cannot be read"),
        ("provenance.json", b"[" * 100_000, "cannot be read"),
        ("provenance.json", b'{"format": 3}', "found the status None"),
        ("provenance.json", b'{"format": true}', "found the format True"),
        ("provenance.json", b'{"format": 2}', "found the format 2, wanted 3; run the scenario again"),
        ("summary.json", b"{}", "'about' is missing"),
        ("summary.json", b'{"about": {}, "numbers": {"x": 1}}', "the number 'x' lacks"),
        ("summary.json", b'{"about": {}, "numbers": {"x": {"value": "1", "unit": "B"}}}', "the number 'x' lacks"),
        ("summary.json", b'{"about": 1, "numbers": {}}', "'about' is missing"),
        ("summary.json", b'{"about": {}, "answer": {}, "numbers": {}}', "'answer' is no answer"),
        ("flows.parquet", b"PAR1 and no end", "lost its end"),
        ("flows.parquet", b"", "lost its end"),
        ("seed-7/provenance.json", b"{}", "found the format None"),
    ],
)
def test_a_damaged_run_is_refused_and_the_file_named(
    tmp_path: Path, file: str, content: bytes | None, words: str
) -> None:
    run = written(tmp_path / "run")
    path = run.path / file
    path.parent.mkdir(exist_ok=True)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        open_run(run.path)
    assert any(mistake.path == file and words in mistake.text for mistake in caught.value.mistakes)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("tables", {"flows": -1}, "the number of rows"),
        ("tables", ["flows"], "the number of rows"),
        ("numbers", {"x": 1}, "not a list of names"),
        ("seeds", ["1"], "not a list of whole numbers"),
        ("files", ["mine.py"], "'files' does not have the hash of each file"),
        ("policies", {"a": {"name": "b"}}, "'policies' does not have the hash of each file"),
        ("machine", "x86", "not a mapping"),
        ("caveats", {"a": "b"}, "wanted a list of records"),
    ],
)
def test_a_list_of_the_provenance_that_is_none_is_damage(tmp_path: Path, key: str, value: object, words: str) -> None:
    run = written(tmp_path / "run")
    document = {**run.provenance, **OF_SEVERAL, key: value} if key == "seeds" else {**run.provenance, key: value}
    (run.path / "provenance.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        open_run(run.path)
    assert any(mistake.path == "provenance.json" and words in mistake.text for mistake in caught.value.mistakes)


def rewritten(file: Path, *path: str) -> None:
    """Take a key out of a JSON file."""
    document = json.loads(file.read_text(encoding="utf-8"))
    inside = document
    for key in path[:-1]:
        inside = inside[key]
    del inside[path[-1]]
    file.write_text(json.dumps(document), encoding="utf-8")


def refusal(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        open_run(folder)
    assert caught.value.source == str(folder)
    (mistake,) = caught.value.mistakes
    return f"{mistake.path}: {mistake.text}"


@pytest.mark.parametrize("key", sorted({*runs_damage.PROVENANCE["one"]} - {"numbers"}))
def test_every_key_of_a_provenance_is_needed(tmp_path: Path, key: str) -> None:
    rewritten(written(tmp_path / "run").path / "provenance.json", key)
    assert refusal(tmp_path / "run") == f"provenance.json: lacks '{key}'; run the scenario again"


@pytest.mark.parametrize("key", sorted({*runs_damage.PROVENANCE["several"]} - {"seeds"}))
def test_every_key_of_the_provenance_of_several_seeds_is_needed(tmp_path: Path, key: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    written(folder / "seed-1")
    write_run_set(folder, scenario="schema: 3\n", about=ABOUT, numbers={}, answer=ANSWER, provenance=OF_SEVERAL)
    rewritten(folder / "provenance.json", key)
    assert refusal(folder) == f"provenance.json: lacks '{key}'; run the scenario again"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (("answer",), "lacks 'answer'"),
        (("numbers",), "lacks 'numbers'"),
        (("numbers", "none"), "lacks the number 'none'"),
        (("numbers", "fct_p50_ps"), "lacks the number 'fct_p50_ps'"),
        *((("about", key), f"'about' lacks '{key}'") for key in ABOUT),
    ],
)
def test_every_key_of_a_summary_is_needed(tmp_path: Path, path: tuple[str, ...], words: str) -> None:
    rewritten(written(tmp_path / "run").path / "summary.json", *path)
    assert refusal(tmp_path / "run") == f"summary.json: {words}; run the scenario again"


@pytest.mark.parametrize("table", TABLES)
def test_every_table_is_needed(tmp_path: Path, table: str) -> None:
    rewritten(written(tmp_path / "run").path / "provenance.json", "tables", table)
    assert refusal(tmp_path / "run") == f"provenance.json: 'tables' lacks '{table}'; run the scenario again"


@pytest.mark.parametrize(("table", "column"), [(name, one.name) for name in TABLES for one in TABLES[name]])
def test_every_column_of_a_table_is_needed_in_its_type(tmp_path: Path, table: str, column: str) -> None:
    schema = table_schema(table)
    place = schema.get_field_index(column)
    file = tmp_path / f"{table}.parquet"
    other = pa.bool_()
    for changed, words in (
        (schema.remove(place), f"lacks the column '{column}'"),
        (schema.set(place, pa.field(column, other)), f"found bool in the column '{column}', wanted"),
    ):
        pq.write_table(changed.empty_table(), file)
        for ask in (lambda: read_table(tmp_path, table), lambda: create_views(duckdb.connect(), tmp_path, {})):
            with pytest.raises(ConfigError) as caught:
                ask()
            assert caught.value.source == str(tmp_path)
            (mistake,) = caught.value.mistakes
            assert mistake.path == file.name
            assert mistake.text.startswith(words)
            assert mistake.text.endswith("; run the scenario again")


def test_a_table_whose_inside_is_damaged_is_refused_when_it_is_read(tmp_path: Path) -> None:
    run = written(tmp_path / "run")
    (run.path / "flows.parquet").write_bytes(b"PAR1 nothing that makes sense PAR1")
    with pytest.raises(ConfigError, match=r"flows\.parquet"):
        _ = open_run(run.path).flows
    with pytest.raises(ConfigError, match=r"flows\.parquet"):
        run.query("select 1")


def test_runs_of_one_second_have_a_number_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Noon(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            assert tz is UTC
            return datetime(2026, 1, 2, 12, tzinfo=UTC)

    monkeypatch.setattr(runs, "datetime", Noon)
    for number in ("", "-2", "-3", "-4"):
        folder = new_folder("again", tmp_path)
        assert folder.name.removeprefix("again-20260102-").lstrip("0123456789") == number
        folder.mkdir()


def test_seeds_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for seed in (10, 9, 2, 100, 1):
        written(tmp_path / f"seed-{seed}")
    assert [run.path.name for run in Run(tmp_path).seeds] == ["seed-1", "seed-2", "seed-9", "seed-10", "seed-100"]


def test_a_page_beside_the_seeds_is_no_seed(tmp_path: Path) -> None:
    """A file called ``seed-1.html`` in a folder of several seeds, such as the page of a seed, hides nothing."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "seed-1.html").write_text("a page", encoding="utf-8")
    (folder / "seed-2").mkdir()
    assert [run.path.name for run in Run(folder).seeds] == ["seed-2"]

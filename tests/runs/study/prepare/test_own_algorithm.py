"""A collective algorithm in a file of the user's own: run, with a key of its own, like one of the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

import weftwork
from weftwork.base.errors import CodeError, ConfigError
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.written import dump

MINE = '''"""A ring with a software delay of its own.

Source: none. Leaves out: nothing that the ring has.
"""

from dataclasses import replace

from weftwork.spec.plug_in import DURATION, Measure, Record, row
from weftwork.workload.collectives.algorithm import Algorithm
from weftwork.workload.collectives.algorithms.ring import ALGORITHM as RING


class Keys(Record):
    """Keys of this ring."""

    delay_ps: int = row("delay", Measure(quantity=DURATION), default="1us", text="Delay of a step.", source="none")


def slower(call):
    return replace(call, step_latency_ps=call.step_latency_ps + call.options.delay_ps)


ALGORITHM = Algorithm(
    name="slow-ring",
    keys=Keys,
    operations={name: (lambda call, build=build: build(slower(call))) for name, build in RING.operations.items()},
    traffic=lambda call: RING.traffic(slower(call)),
    chain=lambda call: RING.chain(slower(call)),
    source="none",
)
'''
SCENARIO = """schema: 3
fabric: {radix: 4, tiers: 2}
collective: {algorithm: ./slow_ring.py, size: 64KiB, protocol: none}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "slow_ring.py").write_text(MINE, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(SCENARIO, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def took_ps(out: str, **overrides: str) -> int:
    run = weftwork.run("mine.yaml", out=out, overrides={f"collective.{key}": text for key, text in overrides.items()})
    return int(run.summary["completion_ps"]["value"])


@pytest.mark.usefixtures("folder")
def test_its_key_decides_how_long_it_takes() -> None:
    ring, mine = took_ps("ring", algorithm="ring"), took_ps("none", delay="0ps")
    assert mine == ring
    assert took_ps("usual") == pytest.approx(ring + 13_000_000, rel=0.01)  # between 2 x 7 steps, 1 us each
    assert took_ps("long", delay="10us") == pytest.approx(ring + 130_000_000, rel=0.01)


def test_a_scenario_keeps_the_file_and_its_keys(folder: Path) -> None:
    scenario = weftwork.read_scenario("mine.yaml", {"collective.delay": "3us"})
    assert scenario.collective is not None
    assert scenario.collective.algorithm == str(folder / "slow_ring.py")
    assert scenario.collective.options.model_dump() == {"delay_ps": 3_000_000}
    assert loads(dump(scenario)) == scenario


@pytest.mark.usefixtures("folder")
def test_a_key_of_another_algorithm_and_an_operation_that_it_lacks_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"means nothing with algorithm .*slow_ring\.py, only with hierarchical"):
        weftwork.read_scenario("mine.yaml", {"collective.inner": "ring"})
    with pytest.raises(ConfigError, match="slow-ring has no all-to-all; wanted all-reduce"):
        weftwork.prepare(weftwork.read_scenario("mine.yaml", {"collective.operation": "all-to-all"}))


def test_what_it_raises_is_told_with_its_line(folder: Path) -> None:
    (folder / "slow_ring.py").write_text(MINE.replace("call.options.delay_ps", "call.delay"), encoding="utf-8")
    with pytest.raises(CodeError, match=r"slow_ring.py, line 20: AttributeError"):
        weftwork.prepare(weftwork.read_scenario("mine.yaml"))


METHOD = """

def bytes_of(sent):
    steps = 2 * (sent.group.members - 1)
    passed = steps / sent.group.members * sent.size_bytes
    return MethodBytes(network_bytes=passed, network_steps=steps, network_piece_bytes=passed / steps)


ALGORITHM = Algorithm("""
FIELDS = 'method=TimedMethod(source="none", bytes_of=bytes_of, figures="tree", has_all_protocols=True),'
IMPORTS = """from weftwork.workload.collectives.method import TimedMethod
from weftwork.workload.collectives.method_bytes import MethodBytes
"""


def with_method(fields: str) -> str:
    text = MINE.replace("from weftwork.spec.plug_in", f"{IMPORTS}from weftwork.spec.plug_in")
    text = text.replace("\n\nALGORITHM = Algorithm(", METHOD)
    return text.replace('    source="none",\n)', f'    source="none",\n    {fields}\n)')


def notes(**overrides: str) -> dict[str, str]:
    given = {f"collective.{key}": text for key, text in overrides.items()}
    scenario = weftwork.read_scenario("mine.yaml", {"fabric.link_rate": "100Gbps", **given})
    return {one.subject: one.text for one in weftwork.prepare(scenario).notes.values()}


def test_auto_chooses_a_protocol_by_the_closed_form_of_the_file(folder: Path) -> None:
    (folder / "slow_ring.py").write_text(with_method(FIELDS), encoding="utf-8")
    told = notes(protocol="auto")
    assert told["collective.protocol"].startswith("auto took ll, the fastest of slow-ring at 65,536 bytes")
    assert "ll.slow-ring" not in told  # its figures are those of the tree
    assert notes(protocol="auto", size="64MiB")["collective.protocol"].startswith("auto took simple, the fastest")
    run = weftwork.run("mine.yaml", out="auto", overrides={"collective.protocol": "auto"})
    assert (
        "auto took ll, the fastest of slow-ring"
        in {one.subject: one.text for one in run.caveats}["collective.protocol"][:80]
    )


@pytest.mark.usefixtures("folder")
def test_without_a_closed_form_auto_has_no_protocols_and_latencies_are_those_of_the_ring() -> None:
    with pytest.raises(ConfigError, match="all-reduce by slow-ring has no closed form from which to choose a protocol"):
        notes(protocol="auto")
    assert notes(protocol="simple")["simple.slow-ring"] == "latencies of the ring, since NCCL has none for slow-ring"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (FIELDS.replace("tree", "trees"), "its method has the figures of 'trees', wanted ring, tree"),
        ("method=7,", "method is 7, wanted a TimedMethod"),
        ("changes_rails=1,", "changes_rails is 1, wanted True or False"),
    ],
)
def test_a_wrong_method_is_blamed_on_its_file(folder: Path, fields: str, text: str) -> None:
    (folder / "slow_ring.py").write_text(with_method(fields), encoding="utf-8")
    with pytest.raises((CodeError, ConfigError), match=text) as caught:
        notes(protocol="simple")
    assert "slow_ring.py" in str(caught.value)


AUTO = {"algorithm": "auto", "candidate": "./slow_ring.py"}


def test_auto_takes_a_file_where_its_closed_form_is_the_faster_one(folder: Path) -> None:
    quick = with_method(FIELDS).replace("sent.size_bytes\n", "sent.size_bytes / 8\n").replace('"tree"', '"ring"')
    (folder / "slow_ring.py").write_text(quick, encoding="utf-8")
    told = notes(**AUTO, size="64MiB")["collective.algorithm"]
    assert told.startswith("auto took slow-ring, ")
    assert told.endswith(", which NCCL takes")
    run = weftwork.run("mine.yaml", out="auto", overrides={f"collective.{key}": text for key, text in AUTO.items()})
    assert (folder / "auto" / "files" / "slow_ring.py").read_text(encoding="utf-8") == quick
    assert "candidate: files/slow_ring.py" in run.scenario
    (folder / "slow_ring.py").write_text(quick.replace("sent.size_bytes / 8", "sent.size_bytes * 8"), encoding="utf-8")
    told = notes(**AUTO, size="64MiB")["collective.algorithm"]
    assert "as NCCL's tuner does; slow-ring would take " in told


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({}, "slow-ring was not judged: it offers no method, which says how its time is estimated"),
        ({"operation": "reduce"}, "an algorithm of your own was not judged"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_auto_says_why_it_did_not_judge_a_file(overrides: dict[str, str], text: str) -> None:
    assert notes(**AUTO, **overrides)["collective.algorithm"].endswith(f"; {text}")


ON_LATTICE = """from weftwork.workload.collectives.algorithms.bucket import ALGORITHM as BUCKET
from weftwork.workload.collectives.lattice_form import LatticeForm

FORM = LatticeForm(key="rings", ways=BUCKET.on_lattice.ways,
                   phases=lambda way, lattice, size, ports: BUCKET.on_lattice.phases(way, lattice, size / 2, ports))
ALGORITHM = Algorithm(name="half", keys=BUCKET.keys, operations=BUCKET.operations, traffic=BUCKET.traffic,
                      chain=BUCKET.chain, needs_lattice=True, on_lattice=FORM, source="none")
"""


def test_auto_takes_a_file_on_a_torus_by_its_closed_form_there(folder: Path) -> None:
    head, _, _ = MINE.partition("class Keys")
    (folder / "slow_ring.py").write_text(head + ON_LATTICE, encoding="utf-8")
    given = {f"collective.{key}": text for key, text in {**AUTO, "size": "64MiB"}.items()}
    torus = {"topology": "torus", "shape": [4, 4], "link_rate": "100Gbps", "routing": "minimal"}
    scenario = weftwork.read_scenario({"fabric": torus, "collective": {"protocol": "none"}}, given)
    told = {one.subject: one.text for one in weftwork.prepare(scenario).notes.values()}
    assert told["collective.algorithm"].startswith("auto took half, rings ")
    (folder / "slow_ring.py").write_text(MINE, encoding="utf-8")
    told = {one.subject: one.text for one in weftwork.prepare(scenario).notes.values()}
    assert "; slow-ring was not judged: it offers no on_lattice, which says how its" in told["collective.algorithm"]


@pytest.mark.usefixtures("folder")
def test_a_candidate_is_for_auto_and_a_python_file() -> None:
    with pytest.raises(ConfigError, match=r"means nothing with algorithm ring, only with auto"):
        weftwork.read_scenario("mine.yaml", {"collective.algorithm": "ring", "collective.candidate": "./slow_ring.py"})
    with pytest.raises(ConfigError, match=r"found 'ring', wanted a file that ends in \.py"):
        weftwork.read_scenario("mine.yaml", {"collective.algorithm": "auto", "collective.candidate": "ring"})

"""Reading, writing and explaining a scenario."""

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from helpers.findings import sound

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.units import format_quantity
from weftwork.cli.explain import explain
from weftwork.cli.schema import schema
from weftwork.hardware.catalogue import nodes
from weftwork.policies.load import load as load_policy
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.scenario.devices import device_mistakes, device_rows
from weftwork.spec.scenario.kinds import Measure
from weftwork.spec.scenario.policies import POLICY_KINDS, PRESETS, known_policies
from weftwork.spec.scenario.reference import page, row
from weftwork.spec.scenario.rows import REQUIRED
from weftwork.spec.scenario.scenario import load, loads, rows
from weftwork.spec.scenario.schema import json_schema
from weftwork.spec.scenario.sweep_keys import SWEEP_KEYS
from weftwork.spec.scenario.written import dump
from weftwork.spec.scenario.yaml_tree import Mapping, Scalar, read_tree
from weftwork.spec.training import Software
from weftwork.study.prepare.prepare import check_transport
from weftwork.study.prepare.training import proposed_plan
from weftwork.study.sweep.definition import read_definition

ROOT = Path(__file__).parents[4]
WRONG_FILES = sorted((ROOT / "tests/golden/scenario_errors").glob("*.yaml"))

# Golden files may not change when a policy is added.
KNOWN = {
    "congestion_control": ("dcqcn", "fixed-window"),
    "path_selection": ("ecmp", "spray"),
    "port_selection": ("ecmp", "least-loaded", "spray"),
    "node": ("plain", "dgx-a100", "dgx-h100", "p5"),
    "model": ("llama-3-8b", "llama-3-70b", "deepseek-v3"),
    "gpu": ("a100", "h100"),
    "software": ("plain", "megatron-2021"),
}

SMALL = """schema: 3
name: small
fabric: {topology: fat-tree, tiers: 3, radix: 4, link_rate: 100Gbps}
traffic: {pattern: permutation, size: 2MiB}
"""

EXAMPLES = {
    "small": SMALL,
    "leaf-spine by shape": """
schema: 3
fabric: {topology: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 8, links_per_pair: 2, link_delay: 1us}
traffic: {pattern: incast, senders: 31, size: 64KiB, start_jitter: 1us}
""",
    "leaf-spine by ratio": """
schema: 3
fabric: {topology: leaf-spine, hosts: 96, radix: 64, oversubscription: 3, fabric_rate: 800Gbps}
traffic: {pattern: poisson, load: 0.3, sizes: facebook-hadoop, flows: 1000}
""",
    "everything": """
schema: 3
name: "2024"
fabric:
  radix: 8
  gpus: 100
  cable_length: 1.5km
  host_link_delay: 10ns
  switch: {model: big, buffer: 165MB, headroom: ~, ecn: {kmin: 1MB, at: dequeue}, hash: {fields: [src_ip]}}
  nic: {pcie_rate: 252Gbps, pcie_latency: 500ns}
  loss: 1e-4
transport:
  congestion_control: {name: dcqcn, g: 0.004, alpha_timer: 55us, clamp: true, label: "1e6"}
  load_balancing: spray
  port_selection: {name: least-loaded}
  reorder_tolerant: true
  mtu: 1024
collective: {gpus: 64, size: 256MiB, channels: 4, repeat: 3}
engine: {fidelity: reference, seed: 7, until: 20ms, record: {flows: [0, 3], ports: all, every: 1us}}
faults:
  - {at: 2ms, link: leaf3-agg1, event: degrade, fraction: 0.25}
  - {at: 3ms, link: leaf3-agg1, event: degrade, rate: 100Gbps}
  - {at: 3ms, switch: core0, event: down}
""",
}


def mistakes_of(text: str, **arguments: object) -> list[Mistake]:
    with pytest.raises(ConfigError) as caught:
        loads(text, known=KNOWN, nodes=nodes(), check_transport=check_transport, **arguments)  # type: ignore[arg-type]
    return list(caught.value.mistakes)


@pytest.mark.parametrize("path", WRONG_FILES, ids=lambda path: path.stem)
def test_a_wrong_file_gets_all_its_mistakes_told(
    path: Path, check_golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    with pytest.raises(ConfigError) as caught:
        load(Path(path.name), known=KNOWN, nodes=nodes(), check_transport=check_transport, propose_plan=proposed_plan)
    check_golden(f"scenario_errors/{path.stem}.txt", f"{caught.value}\n")


def test_there_are_enough_wrong_files() -> None:
    assert len(WRONG_FILES) >= 30


def test_quantities_are_resolved_to_one_unit() -> None:
    scenario = loads(SMALL, known=KNOWN)
    assert scenario.fabric.link_rate_bps == 100_000_000_000
    assert scenario.traffic is not None
    assert scenario.traffic.options.size_bytes == 2 * 2**20
    assert scenario.transport.timeout_ps == 4_096_000 * 2**14
    assert scenario.transport.interframe_bytes == 20
    assert scenario.workload is scenario.traffic


def test_what_follows_from_other_keys_is_filled_in() -> None:
    scenario = loads(SMALL, known=KNOWN)
    fabric = scenario.fabric
    assert (fabric.hosts, fabric.gpus, fabric.fabric_rate_bps) == (16, 16, 100_000_000_000)
    assert (fabric.link_delay_ps, fabric.host_link_delay_ps, fabric.cable_length_m) == (100_000, 100_000, 20.0)
    assert (scenario.transport.path_selection.name, scenario.transport.port_selection.name) == ("ecmp", "ecmp")
    assert fabric.options.model_dump() == {"tiers": 3, "spines": None}


@pytest.mark.parametrize(("tiers", "radix", "hosts"), [(2, 64, 2_048), (3, 64, 65_536), (3, 8, 128)])
def test_a_fat_tree_has_the_hosts_of_the_closed_form(tiers: int, radix: int, hosts: int) -> None:
    text = SMALL.replace("tiers: 3, radix: 4", f"tiers: {tiers}, radix: {radix}")
    assert loads(text, known=KNOWN).fabric.hosts == hosts


def test_the_shape_of_a_leaf_spine_gives_its_oversubscription() -> None:
    fabric = loads(EXAMPLES["leaf-spine by shape"], known=KNOWN).fabric
    assert (fabric.hosts, fabric.options.oversubscription) == (32, 2.0)


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_what_is_dumped_is_complete_and_loads_back_equal(text: str) -> None:
    scenario = loads(text, known=KNOWN)
    written = dump(scenario)
    again = loads(written, known=KNOWN)
    assert again == scenario
    assert dump(again) == written
    root = sound(read_tree, written)
    assert isinstance(root, Mapping)
    assert root.get("engine") is not None


def test_a_difference_anywhere_makes_scenarios_unequal() -> None:
    one = loads(SMALL, known=KNOWN)
    assert one != loads(SMALL, overrides={"engine.seed": "2"}, known=KNOWN)
    assert one != loads(SMALL, overrides={"transport.congestion_control.g": "0.1"}, known=KNOWN)
    assert one != "small"


def test_the_lines_of_keys_are_kept() -> None:
    scenario = loads(EXAMPLES["everything"], known=KNOWN)
    assert scenario.line_of("schema") == 2
    assert scenario.line_of("fabric.radix") == 5
    assert scenario.line_of("fabric.switch.ecn.kmin") == 9
    assert scenario.line_of("fabric.spines") == 4  # not in the file: the section's
    assert scenario.line_of("faults.1.rate") == 22
    assert scenario.line_of("transport.congestion_control.alpha_timer") == 13
    assert scenario.line_of("nothing") is None


def test_other_floors_attach_lines_to_their_mistakes() -> None:
    scenario = loads(SMALL, "small.yaml", {"fabric.hosts": "8"}, known=KNOWN)
    found = scenario.locate(
        ConfigError("fat tree", [Mistake(path="fabric.radix", text="x"), Mistake(path="fabric.hosts", text="y")])
    )
    assert (
        str(found)
        == "small.yaml: 2 mistakes, nothing was run\n  line 3  fabric.radix        x\n          --set fabric.hosts  y"
    )


def test_set_replaces_adds_and_removes() -> None:
    overrides = {
        "fabric.radix": "8",
        "transport.congestion_control": "fixed-window",
        "engine.record.flows": "[0, 1]",
        "traffic.size": "null",
        "name": "other",
    }
    scenario = loads(SMALL, overrides=overrides, known=KNOWN)
    assert scenario.fabric.hosts == 128
    assert scenario.transport.congestion_control.name == "fixed-window"
    assert scenario.engine.record.flows == (0, 1)
    assert scenario.traffic is not None
    assert scenario.traffic.options.size_bytes == 2**20
    assert scenario.name == "other"


def test_set_changes_one_parameter_of_a_policy_or_device() -> None:
    overrides = {"transport.congestion_control.g": "0.5", "fabric.switch.ecn.pmax": "1", "faults.1.rate": "50Gbps"}
    scenario = loads(EXAMPLES["everything"], overrides=overrides, known=KNOWN)
    assert scenario.transport.congestion_control.parameters["g"] == 0.5
    assert scenario.transport.congestion_control.parameters["alpha_timer"] == "55us"
    assert scenario.fabric.switch.fields["ecn"] == {"kmin_bytes": 1_000_000, "at": "dequeue", "pmax": 1.0}
    assert scenario.faults[1].rate_bps == 50_000_000_000


@pytest.mark.parametrize(
    ("key", "value", "path", "words"),
    [
        ("fabric.radix", "7", "--set fabric.radix", "even"),
        ("fabric.radx", "8", "--set fabric.radx", "unknown key"),
        ("transport.congestion_control", "dcqnc", "--set transport.congestion_control", "wanted dcqcn"),
        ("traffic.size", "{", "--set traffic.size", "not YAML"),
        ("", "1", "--set ''", "not a key"),
        ("a..b", "1", "--set a..b", "not a key"),
        ("faults.3.at", "1ms", "--set faults.3.at", "no such place"),
        ("traffic.size", "&a 1", "--set traffic.size", "anchor"),
        ("foo", "", "--set foo", "unknown key"),
        ("transport.congestion_contrl", "null", "--set transport.congestion_contrl", "unknown key"),
        ("fabric.switch.bufer", "null", "--set fabric.switch.bufer", "unknown key"),
        ("transport.congestion_control.gg", "null", "--set transport.congestion_control.gg", "nothing to remove"),
    ],
)
def test_a_mistake_in_set_names_the_option(key: str, value: str, path: str, words: str) -> None:
    text = SMALL + "faults: [{at: 1ms, switch: core0, event: down}]\n"
    found = mistakes_of(text, overrides={key: value})
    assert [mistake.path for mistake in found] == [path]
    assert words in found[0].text
    assert found[0].line is None


@pytest.mark.parametrize("key", ["engine.seed", "fabric.switch", "fabric.switch.model", "transport.congestion_control",
                                 "transport.congestion_control.name", "faults", "traffic.start_jitter"])  # fmt: skip
def test_null_gives_a_key_its_default_whether_the_file_has_it_or_not(key: str) -> None:
    assert loads(SMALL, overrides={key: "null"}, known=KNOWN) == loads(SMALL, known=KNOWN)


def test_null_takes_the_workload_that_a_file_may_have() -> None:
    other = {"traffic": "null", "collective": "{gpus: 16}"}
    bare = SMALL.replace(next(line for line in SMALL.splitlines(keepends=True) if line.startswith("traffic")), "")
    assert "traffic" not in bare
    assert loads(bare, overrides=other, known=KNOWN) == loads(SMALL, overrides=other, known=KNOWN)


def test_null_takes_an_unknown_key_or_a_parameter_out_of_the_file() -> None:
    assert loads(SMALL + "foo: 1\n", overrides={"foo": "null"}, known=KNOWN) == loads(SMALL, known=KNOWN)
    text = SMALL + "transport: {congestion_control: {name: dcqcn, g: 0.5}}\n"
    without = loads(text, overrides={"transport.congestion_control.g": ""}, known=KNOWN)
    assert without.transport.congestion_control.parameters == {}


def test_a_contradiction_with_the_file_names_the_option() -> None:
    found = mistakes_of(EXAMPLES["leaf-spine by shape"], overrides={"traffic.senders": "40"})
    assert [(mistake.path, mistake.line) for mistake in found] == [("--set traffic.senders", None)]


@pytest.mark.parametrize(
    ("overrides", "over"),
    [
        ({"fabric.hosts": "16"}, {"fabric.hosts": "17"}),
        ({"fabric.gpus": "16", "fabric.hosts": "16"}, {"fabric.gpus": "16", "fabric.hosts": "15"}),
        (
            {"traffic.pattern": "incast", "traffic.senders": "15"},
            {"traffic.pattern": "incast", "traffic.senders": "16"},
        ),
        (
            {"traffic.pattern": "incast", "traffic.receiver": "15"},
            {"traffic.pattern": "incast", "traffic.receiver": "16"},
        ),
        ({"traffic": "null", "collective": "{gpus: 16}"}, {"traffic": "null", "collective": "{gpus: 17}"}),
        (
            {"traffic": "null", "collective": "{operation: broadcast, root: 15}"},
            {"traffic": "null", "collective": "{operation: broadcast, root: 16}"},
        ),
        ({"fabric.switch.ecn": "{kmin: 1MB, kmax: 1MB}"}, {"fabric.switch.ecn": "{kmin: 1000001, kmax: 1MB}"}),
        ({"fabric.nic": "{xoff: 1MB, xon: 1MB}"}, {"fabric.nic": "{xoff: 1MB, xon: 1000001}"}),
        ({"fabric.link_delay": "1ns"}, {"fabric.link_delay": "999ps"}),
        ({"fabric.cable_length": "20cm"}, {"fabric.cable_length": "19cm"}),
        (
            {"fabric.cable_length": "20m", "fabric.link_delay": "100ns"},
            {"fabric.cable_length": "20m", "fabric.link_delay": "101ns"},
        ),
        ({"transport.data_priority": "5"}, {"transport.data_priority": "6"}),
        ({"traffic.priority": "5"}, {"traffic.priority": "6"}),
        (
            {"faults": "[{at: 1ms, switch: core0, event: up}]", "engine.until": "1001us"},
            {"faults": "[{at: 1ms, switch: core0, event: up}]", "engine.until": "1ms"},
        ),
    ],
)
def test_each_limit_is_where_it_should_be(overrides: dict[str, str], over: dict[str, str]) -> None:
    loads(SMALL, overrides=overrides, known=KNOWN)
    assert len(mistakes_of(SMALL, overrides=over)) == 1


@pytest.mark.parametrize(
    ("overrides", "over"),
    [
        ({"fabric.hosts": "32"}, {"fabric.hosts": "33"}),
        ({"fabric.radix": "12"}, {"fabric.radix": "11"}),
        ({"fabric.oversubscription": "2"}, {"fabric.oversubscription": "2.01"}),
        ({"fabric.fabric_rate": "800Gbps", "fabric.oversubscription": "1"}, {"fabric.oversubscription": "1"}),
    ],
)
def test_each_limit_of_a_leaf_spine_is_where_it_should_be(overrides: dict[str, str], over: dict[str, str]) -> None:
    text = EXAMPLES["leaf-spine by shape"].replace("incast, senders: 31", "permutation")
    loads(text, overrides=overrides, known=KNOWN)
    assert len(mistakes_of(text, overrides=over)) == 1


def test_a_file_of_an_option_is_relative_to_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "my_cc.py").write_text("")
    (tmp_path / "s.yaml").write_text(
        "{schema: 3, fabric: {radix: 4, link_rate: 1Gbps}, traffic: {pattern: permutation}}"
    )
    monkeypatch.chdir(tmp_path / "here")
    scenario = load(tmp_path / "s.yaml", {"transport.congestion_control": "./my_cc.py"}, known=KNOWN)
    assert scenario.transport.congestion_control.file == str(tmp_path / "here" / "my_cc.py")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="seen from the current folder"):
        load(tmp_path / "s.yaml", {"transport.congestion_control": "./my_cc.py"}, known=KNOWN)


def test_files_are_relative_to_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "my_cc.py").write_text("")
    (tmp_path / "sizes.csv").write_text("")
    (tmp_path / "mine.graphml").write_text("")
    file = tmp_path / "one.yaml"
    file.write_text(
        "schema: 3\nfabric: {file: mine.graphml, reconvergence_delay: 2ms}\n"
        "transport: {congestion_control: {file: my_cc.py, gain: 2}}\n"
        "traffic: {pattern: poisson, sizes: ./sizes.csv}\n"
    )
    scenario = load(file, known=KNOWN)
    assert scenario.name == "one"
    assert scenario.fabric.topology == "file"
    assert scenario.fabric.file == str(tmp_path / "mine.graphml")
    assert scenario.transport.congestion_control.file == str(tmp_path / "my_cc.py")
    assert scenario.transport.congestion_control.label == str(tmp_path / "my_cc.py")
    assert scenario.traffic is not None
    assert scenario.traffic.options.sizes == str(tmp_path / "sizes.csv")
    assert loads(dump(scenario), known=KNOWN) == scenario


@pytest.mark.parametrize("name", ["missing.yaml", ".", "a\0b", "x" * 300])
def test_a_file_that_cannot_be_read_is_the_users_mistake(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / name)


def test_a_file_that_is_too_long_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    file.write_text("# " + "x" * 250_001)
    with pytest.raises(ConfigError, match="longer than"):
        load(file)


def test_parameters_of_policies_are_judged_by_the_caller_and_get_their_lines() -> None:
    asked: list[tuple[str, str, dict[str, object]]] = []

    def check(kind: str, label: str, parameters: object) -> list[Mistake]:
        assert isinstance(parameters, dict)
        asked.append((kind, label, parameters))
        return [Mistake(path="gg", text="unknown parameter", fix="g")]

    text = SMALL + "transport:\n  congestion_control:\n    name: dcqcn\n    gg: 1\n"
    found = mistakes_of(text, check_parameters=check)
    assert asked == [("congestion_control", "dcqcn", {"gg": 1})]
    assert found == [Mistake(path="transport.congestion_control.gg", text="unknown parameter", line=8, fix="g")]


def test_devices_of_the_catalogue_are_judged_where_the_catalogue_is_known() -> None:
    text = SMALL.replace("radix: 4", "radix: 4, switch: tomahawk-6")
    assert loads(text, known=KNOWN).fabric.switch.model == "tomahawk-6"
    with pytest.raises(ConfigError, match="did you mean 'tomahawk-5'"):
        loads(text, known={**KNOWN, "switch": ["tomahawk-5"]})


def test_a_choice_of_device_goes_on_top_of_its_model() -> None:
    choice = loads(EXAMPLES["everything"], known=KNOWN).fabric.switch
    switch = choice.on(Switch(name="big", telemetry=True))
    assert (switch.name, switch.telemetry, switch.buffer_bytes) == ("big", True, 165_000_000)
    assert (switch.ecn.kmin_bytes, switch.ecn.kmax_bytes, switch.ecn.at) == (1_000_000, None, "dequeue")
    assert switch.hash.fields == ("src_ip",)


def test_plain_devices_do_not_contradict_themselves() -> None:
    assert device_mistakes(Switch()) == []
    assert device_mistakes(Nic()) == []


def test_every_field_of_a_device_has_its_row() -> None:
    for record in (Switch, Nic, Server, Software):
        assert set(device_rows(record)) == set(record.model_fields) - {"name"}


def test_policies_are_listed_without_being_imported() -> None:
    assert set(known_policies()) == set(POLICY_KINDS)


def test_every_row_says_what_a_user_must_know() -> None:
    for one in rows():
        assert one.text.endswith("."), one.path
        assert one.source, one.path
        assert one.unit, one.path
        assert one.allowed, one.path
        assert one.path == one.path.lower()


def test_every_default_is_one_of_the_allowed_values() -> None:
    for one in rows():
        if isinstance(one.kind, Measure) and one.default not in {None, REQUIRED}:
            value = one.kind.read(Scalar(text=str(one.default)))
            assert one.kind.allowed or format_quantity(one.kind.quantity, value) == str(one.default), one.path


def test_rows_of_one_path_belong_to_different_choices() -> None:
    chosen = [(one.path, name) for one in rows() for name in (one.only or ("", ("any",)))[1]]
    assert len(chosen) == len(set(chosen))


@pytest.mark.golden
def test_the_page_of_reference_is_up_to_date() -> None:
    written = (ROOT / "docs/scenario.md").read_text(encoding="utf-8")
    assert written == page(), "python -m weftwork.spec.scenario.reference > docs/scenario.md"


def test_the_example_of_the_page_is_right() -> None:
    example = page().split("```yaml\n")[1].split("```")[0]
    assert loads(example, known=KNOWN).fabric.hosts == 128


def test_explain_prints_the_row_of_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    explain("fabric.oversubscription", as_json=False)
    printed = capsys.readouterr().out
    assert "Bandwidth of a switch's links down" in printed
    assert "topology leaf-spine, rail-only or rail-optimized" in printed
    assert "doi:" in printed


def test_explain_prints_the_section_that_sweeps_read(capsys: pytest.CaptureFixture[str]) -> None:
    explain("sweep", as_json=False)
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[2:]] == [f"sweep.{key}" for key in SWEEP_KEYS]
    explain("sweep.seeds", as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["default"], told["allowed"]) == ("1", "a whole number from 1")
    explain(None, as_json=False)
    assert "\nsweep " in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"did you mean 'sweep\.grid'"):
        explain("sweep.gird", as_json=False)


@pytest.mark.parametrize(
    ("section", "is_right"),
    [
        ("{grid: {a: [1, [2, 1], {name: x}]}, zip: {b: [1, 1]}, list: [{c: 1}], seeds: 2, by: x, within: a}", True),
        ("{random: {samples: 3, keys: {a: {low: 1, high: 2.5, scale: log}, b: [p, q]}}}", True),
        ("null", True),
        ("{gird: {a: [1]}}", False),
        ("{grid: {a: 1}}", False),
        ("{grid: {a: [1, 1]}}", False),
        ("{list: {a: 1}}", False),
        ("{random: {keys: {a: [1]}}}", False),
        ("{random: {samples: 3, keys: {a: {low: 1}}}}", False),
        ("{grid: {a: [1]}, seeds: 0}", False),
    ],
)
def test_the_json_schema_knows_what_sweeps_read(tmp_path: Path, section: str, *, is_right: bool) -> None:
    """It agrees with the reader of the section."""
    validator = jsonschema.Draft202012Validator(json_schema(KNOWN)["properties"]["sweep"])
    assert validator.is_valid(plain(section)) is is_right
    if section == "null":
        return
    file = tmp_path / "file.yaml"
    file.write_text(f"schema: 3\nsweep: {section}\n", encoding="utf-8")
    if is_right:
        assert read_definition(file, {}).points
    else:
        with pytest.raises(ConfigError):
            read_definition(file, {})


def test_explain_prints_every_sense_of_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    explain("fabric.spines", as_json=False)
    printed = capsys.readouterr().out
    assert "only with topology leaf-spine\n" in printed
    assert "only with topology rail-only or rail-optimized\n" in printed
    explain("fabric.spines", as_json=True)
    told = json.loads(capsys.readouterr().out)
    others = ["topology leaf-spine", "topology rail-only or rail-optimized"]
    assert [one["only_with"] for one in told["choices"]] == ["topology fat-tree", *others]


def test_explain_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    explain("transport.timeout", as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["key"], told["unit"], told["default"]) == ("transport.timeout", "picoseconds", "67.108864ms")


def test_explain_knows_the_parameters_of_policies(capsys: pytest.CaptureFixture[str]) -> None:
    rows_of_dcqcn = load_policy("congestion_control", "dcqcn").rows
    key = f"transport.congestion_control.{rows_of_dcqcn[0].name}"
    explain(key, as_json=False)
    printed = capsys.readouterr().out
    assert "of dcqcn: " in printed
    assert rows_of_dcqcn[0].source in printed
    explain(key, as_json=True)
    assert json.loads(capsys.readouterr().out)["policies"]["dcqcn"]["text"] == rows_of_dcqcn[0].text
    with pytest.raises(ConfigError, match=f"did you mean '{key}'"):
        explain(f"{key}x", as_json=False)


def test_explain_lists_the_policies_that_are_installed(capsys: pytest.CaptureFixture[str]) -> None:
    explain("transport.congestion_control", as_json=False)
    assert "dcqcn, " in capsys.readouterr().out


def test_presets_name_policies_that_are_installed() -> None:
    installed = known_policies()
    for path, port in PRESETS.values():
        assert path in installed["path_selection"]
        assert port in installed["port_selection"]


def test_a_switch_of_the_catalogue_may_say_the_radix() -> None:
    fabric = loads(SMALL.replace("radix: 4", "switch: tomahawk-5"), known=KNOWN).fabric
    assert (fabric.radix, fabric.hosts) == (None, None)


def test_explain_lists_the_keys_of_a_section(capsys: pytest.CaptureFixture[str]) -> None:
    explain("fabric.switch.ecn", as_json=False)
    assert "fabric.switch.ecn.kmin" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("oversubscription", "fabric.oversubscription"),
        ("fabric.oversubscriptoin", "fabric.oversubscription"),
        ("kmin", "fabric.switch.ecn.kmin"),
        ("qqqqqqqq", None),
    ],
)
def test_explain_knows_the_nearest_key(key: str, fix: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        row(key)
    assert caught.value.mistakes[0].fix == fix


def test_schema_prints_a_valid_json_schema(capsys: pytest.CaptureFixture[str]) -> None:
    schema()
    jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))


def plain(text: str) -> object:
    """The tree of a text as an editor sees it."""

    def walk(node: object) -> object:
        match node:
            case Scalar():
                return node.value
            case Mapping():
                return {entry.key: walk(entry.node) for entry in node.entries}
            case None:
                return None
            case _:
                return [walk(item) for item in node.items]  # type: ignore[attr-defined]

    return walk(sound(read_tree, text))


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_the_json_schema_accepts_what_load_accepts(text: str) -> None:
    validator = jsonschema.Draft202012Validator(json_schema(KNOWN))
    validator.validate(plain(text))
    validator.validate(plain(dump(loads(text, known=KNOWN))))


# What an editor can tell by the schema alone.
TOLD_BY_SCHEMA = {
    "bool_for_number", "list_at_top", "many_at_once", "no_pattern", "no_schema", "no_sections", "no_workload",
    "not_yet", "nothing_for_value", "number_for_bool", "numbers_out_of_range", "policy_forms", "schema_newer",
    "schema_text", "schema_zero", "switch_fields", "text_at_top", "two_workloads", "unknown_keys", "wrong_file_kinds",
    "wrong_types", "wrong_units", "wrong_words",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TOLD_BY_SCHEMA))
def test_the_json_schema_refuses_what_it_can_tell(name: str) -> None:
    text = (ROOT / f"tests/golden/scenario_errors/{name}.yaml").read_text(encoding="utf-8")
    assert not jsonschema.Draft202012Validator(json_schema(KNOWN)).is_valid(plain(text))

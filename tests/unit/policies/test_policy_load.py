"""Loading a policy: names, files, parameters, variants, and errors with all mistakes at once."""

from pathlib import Path

import pytest

from weftwork.base.errors import ConfigError, PolicyError, UsageError
from weftwork.policies.interface import (
    CANDIDATE_DTYPE,
    PORT_SIGNAL_DTYPE,
    SIGNAL_DTYPE,
    Candidate,
    PortSignal,
    Signal,
)  # fmt: skip
from weftwork.policies.load import catalogue, load, policy_names


def mistakes(*args: object, **kwargs: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(*args, **kwargs)  # type: ignore[arg-type]
    return [str(mistake) for mistake in caught.value.mistakes]


def test_underscores_and_hyphens_are_one() -> None:
    assert load("congestion-control", "fixed_window").name == load("congestion_control", "fixed-window").name


def test_an_unknown_name_gets_the_nearest_one() -> None:
    (told,) = mistakes("congestion_control", "dcqnc", path="transport.congestion_control")
    assert told == (
        f"transport.congestion_control  found 'dcqnc', wanted {', '.join(policy_names('congestion_control'))} or the"
        " path of a file; did you mean 'dcqcn'?"
    )


def test_a_missing_file_is_named() -> None:
    assert mistakes("path_selection", "./nowhere.py") == ["path_selection  there is no file './nowhere.py'"]


def test_an_unknown_kind_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="wanted congestion_control, path_selection, port_selection"):
        load("routing", "ecmp")


def test_all_mistakes_in_parameters_are_told_at_once() -> None:
    wrong = {
        "gg": 1, "g": 2, "alpha_timer_ps": "55 parsecs", "increase_bytes": 1.5, "clamp_target": "maybe",
        "min_rate_bps": "1bps", "fast_steps": "many", "alpha_initial": float("nan"),
    }  # fmt: skip
    told = mistakes("congestion_control", "dcqcn", wrong)
    assert len(told) == len(wrong)
    assert told[0].startswith("congestion_control.gg  unknown parameter, wanted cnp_interval_ps, g, alpha_initial")
    assert told[1] == "congestion_control.g  found 2.0, wanted at most 1"
    assert told[2].startswith("congestion_control.alpha_timer_ps  found '55 parsecs', wanted a time such as 500ns")
    assert told[3].startswith("congestion_control.increase_bytes  found 1.5, wanted a size")
    assert told[4] == "congestion_control.clamp_target  found 'maybe', wanted true or false"
    assert told[5] == "congestion_control.min_rate_bps  found 1bps, wanted at least 1kbps"
    assert told[6] == "congestion_control.fast_steps  found 'many', wanted a whole number"
    assert told[7] == "congestion_control.alpha_initial  found nan, wanted a number"


def test_text_with_units_becomes_the_unit_of_the_name() -> None:
    policy = load("congestion_control", "dcqcn", {"alpha_timer_ps": "1.5us", "increase_bytes": "2MiB", "g": "0.25"})
    assert (policy.params.alpha_timer_ps, policy.params.increase_bytes, policy.params.g) == (1_500_000, 2**21, 0.25)


def test_a_variant_is_a_named_set_and_parameters_override_it() -> None:
    vendor = load("congestion_control", "dcqcn", {"variant": "vendor", "fast_steps": 3})
    assert vendor.values["cnp_interval_ps"] == 4_000_000
    assert vendor.values["fast_steps"] == 3
    assert load("congestion_control", "dcqcn", variant="hpcc-repo").values == load("congestion_control", "dcqcn").values
    (told,) = mistakes("congestion_control", "dcqcn", variant="papre")
    assert told.endswith("found 'papre', wanted hpcc-repo, hpcc-repo-window, paper, vendor; did you mean 'paper'?")


def test_the_hash_is_of_file_and_parameters() -> None:
    plain, same, other = (load("congestion_control", "dcqcn", p) for p in ({}, {"g": 1 / 256}, {"g": 0.5}))
    assert plain.hash == same.hash != other.hash


def test_a_plugin_of_another_kind_is_refused() -> None:
    path = next(entry.path for entry in catalogue("port_selection") if entry.name == "ecmp")
    with pytest.raises(PolicyError, match="PLUGIN is a PortSelection, wanted a CongestionControl"):
        load("congestion_control", path)


@pytest.mark.parametrize(
    ("seen", "dtype"), [(Signal, SIGNAL_DTYPE), (PortSignal, PORT_SIGNAL_DTYPE), (Candidate, CANDIDATE_DTYPE)]
)
def test_what_a_type_checker_sees_is_what_the_record_holds(seen: type, dtype: object) -> None:
    assert tuple(seen.__annotations__) == dtype.names  # type: ignore[attr-defined]


DOCS = Path(__file__).parents[3] / "docs" / "models"


def test_the_example_in_the_docs_loads() -> None:
    page = (DOCS / "writing-a-policy.md").read_text(encoding="utf-8")
    assert "<!-- copy -->\n[`examples/my_cc.py`](../../examples/my_cc.py):\n" in page
    assert load("congestion_control", DOCS.parents[1] / "examples" / "my_cc.py").params.cut == 0.5

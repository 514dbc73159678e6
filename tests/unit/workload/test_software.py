"""Software generations: records by name, defaults explained by one row, wrong names helped."""

from __future__ import annotations

import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.training import Software
from weftwork.workload.models.software import SOFTWARE, software, software_caveats


@pytest.mark.parametrize("name", sorted(SOFTWARE))
def test_every_generation_is_a_record_with_sources(name: str) -> None:
    assert software(name).name == name
    assert SOFTWARE[name].title
    for figure in SOFTWARE[name].figures.values():
        assert len(figure.source) > 5
        assert not (figure.standing == "chosen" and figure.verified)


def test_the_plain_row_is_the_default_of_the_record() -> None:
    plain = software("plain")
    assert plain == Software()
    wanted = {"matmul_efficiency", "memory_efficiency", "launch_ps", "network_efficiency", "latency_scale"}
    assert wanted <= set(SOFTWARE["plain"].figures)


def test_a_generation_differs_where_its_row_says_so() -> None:
    assert software("megatron-deepspeed").launch_ps > 4 * software("megatron-2021").launch_ps
    assert not software("megatron-2021").has_flash_attention
    assert software("megatron-2021").expert_streams == 1  # experts one after the other
    assert software("megatron-bridge-26.06").has_deduplicated_experts
    assert not software("plain").has_deduplicated_experts
    facts = software_caveats("megatron-deepspeed")
    assert "calibrated" in facts["megatron-deepspeed.launch_ps"].text
    assert "plain.matmul_efficiency" in facts
    assert not software_caveats("nothing")


def test_a_wrong_name_gets_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'megatron-2021'"):
        software("megatron-2012")

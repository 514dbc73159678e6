"""Times that outlast simulated time are as long as it, in tables too."""

import pytest
import yaml
from helpers.gallery import Gallery

INSIDE = {"topology": "rail-optimized", "gpus": 16, "node": {"model": "dgx-h100", "nvlink_rate": "1bps"}}
BETWEEN = {"topology": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2, "nic": {"pcie_rate": "1bps"}}


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
@pytest.mark.parametrize("fabric", [INSIDE, BETWEEN], ids=["inside", "between"])
def test_a_rate_of_one_bit_per_second_is_no_overflow(
    gallery: Gallery, fabric: dict[str, object], fidelity: str
) -> None:
    shape = {**fabric, **({"switch": "tomahawk-5"} if fabric is INSIDE else {})}
    collective = {"operation": "all-reduce", "size": "1TiB", "protocol": "none"}
    engine = {"fidelity": fidelity, "until": "1ms"}
    text = yaml.safe_dump({"schema": 3, "fabric": shape, "collective": collective, "engine": engine})
    run = gallery.run(text)
    assert run.status == "stopped"
    ideal = run.flows["ideal_fct_ps"].to_numpy(zero_copy_only=False)
    assert len(ideal) > 0

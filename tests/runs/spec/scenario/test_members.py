"""A list of members stands in its folder or table: no other module compares with a member's name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import weftwork
from weftwork.policies.load import KINDS as POLICIES
from weftwork.policies.load import policy_names
from weftwork.spec.routings import ROUTINGS
from weftwork.spec.scenario.choices import ALGORITHMS, FAULTS, PATTERNS, SCHEMES, TOPOLOGIES, TRANSPORTS
from weftwork.study.answer.improvement import IMPROVEMENTS
from weftwork.study.answer.suspects import SUSPICIONS
from weftwork.workload.collectives.method_catalogue import METHODS
from weftwork.workload.models.catalogue import MODELS

PACKAGE: Final = Path(weftwork.__file__).parent
HOMES: Final = (
    "policies/congestion_control/", "policies/path_selection/", "policies/port_selection/", "policies/routing/",
    "policies/central_engineering/", "topology/shapes/", "transports/", "workload/collectives/algorithms/",
    "workload/collectives/methods/", "workload/traffic/patterns/", "workload/models/", "spec/faults/",
    "spec/routings.py",
)  # fmt: skip
EXEMPT: Final = (
    "study/validation/",  # rows of published measurements name what was measured
    "testing/",  # examples of the kits
    "templates/",  # files that a user edits
)  # fmt: skip
# words that mean other things elsewhere -> where they mean a member; "none" is a word of many keys
_COLLECTIVES: Final = ("workload/collectives/", "study/prepare/", "study/answer/", "engine/unjoined.py")
ELSEWHERE: Final = {
    **dict.fromkeys(("ring", "tree", "direct"), _COLLECTIVES),
    # "none" and those that are also an operation, a way of messages, a direction or a rule of recovery
    **dict.fromkeys(("none", "all-to-all", "shift", "up", "down", "slow", "go-back-n", "window", "placement"), ()),
    # numbers and keys after which a suspect is named
    **dict.fromkeys(("headroom", "latency", "oversubscription", "timeout", "fault", "straggler"), ()),
    "adaptive": ("study/crossing/",), "minimal": ("study/",), "spray": ("study/", "policies/"),
}  # fmt: skip
ALLOWED: Final = {
    # defaults, each chosen where it stands
    "spec/crossing.py": {"dcqcn", "ecmp"},  # the base of a crossing
    "study/crossing/settings.py": {"mixed"},  # a workload on which it runs
    "spec/scenario/reader.py": {"ecmp"},  # the half of a preset that nobody set
    "cli/rdma_simulate.py": {"permutation"},  # stands where a fabric comes without a workload, as in the next one
    "cli/topology.py": {"permutation"},
    "study/crossing/contenders.py": {"dcqcn", "nscc", "swift"},  # those with which every balancer runs
    "rdma/peer/script.py": {"dcqcn"},  # the rate control of the software NIC, one of its words
    "cli/plan_question.py": {"rail-optimized", "llama-3-70b"},  # the fabric of a plan without a file, and an example
    "study/design/search.py": {"rail-optimized"},  # the fabric on which a design reads its job
    "study/record/collective.py": {"rail-optimized"},  # the fabric of a collective without a file
    # lists of other things, which name members: presets of two policies, and models as another project calls them
    "spec/scenario/policies.py": {
        "ars",
        "bitmap",
        "conga",
        "drill",
        "ecmp",
        "least-loaded",
        "letflow",
        "mixed",
        "oblivious",
        "plb",
        "reps",
        "round-robin",
        "wcmp",
    },
    "workload/imports/relatives/torchtitan.py": {
        "gpt-oss-120b",
        "gpt-oss-20b",
        "llama-3-405b",
        "llama-3-70b",
        "llama-3-8b",
        "qwen3-235b-a22b",
        "qwen3-30b-a3b",
        "qwen3-32b",
        "qwen3-8b",
    },
    "study/answer/suspicions/thin_links.py": {"minimal-routing"},  # the suspect that makes it needless
    # other things of the same name
    "rdma/wires.py": {"rocev2"},  # a wire of the software NIC
    "spec/fault_changes.py": {"degrade", "lossy"},  # changes, of which kinds of faults are made
    "spec/scenario/devices.py": {"nvls"},  # a key of a server
    "study/answer/suspicions/_peers.py": {"nvls"},  # a carrier of bytes
    "study/prepare/traffic_matrix.py": {"ring"},  # the pattern of a `Collect`, as in the next two
    "workload/collectives/cost.py": {"ring"},
    "workload/collectives/stepwise.py": {"ring"},
}


def members() -> set[str]:
    """Names of all policies, topologies, transports, algorithms, patterns, routings, faults, models and suspects."""
    policies = {name for kind in POLICIES for name in policy_names(kind)}
    folders = (TOPOLOGIES, TRANSPORTS, ALGORITHMS, METHODS, PATTERNS, SCHEMES, FAULTS, SUSPICIONS, IMPROVEMENTS)
    return policies.union(*folders, ROUTINGS, MODELS)


def _is_surface(node: ast.Assign) -> bool:
    """Whether an assignment lists the public names of a module."""
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)


def names_in(text: str, names: set[str]) -> Iterator[str]:
    """Names that stand in a comparison, a collection or a pattern; those of ``__all__`` are functions."""
    nodes = list(ast.walk(ast.parse(text)))
    surfaces = [node.value for node in nodes if isinstance(node, ast.Assign) and _is_surface(node)]
    for node in nodes:
        if node in surfaces:
            continue
        found: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            found = [node.left, *node.comparators]
        elif isinstance(node, ast.Set | ast.Tuple | ast.List):
            found = [*node.elts]
        elif isinstance(node, ast.Dict):
            found = [*node.keys, *node.values]
        elif isinstance(node, ast.MatchValue):
            found = [node.value]
        yield from (
            one.value
            for one in found
            if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value in names
        )


def is_meant(name: str, module: str) -> bool:
    """Whether a word means a member in a module."""
    return name not in ELSEWHERE or module.startswith(ELSEWHERE[name])


def test_no_module_outside_a_folder_compares_with_the_name_of_its_member() -> None:
    """Else a member of a user's own would not take part there."""
    names = members()
    quoted = re.compile("|".join(f"[\"']{re.escape(name)}[\"']" for name in sorted(names - {"none"})))
    found: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        module, text = file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8")
        if module.startswith((*HOMES, *EXEMPT)) or quoted.search(text) is None:
            continue
        if here := {name for name in names_in(text, names) if is_meant(name, module)}:
            found[module] = here
    assert found == ALLOWED


def test_a_list_a_comparison_and_a_mapping_are_seen() -> None:
    text = '__all__ = ["torus"]\nif x == "ring":\n    y = {"reno": 1, 2: "torus"}\nz = f("hpn")\nw = ["nvls"]\n'
    assert sorted(names_in(text, members())) == ["nvls", "reno", "ring", "torus"]

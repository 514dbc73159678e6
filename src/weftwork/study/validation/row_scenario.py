"""A published iteration as a scenario that anybody can run.

It is YAML, with the model as a file if no catalogue has it.

Rules for all rows, so that no row has a fabric of its own:
- Published iterations rarely say what their fabric was. The scenario's has no bottleneck but the NICs: one leaf (above
  1,024 servers several, non-blocking), packets sprayed, NICs without a host interface that could be slower.
- Of a server some GPUs may be used, with as many of its NIC ports in proportion.
Leaves out: everything random; jobs beside this one.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from weftwork.hardware.catalogue import node
from weftwork.spec.scenario.devices import device_rows
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.training import NO_RECIPE
from weftwork.spec.scenario.yaml_tree import write_tree
from weftwork.spec.training import Model, Parallelism, Software
from weftwork.workload.models.catalogue import MODELS
from weftwork.workload.models.software import software as preset

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from weftwork.study.validation.published_cases import Case, PublishedCluster

__all__ = ["file_name", "files_of", "training_tree", "write_row", "yaml_name"]

_LEAST_HOSTS: Final = 2  # of a fabric; a job of one server leaves the other one idle
_MOST_HOSTS: Final = 1_024  # of a leaf
_DROPOUT: Final = 0.1  # of GPT-2's config.json; any share above 0 makes the kernels of dropout run
_ALWAYS: Final = ("tensor", "pipeline", "data", "micro_batch", "global_batch", "sequence")
_NUMBERS: Final = {2: "bf16", 4: "fp32"}  # by bytes; the older of these jobs summed in FP16, of as many bytes
_KEYS: Final = {  # of `training`, by the field of `Parallelism`
    "tensor": "tensor",
    "context": "context",
    "pipeline": "pipeline",
    "data": "data",
    "expert": "expert",
    "virtual_stages": "virtual_stages",
    "schedule": "schedule",
    "micro_batch": "micro_batch",
    "global_batch": "global_batch",
    "sequence": "sequence",
    "is_sequence_parallel": "sequence_parallel",
    "zero": "zero",
    "recompute": "recompute",
    "recompute_modules": "recompute_modules",
    "offloaded_layers": "offloaded_layers",
    "has_quantised_weights": "quantised_weights",
    "precision": "precision",
    "bf16_first_layers": "bf16_first_layers",
    "bf16_last_layers": "bf16_last_layers",
    "layout": "layout",
    "has_balanced_ends": "balanced_ends",
}


def write_row(case: Case, folder: Path) -> Path:
    """Write the scenario of a row, and its model file.

    Parameters
    ----------
    case : the row
    folder : which exists

    Returns
    -------
    the scenario's file
    """
    for name, text in files_of(case).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / file_name(case)


def file_name(case: Case) -> str:
    """File name of a row's scenario."""
    return yaml_name(case.name)


def yaml_name(name: str) -> str:
    """A name for people as a file name."""
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', name).strip('-')}.yaml"


def files_of(case: Case) -> dict[str, str]:
    """All files of a row by name: the scenario, and its model file."""
    tree = training_tree(case.name, case.model, case.plan, case.cluster, case.software, calibration=case.calibration)
    if case.memory_bytes:
        tree["training"]["memory"] = f"{case.memory_bytes}B"
    head = f"# {case.source}: an iteration took {case.measured_s:.6g} s\n"
    files = {file_name(case): head + write_tree(tree)}
    if case.model.name in MODELS:
        return files
    return {**files, f"{case.model.name}.json": case.config or _config(case.model)}


def training_tree(
    name: str, model: Model, plan: Parallelism, cluster: PublishedCluster, software: Software, *, calibration: str = ""
) -> dict[str, Any]:
    """A training job on a fabric without a bottleneck, as a tree.

    Parameters
    ----------
    name : of the scenario
    model : of the catalogue, or one that lies beside the scenario
    plan, cluster, software : of the job
    calibration : file of constants that it names; empty: none
    """
    return {
        "schema": SCHEMA,
        "name": name,
        **({"calibration": calibration} if calibration else {}),
        "fabric": {"topology": "leaf-spine", **_hosts(cluster), "nic": "plain"},
        "transport": {"load_balancing": "switch-spray", "reorder_tolerant": True},
        "training": {
            "model": model.name if model.name in MODELS else f"{model.name}.json",
            "recipe": NO_RECIPE,
            **_plan(plan),
            "gpus": cluster.gpus,
            "software": _software(software),
        },
        "engine": {"fidelity": "flow"},
    }


def _hosts(cluster: PublishedCluster) -> dict[str, Any]:
    server = node(cluster.node).server
    used = cluster.domain_gpus or server.gpus
    hosts = max(_LEAST_HOSTS, -(-cluster.gpus // used))
    part = {"gpus": used, "nic_ports": server.nic_ports * used // server.gpus, "nvlink_domain_gpus": used}
    leaves = -(-hosts // _MOST_HOSTS)
    per_leaf = -(-hosts // leaves)
    # above one leaf: a link up for every port down, so that there is no bottleneck still
    up = {} if leaves == 1 else {"links_per_pair": per_leaf}
    return {
        "leaves": leaves,
        "spines": 1 if leaves == 1 else int(part["nic_ports"]),
        "hosts_per_leaf": per_leaf,
        **up,
        "node": cluster.node if used == server.gpus else {"model": cluster.node, **part},
    }


def _plan(plan: Parallelism) -> dict[str, Any]:
    """Keys of ``training`` for a plan.

    Keys with a default that may change are always written.
    """
    usual = Parallelism()
    found: dict[str, Any] = {
        key: getattr(plan, field)
        for field, key in _KEYS.items()
        if field in _ALWAYS or getattr(plan, field) != getattr(usual, field)
    }
    if "recompute_modules" in found:
        found["recompute_modules"] = list(found["recompute_modules"])
    if plan.has_lora:
        found["phase"] = "fine-tuning-lora"
        found["lora"] = {"rank": plan.lora_rank, **({"targets": list(plan.lora_targets)} if plan.lora_targets else {})}
    by_module = plan.module_precision.model_dump(exclude_none=True)
    if by_module:
        found["precision_by_module"] = by_module
    found["gradients"] = "bf16+fp32" if plan.has_gradient_copy else _NUMBERS[plan.gradient_bytes]
    if plan.moment_bytes != usual.moment_bytes:
        found["moments"] = _NUMBERS[plan.moment_bytes]
    return {**found, "overlap": plan.overlap.model_dump()}


def _software(made: Software) -> str | dict[str, Any]:
    """The preset, with the fields that differ from it."""
    usual = preset(made.name)
    changed: dict[str, Any] = {}
    for field, row in device_rows(Software).items():
        kind: Any = row.kind  # all of them are plain values
        if getattr(made, field) != getattr(usual, field):
            changed[row.key] = kind.write(getattr(made, field))
    return {"name": made.name, **changed} if changed else made.name


def _config(made: Model) -> str:
    """A dense GPT in the format of Hugging Face."""
    tree: Mapping[str, Any] = {
        "_name_or_path": made.name,
        "model_type": "gpt2",
        "n_layer": made.layers,
        "n_embd": made.hidden,
        "n_head": made.heads,
        "n_inner": made.ffn,
        "vocab_size": made.vocabulary,
        "n_positions": made.sequence,
        "tie_word_embeddings": made.has_tied_embeddings,
        "resid_pdrop": _DROPOUT if made.has_dropout else 0.0,
    }
    return json.dumps(tree, indent=2) + "\n"

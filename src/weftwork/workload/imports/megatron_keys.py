"""Scenario keys from Megatron-LM's arguments, with read and assumed values.

Leaves out: what an argument means (`weftwork.workload.imports.megatron`, `weftwork.workload.imports.megatron_modules`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weftwork.workload.imports.argument_reader import ArgumentReader

__all__ = ["USUAL", "KeyValue", "ScenarioKeys", "value_text"]

KeyValue = str | int | float | bool | tuple[str, ...]

# Defaults of a scenario (`weftwork.spec.scenario.training`): what arguments leave at them need not be written.
USUAL: Final[Mapping[str, KeyValue]] = MappingProxyType(
    {
        "training.tensor": 1,
        "training.context": 1,
        "training.pipeline": 1,
        "training.expert": 1,
        "training.expert_tensor": 1,
        "training.virtual_stages": 1,
        "training.micro_batch": 1,
        "training.sequence_parallel": True,
        "training.zero": 1,
        "training.recompute": "none",
        "training.precision": "bf16",
        "training.gradients": "fp32",
        "training.order": "tp-cp-dp-pp",
        "training.balanced_ends": False,
        "training.overlap.tensor": 0.0,
        "training.overlap.data": 0.9,
        "training.overlap.expert": 0.0,
        "training.recompute_modules": ("core_attn",),
        "training.bf16_first_layers": 0,
        "training.bf16_last_layers": 0,
        "training.software.graphs": (),
        "training.software.expert_streams": 0,
        "training.software.fused_router": True,
        "training.software.deduplicated_experts": False,
        "training.software.exchange_efficiency": 1.0,
        "training.software.exchange_multiprocessors": 0,
        "training.software.flash_attention": True,
    }
)


@dataclass(kw_only=True)
class ScenarioKeys:
    """Scenario keys made from arguments.

    Attributes
    ----------
    reader : of the arguments
    gpus : of the job, or None where nobody says
    values, read, places, assumed : as in `weftwork.workload.imports.megatron.MegatronImport`
    """

    reader: ArgumentReader
    gpus: int | None
    values: dict[str, KeyValue] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)

    def put(self, key: str, value: KeyValue, *arguments: str, reason: str = "Megatron-LM's default") -> None:
        """Set a key from the given ``arguments``; without any it is assumed."""
        given = [argument for argument in arguments if self.reader.has(argument)]
        if not given and not self.reader.is_whole:
            return
        self.values[key] = value
        for argument in given:
            before = f"{self.read[argument]}; " if argument in self.read else ""
            self.read[argument] = f"{before}{key}: {value_text(value)}"
            self.places.setdefault(key, (argument, self.reader.given[argument].line))
        if not given and value != USUAL.get(key):
            self.assumed[key] = f"{value_text(value)}: {reason} without {arguments[0]}"

    def note(self, argument: str, text: str) -> None:
        """Add a note about an argument that was read."""
        before = f"{self.read[argument]}; " if argument in self.read else ""
        self.read[argument] = before + text


def value_text(value: KeyValue) -> str:
    """Format a value for users."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return f"{value:,}" if isinstance(value, int) else str(value)

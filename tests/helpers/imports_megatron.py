"""Arguments of Megatron-LM that make a whole job, and the import that reads them."""

from __future__ import annotations

from typing import Any

from weftwork.workload.imports.megatron import MegatronImport, read_megatron

BASE = "--micro-batch-size 1 --global-batch-size 64 --seq-length 2048 --bf16"


SHAPE = "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --vocab-size 1000 --max-position-embeddings 2048"


TENSOR = "--tensor-model-parallel-size"


LAYOUT = "--pipeline-model-parallel-layout"


def read(more: str = "", **options: Any) -> MegatronImport:
    return read_megatron(f"{BASE} {SHAPE} {more}", **options)

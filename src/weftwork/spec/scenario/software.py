"""What each field of `weftwork.spec.training.Software` says to a user, and where its default comes from.

The record holds type, default and bounds; the presets are rows of the software catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["SOFTWARE_ROWS"]

SOFTWARE_ROWS: Final[Mapping[str, tuple[str, str]]] = {
    "Software.matmul_efficiency": (
        "Share of the best measured matrix product that large products reach; the one constant that was fitted.",
        "fitted to vTrain, MICRO 2024: 39.1 billion parameters on 512 A100",
    ),
    "Software.fp8_efficiency": (
        "What is left of that share in FP8, and its square in FP4.",
        "Azure AI benchmarking guide: FP8 and BF16 matrix products on an H100",
    ),
    "Software.memory_efficiency": (
        "Share of the measured memory copy that other kernels reach.",
        "chosen: between 0.8 and 1.0, which fit alike",
    ),
    "Software.kernel_tail_ps": ("Time in which a kernel fills and empties the GPU.", "chosen: a few microseconds"),
    "Software.launch_ps": (
        "CPU time to launch one operation; a layer never takes less than that for all of its operations.",
        "chosen: PyTorch with fused operations; eager code takes four times as long",
    ),
    "Software.graph_share": (
        "Share of the operations that CUDA graphs replay, which costs the CPU nothing.",
        "chosen: none",
    ),
    "Software.network_efficiency": (
        "Share of a NIC that collectives reach, beyond headers.",
        "chosen: what large collectives of NCCL reach",
    ),
    "Software.latency_scale": (
        "Factor of all latencies of NCCL: launches, steps and ramps of collectives, and messages between stages.",
        "chosen: 1, the latencies of NCCL, src/graph/tuning.cc",
    ),
    "Software.has_deduplicated_experts": (
        "Whether a token goes once to each server and not once to each expert (DeepEP, HybridEP).",
        "deepseek-ai/DeepEP",
    ),
    "Software.has_fused_experts": (
        "Whether the experts of a GPU are one grouped matrix product, and not one after the other.",
        "NVIDIA/Megatron-LM: moe_grouped_gemm",
    ),
    "Software.has_fused_activations": (
        "Whether the experts' activation, and its cast to a smaller format, happen inside their matrix product.",
        "NVIDIA-NeMo/Megatron-Bridge: cutedsl_fused_grouped_mlp",
    ),
    "Software.has_fp8_attention": (
        "Whether fused attention runs in FP8 where matrix products run in eight bits or fewer.",
        "NVIDIA-NeMo/Megatron-Bridge: fp8_dot_product_attention",
    ),
    "Software.has_flash_attention": (
        "Whether attention keeps its square of scores in registers.",
        "Dao et al., arXiv:2205.14135",
    ),
}

"""Description and source of each field of `weftwork.spec.training.Software`.

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
        "Factor of matmul_efficiency in FP8; its square in FP4.",
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
    "Software.graphs": (
        "Modules whose operations CUDA graphs replay, which costs the CPU nothing; iteration: all of them.",
        "NVIDIA/Megatron-LM: --cuda-graph-scope; chosen: none",
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
    "Software.expert_streams": (
        "Streams of matrix products of a GPU's experts, with one kernel per expert; 0: one kernel for all.",
        "NVIDIA/TransformerEngine, GroupedLinear: 4 streams of cuBLAS; chosen: one grouped matrix product",
    ),
    "Software.has_fused_router": (
        "Whether the router of experts is fused into fewer kernels.",
        "NVIDIA/Megatron-LM: --moe-router-fusion",
    ),
    "Software.has_fused_activations": (
        "Whether the experts' activation, and its cast to a smaller format, happen inside their matrix product.",
        "NVIDIA-NeMo/Megatron-Bridge: cutedsl_fused_grouped_mlp",
    ),
    "Software.exchange_efficiency": (
        "Share of the NVLink message rate that the exchange of experts gets.",
        "chosen: all of it, as NCCL's all-to-all",
    ),
    "Software.exchange_multiprocessors": (
        "Multiprocessors that the exchange of experts takes from computing beside it.",
        "deepseek-ai/DeepEP: num_sms; chosen: none, as where nothing hides",
    ),
    "Software.has_fp8_attention": (
        "Whether fused attention runs in FP8 where matrix products run in eight bits or fewer.",
        "NVIDIA-NeMo/Megatron-Bridge: fp8_dot_product_attention",
    ),
    "Software.attention_efficiency": (
        "Share of the GPU's rate of fused attention that the kernels of this stack reach.",
        "chosen: all of it; FlashAttention-2 on an H100: 0.47, 327.9 TFLOP/s in the Azure AI benchmarking guide",
    ),
    "Software.has_flash_attention": (
        "Whether attention keeps its square of scores in registers.",
        "Dao et al., arXiv:2205.14135",
    ),
}

"""A small model whose sizes are all different, and GPUs on which a time is a count: of FLOP, of bytes or of kernels.

Every dimension is a power of two times another prime, so that two that are swapped give another number.
"""

from __future__ import annotations

from typing import Final

from weftwork.spec.training import DeltaNet, Gpu, LatentAttention, Model, Parallelism, Software, StateSpace
from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.training.communication import GpuCluster

__all__ = [
    "CLUSTER", "COUNTING", "DELTA", "DENSE", "HYBRID", "LATENT", "MIXED", "ONE_BYTE_A_PS", "ONE_FLOP_A_PS", "SEQUENCE",
    "plan_on_paper",
]  # fmt: skip

SEQUENCE: Final = 544  # 2^5 x 17

DENSE: Final = Model(
    name="on-paper",
    layers=6,
    hidden=96,  # 2^5 x 3
    heads=10,
    key_value_heads=2,
    head_dim=28,  # 2^2 x 7; ten heads are 280 wide, and not as wide as the model
    ffn=352,  # 2^5 x 11
    vocabulary=1664,  # 2^7 x 13
    is_gated=True,
    has_tied_embeddings=False,
    has_dropout=False,
)
MIXED: Final = DENSE.model_copy(  # two dense layers, then four mixtures
    update={"experts": 12, "experts_per_token": 3, "expert_ffn": 80, "shared_ffn": 112, "expert_layers": 4}
)
HYBRID: Final = DENSE.model_copy(  # of six layers three are Mamba-2, one is attention, two are dense MLPs
    update={
        "state_space_layers": 3,
        "attention_layers": 1,
        "state_space": StateSpace(heads=8, head_dim=20, state=24, groups=2, kernel=4),
    }
)

LATENT: Final = DENSE.model_copy(  # multi-head latent attention: queries and keys of 20 + 12, values of 36
    update={
        "latent_attention": LatentAttention(
            query_rank=44, key_value_rank=52, no_position_dim=20, rope_dim=12, value_dim=36
        )
    }
)

DELTA: Final = DENSE.model_copy(  # of six layers three are gated delta nets; attention has a gate
    update={
        "delta_layers": 3,
        "delta": DeltaNet(key_heads=2, value_heads=6, key_dim=20, value_dim=36, kernel=4),
        "has_gated_attention": True,
    }
)

_ENDLESS: Final = 1e40


def _gpu(flops: float, bytes_per_s: float) -> Gpu:
    return Gpu(
        name="on-paper",
        bf16_flops=flops,
        fp8_flops=2 * flops,
        fp4_flops=4 * flops,
        achieved_share=1.0,
        achieved_fp8_share=1.0,
        achieved_fp4_share=1.0,
        achieved_fp8_low_share=1.0,
        memory_bytes=10**12,
        memory_copy_bytes_per_s=bytes_per_s,
        flash_attention_share=0.5,
        scan_flops=flops / 4,  # of another rate than products and attention
        streaming_multiprocessors=1,
    )


ONE_FLOP_A_PS: Final = _gpu(1e12, _ENDLESS)
ONE_BYTE_A_PS: Final = _gpu(_ENDLESS, 1e12)
COUNTING: Final = Software(  # nothing but work: no tails, launches or latencies, and every rate is reached
    matmul_efficiency=1, fp8_efficiency=1, memory_efficiency=1, kernel_tail_ps=0, launch_ps=0, network_efficiency=1,
    latency_scale=0,
)  # fmt: skip
CLUSTER: Final = GpuCluster(  # of servers with 24 GPUs; a byte takes 1 ps over NVLink and 10 ps over the network
    domain_gpus=24,
    host_rate_bps=8 * 10**11,  # a byte takes 10 ps to the host too
    figures=CollectiveFigures(
        name="other", launch_ps=0, ramp_ps=0, ramp_bytes=1, ramp_steps=7, has_nvls=False, nvlink_rate_bps=8 * 10**12,
        nvlink_latency_ps=0, network_rate_bps=8 * 10**11, payload_share=1.0, network_latency_ps=0,
        nic_ports_of_a_gpu=1,
    ),
)  # fmt: skip


def plan_on_paper(**changes: object) -> Parallelism:
    """Two tensor ranks, micro batches of three sequences, nothing hidden; 1,632 tokens, 816 of a tensor rank's own."""
    given: dict[str, object] = {
        "tensor": 2, "micro_batch": 3, "global_batch": 3, "sequence": SEQUENCE, "overlap": {"context": 0},
    }  # fmt: skip
    return Parallelism.model_validate(given | changes)

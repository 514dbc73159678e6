"""The arguments of Megatron-LM: keys of a scenario, or reasons for none.

Source: NVIDIA/Megatron-LM, megatron/training/arguments.py (commit 000c4ac2), for names, kinds and defaults; arguments
of earlier releases that scripts still have are among them.
Leaves out: arguments of programs other than the training of decoders, such as ``--vision-pretraining``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from weftwork.workload.imports.reasons import CHANGES_BOTH, CHANGES_TIME, reasons_by_argument

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ANYWAY", "GATED", "IGNORED", "READ", "REFUSED", "Kind"]

Kind = Literal["flag", "whole", "share", "word", "words"]

GATED: Final = ("--swiglu", "--quick-geglu")  # activations with a matrix more

_WHOLE: Final = """
    --tensor-model-parallel-size --pipeline-model-parallel-size --context-parallel-size --expert-model-parallel-size
    --expert-tensor-parallel-size --num-layers-per-virtual-pipeline-stage --num-virtual-stages-per-pipeline-rank
    --micro-batch-size --global-batch-size --seq-length --save-interval
    --num-layers --hidden-size --ffn-hidden-size --num-attention-heads --kv-channels --num-query-groups --vocab-size
    --padded-vocab-size --make-vocab-size-divisible-by --max-position-embeddings --num-experts --moe-router-topk
    --moe-ffn-hidden-size --moe-shared-expert-intermediate-size --mtp-num-layers --q-lora-rank --kv-lora-rank
    --qk-head-dim --qk-pos-emb-head-dim --v-head-dim --mamba-state-dim --mamba-head-dim --mamba-num-groups
    --mamba-num-heads --num-layers-at-start-in-bf16 --num-layers-at-end-in-bf16 --moe-deepep-num-sms
    --moe-hybridep-num-sms --moe-flex-dispatcher-num-sms
"""
_FLAGS: Final = """
    --sequence-parallel --use-distributed-optimizer --use-megatron-fsdp --use-custom-fsdp --use-torch-fsdp2
    --torch-fsdp2-no-reshard-after-forward --recompute-activations --bf16 --fp16 --grad-reduce-in-bf16
    --accumulate-allreduce-grads-in-fp32 --use-tp-pp-dp-mapping --account-for-embedding-in-pipeline-split
    --account-for-loss-in-pipeline-split --overlap-grad-reduce --overlap-param-gather --tp-comm-overlap
    --no-overlap-p2p-communication --overlap-moe-expert-parallel-comm --async-save
    --moe-grouped-gemm --moe-enable-deepep --group-query-attention --swiglu --quick-geglu --squared-relu
    --untie-embeddings-and-output-weights --multi-latent-attention --qk-layernorm --first-last-layers-bf16
    --enable-cuda-graph --external-cuda-graph --moe-router-fusion --moe-use-legacy-grouped-gemm
    --mtp-use-repeated-layer --fp8-param-gather --fp4-param-gather
"""
_WORDS: Final = """
    --data-parallel-sharding-strategy --recompute-granularity --fp8-format --fp8-recipe --fp4-format
    --attention-backend --moe-layer-freq --window-size --window-attn-skip-freq --hybrid-override-pattern
    --tokenizer-type --pipeline-model-parallel-layout --cuda-graph-impl --moe-token-dispatcher-type
    --moe-flex-dispatcher-backend --mtp-hybrid-override-pattern
"""

READ: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        **dict.fromkeys(_WHOLE.split(), "whole"),
        **dict.fromkeys(_FLAGS.split(), "flag"),
        **dict.fromkeys(_WORDS.split(), "word"),
        "--attention-dropout": "share",
        "--hidden-dropout": "share",
        "--recompute-modules": "words",
        "--cp-comm-type": "words",
        "--cuda-graph-scope": "words",
        "--cuda-graph-modules": "words",
    }
)

REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "--batch-size": "is no longer valid in Megatron-LM; wanted --micro-batch-size",
        "--model-parallel-size": "is no longer valid in Megatron-LM; wanted --tensor-model-parallel-size",
        "--checkpoint-activations": "is no longer valid in Megatron-LM; wanted --recompute-granularity full",
        "--activations-checkpoint-method": "is no longer valid in Megatron-LM; wanted --recompute-granularity full",
        "--activations-checkpoint-granularity": "is no longer valid in Megatron-LM; wanted --recompute-granularity",
        "--activations-checkpoint-num-layers": "is no longer valid in Megatron-LM; wanted --recompute-num-layers",
        "--warmup": "is no longer valid in Megatron-LM; wanted --lr-warmup-fraction",
        "--moe-extended-tp": "is no longer valid in Megatron-LM; wanted --expert-tensor-parallel-size",
        "--heterogeneous-layers-config-path": "layers that differ one by one have no form in a scenario",
        "--heterogeneous-layers-config-encoded-json": "layers that differ one by one have no form in a scenario",
        "--hybrid-attention-ratio": "the order of layers is drawn by Megatron-LM; wanted --hybrid-override-pattern",
        "--hybrid-mlp-ratio": "the order of layers is drawn by Megatron-LM; wanted --hybrid-override-pattern",
        "--encoder-num-layers": "a scenario trains decoders alone; wanted --num-layers",
        "--decoder-num-layers": "a scenario trains decoders alone; wanted --num-layers",
        "--decoder-seq-length": "a scenario trains decoders alone; wanted --seq-length",
        "--yaml-cfg": "names another file; wanted that file itself",
    }
)

_GROUPS: Final[Mapping[str, str]] = {
    "where data and words come from; says nothing about time": """
        --data-path --split --train-data-path --valid-data-path --test-data-path --data-args-path
        --per-split-data-args-path --data-cache-path --no-mmap-bin-files --mock-data --sample-rate --mask-prob
        --short-seq-prob --num-workers --reset-position-ids --reset-attention-mask --eod-mask-loss
        --no-create-attention-mask-in-dataloader --num-dataset-builder-threads --object-storage-cache-path
        --mid-level-dataset-surplus --allow-ambiguous-pad-tokens --dataloader-type --vocab-file --merge-file
        --vocab-extra-ids --tokenizer-model --tokenizer-metadata --tiktoken-pattern --tiktoken-num-special-tokens
        --tiktoken-special-tokens --legacy-tokenizer --trust-remote-code --data-impl
        --calculate-per-token-loss --sft --sft-tokenizer-prompt-format --retriever-seq-length
        --data-parallel-random-init
    """,
    "how weights are learnt; says nothing about time": """
        --lr --lr-decay-style --lr-wsd-decay-style --lr-decay-iters --lr-decay-samples --lr-wsd-decay-samples
        --lr-wsd-decay-iters --lr-warmup-fraction --lr-warmup-iters --lr-warmup-samples --lr-warmup-init --min-lr
        --override-opt_param-scheduler --override-opt-param-scheduler --use-checkpoint-opt_param-scheduler
        --use-checkpoint-opt-param-scheduler --decoupled-lr --decoupled-min-lr --weight-decay --start-weight-decay
        --end-weight-decay --weight-decay-incr-style --clip-grad --adam-beta1 --adam-beta2 --adam-eps --sgd-momentum
        --seed --init-method-std --embedding-init-method-std --init-method-xavier-uniform --loss-scale
        --initial-loss-scale --min-loss-scale --loss-scale-window --hysteresis --check-for-spiky-loss
        --check-for-large-grads --no-check-for-nan-in-loss-and-grad --train-iters --train-samples
        --moe-router-load-balancing-type --moe-aux-loss-coeff --moe-z-loss-coeff --moe-input-jitter-eps
        --moe-router-score-function --moe-router-pre-softmax --moe-router-topk-scaling-factor
        --moe-router-enable-expert-bias --moe-router-bias-update-rate --moe-apply-probs-on-input
        --mtp-loss-scaling-factor --muon-momentum --muon-no-split-qkv --muon-use-nesterov --muon-scale-mode
        --muon-fp32-matmul-prec --muon-num-ns-steps --muon-tp-mode --muon-extra-scale-factor --moe-use-upcycling
        --moe-upcycling-granularity
    """,
    "what is logged, watched and when the job stops; says nothing about time": """
        --log-params-norm --log-num-zeros-in-grad --log-throughput --log-progress --log-energy --timing-log-level
        --no-barrier-with-level-1-timing --timing-log-option --tensorboard-log-interval --tensorboard-queue-size
        --tensorboard-dir --log-timers-to-tensorboard --no-log-loss-scale-to-tensorboard
        --no-log-learnig-rate-to-tensorboard --log-validation-ppl-to-tensorboard --log-memory-to-tensorboard
        --log-world-size-to-tensorboard --log-batch-size-to-tensorboard --log-interval --wandb-project --wandb-entity
        --wandb-exp-name --wandb-save-dir --logging-level --log-straggler --disable-straggler-on-startup
        --straggler-ctrlr-port --straggler-minmax-count --no-one-logger --one-logger-project --one-logger-run-name
        --one-logger-async --app-tag-run-name --app-tag-run-version --enable-one-logger --enable-ft-package
        --calc-ft-timeouts --config-logger-dir --run-workload-inspector-server --exit-interval
        --exit-duration-in-mins --exit-signal-handler --eval-iters --eval-interval --full-validation
        --multiple-validation-sets --test-mode --skip-train --profile --profile-step-start --profile-step-end
        --profile-ranks --use-pytorch-profiler --record-memory-history --memory-snapshot-path --iterations-to-skip
        --result-rejected-tracker-filename --adlr-autoresume --adlr-autoresume-interval --rerun-mode
        --error-injection-rate --error-injection-type --check-weight-hash-across-dp-replicas-interval
        --moe-per-layer-logging --inprocess-restart --distributed-timeout-minutes --distributed-backend
        --distributed-timeout-seconds-after-init --local-rank --local_rank --lazy-mpu-init --use-cpu-initialization
        --init-model-with-meta-device --disable-gloo-process-groups --nccl-communicator-config-path
        --disable-msc --enable-experimental --use-mcore-models --no-async-tensor-model-parallel-allreduce
    """,
    "how checkpoints are stored and loaded; training.checkpoint says how often and how fast": """
        --save --save-retain-interval --no-save-optim --no-save-rng --load --no-load-optim --no-load-rng
        --load-main-params-from-ckpt --no-strict-fsdp-dtensor-load --non-persistent-save-interval
        --non-persistent-ckpt-type --non-persistent-global-ckpt-dir --non-persistent-local-ckpt-dir
        --non-persistent-local-ckpt-algo --finetune --pretrained-checkpoint --ckpt-step --no-initialization
        --exit-on-missing-checkpoint --use-dist-ckpt --use-persistent-ckpt-worker --auto-detect-ckpt-format
        --dist-ckpt-format --ckpt-format --ckpt-convert-format --ckpt-convert-save
        --ckpt-convert-update-legacy-dist-opt-format --ckpt-fully-parallel-save --no-ckpt-fully-parallel-save
        --ckpt-fully-parallel-load --ckpt-assume-constant-structure --dist-ckpt-strictness
        --dist-ckpt-save-pre-mcore-014 --dist-ckpt-optim-fully-reshardable --replication --replication-jump
        --replication-factor --distrib-optim-fully-reshardable-mem-efficient
        --no-use-tokenizer-model-from-checkpoint-args
    """,
    "shapes stay as they are: positions, norms and biases are left out of the sizes of a model": """
        --position-embedding-type --use-rotary-position-embeddings --no-position-embedding --rotary-base
        --rotary-percent --rotary-interleaved --rotary-seq-len-interpolation-factor --use-rope-scaling
        --rope-scaling-factor --rope-type --no-rope-freq --rotary-scaling-factor --mscale --mscale-all-dim
        --relative-attention-num-buckets --relative-attention-max-distance --mrope-section --normalization
        --norm-epsilon --apply-layernorm-1p --qk-l2-norm --disable-bias-linear --add-qkv-bias
        --apply-residual-connection-post-layernorm --openai-gelu --softmax-type
        --activation-func-clamp-value --glu-linear-offset --attention-softmax-in-fp32 --apply-query-key-layer-scaling
        --moe-router-dtype
    """,
    "which kernels are used; training.software stands for them": """
        --transformer-impl --use-flash-attn --no-masked-softmax-fusion --no-bias-gelu-fusion --no-bias-swiglu-fusion
        --use-fused-weighted-squared-relu --no-bias-dropout-fusion --no-rope-fusion --cross-entropy-loss-fusion
        --cross-entropy-fusion-impl --no-persist-layer-norm --no-gradient-accumulation-fusion --use-legacy-models
        --use-te-activation-func --moe-permute-fusion --te-rng-tracker --cuda-graph-warmup-steps --inference-rng-tracker
        --fp16-lm-cross-entropy --disable-bf16-reduced-precision-matmul --no-clone-scatter-output-in-embedding
        --fp8-margin --fp8-interval --fp8-amax-history-len --fp8-amax-compute-algo --no-fp8-wgrad
        --keep-fp8-transpose-cache --fp4-recipe --moe-router-padding-for-fp8 --deterministic-mode
        --disable-mamba-mem-eff-path --fp4-quantizer-factory --no-pin-cpu-grads --no-pin-cpu-params
        --use-torch-optimizer-for-cpu-offload --spec --is-hybrid-model
    """,
    "how overlap is done; training.overlap says how much hides": """
        --tp-comm-overlap-cfg --disable-tp-comm-overlap-ag --disable-tp-comm-overlap-rs --tp-comm-overlap-rs-dgrad
        --disable-tp-comm-bulk-dgrad --disable-tp-comm-bulk-wgrad --disable-tp-comm-split-ag
        --disable-tp-comm-split-rs --tp-comm-bootstrap-backend --overlap-p2p-communication-warmup-flush
        --no-align-grad-reduce --no-align-param-gather --overlap-param-gather-with-optimizer-step --delay-wgrad-compute
        --defer-embedding-wgrad-compute --wgrad-deferral-limit --ddp-num-buckets --ddp-bucket-size
        --ddp-pad-buckets-for-high-nccl-busbw --ddp-average-in-collective --high-priority-stream-groups
        --no-gradient-reduce-div-fusion --fsdp-double-buffer --suggested-communication-unit-size --use-nccl-ub
        --disable-symmetric-registration --moe-shared-expert-overlap --overlap-cpu-optimizer-d2h-h2d
    """,
    "balance is assumed: every expert gets as many tokens as the others": """
        --moe-expert-capacity-factor --moe-pad-expert-input-to-capacity --moe-token-drop-policy
        --moe-router-force-load-balancing --moe-router-num-groups --moe-router-group-topk
    """,
    "the arguments of this file are taken, not those of a checkpoint": """
        --use-checkpoint-args --use-mp-args-from-checkpoint-args
    """,
    "the batch is that of the end of training": "--rampup-batch-size --decrease-batch-size-if-needed",
    f"{CHANGES_BOTH}layers are given to stages evenly": """
        --decoder-first-pipeline-num-layers --decoder-last-pipeline-num-layers --standalone-embedding-stage
    """,
    f"{CHANGES_BOTH}every layer is computed again under recompute: full": """
        --recompute-method --recompute-num-layers --distribute-saved-activations --moe-layer-recompute
    """,
    f"{CHANGES_BOTH}the state of the optimizer is Adam's in FP32, on the GPU": """
        --optimizer --optimizer-cpu-offload --optimizer-offload-fraction --use-precision-aware-optimizer
        --main-grads-dtype --main-params-dtype --exp-avg-dtype --exp-avg-sq-dtype --cpu-offloading-num-layers
    """,
    f"{CHANGES_TIME}context ranks exchange keys and values, or heads, in one step": """
        --hierarchical-context-parallel-sizes
    """,
    f"{CHANGES_TIME}groups of micro batches are as many as there are stages": """
        --microbatch-group-size-per-virtual-pipeline-stage
    """,
    f"{CHANGES_BOTH}gathered weights have a buffer of their own": "--reuse-grad-buf-for-mxfp8-param-ag",
    f"{CHANGES_BOTH}sums of layers are in BF16": "--fp32-residual-connection",
    f"{CHANGES_TIME}data parallel ranks are one group": """
        --num-distributed-optimizer-instances --enable-full-sharding-in-hsdp
    """,
    f"{CHANGES_TIME}NCCL does collectives with its own kernels": """
        --use-sharp --sharp-enabled-group --use-ring-exchange-p2p --pipeline-model-parallel-comm-backend
        --no-scatter-gather-tensors-in-pipeline --ddp-reduce-scatter-with-fp32-accumulation
    """,
    f"{CHANGES_TIME}nothing pauses an iteration": """
        --manual-gc --manual-gc-interval --no-manual-gc-eval --empty-unused-memory-level --train-sync-interval
    """,
}

# Values of ignored arguments that say what a scenario has anyway.
ANYWAY: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "--optimizer": ("adam",),
        "--recompute-method": ("uniform",),
        "--recompute-num-layers": ("1",),
        "--main-grads-dtype": ("fp32",),
        "--main-params-dtype": ("fp32",),
        "--exp-avg-dtype": ("fp32",),
        "--exp-avg-sq-dtype": ("fp32",),
    }
)

IGNORED: Final[Mapping[str, str]] = MappingProxyType(reasons_by_argument(_GROUPS))

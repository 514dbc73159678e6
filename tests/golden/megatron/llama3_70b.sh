#!/bin/bash
#SBATCH --job-name=llama3-70b
#SBATCH --nodes=64
#SBATCH --gpus-per-node=8

TP=${TP:-8}
PP=${PP:-4}
VPP=5
MBS=1
GBS=1024
SEQ=8192

MODEL_ARGS=" \
    --use-mcore-models \
    --num-layers 80 \
    --hidden-size 8192 \
    --ffn-hidden-size 28672 \
    --num-attention-heads 64 \
    --group-query-attention \
    --num-query-groups 8 \
    --seq-length ${SEQ} \
    --max-position-embeddings 8192 \
    --position-embedding-type rope \
    --rotary-base 500000 \
    --normalization RMSNorm \
    --swiglu \
    --untie-embeddings-and-output-weights \
    --disable-bias-linear \
    --attention-dropout 0.0 \
    --hidden-dropout 0.0"
PARALLEL_ARGS=" \
    --tensor-model-parallel-size ${TP} \
    --pipeline-model-parallel-size ${PP} \
    --num-layers-per-virtual-pipeline-stage $((80 / PP / VPP)) \
    --sequence-parallel \
    --use-distributed-optimizer \
    --overlap-grad-reduce \
    --overlap-param-gather \
    --tp-comm-overlap"
TRAINING_ARGS=" \
    --micro-batch-size ${MBS} \
    --global-batch-size ${GBS} \
    --train-iters 100000 \
    --lr 1.5e-4 --min-lr 1.5e-5 --lr-decay-style cosine --lr-warmup-iters 2000 \
    --weight-decay 0.1 --clip-grad 1.0 --adam-beta1 0.9 --adam-beta2 0.95 \
    --bf16 \
    --grad-reduce-in-bf16 \
    --fp8-format hybrid --fp8-recipe delayed --fp8-amax-history-len 1024 --fp8-amax-compute-algo max \
    --manual-gc --manual-gc-interval 100"
DATA_ARGS="--tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/llama-3 --data-path /data/tokens_text_document --split 99,1,0"
LOG_ARGS="--log-interval 10 --log-throughput --save /checkpoints/llama3 --load /checkpoints/llama3 --ckpt-format torch_dist"

if [ -n "${WANDB_API_KEY}" ]; then
    LOG_ARGS="${LOG_ARGS} --wandb-project llama3 --wandb-exp-name run1"
fi

run_cmd="python -u pretrain_gpt.py ${MODEL_ARGS} ${PARALLEL_ARGS} ${TRAINING_ARGS} ${DATA_ARGS} ${LOG_ARGS}"
srun -l --container-image nvcr.io/nvidia/pytorch:25.04-py3 sh -c "${run_cmd}"

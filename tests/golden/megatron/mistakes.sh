TP=4
if nvidia-smi | grep -q H200; then
    HIDDEN=8192
else
    HIDDEN=4096
fi
torchrun --nnodes=2 --nproc-per-node=8 pretrain_gpt.py \
    --num-layers thirty-two --hidden-size $HIDDEN --num-attention-heads 32 \
    --tensor-model-paralel-size $TP \
    --micro_batch_size 1 --global-batch-size 64 64 \
    --seq-length $SEQ_LENGTH --max-position-embeddings 4096 \
    --bf16 true --fp16 --recompute-granularity ful \
    --pipeline-model-parallel-layout "Et*3|x*4L" \
    --overlap-param-gather --attention-dropout 2 --tokenizer-type HuggingFaceTokenizer

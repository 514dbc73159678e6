"""The command that starts a job, its GPUs, and what the script leaves open: each launcher and form on some lines."""

from __future__ import annotations

import pytest
from helpers.imports_megatron import BASE, SHAPE

from weftwork.base.errors import Mistake
from weftwork.base.findings import Findings
from weftwork.workload.imports.megatron_arguments import READ
from weftwork.workload.imports.megatron_words import Launch, launch_in_script

LAUNCHER = "torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py"
WORDS = f"{BASE} {SHAPE}"


def launched(script: str, **variables: str) -> tuple[Launch, list[Mistake]]:
    text = script.replace("RUN", f"{LAUNCHER} WORDS").replace("WORDS", WORDS)
    findings = Findings()
    launch = launch_in_script(text, READ, findings, variables)
    return launch, findings.mistakes


@pytest.mark.parametrize(
    "script",
    [
        "RUN",
        "mpirun -np 32 --hostfile h -x NCCL_DEBUG=INFO python pretrain_gpt.py WORDS",
        "mpirun -np 4 -N 1 RUN",
        "mpirun -np 32 bash -c 'python pretrain_gpt.py WORDS'",
        "deepspeed --num_nodes 4 --num_gpus 8 pretrain_gpt.py WORDS",
        "python3 -u -m torch.distributed.launch --nnodes=4 --nproc_per_node=8 --use_env pretrain_gpt.py WORDS",
        "torchrun --nnodes=4 --nproc-per-node=8 -m megatron.pretrain_gpt WORDS",
        "accelerate launch --num_processes 32 --num_machines 4 pretrain_gpt.py WORDS",
        "jsrun -n 4 -g 8 -a 8 python pretrain_gpt.py WORDS",
        "srun -N 4 --ntasks-per-node=8 python pretrain_gpt.py WORDS",
        "srun -n 32 python pretrain_gpt.py WORDS",
        "sbatch -N 4 --gres=gpu:8 --wrap 'srun python pretrain_gpt.py WORDS'",
        "N=4\nsbatch <<EOF\n#!/bin/bash\n#SBATCH --nodes=$N --gres=gpu:8\nsrun python pretrain_gpt.py WORDS\nEOF",
        "#SBATCH --ntasks=32\n#SBATCH --ntasks-per-node=8\nsrun -l python pretrain_gpt.py WORDS",
        "#SBATCH --gpus=32\nsrun python pretrain_gpt.py WORDS",
        "#SBATCH -N 4\n#SBATCH --gres=gpu:8\nN=$SLURM_NNODES\ntorchrun --nnodes $N --nproc_per_node gpu x.py WORDS",
        (
            '#SBATCH -N4 --gpus-per-node=8\nN=$SLURM_JOB_NUM_NODES\nG=$SLURM_GPUS_ON_NODE\nsrun bash -c "torchrun '
            '--nnodes $N --nproc_per_node $G --node_rank \\$SLURM_NODEID pretrain_gpt.py WORDS"'
        ),
        "#PBS -l select=4:ngpus=8:mpiprocs=8\nN=$(wc -l < $PBS_NODEFILE)\nmpiexec -n $N --ppn 8 python x.py WORDS",
        "#PBS -l select=4\nN=$(sort -u $PBS_NODEFILE|wc -l)\ntorchrun --nnodes=$N --nproc-per-node 8 x.py WORDS",
        "#BSUB -nnodes 4\n#BSUB -gpu 'num=8'\nblaunch torchrun x.py WORDS",
        "for node in $(cat hosts); do ssh $node 'cd /x && RUN' & done; wait",
        "docker run --gpus all image bash -c 'cd /w && RUN'",
        "nohup RUN > $LOG 2>&1 &",
        "exec RUN",
        "timeout 3h RUN || echo late",
        "if ! RUN; then exit 1; fi",
        "until RUN; do sleep 5; done",
        "RUN --save a || RUN --load b",
        "python tools/convert.py --num-layers 32 --tokenizer-type X\nRUN",
        "CMD='RUN > $LOG/x 2>&1'\n$CMD",
        "run() {\n  RUN\n}",
        "tmux new -d 'RUN'",
        '[ -z "$DATA" ] && { echo DATA; exit 1; }\nRUN',
        "set -x\r\nRUN\r\n",
    ],
)
def test_every_launcher_starts_the_same_job(script: str) -> None:
    launch, mistakes = launched(script)
    plain, _ = launched("RUN")
    assert (launch.gpus, mistakes) == (32, [])
    arguments = {one.argument: one.values for one in plain.given}
    assert arguments.items() <= {one.argument: one.values for one in launch.given}.items()
    assert launch.strays == ()


@pytest.mark.parametrize(
    ("script", "gpus"),
    [
        ("torchrun --nnodes $WORLD_SIZE --nproc_per_node 8 x.py WORDS", None),
        ("torchrun --nproc_per_node gpu x.py WORDS", None),
        ("srun torchrun --nproc_per_node 8 x.py WORDS", None),
        ("deepspeed --hostfile h x.py WORDS", None),
        ("mpirun python x.py WORDS", None),
        ("#SBATCH -N 2-4 --gres=gpu:8\nsrun python x.py WORDS", None),
        ("torchrun --nproc_per_node 8 x.py WORDS", 8),
    ],
)
def test_a_number_of_gpus_is_only_what_the_script_says(script: str, gpus: int | None) -> None:
    assert launched(script)[0].gpus == gpus


def test_what_is_left_open_is_told() -> None:
    launch, _ = launched('source env.sh\nif [ -n "$X" ]; then RUN --swiglu; fi\ntorchrun --nproc_per_node 8 x.py WORDS')
    assert launch.assumed == {
        "--nnodes": "1: torchrun's default",
        "$X": "not set: line 2 asks for it; --variable X=VALUE sets it",
    }
    assert launch.ignored["env.sh"].startswith("line 1 reads this file too")
    launch, _ = launched("A=()\nif nvidia-smi; then\n  A+=(--swiglu)\nfi\nRUN ${A[@]}")
    assert launch.assumed == {"--swiglu": "taken: whether line 3 is reached is not known without running the script"}


def test_numbers_of_scheduler_and_launcher_that_differ_are_told() -> None:
    launch, _ = launched("#SBATCH -N 2\n#SBATCH --gres=gpu:8\nsrun RUN")
    assert launch.ignored == {"#SBATCH -N": "it says 2, and --nnodes says 4, which counts"}


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (
            "for T in 1 2; do\nRUN --tensor-model-parallel-size $T\ndone",
            ("found 2 commands with arguments of Megatron-LM, in line 2, which differ in --tensor-model-parallel-size "
            "(1 or 2); wanted one: --variable sets a variable that decides, or keep one in a copy"),
        ),
        (
            "if nvidia-smi; then\nRUN --swiglu\nelse\nRUN\nfi",
            "in line 2 and line 4, which differ in --swiglu (there or not there)",
        ),
        ("echo a\nexit 0\nRUN", "the script ends itself here"),
        ("source env.sh\nbash train.sh", "it reads 'env.sh' in line 1, 'train.sh' in line 2, which is not read here"),
        (f"{LAUNCHER} \\\n WORDS \\\n # --lr 1 \\\n --swiglu", "the line before has no backslash at its end"),
    ],
)  # fmt: skip
def test_a_script_that_starts_no_single_job_says_why(script: str, text: str) -> None:
    _, (mistake,) = launched(script)
    assert text in mistake.text


def test_a_variable_chooses_between_commands() -> None:
    launch, mistakes = launched("for T in 1 2; do\nRUN --tensor-model-parallel-size $T\ndone", T="2")
    assert (launch.named["--tensor-model-parallel-size"], mistakes) == ("2", [])

"""What a scheduler gives to a job: options of its head as numbers and variables."""

from __future__ import annotations

import pytest

from weftwork.workload.imports.schedulers import read_directives

SLURM = "#!/bin/bash\n# a job\n#SBATCH -N 48 # nodes\n#SBATCH --gres=gpu:a100:8 --ntasks-per-node=1\n"


def test_variables_of_slurm_follow_from_its_options() -> None:
    assert read_directives(SLURM).variables == {
        "SLURM_NNODES": "48", "SLURM_JOB_NUM_NODES": "48", "SLURM_NTASKS": "48", "SLURM_NPROCS": "48",
        "SLURM_NTASKS_PER_NODE": "1", "SLURM_GPUS_ON_NODE": "8", "SLURM_GPUS_PER_NODE": "8",
        "SLURM_TASKS_PER_NODE": "1(x48)",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("head", "key", "value"),
    [
        ("#SBATCH --nodes=4", "nodes", 4),
        ("#SBATCH --nodes 4", "nodes", 4),
        ("#SBATCH -N4", "nodes", 4),
        ("#SBATCH --nodes=4-4", "nodes", 4),
        ("#SBATCH --nodes=2-4", "nodes", None),
        ("#SBATCH --ntasks=32 --ntasks-per-node=8", "nodes", 4),
        ("#SBATCH --gres=gpu:8", "gpus_per_node", 8),
        ("#SBATCH --gres=gpu", "gpus_per_node", 1),
        ("#SBATCH --gres=nvme:1,gpu:h100:8(S:0-1)", "gpus_per_node", 8),
        ("#SBATCH --gres=nvme:1", "gpus_per_node", None),
        ("#SBATCH --gpus-per-node=h100:8", "gpus_per_node", 8),
        ("#SBATCH -G 32", "gpus", 32),
        ("##SBATCH -N 9", "nodes", None),
        ("# SBATCH -N 9", "nodes", None),
        ("echo\n#SBATCH -N 9", "nodes", None),
        ("#PBS -l select=4:ncpus=64:ngpus=8:mpiprocs=8", "nodes", 4),
        ("#PBS -l select=4:ncpus=64:ngpus=8:mpiprocs=8,walltime=1:00", "gpus_per_node", 8),
        ("#PBS -l nodes=4:ppn=8", "tasks", 32),
        ("#BSUB -nnodes 4", "nodes", 4),
        ('#BSUB -n 32\n#BSUB -R "span[ptile=8]"', "nodes", 4),
        ('#BSUB -gpu "num=8:mode=shared"', "gpus_per_node", 8),
    ],
)  # fmt: skip
def test_an_option_is_a_number(head: str, key: str, value: int | None) -> None:
    assert read_directives(head).value(key) == value


@pytest.mark.parametrize(
    ("head", "command", "output"),
    [
        (SLURM, "scontrol show hostnames $SLURM_JOB_NODELIST | wc -l", "48"),
        (SLURM, "nvidia-smi -L | wc -l", "8"),
        (SLURM, "nvidia-smi --list-gpus|wc -l", "8"),
        (SLURM, "scontrol show hostnames | head -n 1", None),
        (SLURM, "nvidia-smi -L; wc -l", None),
        ("", "nvidia-smi -L | wc -l", None),
        ("#PBS -l select=4:mpiprocs=8", "cat $PBS_NODEFILE | sort | uniq | wc -l", "4"),
        ("#PBS -l select=4:mpiprocs=8", 'sort -u "${PBS_NODEFILE}" | wc -l', "4"),
        ("#PBS -l select=4:mpiprocs=8", "wc -l < $PBS_NODEFILE", "32"),
        ("#PBS -l select=4:mpiprocs=8", "grep -v x $PBS_NODEFILE | wc -l", None),
    ],
)
def test_commands_that_count_nodes_and_gpus_are_known(head: str, command: str, output: str | None) -> None:
    assert read_directives(head).output(command) == output

"""Arguments of Megatron-LM as keys of a scenario: each rule of `validate_args` that matters, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.imports_megatron import BASE, LAYOUT, SHAPE, TENSOR

from weftwork.base.errors import ConfigError
from weftwork.study.imported import scenario_of_import
from weftwork.workload.imports.job_file import read_job_file


def write(folder: Path, text: str, name: str = "job.sh") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("launch", "gpus"),
    [
        ("torchrun --nnodes 4 --nproc_per_node 8 x.py", 32),
        ("torchrun --nnodes=4 --nproc-per-node=8 x.py", 32),
        ("python -m torch.distributed.run --nnodes 4 --nproc_per_node 8 x.py", 32),
        ("torchrun --nnodes 1:4 --nproc_per_node 8 x.py", None),
        ("torchrun --nnodes $N --nproc_per_node 8 x.py", None),
        ("#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\nsrun python x.py", 32),
        ("#SBATCH -N 4\n#SBATCH --gres=gpu:h100:8\nsrun sh -c 'python x.py @'", 32),
        ("x.py", None),
    ],
)
def test_a_launcher_says_how_many_gpus(launch: str, gpus: int | None, tmp_path: Path) -> None:
    words = f"{BASE} {SHAPE}"
    text = launch.replace("@", words) if "@" in launch else f"{launch} {words}"
    assert read_job_file(write(tmp_path, text)).gpus == gpus
    assert read_job_file(write(tmp_path, text), gpus=7).gpus == 7


def test_a_variable_that_the_script_lacks_may_be_given(tmp_path: Path) -> None:
    path = write(tmp_path, f"torchrun --nnodes $N --nproc_per_node 8 x.py {BASE} {SHAPE}")
    assert "'N' has no value" in read_job_file(path).ignored["--nnodes"]
    assert read_job_file(path, variables={"N": "2"}).gpus == 16


def test_words_in_a_variable_without_value_are_asked_for(tmp_path: Path) -> None:
    script = f"if t; then P=--fp16; else P=--bf16; fi\ntorchrun x.py {BASE} {SHAPE} --swiglu $P"
    path = write(tmp_path, script.replace(" --bf16 ", " "))
    with pytest.raises(ConfigError, match=r"it may be in \$P, which has no value .*: give --variable P=\.\.\."):
        read_job_file(path)
    assert read_job_file(path, variables={"P": "--fp16 --lr 1"}).keys["training.gradients"] == "bf16"


def test_two_launches_are_refused_and_other_programs_are_not_launches(tmp_path: Path) -> None:
    one = f"torchrun x.py {BASE} {SHAPE}\n"
    tool = "python tools/preprocess_data.py --input a --vocab-file b\n"
    assert read_job_file(write(tmp_path, tool + one)).keys["training.global_batch"] == 64
    with pytest.raises(ConfigError, match=r"found 2 commands .*, in line 1 and line 2, which "):
        read_job_file(write(tmp_path, one + one.replace("--seq-length 2048", "--seq-length 4096")))
    assert read_job_file(write(tmp_path, one + one)).keys["training.sequence"] == 2048


def test_a_condition_decides_nothing_that_is_read(tmp_path: Path) -> None:
    script = "A=()\nif t; then\n  A+=(--seq-length 4096 --lr 1)\nfi\ntorchrun x.py WORDS ${A[@]}\n"
    with pytest.raises(ConfigError, match=r"line 3  --seq-length  found '2048' in line 5 and '4096' here, one value"):
        read_job_file(write(tmp_path, script.replace("WORDS", f"{BASE} {SHAPE}")))
    shorter = BASE.replace("--seq-length 2048", "")
    found = read_job_file(write(tmp_path, script.replace("WORDS", f"{shorter} {SHAPE}")))
    assert found.keys["training.sequence"] == 4096


def test_arguments_in_variables_alone_are_found(tmp_path: Path) -> None:
    found = read_job_file(write(tmp_path, f'A="{BASE}"\nB=(\n  {SHAPE}\n)\nD=(--nnodes 2 --nproc-per-node 4)\n'))
    assert (found.gpus, found.keys["training.sequence"]) == (8, 2048)


def test_scripts_that_choose_between_mock_data_and_real_ones_are_read(tmp_path: Path) -> None:
    script = """
        DATA=()
        if [[ "$DATA_ARG" == "MOCK" ]]; then
            DATA+=("--mock-data" "--tokenizer-type NullTokenizer" "--vocab-size 1000")
        else
            DATA+=(
                "--data-path $DATA_ARG"
                # may be inferred
                "--tokenizer-type HuggingFaceTokenizer"
                "--vocab-size 1000"
            )
        fi
        if [ -z ${VP} ]; then V=""; else V="--num-layers-per-virtual-pipeline-stage ${VP}"; fi
        P="pretrain_gpt.py"
        torchrun --nnodes 1 --nproc_per_node 8 "$P" @ ${DATA[@]} ${V} --log-throughput
    """
    words = f"{BASE} {SHAPE.replace('--vocab-size 1000', '')}"
    found = read_job_file(write(tmp_path, script.replace("@ ", f"{words} ")))
    assert found.model is not None
    assert found.model.vocabulary == 1000
    assert (found.keys["training.virtual_stages"], dict(found.unknown)) == (1, {})
    assert found.assumed["$VP"].startswith("not set: line ")


YAML = """
ENV_VARS: {CUDA_DEVICE_MAX_CONNECTIONS: 1}
TEST_TYPE: regular
MODEL_ARGS:
  --num-layers: 8
  --hidden-size: 512
  --num-attention-heads: 8
  --vocab-size: 1000
  --max-position-embeddings: 2048
  --seq-length: 2048
  --micro-batch-size: 1
  --global-batch-size: 64
  --bf16: true
  --use-distributed-optimizer: false
  --data-path: [1.0, a, 2.0, b]
"""


def test_a_yaml_file_of_arguments_is_read(tmp_path: Path) -> None:
    found = read_job_file(write(tmp_path, YAML, "a.yaml"))
    assert (found.keys["training.sequence"], found.keys["training.zero"]) == (2048, 0)
    assert found.ignored["--data-path"].startswith("where data")
    assert dict(found.unknown) == {}
    with pytest.raises(ConfigError, match=r"line 5  --num-layers  found '8.5'"):
        read_job_file(write(tmp_path, YAML.replace("-layers: 8", "-layers: 8.5"), "a.yaml"))


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        ("", "a.sh", "found no argument of Megatron-LM"),
        ("echo hello", "a.sh", "found no argument of Megatron-LM"),
        ("[1, 2]", "a.yaml", "found no keys"),
        ("a: [", "a.yaml", "line 1  file  not YAML"),
        ("trainer: {num_nodes: 2}", "a.yml", "found no argument"),
        ("x" * 250_001, "a.sh", "longer than 250,000 bytes"),
    ],
)
def test_a_file_that_is_none_is_refused(text: str, name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=told):
        read_job_file(write(tmp_path, text, name))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_job_file(tmp_path / "none.sh")
    (tmp_path / "latin.sh").write_bytes(b"\xfa\xff\xfe")
    with pytest.raises(ConfigError, match="is no text in UTF-8"):
        read_job_file(tmp_path / "latin.sh")


def test_a_layout_that_is_not_the_models_is_a_mistake_of_the_argument(tmp_path: Path) -> None:
    path = write(tmp_path, f"torchrun --nnodes 1 --nproc_per_node 8 x.py {BASE} {SHAPE} {LAYOUT} 'Et*4|t*3L' {TENSOR} 4"
                 " --pipeline-model-parallel-size 2")  # fmt: skip
    (mistake,) = scenario_of_import(read_job_file(path), name="one", source="one.sh").mistakes
    assert mistake.path == f"{LAYOUT} (training.layout)"
    assert "found 7 layers (t), wanted 8" in mistake.text

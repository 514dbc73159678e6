"""Files of other tools: each form has a sample, is told from the others, and is refused by readers of other files."""

from __future__ import annotations

import json

import pytest

from weftwork.base.errors import ConfigError
from weftwork.base.file_forms import ACCEPTED, Reader, form_of, forms, refuse_foreign

SAMPLES: dict[str, tuple[str, bytes | str]] = {
    "elf": ("a.yaml", b"\x7fELF\x02\x01\x01"),
    "pe": ("a.exe", b"MZ\x90\x00\x03"),
    "zip": ("a.zip", b"PK\x03\x04rest"),
    "gzip": ("a.gz", b"\x1f\x8b\x08"),
    "zstd": ("a.zst", b"\x28\xb5\x2f\xfd"),
    "xz": ("a.xz", b"\xfd7zXZ\x00"),
    "picture": ("a.png", b"\x89PNG\r\n"),
    "pdf": ("a.pdf", b"%PDF-1.7"),
    "sqlite": ("a.sqlite", b"SQLite format 3\x00"),
    "parquet": ("a.parquet", b"PAR1\x15"),
    "pcap": ("a.pcap", b"\xd4\xc3\xb2\xa1\x02\x00"),
    "utf-16": ("a.yaml", "schema: 3\n".encode("utf-16")),
    "chakra": ("rank.0.et", b"\x0a\x0b\xff\xfe"),
    "scenario": ("a.yaml", "# mine\nschema: 3\nname: x\n"),
    "constants": ("a.toml", 'version = 1\n[fitted_on]\nsha256 = "x"\n'),
    "graphml": ("a.graphml", '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns"/>'),
    "html": ("a.html", "<!DOCTYPE html><html></html>"),
    "xml": ("topo.xml", '<system version="1"><cpu/></system>'),
    "notebook": ("a.ipynb", json.dumps({"cells": [], "nbformat": 4})),
    "profile": ("a.json", json.dumps({"traceEvents": []})),
    "chakra-json": ("a.json", json.dumps({"schema": "1.1", "pid": 1, "nodes": []})),
    "astra-sim": ("system.json", json.dumps({"scheduling-policy": "LIFO"})),
    "astra-sim-network": ("network.yml", "topology: [ Ring ]\nnpus_count: [ 8 ]\n"),
    "gpt-neox": ("a.yml", '{\n  "pipe_parallel_size": 1,\n  "train_batch_size": 8,\n}\n'),
    "deepspeed": ("ds.json", json.dumps({"train_batch_size": 8, "zero_optimization": {"stage": 1}})),
    "model": ("config.json", json.dumps({"model_type": "llama"})),
    "fabric": ("a.json", json.dumps({"nodes": [], "links": []})),
    "kubernetes": ("a.yaml", "apiVersion: v1\nkind: Pod\n"),
    "torchtitan": ("a.toml", '[model]\nname = "llama3"\n[training]\nseq_len = 1\n[parallelism]\n'),
    "llm-foundry": ("a.yaml", "max_seq_len: 1\nfsdp_config:\n  sharding_strategy: FULL_SHARD\n"),
    "nemo": ("a.yaml", "trainer: {devices: 8}\nmodel:\n  tensor_model_parallel_size: 4\n"),
    "megatron": ("a.yaml", "MODEL_ARGS:\n  --num-layers: 12\n"),
    "nccl-tests": ("a.txt", "[1,0]<stdout>:# nThread 1 nGpus 8 minBytes 8\n"),
    "script": ("a.slurm", "#!/bin/bash\nsrun a\n"),
    "ns-3": ("config.txt", "ENABLE_QCN 1\nCC_MODE 3\n"),
    "htsim": ("a.tm", "Nodes 16\nConnections 2\n0->1 start 0 size 1\n"),
    "simai": ("a.txt", "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8\n10\n"),
    "ibnetdiscover": ("a.txt", "vendid=0x2c9\ndevid=0xbd36\n"),
    "slurm": ("topology.conf", "SwitchName=s0 Nodes=n[1-4]\n"),
    "dot": ("a.dot", "digraph G {\n a -> b;\n}\n"),
    "gml": ("a.gml", "graph [\n  node [ id 0 ]\n]\n"),
    "python": ("a.py", "import torch\n"),
    "toml": ("a.toml", 'name = "x"\n'),
    "ini": ("a.cfg", "[network_presets]\ntopology = Ring\n"),
    "csv": ("a.csv", "model,gpus,seconds\na,1,2\n"),
}


def raw(name: str) -> tuple[str, bytes]:
    file, content = SAMPLES[name]
    return file, content if isinstance(content, bytes) else content.encode()


def test_every_form_has_a_sample() -> None:
    assert [form.name for form in forms()] == list(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_form_is_told_from_the_others(name: str) -> None:
    file, content = raw(name)
    form = form_of(content, file)
    assert form is not None
    assert form.name == name


@pytest.mark.parametrize("reader", ACCEPTED)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_reader_names_what_it_does_not_take(reader: Reader, name: str) -> None:
    file, content = raw(name)
    form, accepted = form_of(content, file), ACCEPTED[reader]
    assert form is not None
    if accepted.takes(form):
        refuse_foreign(file, content, reader)
        return
    with pytest.raises(ConfigError) as caught:
        refuse_foreign(file, content, reader)
    (mistake,) = caught.value.mistakes
    assert form.title in mistake.text
    assert accepted.wanted in mistake.text
    assert "FILE" not in mistake.text


def test_readers_take_forms_that_exist() -> None:
    names = {form.name for form in forms()}
    assert all(set(accepted.forms) <= names for accepted in ACCEPTED.values())


@pytest.mark.parametrize("text", ["", "hello world", "- a\n- b\n", "{schema: 3, fabric: {radix: 4}}", "a: b\n"])
def test_what_has_no_marks_goes_on_to_its_reader(text: str) -> None:
    refuse_foreign("a.yaml", text.encode(), "scenario")


def test_scripts_and_logs_keep_words_of_other_forms() -> None:
    refuse_foreign("a.sh", b'MODEL="--num-layers 2"\nDATA=x\nNodeName=$1\n', "job")
    refuse_foreign("a.log", b"mpirun -np 8 all_reduce_perf\n# nThread 1 nGpus 1\n", "measurements")

"""The page of a design: what it says, where its dots are and lead, and what must not be overlooked."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from helpers.designs import JOB, design_document, fabric
from helpers.pages import Page, plain

from weftwork.base.errors import ConfigError
from weftwork.report.design_folder import is_design, open_design
from weftwork.report.page_design import design_page
from weftwork.study.design.search import DesignQuestion, design, fabric_named
from weftwork.study.design.words import design_document as document_of

RESUME = "weftwork design 'tiny <job>.yaml' -o 'runs/a design'"


def text_of(page: str) -> str:
    body = page[page.index("<main>") : page.index("<script>")]
    text: str = plain(html.unescape(re.sub(r"<[^>]*>", " ", body)))
    return text


def written(folder: Path, document: object) -> Path:
    (folder / "fabrics").mkdir()
    (folder / "design.json").write_text("{}", encoding="utf-8")
    (folder / "command.txt").write_text("weftwork design a.yaml -o out\n", encoding="utf-8")
    text = document if isinstance(document, str) else json.dumps(document)
    (folder / "result.json").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("{", "is no JSON"),
        ("[]", "lacks budget_usd, by, candidates; write it again with: weftwork design a.yaml -o out"),
        (design_document(candidates=[{"name": "f001"}]), r"lacks candidates\[0\].cables"),
        (design_document(candidates=[3]), r"lacks candidates\[0\].cables"),
        (design_document(pruned=[{}]), r"lacks pruned\[0\].better"),
        (design_document(candidates=[fabric("../../etc", money=1, power=1, ms=1)]), "names a candidate '../../etc'"),
        (design_document() | {"end": "melted"}, "has the end 'melted', wanted done, interrupted, full"),
        (design_document() | {"end": ["done"]}, "has the end"),
        (design_document(), r"fabrics/f001.yaml  cannot be read: No such file"),
    ],
)
def test_a_damaged_folder_is_told_of(tmp_path: Path, document: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_design(written(tmp_path, document))


def test_a_folder_is_read_again(tmp_path: Path) -> None:
    assert not is_design(tmp_path)
    document = design_document()
    folder = written(tmp_path, document)
    for one in document["candidates"]:
        (folder / "fabrics" / f"{one['name']}.yaml").write_text(one["name"], encoding="utf-8")
    assert is_design(folder)
    assert open_design(folder) == (document, {one["name"]: one["name"] for one in document["candidates"]})
    (folder / "result.json").unlink()
    with pytest.raises(ConfigError, match=r"has no result yet; continue with: weftwork design a\.yaml -o out"):
        open_design(folder)


def test_a_real_design_makes_a_page(tmp_path: Path) -> None:
    """By closed forms, of a training job, since nothing has to run for its page."""
    file = tmp_path / "job.yaml"
    training = "training: {model: llama-3-8b, tensor: 8, sequence: 4096, global_batch: 64}\n"
    file.write_text(JOB.replace(JOB[JOB.index("collective") :], training), encoding="utf-8")
    only = {"topology": ["rail-only", "fat-tree"], "switch": ["spectrum-4"], "planes": ["1", "2"]}
    found = design(DesignQuestion(file=file, gpus=64, only=only, closed_only=True), tmp_path / "out", workers=1)
    document = json.loads(json.dumps(document_of(found)))
    page = design_page(document, "out", RESUME, {one.name: fabric_named(found, one.name) for one in found.ran})
    text = text_of(page)
    assert f"Take {found.choice.name}" in text
    assert "Closed forms alone" in text
    assert "Measured times: no measurement like this: published times were compared with runs" in text
    assert {one["interval"]["low"] for one in document["candidates"]} == {None}
    for one in found.ran:
        assert f"fabric-{one.name}" in Page(page).ids
    assert "gpus: 64" in text

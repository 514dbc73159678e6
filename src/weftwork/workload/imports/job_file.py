"""The job of a file, whichever program it is for: Megatron-LM or one of its relatives.

The program is recognised by what the file says: its arguments, its sections, its form. Nothing is run.
Leaves out: what arguments mean (`weftwork.workload.imports.megatron`, `weftwork.workload.imports.relatives`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.file_forms import ACCEPTED, form_of, looks_like, refuse_folder, refuse_foreign
from weftwork.base.findings import Findings
from weftwork.base.folder import Folder
from weftwork.base.plain_file import read_plain
from weftwork.spec.scenario.yaml_tree import MAX_BYTES
from weftwork.workload.imports.megatron import MegatronImport, read_launch
from weftwork.workload.imports.megatron_arguments import READ
from weftwork.workload.imports.megatron_words import Launch, launch_in_script, launch_in_yaml
from weftwork.workload.imports.relative import JobText, Relative, SettingReader
from weftwork.workload.imports.settings import (
    JobSetting,
    is_override,
    settings_of_overrides,
    settings_of_toml,
    settings_of_yaml,
)

__all__ = ["RELATIVES", "read_job", "read_job_file"]

RELATIVES: Final = Folder(
    "relative", package="weftwork.workload.imports.relatives", constant="RELATIVE", record=Relative
)
_YAML: Final = (".yaml", ".yml")
_TOML: Final = (".toml",)
_SETTINGS_FILE: Final = re.compile(r"[\w./~-]+\.(?:toml|ya?ml)\b")
_DOTTED: Final = re.compile(r"[a-z_]+\.[a-z_.]+")  # the name of a setting of Hydra


class _KnownArguments:
    """Names that tell a training program from others that a script starts."""

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        plain = name.lstrip("+~")
        return name in READ or (_DOTTED.fullmatch(plain) is not None and _is_of_hydra(plain))


def _is_of_hydra(name: str) -> bool:
    return name.startswith(("model.", "trainer.", "exp_manager."))


def read_job_file(path: Path, *, gpus: int | None = None, variables: Mapping[str, str] | None = None) -> MegatronImport:
    """Read the file of a job.

    Parameters
    ----------
    path : ``.yaml`` and ``.yml`` are YAML, ``.toml`` is TOML, anything else a script
    gpus : in place of what the launcher says
    variables : values that a script takes from its environment

    Raises
    ------
    ConfigError : with every mistake and its line
    """
    source = str(path)
    refuse_folder(path, "job")
    try:
        raw = read_plain(path, MAX_BYTES + 1)
        refuse_foreign(source, raw, "job")
        text = raw.decode("utf-8-sig") if len(raw) <= MAX_BYTES else ""
    except OSError as error:
        raise _refused(source, f"cannot be read: {error.strerror or 'not a path'}") from error
    except ValueError as error:
        raise _refused(source, "is no text in UTF-8, wanted the file of a job") from error
    if len(raw) > MAX_BYTES:
        raise _refused(source, f"longer than {MAX_BYTES:,} bytes; the file of a job is never that long")
    return read_job(text, suffix=path.suffix, source=source, name=path.stem, gpus=gpus, variables=variables)


def read_job(
    text: str,
    *,
    suffix: str = "",
    source: str = "job",
    name: str = "job",
    gpus: int | None = None,
    variables: Mapping[str, str] | None = None,
) -> MegatronImport:
    """Read the text of a job.

    Parameters
    ----------
    text : of the file
    suffix : of its name, which says whether it is YAML or TOML
    source : what errors call the file
    name : of the model, where it is none of the catalogue
    gpus, variables : as of `read_job_file`

    Raises
    ------
    ConfigError : with every mistake and its line

    Examples
    --------
    >>> found = read_job("torchrun a.py trainer.precision=bf16 model.num_layers=2 model.hidden_size=64 "
    ...     "model.num_attention_heads=4 model.override_vocab_size=1000 model.micro_batch_size=1 "
    ...     "model.global_batch_size=8 model.encoder_seq_length=128")
    >>> found.program, found.keys["training.global_batch"]
    ('NeMo', 8)
    """
    plain = text.replace("\0", "").replace("\1", "")
    findings = Findings(source=source)
    job, launch = _job(plain, suffix, variables, findings)
    mistakes = findings.mistakes
    relative = next((one for one in RELATIVES.values() if one.recognises(job)), None)
    if relative is None and suffix in _TOML:
        raise ConfigError(source, mistakes or _nothing_found(text, source, mistakes))
    if relative is None and mistakes and not launch.given:
        raise ConfigError(source, _nothing_found(text, source, mistakes))
    if relative is None:
        return read_launch(launch, mistakes, source=source, name=name, gpus=gpus)
    reader = SettingReader(relative=relative, job=job, gpus=gpus)
    translation = reader.translation()
    return read_launch(
        translation.launch,
        [*([] if job.form == "script" else mistakes), *reader.mistakes],
        source=source,
        name=name,
        gpus=gpus,
        translation=translation,
    )


def _nothing_found(text: str, source: str, mistakes: list[Mistake]) -> list[Mistake]:
    """Mistakes of a file that is no job: what it looks like, and what is read."""
    form, wanted = form_of(text.encode("utf-8", errors="replace"), source), ACCEPTED["job"].wanted
    if form is not None and form.name not in {*ACCEPTED["job"].forms, "script", "megatron", "toml"}:
        return [Mistake(path="file", text=f"{looks_like(form, Path(source).name)}; wanted {wanted}")]
    named = _SETTINGS_FILE.search(text) if form is not None and form.name == "script" else None
    if named is not None:
        said = f"the command takes its settings from '{named[0][:200]}': `weftwork import {named[0][:200]}` reads them"
        return [Mistake(path="file", text=said, line=text.count("\n", 0, named.start()) + 1)]
    found = mistakes or [Mistake(path="file", text="found a TOML file of no known program")]
    return [replace(one, text=f"{one.text}; read is {wanted}") for one in found]


def _job(text: str, suffix: str, variables: Mapping[str, str] | None, findings: Findings) -> tuple[JobText, Launch]:
    """A text in the form that relatives recognise, and as Megatron-LM reads it."""
    if suffix in _TOML:
        return JobText(form="toml", settings=settings_of_toml(text, findings)), Launch(given=())
    if suffix in _YAML:
        settings = settings_of_yaml(text, findings)
        of_launch = Findings(source=findings.source)
        launch = launch_in_yaml(text, of_launch)
        if not findings.has_mistakes:  # else the other reading of the same text has said them
            findings.join(of_launch)
        return JobText(form="yaml", settings=settings), launch
    launch = launch_in_script(text, _KnownArguments(), findings, variables)
    words = [word for word in launch.words if is_override(word.text) and _is_of_hydra(word.text.lstrip("+~"))]
    given = [_without_overrides(one.argument, one.values, one.line) for one in launch.given]
    overrides = settings_of_overrides([word for word in launch.words if is_override(word.text)]) if words else ()
    settings = (*overrides, *given)
    return JobText(form="script", settings=settings, program=launch.program, launch=launch), launch


def _without_overrides(argument: str, values: Sequence[str], line: int | None) -> JobSetting:
    """An argument of a command as a setting; overrides of Hydra behind it are no values of it."""
    texts = [value for value in values if not is_override(value)]
    text = " ".join(texts) if texts else "true"
    return JobSetting(name=argument, text=text, texts=tuple(texts) if len(texts) > 1 else None, line=line)


def _refused(source: str, text: str) -> ConfigError:
    return ConfigError(source, [Mistake(path="file", text=text)])

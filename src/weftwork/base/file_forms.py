"""Files of other tools, recognised by what they hold, and what Weftwork does with each.

One table has every form. A reader that gets a file of another form names it, says which command reads it, and lists
what the reader itself takes. Nothing is parsed: a form is told by its first bytes and by words that it cannot lack.
Source: the magic numbers are those of file(1); forms of other simulators as in mlcommons/chakra (schema/protobuf),
Broadcom/csg-htsim (sim/datacenter/connection_matrices), alibaba-edu/High-Precision-Congestion-Control (mix/config.txt),
astra-sim/astra-sim (inputs/system) and aliyun/SimAI (docs/Tutorial.md).
Leaves out: readers of these forms.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from weftwork.base.errors import ConfigError, Mistake

__all__ = [
    "ACCEPTED", "HEAD_BYTES", "Accepted", "FileForm", "FileHead", "Reader", "form_of", "forms", "looks_like",
    "refuse_folder", "refuse_foreign",
]  # fmt: skip

HEAD_BYTES: Final = 65_536  # chosen: enough for the words that a form begins with
_LINES: Final = 400  # chosen: a script may begin with a long comment
_JSON: Final = re.compile(r"\s*(\{\s*[\"}]|\[\s*([\[{\"\]0-9-]|true|false|null))")

Reader = Literal["scenario", "job", "run", "fabric", "measurements", "model", "constants", "script"]


@dataclass(frozen=True, kw_only=True)
class FileHead:
    """The beginning of a file.

    Attributes
    ----------
    raw : first bytes
    suffix : of the file's name, in lower case
    """

    raw: bytes
    suffix: str = ""

    @cached_property
    def text(self) -> str:
        """The bytes as text; empty where they are none."""
        try:
            return self.raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
        except UnicodeDecodeError as error:
            if len(self.raw) - error.start < 4 and len(self.raw) >= HEAD_BYTES:  # cut inside a character
                return self.raw[: error.start].decode("utf-8")
            return ""

    @cached_property
    def is_json(self) -> bool:
        """Whether the text begins as JSON does."""
        return _JSON.match(self.text) is not None

    def keys(self, *names: str) -> bool:
        """Whether the text has all these keys, as JSON, YAML or TOML write them."""
        return all(re.search(rf"(?m)(^|[{{,\s])[\"']?{re.escape(name)}[\"']?\s*[:=]", self.text) for name in names)

    def sections(self, *names: str) -> bool:
        """Whether the text has one of these tables of TOML or INI."""
        return any(re.search(rf"(?m)^\s*\[{re.escape(name)}[\].]", self.text) for name in names)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileForm:
    """A form of files.

    Attributes
    ----------
    name : in tests and in `ACCEPTED`
    title : what a file of it is, with its article
    hint : what Weftwork does with it; FILE stands for the file's name
    is_loose : whether its words may stand in a log or a script too
    magic : first bytes, one of which it has
    words : regular expression of a text that it cannot lack, searched line by line
    json : whether the text has to be JSON (None: either)
    keys : that it has, all of them
    sections : tables of TOML or INI, of which it has one
    suffixes : of its name, one of which it has; empty: any
    """

    name: str
    title: str
    hint: str
    is_loose: bool = False
    magic: tuple[bytes, ...] = ()
    words: str = ""
    json: bool | None = None
    keys: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()

    def fits(self, head: FileHead) -> bool:
        """Whether a file has this form."""
        if self.suffixes and head.suffix not in self.suffixes:
            return False
        if self.magic:
            return head.raw.startswith(self.magic)
        if not head.text and not (self.suffixes and not self.words):
            return False
        if self.json is not None and head.is_json is not self.json:
            return False
        if self.keys and not head.keys(*self.keys):
            return False
        if self.sections and not head.sections(*self.sections):
            return False
        return not self.words or any(re.search(self.words, line) for line in head.text.splitlines()[:_LINES])


@cache
def forms() -> tuple[FileForm, ...]:
    """All forms, in the order in which they are tried."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return tuple(
        FileForm(
            name=name,
            title=table["title"],
            hint=table["hint"],
            is_loose=table.get("loose", False),
            magic=tuple(bytes.fromhex(one) for one in table.get("magic", ())),
            words=table.get("words", ""),
            json=table.get("json"),
            keys=tuple(table.get("keys", ())),
            sections=tuple(table.get("sections", ())),
            suffixes=tuple(table.get("suffixes", ())),
        )
        for name, table in tables.items()
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """Files that a reader takes.

    Attributes
    ----------
    forms : that it reads itself, or judges itself
    wanted : what a message calls them
    takes_loose : whether it also judges files of loose forms
    """

    forms: tuple[str, ...]
    wanted: str
    takes_loose: bool = False

    def takes(self, form: FileForm) -> bool:
        """Whether a file of this form goes on to the reader."""
        return form.name in self.forms or (self.takes_loose and form.is_loose)


_JOBS: Final = (
    "a script, a YAML or TOML file of Megatron-LM, Megatron-DeepSpeed, NeMo, GPT-NeoX, torchtitan or LLM Foundry"
)
ACCEPTED: Final[Mapping[Reader, Accepted]] = MappingProxyType(
    {
        "scenario": Accepted(
            forms=("scenario",), wanted="a scenario in YAML that begins with `schema:` (weftwork new prints one)"
        ),
        "job": Accepted(forms=("torchtitan", "gpt-neox", "llm-foundry", "nemo"), wanted=_JOBS, takes_loose=True),
        "run": Accepted(forms=(), wanted="the folder of a run, which weftwork run wrote"),
        "fabric": Accepted(forms=("fabric", "graphml", "xml"), wanted="a fabric as a .json or .graphml file"),
        "measurements": Accepted(
            forms=("nccl-tests",), wanted="a table (CSV) with measured rows, or output of nccl-tests", takes_loose=True
        ),
        "model": Accepted(forms=("model", "deepspeed"), wanted="the config.json of a model of Hugging Face"),
        "constants": Accepted(
            forms=("constants",), wanted="a TOML file of constants that weftwork calibrate wrote", takes_loose=True
        ),
        "script": Accepted(
            forms=("scenario",), wanted="a script of weftwork rdma peer in YAML that begins with `schema: 1`"
        ),
    }
)


def form_of(raw: bytes, name: str = "") -> FileForm | None:
    r"""The form of a file; None where no form fits.

    Parameters
    ----------
    raw : its first bytes
    name : of the file

    Examples
    --------
    >>> form_of(b"\x7fELF\x02").title, form_of(b"hello") is None
    ('a program (ELF)', True)
    """
    head = FileHead(raw=raw[:HEAD_BYTES], suffix=Path(name).suffix.lower() if "\0" not in name else "")
    return next((form for form in forms() if form.fits(head)), None)


def looks_like(form: FileForm, name: str) -> str:
    r"""What a file looks like, and what reads it.

    Examples
    --------
    >>> looks_like(form_of(b"PK\x03\x04"), "a.zip")
    'this looks like a zip archive: unpack it first'
    """
    return f"this looks like {form.title}: {form.hint.replace('FILE', name)}"


def refuse_foreign(source: str, raw: bytes, reader: Reader, *, path: str = "file") -> None:
    """Refuse a file of a form that this reader does not take.

    Parameters
    ----------
    source : the file, as errors call it
    raw : its bytes
    reader : of the file
    path : what the mistake calls the file

    Raises
    ------
    ConfigError : the form is another one; names it, what reads it, and what is taken here
    """
    form, accepted = form_of(raw, source), ACCEPTED[reader]
    if form is None or accepted.takes(form):
        return
    text = f"{looks_like(form, Path(source).name)}; wanted {accepted.wanted}"
    raise ConfigError(source, [Mistake(path=path, text=text)])


def refuse_folder(folder: Path, reader: Reader, *, path: str = "file") -> None:
    """Refuse a folder where a file is wanted; does nothing for anything else.

    Raises
    ------
    ConfigError : says whether it is the folder of a run, and what is taken here
    """
    try:
        is_folder = folder.is_dir()
        is_run = is_folder and any((folder / name).is_file() for name in ("summary.json", "provenance.json"))
    except (OSError, ValueError):  # a name that the file system cannot hold
        return
    if not is_folder:
        return
    what = f"the folder of a run: `weftwork report {folder}` reads it" if is_run else "a folder"
    text = f"cannot be read: it is {what}; wanted {ACCEPTED[reader].wanted}"
    raise ConfigError(str(folder), [Mistake(path=path, text=text)])

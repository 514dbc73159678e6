"""Scripts of the peer as files: reading with all mistakes at once, the shipped ones, and a JSON Schema.

Leaves out: what the keys mean, see `script` and `expectations`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.file_forms import refuse_foreign
from weftwork.base.findings import Findings
from weftwork.base.nearest import nearest
from weftwork.base.plain_file import read_plain
from weftwork.rdma.peer.script import PeerScript
from weftwork.spec.scenario.key_paths import is_null
from weftwork.spec.scenario.reader import Reader
from weftwork.spec.scenario.rows import rows_of
from weftwork.spec.scenario.schema import section_schema
from weftwork.spec.scenario.unknown_key import KnownKeys, unknown_key
from weftwork.spec.scenario.yaml_tree import MAX_BYTES, Mapping, read_tree, show

if TYPE_CHECKING:
    from weftwork.rdma.peer.expectations import Expectation
    from weftwork.rdma.peer.script import PeerStep, RuleKeys

__all__ = ["SCENARIOS", "find_script", "parse_script", "peer_schema", "read_script", "scenario_names"]

SCENARIOS: Final = Path(__file__).parent / "scenarios"
_SUFFIX: Final = ".yaml"
# Keys of which a look at something needs one at least.
_NEEDED: Final = {
    "packets": ("least", "most", "not_before", "within", "not_before_timeouts", "within_timeouts"),
    "rate": ("share_least", "share_most"),
    "counter": ("least", "most"),
    **dict.fromkeys(("statuses", "received", "peer-statuses"), ("are",)),
    **dict.fromkeys(("state", "memory", "peer-memory"), ("is",)),
    **dict.fromkeys(("value", "fetched", "peer-value"), ("values",)),
}
_LIMITS: Final = ("not_before", "within", "not_before_timeouts", "within_timeouts")
_MOST_BYTES: Final = 1 << 26  # chosen: 64 MiB, that both ends hold
_MOST_REQUESTS: Final = 10_000  # chosen: fewer than a send queue takes
_MEMORY: Final = ("unchanged", "written")


def scenario_names() -> list[str]:
    """Names of the shipped scenarios, sorted."""
    return sorted(path.stem for path in SCENARIOS.glob(f"*{_SUFFIX}"))


def find_script(given: str) -> Path:
    """File of a shipped scenario by its name, or a user's file.

    Raises
    ------
    ConfigError : it is neither; with the nearest name
    """
    names = scenario_names()
    if given in names:
        return SCENARIOS / f"{given}{_SUFFIX}"
    path = Path(given)
    if path.suffix in {_SUFFIX, ".yml"} or "/" in given or path.exists():
        return path
    text = f"found '{given}', wanted a file such as mine.yaml or a name that weftwork rdma peer --list prints"
    raise ConfigError("--script", [Mistake(path="--script", text=text, fix=nearest(given, names))])


def read_script(path: Path) -> PeerScript:
    """Read a script.

    Raises
    ------
    ConfigError : the file cannot be read, or has mistakes; with all of them, each with its line
    """
    try:
        raw = read_plain(path, MAX_BYTES + 1)
        refuse_foreign(str(path), raw, "script")
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(str(path), [Mistake(path="file", text=f"cannot be read: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), [Mistake(path="file", text="is not UTF-8 text")]) from error
    return parse_script(text, str(path))


def parse_script(text: str, label: str) -> PeerScript:
    """Read the text of a script.

    Parameters
    ----------
    text : YAML
    label : what messages call it

    Raises
    ------
    ConfigError : with all mistakes
    """
    findings = Findings(source=label)
    root = read_tree(text, findings)
    if root is None:
        findings.refuse()
    if not isinstance(root, Mapping):
        found = "an empty file" if root is None or is_null(root) else show(root)
        wanted = "wanted a mapping that begins with schema: 1"
        raise ConfigError(label, [Mistake(path="file", text=f"found {found}, {wanted}"), *findings.mistakes])
    reader = _ScriptReader(known={}, directory=Path(), check_parameters=None, findings=findings)
    script: PeerScript = reader.section(root, "", PeerScript)
    _check(script, reader)
    findings.refuse()
    return script


class _ScriptReader(Reader):
    """A reader whose hints about unknown keys know scripts alone."""

    def _unknown(self, key: str, path: str, keys: list[str], others: object) -> None:
        del others  # no section of a script has a choice that brings keys
        self.wrong(path, *unknown_key(key, path, keys, KnownKeys()))


def _check(script: PeerScript, reader: Reader) -> None:
    """Check keys against each other."""
    if not script.expect and reader.is_sound("expect"):
        reader.wrong("expect", "missing, wanted one expectation at least: without it nothing can fail")
    if reader.is_sound("end"):
        _check_sizes(script, reader)
    is_idle = script.end.does == "nothing" and not script.peer and all(rule.do != "disconnect" for rule in script.rules)
    if is_idle and reader.is_sound("end", "end.does", "peer", "rules"):
        reader.wrong(
            "end.does", "found nothing, and no requests of the peer, wanted one of both: who ends the connection?"
        )
    for index, rule in enumerate(script.rules):
        if reader.is_sound(f"rules.{index}", f"rules.{index}.do"):
            _check_rule(rule, f"rules.{index}", reader)
    for index, step in enumerate(script.peer):
        if reader.is_sound(f"peer.{index}", f"peer.{index}.do"):
            _check_step(step, script, f"peer.{index}", reader)
    for index, expectation in enumerate(script.expect):
        if reader.is_sound(f"expect.{index}", f"expect.{index}.see"):
            _check_expectation(expectation, f"expect.{index}", reader)


def _check_sizes(script: PeerScript, reader: Reader) -> None:
    """Bound what one script may take of memory and of a send queue."""
    end = script.end
    total_bytes = end.times * end.size_bytes
    if reader.is_sound("end.size", "end.times") and total_bytes > _MOST_BYTES:
        reader.wrong("end.times", f"found {total_bytes:,} bytes in total, wanted at most {_MOST_BYTES:,}")
    requests = sum(step.times for step in script.peer)
    if reader.is_sound("peer") and requests > _MOST_REQUESTS:
        reader.wrong("peer", f"found {requests:,} requests in total, wanted at most {_MOST_REQUESTS:,}")


def _check_rule(rule: RuleKeys, path: str, reader: Reader) -> None:
    if rule.do == "set" and rule.fields is None:
        reader.wrong(f"{path}.set", "missing, wanted the fields to set, such as {key: wrong}")
    if rule.do == "answer" and rule.answer is None:
        reader.wrong(f"{path}.answer", "missing, wanted the answer, such as {kind: rnr-nak, timer: 12}")
    if rule.do == "inject" and (rule.answer is None) == (rule.fields is None):
        found = "neither" if rule.answer is None else "both"
        reader.wrong(path, f"found {found} of answer and set, wanted one of them: the packet to inject")
    if rule.do == "inject" and rule.fields is not None and rule.fields.packet is None:
        reader.wrong(f"{path}.set.packet", "missing, wanted the opcode of the packet to inject, such as write-only")
    if rule.fields is not None and rule.do not in {"set", "inject"}:
        reader.wrong(f"{path}.set", f"means nothing with do: {rule.do}, only with set or inject")
    if rule.answer is not None and rule.do not in {"answer", "inject"}:
        reader.wrong(f"{path}.answer", f"means nothing with do: {rule.do}, only with answer or inject")
    if rule.do == "answer" and rule.sender == "peer":
        reader.wrong(f"{path}.from", "found 'peer', wanted 'end': the peer answers packets of the end")


def _check_step(step: PeerStep, script: PeerScript, path: str, reader: Reader) -> None:
    if step.do == "inject" and (step.fields is None or step.fields.packet is None):
        reader.wrong(f"{path}.set.packet", "missing, wanted the opcode of the packet to inject, such as write-only")
    if step.fields is not None and step.do != "inject":
        reader.wrong(f"{path}.set", f"means nothing with do: {step.do}; a rule sets fields of such packets")
    if step.do in {"write", "read", "fetch-add"} and script.end.offers_bytes is None and reader.is_sound("end.offers"):
        reader.wrong("end.offers", f"missing, wanted the memory for the peer's {step.do}, such as 4KiB")


def _check_expectation(one: Expectation, path: str, reader: Reader) -> None:
    needed = _NEEDED[one.see]
    keys = {row.key: name for name, row in rows_of(type(one)).items()}
    values = {key: getattr(one, keys[key]) for key in needed}
    if all(value is None for value in values.values()) and reader.is_sound(*(f"{path}.{key}" for key in needed)):
        reader.wrong(path, f"found none of {', '.join(needed)}, wanted one at least with see: {one.see}")
    is_about_memory = one.see in {"memory", "peer-memory"}
    if one.state is not None and (one.state in _MEMORY) is not is_about_memory:
        wanted = "unchanged or written" if is_about_memory else "a state such as RTS or ERR"
        reader.wrong(f"{path}.is", f"found '{one.state}' with see: {one.see}, wanted {wanted}")
    if one.after is None:
        for key in _LIMITS:
            if getattr(one, keys[key]) is not None:
                reader.wrong(f"{path}.after", f"missing, wanted the packet that {key} counts from")
                break
        if one.see == "rate":
            reader.wrong(f"{path}.after", "missing, wanted the packet that divides the two windows")
    elif one.see not in {"packets", "rate"}:
        reader.wrong(f"{path}.after", f"means nothing with see: {one.see}, only with packets or rate")


def peer_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a script, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Weftwork script of an RDMA peer",
        **section_schema(PeerScript),
    }

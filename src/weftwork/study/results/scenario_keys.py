"""Keys of resolved scenarios and their texts, as comparisons of runs set them side by side.

Leaves out: which of them differ (`weftwork.study.results.compare_runs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.store.runs import Run

__all__ = ["flat_keys", "tell_files_apart"]

_DIGITS: Final = 12  # chosen: tells two files apart


def flat_keys(tree: Any, path: str = "") -> dict[str, str]:  # noqa: ANN401 - whatever YAML holds
    """Dotted keys of a tree that YAML gives, and their texts."""
    if isinstance(tree, dict):
        found: dict[str, str] = {}
        for key, value in tree.items():
            found |= flat_keys(value, f"{path}.{key}" if path else str(key))
        return found
    if isinstance(tree, list) and any(isinstance(item, dict) for item in tree):
        return {
            key: text for index, item in enumerate(tree) for key, text in flat_keys(item, f"{path}.{index}").items()
        }
    return {path: str(tree).lower() if isinstance(tree, bool) else str(tree)}  # as YAML has it


def _hashes(run: Run) -> dict[str, str]:
    """Hash of each file of the user's own, by its key."""
    return {key: str(one["hash"]) for key, one in run.provenance["files"].items()}


def tell_files_apart(keys: Sequence[dict[str, str]], runs: Sequence[Run]) -> None:
    """Put the hash behind a file name with several contents.

    Run folders name their own copies, so that two files of one name would count as equal.

    Parameters
    ----------
    keys : of each run's scenario, by `flat_keys`; changed in place
    runs : the runs
    """
    hashes = [_hashes(run) for run in runs]
    for key in dict.fromkeys(key for own in hashes for key in own):
        # of a policy with parameters the file stands below its key
        ats = [key if key in own else f"{key}.file" for own in keys]
        named: dict[str, set[str]] = {}
        for own, at, known in zip(keys, ats, hashes, strict=True):
            if key in known and at in own:
                named.setdefault(own[at], set()).add(known[key])
        for own, at, known in zip(keys, ats, hashes, strict=True):
            if key in known and at in own and len(named[own[at]]) > 1:
                own[at] += f" (SHA-256 {known[key][:_DIGITS]})"

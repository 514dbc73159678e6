"""Seeds that failed are kept with their commit, and run first."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.kept_seeds import in_order, keep_seed, kept_first, kept_seeds


def test_a_seed_that_failed_is_run_first_and_once(tmp_path: Path) -> None:
    file = tmp_path / "seeds.toml"
    assert in_order("fuzz", range(3), file) == [0, 1, 2]
    assert "fuzz 17 is kept" in keep_seed("fuzz", 17, path=file)
    assert "fuzz 1 is kept" in keep_seed("fuzz", 1, path=file)
    keep_seed("soak", 5, "torn", path=file)
    assert in_order("fuzz", range(3), file) == [17, 1, 0, 2]
    assert [(seed.number, seed.family) for seed in kept_seeds("soak", file)] == [(5, "torn")]
    assert "has fuzz 17 already" in keep_seed("fuzz", 17, path=file)
    assert all(seed.commit for seed in kept_seeds("fuzz", file))


def test_a_wrong_entry_is_told(tmp_path: Path) -> None:
    file = tmp_path / "seeds.toml"
    file.write_text('[[seed]]\nof = "fuzz"\nseed = 3\ncommit = "a"\n', encoding="utf-8")
    with pytest.raises(ValueError, match="an entry has the keys commit, of, seed; wanted commit, family, number, of"):
        kept_seeds("fuzz", file)


def test_the_file_of_the_suite_is_right() -> None:
    for of in ("fuzz", "soak", "kills"):
        assert [seed for seed in kept_seeds(of) if not seed.commit] == []


def test_the_seed_at_which_a_law_fails_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "seeds.toml"

    def law() -> None:
        for seed in kept_first("test_laws", range(10), file):
            assert seed != 7, f"seed {seed}"

    with pytest.raises(AssertionError, match="seed 7"):
        law()
    assert [seed.number for seed in kept_seeds("test_laws", file)] == [7]
    assert next(kept_first("test_laws", range(10), file)) == 7
    assert list(kept_first("test_other", range(3), file)) == [0, 1, 2]

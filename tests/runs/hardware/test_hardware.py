"""The hardware catalogue: every figure has a source, what is not verified reaches the user, wrong names are helped."""

from __future__ import annotations

from pathlib import Path

from weftwork.base.catalogue import Catalogue
from weftwork.base.caveat import Caveat, caveats_by_subject


def test_a_catalogue_is_read_when_it_is_first_asked(tmp_path: Path) -> None:
    catalogue = Catalogue("thing", tmp_path / "later.toml")
    (tmp_path / "later.toml").write_text(
        '[one]\ntitle = "One"\nsize_bytes = { value = 8, source = "chosen: small", verified = false }\n',
        encoding="utf-8",
    )
    assert list(catalogue) == ["one"]
    assert catalogue["one"].caveats() == caveats_by_subject(
        [Caveat(subject="one.size_bytes", kind="chosen", text="8B, chosen: small")]
    )

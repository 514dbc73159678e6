"""Write `native/rows`: the C++ side of what crosses. Run from the root of the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from weftwork.base.errors import UsageError
from weftwork.engine.rows.headers import files

FOLDER: Final = Path("native/rows")

if __name__ == "__main__":
    if not FOLDER.is_dir():
        raise UsageError(f"found no folder {FOLDER}; run this from the root of the repository")
    for name, text in files().items():
        path = FOLDER / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

"""Files: only plain ones are read, and what is written is whole or not there."""

import os
import socket
import stat
from pathlib import Path

import pytest

from weftwork.base import whole_file
from weftwork.base.plain_file import read_ends, read_plain
from weftwork.base.whole_file import write_whole


def test_a_file_is_read_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("file")
    assert read_plain(tmp_path / "link") == b"0123456789"
    assert read_plain(tmp_path / "file", 3) == b"012"
    assert read_ends(tmp_path / "file", 4) == (b"0123", b"6789")
    assert read_ends(tmp_path / "file", 7) == (b"0123456", b"789")


@pytest.mark.parametrize("kind", ["a FIFO", "a socket", "a device", "Too many levels of symbolic links", "directory"])
def test_what_is_no_file_is_refused_and_not_waited_for(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    place = Path("place")
    match kind:
        case "a FIFO":
            os.mkfifo(place)
        case "a socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(place))
        case "a device":
            place.symlink_to("/dev/zero")
        case "directory":
            place.mkdir()
        case _:
            place.symlink_to("place")
    with pytest.raises(OSError, match=kind):
        read_plain(place)
    with pytest.raises(OSError, match=kind):
        read_ends(place, 4)


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode_and_its_links(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    write_whole(file, "one")
    file.chmod(0o640)
    link.symlink_to("file")
    write_whole(link, "größe")
    assert file.read_text(encoding="utf-8") == "größe"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [file, link]
    assert link.is_symlink()


def test_what_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    write_whole(file, "before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "half of it\ud800")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(whole_file.Path, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            write_whole(file, "after")
    assert file.read_text(encoding="utf-8") == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_what_is_no_file_is_written_as_it_is(tmp_path: Path) -> None:
    write_whole(Path("/dev/null"), "text")
    assert Path("/dev/null").is_char_device()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels"):
        write_whole(tmp_path / "loop", "text")
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, "text")

"""What tshark reads in a capture."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TSHARK = shutil.which("tshark")
USER_0 = 147  # the link type that `fields` tells tshark to read as native InfiniBand
NEEDS_TSHARK = pytest.mark.skipif(
    TSHARK is None, reason="tshark, the oracle, is not installed (Debian package 'tshark')"
)


def fields(file: Path, *names: str) -> list[list[str]]:
    """The values that tshark reads, a row for each packet."""
    options = ["-n", "-d", "udp.port==4791,infiniband", "--disable-protocol", "rpcordma"]
    # version 4.0 does not know the link type of native InfiniBand; the first of those left to users is told to be it
    options += ["-o", 'uat:user_dlts:"User 0 (DLT=147)","infiniband","0","","0",""']
    options += ["-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]
    options += [word for name in (*names, "_ws.malformed") for word in ("-e", name)]
    answer = subprocess.run([str(TSHARK), "-r", str(file), *options], capture_output=True, text=True, check=True)
    rows = [line.split("|") for line in answer.stdout.splitlines()]
    assert [row[-1] for row in rows] == [""] * len(rows), "tshark finds it malformed"
    return [row[:-1] for row in rows]


def number(name: str, value: str) -> int:
    """Number in a value of tshark, which prints some as bytes."""
    return int(value, 16 if name in {"immdt", "ieth"} else 0)


def details(file: Path) -> str:
    """All that tshark prints about a capture."""
    options = ["-n", "-V", "--disable-protocol", "rpcordma"]
    return subprocess.run([str(TSHARK), "-r", str(file), *options], capture_output=True, text=True, check=True).stdout

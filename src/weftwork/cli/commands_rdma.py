"""Names and options of ``weftwork rdma``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weftwork.cli.options import Json

__all__ = ["rdma"]

rdma = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Use RDMA in software, and explain its packets.")


@rdma.command("decode")
def _rdma_decode(
    *,
    file: Annotated[Path, typer.Argument(help="Capture of packets, as pcapng or pcap.")],
    limit: Annotated[int, typer.Option(min=0, help="Number of rows in the table of packets.")] = 40,
    is_noted: Annotated[bool, typer.Option("--noted", help="Show only unusual packets in the table.")] = False,
    as_json: Json = False,
) -> None:
    """Explain a capture packet by packet, with retransmissions and reasons."""
    from weftwork.cli.rdma_decode import decode

    decode(file, limit=limit, is_noted=is_noted, as_json=as_json)

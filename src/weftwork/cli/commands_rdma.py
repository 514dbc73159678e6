"""Names and options of ``weftwork rdma``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weftwork.cli.commands_rdma_tools import perf_command, ping_command, show_command
from weftwork.cli.options import Json, NoUserCode, Settings

__all__ = ["rdma"]

_TRUST = "The programs run with all your rights, as if you started them yourself."

rdma = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Use RDMA in software, and explain its packets.",
)


rdma.command("perf")(perf_command)
rdma.command("ping")(ping_command)
rdma.command("show")(show_command)


@rdma.command("decode")
def _rdma_decode(
    *,
    file: Annotated[Path, typer.Argument(help="Capture of packets, as pcapng or pcap.")],
    limit: Annotated[int, typer.Option(min=0, help="Number of rows in the table of packets.")] = 40,
    is_noted: Annotated[bool, typer.Option("--noted", help="Show only unusual packets in the table.")] = False,
    as_json: Json = False,
) -> int:
    """Explain a capture packet by packet, with retransmissions and reasons."""
    from weftwork.cli.rdma_decode import decode

    return decode(file, limit=limit, is_noted=is_noted, as_json=as_json)


@rdma.command("simulate", epilog=_TRUST)
def _rdma_simulate(  # noqa: PLR0913 - the options, all by name
    *,
    file: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario or fabric, a YAML file.")],
    programs: Annotated[
        list[str],
        typer.Argument(metavar="PROGRAM...", help="HOST:FILE of each program, with its arguments in quotes."),
    ],
    runs_job: Annotated[
        bool, typer.Option("--traffic", help="Run the traffic of the scenario as well, between other hosts.")
    ] = False,
    addresses: Annotated[
        list[str] | None,
        typer.Option("--address", metavar="IP=HOST", help="Host that a program means by an address; may be repeated."),
    ] = None,
    capture: Annotated[Path | None, typer.Option(help="Write the packets of a host as pcapng.")] = None,
    capture_host: Annotated[
        int | None,
        typer.Option(min=0, metavar="HOST", help="Host to capture at; by default the first program's."),
    ] = None,
    settings: Settings = None,
    no_user_code: NoUserCode = False,
    as_json: Json = False,
) -> None:
    """Run RDMA programs unchanged on a simulated fabric, in virtual time."""
    from weftwork.cli.rdma_simulate import simulate

    code = simulate(
        file,
        programs=programs,
        runs_job=runs_job,
        addresses=addresses,
        capture=capture,
        capture_host=capture_host,
        settings=settings,
        user_code=not no_user_code,
        as_json=as_json,
    )
    raise typer.Exit(code)


@rdma.command("compare-tcp")
def _rdma_compare_tcp(
    *,
    is_quick: Annotated[
        bool, typer.Option("--quick", help="Measure few sizes in short rounds, in some seconds instead of a minute.")
    ] = False,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Show a measurement that --json has printed; measure nothing."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="Write the page; a name that ends in .svg gets the picture."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure TCP sockets and the software NIC, next to cited hardware."""
    from weftwork.cli.rdma_compare_tcp import compare_tcp

    compare_tcp(is_quick=is_quick, source=source, out=out, as_json=as_json)


@rdma.command("peer")
def _rdma_peer(  # noqa: PLR0913 - the options, all by name
    *,
    script: Annotated[
        str | None, typer.Option(metavar="FILE", help="Script of the peer, a YAML file or the name of a shipped one.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Address of this machine; 127.0.0.1, or with --connect the usual one.")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port of the connection manager.")] = 7471,
    connect_to: Annotated[
        str | None,
        typer.Option("--connect", metavar="ADDRESS", help="Be the other end, on Weftwork's NIC, of the peer there."),
    ] = None,
    limit: Annotated[str, typer.Option(help="Longest time, with the wait for the connection.")] = "60s",
    is_self_test: Annotated[
        bool, typer.Option("--self-test", help="Run the script, or all shipped ones, against Weftwork's own NIC.")
    ] = False,
    is_list: Annotated[bool, typer.Option("--list", help="List the shipped scripts.")] = False,
    shown: Annotated[str | None, typer.Option("--show", metavar="NAME", help="Print the text of a script.")] = None,
    is_schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of scripts, for editors.")] = False,
    has_packets: Annotated[bool, typer.Option("--packets", help="Print the packets that the peer saw, too.")] = False,
    as_json: Json = False,
) -> None:
    """Be a peer that loses, changes and refuses packets by a script, and judge the reaction of the other end."""
    from weftwork.base.errors import ConfigError, Mistake
    from weftwork.cli.rdma_peer import list_scripts, print_schema, run_peer, run_self_test, show_script

    if is_list:
        list_scripts(as_json=as_json)
    elif shown is not None:
        show_script(shown)
    elif is_schema:
        print_schema()
    elif is_self_test:
        raise typer.Exit(run_self_test(script, has_packets=has_packets, as_json=as_json))
    elif script is None:
        text = "missing, wanted a script: a file, or a name that --list prints"
        raise ConfigError("weftwork rdma peer", [Mistake(path="--script", text=text)])
    else:
        raise typer.Exit(
            run_peer(
                script,
                address=address,
                port=port,
                connect_to=connect_to,
                limit=limit,
                has_packets=has_packets,
                as_json=as_json,
            )
        )

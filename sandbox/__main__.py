"""`python -m sandbox`: serve the exchange, or talk to one that runs.

python -m sandbox serve --port 8765 --now 2026-11-17T18:30
python -m sandbox faults set daily http_500 --times 2
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from domain.shared.clock import machine_clock, stopped_at
from domain.shared.error import InvalidInput, PerennialError
from sandbox.accounts import ACCOUNTS, Account
from sandbox.clock import parse_moment
from sandbox.exchange import SEED, Exchange
from sandbox.faults import EVERY_API, KINDS, load_script
from sandbox.server import DEFAULT_PORT, SandboxServer

_LOOK_SECONDS = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except PerennialError as error:
        sys.stderr.write(f"sandbox: {error.message}" + (f" ({error.remedy})\n" if error.remedy else "\n"))
        return 1


# Serving --------------------------------------------------------------------------------------


def _serve(options: argparse.Namespace) -> int:
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.WARNING, format="%(name)s: %(message)s"
    )
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    clock = stopped_at(parse_moment(options.now)) if options.now else machine_clock
    server = SandboxServer(
        Exchange(options.seed),
        clock=clock,
        host=options.host,
        port=options.port,
        accounts=(*ACCOUNTS, *(_account(text) for text in options.token)),
        faults=load_script(options.script) if options.script else (),
        gzip=options.gzip,
    )
    with server:
        if options.port_file:
            _publish(options.port_file, server.port)
        sys.stderr.write(f"sandbox: listening on {server.url}\n")
        sys.stderr.flush()
        while not (stop.wait(_LOOK_SECONDS) or _unwanted(server, options)):
            pass
    return 0


def _account(text: str) -> Account:
    """`TOKEN`, `TOKEN=POINTS` or `TOKEN=unlimited`."""
    token, _, points = text.partition("=")
    if points == "unlimited":
        return Account(token, 15_000, unlimited=True)
    if points and not points.isdigit():
        raise InvalidInput("the points of a --token are not a number", remedy="write --token TOKEN=2000")
    return Account(token, int(points or 15_000))


def _publish(path: Path, port: int) -> None:
    """Whoever waits for the file must never read half of it."""
    draft = path.with_name(path.name + ".tmp")
    draft.write_text(f"{port}\n")
    draft.replace(path)


def _unwanted(server: SandboxServer, options: argparse.Namespace) -> bool:
    idle = options.exit_when_idle is not None and server.idle_seconds > options.exit_when_idle
    return idle or (options.parent is not None and not _alive(options.parent))


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


# Talking to a server --------------------------------------------------------------------------


def _set_fault(options: argparse.Namespace) -> int:
    names = ("api", "kind", "day", "times", "rate", "seed", "keep", "seconds", "limit")
    rule = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    before = [one for one in _asked(options, "GET", "faults")["faults"] if one["api"] == options.api]
    if before:
        kinds = ", ".join(one["kind"] for one in before)
        sys.stderr.write(
            f"sandbox: {options.api} has {len(before)} already ({kinds}), looked at first and kept; "
            f"`faults clear --api '{options.api}'` removes them\n"
        )
    return _show(options, "POST", "faults", rule)


def _run_script(options: argparse.Namespace) -> int:
    rules = [rule.to_json() for rule in load_script(options.file)]
    return _show(options, "POST", "faults", rules)


def _clear_faults(options: argparse.Namespace) -> int:
    chosen = {name: getattr(options, name) for name in ("api", "kind") if getattr(options, name)}
    return _show(options, "DELETE", "faults" + (f"?{urlencode(chosen)}" if chosen else ""))


def _list_faults(options: argparse.Namespace) -> int:
    return _show(options, "GET", "faults")


def _list_calls(options: argparse.Namespace) -> int:
    return _show(options, "GET", "calls" + (f"?{urlencode({'api': options.api})}" if options.api else ""))


def _set_clock(options: argparse.Namespace) -> int:
    return _show(options, "POST", "clock", {"now": options.now})


def _show(options: argparse.Namespace, method: str, path: str, body: Any = None) -> int:
    """Sends one control request and writes its answer to stdout."""
    answer = _asked(options, method, path, body)
    sys.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")
    return 0


def _asked(options: argparse.Namespace, method: str, path: str, body: Any = None) -> dict[str, Any]:
    url = options.url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"{url!r} is not an http address", remedy="give --url http://127.0.0.1:8765")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/_sandbox/{path}", data=data, method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310
            answer: dict[str, Any] = json.load(reply)
            return answer
    except urllib.error.HTTPError as error:
        said = json.load(error)
        raise InvalidInput(str(said.get("error")), remedy=str(said.get("remedy", ""))) from None
    except OSError as error:
        raise InvalidInput(
            f"no sandbox answers at {url}: {error}",
            remedy="`perennial up` runs one, and so does every command that fetches; or give --url",
        ) from None


# Arguments ------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    # As people call it; `python -m sandbox` is how the command does.
    parser = argparse.ArgumentParser(
        prog="perennial sandbox", description="A market that speaks Tushare's protocol."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _serve_arguments(commands.add_parser("serve", help="run the server in the foreground"))
    remote = argparse.ArgumentParser(add_help=False)
    remote.add_argument("--url", default=f"http://127.0.0.1:{DEFAULT_PORT}", help="the running sandbox")
    faults = commands.add_parser("faults", help="make calls fail, or stop that").add_subparsers(
        required=True, metavar="ACTION"
    )
    _fault_arguments(faults, remote)
    calls = commands.add_parser("calls", parents=[remote], help="what has been asked")
    calls.add_argument("--api")
    calls.set_defaults(run=_list_calls)
    clock = commands.add_parser("clock", parents=[remote], help="stop the clock at a moment, or let it run")
    clock.add_argument("now", nargs="?", help="an ISO time, Shanghai's if it names no zone; none: run")
    clock.set_defaults(run=_set_clock)
    return parser


def _serve_arguments(serve: argparse.ArgumentParser) -> None:
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes a free one")
    serve.add_argument("--now", help="stop the clock at this ISO time, Shanghai's if it names no zone")
    serve.add_argument("--seed", type=int, default=SEED, help="another number, another market")
    serve.add_argument("--token", action="append", default=[], metavar="TOKEN[=POINTS|=unlimited]")
    serve.add_argument("--script", type=Path, help="a JSON or YAML list of faults to begin with")
    serve.add_argument("--port-file", type=Path, help="write the port here once it listens")
    serve.add_argument(
        "--exit-when-idle", type=float, metavar="SECONDS", help="leave after so long without a call"
    )
    serve.add_argument("--parent", type=int, metavar="PID", help="leave when this process has gone")
    serve.add_argument("--gzip", action="store_true", help="compress answers for clients that accept it")
    serve.add_argument("--verbose", action="store_true", help="one line per request")
    serve.set_defaults(run=_serve)


def _fault_arguments(faults: Any, remote: argparse.ArgumentParser) -> None:
    put = faults.add_parser("set", parents=[remote], help="add a rule")
    put.add_argument("api", help=f"an api, or {EVERY_API!r} for all")
    put.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    put.add_argument("--day", help="only answers that may hold rows of this day")
    put.add_argument("--times", type=int, help="strike so often, then never again")
    put.add_argument("--rate", type=float, help="strike this part of the calls")
    put.add_argument("--seed", type=int, help="which calls and rows are struck")
    put.add_argument("--keep", type=float, metavar="FRACTION", help="what partial_day leaves")
    put.add_argument("--seconds", type=float, help="how long a stall lasts")
    put.add_argument("--limit", type=int, help="the number named in rate and quota messages")
    put.set_defaults(run=_set_fault)
    script = faults.add_parser("script", parents=[remote], help="add the rules of a JSON or YAML file")
    script.add_argument("file", type=Path)
    script.set_defaults(run=_run_script)
    clear = faults.add_parser("clear", parents=[remote], help="remove rules (all, if none is named)")
    clear.add_argument("--api")
    clear.add_argument("--kind")
    clear.set_defaults(run=_clear_faults)
    faults.add_parser("list", parents=[remote], help="the rules in force").set_defaults(run=_list_faults)


if __name__ == "__main__":
    sys.exit(main())

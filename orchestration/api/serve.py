"""`perennial api`: the HTTP interface in the foreground, until Ctrl-C."""

from __future__ import annotations

import logging
import socket

from domain.shared.error import InvalidInput
from orchestration.cli.output import say
from orchestration.settings import Settings
from resources.http.address import is_loopback


def serve(settings: Settings) -> None:
    from orchestration.api.app import build_app
    from orchestration.api.server import ApiServer

    require_token(settings)
    logging.getLogger("perennial.api").setLevel(settings.log_level)
    server = ApiServer(build_app(settings))
    # Only now: who can connect is answered within moments.
    with listening(settings.api_host, settings.api_port) as listener:
        say(f"listening on http://{settings.api_host}:{listener.getsockname()[1]}")
        server.run(sockets=[listener])


def require_token(settings: Settings) -> None:
    """Raise if everybody on the network could call."""
    if not settings.api_has_token and not is_loopback(settings.api_host):
        raise InvalidInput(
            f"the API on {settings.api_host} has no token; everybody who reaches it could upload",
            reason_code="no_api_token",
            remedy="set PERENNIAL_API_TOKEN, or PERENNIAL_API_HOST to 127.0.0.1",
        )


def listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidInput(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            reason_code="port_in_use",
            remedy="set PERENNIAL_API_PORT and PERENNIAL_API_HOST to a free address",
        ) from None

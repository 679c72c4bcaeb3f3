"""The server's own endpoints, for tests and demonstrators: faults, calls, clock, health."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from domain.shared.error import InvalidInput
from sandbox.clock import MovableClock, parse_moment
from sandbox.endpoints import ENDPOINTS
from sandbox.faults import KINDS, SOURCES, Fault
from sandbox.service import Answer, Service

PREFIX = "/_sandbox/"


def answer(service: Service, clock: MovableClock, method: str, path: str, body: bytes) -> Answer:
    parts = urlsplit(path)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    try:
        handled = _handle(service, clock, f"{method} {parts.path.rstrip('/')}", query, body)
    except InvalidInput as error:
        return _json({"error": error.message, "remedy": error.remedy}, 400)
    if handled is None:
        return _json({"error": f"nothing answers {method} {parts.path}"}, 404)
    return _json(handled)


def _handle(
    service: Service, clock: MovableClock, what: str, query: dict[str, str], body: bytes
) -> dict[str, Any] | None:
    match what:
        case "GET " | "GET /_sandbox" | "GET /_sandbox/health":
            return {
                "sandbox": "tushare",
                "apis": sorted((*ENDPOINTS, *SOURCES)),
                "now": clock().isoformat(),
                "kinds": KINDS,
            }
        case "GET /_sandbox/faults":
            return _faults(service)
        case "POST /_sandbox/faults":
            raw = _read(body)
            service.faults.add(*(Fault.from_json(rule) for rule in (raw if isinstance(raw, list) else [raw])))
            return _faults(service)
        case "DELETE /_sandbox/faults":
            return {"removed": service.faults.clear(query.get("api"), query.get("kind"))}
        case "GET /_sandbox/calls":
            return service.calls.to_json(query.get("api"))
        case "DELETE /_sandbox/calls":
            service.calls.clear()
            return service.calls.to_json()
        case "POST /_sandbox/clock":
            return _set_clock(clock, _read(body))
        case "GET /_sandbox/clock":
            return {"now": clock().isoformat()}
    return None


def _faults(service: Service) -> dict[str, Any]:
    return {"faults": [rule.to_json() for rule in service.faults.in_force()]}


def _set_clock(clock: MovableClock, raw: object) -> dict[str, Any]:
    """`{"now": "2026-11-17T18:30"}` stops the clock there, `{"now": null}` lets it run again."""
    if not isinstance(raw, dict) or "now" not in raw:
        raise InvalidInput(
            "the clock needs a key now", remedy='send {"now": "2026-11-17T18:30"} or {"now": null}'
        )
    if raw["now"] is None:
        clock.run()
    else:
        clock.stop_at(parse_moment(str(raw["now"])))
    return {"now": clock().isoformat()}


def _read(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise InvalidInput("the body is not JSON", remedy="send a JSON object or a list of them") from None


def _json(value: dict[str, Any], status: int = 200) -> Answer:
    return Answer(orjson.dumps(value), status)

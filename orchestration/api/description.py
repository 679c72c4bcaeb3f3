"""The OpenAPI document: FastAPI's, with every error that can come and who may call, for every route alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from orchestration.api.access import OPEN_PATHS, READ_METHODS
from orchestration.api.problem import MEDIA_TYPE, Problem

_SCHEME = "token"
_MEANING = {
    400: "The request cannot be read.",
    401: "The bearer token is missing or wrong.",
    403: "The token may read only; or, without tokens, a page of a browser calls.",
    404: "There is nothing of this name.",
    409: "What is there now forbids it.",
    413: "The body is too large.",
    422: "A parameter or the body is wrong; `errors` or `problems` name what.",
    429: "Too many requests; `Retry-After` says how long to wait.",
    500: "A bug; the log of the API has the details under the id in `X-Request-ID`.",
    503: "Something outside does not work now; trying again may help.",
}
_DOCUMENT = """
Everything that the command `perennial` can do to work, pipelines and data, for programs.

Errors are `application/problem+json`. A write answers with `job_id` and `pipeline_id`, which work on every
other route. Moments are in UTC.
"""


def operation_id(route: APIRoute) -> str:
    """Return method and path in words, which stay when a function is renamed: clients are made of them."""
    words = re.findall(r"\w+", route.path_format)
    return "_".join([*sorted(route.methods or ()), *words]).lower()


def describe(app: FastAPI, *, needs_token: bool) -> None:
    """Make `app.openapi()` the whole document; it is made once, when it is first asked for."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                description=_DOCUMENT.strip(),
                routes=app.routes,
                tags=app.openapi_tags,
            )
            app.openapi_schema = _complete(document, needs_token=needs_token)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(document: dict[str, Any], *, needs_token: bool) -> dict[str, Any]:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own, which nobody answers
        schemas.pop(name, None)
    schemas["Problem"] = Problem.model_json_schema()
    components["securitySchemes"] = {_SCHEME: {"type": "http", "scheme": "bearer"}}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            reads, is_open = method.upper() in READ_METHODS, path in OPEN_PATHS
            given = {int(status) for status in operation["responses"] if status >= "400"}
            for status in given.union(_problems(path, reads=reads, is_open=is_open)):
                operation["responses"][str(status)] = {
                    "description": _described(operation, status),
                    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
            operation["responses"] = dict(sorted(operation["responses"].items()))
            if not is_open:
                wanted = {_SCHEME: ["read" if reads else "operate"]}
                operation["security"] = [wanted] if needs_token else [{}, wanted]
    return document


def _problems(path: str, *, reads: bool, is_open: bool) -> Iterator[int]:
    yield from (422, 429, 500, 503)
    if not is_open:
        yield from (401, 403)
    if "{" in path:
        yield 404
    if not reads:
        yield from (400, 409, 413)


def _described(operation: dict[str, Any], status: int) -> str:
    """What the author of the route says about this status, else what it means everywhere."""
    given = operation["responses"].get(str(status), {}).get("description", "")
    return _MEANING.get(status, "") if given in ("", "Validation Error") else given

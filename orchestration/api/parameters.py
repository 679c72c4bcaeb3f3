"""Refuses query names that a route does not have, names that are given twice, and NUL characters.

A misspelt name would otherwise be ignored: `instituion=other` would replace the data of `main`.
Postgres takes no text with a NUL in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.params import Query
from fastapi.routing import APIRoute

_NUL = "holds a NUL character"


async def require_good_parameters(request: Request) -> None:
    """A dependency of every route."""
    route = request.scope.get("route")
    given = request.query_params.multi_items() if request.url.query else []
    errors = [
        parameter_error("path", name, _NUL)
        for name, value in request.path_params.items()
        if "\0" in str(value)
    ]
    errors += [parameter_error("query", name, _NUL) for name, value in given if "\0" in name + value]
    if given and isinstance(route, APIRoute):
        errors += _wrong_names(route, [name for name, _ in given])
    if errors:
        raise RequestValidationError(errors)


def _wrong_names(route: APIRoute, given: list[str]) -> Iterator[dict[str, Any]]:
    known = _query_names(route)
    one_each = f"one each of {', '.join(known)}" if known else "this call has no query parameters"
    for name in dict.fromkeys(given):
        if name not in known:
            yield parameter_error("query", name, f"no parameter of this call: {one_each}")
        elif given.count(name) > 1 and not known[name]:
            yield parameter_error("query", name, "given more than once")


def _query_names(route: APIRoute) -> dict[str, bool]:
    """By name, whether it may be given several times."""
    fields = [field for field in get_flat_params(route.dependant) if isinstance(field.field_info, Query)]
    return {field.alias: _is_list(field.field_info.annotation) for field in fields}


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) in (list, tuple, set, frozenset) or any(
        _is_list(one) for one in get_args(annotation)
    )


def parameter_error(place: str, name: str, message: str) -> dict[str, Any]:
    """Return what is wrong with one parameter, for a `RequestValidationError`."""
    return {"type": "parameter", "loc": (place, name), "msg": message}

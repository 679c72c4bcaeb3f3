"""Refuses query names that a route does not have, or that are given twice.

A misspelt name would otherwise be ignored: `instituion=other` would replace the data of `main`.
"""

from __future__ import annotations

from typing import Any, get_args, get_origin

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.params import Query
from fastapi.routing import APIRoute


async def require_known_names(request: Request) -> None:
    """A dependency of every route."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or not request.url.query:
        return
    known = _query_names(route)
    given = [name for name, _ in request.query_params.multi_items()]
    one_each = f"one each of {', '.join(known)}" if known else "this call has no query parameters"
    errors: list[dict[str, Any]] = []
    for name in dict.fromkeys(given):
        if name not in known:
            errors.append(_error(name, f"no parameter of this call: {one_each}"))
        elif given.count(name) > 1 and not known[name]:
            errors.append(_error(name, "given more than once"))
    if errors:
        raise RequestValidationError(errors)


def _query_names(route: APIRoute) -> dict[str, bool]:
    """By name, whether it may be given several times."""
    fields = [field for field in get_flat_params(route.dependant) if isinstance(field.field_info, Query)]
    return {field.alias: _is_list(field.field_info.annotation) for field in fields}


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) in (list, tuple, set, frozenset) or any(
        _is_list(one) for one in get_args(annotation)
    )


def _error(name: str, message: str) -> dict[str, Any]:
    return {"type": "query_name", "loc": ("query", name), "msg": message}

"""Answers as bytes: encoded once, kept while there is room."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import orjson

from sandbox import rows
from sandbox.endpoints import Field
from sandbox.market.market import Columns
from sandbox.messages import Refusal

Made = tuple[bytes, int]
"""An encoded answer without its request id, and its number of rows."""

_ROOM = 64 * 1024 * 1024


def encode_rows(fields: Sequence[Field], columns: Columns, has_more: bool) -> bytes:
    """Everything of a good answer behind its request id. NaN becomes null."""
    names = orjson.dumps([field.name for field in fields])
    more = b"true" if has_more else b"false"
    items = _items(fields, [columns[field.name] for field in fields])
    return b"".join(
        (
            b'"code":0,"msg":"","data":{"fields":',
            names,
            b',"items":',
            items,
            b',"has_more":',
            more,
            b',"count":-1}}',
        )
    )


def _items(fields: Sequence[Field], columns: Sequence[np.ndarray]) -> bytes:
    if any(column.dtype == object for column in columns):
        return orjson.dumps(list(zip(*(column.tolist() for column in columns), strict=True)))
    decimals = [None if field.type in ("text", "day") else field.decimals for field in fields]
    return rows.encode(list(zip(columns, decimals, strict=True)))


def encode_refusal(refusal: Refusal) -> bytes:
    return orjson.dumps({"code": refusal.code, "msg": refusal.message, "data": None})[1:]


def envelope(request_id: str, tail: bytes) -> bytes:
    return b'{"request_id":"' + request_id.encode() + b'",' + tail


class Kept:
    """Encoded answers, the least recently used leaving first when their bytes exceed the room.

    One answer is made at a time: threads that compute together only wait for each other, and two that
    want the same answer make it once.
    """

    def __init__(self, room: int = _ROOM) -> None:
        self._room = room
        self._size = 0
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._answers: OrderedDict[Hashable, Made] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        found = self._find(key)
        if found is not None:
            return found
        with self._making:
            found = self._find(key)
            if found is not None:
                return found
            made = make()
        self._keep(key, made)
        return made

    def _find(self, key: Hashable) -> Made | None:
        with self._lock:
            found = self._answers.get(key)
            if found is not None:
                self._answers.move_to_end(key)
            return found

    def _keep(self, key: Hashable, made: Made) -> None:
        with self._lock:
            if key in self._answers:
                return
            self._answers[key] = made
            self._size += len(made[0])
            while self._size > self._room:
                _, (body, _) = self._answers.popitem(last=False)
                self._size -= len(body)

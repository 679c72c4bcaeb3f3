"""Trouble on demand: rules that say which calls fail, how, and for how long.

Rules are looked at in their order. A rule that does not merely change data ends the search, so a list of
rules with `times` is a script: two server errors, then a stall, then a truncated answer, then peace.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from domain.shared.error import InvalidInput
from sandbox import messages
from sandbox.endpoints import ENDPOINTS
from sandbox.market import noise
from sandbox.market.market import Columns
from sandbox.messages import Refusal
from sandbox.query import Query

HTTP_KINDS = {
    **{f"http_{status}": status for status in (401, 403, 404, 429)},
    **{f"http_{status}": status for status in (500, 502, 503)},
}
BROKEN_KINDS = frozenset({"reset", "truncate", "html"})
DATA_KINDS = frozenset({"empty_day", "partial_day", "revised_day", "duplicate_rows"})
REFUSAL_KINDS = frozenset(
    {
        *("rate_limit", "rate_limit_by_name", "hour_quota", "day_quota"),
        *("bad_token", "no_permission", "no_permission_by_name"),
    }
)
REFERENCE_KINDS = frozenset(
    {
        *("half_page", "wrong_total", "duplicate_ids", "malformed", "xml_bomb"),
        *("changed", "reformatted", "growing"),
    }
)
"""What only the sources of references do."""
SOURCES = ("atlas", "herald")
ANY = "any"
WAYS = (
    *("http_500", "http_503", "html", "truncate", "reset"),
    *("empty_day", "partial_day", "rate_limit"),
)
"""How a call struck by `any` fails: one of these, drawn anew for every call."""
KINDS = tuple(
    sorted({*HTTP_KINDS, *BROKEN_KINDS, *DATA_KINDS, *REFUSAL_KINDS, *REFERENCE_KINDS, "stall", ANY})
)

EVERY_API = "*"
_REVISED_SHARE = 0.05
_DUPLICATED_SHARE = 0.01


@dataclass(frozen=True)
class Fault:
    """One rule.

    `day` limits it to answers that may hold rows of that day. `times` counts down; `rate` makes it strike
    a part of the calls, the same ones for the same `seed`. `keep` is what partial_day leaves, `seconds`
    how long a stall lasts, `limit` the number named in rate and quota messages. `seed` also chooses which
    rows a data fault touches. `any` is another of the `WAYS` each time.
    """

    api: str
    kind: str
    day: date | None = None
    times: int | None = None
    rate: float = 1.0
    seed: int = 0
    keep: float = 0.5
    seconds: float = 60.0
    limit: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidInput(
                f"unknown kind of fault {self.kind!r}", remedy=f"use one of {', '.join(KINDS)}"
            )
        if self.api not in (EVERY_API, *ENDPOINTS, *SOURCES):
            known = ", ".join(sorted((*ENDPOINTS, *SOURCES)))
            raise InvalidInput(
                f"unknown api {self.api!r}", remedy=f"use one of {known}, or {EVERY_API} for all"
            )
        if self.kind in REFERENCE_KINDS and self.api not in SOURCES:
            raise InvalidInput(
                f"{self.api} has no fault {self.kind}", remedy=f"use it of {' or '.join(SOURCES)}"
            )
        if self.kind in DATA_KINDS and self.api in SOURCES:
            fitting = ", ".join(sorted(REFERENCE_KINDS))
            raise InvalidInput(f"{self.api} has no fault {self.kind}", remedy=f"use one of {fitting}")
        if not (0.0 <= self.rate <= 1.0 and 0.0 <= self.keep <= 1.0 and self.seconds >= 0.0):
            raise InvalidInput(
                "rate and keep must lie between 0 and 1 and seconds must not be negative",
                remedy="correct the fault's numbers",
            )

    @classmethod
    def from_json(cls, raw: object) -> Fault:
        if not isinstance(raw, Mapping):
            raise InvalidInput(
                "a fault must be an object with api and kind", remedy='send {"api": "daily", "kind": "stall"}'
            )
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(raw) - known):
            raise InvalidInput(f"unknown keys {unknown} in a fault", remedy=f"use {', '.join(sorted(known))}")
        values: dict[str, Any] = {name: value for name, value in raw.items() if value is not None}
        try:
            typed = {name: _TYPES[name](value) for name, value in values.items()}
            return cls(**{"api": str(values["api"]), "kind": str(values["kind"]), **typed})
        except KeyError as error:
            raise InvalidInput(f"a fault needs {error.args[0]!r}", remedy="name api and kind") from None
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"a fault has a wrong value: {error}", remedy="correct the value") from None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "day": self.day.isoformat() if self.day else None}

    @property
    def changes_data(self) -> bool:
        return self.kind in DATA_KINDS or self.kind in REFERENCE_KINDS

    def touches(self, query: Query) -> bool:
        if self.api not in (EVERY_API, query.endpoint.name):
            return False
        return self.day is None or (query.endpoint.by_day and query.covers(self.day))

    def refusal(self, api: str) -> Refusal:
        """What a caller of `api` gets."""
        made: Mapping[str, Callable[[], Refusal]] = {
            "rate_limit": lambda: messages.minute_limit(self.limit),
            "rate_limit_by_name": lambda: messages.minute_limit_by_name(api, self.limit),
            "hour_quota": lambda: messages.hour_quota(self.limit),
            "day_quota": lambda: messages.day_quota(self.limit),
            "bad_token": messages.bad_token,
            "no_permission": messages.no_permission,
            "no_permission_by_name": lambda: messages.no_permission_by_name(api),
        }
        return made[self.kind]()


def _day(value: object) -> date:
    if isinstance(value, date):
        return value
    text = str(value)
    return date.fromisoformat(text if "-" in text else f"{text[:4]}-{text[4:6]}-{text[6:]}")


_TYPES: Mapping[str, Callable[[Any], Any]] = {
    "api": str,
    "kind": str,
    "day": _day,
    "times": int,
    "rate": float,
    "seed": int,
    "keep": float,
    "seconds": float,
    "limit": int,
}


class Faults:
    """The rules in force. Every method is safe from any thread."""

    def __init__(self, rules: Iterable[Fault] = ()) -> None:
        self._lock = threading.Lock()
        self._rules: list[Fault] = list(rules)
        self._seen: list[int] = [0] * len(self._rules)
        self._asked: Counter[str] = Counter()

    def set(self, api: str, kind: str, **values: Any) -> Fault:
        """Adds a rule behind the others: `faults.set("daily", "http_500", times=2)`."""
        rule = Fault.from_json({"api": api, "kind": kind, **values})
        self.add(rule)
        return rule

    def add(self, *rules: Fault) -> None:
        with self._lock:
            self._rules += rules
            self._seen += [0] * len(rules)

    def clear(self, api: str | None = None, kind: str | None = None) -> int:
        """Removes the rules of an api and kind (all, if none is named) and says how many went."""
        with self._lock:
            kept = [
                (rule, seen)
                for rule, seen in zip(self._rules, self._seen, strict=True)
                if (api is not None and rule.api != api) or (kind is not None and rule.kind != kind)
            ]
            gone = len(self._rules) - len(kept)
            self._rules, self._seen = [rule for rule, _ in kept], [seen for _, seen in kept]
            return gone

    def in_force(self) -> tuple[Fault, ...]:
        with self._lock:
            return tuple(self._rules)

    def strike(self, query: Query) -> tuple[Fault, ...]:
        """The rules that hit this call, used up as they do: data rules, then at most one other."""
        struck: list[Fault] = []
        with self._lock:
            for n, rule in enumerate(self._rules):
                if rule.times == 0 or not rule.touches(query):
                    continue
                self._seen[n] += 1
                luck = self._luck(n, rule, query)
                if luck >= rule.rate:
                    continue
                if rule.times is not None:
                    self._rules[n] = replace(rule, times=rule.times - 1)
                hit = _one_way(rule, luck) if rule.kind == ANY else rule
                struck.append(hit)
                if not hit.changes_data:
                    break
        return tuple(struck)

    def _luck(self, n: int, rule: Fault, query: Query) -> float:
        """A number in [0, 1) for this call. Of `any` it depends on what is asked, and how often it was: calls
        of several threads come in any order."""
        if rule.kind != ANY:
            return _draw(rule.seed, rule.kind, self._seen[n]) if rule.rate < 1.0 else 0.0
        asked = " ".join(
            map(
                str,
                (query.endpoint.name, query.trade_date, query.start, query.end, query.choices, query.codes),
            )
        )
        self._asked[asked] += 1
        return _draw(rule.seed, asked, self._asked[asked])


def _draw(seed: int, what: str, call: int) -> float:
    return float(noise.uniform(noise.keys(seed, what, 0), call)[0])


def _one_way(rule: Fault, luck: float) -> Fault:
    """The fault that `any` is this time; a half answer has another half each time."""
    way = WAYS[int(luck / rule.rate * len(WAYS))]
    return replace(rule, kind=way, seed=int(luck * 2**31))


def load_script(path: Path) -> list[Fault]:
    """A JSON or YAML file holding a list of rules."""
    text = path.read_text()
    if path.suffix in {".yaml", ".yml"}:
        import yaml

        raw = yaml.safe_load(text)
    else:
        raw = json.loads(text)
    if not isinstance(raw, list):
        raise InvalidInput(
            f"{path} must hold a list of faults", remedy="write a list of objects with api and kind"
        )
    return [Fault.from_json(rule) for rule in raw]


def apply(rule: Fault, query: Query, columns: Columns) -> Columns:
    """The columns as a data fault shows them; which rows it touches depends on the row and seed alone."""
    count = len(next(iter(columns.values())))
    if count == 0:
        return columns
    touched = _rows_of_day(rule, query, columns, count)
    luck = _luck(rule, query, columns)
    if rule.kind == "empty_day":
        return _take(columns, np.flatnonzero(~touched))
    if rule.kind == "partial_day":
        return _take(columns, np.flatnonzero(~touched | (luck < rule.keep)))
    if rule.kind == "duplicate_rows":
        again = touched & (luck < max(_DUPLICATED_SHARE, _least(luck, touched)))
        return _take(columns, np.repeat(np.arange(count), 1 + again))
    return _revised(query, columns, touched & (luck < max(_REVISED_SHARE, _least(luck, touched))))


def _least(luck: np.ndarray, touched: np.ndarray) -> float:
    """A bar that at least one touched row passes."""
    return float(np.nextafter(luck[touched].min(), 2.0)) if touched.any() else 0.0


def _rows_of_day(rule: Fault, query: Query, columns: Columns, count: int) -> np.ndarray:
    if rule.day is None or not query.endpoint.by_day:
        return np.ones(count, dtype=bool)
    return np.asarray(columns["trade_date"].astype(str) == rule.day.strftime("%Y%m%d"))


def _luck(rule: Fault, query: Query, columns: Columns) -> np.ndarray:
    """A number in [0, 1) per row, from its code and day."""
    names = ("ts_code", "trade_date") if query.endpoint.by_day else (query.endpoint.fields[0].name,)
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    identity = np.array([noise.text_seed("|".join(row)) for row in rows], dtype=np.uint64)
    return np.asarray(noise.uniform(noise.keys(rule.seed, rule.kind, identity), 0))


def _revised(query: Query, columns: Columns, chosen: np.ndarray) -> Columns:
    """The chosen rows with the correctable numbers one percent higher, but as precise as before."""
    changed = dict(columns)
    for field in query.endpoint.fields:
        if field.name in query.endpoint.revised:
            values, scale = columns[field.name], float(10**field.decimals)
            changed[field.name] = np.where(chosen, np.rint(values * 1.01 * scale) / scale, values)
    return changed


def _take(columns: Columns, at: np.ndarray) -> Columns:
    return {name: values[at] for name, values in columns.items()}

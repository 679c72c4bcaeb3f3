"""The references of the made-up sources: the same for everybody at one moment, more as time goes on."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

_BEGIN = datetime(2026, 10, 1, tzinfo=UTC)
_SUBJECTS = ("glaciers", "river deltas", "peat bogs", "coral reefs", "urban heat", "soil carbon", "sea ice")
_METHODS = ("A survey of", "Remote sensing of", "Forty years of", "Modelling", "An archive of", "Notes on")
_PLACES = ("the Alps", "the Mekong", "Patagonia", "the Baltic", "Svalbard", "the Loess Plateau", "Åland")
_PEOPLE = ("A. Müller", "B. Okafor", "C. Nguyễn", "D. Łukasik", "E. García", "李 明")


@dataclass(frozen=True)
class Library:
    """One source: every `every` since the begin a reference appears; every ninth is revised 2 days later."""

    name: str
    every: timedelta

    def references(self, now: datetime) -> list[dict[str, Any]]:
        """Return everything that is published at a moment, newest first."""
        count = max(0, int((now - _BEGIN) / self.every) + 1)
        return [self._reference(number, now) for number in range(count, 0, -1)]

    def _reference(self, number: int, now: datetime) -> dict[str, Any]:
        draw = random.Random(f"{self.name}:{number}")  # noqa: S311 - a made-up library, the same each time
        published = _BEGIN + (number - 1) * self.every
        revised = published + timedelta(days=2)
        is_revised = number % 9 == 0 and revised <= now
        title = f"{draw.choice(_METHODS)} {draw.choice(_SUBJECTS)} in {draw.choice(_PLACES)}"
        subject = draw.choice(_SUBJECTS)
        return {
            "id": f"{self.name}-{number:05d}",
            "title": f"<i>{title}</i> (revised)" if is_revised else title,
            "url": f"https://{self.name}.example.org/references/{number}",
            "published_at": published.isoformat(),
            "updated_at": (revised if is_revised else published).isoformat(),
            "authors": draw.sample(_PEOPLE, draw.randint(1, 3)),
            "abstract": f"<p>On <b>{subject}</b> &amp; what is known of them.</p>",
            "pages": draw.randint(4, 40),
        }


ATLAS = Library("atlas", timedelta(hours=6))
HERALD = Library("herald", timedelta(hours=12))

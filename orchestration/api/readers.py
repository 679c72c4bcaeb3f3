"""What requests read with, kept between them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from orchestration.pipelines import PipelineReader
from orchestration.settings import Settings

KEPT_SECONDS = 60
"""No reader lives longer: a home may be restored from its backup."""


class Readers:
    """Readers that rest between requests: opening one costs more than most requests do."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._idle: list[tuple[float, PipelineReader]] = []

    @contextmanager
    def taken(self) -> Iterator[PipelineReader]:
        """A reader of this request alone."""
        opened, reader = time.monotonic(), PipelineReader(self._settings)
        with suppress(IndexError):
            kept = self._idle.pop()
            if opened - kept[0] < KEPT_SECONDS:
                opened, reader = kept
        try:
            yield reader
        finally:
            reader.rest()
            self._idle.append((opened, reader))

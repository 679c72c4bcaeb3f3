"""A sandbox on a real socket with the made-up sources, its clock stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.shared.clock import stopped_at
from resources.scraping.source import Source, SourceScraper, make_scraper
from sandbox.server import SandboxServer

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
Atlas = Callable[..., SourceScraper]
OF_ALL = {"total": "total", "etag_of_all": True}


@pytest.fixture
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer(clock=stopped_at(NOW)) as running:
        yield running


@pytest.fixture
def atlas(sandbox: SandboxServer) -> Atlas:
    """Makes scrapers of atlas, with other options than usual."""

    def make(**options: Any) -> SourceScraper:
        url = f"{sandbox.url}/references/atlas"
        return make_scraper(Source("atlas", "paged", url, options=options or OF_ALL))

    return make


@pytest.fixture
def herald(sandbox: SandboxServer) -> SourceScraper:
    return make_scraper(Source("herald", "rss", f"{sandbox.url}/references/herald.xml"))

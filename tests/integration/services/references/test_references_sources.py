"""How fresh each source of references is, from its first scrape to its silence."""

from __future__ import annotations

import pytest

from domain.shared.error import TransientResourceError
from services.references.findings import source_states
from services.references.service import ReferencesService
from services.references.sync import sync
from tests.integration.conftest import SettableClock
from tests.integration.services.references.fake_source import FakeScraper


def status(service: ReferencesService) -> str:
    [(source, state)] = source_states(service)
    assert source.source == "references.atlas"
    return state.status


def test_source_states__from_never_to_silent__follow_its_answers(
    service: ReferencesService, scraper: FakeScraper, clock: SettableClock
):
    assert status(service) == "never_ingested"
    scraper.put(a="one")
    sync(service, "atlas", by="test")
    assert status(service) == "healthy"
    clock.advance(hours=2)
    assert status(service) == "stale"
    clock.advance(days=7)
    assert status(service) == "error"
    scraper.error = TransientResourceError("the source is down")
    with pytest.raises(TransientResourceError):
        sync(service, "atlas", by="test")
    [(source, state)] = source_states(service)
    assert (state.status, state.reason) == ("error", source.last_error)
    scraper.error = None
    clock.advance(seconds=1)
    sync(service, "atlas", by="test")
    assert status(service) == "healthy"

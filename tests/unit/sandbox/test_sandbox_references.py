"""The made-up sources of references: the same at one moment, more as time goes on, faults on demand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from domain.shared.error import InvalidInput
from sandbox.calls import Calls
from sandbox.faults import Fault, Faults
from sandbox.references.service import ReferenceService

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


def service(now: datetime = NOW, faults: Faults | None = None) -> ReferenceService:
    return ReferenceService(lambda: now, faults or Faults(), Calls())


def total(now: datetime) -> int:
    found: int = orjson.loads(service(now).answer("/references/atlas", {}).body)["total"]
    return found


def test_answer__one_moment__is_the_same_bytes():
    for path in ("/references/atlas?page=3", "/references/herald.xml"):
        assert service().answer(path, {}).body == service().answer(path, {}).body


def test_answer__a_day_later__has_more():
    assert total(NOW + timedelta(days=1)) == total(NOW) + 4


@pytest.mark.parametrize("query", ["page=0", "page=-1", "page=x", "page=99999", "cursor=99999", "page=²"])
def test_answer__page_that_is_none__is_no_failure(query: str):
    assert service().answer(f"/references/atlas?{query}", {}).status == 200


def test_answer__unknown_source__is_404():
    assert service().answer("/references/other", {}).status == 404


def test_answer__fault_of_every_api__hits_the_sources_too():
    faults = Faults()
    faults.set("*", "http_503", times=1)
    references = service(faults=faults)
    assert references.answer("/references/atlas", {}).status == 503
    assert references.answer("/references/atlas", {}).status == 200


@pytest.mark.parametrize(("path", "kind"), [("atlas", "half_page"), ("herald.xml", "malformed")])
def test_answer__fault_and_a_caller_that_has_the_content__is_met_by_it(path: str, kind: str):
    faults = Faults()
    references = service(faults=faults)
    known = {"If-None-Match": references.answer(f"/references/{path}", {}).headers["ETag"]}
    assert references.answer(f"/references/{path}", known).status == 304
    faults.set(path.partition(".")[0], kind)
    assert references.answer(f"/references/{path}", known).status == 200


@pytest.mark.parametrize(("api", "kind"), [("daily", "half_page"), ("*", "growing"), ("atlas", "empty_day")])
def test_fault__that_the_api_cannot_have__is_refused(api: str, kind: str):
    with pytest.raises(InvalidInput, match=kind):
        Fault(api, kind)

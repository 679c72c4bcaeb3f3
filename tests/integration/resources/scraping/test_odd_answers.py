"""The scrapers against answers that real sources give: other shapes, other encodings, too much, too slow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from domain.shared.error import PerennialError
from resources.scraping import paged, rss
from resources.scraping.reference import NOTHING_READ, ScrapedReference
from resources.scraping.source import Source, make_scraper
from tests.integration.resources.http.wire_server import SECRET, Call, Reply, WireServer

ATOM = """<?xml version="1.0" encoding="{encoding}"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>冰川</title>
<entry><id>urn:1</id><title type="html">冰川 &lt;b&gt;融化&lt;/b&gt;</title><link href="https://a.example/1"/>
<published>2026-11-17T08:00:00+08:00</published><updated>2026-11-17T08:00:00+08:00</updated></entry></feed>"""
ITEM = {"id": 1, "title": "One", "published_at": "2026-11-17T08:00:00"}


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


def read(
    server: WireServer, kind: str = "paged", path: str = "items", **options: Any
) -> list[ScrapedReference]:
    scraper = make_scraper(Source("odd", kind, f"{server.url}/{path}", SECRET, options))
    return list(scraper.fetch(NOTHING_READ, full=False))


def failure(server: WireServer, kind: str = "paged", **options: Any) -> PerennialError:
    with pytest.raises(PerennialError) as error:
        read(server, kind, **options)
    assert SECRET not in f"{error.value.message} {error.value.remedy} {error.value!r}"
    return error.value


def by_path(answers: dict[str, Any]) -> Any:
    return lambda call: Reply(json.dumps(answers[call.path]).encode())


def test_fetch__list_at_the_top_without_next_or_total__ends_at_the_empty_page(server: WireServer):
    server.answer = by_path({"/items?page=1": [ITEM], "/items?page=2": []})
    [found] = read(server, items="")
    assert (found.id, found.published_at) == ("1", datetime(2026, 11, 17, 8, tzinfo=UTC))
    assert server.calls[0].headers["Authorization"] == f"Bearer {SECRET}"


def test_fetch__fields_deep_in_objects__are_found(server: WireServer):
    item = {
        "doi": "10.1/x",
        "attributes": {"name": "Deep", "on": 1763366400},
        "links": {"self": "https://a/1"},
    }
    server.answer = by_path({"/items?q=a&page=1": {"data": {"rows": [item]}, "meta": {"total": 1}}})
    [found] = read(
        server,
        path="items?q=a",
        items="data.rows",
        total="meta.total",
        id="doi",
        title="attributes.name",
        published="attributes.on",
        link="links.self",
    )
    assert (found.id, found.title, found.url) == ("10.1/x", "Deep", "https://a/1")
    assert found.published_at == datetime(2025, 11, 17, 8, tzinfo=UTC)


def test_fetch__next_is_an_address_of_the_source__is_followed(server: WireServer):
    server.answer = by_path(
        {
            "/items": {"items": [ITEM], "next": f"{server.url}/items?after=x%26y"},
            "/items?after=x%26y": {"items": [{**ITEM, "id": 2}], "next": None},
        }
    )
    assert [one.id for one in read(server, style="cursor")] == ["1", "2"]


def test_fetch__next_leads_to_another_server__is_refused_and_no_token_sent(server: WireServer):
    with WireServer() as other:
        server.answer = by_path({"/items": {"items": [ITEM], "next": f"{other.url}/items?after=1"}})
        assert failure(server, style="cursor").reason_code == "scrape_bad_answer"
        assert other.calls == []


def test_fetch__refusals__name_the_source_its_address_and_a_remedy(server: WireServer):
    for status in ("404 Not Found", "503 Service Unavailable", "429 Too Many Requests"):
        server.answer = lambda _, status=status: Reply(b"<p>no</p>", status=status)
        for kind in ("paged", "rss"):
            error = failure(server, kind)
            assert error.message == f"odd: HTTP {status[:3]} from {server.url}/items"
            assert error.remedy


def test_fetch__feed_that_is_cut_off__names_source_and_line(server: WireServer):
    for declaration, line in ((b"", 3), (b'<?xml version="1.0"?>\n', 4)):
        server.answer = lambda _, d=declaration: Reply(d + b"<rss>\n<channel>\n<item></channel></rss>")
        error = failure(server, "rss")
        assert error.message.startswith(f"odd: the feed is not well-formed: line {line}: mismatched tag")
        assert error.message.endswith(f"({server.url}/items)")


def test_fetch__nobody_listens__is_said_in_plain_words():
    with pytest.raises(PerennialError) as error:
        make_scraper(Source("odd", "rss", "http://127.0.0.1:1/a/items")).fetch(NOTHING_READ, full=False)
    assert error.value.message.startswith("odd: no connection: ")
    assert "HTTPConnection" not in error.value.message


def test_fetch__pages_that_lead_in_a_circle__are_an_error(server: WireServer):
    server.answer = lambda _: Reply(json.dumps({"items": [ITEM], "next": "a"}).encode())
    assert failure(server, style="cursor").reason_code == "scrape_bad_answer"


@pytest.mark.parametrize(
    "answer",
    [
        {"items": [{"title": "No id"}]},
        {"items": [{"id": True}]},
        {"items": [{"id": "a\nb"}]},
        {"items": ["text"]},
        {"items": "text"},
        {"rows": []},
        {"items": [ITEM], "total": "many"},
        "text",
    ],
)
def test_fetch__answer_that_is_not_what_the_options_say__is_a_bad_answer(server: WireServer, answer: Any):
    server.answer = lambda _: Reply(json.dumps(answer).encode())
    assert failure(server, total="total").reason_code == "scrape_bad_answer"


@pytest.mark.parametrize("kind", ["paged", "rss"])
def test_fetch__huge_answer__is_cut_off(server: WireServer, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(paged, "MOST_BYTES", 2**20)
    monkeypatch.setattr(rss, "MOST_OF_A_FEED", 2**20)
    server.answer = lambda _: Reply(b" " * (2**20 + 1))
    assert failure(server, kind).reason_code == "scrape_bad_answer"


@pytest.mark.parametrize("kind", ["paged", "rss"])
def test_fetch__secret_echoed_in_a_bad_body__is_not_shown(server: WireServer, kind: str):
    server.answer = lambda _: Reply(f"<rss><{SECRET}".encode())
    assert failure(server, kind)


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16"])
def test_fetch__atom_in_another_encoding__is_read(server: WireServer, encoding: str):
    body = ATOM.format(encoding=encoding).encode(encoding)
    server.answer = lambda _: Reply(body, headers={"Content-Type": "application/atom+xml"})
    [found] = read(server, "rss")
    assert (found.id, found.title, found.url) == ("urn:1", "冰川 <b>融化</b>", "https://a.example/1")
    assert found.published_at == datetime(2026, 11, 17, tzinfo=UTC)


@pytest.mark.parametrize("body", [b"", b"text", b"<a/>", b'{"items": []}'])
def test_fetch__answer_that_is_no_feed__is_a_bad_answer(server: WireServer, body: bytes):
    server.answer = lambda _: Reply(body, headers={"Content-Type": "application/xml"})
    assert failure(server, "rss").reason_code == "scrape_bad_answer"


def test_fetch__answer_that_names_a_file_or_an_address__opens_neither(server: WireServer, tmp_path: Path):
    (tmp_path / "feed.xml").write_text(ATOM.format(encoding="utf-8"), encoding="utf-8")
    for body in (str(tmp_path / "feed.xml"), f"{server.url}/private"):
        server.answer = lambda _, body=body: Reply(body.encode())
        server.calls.clear()
        assert failure(server, "rss").reason_code == "scrape_bad_answer"
        assert [call.path for call in server.calls] == ["/items"]


def test_fetch__feed_of_text_html__is_read_all_the_same(server: WireServer):
    server.answer = lambda _: Reply(
        ATOM.format(encoding="utf-8").encode(), headers={"Content-Type": "text/html"}
    )
    assert len(read(server, "rss")) == 1


def test_fetch__feed_without_ids__takes_the_links(server: WireServer):
    body = (
        b"<rss version='2.0'><channel><item><title>T</title><link>https://a/1</link></item></channel></rss>"
    )
    server.answer = lambda _: Reply(body)
    assert [one.id for one in read(server, "rss")] == ["https://a/1"]


def test_fetch__last_modified_only__asks_with_it(server: WireServer):
    def answer(call: Call) -> Reply:
        if call.headers["If-Modified-Since"]:
            return Reply(status="304 Not Modified")
        return Reply(
            ATOM.format(encoding="utf-8").encode(), headers={"Last-Modified": "Tue, 17 Nov 2026 00:00:00 GMT"}
        )

    server.answer = answer
    scraper = make_scraper(Source("odd", "rss", f"{server.url}/feed"))
    first = scraper.fetch(NOTHING_READ, full=False)
    assert len(list(first)) == 1
    assert scraper.fetch(first.checkpoint(), full=False).unchanged


@pytest.mark.parametrize("kind", ["paged", "rss"])
def test_fetch__source_that_falls_silent__is_down_after_the_timeout(server: WireServer, kind: str):
    server.answer = lambda _: Reply(b"[" * 100, sent=10, then="stall")
    error = failure(server, kind, timeout=0.3)
    assert (error.reason_code, "0.3 s" in error.message) == ("scrape_down", True)


@pytest.mark.parametrize("kind", ["paged", "rss"])
def test_fetch__token_header__has_the_token_and_nothing_else_has(server: WireServer, kind: str):
    server.answer = lambda _: Reply(b"{}")
    failure(server, kind, token_header="X-Api-Key")
    [call] = server.calls
    assert call.headers["X-Api-Key"] == SECRET
    assert call.headers["Authorization"] is None


@pytest.mark.parametrize("mark", ["&#xD800;", "&#x110000;"])
def test_fetch__feed_with_marks_that_are_no_text__is_a_bad_answer(server: WireServer, mark: str):
    item = f"<item><guid>1</guid><title>a{mark}b</title></item>"
    server.answer = lambda _: Reply(f"<rss version='2.0'><channel>{item}</channel></rss>".encode())
    assert failure(server, "rss").reason_code == "scrape_bad_answer"


def test_fetch__feed_with_a_day_that_never_was__is_read_without_it(server: WireServer):
    dates = ["0000-00-00T00:00:00Z", "0000-01-01", "99999-01-01T00:00:00Z", "31 Feb 2026"]
    items = "".join(f"<item><guid>{d}</guid><pubDate>{d}</pubDate></item>" for d in dates)
    server.answer = lambda _: Reply(f"<rss version='2.0'><channel>{items}</channel></rss>".encode())
    assert len(read(server, "rss")) == len(dates)


def test_fetch__item_nested_too_deeply__is_a_bad_answer_that_names_it(server: WireServer):
    body = f'{{"items": [{{"id": "deep-1", "in": {"[" * 300}{"]" * 300}}}]}}'
    server.answer = lambda _: Reply(body.encode())
    error = failure(server)
    assert error.reason_code == "scrape_bad_answer"
    assert "deep-1" in error.message


def test_fetch__change_in_the_far_future__does_not_become_the_cursor(server: WireServer):
    items = [{"id": 1, "updated_at": "2026-11-17T08:00:00Z"}, {"id": 2, "updated_at": "9999-12-31T00:00:00Z"}]
    server.answer = lambda _: Reply(json.dumps({"items": items, "next": None}).encode())
    scraper = make_scraper(
        Source("odd", "paged", f"{server.url}/items", "", {"changed_since": "since", "overlap_hours": 1})
    )
    first = scraper.fetch(NOTHING_READ, full=False)
    assert len(list(first)) == 2
    list(scraper.fetch(first.checkpoint(), full=False))
    assert "since=2026-11-17T07%3A00%3A00Z" in server.calls[-1].path

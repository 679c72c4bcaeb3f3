"""The page of a report in a real browser: on a desk, on a phone, in the dark, without scripts, on paper."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from services.carbon.report_html import render
from tests.unit.domain.carbon.report_world import World, university

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LONG = "Institut" + "zusammenarbeitsförderung" * 12
DEEPEST = "Room of the sixth level"


def world() -> World:
    """A large one, with names that tempt a page to break: too long, and markup."""
    found = university(300).add("LONG", "EU", LONG).add("SCRIPT", "EU", "<script>console.log('ran')</script>")
    above = "EU"
    for level in range(2, 6):
        found.add(f"L{level}", above, f"Level {level}")
        above = f"L{level}"
    found.before = {year: (10**12, 2 * 10**12, year * 10**10) for year in range(2014, 2025)}
    return found.add("L6", above, DEEPEST).emit("L6", "road", 10**9)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("page") / "report.html"
    view = world().view()
    long = [replace(line, title=f"{line.title} and whatever else belongs to it") for line in view.modules]
    file.write_text(render(replace(view, modules=tuple(long))), encoding="utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture
def said() -> list[str]:
    """What the browser complained of, and every address it asked for."""
    return []


@pytest.fixture(params=[1280, 360])
def shown(browser: Browser, address: str, said: list[str], request: pytest.FixtureRequest) -> Iterator[Page]:
    with browser.new_context(viewport={"width": request.param, "height": 800}) as context:
        yield opened(context.new_page(), address, said)


def opened(view: Page, address: str, said: list[str]) -> Page:
    view.on("console", lambda message: said.append(message.text))
    view.on("pageerror", lambda error: said.append(str(error)))
    view.on("request", lambda request: said.append(request.url))
    view.goto(address)
    return view


def test_report__everything_opened__fits_the_window(shown: Page):
    overflow = "document.documentElement.scrollWidth - innerWidth"
    assert shown.evaluate(overflow) <= 0
    shown.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert shown.get_by_text(DEEPEST).is_visible()
    assert shown.evaluate(overflow) <= 0


def test_report__charts__have_texts_inside_and_apart(shown: Page):
    assert shown.evaluate(_OUTSIDE) == []
    assert shown.evaluate(_OVERLAPPING) == []


def test_report__in_a_browser__loads_nothing_else_without_errors(shown: Page, address: str, said: list[str]):
    shown.wait_for_load_state("networkidle")
    assert said == [address]


def test_report__wide_table__scrolls_in_its_box(browser: Browser, address: str, said: list[str]):
    with browser.new_context(viewport={"width": 360, "height": 800}) as context:
        box = opened(context.new_page(), address, said).locator("#modules .scroll")
        assert box.evaluate("b => b.scrollWidth > b.clientWidth + 100")
        box.focus()
        assert box.evaluate("b => document.activeElement === b")


def test_report__without_scripts__is_read_and_opened(browser: Browser, address: str, said: list[str]):
    with browser.new_context(java_script_enabled=False) as context:
        view = opened(context.new_page(), address, said)
        view.locator("#methods summary").first.click()
        view.get_by_text("What is counted").first.wait_for(state="visible")


def test_report__dark_scheme__is_dark_but_not_on_paper(browser: Browser, address: str, said: list[str]):
    with browser.new_context(color_scheme="dark") as context:
        view = opened(context.new_page(), address, said)
        ground = "getComputedStyle(document.body).backgroundColor"
        assert view.evaluate(ground) == "rgb(16, 21, 19)"
        view.emulate_media(media="print", color_scheme="dark")
        assert view.evaluate(ground) == "rgb(255, 255, 255)"


def test_report__printed__has_what_was_closed(
    browser: Browser, address: str, said: list[str], tmp_path: Path
):
    with browser.new_context() as context:
        view = opened(context.new_page(), address, said)
        assert not view.get_by_text(DEEPEST).is_visible()
        view.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True, print_background=True)
    text = pdf_text((tmp_path / "report.pdf").read_bytes())
    assert "Carbon report 2025" in text
    assert DEEPEST in text
    assert "factor[cabin, haul]" in text
    assert "How it was calculated" in text
    assert re.search(rb"/MediaBox \[0 0 59[45]\S* 84[12]", (tmp_path / "report.pdf").read_bytes())


def pdf_text(pdf: bytes) -> str:
    """The characters of all pages in the order they were drawn, glyphs translated by the file's tables."""
    objects = dict(re.findall(rb"^(\d+) 0 obj\s(.*?)endobj", pdf, re.DOTALL | re.MULTILINE))
    fonts = dict(re.findall(rb"/(F\d+) (\d+) 0 R", pdf))
    letters = {name: _letters(objects, objects[number]) for name, number in fonts.items()}
    found: list[str] = []
    for body in objects.values():
        font: dict[int, str] = {}
        for name, glyphs in re.findall(rb"/(F\d+) \S+ Tf|<([0-9A-F]+)> Tj", _stream(body)):
            font = letters[name] if name else font
            found += [font.get(int(glyphs[n : n + 4], 16), "") for n in range(0, len(glyphs), 4)]
    return "".join(found)


def _letters(objects: dict[bytes, bytes], font: bytes) -> dict[int, str]:
    (number,) = re.findall(rb"/ToUnicode (\d+) 0 R", font)
    found: dict[int, str] = {}
    table = _stream(objects[number]).decode("ascii")
    for first, last, letter in re.findall(r"<(\w{4})> (?:<(\w{4})> )?<(\w{4})>\n", table):
        begin = int(first, 16)
        for n in range(begin, int(last or first, 16) + 1):
            found[n] = chr(int(letter, 16) + n - begin)
    return found


def _stream(body: bytes) -> bytes:
    """What an object holds, if it is text or drawing."""
    found = re.search(rb"FlateDecode.*?stream\r?\n(.*)endstream", body, re.DOTALL)
    if found is None or b"/Subtype /Image" in body or b"/Length1" in body:
        return b""
    return zlib.decompressobj().decompress(found[1])


_OUTSIDE = """() => [...document.querySelectorAll('.chart text')].filter(t => {
  const own = t.getBoundingClientRect(), chart = t.closest('figure').getBoundingClientRect();
  return own.left < chart.left - 1 || own.right > chart.right + 1 || own.bottom > chart.bottom + 1;
}).map(t => t.textContent)"""
_OVERLAPPING = """() => [...document.querySelectorAll('.chart')].flatMap(chart => {
  const texts = [...chart.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  return texts.flatMap(([one, a], n) => texts.slice(n + 1)
    .filter(([, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom - 2 && b.top < a.bottom - 2)
    .map(([other]) => [one, other]));
})"""

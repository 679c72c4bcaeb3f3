"""What the plain ingest function makes of references."""

from __future__ import annotations

from typing import Any

import pytest

from domain.references.documents import Document, Reference, clean, cleaned, name_of, text_of


def a_reference(title: str | None = "A title", **payload: Any) -> Reference:
    return Reference("atlas:1", "atlas", title, None, None, payload, "h")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain  text\n\n\nof two lines ", "plain text\nof two lines"),
        ("<p>One <b>bold</b> word</p><p>Two</p>", "One bold word\nTwo"),
        ("caf&eacute; &amp; cre\u0300me", "café & crème"),
        ("<script>steal()</script><style>p{}</style>seen<!-- not -->", "seen"),
        ("if a < b and c > d", "if a < b and c > d"),
        ("x<y", "x<y"),
        ("first<br>second<br/>third", "first\nsecond\nthird"),
        ("bell \x07 rings", "bell \N{REPLACEMENT CHARACTER} rings"),
        ("<p> </p>", None),
        ("", None),
        ("<p>never closed <b>at all", "never closed at all"),
        ("<script>never closed", None),
    ],
)
def test_cleaned__text__is_what_a_browser_would_show(given: str, shown: str | None):
    assert cleaned(given) == shown


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"summary": "short", "text": "long"}, "long"),
        ({"text": " ", "abstract": "short"}, "short"),
        ({"content": [{"type": "text/html", "value": "one"}, {"value": "two"}]}, "one\ntwo"),
        ({"summary": {"value": "nested"}}, "nested"),
        ({"text": 7, "body": None}, ""),
        ({}, ""),
    ],
)
def test_text_of__payload__is_the_first_field_that_has_one(payload: dict[str, Any], text: str):
    assert text_of(payload) == text


def test_clean__reference__is_title_and_text():
    assert clean(a_reference("<i>On</i> bees", abstract="They <b>fly</b>.")) == Document(
        "On bees", "They fly."
    )
    assert clean(a_reference(None)) == Document(None, None)


def test_name_of__function__says_its_version():
    def mine(reference: Reference) -> Document:
        return clean(reference)

    assert name_of(clean) == "plain 1"
    assert name_of(mine).startswith(f"{__name__}:")
    mine.version = "7"  # type: ignore[attr-defined]
    assert name_of(mine).endswith("mine 7")

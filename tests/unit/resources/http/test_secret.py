"""The token is blanked wherever it may be echoed, however it is spelled, and before anything is cut."""

import pytest

from resources.http.address import without_credentials
from resources.http.secret import Redactor

TOKEN = "a1b2c3d4e5f6/+0987654321"


@pytest.mark.parametrize(
    "text",
    [
        f'{{"token": "{TOKEN}"}}',
        "token=a1b2c3d4e5f6%2F%2B0987654321&x=1",
        f"{TOKEN}{TOKEN}",
        "x" * 290 + TOKEN,
        f"broken off: {TOKEN[:15]}",
    ],
)
def test_clean__token_in_any_spelling__is_masked(text: str) -> None:
    cleaned = Redactor(TOKEN).clean(text)
    assert "a1b2c3d4" not in cleaned
    assert len(cleaned) <= 300


def test_clean__other_text__is_kept_on_one_line() -> None:
    assert Redactor(TOKEN).clean("502\n  Bad\tGateway ") == "502 Bad Gateway"


def test_clean__unprintable_characters__are_marked() -> None:
    assert Redactor(TOKEN).clean("\x1f\x8b\x08\0 \x1b[2J") == "\ufffd\ufffd\ufffd \ufffd[2J"


def test_clean__token_with_quotes_in_json__is_masked() -> None:
    assert "geheim" not in Redactor('geheim"ü').clean('{"token": "geheim\\"\\u00fc"}')


def test_redactor__repr__shows_no_token() -> None:
    assert TOKEN not in f"{Redactor(TOKEN)!r}{Redactor(TOKEN)}"


def test_without_credentials__address__shows_no_password() -> None:
    assert without_credentials("https://me:pw@host:8443/dataapi?key=1") == "https://host:8443/dataapi"

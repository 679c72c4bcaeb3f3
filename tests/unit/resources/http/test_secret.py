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
def test_the_token_does_not_survive(text: str) -> None:
    cleaned = Redactor(TOKEN).clean(text)
    assert "a1b2c3d4" not in cleaned
    assert len(cleaned) <= 300


def test_other_text_is_kept_on_one_line() -> None:
    assert Redactor(TOKEN).clean("502\n  Bad\tGateway ") == "502 Bad Gateway"


def test_what_cannot_be_seen_is_shown_as_a_mark() -> None:
    assert Redactor(TOKEN).clean("\x1f\x8b\x08\0 \x1b[2J") == "\ufffd\ufffd\ufffd \ufffd[2J"


def test_a_token_with_quotes_and_umlauts_is_found_in_json_too() -> None:
    assert "geheim" not in Redactor('geheim"ü').clean('{"token": "geheim\\"\\u00fc"}')


def test_a_redactor_shows_nothing_of_itself() -> None:
    assert TOKEN not in f"{Redactor(TOKEN)!r}{Redactor(TOKEN)}"


def test_an_address_is_shown_without_user_and_password() -> None:
    assert without_credentials("https://me:pw@host:8443/dataapi?key=1") == "https://host:8443/dataapi"

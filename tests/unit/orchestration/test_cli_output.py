"""What the command prints: JSON that every reader takes, and text that cannot command a terminal."""

from __future__ import annotations

import json

import pytest

from orchestration.cli.output import document, table


def test_document__nan_and_infinity__are_null(capsys: pytest.CaptureFixture[str]):
    document([{"a": float("nan"), "b": [float("inf"), 1.5], "c": "nan"}])
    assert json.loads(capsys.readouterr().out) == [{"a": None, "b": [None, 1.5], "c": "nan"}]


def test_table__control_characters__are_not_printed(capsys: pytest.CaptureFixture[str]):
    table(["said"], [("\x1b[31mred\x07 您的token",)])
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "red" in shown
    assert "您的token" in shown


def test_table__reader_closed_the_pipe__raises_broken_pipe(monkeypatch: pytest.MonkeyPatch):
    class Closed:
        encoding = "utf-8"

        def isatty(self) -> bool:
            return False

        def write(self, _: str) -> None:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Closed())
    with pytest.raises(BrokenPipeError):
        table(["a"], [("b",)])


def test_table__exact__prints_all_digits(capsys: pytest.CaptureFixture[str]):
    table(["amount"], [(1111223.82,), (0.1 + 0.2,), (None,)], exact=True)
    shown = capsys.readouterr().out
    assert "1,111,223.82" in shown
    assert "0.3" in shown.split()


def test_table__word_wider_than_its_column__takes_several_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    names = [f"{kind}_{'x' * 30}" for kind in ("first", "second")]
    table(["a", "b"], [names])
    assert "…" not in capsys.readouterr().out


def test_table__not_on_a_terminal__is_as_wide_as_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    row = ("word " * 30,) * 2
    monkeypatch.setenv("COLUMNS", "60")
    table(["a", "b"], [row])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60
    monkeypatch.delenv("COLUMNS")
    table(["a", "b"], [row])
    assert max(map(len, capsys.readouterr().out.splitlines())) > 100

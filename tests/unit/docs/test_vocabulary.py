"""The words of `docs/glossary.md` are used, and the words that they replace are not."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from orchestration.settings import PROJECT_ROOT

IDENTIFIERS = {
    "abreast": "parallel",
    "cell": "state (a table cell of a file may stay: see CELLS)",
    "damaged": "corrupt",
    "fact": "record",
    "facts": "records",
    "glance": "poll",
    "harvest": "outcome",
    "heard": "feed change",
    "house": "platform",
    "lent": "shared",
    "lying": "waiting",
    "mend": "heal, correct",
    "mended": "restored",
    "office": "carbon",
    "overtaken": "superseded",
    "regrowth": "recurrence",
    "standing": "status",
    "stray": "unexpected",
    "strays": "unexpected",
    "strikes": "crash count",
    "telling": "report",
    "told": "reported",
    "trouble": "error",
    "unlisted": "not indexed",
    "unread": "unavailable",
    "whoever": "a name",
    "wish": "request",
    "wishes": "requests",
}
"""Parts of identifiers that are not used, with the word that is."""
CELLS = ("domain/carbon/intake/", "domain/shared/tabular/", "sandbox/", "tests/")
"""Where a cell is a cell of somebody's file."""
TEXT = {
    r"\btold\b": "reported, shown, named",
    r"\bwish(es|ed)?\b": "request",
    r"\blying\b": "waiting",
    r"\bovertaken\b": "superseded",
    r"\bheld back\b": "blocked",
    r"\bdamaged\b": "corrupt",
    r"\bunread\b": "unavailable",
    r"\bmend(s|ed)?\b": "heal, correct",
    r"\bstrangers?\b": "another program",
    r"\bwhoever\b": "the name of the one",
    r"\bglances?\b": "pass",
    r"\banother hand\b": "another program",
    r"\bin (other|somebody's|nobody's) hands\b": "leased",
    r"\bbeside us\b": "outside",
    r"\b(come|came|comes) to rest\b": "stopped changing",
    r"\bstrays?\b": "unexpected",
}
"""What messages, docstrings, comments and documents do not say, with what they do."""
PACKAGES = ("domain", "resources", "services", "assets", "sensors", "orchestration", "sandbox", "perennial")
CODE = (*PACKAGES, "tests", "benchmarks")
HISTORY = (
    "CHANGELOG.md",
    "docs/adr/",
    "resources/database/migrations/",
    "tests/integration/resources/database/test_migrations.py",
)
"""Documents that name what was, and migrations of old columns."""


OWN = str(Path(__file__).relative_to(PROJECT_ROOT))


@cache
def tracked(*patterns: str) -> tuple[str, ...]:
    listed = subprocess.run(
        ["git", "ls-files", *patterns], capture_output=True, text=True, check=True, cwd=PROJECT_ROOT
    )
    return tuple(n for n in listed.stdout.splitlines() if (PROJECT_ROOT / n).is_file() and n != OWN)


def parts(identifier: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)}


def tokens(name: str) -> Iterator[tokenize.TokenInfo]:
    text = (PROJECT_ROOT / name).read_text(encoding="utf-8")
    yield from tokenize.generate_tokens(io.StringIO(text).readline)


@pytest.mark.parametrize("package", CODE)
def test_identifiers__of_a_package__use_the_vocabulary(package: str):
    found = [
        f"{name}:{token.start[0]} {token.string}: {IDENTIFIERS[word]}"
        for name in tracked(f"{package}/*.py")
        if not name.startswith(HISTORY)
        for token in tokens(name)
        if token.type == tokenize.NAME
        for word in parts(token.string) & IDENTIFIERS.keys()
        if not (word == "cell" and name.startswith(CELLS))
    ]
    assert found == []


@pytest.mark.parametrize("package", CODE)
def test_text__of_a_package__uses_the_vocabulary(package: str):
    found = [
        f"{name}:{token.start[0]} {match[0]!r}: {TEXT[pattern]}"
        for name in tracked(f"{package}/*.py")
        if not name.startswith(HISTORY)
        for token in tokens(name)
        if token.type in (tokenize.STRING, tokenize.COMMENT)
        for pattern in TEXT
        for match in re.finditer(pattern, token.string)
    ]
    assert found == []


@pytest.mark.parametrize("page", [n for n in tracked("*.md", "*.yaml", "*.sql") if not n.startswith(HISTORY)])
def test_documents__in_plain_words__use_the_vocabulary(page: str):
    text = (PROJECT_ROOT / page).read_text(encoding="utf-8")
    assert [f"{m[0]!r}: {TEXT[p]}" for p in TEXT for m in re.finditer(p, text)] == []

"""The sources file: which sources there are, read from YAML, with errors that name the line and the remedy.

Without a file there are three sources of the sandbox to try, or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from domain.shared.error import InvalidInput
from domain.shared.names import fault_of_name
from resources.scraping.source import KINDS, Source, make_scraper
from services.setting_types import Duration

if TYPE_CHECKING:
    from resources.scraping.reference import Scraper
    from services.references.settings import ReferencesSettings

SANDBOX, NONE = "sandbox", "none"
SANDBOX_URL = "sandbox://"
"""Begins the address of a source of the home's sandbox, whose port is known once it runs."""
VARIABLE = "PERENNIAL_REFERENCES_SOURCES"
Problems = list[tuple[tuple[str | int, ...], str]]
"""Where in the file a mistake is, and what it is."""


def _name(given: str) -> str:
    if fault := fault_of_name(given):
        raise ValueError(fault)
    return given


def _kind(given: str) -> str:
    if given not in KINDS and not re.fullmatch(r"[\w.]+:\w+", given):
        raise ValueError(f"should be {', '.join(KINDS)} or the function of a plugin as module:function")
    return given


class SourceEntry(BaseModel):
    """One entry of the sources file."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    name: Annotated[str, AfterValidator(_name)]
    kind: Annotated[str, AfterValidator(_kind)]
    url: str = Field(min_length=1)
    every: Duration | None = None
    options: dict[str, Any] = {}

    def problems(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield what is wrong with the fields together: where, and what."""
        from resources.scraping.options import OPTIONS

        if fault := _fault_of_url(self.kind, self.url):
            yield ("url",), fault
        if model := OPTIONS.get(self.kind):
            try:
                model.model_validate(self.options)
            except ValidationError as error:
                yield from ((("options", *where), text) for where, text in _plain(error, model))


def _plain(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield where each mistake is, and what it is, in words of the file."""
    for one in error.errors():
        kind, text = one["type"], one["msg"].removeprefix("Value error, ")
        if kind == "missing":
            text = "is missing"
        elif kind == "extra_forbidden":
            text = f"is no name that is known here; known are {', '.join(model.model_fields)}"
        elif kind in ("dict_type", "model_type"):
            text = "should have names with values"
        yield (
            one["loc"],
            text.removeprefix("Input ").removeprefix("String ").replace("a valid string", "text"),
        )


def _fault_of_url(kind: str, url: str) -> str:
    parts = urlsplit(url)
    if parts.username or parts.password:
        return "should hold no user and password; give a token by PERENNIAL_REFERENCES_TOKENS"
    if kind == "folder":
        path = Path(url.removeprefix("file://")).expanduser()
        return "" if path.is_absolute() else "should be a folder, with its whole path"
    if kind in KINDS and not (parts.scheme in ("http", "https") and parts.hostname):
        return "should begin with https:// or http:// and name a host"
    return ""


@dataclass(frozen=True)
class ScheduledSource:
    """A source, and how often it is scraped."""

    source: Source
    every: timedelta


class Sources(Mapping[str, "Scraper"]):
    """The scrapers by source, each made when it is first used: what only plans needs none."""

    def __init__(self, scheduled: Mapping[str, ScheduledSource], home: Path) -> None:
        self.scheduled = scheduled
        self._home = home
        self._made: dict[str, Scraper] = {}

    def __len__(self) -> int:
        return len(self.scheduled)

    def __iter__(self) -> Iterator[str]:
        return iter(self.scheduled)

    def __contains__(self, name: object) -> bool:
        return name in self.scheduled

    def __getitem__(self, name: str) -> Scraper:
        source = self.scheduled[name].source
        if source.url.startswith(SANDBOX_URL):
            url = self._made_up(source.kind, source.url.removeprefix(SANDBOX_URL))
            return make_scraper(replace(source, url=url), source.fingerprint())
        if name not in self._made:
            self._made[name] = make_scraper(source)
        return self._made[name]

    def _made_up(self, kind: str, name: str) -> str:
        """Return where a source to try is: of the sandbox that runs now, or a folder of the home."""
        if kind == "folder":
            folder = self._home / name
            folder.mkdir(parents=True, exist_ok=True)
            return str(folder)
        from resources.sandbox.process import ensure_sandbox

        return f"{ensure_sandbox(self._home)}/references/{name}"

    def fingerprint(self, name: str) -> str:
        """Return what changes with everything a permanent refusal of the source may have been about."""
        return self.scheduled[name].source.fingerprint()


@dataclass(frozen=True)
class Only(Mapping[str, "Scraper"]):
    """The scrapers of some sources, as far as there are any."""

    scrapers: Mapping[str, Scraper]
    names: frozenset[str]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.scrapers if name in self.names)

    def __getitem__(self, name: str) -> Scraper:
        if name not in self.names:
            raise KeyError(name)
        return self.scrapers[name]


def checked_place(given: str) -> str:
    """Return `sandbox`, `none`, or the absolute path of a sources file."""
    if given.lower() in (SANDBOX, NONE):
        return given.lower()
    return str(Path(given).expanduser().absolute())


def checked_tokens(given: SecretStr) -> SecretStr:
    """Return the tokens if each has the name of a source; an error shows none of them."""
    for number, part in enumerate(filter(str.strip, given.get_secret_value().split(",")), start=1):
        name, _, token = part.partition("=")
        if not (name.strip() and token.strip()):
            raise ValueError(f"part {number} should be source=token")
    return given


def tokens_of(given: SecretStr) -> dict[str, str]:
    """Return the tokens by source."""
    pairs = (part.partition("=") for part in given.get_secret_value().split(",") if part.strip())
    return {name.strip(): token.strip() for name, _, token in pairs}


def open_sources(settings: ReferencesSettings) -> Sources:
    """Return the sources that the settings name."""
    tokens = tokens_of(settings.references_tokens)
    entries = _entries(settings)
    if unknown := sorted(tokens.keys() - {entry.name for entry in entries}):
        raise InvalidInput(
            f"PERENNIAL_REFERENCES_TOKENS names unknown sources: {', '.join(unknown)}",
            reason_code="sources_file",
            remedy=f"name only sources of {VARIABLE}: {', '.join(e.name for e in entries) or 'none'}",
        )
    return Sources(
        {
            entry.name: ScheduledSource(
                Source(entry.name, entry.kind, entry.url, tokens.get(entry.name, ""), entry.options),
                entry.every or settings.references_every,
            )
            for entry in entries
        },
        settings.home,
    )


def _entries(settings: ReferencesSettings) -> tuple[SourceEntry, ...]:
    if settings.references_sources == NONE:
        return ()
    if settings.references_sources != SANDBOX:
        return read_file(Path(settings.references_sources))
    atlas = {"total": "total", "etag_of_all": True}
    return (
        SourceEntry(name="atlas", kind="paged", url=f"{SANDBOX_URL}atlas", options=atlas),
        SourceEntry(name="herald", kind="rss", url=f"{SANDBOX_URL}herald.xml"),
        SourceEntry(name="inbox", kind="folder", url=f"{SANDBOX_URL}references"),
    )


def read_file(path: Path) -> tuple[SourceEntry, ...]:
    """Return the entries of a sources file. Raises InvalidInput with a line for each mistake."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not in UTF-8"
        raise InvalidInput(
            f"the sources file {path} cannot be read: {reason}",
            reason_code="sources_file",
            remedy=f"set {VARIABLE} to a YAML file that can be read",
        ) from None
    return _parse(text, str(path))


@cache
def _parse(text: str, path: str) -> tuple[SourceEntry, ...]:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        document = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _refused(path, [(line, f"it is no YAML: {error.problem}")]) from None
    except yaml.YAMLError:
        raise _refused(path, [(1, "it holds characters that YAML does not allow")]) from None
    problems = Problems()
    entries = [_entry(at, raw, problems) for at, raw in enumerate(_listed(document, problems))]
    whole = [entry for entry in entries if entry]
    if problems or len(whole) < len(entries):
        found = sorted((_line(root, where), f"{_shown(document, where)}{text}") for where, text in problems)
        raise _refused(path, found)
    return tuple(whole)


def _listed(document: Any, problems: Problems) -> list[Any]:
    """Return the entries of a file; what else is wrong with it is added."""
    given = document if isinstance(document, Mapping) else {}
    problems += [
        ((str(name),), "is not known here; only `sources` is") for name in given if name != "sources"
    ]
    listed = given.get("sources")
    if not isinstance(listed, list) or not listed:
        problems.append(((), "the file should have `sources:` with a list of at least one source"))
        return []
    names = [raw.get("name") if isinstance(raw, Mapping) else None for raw in listed]
    problems += [
        (("sources", at, "name"), "is the name of two sources")
        for at, name in enumerate(names)
        if name is not None and name in names[:at]
    ]
    return listed


def _entry(at: int, raw: Any, problems: Problems) -> SourceEntry | None:
    """Return an entry; what is wrong with it is added, all of it."""
    entry, found = None, Problems()
    try:
        entry = SourceEntry.model_validate(raw)
    except ValidationError as error:
        found += _plain(error, SourceEntry)
        wrong = {where[0] for where, _ in found if where}
        if isinstance(raw, Mapping) and not wrong & {"kind", "url", "options"}:
            of_others = {name: raw[name] for name in ("kind", "url", "options") if name in raw}
            found += SourceEntry.model_construct(**of_others).problems()
    else:
        found += entry.problems()
    problems += [(("sources", at, *where), text) for where, text in found]
    return entry


def _refused(path: str, problems: list[tuple[int, str]]) -> InvalidInput:
    lines = "; ".join(f"line {line}: {text}" for line, text in problems)
    return InvalidInput(
        f"the sources file {path} has mistakes: {lines}",
        reason_code="sources_file",
        remedy="correct these lines; docs/references.md shows an example",
    )


def _line(node: yaml.Node | None, where: tuple[str | int, ...]) -> int:
    """Return the line of a place in the file, or of the entry around it if it is missing there."""
    line = 1
    for step in where:
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == step]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            break
    return line


def _shown(document: Any, where: tuple[str | int, ...]) -> str:
    """Return the words that name a place: the source if it has a name, and the field."""
    if len(where) < 2 or not isinstance(where[1], int):
        return f"{'.'.join(map(str, where))}: " if where else ""
    entry = document["sources"][where[1]]
    name = entry.get("name") if isinstance(entry, dict) else None
    field = ".".join(map(str, where[2:]))
    return f"source {name or f'number {where[1] + 1}'}: {field + ': ' if field else ''}"

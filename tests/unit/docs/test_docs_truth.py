"""What the documents say is there, is there: commands, options, links, make targets, files, reason codes."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from domain.market.catalogue import parse
from domain.shared.freshness import FreshnessStatus
from domain.shared.reasons import DOMAINS, reason_groups
from orchestration.cli.main import app
from orchestration.environments import load_settings
from orchestration.settings import PROJECT_ROOT

GUIDES = (
    "docs/guide.md",
    "docs/carbon.md",
    "docs/feeds.md",
    "docs/references.md",
    "docs/operations.md",
    "docs/monitoring.md",
    "docs/api.md",
    "docs/recovery.md",
)
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md", "docs/glossary.md", *GUIDES)
DOCUMENTS = (
    *PAGES,
    "docs/settings.md",
    *(str(p.relative_to(PROJECT_ROOT)) for p in PROJECT_ROOT.glob("docs/adr/*.md")),
)
LINKED = sorted({*PAGES, *(str(p.relative_to(PROJECT_ROOT)) for p in PROJECT_ROOT.glob("docs/**/*.md"))})
PACKAGES = ("domain", "resources", "services", "assets", "sensors", "orchestration")

FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\S*\.venv/bin/)?perennial (?=[a-z-])")
TARGET = re.compile(r"\bmake ((?:[a-z0-9-]+)(?: (?:lint|arch|test)\b)*)")


def read(page: str) -> str:
    return (PROJECT_ROOT / page).read_text(encoding="utf-8")


def code(page: str) -> Iterator[str]:
    """Lines of fenced blocks, with what a quote continues on the next lines, and inline code."""
    text = read(page)
    for block in FENCED.findall(text):
        pending = ""
        for line in textwrap.dedent(block).splitlines():
            pending = f"{pending}\n{line}" if pending else line
            if COMMAND.match(pending) and pending.count('"') % 2:
                continue
            yield pending
            pending = ""
        if pending:
            yield pending
    yield from INLINE.findall(FENCED.sub("", text))


def commands(page: str) -> Iterator[str]:
    for piece in code(page):
        if found := COMMAND.match(piece):
            yield piece[found.end() :].split(" | ")[0]


ALL_COMMANDS = sorted({(page, command) for page in DOCUMENTS for command in commands(page)})


def root() -> TyperGroup:
    found = typer.main.get_command(app)
    assert isinstance(found, TyperGroup)
    return found


def command_of(group: TyperGroup, name: str) -> TyperGroup | TyperCommand | None:
    """Also one that is imported only when it is called."""
    found: TyperGroup | TyperCommand | None = group.get_command(typer.Context(group), name)
    return found


def check_command(line: str) -> None:
    """Walk down to the command a line means and compare the options it is given with those it has."""
    words = shlex.split(line, comments=True)
    command: TyperGroup | TyperCommand = root()
    while isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        name = words.pop(0)
        found = command_of(command, name)
        assert found is not None, f"`perennial {line}`: there is no command {name!r}"
        command = found
    if command.context_settings.get("ignore_unknown_options"):
        return  # it hands its arguments on
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    for word in words:
        if word.startswith("-"):
            assert word.split("=")[0] in known, f"`perennial {line}`: there is no option {word}"


@pytest.mark.parametrize(("page", "command"), ALL_COMMANDS)
def test_every_command_shown_exists(page: str, command: str):
    check_command(command)


@pytest.mark.parametrize("wrong", ["nonsense", "market nonsense", "market backfill --nonsense"])
def test_a_command_that_does_not_exist_would_be_found(wrong: str):
    with pytest.raises(AssertionError, match="nonsense"):
        check_command(wrong)


def test_commands_are_found_in_the_pages_that_show_them():
    for page in ("docs/guide.md", "docs/operations.md"):
        assert len(list(commands(page))) > 10, page


def test_cli_page__after_make_docs__is_what_the_command_says():
    command = [
        sys.executable,
        "-m",
        "typer",
        "orchestration.cli.main",
        "utils",
        "docs",
        "--name",
        "perennial",
    ]
    page = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PROJECT_ROOT).stdout
    assert read("docs/cli.md") == page, "run `make docs`"


@pytest.mark.parametrize("page", LINKED)
def test_every_link_leads_somewhere(page: str):
    broken = []
    for target in LINK.findall(FENCED.sub("", read(page))):
        if re.match(r"https?://|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (PROJECT_ROOT / page).parent / path if path else PROJECT_ROOT / page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", ["docs/settings.md", "docs/reason-codes.md"])
def test_generated_tables__every_row__is_one_line(page: str):
    lines = [line for line in read(page).partition("\n## ")[2].splitlines()[1:] if line]
    assert [line for line in lines if not (line.startswith("## ") or line.endswith((" |", "-|")))] == []


def anchors(file: Path) -> set[str]:
    """The anchors a reader of Markdown makes of its headings."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", file.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_make_target_named_exists(page: str):
    targets = set(re.findall(r"^([a-z0-9-]+):", read("Makefile"), re.MULTILINE))
    named = {word for piece in code(page) for found in TARGET.findall(piece) for word in found.split()}
    assert named <= targets


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_path_of_the_platform_named_exists(page: str):
    folders = "|".join([*PACKAGES, "sandbox", "tests", "scripts", "deploy", "docs"])
    path = re.compile(rf"^(?:{folders})/[\w./-]+\.(?:py|yaml|sh|md|sql)$")
    named = [piece for piece in INLINE.findall(read(page)) if path.match(piece)]
    assert [n for n in named if not (PROJECT_ROOT / n).exists()] == []


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_setting_named_exists(page: str):
    known = {v for group in load_settings({}).groups() for v in (*group.variables(), *group.renamed)}
    named = set(re.findall(r"\b(?:PERENNIAL|TUSHARE)_[A-Z_]+\b", read(page)))
    assert named <= known


def test_the_settings_that_the_operators_examples_show_are_accepted():
    shown = re.findall(
        r"^(?:export )?((?:PERENNIAL|TUSHARE)_[A-Z_]+)=(\S+)", read("docs/operations.md"), re.MULTILINE
    )
    assert len(shown) > 5
    for variable, value in shown:
        production = {
            "PERENNIAL_DATABASE_URL": "postgresql://u@h/d",
            "PERENNIAL_MARKET_START": "2015-01-01",
        }
        load_settings(production | {variable: value})


def reasons_listed() -> set[str]:
    groups = [group for page in DOMAINS.glob("*/reasons.yaml") for group in reason_groups(page.parent.name)]
    return {reason.code for group in groups for reason in group.reasons}


@cache
def words_of_the_code() -> frozenset[str]:
    words = {f"source_{status}" for status in get_args(FreshnessStatus)}
    for package in PACKAGES:
        for file in (PROJECT_ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    words.add(node.value)
    return frozenset(words)


def test_reasons_yaml__every_code__is_one_the_code_gives():
    assert sorted(reasons_listed() - words_of_the_code()) == []


def test_statuses_of_the_http_api__every_code__is_one_the_code_gives():
    from orchestration.api import problem

    raised = Counter(
        node.value
        for package in PACKAGES
        for file in (PROJECT_ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    assert [code for code in problem.STATUS if raised[code] < 2] == [], "only the table itself names them"


NOT_MET = {
    *("error", "infrastructure", "transient", "permanent", "invalid_input"),  # roots of the tree
    *(
        "invalid_settings",
        "domain_off",
        "invalid_sql",
        "no_end",
        "unknown_work",
        "already_finished",
        "already_running",
    ),
    *("unknown_kind", "params_too_large", "empty_frame"),  # mistakes of our own code
    *("retried", "released", "cancelled", "superseded"),
    *("unknown_unit", "unknown_type", "unknown_module", "unknown_emission_type", "unknown_value"),
    *("classification", "unit_mismatch", "missing", "unknown_unit_id", "no_report", "nothing_found"),
    *("already_locked", "not_locked", "year_busy", "no_reason", "ambiguous_unit", "too_long"),
    *("formula", "control_character"),
    *("unknown_pipeline", "unit_taken", "no_entries", "unknown_branch", "branch_taken_away"),
    *("unknown_upload", "no_file", "not_acceptable"),
    *("unknown_reference", "invalid_filter"),
}
"""What a person does not meet in `status`: answers to a command, and steps of a history."""


def test_every_reason_code_an_error_can_carry_is_reported():
    given = {code for file in error_modules() for code in codes_given(file)}
    assert sorted(given - reasons_listed() - NOT_MET) == []


def error_modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (PROJECT_ROOT / package).rglob("*.py")


def codes_given(file: Path) -> Iterator[str]:
    """Literals given as `reason_code=…`, in calls, as defaults and as class attributes."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "reason_code":
            yield from literals(node.value)
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "reason_code" for t in node.targets
        ):
            yield from literals(node.value)


def literals(value: ast.expr) -> Iterator[str]:
    branches = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    for branch in branches:
        if isinstance(branch, ast.Constant) and isinstance(branch.value, str) and branch.value:
            yield branch.value


def test_the_row_of_the_worked_example_is_a_row_the_catalogue_takes():
    row = next(b for b in FENCED.findall(read("CONTRIBUTING.md")) if "endpoint: moneyflow" in b)
    catalogue = read("domain/market/catalogue.yaml")
    assert "normalized_moneyflow" not in catalogue, "choose another endpoint for the example"
    extended = parse(catalogue.replace("\nreference:\n", f"\n{row}\nreference:\n"))
    added = extended.by_name("normalized_moneyflow")
    assert added in extended.daily
    assert added.endpoint == "moneyflow"

"""The text of `docs/settings.md`, from the registry. `make docs` writes it; a test compares it."""

from __future__ import annotations

from orchestration.setting_fields import FIELDS, Field

_HEAD = """\
# Settings

Every setting is an environment variable; an empty one counts as unset. Wrong values and misspelt names
stop the program with a list of all of them. This page is generated: change `orchestration/setting_fields.py`,
then run `make docs`.

| variable | default | what it does | example |
|---|---|---|---|
"""


def render() -> str:
    return _HEAD + "".join(_row(field) for field in FIELDS)


def _row(field: Field) -> str:
    secret = " **Secret**: never logged, never stored." if field.secret else ""
    return f"| `{field.variable}` | {field.default} | {field.description}{secret} | `{field.example}` |\n"

"""The text of `docs/settings.md`, from the settings models. `make docs` writes it."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import SecretStr

from orchestration.registry import MODULES, find_domain
from orchestration.settings import Settings
from services.settings import StorageSettings

_HEAD = """\
# Settings

Every setting is an environment variable; an empty one counts as unset. Wrong values and misspelt names
stop the program with a list of all of them. This page is generated from the models in
`orchestration/settings.py`, `services/settings.py` and `services/<domain>/settings.py`: change a model, then
run `make docs`.
"""
_COLUMNS = "| variable | default | what it does | example |\n|---|---|---|---|\n"


def render() -> str:
    groups: dict[str, type[StorageSettings]] = {
        "every domain": Settings,
        **{name: find_domain(name).settings() for name in MODULES},
    }
    return _HEAD + "".join(text for title, group in groups.items() for text in _section(title, group))


def _section(title: str, group: type[StorageSettings]) -> Iterator[str]:
    yield f"\n## {title[0].upper()}{title[1:]}\n\n{_COLUMNS}"
    shared = {} if issubclass(group, Settings) else StorageSettings.variables()
    for variable, (_, field) in group.variables().items():
        if variable not in shared:
            extra = field.json_schema_extra
            shown = extra["shown"] if isinstance(extra, dict) else ""
            secret = " **Secret**: never logged, never stored." if field.annotation is SecretStr else ""
            example = (field.examples or [""])[0]
            yield f"| `{variable}` | {shown} | {field.description}{secret} | `{example}` |\n"

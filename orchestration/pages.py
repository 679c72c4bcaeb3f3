"""The generated pages of the documentation: `python -m orchestration.pages FOLDER`, or `make docs`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pydantic import SecretStr

from domain.shared.reasons import DOMAINS, SHARED, reason_groups
from orchestration.registry import MODULES, find_domain
from orchestration.settings import Settings
from services.settings import StorageSettings

_SETTINGS = """\
# Settings

Every setting is an environment variable; an empty one counts as unset. Wrong values and names
that are nearly a setting's stop the program with a list of all of them; other unknown names are
warned of. This page is generated from the models in `orchestration/settings.py`,
`services/settings.py` and `services/<domain>/settings.py`: change a model, then
run `make docs`.
"""
_REASONS = """\
# Reason codes

A reason code says why a partition, a work item or a source is as it is. It is shown in `perennial status`, in
`perennial work list`, in the ledger and in the metadata of failed runs. `ID` is the number of the work item.
This page is generated: change the `reasons.yaml` of the domain, then run `make docs`.
"""


def pages() -> Mapping[str, Callable[[], str]]:
    """What renders each page, by file name."""
    of_domains = {name: page for domain in MODULES for name, page in find_domain(domain).pages.items()}
    return {"settings.md": settings_page, "reason-codes.md": reasons_page, **of_domains}


def settings_page() -> str:
    groups: dict[str, type[StorageSettings]] = {
        "every domain": Settings,
        **{name: find_domain(name).settings() for name in MODULES},
    }
    return _SETTINGS + "".join(
        text for title, group in groups.items() for text in settings_table(title, group)
    )


def settings_table(title: str, group: type[StorageSettings]) -> Iterator[str]:
    yield f"\n## {title[0].upper()}{title[1:]}\n\n"
    yield "| variable | default | what it does | example |\n|---|---|---|---|\n"
    shared = {} if issubclass(group, Settings) else StorageSettings.variables()
    for variable, (_, field) in group.variables().items():
        if variable not in shared:
            if not field.description:
                raise ValueError(f"the setting {variable} has no description; write a text below its field")
            extra = field.json_schema_extra
            shown = extra["shown"] if isinstance(extra, dict) else ""
            secret = " **Secret**: never logged, never stored." if field.annotation is SecretStr else ""
            example = (field.examples or [""])[0]
            means = " ".join(field.description.split())  # a row of a table is one line
            yield f"| `{variable}` | {shown} | {means}{secret} | `{example}` |\n"


def reasons_page() -> str:
    domains = {path.parent.name for path in DOMAINS.glob("*/reasons.yaml")} - {SHARED}
    return _REASONS + "".join(text for domain in (SHARED, *sorted(domains)) for text in _reasons(domain))


def _reasons(domain: str) -> Iterator[str]:
    name = "every domain" if domain == SHARED else domain
    for group in reason_groups(domain):
        yield f"\n## {group.title} ({name})\n\n| code | means | what to do |\n|---|---|---|\n"
        yield from (f"| `{r.code}` | {r.means} | {r.action or 'nothing'} |\n" for r in group.reasons)


if __name__ == "__main__":
    for name, render in pages().items():
        (Path(sys.argv[1]) / name).write_text(render(), encoding="utf-8")

"""The text of `docs/reason-codes.md`, from every `reasons.yaml`. `make docs` writes it."""

from __future__ import annotations

from collections.abc import Iterator

from domain.shared.reasons import DOMAINS, SHARED, reason_groups

_HEAD = """\
# Reason codes

A reason code says why a partition, a work item or a source is as it is. It stands in `perennial status`, in
`perennial work list`, in the ledger and in the metadata of failed runs. `ID` is the number of the work item.
This page is generated: change the `reasons.yaml` of the domain, then run `make docs`.
"""


def render() -> str:
    return _HEAD + "".join(text for name in (SHARED, *_domains()) for text in _sections(name))


def _domains() -> list[str]:
    found = {path.parent.name for path in DOMAINS.glob("*/reasons.yaml")}
    return sorted(found - {SHARED})


def _sections(domain: str) -> Iterator[str]:
    name = "every domain" if domain == SHARED else domain
    for group in reason_groups(domain):
        yield f"\n## {group.title} ({name})\n\n| code | means | what to do |\n|---|---|---|\n"
        yield from (f"| `{r.code}` | {r.means} | {r.action or 'nothing'} |\n" for r in group.reasons)

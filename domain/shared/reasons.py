"""Reason codes: what each means and what a person does, read from the `reasons.yaml` of a domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DOMAINS = Path(__file__).parents[1]
SHARED = "shared"


@dataclass(frozen=True)
class Reason:
    code: str
    means: str
    action: str
    """Empty where nothing but time is needed."""


@dataclass(frozen=True)
class ReasonGroup:
    title: str
    reasons: tuple[Reason, ...]


@cache
def reason_groups(domain: str) -> tuple[ReasonGroup, ...]:
    """Return the groups of one domain's reason codes, in the order of its file."""
    import yaml

    text = (DOMAINS / domain / "reasons.yaml").read_text(encoding="utf-8")
    document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    return tuple(
        ReasonGroup(
            group["title"],
            tuple(Reason(code, row["means"], row.get("action", "")) for code, row in group["codes"].items()),
        )
        for group in document["groups"]
    )


@cache
def actions(domain: str) -> Mapping[str, str]:
    """Return what a person does about each reason code of a domain, the shared ones included."""
    groups = (*reason_groups(SHARED), *reason_groups(domain))
    return {reason.code: reason.action for group in groups for reason in group.reasons if reason.action}

"""The health of everything: the findings of each domain, and those of the platform itself."""

from __future__ import annotations

from domain.shared.error import PerennialError
from domain.shared.health import Finding, unobserved
from orchestration.house import house_findings
from orchestration.registry import enabled
from orchestration.settings import Settings


def platform_findings(settings: Settings) -> list[Finding]:
    """The worst first. What cannot be observed is a finding too: there is always an answer."""
    own = list(house_findings(settings))
    try:
        found = [finding for domain in enabled(settings) for finding in domain.findings(settings)]
    except PerennialError as error:
        # Folders that cannot be written are why nothing can be observed; that is one problem, not two.
        found = [] if own else [unobserved("house", str(settings.home), error)]
    return sorted([*own, *found], key=lambda f: f.rank)

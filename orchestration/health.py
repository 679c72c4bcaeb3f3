"""The health of everything: the findings of each domain."""

from __future__ import annotations

from domain.shared.error import PerennialError
from domain.shared.health import Finding, unobserved
from orchestration.registry import enabled
from orchestration.settings import Settings


def platform_findings(settings: Settings) -> list[Finding]:
    """Return the findings, the worst first. What cannot be observed is a finding too."""
    found: list[Finding] = []
    errors: dict[str, PerennialError] = {}
    for domain in enabled(settings):
        try:
            found += domain.findings(domain.open(settings))
        except PerennialError as error:
            errors[error.message] = error  # a ledger that is away is one finding, not one per domain
    found += [unobserved("platform", str(settings.home), error) for error in errors.values()]
    return sorted(found, key=lambda f: f.rank)

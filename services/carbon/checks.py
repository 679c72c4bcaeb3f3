"""What `perennial doctor` examines of carbon: the rows of uploads, and the applications that are polled."""

from __future__ import annotations

from domain.shared.error import PerennialError, TransientResourceError
from services.carbon.reindex import uploads_without_rows
from services.carbon.service import CarbonService


def check_uploads(carbon: CarbonService) -> str:
    """The rows of uploads are there: carbon is made of them again, if it is ever lost."""
    count, lost = len(carbon.store.uploads.current()), uploads_without_rows(carbon.staging, carbon.store)
    if lost:
        named = "; ".join(map(str, lost[:5])) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
        raise PerennialError(
            f"the staged rows of {len(lost)} of {count} uploads are gone: {named}",
            remedy="upload these files again, or put the staged files back",
        )
    return f"the rows of {count} uploads are there"


def check_applications(carbon: CarbonService) -> str | None:
    """Each application lists its entries; the list is not kept."""
    if not carbon.feeds:
        return None
    found = []
    for origin, feed in carbon.feeds.items():
        try:
            found.append(f"{origin} answers ({len(feed.changes())} scopes)")
        except TransientResourceError as error:
            remedy = f"see that {feed.setting}_URL is right and the application runs"
            raise PerennialError(error.message, remedy=remedy) from error
    return ", ".join(found)


CHECKS = {"uploads": check_uploads, "applications": check_applications}

"""Uploads that the ledger does not list, though they were in it once: it was lost, or put back from a backup.

A note lies beside the kept rows of every upload, written after the ledger had it. So a note that the ledger
does not know tells of a ledger that is older than it; rows without a note tell of an upload that died.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import orjson

from domain.shared.error import InfrastructureError, InvalidInput
from resources.ledger.uploads import Upload
from resources.objects.staging import LOST

if TYPE_CHECKING:
    from resources.ledger.client import Ledger
    from resources.objects.staging import Staging

Outcome = Literal["listed", "overtaken", "lost", "listed meanwhile"]


@dataclass(frozen=True)
class Relisted:
    """What became of an upload that was to be listed again. `overtaken`: newer factors came, and it would
    come after them; `lost`: its rows are gone."""

    upload: Upload
    outcome: Outcome


def note(staging: Staging, one: Upload) -> None:
    staging.note(one.pipeline_id, orjson.dumps(asdict(one)))


def note_standing(staging: Staging, ledger: Ledger) -> int:
    """Note what was uploaded before there were notes, or by whoever died just then; how many there were."""
    noted = staging.noted()
    ids = [one.id for one in ledger.uploads.standing() if one.pipeline_id not in noted]
    for one in ledger.uploads.find(ids=ids):
        note(staging, one)
    return len(ids)


def unlisted(staging: Staging, ledger: Ledger) -> list[Upload]:
    """Those that would still say something, oldest first, each with the years of which it would."""
    # Listed before the ledger is asked: whatever is noted is in it already.
    noted = staging.noted()
    unknown = noted - ledger.uploads.known_pipelines() if noted else set()
    if not unknown:
        return []
    told = [one for name in unknown if (one := _told(staging, name)) is not None]
    listed = ledger.uploads.find(accepted=True)
    left = [replace(one, years=_left(one, listed, told)) for one in told]
    return sorted((one for one in left if one.years), key=lambda one: (one.moment, one.id))


def relist(staging: Staging, ledger: Ledger) -> list[Relisted]:
    """Have them in the ledger again, under new numbers, in their order."""
    return [Relisted(one, _relisted(staging, ledger, one)) for one in unlisted(staging, ledger)]


def forget(staging: Staging, ledger: Ledger, pipeline_id: str) -> Upload:
    """A person does not want it. Its rows stay where they are. The beginning of an id is enough."""
    found = [one for one in unlisted(staging, ledger) if one.pipeline_id.startswith(pipeline_id.upper())]
    if len(found) != 1:
        raise InvalidInput(
            f"of what the ledger does not list, {len(found)} pipelines begin with {pipeline_id!r}",
            reason_code="unknown_pipeline",
            remedy="see `perennial status`",
        )
    staging.remove_note(found[0].pipeline_id)
    return found[0]


def _relisted(staging: Staging, ledger: Ledger, one: Upload) -> Outcome:
    newer = ledger.uploads.find(kind=one.kind, accepted=True) if one.kind == "factors" else []
    if any(other.moment > one.moment and set(other.years) & set(one.years) for other in newer):
        return "overtaken"
    try:
        staging.rows(one.pipeline_id)
    except InfrastructureError as error:
        if error.reason_code != LOST:
            raise
        return "lost"
    return "listed" if ledger.uploads.record_again(one) is not None else "listed meanwhile"


def _told(staging: Staging, name: str) -> Upload | None:
    content = staging.noted_of(name)
    if content is None:
        return None  # forgotten since it was listed
    told = orjson.loads(content)
    moment = datetime.fromisoformat(told["uploaded_at"])
    return Upload(**{**told, "years": tuple(told["years"]), "uploaded_at": moment})


def _left(one: Upload, listed: Iterable[Upload], unknown: Sequence[Upload]) -> tuple[int, ...]:
    """The years of which nothing newer took its place. Factors add to each other: of them only the very same
    file, uploaded again."""
    if one.kind == "factors":
        newer = [other for other in listed if other.sha256 == one.sha256]
    else:
        newer = [*listed, *unknown]
    gone = {
        y for other in newer if other.place == one.place and other.moment > one.moment for y in other.years
    }
    return tuple(year for year in one.years if year not in gone)

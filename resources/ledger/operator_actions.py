"""What a person may do to a work item: cancel it, retry it. And withdrawing what is not needed any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from domain.shared.error import InvalidInput
from domain.shared.work import CANCELLED, FINISHED, SUPERSEDED, WAITING, Work
from resources.database.engine import writing
from resources.database.statements import lock_name
from resources.ledger.model import RETRIED
from resources.ledger.pipelines import inherit
from resources.ledger.queries import Queries
from resources.ledger.rows import Change, create, is_id, lock_ids, read_keys, write
from resources.ledger.transitions import finished, first_generation, made_due, request_of


class OperatorActions(Queries):
    def cancel(self, work_id: int) -> Work:
        """End the row, even a running one: its fence moves, so its holder's next write changes nothing."""
        now = self.clock()
        with writing(self.engine) as connection:
            row = _known(lock_ids(connection, [work_id] if is_id(work_id) else []), work_id)
            if row.status == CANCELLED:
                return row
            if row.status in FINISHED:
                raise InvalidInput(f"work {work_id} is {row.status} already", reason_code="already_finished")
            after = finished(row, CANCELLED, now, reason_code=CANCELLED)
            write(connection, [Change(row, after, "cancelled")], now)
            return after

    def supersede(self, seen: Sequence[Work], *, reason_code: str = SUPERSEDED) -> list[Work]:
        """End waiting rows that are not needed any more, each only if it is still as it was seen: never what
        began to run since. Nothing is refused for it: what is needed again is requested again."""
        now = self.clock()
        return self._change_waiting(
            seen, "superseded", lambda row: finished(row, SUPERSEDED, now, reason_code=reason_code)
        )

    def hurry(self, seen: Sequence[Work]) -> list[Work]:
        """Make waiting rows due now, each only if it is still as it was seen. Their reason stays: nobody
        requested anything new."""
        now = self.clock()
        return self._change_waiting(seen, "hurried", lambda row: made_due(row, now, row.reason_code))

    def _change_waiting(self, seen: Sequence[Work], event: str, change: Callable[[Work], Work]) -> list[Work]:
        known = {row.id: row for row in seen if row.status in WAITING}
        if not known:
            return []
        with writing(self.engine) as connection:
            same = [row for row in lock_ids(connection, known) if row == known[row.id]]
            changes = [Change(row, change(row), event) for row in same]
            write(connection, changes, self.clock())
        return [change.after for change in changes]

    def retry(self, work_id: int) -> Work:
        """A waiting row becomes due now; a finished one gets a new generation, which is returned."""
        now = self.clock()
        found = self.get(work_id)
        known = _known([found] if found else [], work_id)
        with writing(self.engine) as connection:
            lock_name(connection, known.kind)
            state = read_keys(connection, known.kind, [known.key], lock=True)[known.key]
            if state.running is not None:
                raise InvalidInput(
                    f"{known.kind} {known.key} is running as work {state.running.id}",
                    reason_code="already_running",
                    remedy="wait for it, or cancel it first",
                )
            if state.waiting is not None:
                after = made_due(state.waiting, now)
                write(connection, [Change(state.waiting, after, "retried")], now)
                return after
            # The row that was named; if another one came after it and counts, that.
            named = next((row for row in state.counting if row.id == work_id), None)
            return self._next_generation(connection, named or state.last or known)

    def _next_generation(self, connection: Connection, last: Work) -> Work:
        request = replace(request_of(last), reason_code=RETRIED, parent_id=last.id)
        now = self.clock()
        [created] = create(connection, [first_generation(request, self.kind_named(last.kind), now)], now)
        inherit(connection, [(last.id, created.id)])
        return created


def _known(found: Sequence[Work], work_id: int) -> Work:
    if not found:
        raise InvalidInput(
            f"there is no work {work_id}", reason_code="unknown_work", remedy="see `perennial work list`"
        )
    return found[0]

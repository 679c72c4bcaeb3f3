"""A ledger in a file that this process cannot write beside: on a read-only disk, or of another user.

SQLite keeps a log and an index of it beside the file, and where it cannot make them it opens nothing. Told
that nothing changes the file it needs neither; but then it would not see commits that are only in the log.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Dialect, Engine, event

from domain.shared.error import TransientResourceError

_MODE = "opened_read_only"
_AT_REST = "mode=ro&immutable=1"


def read_where_writing_is_impossible(engine: Engine) -> None:
    """Have this engine's connections open the file as it can be opened."""
    event.listen(engine, "do_connect", _connect)
    event.listen(engine, "checkin", _forget)


def check_at_rest(connection: Connection) -> None:
    """Raise if a writer has come to a file that was read as one that nobody changes."""
    path, mode = connection.info.get(_MODE, (None, ""))
    if mode == _AT_REST and _mode(path) != _AT_REST:
        raise TransientResourceError(
            f"the ledger at {path} was written while it was read",
            reason_code="ledger_unavailable",
            remedy="ask again",
        )


def _mode(path: Path) -> str:
    """Empty where all is as usual, and where there is no ledger yet."""
    if not path.exists() or os.access(path.parent, os.W_OK):
        return ""
    return "mode=ro" if path.with_name(f"{path.name}-wal").exists() else _AT_REST


def _connect(dialect: Dialect, record: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
    path = Path(arguments[0]).absolute()
    if not (mode := _mode(path)):
        return None  # as usual
    record.info[_MODE] = path, mode
    return dialect.connect(f"{path.as_uri()}?{mode}", uri=True, **options)


def _forget(_: Any, record: Any) -> None:
    """Not kept for later: by then the disk may be writable and the file another."""
    if record.info.pop(_MODE, None):
        record.invalidate()

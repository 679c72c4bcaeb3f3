"""The errors the platform knows, in one tree.

Adapters classify what they meet into these types; nobody else inspects messages. An error says what
failed, on what, and what a person can do. Texts must never carry a secret: adapters redact first.
"""

from __future__ import annotations

from datetime import timedelta


class PerennialError(Exception):
    """Root of everything raised on purpose.

    `reason_code` is a short stable word for machines (ledger, status, metrics); `remedy` is the one
    sentence with what a person does, empty if nothing but waiting helps. A subclass declares both.
    """

    reason_code = "error"
    remedy = ""

    def __init__(self, message: str, *, reason_code: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message)
        if reason_code is not None:
            self.reason_code = reason_code
        if remedy is not None:
            self.remedy = remedy

    @property
    def message(self) -> str:
        return str(self.args[0])


class InvalidInput(PerennialError):
    """A person must fix data, a setting or an argument; trying again changes nothing."""

    reason_code = "invalid_input"


class InfrastructureError(PerennialError):
    """Something outside failed."""

    reason_code = "infrastructure"


class TransientResourceError(InfrastructureError):
    """Back off and try again. `retry_after` is set where the service said how long to wait.

    `retry_in_run`: do the short waits inside a run (10, 20, 40 s) help, or only a later run? A rate limit
    or a quota that is used up is not given back by trying again: that only burns attempts.
    """

    reason_code = "transient"
    retry_in_run = True

    def __init__(
        self,
        message: str,
        *,
        reason_code: str | None = None,
        remedy: str | None = None,
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(message, reason_code=reason_code, remedy=remedy)
        self.retry_after = retry_after


class PermanentRunnerError(InfrastructureError):
    """Trying again is hopeless until a person changes something (a token, a permission, an image)."""

    reason_code = "permanent"

"""Findings about the platform itself: the daemon, its runs, the disk, the clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.shared.health import Finding, Health
from domain.shared.reasons import SHARED, actions
from domain.shared.work_findings import lost

PLATFORM = "platform"
DAEMON, CLOCK, PORT = "daemon", "clock", "UI port"

SILENT = timedelta(minutes=3)
"""A daemon that has shown no sign of life for so long is not running; it shows one every 30 seconds."""
FORGOTTEN = timedelta(days=7)
"""Whoever has started no daemon for so long works with commands; in production nobody does."""
STUCK = timedelta(hours=1)
"""A run that holds work and has logged nothing for so long does not get on."""
LEFT = timedelta(minutes=30)
"""The same for a run that holds none: its process is gone."""
MAX_RUNTIME = timedelta(hours=4)
"""After which the daemon ends a run (`run_monitoring` in `dagster.*.yaml`)."""
SKEW = timedelta(minutes=5)
"""So much may two clocks differ."""
_DISK_CODES = ("disk_full", "read_only", "lake_unwritable", "ledger_read_only", "ledger_unreachable")


@dataclass(frozen=True)
class UnfinishedRun:
    """A run that Dagster believes to be under way. `holds` are the ids of the work items it has leased."""

    run_id: str
    started: datetime
    last_sign: datetime
    holds: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        return f"run {self.run_id[:8]}"


@dataclass(frozen=True)
class FullFolder:
    """A folder that cannot be written, or soon cannot be."""

    setting: str
    reason_code: str
    reason: str


@dataclass(frozen=True)
class Platform:
    """What was observed of the platform."""

    daemon_runs: bool = False
    heartbeat: datetime | None = None
    """The daemon's last sign of life, None if none was ever started."""
    served: bool = False
    """Whether work is done by a daemon only: one that has stopped is never forgotten."""
    runs: tuple[UnfinishedRun, ...] = ()
    folders: tuple[FullFolder, ...] = ()
    port_taken: str = ""
    """The address of the UI if another program listens there."""
    newest_record: datetime | None = None
    reference: datetime | None = None
    """The time by another clock, if one was asked."""
    killed_runs: Collection[str] = frozenset()
    """Runs of commands of this machine that were killed: their leases may hold for up to a minute more."""
    late_codes: Collection[str] = frozenset()
    """Reason codes of the domains that a machine whose clock is ahead meets, too."""

    def down_since(self, now: datetime) -> datetime | None:
        """Return the last sign of life of a daemon that people rely on and that does not run."""
        if self.daemon_runs or self.heartbeat is None:
            return None
        return self.heartbeat if self.served or now - self.heartbeat < FORGOTTEN else None


def findings(seen: Platform, now: datetime) -> list[Finding]:
    found = [_finding(f.setting, _folder_health(f), f.reason_code, f.reason) for f in seen.folders]
    found += filter(None, [clock_finding(seen, now)])
    found += [_run(run, seen, now) for run in seen.runs if _hangs(run, now)]
    if since := seen.down_since(now):
        cause = None
        if seen.port_taken:
            cause = PORT
            reason = f"another program listens at {seen.port_taken}, so `perennial up` cannot start"
            found.append(_finding(PORT, "broken", "port_in_use", reason))
        reason = "the daemon does not run: nothing is fetched, healed or calculated by itself"
        found.append(replace(_finding(DAEMON, "broken", "daemon_down", reason, since), caused_by=cause))
    return found


def clock_finding(seen: Platform, now: datetime) -> Finding | None:
    """Return what is wrong with this machine's clock."""
    if seen.reference and abs(seen.reference - now) > SKEW:
        side = "behind" if seen.reference > now else "ahead of"
        reason = f"this machine's clock is {_hours(abs(seen.reference - now))} {side} the source's"
        return _finding(CLOCK, "broken", "clock_wrong", reason)
    if seen.newest_record and seen.newest_record - now > SKEW:
        ahead = _hours(seen.newest_record - now)
        reason = f"the newest record is {ahead} in the future: this machine's clock is wrong, or was"
        return _finding(CLOCK, "broken", "clock_wrong", reason)
    return None


def without_killed(found: Iterable[Finding], seen: Platform, now: datetime) -> list[Finding]:
    """Return findings of domains; what a killed command had is worked on by nobody."""
    return [
        lost(f, f"the command that had it was killed, in run {f.run_id}", now)
        if f.run_id in seen.killed_runs
        else f
        for f in found
    ]


def with_causes(found: Iterable[Finding], seen: Platform, platform: Sequence[Finding]) -> list[Finding]:
    """Return findings of domains, each with the finding about the platform that causes it, and with what a
    person does about due work where no daemon does it."""
    subjects = {f.subject for f in platform}
    disk = next((f.subject for f in platform if f.reason_code in _DISK_CODES), None)
    holders = {work: run.name for run in seen.runs for work in run.holds if run.name in subjects}

    def cause(finding: Finding) -> str | None:
        if finding.work_id in holders:
            return holders[finding.work_id]
        if finding.reason_code in _DISK_CODES:
            return disk
        if finding.reason_code in seen.late_codes and CLOCK in subjects:
            return CLOCK
        return DAEMON if DAEMON in subjects and finding.health == "healing" else None

    def action(finding: Finding) -> str:
        by_hand = f"`perennial {finding.domain} heal`"
        if finding.needs_run:
            return "nothing" if seen.daemon_runs else f"{by_hand}, or `perennial up`"
        waits = not seen.daemon_runs and finding.health == "healing" and finding.next_attempt is not None
        return f"{finding.action}; no daemon runs: {by_hand}" if waits else finding.action

    return [replace(f, caused_by=f.caused_by or cause(f), action=action(f)) for f in found]


def _finding(subject: str, health: Health, code: str, reason: str, since: datetime | None = None) -> Finding:
    action = actions(SHARED).get(code, "see `perennial doctor`")
    return Finding(PLATFORM, subject, health, code, reason, since, action=action)


def _folder_health(folder: FullFolder) -> Health:
    return "stale" if folder.reason_code == "disk_nearly_full" else "broken"


def _hours(span: timedelta) -> str:
    minutes = round(span.total_seconds() / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def _hangs(run: UnfinishedRun, now: datetime) -> bool:
    return now - run.last_sign > (STUCK if run.holds else LEFT)


def _run(run: UnfinishedRun, seen: Platform, now: datetime) -> Finding:
    quiet = _hours(now - run.last_sign)
    items = f"{len(run.holds)} work item{'s' if len(run.holds) > 1 else ''}"
    held = f"it holds {items if run.holds else 'no work'}"
    reason = f"{run.run_id} has logged nothing for {quiet}; {held}"
    found = _finding(run.name, "broken" if run.holds else "stale", "run_stuck", reason, since=run.last_sign)
    if not seen.daemon_runs:
        return found
    return replace(found, health="healing", next_attempt=max(run.started + MAX_RUNTIME, now))

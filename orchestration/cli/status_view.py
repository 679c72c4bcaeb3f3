"""How groups of findings look on a terminal: as many as fit on one screen, the worst first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from textwrap import wrap
from zoneinfo import ZoneInfo

from domain.shared.finding_groups import Group
from domain.shared.printable import printable

STYLE = {"broken": "bold red", "stale": "yellow", "healing": "cyan", "explained": "dim"}
INDENT = " " * 10
WIDEST = 110
EFFECTS = 3
"""So many kinds of effects are listed below their cause."""
ALL = "perennial status --all"
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d)(?::\d\d)? (UTC|Asia/Shanghai)\b")


@dataclass(frozen=True)
class Line:
    text: str
    style: str = ""
    mark: str = ""
    """What stands in the first column, in the style of its health."""

    def __str__(self) -> str:
        return f"{self.mark:<{len(INDENT)}}{self.text}" if self.mark else self.text


@dataclass(frozen=True)
class Screen:
    width: int
    height: int | None = None
    """None: everything is shown."""


def render(groups: Sequence[Group], head: Sequence[str], screen: Screen, now: datetime) -> list[Line]:
    """Return the lines. Groups that do not fit in full take one line each, the rest is counted."""
    width = min(screen.width, WIDEST)
    lines = [Line(part) for text in head for part in wrap(text, width) or [""]]
    full = [list(_full(group, width, now)) for group in groups]
    if screen.height is None or len(lines) + sum(map(len, full)) < screen.height:
        return [*lines, *(line for block in full for line in block)]
    # One line for the prompt, one for what is left out.
    room = screen.height - len(lines) - 2
    for number, block in enumerate(full):
        short = len(full) - number - 1
        if len(block) + min(short, 2) <= room or number == 0:
            lines += block
            room -= len(block)
            continue
        rest, room = groups[number:], max(room, 0)
        lines += [_short(group, width) for group in rest[:room]]
        if (left := len(rest) - room) > 0:
            plural = "s" if left > 1 or left == len(groups) else ""
            lines.append(Line(f"and {left} more group{plural}: {ALL}"))
        else:
            lines.append(Line(f"causes and remedies of all: {ALL}"))
        break
    return lines


def _short(group: Group, width: int) -> Line:
    text = f"{group.reason_code}: {group.domain} {_subjects(group)}"
    return Line(_cut(text, width - len(INDENT)), mark=group.health)


def _full(group: Group, width: int, now: datetime) -> Iterator[Line]:
    room = width - len(INDENT)
    subjects = wrap(printable(f"{group.domain} {_subjects(group)}"), room, max_lines=2, placeholder=" …")
    yield Line(subjects[0], "bold", group.health)
    yield from (Line(INDENT + part, "bold") for part in subjects[1:])
    reason = printable(f"{group.reason_code}: {in_zone(group.reason)}")
    yield from (Line(INDENT + part) for part in wrap(reason, room, max_lines=3, placeholder=" …"))
    if times := _times(group, now):
        yield from (Line(INDENT + part, "dim") for part in wrap(times, room))
    if group.action and group.action != "nothing":
        first, *others = wrap(f"> {printable(in_zone(group.action))}", room, subsequent_indent="  ")
        yield from (Line(INDENT + part, "green") for part in (first, *others))
    for effect in group.effects[:EFFECTS]:
        yield Line(
            INDENT + _cut(f"so {effect.health}: {effect.reason_code}: {_subjects(effect)}", room), "dim"
        )
    if len(group.effects) > EFFECTS:
        left = sum(effect.size for effect in group.effects[EFFECTS:])
        yield Line(f"{INDENT}and {left:,} more", "dim")


def _subjects(group: Group) -> str:
    return printable("; ".join(map(str, group.spans)))


def _times(group: Group, now: datetime) -> str:
    parts = [f"since {shown(group.since)}"] if group.since else []
    if group.attempts:
        parts.append(f"{group.attempts} attempt{'s' if group.attempts > 1 else ''}")
    if group.next_attempt:
        coming = group.next_attempt > now + timedelta(seconds=1)
        parts.append(f"next attempt {shown(group.next_attempt)}" if coming else "due now")
    return ", ".join(parts)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 2]} …"


def shown(moment: datetime) -> str:
    """Return a moment in the time zone of this machine, which `zone` names."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def in_zone(text: str) -> str:
    """Return a sentence with its moments as `shown` shows them: one answer speaks of one time zone."""
    return _MOMENT.sub(
        lambda found: shown(datetime.fromisoformat(found[1]).replace(tzinfo=ZoneInfo(found[2]))), text
    )


def zone(now: datetime) -> str:
    local = now.astimezone()
    name, offset = local.tzname() or "", f"{local:%z}"
    return "UTC" if name == "UTC" else f"{name} (UTC{offset[:3]}:{offset[3:5]})"

"""The round in which the disk fills up in the middle of a backfill. Needs the right to mount."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from functools import partial

from tests.chaos.home import COMMAND
from tests.chaos.kills import finish
from tests.chaos.market_checks import Baseline
from tests.chaos.rounds import Findings, Round

NAMESPACE = ("unshare", "-rm", "sh", "-c")
"""Mounts made in it are nobody else's, and go with it."""
REASONS = ("disk_full", "no space", "disk is full", "disk i/o")


def rounds(base: Baseline) -> dict[str, Round]:
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    can_mount = shutil.which("unshare") and not subprocess.run(probe, capture_output=True).returncode
    return {"full-disk": partial(full_disk, base)} if can_mount else {}


def full_disk(base: Baseline, luck: random.Random) -> Findings:
    """An empty home on a disk that is smaller than a filled home; later the disk is large."""
    found = Findings()
    with base.home() as home:
        size = int(base.kilobytes * luck.uniform(0.25, 0.95))
        kept, status = home.sibling("kept"), home.sibling("status.json")
        home.folder.mkdir()
        script = (
            f"mount -t tmpfs -o size={size}k tmpfs {home.folder} || exit 99\n"
            f"{' '.join((*COMMAND, *base.backfill))}; code=$?\n"
            f"{' '.join((*COMMAND, 'status', '--json'))} > {status}\n"
            f"cp -a {home.folder} {kept} && exit $code\n"
        )
        ended = home.run(script, command=NAMESPACE)
        shutil.rmtree(home.folder)
        kept.rename(home.folder)
        found.count(kib=size, code=ended.code)
        if ended.failed_badly:
            found.complaints.append(f"the backfill ended with {ended.code}: {ended.text[-600:]}")
        if ended.code:  # else it was over, or had all it needed, before the disk was full
            found.complaints += _unexplained(ended.text, status.read_text())
        finish(base, home, found)
    return found


def _unexplained(printed: str, status: str) -> list[str]:
    """Complaints if neither the command nor a finding of `status --json` names the cause."""
    try:
        findings = json.loads(status)["findings"]
    except (json.JSONDecodeError, KeyError):
        return [f"status --json gave no document: {status[-300:]!r}"]
    if any(reason in f"{printed} {json.dumps(findings)}".lower() for reason in REASONS):
        return []
    reasons = sorted({f["reason_code"] for f in findings})
    return [f"neither command nor status ({reasons}) names the full disk: {printed[-300:]}"]

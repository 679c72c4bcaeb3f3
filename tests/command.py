"""The `perennial` command in this process, exactly as its console script starts it."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from orchestration.cli.main import main


@dataclass(frozen=True)
class Said:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def said(*arguments: str) -> Said:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["perennial", *arguments])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
                code: Any = 0
            except SystemExit as end:
                code = end.code or 0
    return Said(int(code), out.getvalue(), err.getvalue())

"""Fixtures of the lake's tests."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.unit.resources.lake.races")

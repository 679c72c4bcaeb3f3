"""When a pipeline was made, by its id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from domain.shared.pipeline import created_at
from resources.ledger.pipelines import new_pipeline_id


def test_created_at__new_id__is_now():
    found = created_at(new_pipeline_id())
    assert found is not None
    assert abs(found - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize("name", ["", "upload-1", "I" * 26, "8" + "0" * 25, "7" + "Z" * 25])
def test_created_at__no_id_of_ours__is_unknown(name: str):
    assert created_at(name) is None

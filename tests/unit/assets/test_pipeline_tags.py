"""The tags of a run: enough to find it by, however many files wait for it."""

from __future__ import annotations

from assets.policies.tags import PIPELINE, TAGGED, pipeline_tags


def test_a_run_of_no_chain_has_no_tags_of_chains() -> None:
    assert pipeline_tags([]) == {}


def test_the_chains_of_a_run_are_told_the_newest_first_among_them() -> None:
    assert pipeline_tags(["01B", "01A", "01B"]) == {
        "perennial/pipeline": "01B",
        "perennial/pipelines": "2",
        "perennial/pipeline.01A": "yes",
        "perennial/pipeline.01B": "yes",
    }


def test_of_very_many_chains_the_newest_have_tags_and_all_are_counted() -> None:
    chains = [f"{number:05}" for number in range(3_000)]
    tags = pipeline_tags(chains)
    assert (tags["perennial/pipeline"], tags["perennial/pipelines"]) == ("02999", "3000")
    assert {name for name in tags if name.startswith(f"{PIPELINE}.")} == {
        f"{PIPELINE}.{name}" for name in chains[-TAGGED:]
    }

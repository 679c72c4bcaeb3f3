"""The names of Dagster's private modules that are used here, apart from those of the event log's storage."""

# ruff: noqa: TID251
from dagster._core.errors import DagsterUserCodeProcessError
from dagster._core.event_api import PartitionKeyFilter
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin

__all__ = [
    "DagsterUserCodeProcessError",
    "PartitionKeyFilter",
    "RegisteredCodeLocationOrigin",
    "RemoteRepositoryOrigin",
]

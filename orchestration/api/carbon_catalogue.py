"""What files hold, over HTTP: the data entry types with their columns, and templates of files."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from domain.carbon.catalogue import catalogue
from domain.shared.clock import machine_clock
from orchestration.api.carbon_service import TYPES, QueryYear
from orchestration.api.parameters import parameter_error
from orchestration.settings import Settings
from services.carbon.template import template

_WHAT = ["units", "factors", *TYPES]


class Column(BaseModel):
    """A column of a file of entries."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    description: str
    role: str = Field(description="What it does in the formula; `key` chooses the factor.")
    required: bool
    example: str
    default: str = Field(description="What an empty field of it means.")
    values: list[str] = Field(description="What is allowed; empty: any word or number.")


class Emission(BaseModel):
    """What an entry causes."""

    model_config = ConfigDict(from_attributes=True)

    name: str = Field(description="The `emission_type` of its factors.")
    scope: int
    category: str
    optional: bool = Field(description="Without any factor in a year it is not counted.")


_EXAMPLE: JsonDict = {
    "name": "train",
    "module": "travel",
    "title": "Train journeys",
    "description": "One row per journey or per ticket group.",
    "unit": "km",
    "units": ["km", "m"],
    "formula": "distance [km] × passengers × (2 if round_trip) × factor[country]",
    "emissions": [{"name": "train", "scope": 3, "category": "6 business travel", "optional": False}],
    "columns": [
        {
            "name": "distance",
            "description": "Distance of one way",
            "role": "amount",
            "required": True,
            "example": "420",
            "default": "",
            "values": [],
        }
    ],
}


class EntryType(BaseModel):
    """A data entry type: how it is calculated, and the columns of its files."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "example": _EXAMPLE,
        },
    )

    name: str = Field(description="For `type` of other calls.")
    module: str
    title: str
    description: str
    unit: str = Field(description="Of the amount, and of what factors count by.")
    units: list[str] = Field(description="Those that an amount may be given in.")
    formula: str
    emissions: list[Emission]
    columns: list[Column] = Field(
        validation_alias="read_columns",
        description="Of its files, beside year, data_entry_type, entry_id, unit_id, unit, kg_co2eq and note.",
    )


class EntryTypes(BaseModel):
    """All data entry types."""

    model_config = ConfigDict(json_schema_extra={"example": {"types": [_EXAMPLE]}})

    types: list[EntryType]


def routes(_: Settings) -> APIRouter:
    router = APIRouter()

    @router.get("/carbon/types", summary="The data entry types, and the columns of their files")
    def types() -> EntryTypes:
        return EntryTypes(types=[EntryType.model_validate(one) for one in catalogue().types.values()])

    @router.get(
        "/carbon/templates/{what}",
        summary="The header and example rows of a file",
        response_class=Response,
        responses={
            200: {
                "content": {
                    "text/csv": {
                        "schema": {"type": "string"},
                        "example": template(catalogue(), "units", 2025),
                    }
                }
            }
        },
    )
    def show_template(
        what: Annotated[
            str,
            Path(
                description="`units`, `factors`, or a data entry type.",
                json_schema_extra={"enum": _WHAT},
                examples=["train"],
            ),
        ],
        year: Annotated[QueryYear, Query(description="The year in its rows.")] = None,
        data_entry_type: Annotated[
            str | None,
            Query(
                alias="type",
                description="Of `factors`: only the rows of this data entry type.",
                examples=["train"],
            ),
        ] = None,
    ) -> Any:
        """CSV, ready to be filled and uploaded."""
        if data_entry_type and what != "factors":
            fault = "means something of /carbon/templates/factors only"
            raise RequestValidationError([parameter_error("query", "type", fault)])
        text = template(catalogue(), what, year or machine_clock().year - 1, data_entry_type)
        return Response(text, media_type="text/csv")

    return router

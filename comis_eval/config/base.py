"""What every part of the configuration is made of: one model base and a few value types."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

MAX_INTEGER = 2**53 - 1
"""Largest integer a configuration may hold: beyond it JSON numbers lose exactness."""

PositiveInt = Annotated[int, Field(gt=0, le=MAX_INTEGER)]
NonNegativeInt = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]


class Settings(BaseModel):
    """Base of all parts: immutable, no unknown keys, no coercion, no NaN or infinity.

    An integer is taken where a number is asked, and a list where a tuple is; nothing else
    is converted: ``"5"`` and ``true`` are not integers.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        alias_generator=to_camel,
        populate_by_name=True,
    )

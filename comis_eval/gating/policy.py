"""What a candidate must keep, and how sure the gate must be before it says no."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from comis_eval.config import Settings, shown
from comis_eval.config_file import read_yaml
from comis_eval.errors import ConfigError, MetricError
from comis_eval.metrics import ALL, parse
from comis_eval.text import close_matches, printable

EACH = "*"
"""Among the slices: every category of the queries."""


def _as_tuple(given: object) -> object:
    return tuple(given) if isinstance(given, list) else given


def _a_metric(name: str) -> str:
    try:
        return parse(name).name
    except MetricError as error:
        raise ValueError(str(error)) from error


def _some(given: dict[str, float]) -> dict[str, float]:
    if not given:
        raise ValueError("names no metric, so there is nothing to gate")
    return given


Margin = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class Limits(Settings):
    """What is not a matter of chance, and how much of it is put up with."""

    failed_queries: Count = Field(0, description="queries that the pipeline may fail on")
    dead_lanes: Count = Field(0, description="lanes that may return nothing for every query")
    new_leaks: Count = Field(
        0,
        description="queries more than in the baseline that may leak where nothing is promised",
    )
    latency_ratio: Annotated[float, Field(gt=0)] | None = Field(
        2.0, description="most that p95 may be of the baseline's; null: not looked at"
    )


class Policy(Settings):
    """When a candidate passes.

    The default gates three headline figures with a margin of 0.01 each, reports them by
    category, and tolerates no failed query and no dead lane. Leaks that the pipeline
    promises to prevent, laundered and resurrected memories have no limit to set: they must
    not be there.
    """

    metrics: Annotated[
        dict[Annotated[str, AfterValidator(_a_metric)], Margin], AfterValidator(_some)
    ] = Field(
        {"utility": 0.01, "ndcg@10": 0.01, "recall@5": 0.01},
        description="what is gated, and the loss that is put up with, in its own unit",
    )
    slices: Annotated[tuple[str, ...], Field(min_length=1), BeforeValidator(_as_tuple)] = Field(
        (ALL,), description="what is gated beside all: categories; '*' is every one of them"
    )
    correction: Literal["maxt", "holm"] = Field(
        "maxt", description="how p is corrected over metrics and slices"
    )
    level: float = Field(0.05, gt=0, lt=1, description="two-sided significance level")
    resamples: int = Field(
        4_000, ge=100, le=1_000_000, description="sign flips and bootstrap samples"
    )
    seed: int = Field(0, ge=0, description="of both")
    limits: Limits = Limits()


def load_policy(path: Path) -> Policy:
    """Read a policy file; what it does not set has its default.

    Raises:
        ConfigError: If it cannot be read, or values are not allowed: all of them at once,
            each with its dotted path.
    """
    where = printable(str(path))
    given = read_yaml(path)
    if given is None:  # nothing but comments
        given = {}
    if not isinstance(given, dict):
        raise ConfigError(f"{where}: must be a mapping with {', '.join(Policy.model_fields)}")
    try:
        return Policy.model_validate(given)
    except ValidationError as error:
        told = (_told(e["loc"], e["type"], e["msg"], e["input"]) for e in error.errors())
        raise ConfigError(f"{where}: " + "; ".join(told)) from error


def _told(location: tuple[int | str, ...], kind: str, message: str, found: object) -> str:
    path = ".".join(printable(str(part), limit=80) for part in location if part != "[key]")
    if kind == "extra_forbidden":
        part = Limits if location[0] == "limits" else Policy
        near = close_matches(str(location[-1]), part.model_fields)
        return f"{path}: unknown key; {near or 'allowed: ' + ', '.join(part.model_fields)}"
    said = printable(message.removeprefix("Value error, "), limit=400)
    return f"{path}: {said}, got {shown(found)}"

"""A run's params, metrics and tags turned into what MLflow stores unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite, isnan
from typing import NamedTuple

from comis_eval.text import printable
from comis_eval.tracking.names import mlflow_name
from comis_eval.tracking.records import Scalar

LONGEST_PARAM = 6000
LONGEST_TAG = 8000
LONG_VALUES = "long_values.json"
"""The artifact that keeps what is too long for a param or a tag."""

NOT_LOGGED = "comis_eval.not_logged"
"""The tag that lists the metrics without a finite value, as a JSON object."""


class Prepared(NamedTuple):
    """What MLflow is told about one run.

    Attributes:
        params: By MLflow's names, as text.
        metrics: By MLflow's names, all finite.
        tags: By MLflow's names; :data:`NOT_LOGGED` among them when something is left out.
        not_finite: How many metrics are left out.
        long: The whole values of params and tags MLflow would cut, by our names.
        names: MLflow's name of each name it does not take.
    """

    params: dict[str, str]
    metrics: dict[str, float]
    tags: dict[str, str]
    not_finite: int
    long: dict[str, str]
    names: dict[str, str]


def prepared(
    params: Mapping[str, Scalar],
    metrics: Mapping[str, float | None],
    tags: Mapping[str, str],
) -> Prepared:
    """Map names, write params as text, leave out what is not finite, set long values aside.

    MLflow itself stores NaN, turns infinity into 1.797e308 and cuts long values.

    Args:
        params: By dotted name. Numbers are written as Python reads them back, True, False
            and None as YAML does.
        metrics: By our names; None is undefined, as NaN is.
        tags: By name.
    """
    left_out = {name: _why(value) for name, value in metrics.items() if not _finite(value)}
    kept = {name: float(value) for name, value in metrics.items() if _finite(value)}  # type: ignore[arg-type]
    written = {name: _text(value) for name, value in params.items()}
    told = {name: _lines(value) for name, value in tags.items()}
    if left_out:
        told[NOT_LOGGED] = json.dumps(left_out)
    long = {
        **{name: text for name, text in written.items() if len(text) > LONGEST_PARAM},
        **{name: text for name, text in told.items() if len(text) > LONGEST_TAG},
    }
    names = {name: mlflow_name(name) for name in (*params, *metrics, *told)}
    aside = f"too long for MLflow: in the artifact {LONG_VALUES}"
    return Prepared(
        {names[n]: aside if n in long else text for n, text in written.items()},
        {names[n]: value for n, value in kept.items()},
        {names[n]: aside if n in long else text for n, text in told.items()},
        len(left_out),
        long,
        {name: mapped for name, mapped in names.items() if name != mapped},
    )


def _finite(value: float | None) -> bool:
    return value is not None and isfinite(value)


def _why(value: float | None) -> str:
    if value is None or isnan(value):
        return "undefined"
    return "infinite" if value > 0 else "minus infinite"


def _text(value: Scalar) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _lines(value) if isinstance(value, str) else repr(value)


def _lines(text: str) -> str:
    """What no database and no page stumbles over; line ends stay."""
    return "\n".join(map(printable, text.split("\n")))

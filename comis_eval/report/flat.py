"""What each knob may be without leaving the noise around the best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import NamedTuple

from comis_eval.report.drawing import (
    WIDE,
    Box,
    Dot,
    Drawing,
    Label,
    Line,
    Mark,
    legend,
    plain,
    rows,
)
from comis_eval.report.study import SearchedKnob, Study, Value


class Region(NamedTuple):
    """One knob of numbers.

    Attributes:
        knob: Dotted path.
        low, high: What was searched.
        flat_low, flat_high: What is as good as the best.
        current, winner: Where the two stand; None when unknown.
        log: Whether the range is a logarithmic one.
    """

    knob: str
    low: float
    high: float
    flat_low: float
    flat_high: float
    current: float | None
    winner: float | None
    log: bool = False

    def share(self, value: float) -> float:
        """Where in the searched range a value lies, in [0, 1]."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.log and low > 0:
            low, high, at = log(low), log(high), log(at)
        return (at - low) / (high - low)


class Options(NamedTuple):
    """One knob of choices, and those of them that are as good as the best."""

    knob: str
    good: tuple[Value, ...]
    current: Value
    winner: Value


@dataclass(frozen=True)
class Flat:
    """The flat region around the best, knob by knob.

    Attributes:
        regions: Knobs of numbers.
        options: Knobs of anything else.
    """

    regions: tuple[Region, ...]
    options: tuple[Options, ...]

    def draw(self, width: float = WIDE) -> Drawing:
        """Lay out each knob's searched range as a line and its flat region as a bar on it."""
        labels = [region.knob for region in self.regions]
        frame = rows(labels, 0, 1, width=width, right=124, row=28, top=24, axis=False)
        marks: list[Mark] = list(frame.marks)
        named = [("current", "second", "diamond"), ("winner", "good", "circle")]
        marks += legend(named, x=4, y=14)  # type: ignore[arg-type]
        for region, y in zip(self.regions, frame.ys, strict=True):
            start, end = (
                frame.x(region.share(region.flat_low)),
                frame.x(region.share(region.flat_high)),
            )
            marks.append(Line(frame.x.start, y, frame.x.end, y, "muted", 1))
            marks.append(Box(start, y - 6, max(end - start, 2), 12, "first"))
            if region.current is not None:
                marks.append(Dot(frame.x(region.share(region.current)), y, 5, "second", "diamond"))
            if region.winner is not None:
                marks.append(Dot(frame.x(region.share(region.winner)), y, 4, "good"))
            told = f"{plain(region.flat_low)} to {plain(region.flat_high)}"
            marks.append(Label(width - 4, y + 4, told, anchor="end"))
        return Drawing(
            width,
            frame.height,
            "What each knob may be within noise of the best",
            "; ".join(
                f"{r.knob} from {plain(r.flat_low)} to {plain(r.flat_high)}, searched from "
                f"{plain(r.low)} to {plain(r.high)}"
                for r in self.regions
            ),
            tuple(marks),
        )


def flat(study: Study) -> Flat | None:
    """Put flat regions into what was searched; None when they were not measured."""
    result = study.result
    if not result.flat:
        return None
    known = {knob.path: knob for knob in result.space}
    winner = {} if result.winner is None else result.winner.values
    current = current_values(study)
    regions, options = [], []
    for path, ends in result.flat.items():
        knob = known.get(path)
        numbers = [end for end in ends if _is_number(end)]
        if knob is None or len(numbers) < len(ends) or not _is_range(knob):
            options.append(Options(path, tuple(ends), current.get(path), winner.get(path)))
            continue
        regions.append(
            Region(
                path, *_range(knob), float(min(numbers)), float(max(numbers)),  # type: ignore[type-var,arg-type]
                _number(current.get(path)), _number(winner.get(path)), knob.log,
            )
        )  # fmt: skip
    return Flat(tuple(regions), tuple(options))


def current_values(study: Study) -> dict[str, Value]:
    """What each knob is in the current configuration, where it is told: by trial 0."""
    trials = study.trials
    if trials is None or not len(trials.numbers) or trials.numbers[0] != 0:
        return {}
    return {path: values[0] for path, values in trials.knobs.items()}


def searched(knobs: Mapping[str, SearchedKnob]) -> dict[str, str]:
    """What was searched of each knob, in words."""
    return {
        path: f"{plain(knob.low)} to {plain(knob.high)}{', log' if knob.log else ''}"
        if knob.low is not None and knob.high is not None and _is_range(knob)
        else ", ".join(map(str, knob.choices)) or "true, false"
        for path, knob in knobs.items()
    }


def _is_range(knob: SearchedKnob) -> bool:
    return knob.low is not None and knob.high is not None and knob.high > knob.low


def _range(knob: SearchedKnob) -> tuple[float, float]:
    return float(knob.low or 0.0), float(knob.high or 0.0)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Value) -> float | None:
    return float(value) if _is_number(value) else None  # type: ignore[arg-type]

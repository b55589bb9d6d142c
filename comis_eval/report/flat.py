"""What each knob may be without leaving the noise around the best."""

from __future__ import annotations

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
    Role,
    Shape,
    legend,
    plain,
    rows,
)
from comis_eval.report.study import SearchedKnob, Study, Value

_CURRENT: tuple[Role, Shape] = ("second", "diamond")
_WINNER: tuple[Role, Shape] = ("good", "up")


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
        frame = rows(labels, (0, 1), width=width, right=120, row=28, top=24, axis=False)
        marks: list[Mark] = list(frame.marks)
        marks += legend([("current", *_CURRENT), ("winner", *_WINNER)], x=4, y=14)
        for region, y in zip(self.regions, frame.ys, strict=True):
            start, end = (frame.x(region.share(v)) for v in (region.flat_low, region.flat_high))
            marks.append(Line(frame.x.start, y, frame.x.end, y, "muted", 1))
            bar = Box(start, y - 6, max(end - start, 2), 12, "band")
            marks += [bar, bar._replace(role="first", hollow=True)]
            for value, look in ((region.current, _CURRENT), (region.winner, _WINNER)):
                if value is not None:
                    marks.append(Dot(frame.x(region.share(value)), y, 5, *look))
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
    for path, good in result.flat.items():
        now, won = current.get(path), winner.get(path)
        span = None if path not in known else _span(known[path])
        ends = [end for value in good if (end := _number(value)) is not None]
        if span is None or len(ends) < len(good):
            options.append(Options(path, tuple(good), now, won))
        else:
            flat_ends = min(ends), max(ends)
            log_scale = known[path].log
            regions.append(Region(path, *span, *flat_ends, _number(now), _number(won), log_scale))
    return Flat(tuple(regions), tuple(options))


def current_values(study: Study) -> dict[str, Value]:
    """What each knob is in the current configuration, where it is told: by trial 0."""
    trials = study.trials
    if trials is None or not len(trials.numbers) or trials.numbers[0] != 0:
        return {}
    return {path: values[0] for path, values in trials.knobs.items()}


def searched(study: Study) -> dict[str, str]:
    """What was searched of each knob, in words."""
    return {knob.path: _searched(knob) for knob in study.result.space}


def _searched(knob: SearchedKnob) -> str:
    span = _span(knob)
    if span is not None:
        return f"{plain(span[0])} to {plain(span[1])}{', log' if knob.log else ''}"
    return ", ".join(map(str, knob.choices)) or knob.kind


def _span(knob: SearchedKnob) -> tuple[float, float] | None:
    """The range of a knob of numbers; None for any other."""
    if knob.low is None or knob.high is None or not knob.high > knob.low:
        return None
    return knob.low, knob.high


def _number(value: Value) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)

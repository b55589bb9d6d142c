"""What if: one question's candidates, retrieved once and ranked again for any setting.

::

    what_if = WhatIf.of(MemoryRecall.over(dataset), dataset.queries[0])
    what_if.explain({"rag.scoring.recencyAlpha": 0.0})
    what_if.sliders()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from comis_eval.candidates import Candidates
from comis_eval.config import Config, shown
from comis_eval.errors import ComisEvalError, ConfigError
from comis_eval.pipelines.explain import result
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.rank import rank
from comis_eval.text import close_matches, html_table, notebook_html, printable
from comis_eval.tuning.knob import Knob, Value
from comis_eval.tuning.reach import coverage_of
from comis_eval.tuning.space import Space
from comis_eval.tuning.sweep import default_space
from comis_eval.types import Fate, Query, RecallResult

if TYPE_CHECKING:
    import pandas as pd

_ROWS = 12
"""How many of the ranking the sliders show."""

Changes = Mapping[str, Value]
"""Values by dotted path, as files spell it."""


@dataclass(frozen=True, eq=False)
class WhatIf:
    """One question whose candidates are at hand for every setting of a space.

    Ranking is the function that a sweep replays, on the same kind of table: what a slider
    shows is what a trial with these settings would have answered.

    Attributes:
        table: The candidates of one query, deep enough for the space.
        current: The configuration in use.
        space: Which knobs may move, and how far.
    """

    table: Candidates
    current: Config
    space: Space

    @classmethod
    def of(cls, recall: MemoryRecall, query: Query, space: Space | None = None) -> Self:
        """Retrieve the candidates of a query; nothing after this asks an index or a model.

        Args:
            recall: The pipeline; its configuration is the current one.
            query: What is asked.
            space: What may vary; None: the default for the dataset.

        Raises:
            LaneError: If a lane could not search.
            ModelError: If a model that is asked for is missing.
        """
        current, retriever = recall.config, recall.retriever
        space = space or default_space(retriever.dataset, current)
        table = retriever.covering([query], current, coverage_of(space, current))
        return cls(table, current, space)

    @cached_property
    def values(self) -> dict[str, Value]:
        """What every knob of the space is set to now, those below a switch that is off too."""
        every = Space(tuple(knob._replace(when=()) for knob in self.space.knobs))
        return every.values_of(self.current)

    def ask(self, changes: Changes | None = None) -> RecallResult:
        """The answer with some settings changed.

        Raises:
            ConfigError: If a knob is not of the space, or its value out of range.
        """
        changes = changes or {}
        self._check_known(changes)
        outside = self.space.outside(changes)
        wrong = [f"{p}: {why}" for p, why in outside.items() if changes[p] != self.values[p]]
        if wrong:
            raise ConfigError("; ".join(wrong))
        return result(rank(self.table, self.space.apply(self.current, changes)), 0)

    def explain(self, changes: Changes | None = None) -> pd.DataFrame:
        """Every candidate with the changed settings, and where it stood before.

        Returns:
            See :func:`comis_eval.types.explained`; behind ``place`` stand ``was``, its place
            with the current settings, and ``moved``, how many places it rose.
        """
        import pandas as pd

        before, after = self.ask(), self.ask(changes)
        frame = after.explain()
        was = pd.Series(_places(before, after), dtype="Int64")
        frame.insert(1, "was", was)
        frame.insert(2, "moved", was - frame["place"])
        return frame

    def html(self, changes: Changes | None = None) -> str:
        """The head of :meth:`explain` as HTML in which all text is escaped."""
        before, after = self.ask(), self.ask(changes)
        moves = [
            f"{path} {shown(self.values[path])} -> {shown(value)}"
            for path, value in (changes or {}).items()
            if self.values[path] != value
        ]
        rows = []
        listed = zip(after.candidates, _places(before, after), strict=True)
        for place, (candidate, was) in enumerate(list(listed)[:_ROWS], start=1):
            moved = "new" if was is None else "" if was == place else f"{was - place:+d}"
            rows.append(
                (
                    str(place),
                    moved,
                    candidate.memory.id,
                    str(candidate.memory.trust_level),
                    "in" if candidate.fate is Fate.INCLUDED else str(candidate.fate),
                    printable(candidate.memory.content, limit=80),
                    f"{candidate.base:.3f}",
                    *(f"{factor:.3f}" for factor in candidate.factors.values()),
                    f"{candidate.final:.3f}",
                )
            )
        signals = list(after.candidates[0].factors) if after.candidates else []
        head = ["place", "moved", "memory", "trust", "fate", "content", "base", *signals, "final"]
        return notebook_html(
            f"{after.query.id}: {printable(after.query.text or '(blank)')}",
            ", ".join(moves) or "the current settings",
            html_table(head, rows, texts=6) if rows else "no lane found anything",
            f"{len(after.memories)} memories, {after.context_chars} characters injected",
        )

    def sliders(self, knobs: Sequence[str] | None = None) -> Any:
        """Controls for some knobs, above the ranking, which follows them at once.

        Args:
            knobs: Dotted paths; None: every knob of the space.

        Returns:
            An ``ipywidgets.VBox`` of one control a knob, and the ranking as the last child.

        Raises:
            ConfigError: If a knob is not of the space; or ipywidgets is not installed.
        """
        ipywidgets = _ipywidgets()
        by_path, values = {knob.path: knob for knob in self.space.knobs}, self.values
        wanted = list(by_path) if knobs is None else list(knobs)
        self._check_known(wanted)
        controls = {path: _control(by_path[path], values[path]) for path in wanted}
        ranking = ipywidgets.HTML()

        def follow(_change: object = None) -> None:
            asked = {path: control.value for path, control in controls.items()}
            moved = {path: value for path, value in asked.items() if value != values[path]}
            try:
                ranking.value = self.html(_rounded(moved, by_path))
            except ComisEvalError as error:  # the last ranking would not be these settings'
                ranking.value = notebook_html("These settings cannot be ranked", str(error))

        for control in controls.values():
            control.observe(follow, names="value")
        follow()
        return ipywidgets.VBox([*controls.values(), ranking])

    def _check_known(self, paths: Iterable[str]) -> None:
        strange = next((path for path in paths if path not in self.values), None)
        if strange is not None:
            hint = close_matches(strange, self.values) or f"there are {', '.join(self.values)}"
            raise ConfigError(f"{printable(strange, limit=80)} is no knob of the space; {hint}")


def _places(before: RecallResult, after: RecallResult) -> list[int | None]:
    """Where each candidate of the second answer stood in the first, from 1; None: nowhere."""
    stood = {c.memory.id: place for place, c in enumerate(before.candidates, start=1)}
    return [stood.get(candidate.memory.id) for candidate in after.candidates]


def _rounded(values: Changes, knobs: Mapping[str, Knob]) -> dict[str, Value]:
    """Numbers as a trial would have them: a slider's are not on the knob's grid."""
    return {
        path: value
        if knobs[path].kind in ("bool", "choice") or not isinstance(value, int | float)
        else knobs[path].rounded(value)
        for path, value in values.items()
    }


def _ipywidgets() -> Any:
    try:
        import ipywidgets  # type: ignore[import-untyped]
    except ImportError as error:
        raise ConfigError("sliders need ipywidgets: pip install 'comis_eval[notebooks]'") from error
    return ipywidgets


def _control(knob: Knob, value: Value) -> Any:
    """The control that fits a knob; a value outside of the knob's range widens the control."""
    ipywidgets = _ipywidgets()
    look = {
        "description": knob.path.removeprefix("rag."),
        "style": {"description_width": "16em"},
        "layout": ipywidgets.Layout(width="40em"),
    }
    if knob.kind == "bool":
        return ipywidgets.Checkbox(value=bool(value), indent=False, **look)
    if knob.kind == "choice":
        options = [(shown(option), option) for option in knob.choices]
        return ipywidgets.Dropdown(options=options, value=value, **look)
    low, high = knob.low, knob.high
    if not isinstance(value, int | float):
        raise ConfigError(f"{knob.path} is {shown(value)}, no number: a slider cannot start there")
    low, high = min(low, value), max(high, value)
    if knob.kind == "int":
        step = int(knob.step or 1)
        ends = {"min": int(low), "max": int(high), "step": step}
        return ipywidgets.IntSlider(value=int(value), **ends, **look)
    return ipywidgets.FloatSlider(
        value=float(value), min=low, max=high, step=knob.step or (high - low) / 200,
        readout_format=".3f", **look,
    )  # fmt: skip

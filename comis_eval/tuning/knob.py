"""One knob of a search space: which setting it moves, and over what values."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import ceil, isfinite, log10
from typing import Any, Literal, NamedTuple, Protocol

from comis_eval.config import Config, allowed, find_knob, settings, shown
from comis_eval.errors import ConfigError
from comis_eval.text import close_matches, printable

Value = float | int | bool | str | None
"""What a knob can be set to."""

Kind = Literal["float", "int", "bool", "choice"]

DECIMALS = 4
"""To how many decimals numbers are rounded, unless their range needs more."""

MAX_DECIMALS = 12
"""Beyond it a double can no longer tell rounded values apart."""

TOOL = "harness.recallTool."
"""How the recall tool's settings begin."""

_SAME_GRID = 1e-8
"""How far from a step, in steps, a value may be to count as on it."""


class Suggests(Protocol):
    """Whatever proposes values: a trial of Optuna."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool) -> float:
        """A number in [low, high]."""

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        """One of the choices."""


class Knob(NamedTuple):
    """A setting that may vary. Made by :func:`read_knob`, which checks what it is given.

    Attributes:
        path: Dotted, as files spell it.
        kind: What its values are.
        low: Least value, of a number.
        high: Greatest value, of a number.
        step: Between values, from ``low``; None: there is none.
        log: Whether the sampler sees the logarithm.
        decimals: To how many a number is rounded.
        choices: The values of what is not a number.
        when: The knob is asked for only while each of these earlier knobs has one of these
            values; otherwise the setting stays as it is.
    """

    path: str
    kind: Kind
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    log: bool = False
    decimals: int = DECIMALS
    choices: tuple[Value, ...] = ()
    when: tuple[tuple[str, tuple[Value, ...]], ...] = ()

    @property
    def exportable(self) -> bool:
        """Whether the product has this setting; a what-if it has not stays with us."""
        return self.path.startswith(("rag.", TOOL))

    @property
    def pipeline(self) -> str:
        """Which pipeline's answers it moves."""
        return "recall-tool" if self.path.startswith(TOOL) else "memory-recall"

    @property
    def span(self) -> float:
        """Width of a number's range, 0 for anything else."""
        return self.high - self.low

    @property
    def values(self) -> str:
        """What it may be, in words: ``a number in [0, 1]``."""
        if self.choices:
            return f"one of {', '.join(map(shown, self.choices))}"
        kind, usual = ("an integer", 1) if self.kind == "int" else ("a number", None)
        step = f" in steps of {self.step:g}" if self.step != usual else ""
        return f"{kind} in [{self.low:g}, {self.high:g}]{step}{', log scale' if self.log else ''}"

    def active(self, values: Mapping[str, Value]) -> bool:
        """Whether it counts, given the values of the knobs before it."""
        return all(path in values and is_one_of(values[path], wanted) for path, wanted in self.when)

    def contains(self, value: Value) -> bool:
        """Whether the sampler could propose this value: in range, and on the step."""
        if self.choices:
            return is_one_of(value, self.choices)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if not self.low <= value <= self.high:
            return False
        if self.step is None:
            return True
        steps = (value - self.low) / self.step
        return abs(steps - round(steps)) < _SAME_GRID

    @property
    def edges(self) -> tuple[float, float]:
        """Between which numbers the sampler proposes one, for all values to be as likely.

        Samplers see integers and steps as numbers that are rounded: Optuna's own way with
        them costs its Parzen estimators four times as much.
        """
        half = (self.step or 0) / 2
        return self.low - half, self.high + half

    def ask(self, trial: Suggests) -> Value:
        """Have a value proposed, and round it."""
        if self.choices:
            chosen: Value = trial.suggest_categorical(self.path, self.choices)
            return chosen
        low, high = self.edges
        return self.rounded(trial.suggest_float(self.path, low, high, log=self.log))

    def rounded(self, value: float) -> float:
        """A proposed number as it is set, hashed and logged: 0.15000000000000002 is 0.15."""
        if self.step is not None:
            value = self.low + round((value - self.low) / self.step) * self.step
            value = min(max(value, self.low), self.high)
        return round(value) if self.kind == "int" else round(value, self.decimals)


def is_one_of(value: Value, options: tuple[Value, ...]) -> bool:
    """Whether a value is among others; true and 1 are two values, 1 and 1.0 are one."""
    return any(
        value == option and isinstance(value, bool) == isinstance(option, bool)
        for option in options
    )


# --- reading one --------------------------------------------------------------------------

_KEYS = ("low", "high", "step", "log", "decimals", "choices", "when")

_NEVER = {
    "rag.enabled": "off, nothing is recalled",
    "rag.includeTrustLevels": "a search must not widen whom memories may come from",
    "rag.lanes.fts.weight": (
        "only the ratio of the lanes' weights counts, so this one stays; "
        "search rag.lanes.vector.weight and rag.entityLane.weight"
    ),
    "semantics.preset": "it moves many switches at once; search the switches",
    "semantics.wrap": "a search must not move what is marked as untrusted",
}

_NEVER_UNDER = {
    "semantics.laneWeights": "search rag.lanes.vector.weight and rag.entityLane.weight",
    "semantics.queryContextTurns": "it changes what is retrieved",
    "semantics.keywordStatistics": "it changes what is retrieved",
    "semantics.laneDepth": "it changes what is retrieved",
    "semantics.scopeFilter": "a search must not move where scope is enforced",
    "semantics.lineFormat": "it changes how memories are shown, not which",
    "semantics.lengthUnits": "it changes how memories are counted, not which",
    "harness": "only harness.fusion is a what-if; the rest says how this package runs",
}

_TOOL_SEARCHED = (
    "fusion.k", "fusion.vectorWeight", "gate", "graph", "band", "minImportance", "decayBase",
    "armDepth", "profiles",
)  # fmt: skip
"""Of the recall tool's settings, what may be searched; whatever else there is may not."""

_TOOL_NEVER = {
    "fusion.textWeight": (
        "only the ratio of the arms' weights counts, so this one stays; "
        f"search {TOOL}fusion.vectorWeight"
    ),
    "indexTags": "it changes what is searched: compare two sweeps instead",
    "chunkChars": "it changes what is searched: compare two sweeps instead",
    "defaultExpiry": "it changes which memories there are, not how they rank",
    "relevanceSource": "it changes what a caller's relevance_min and order mean",
    "rerankScope": "a search must not make pages overlap",
}

_READ_AGAIN = (
    f"{TOOL}minImportance",
    f"{TOOL}profiles.multiSession.minImportance",
    f"{TOOL}profiles.factual.minImportance",
)
"""Numbers for each value of which the arms are read again."""


def read_knob(path: str, given: Mapping[str, Any] | None = None) -> Knob:
    """Read one knob and check it against the configuration model.

    Example: ``read_knob("rag.minScore", {"low": 0, "high": 0.5, "step": 0.05})``

    Args:
        path: Of the setting, spelled as in files or as in Python.
        given: ``low`` and ``high`` of a number, with ``step``, ``log`` and ``decimals``;
            or ``choices``, which true and false need not be told; and ``when``.

    Raises:
        ConfigError: If the setting is unknown or never searched, or its values are not
            allowed: all faults at once, each with the knob's path.
    """
    keys = tuple(step.key for step in find_knob(path))
    spelled = ".".join(keys)
    if keys not in {setting.keys for setting in settings()}:
        raise ConfigError(f"{printable(path, limit=120)}: has parts; name one of its values")
    if reason := _refusal(spelled):
        raise ConfigError(f"{spelled}: is never searched: {reason}")
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ConfigError(f"{spelled}: must be a mapping of {', '.join(_KEYS)}; got {shown(given)}")
    for key in given:
        if key not in _KEYS:
            hint = close_matches(key, _KEYS) or f"a knob has {', '.join(_KEYS)}"
            raise ConfigError(f"{spelled}: unknown key {printable(key, limit=60)}; {hint}")
    may_be = allowed(keys)
    found = _Reading(spelled, dict(given), may_be)
    read = found.choice() if _has_choices(given, may_be) else found.number()
    if found.faults:
        raise ConfigError("; ".join(f"{spelled}: {fault}" for fault in found.faults))
    return read


def _refusal(path: str) -> str | None:
    if path.startswith("harness.fusion."):
        return None
    if path.startswith(TOOL):
        rest = path.removeprefix(TOOL)
        if any(f"{rest}.".startswith(f"{part}.") for part in _TOOL_SEARCHED):
            return None
        return _TOOL_NEVER.get(rest, "nobody has said what searching it would do")
    under = (
        reason for prefix, reason in _NEVER_UNDER.items() if f"{path}.".startswith(f"{prefix}.")
    )
    return _NEVER.get(path) or next(under, None)


def _has_choices(given: Mapping[str, Any], may_be: str) -> bool:
    return "choices" in given or not may_be.startswith(("an integer", "a number"))


class _Reading:
    """A knob while it is read, and what was found wrong with it."""

    def __init__(self, path: str, given: dict[str, Any], may_be: str) -> None:
        self.path = path
        self.given = given
        self.may_be = may_be
        self.faults: list[str] = []

    def choice(self) -> Knob:
        is_bool = self.may_be == "true or false"
        if extra := [key for key in self.given if key not in ("choices", "when")]:
            self.faults.append(f"has choices, so it takes no {', '.join(extra)}")
        choices = self.given.get("choices", [False, True] if is_bool else None)
        if not isinstance(choices, list) or len(choices) < 2:
            self.faults.append(
                f"choices must be a list of two or more, each {self.may_be}; got {shown(choices)}"
            )
            choices = []
        for number, choice in enumerate(choices):
            self._check("a choice", choice)
            if is_one_of(choice, tuple(choices[:number])):
                self.faults.append(f"choice {shown(choice)} stands twice")
        return Knob(
            self.path,
            "bool" if is_bool else "choice",
            choices=tuple(choices),
            when=self._when(),
        )

    def number(self) -> Knob:
        whole = self.may_be.startswith("an integer")
        low, high = self._bound("low", whole), self._bound("high", whole)
        step = self._step(whole, low, high)
        log = self.given.get("log", False)
        if not isinstance(log, bool):
            self.faults.append(f"log must be true or false, got {shown(log)}")
            log = False
        if low is None or high is None:
            return Knob(self.path, "float")
        if low >= high:
            self.faults.append(
                f"low {low:g} is not below high {high:g}"
                + ("; set one value in the configuration instead" if low == high else "")
            )
        if log and low <= 0:
            self.faults.append(f"log needs low > 0, got {low:g}")
        if step is None and self.path in _READ_AGAIN:
            self.faults.append("needs a step, such as 0.05: each value is a search of its own")
        if log and step is not None:
            self.faults.append("log and step cannot be had together")
        if whole and step is None:
            step = 1
        return Knob(
            self.path,
            "int" if whole else "float",
            low,
            high,
            step,
            log,
            0 if whole else self._decimals(low, high, step, log=log),
            when=self._when(),
        )

    def _bound(self, name: str, whole: bool) -> float | None:
        value = self.given.get(name)
        if value is None:
            self.faults.append(f"{name} is missing; a number has low and high")
        elif not _is_number(value, whole):
            kind = "an integer" if whole else "a number"
            self.faults.append(f"{name} must be {kind}, got {shown(value)}")
        else:
            self._check(name, value)
            return float(value) if not whole else int(value)
        return None

    def _step(self, whole: bool, low: float | None, high: float | None) -> float | None:
        step = self.given.get("step")
        if step is None:
            return None
        if not _is_number(step, whole) or not step > 0:
            kind = "an integer" if whole else "a number"
            self.faults.append(f"step must be {kind} > 0, got {shown(step)}")
            return None
        if low is not None and high is not None and low < high:
            steps = (high - low) / step
            if abs(steps - round(steps)) >= _SAME_GRID:
                self.faults.append(
                    f"high {high:g} is not a whole number of steps of {step:g} above low {low:g}"
                )
        return float(step) if not whole else int(step)

    def _decimals(self, low: float, high: float, step: float | None, *, log: bool) -> int:
        exact = max(_places(number) for number in (low, high, step) if number is not None)
        fine = ceil(-log10(low)) + 3 if log and low > 0 else 0
        decimals = self.given.get("decimals", min(max(DECIMALS, exact, fine), MAX_DECIMALS))
        if not _is_number(decimals, whole=True) or not 0 <= decimals <= MAX_DECIMALS:
            self.faults.append(
                f"decimals must be an integer in [0, {MAX_DECIMALS}], got {shown(decimals)}"
            )
        elif decimals < exact:
            self.faults.append(
                f"{decimals} decimals cannot hold low, high and step, which need {exact}"
            )
        else:
            return int(decimals)
        return DECIMALS

    def _when(self) -> tuple[tuple[str, tuple[Value, ...]], ...]:
        given = self.given.get("when", {})
        if not isinstance(given, Mapping):
            self.faults.append(f"when must be a mapping of knobs to values, got {shown(given)}")
            return ()
        when = []
        for path, value in given.items():
            options = value if isinstance(value, list) else [value]
            try:
                spelled = ".".join(step.key for step in find_knob(path))
            except ConfigError as error:
                self.faults.append(f"when: {error}")
                continue
            when.append((spelled, tuple(options)))
        return tuple(when)

    def _check(self, name: str, value: object) -> None:
        try:
            Config().evolve(**{self.path: value})
        except ConfigError:
            self.faults.append(f"{name} is {shown(value)}, but the setting takes {self.may_be}")


def _is_number(value: object, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) if whole else isfinite(value)


def _places(number: float) -> int:
    """Decimals that a number is written with."""
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0

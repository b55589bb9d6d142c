"""Configuration files: read, changed from the command line, described, written back.

A file is one YAML document of one of three shapes: ours (``rag:``, ``semantics:``,
``harness:``), a user's whole Comis configuration (``agents.<name>.rag``), or the keys of
``rag`` alone. A configuration that cannot be used is one :class:`ConfigError` that lists
every fault by its dotted path.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from comis_eval.config import (
    Config,
    Fault,
    RagConfig,
    RecallToolConfig,
    Settings,
    allowed,
    differences,
    faults,
    find_knob,
    put,
    settings,
    shown,
)
from comis_eval.config import preset as preset_row
from comis_eval.errors import ConfigError
from comis_eval.text import close_matches, printable

MAX_BYTES = 1_000_000
"""A larger file is not read: no configuration is that long."""

MAX_ALIASES = 100
"""Aliases (``*name``) a document may hold."""

MAX_NODES = 100_000
"""Values a document may hold, those behind an alias counted each time it stands."""

MAX_DEPTH = 50
"""Lists and mappings that may stand in each other, those behind aliases included."""

_PRESET = ("semantics", "preset")

_log = logging.getLogger(__name__)


# --- a file and the command line: a configuration ---------------------------------------


def load_config(
    path: Path | str | None,
    *,
    agent: str | None = None,
    overrides: Sequence[str] = (),
    preset: str | None = None,
) -> Config:
    """Read a configuration file and change it as the command line says.

    Args:
        path: A YAML file of one of the three shapes, or None: the defaults.
        agent: Whose ``rag`` section is meant, in a file of several agents. One without a
            section has the defaults, and a warning is logged.
        overrides: ``PATH=VALUE`` each, of which later ones win. The path is dotted, spelled
            as in files or as in Python; the value is YAML: ``rag.includeTrustLevels=[system]``.
        preset: Value of ``semantics.preset``. Switches that the file or an override sets stay.

    Raises:
        ConfigError: If the file cannot be read, or if values are not allowed: all of them
            at once, each with its path, what was found and what may stand there.
    """
    source = _Source({}, "defaults", ("rag",)) if path is None else _read_source(Path(path), agent)
    if path is None and agent is not None:
        raise ConfigError(f"agent {shown(agent)} was asked for without a configuration file")

    problems: dict[str, list[str]] = {source.where: []}
    changed: dict[tuple[str, ...], str] = {}
    for origin, change in _changes(preset, overrides):
        try:
            changed[_apply(source.tree, change)] = origin
        except ConfigError as error:
            problems.setdefault(origin, []).append(str(error))
    if changed.get(_PRESET) == "--set" and preset not in (None, _value(source.tree, _PRESET)):
        problems.setdefault("--set", []).append("semantics.preset: contradicts --semantics")

    try:
        config = Config.model_validate(source.tree, by_alias=True, by_name=False)
    except ValidationError as error:
        for fault in faults(error):
            by = next((o for k, o in changed.items() if _same_branch(fault.keys, k)), None)
            place = fault if by else source.as_written(fault)
            text = f"{place.path}: {place.text}"
            problems.setdefault(by or source.where, []).append(text)
    listed = (f"{origin}: {'; '.join(texts)}" for origin, texts in problems.items() if texts)
    if message := "; ".join(listed):
        raise ConfigError(message)
    return config


def _changes(preset: str | None, overrides: Sequence[str]) -> list[tuple[str, str]]:
    asked = [("--semantics", f"semantics.preset={preset}")] if preset is not None else []
    return asked + [("--set", override) for override in overrides]


def _same_branch(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def _apply(tree: dict[str, Any], change: str) -> tuple[str, ...]:
    """Set one ``PATH=VALUE`` in a tree with the keys of files; return the path's keys."""
    path, equals, text = change.partition("=")
    if not equals:
        raise ConfigError(f"{shown(change)} is not PATH=VALUE, for example rag.minScore=0")
    keys = tuple(knob.key for knob in find_knob(path.strip()))
    put(tree, keys, parse_yaml(text, where=printable(path.strip(), limit=120)))
    return keys


# --- the three shapes ---------------------------------------------------------------------

_OURS = tuple(Config.model_fields)
_RAG_KEYS = tuple(field.alias or name for name, field in RagConfig.model_fields.items())
_SHAPES = "rag:, semantics: and harness:; or agents.<name>.rag; or the keys of rag alone"


class _Source(NamedTuple):
    """What a file says, in our shape, and where in the file its rag section stands."""

    tree: dict[str, Any]
    where: str
    rag: tuple[str, ...]

    def as_written(self, fault: Fault) -> Fault:
        """The fault with the path that its file has."""
        if fault.keys[:1] != ("rag",):
            return fault
        return Fault((*self.rag, *fault.keys[1:]), fault.text)


def _read_source(path: Path, agent: str | None) -> _Source:
    where = printable(str(path))
    document = read_yaml(path)
    if document is None:  # nothing but comments
        document = {}
    if not isinstance(document, Mapping):
        raise ConfigError(f"{where}: must be a mapping with {_SHAPES}; got {shown(document)}")
    ours = [key for key in _OURS if key in document]
    if "agents" in document:
        if ours:
            raise ConfigError(
                f"{where}: has both agents: and {ours[0]}:, so which is meant is unclear; "
                "keep agents: in a file of Comis, or rag:, semantics: and harness: in one of ours"
            )
        return _source_of_agent(document["agents"], where, agent)
    if agent is not None:
        raise ConfigError(f"{where}: has no agents:, so agent {shown(agent)} cannot be chosen")
    if ours or not document:
        return _Source(dict(document), where, ("rag",))
    if any(key in document for key in _RAG_KEYS):
        return _Source({"rag": document}, where, ("rag",))
    near = (close_matches(key, (*_OURS, "agents", *_RAG_KEYS)) for key in document)
    hint = next((f"; {phrase}" for phrase in near if phrase), "")
    raise ConfigError(
        f"{where}: none of its keys is known: {_listed(document)}; a file has {_SHAPES}{hint}"
    )


def _source_of_agent(agents: object, where: str, agent: str | None) -> _Source:
    if not isinstance(agents, Mapping):
        raise ConfigError(f"{where}: agents: must be a mapping of names, got {shown(agents)}")
    if agent is None:
        chosen = [name for name, section in agents.items() if _has_rag(section)]
        if len(chosen) > 1:
            raise ConfigError(
                f"{where}: several agents have a rag section, choose one with --agent: "
                f"{_listed(chosen)}"
            )
        if not chosen:
            _log.warning("%s: no agent has a rag section; the defaults are used", where)
            return _Source({}, where, ("rag",))
        agent = chosen[0]
    if agent not in agents:
        near = close_matches(agent, agents)
        hint = f"; {near}" if near else ""
        raise ConfigError(f"{where}: no agent {shown(agent)}; it has {_listed(agents)}{hint}")
    section = agents[agent]
    if _has_rag(section):
        return _Source({"rag": section["rag"]}, where, ("agents", agent, "rag"))
    if section is not None and not isinstance(section, Mapping):
        name = printable(agent, limit=80)
        raise ConfigError(f"{where}: agents.{name}: must be a mapping, got {shown(section)}")
    _log.warning("%s: agent %s has no rag section; the defaults are used", where, shown(agent))
    return _Source({}, where, ("rag",))


def _has_rag(section: object) -> bool:
    return isinstance(section, Mapping) and "rag" in section


def _listed(names: Iterable[str], *, most: int = 20) -> str:
    known = [printable(name, limit=60) for name in names]
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more if known else "none"


# --- YAML -----------------------------------------------------------------------------------


def read_yaml(path: Path) -> Any:
    """Read one YAML file with :func:`parse_yaml`; an empty one gives None.

    Raises:
        ConfigError: If it cannot be read, is longer than MAX_BYTES or not UTF-8, or as
            :func:`parse_yaml` says.
    """
    where = printable(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a ValueError is what a path with a NUL gives
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{where}: cannot be read: {reason}") from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{where}: is longer than {MAX_BYTES} bytes; that is no configuration")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{where}:{line}: is not UTF-8 text; save it as UTF-8") from error
    return parse_yaml(text, where=where)


def parse_yaml(text: str, *, where: str) -> Any:
    """Parse one YAML document from a source that is not trusted.

    Numbers are those of YAML 1.2 (``1e-3`` is one, ``010`` is ten, dates are text); ``yes``,
    ``no``, ``on`` and ``off`` are true and false as in YAML 1.1; keys are always text.

    Args:
        text: The document.
        where: What a message calls it; ``:line`` is appended.

    Raises:
        ConfigError: If it is not one YAML document of plain values, names a key twice, or
            goes beyond MAX_ALIASES, MAX_NODES or MAX_DEPTH.
    """
    try:
        loader = _Loader(text)
        try:
            document = loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{where}:{line}: holds a character that YAML does not allow") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        said = ", ".join(filter(None, (error.context, error.problem)))
        problem = printable(said, limit=200)
        raise ConfigError(f"{where}:{line}: not usable YAML: {problem}") from error
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        # A tag that PyYAML takes at its word: !!bool on what is none, a date of no calendar.
        raise ConfigError(f"{where}: not usable YAML: a value is not what it says it is") from error
    if loader.repeated:
        listed = (f"{where}:{line}: key {key} stands twice" for line, key in loader.repeated)
        raise ConfigError("; ".join(listed))
    return document


_HALF_PAIR = re.compile("[\ud800-\udfff]")


class _Extent(NamedTuple):
    """How large a part of a document is once its aliases are replaced by what they mean."""

    nodes: int
    depth: int


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, with limits, unique keys and the numbers of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.repeated: list[tuple[int, str]] = []
        self._open = 0
        self._aliases = 0
        self._extents: dict[yaml.Node, _Extent] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        is_alias = self.check_event(yaml.AliasEvent)
        self._aliases += is_alias
        self._open += 1
        if self._aliases > MAX_ALIASES:
            raise _refusal(f"more than {MAX_ALIASES} aliases", mark)
        if self._open > MAX_DEPTH:  # before going on: each level is a level of Python's stack
            raise _refusal(f"more than {MAX_DEPTH} levels", mark)
        node = super().compose_node(parent, index)
        self._open -= 1
        if node is None:
            return None
        if is_alias and node not in self._extents:
            raise _refusal("an alias inside of what it names", mark)
        if not is_alias:
            self._extents[node] = extent = self._extent(node)
            if extent.nodes > MAX_NODES:
                raise _refusal(f"more than {MAX_NODES} values, aliases replaced", mark)
            if extent.depth > MAX_DEPTH:
                raise _refusal(f"more than {MAX_DEPTH} levels, aliases replaced", mark)
            if isinstance(node, yaml.ScalarNode) and _HALF_PAIR.search(node.value):
                raise _refusal("half of a surrogate pair; write \\U and eight digits", mark)
            if isinstance(node, yaml.MappingNode):
                self._make_keys_text(node)
        return node

    def _extent(self, node: yaml.Node) -> _Extent:
        match node:
            case yaml.MappingNode():
                inner = [self._extents[part] for pair in node.value for part in pair]
            case yaml.SequenceNode():
                inner = [self._extents[part] for part in node.value]
            case _:
                inner = []
        return _Extent(
            1 + sum(extent.nodes for extent in inner),
            1 + max((extent.depth for extent in inner), default=0),
        )

    def _make_keys_text(self, node: yaml.MappingNode) -> None:
        """Take plain keys as text, like the product, whose 1 and "1" are one key."""
        pairs, seen = [], set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    self.repeated.append((line, printable(key.value, limit=60)))
                seen.add(key.value)
                pairs.append((_as_text(key), value))
            else:
                pairs.append((key, value))
        node.value = pairs


def _as_text(key: yaml.ScalarNode) -> yaml.ScalarNode:
    if key.tag == "tag:yaml.org,2002:merge":
        return key
    return yaml.ScalarNode("tag:yaml.org,2002:str", key.value, key.start_mark, key.end_mark)


def _refusal(problem: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _integer(_: _Loader, node: yaml.ScalarNode) -> int:
    digits = node.value.lstrip("+-")
    base = {"0o": 8, "0x": 16}.get(digits[:2], 10)
    try:
        value = int(digits.removeprefix("0o").removeprefix("0x"), base)
    except ValueError as error:  # Python's own limit on the number of digits
        raise _refusal(f"an integer of {len(digits)} digits", node.start_mark) from error
    return -value if node.value.startswith("-") else value


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"(?i:yes|no|true|false|on|off)", list("yYnNtTfFoO")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first
    )


# --- writing and describing -----------------------------------------------------------------


def dump_rag(config: Config, *, comments: Sequence[str] = ()) -> str:
    """The ``rag`` section as YAML, with only what differs from the defaults.

    What the product does not have is left out, see :func:`not_exportable`. Read again, the
    text gives the same ``rag`` section.

    Args:
        config: Whose section.
        comments: Lines to put first; each becomes one comment line, whatever it holds.
    """
    return _dumped({"rag": _changed(config.rag, RagConfig())}, comments)


def dump_recall_tool(config: Config, *, comments: Sequence[str] = ()) -> str:
    """The recall tool's settings as YAML under ``harness``, as :func:`dump_rag` does the rag's."""
    changed = _changed(config.harness.recall_tool, RecallToolConfig())
    return _dumped({"harness": {"recallTool": changed}}, comments)


def _changed(ours: Settings, defaults: Settings) -> dict[str, Any]:
    """What of a part of the configuration differs from the defaults, as files have it."""
    trees = (part.model_dump(mode="json", by_alias=True) for part in (ours, defaults))
    return differences(*trees)


def _dumped(tree: Mapping[str, Any], comments: Sequence[str]) -> str:
    body = yaml.safe_dump(dict(tree), sort_keys=False)
    return "".join(f"# {printable(comment)}\n" for comment in comments) + body


def not_exportable(config: Config) -> list[str]:
    """Dotted paths of the what-ifs in use, which no setting of the product can bring about.

    They are the changed constants of ``harness.fusion``, a preset that is not the default
    one, and every switch of ``semantics`` that differs from its preset.
    """
    plain = Config(semantics=preset_row(config.semantics.preset)).to_tree()
    plain["semantics"]["preset"] = Config().semantics.preset
    ours = config.to_tree()
    return [
        ".".join(setting.keys)
        for setting in settings()
        if (setting.keys[0] == "semantics" or setting.keys[:2] == ("harness", "fusion"))
        and _value(ours, setting.keys) != _value(plain, setting.keys)
    ]


class SettingRow(NamedTuple):
    """One value of a configuration, with the help there is on it.

    Values are as JSON has them, credentials masked; the text of a value is not escaped.
    """

    path: str
    value: Any
    default: Any
    changed: bool
    allowed: str
    description: str


def describe(config: Config) -> list[SettingRow]:
    """Every value of a configuration in file order, paths as files spell them."""
    ours, defaults = config.to_tree(), Config().to_tree()
    rows = []
    for setting in settings():
        value, default = _value(ours, setting.keys), _value(defaults, setting.keys)
        path, may_be = ".".join(setting.keys), allowed(setting.keys)
        rows.append(SettingRow(path, value, default, value != default, may_be, setting.description))
    return rows


def _value(tree: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    value: Any = tree
    for key in keys:
        value = value[key]
    return value

"""Commands that a text tells its reader to run, and whether they can be run.

A command is found in fenced blocks (shell, YAML of a workflow, JSON of a client) and in
inline code. It is parsed by the command line's own parser and not run: a command, an option,
a choice, a setting or a metric that is gone is a fault. Words in CAPITALS and ``...`` stand
for what the reader puts in.
"""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from comis_eval.cli import main
from comis_eval.config_file import load_config
from comis_eval.errors import ComisEvalError
from comis_eval.metrics.registry import parse as metric

ROOT = Path(__file__).parents[1]
PROGRAMS = ("comis-eval", "make", "pytest", "python")

_FENCE = re.compile(r"^ *(`{3,}|~{3,})(\S*)[^\n]*\n(.*?)^ *\1 *$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_INNER = re.compile(r"\$\(([^()]*)\)")
_SHELL = ("", "sh", "bash", "shell", "console")


def commands_in(markdown: str) -> list[list[str]]:
    """Every command of a Markdown text that starts one of PROGRAMS, in order, as words."""
    found: list[tuple[int, list[str]]] = []
    for fence in _FENCE.finditer(markdown):
        for script in scripts(fence[2], fence[3]):
            found += [(fence.start(), command) for command in _commands(script)]
    prose = _FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), markdown)
    for span in _SPAN.finditer(prose):
        text = " ".join(span[2].replace("\\|", "|").split())
        if text.split(" ", 1)[0] in PROGRAMS:
            found += [(span.start(), command) for command in _commands(text)]
    return [command for _, command in found]


def scripts(language: str, text: str) -> Iterator[str]:
    """What a fenced block holds that a shell, or a client, would run."""
    if language in _SHELL:
        yield text
    elif language in ("yaml", "yml"):
        yield from _texts(yaml.safe_load(text))
    elif language == "json":
        yield from _started(json.loads(text))


def _texts(node: Any) -> Iterator[str]:
    """The texts of a workflow's ``run`` steps, wherever they stand."""
    if isinstance(node, dict):
        if isinstance(node.get("run"), str):
            yield node["run"]
        for inner in node.values():
            yield from _texts(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _texts(inner)


def _started(node: Any) -> Iterator[str]:
    """What the configuration of an MCP client starts."""
    if not isinstance(node, dict):
        return
    if isinstance(node.get("command"), str):
        yield shlex.join([node["command"], *node.get("args", [])])
    for inner in node.values():
        yield from _started(inner)


def _commands(script: str) -> Iterator[list[str]]:
    script = re.sub(r"\\\n", " ", script)
    for inner in _INNER.findall(script):
        yield from _commands(inner)
    for line in _INNER.sub("VALUE", script).splitlines():
        yield from _line(line.strip().removeprefix("$ "))


def _line(line: str) -> Iterator[list[str]]:
    words = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
    words.whitespace_split = True
    command: list[str] = []
    try:
        split = [*words, ";"]
    except ValueError:  # an apostrophe of a sentence: this line is no command
        if line.split(" ", 1)[0] in PROGRAMS:
            raise
        return
    for word in split:
        if word and set(word) <= set(";&|<>"):
            while command and re.match(r"[A-Z_]+=", command[0]):
                command.pop(0)
            if command[:2] == ["python", "-m"]:
                command[:2] = []
                command[:1] = [command[0].replace("comis_eval", "comis-eval")] if command else []
            if command and command[0] in PROGRAMS:
                yield command
            command = []
        else:
            command.append(word)


def check(argv: list[str]) -> str | None:
    """Say what is wrong with a command; None when nothing is.

    The program's name alone, or a command's without arguments, is a mention: only its
    existence counts. Otherwise every required argument and option must be there.
    """
    program, *words = argv
    if program == "comis-eval":
        return _check_ours(words)
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        missing = [w for w in words if "=" not in w and not _stands_in(w) and w not in targets]
        return f"the Makefile has no target {missing[0]}" if missing else None
    return _check_paths(words)


def _check_paths(words: list[str]) -> str | None:
    """A script, and what pytest shall run, are files of the repository."""
    for word in words:
        path = word.partition("::")[0]
        ours = path.startswith(("tests/", "experiments/", "notebooks/", "docs/", "datasets/"))
        if ours and not (ROOT / path).exists():
            return f"there is no {path}"
    return None


def _stands_in(word: str) -> bool:
    """Whether a word stands for what the reader puts in."""
    return "..." in word or "$" in word or bool(re.fullmatch(r"[A-Z][A-Z0-9_.:/-]*", word))


def _check_ours(words: list[str]) -> str | None:
    context = click.Context(main, info_name="comis-eval")
    while isinstance(context.command, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        if _stands_in(name):
            return None
        command = context.command.get_command(context, name)
        if command is None:
            return f"{context.command_path} has no command {name}"
        context = click.Context(command, info_name=name, parent=context)
    if not words or words in (["--help"], ["-h"]):
        return None
    return _check_words(context, words)


def _check_words(context: click.Context, words: list[str]) -> str | None:
    path = context.command_path
    try:
        given, left, _ = context.command.make_parser(context).parse_args(list(words))
    except click.UsageError as error:
        return f"{path}: {error.format_message()}"
    if left and "..." not in left:
        return f"{path} takes no argument {left[0]!r}"
    for parameter in context.command.get_params(context):
        value = given.get(parameter.name or "")
        if not isinstance(value, str | list | tuple):  # a flag, or not given
            if parameter.required and not isinstance(value, bool) and "..." not in words:
                return f"{path} needs {parameter.human_readable_name}"
            continue
        values = [value] if isinstance(value, str) else [v for v in value if isinstance(v, str)]
        if parameter.required and not values and "..." not in words:
            return f"{path} needs {parameter.human_readable_name}"
        for one in values:
            if not _stands_in(one) and (fault := _check_value(parameter, one, context)):
                return f"{path}: {fault}"
    return None


def _check_value(
    parameter: click.Parameter, value: str, context: click.Context
) -> str | None:
    """A value against its choices and bounds; files need not be there."""
    try:
        if parameter.name == "overrides" and not _stands_in(value.partition("=")[2]):
            load_config(None, overrides=[value])
        elif parameter.name in ("metrics", "metric", "objectives") and value != "latency_ms":
            metric(value)
        elif not isinstance(parameter.type, click.Path | click.File):
            parameter.type.convert(value, parameter, context)
    except click.UsageError as error:
        return error.format_message()
    except ComisEvalError as error:
        return str(error)
    return None

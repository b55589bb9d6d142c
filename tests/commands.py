"""The ``comis-eval`` commands that documents and notebooks tell, held against the real ones.

::

    for told in commands_in(Path("README.md").read_text("utf-8")):
        assert fault_of(told) is None

A command that stands in a code block is one to run: its arguments must be complete. Within a
sentence it may be a mention (``comis-eval gate``): what it says must exist.
"""

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

import click

from comis_eval.cli import main
from comis_eval.config import find_knob
from comis_eval.errors import ConfigError

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_START = re.compile(r"(?:^|(?<=[\s&|;(!$]))(?:comis-eval|python3? -m comis_eval)(?=\s|$)")
_ENDS = {"|", "||", "&&", ";", "&", ">", ">>", "<", ")", "2>"}
_PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_.:/]*|.*(\.\.\.|[${}<>…]).*")


class Told(NamedTuple):
    """A command as a document tells it.

    Attributes:
        line: Where, from 1.
        words: Without ``comis-eval``.
        whole: Whether it is one to run, not a mention.
    """

    line: int
    words: tuple[str, ...]
    whole: bool

    def __str__(self) -> str:
        return f"line {self.line}: comis-eval {shlex.join(self.words)}"


def commands_in(markdown: str) -> list[Told]:
    """Every command in code blocks and code spans, in order."""
    found: list[Told] = []
    prose: list[str] = []
    fence, joined, start = "", "", 0
    for number, line in enumerate(markdown.splitlines(), start=1):
        mark = _FENCE.match(line)
        if mark and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
        elif fence:
            start = start if joined else number
            joined += line.removesuffix("\\")
            if not line.endswith("\\"):
                found += [Told(start, words, True) for words in _commands(joined)]
                joined = ""
        prose.append("" if fence or mark else line)
    text = "\n".join(prose)
    for span in _SPAN.finditer(text):
        number = text.count("\n", 0, span.start()) + 1
        found += [Told(number, words, False) for words in _commands(span[2].replace("\n", " "))]
    return sorted(found, key=lambda told: told.line)


def _commands(line: str) -> Iterator[tuple[str, ...]]:
    for start in _START.finditer(line):
        yield tuple(_words(line[start.end() :]))


def _words(rest: str) -> Iterator[str]:
    reader = shlex.shlex(rest, posix=True, punctuation_chars="|&;<>()")
    reader.commenters = ""
    reader.whitespace_split = True
    for word in reader:
        if word in _ENDS or word.startswith("#"):
            return
        bare = word.removeprefix("[") if word.startswith("[-") else word
        bare = bare.removesuffix("]") if "[" not in bare else bare
        if bare.strip("[].…"):
            yield bare


def fault_of(told: Told) -> str | None:
    """What is wrong with a command, None when it would be accepted."""
    command: click.Command = main
    context = click.Context(main, info_name="comis-eval", **main.context_settings)
    words = list(told.words)
    try:
        while isinstance(command, click.Group):
            if not words:
                return None if not told.whole or command is main else f"{told}: which command?"
            if words[0] in ("--help", "--version"):
                return None
            name = words.pop(0)
            inner = command.get_command(context, name)
            if inner is None:
                return f"{told}: no command {name!r}"
            context = click.Context(inner, info_name=name, parent=context)
            command = inner
        given, left, _ = command.make_parser(context).parse_args(args=words)
        if left:
            return f"{told}: takes no argument {left[0]!r}"
        for parameter in command.get_params(context):
            _check(parameter, given.get(parameter.name or ""), context, whole=told.whole)
    except (click.UsageError, ConfigError) as error:
        return f"{told}: {error}"
    return None


def _check(
    parameter: click.Parameter, given: object, context: click.Context, *, whole: bool
) -> None:
    # click marks what was not given with an object of its own
    several = given if isinstance(given, tuple | list) else [given]
    values = [value for value in several if isinstance(value, str | int)]
    if not values and parameter.required and whole:
        raise click.UsageError(f"lacks {parameter.human_readable_name}")
    for value in values:
        if not isinstance(value, str) or _PLACEHOLDER.fullmatch(value):
            continue
        if isinstance(parameter.type, _CHECKED):
            parameter.type.convert(value, parameter, context)
        if "--set" in parameter.opts:
            find_knob(value.partition("=")[0])


_CHECKED = (click.Choice, click.types.IntParamType, click.types.FloatParamType)

"""The command line: ``comis-eval COMMAND``.

A command is a file of this package: it parses, calls, prints. Only the file of the command
that is asked for is imported, so that ``comis-eval --help`` costs little. To add one, write
the file, name its click command ``command``, and give it a line in ``COMMANDS``.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import click

from comis_eval.errors import ComisEvalError, TrackingError
from comis_eval.text import printable


class Entry(NamedTuple):
    """A command as the help lists it.

    Attributes:
        file: The module of this package that holds it.
        help: The first sentence of its own help.
    """

    file: str
    help: str


COMMANDS = {
    "evaluate": Entry("evaluate", "Measure recall on a labelled query set."),
    "recall": Entry("recall", "Answer one query and show every stage of the way."),
    "diff": Entry("diff", "Compare two configurations without labels."),
    "ablate": Entry("ablate", "Turn off or flip one thing at a time and measure what it does."),
    "attack": Entry("attack", "Plant memories against the queries and measure how far they get."),
    "baseline": Entry(
        "baseline", "Set or show baselines, what later evaluations are held against."
    ),
    "gate": Entry("gate", "Say whether a candidate may take a baseline's place."),
    "compare": Entry("compare", "Compare evaluations of the same queries with the first of them."),
    "plan": Entry("plan", "Say how many queries would show a loss of the margin."),
    "sweep": Entry("sweep", "Search the knobs and confirm what was found on unseen queries."),
    "report": Entry("report", "Write a report of an evaluation, of two, or of a sweep."),
    "serve-mcp": Entry("serve_mcp", "Serve memories to agents over the Model Context Protocol."),
    "validate": Entry("validate", "Check a dataset folder and report every fault in it."),
    "import": Entry("importing", "Turn a file of another format into a dataset folder."),
    "export": Entry("exporting", "Write a dataset in another format: TREC or BEIR."),
    "sample": Entry("sample", "Draw a stratified sample of real queries to label."),
    "judge": Entry(
        "judge", "Open a page to grade memories on, 0 to 3, and turn the grades into qrels."
    ),
    "config": Entry("config", "Show, check or export a configuration."),
    "doctor": Entry("doctor", "Check that everything needed is installed and works."),
    "cache": Entry("cache", "List or clear what is kept on disk."),
}

EXPECTED = 2
"""Exit status of every expected error; 0 is success."""

UNTRACKED = 5
"""The work is saved, but could not be tracked."""

INTERRUPTED = 130
"""128 + SIGINT, as shells report it."""

PIPE_CLOSED = 141
"""128 + SIGPIPE: who read the output has left."""


class CommandLine(click.Group):
    """Imports a command when it is asked for, and turns expected errors into one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command; None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"{__name__}.{COMMANDS[cmd_name].file}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names; an unknown one is an error."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from comis_eval.text import close_matches

            hint = close_matches(args[0], COMMANDS)
            raise click.UsageError(
                f"there is no command {args[0]!r}; {hint + ' ' if hint else ''}there are "
                f"{', '.join(COMMANDS)}",
                ctx,
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands from the table, which imports none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and hand over all of its output."""
        try:
            given = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            ctx.exit(PIPE_CLOSED)
        return given

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run and exit; a bug keeps its traceback."""
        prog_name = prog_name or "comis-eval"
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        _show_what_cannot_be_encoded()
        try:
            with _stopped_as_interrupted():
                status = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except ComisEvalError as error:
            _fail(str(error), UNTRACKED if isinstance(error, TrackingError) else EXPECTED)
        except OSError as error:
            if error.filename is None:  # not about a file that was named: a bug
                raise
            _fail(f"{printable(str(error.filename), limit=120)}: {error.strerror}", EXPECTED)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(EXPECTED)
        except click.UsageError as error:
            where = f"; see {error.ctx.command_path} --help" if error.ctx else ""
            _fail(f"{error.format_message().rstrip('.')}{where}", EXPECTED)
        except click.ClickException as error:
            _fail(error.format_message(), EXPECTED)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        sys.exit(status if isinstance(status, int) else 0)


@click.command(
    "comis-eval", cls=CommandLine, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="comis_eval", prog_name="comis-eval")
def main() -> None:
    """Measure, explain and tune the memory recall of agents.

    \b
    Example:
        comis-eval evaluate datasets/starter
        comis-eval recall datasets/starter "where does Ada live?"
    """


@contextmanager
def _stopped_as_interrupted() -> Iterator[None]:
    """Have whoever stops the command, or closes its terminal, leave as little as Ctrl-C does.

    Else half a folder, a private copy of somebody's database and worker processes stay.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores one
                before[number] = signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    raise KeyboardInterrupt


def _fail(message: str, status: int) -> NoReturn:
    """Print an expected error and exit; only a list of faults takes more than one line."""
    from comis_eval.text import printable

    # The indent keeps a line that somebody else wrote from passing for one of ours.
    lines = "\n  ".join(printable(line) for line in message.split("\n"))
    click.echo(f"comis-eval: {lines}", err=True)
    sys.exit(status)


def _show_what_cannot_be_encoded() -> None:
    """Print characters that the terminal's encoding lacks as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Point stdout at nothing, so that the interpreter's own last flush cannot fail."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)

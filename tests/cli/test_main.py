"""What holds for every command: help, examples, exit statuses, one line an error."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

import comis_eval.cli
from comis_eval.cli import COMMANDS, main
from comis_eval.errors import ComisEvalError, TrackingError
from tests.cli.world import error, run

HEAVY = (
    "numpy", "pydantic", "rich", "yaml", "pandas", "faiss", "onnxruntime", "optuna", "mlflow",
    "mcp",
)  # fmt: skip


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, f"{path} {name}")


EVERY = dict(commands(main, "comis-eval"))


@pytest.mark.parametrize("path", EVERY)
def test_every_command_has_help_and_an_example_that_names_it(path):
    told = EVERY[path].help or ""
    assert len(told.split("\n")[0]) > 10
    _, example, lines = told.partition("Example:")
    assert example, f"{path}: no example"
    assert lines.strip().startswith("comis-eval")
    assert path in lines


@pytest.mark.parametrize("path", EVERY)
def test_every_option_and_help_page_is_told(path):
    for parameter in EVERY[path].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path} {parameter.opts}"
    shown = run(*path.split()[1:], "--help")
    assert shown.exit_code == 0
    assert "Example:" in shown.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_they_say_themselves(name):
    assert EVERY[f"comis-eval {name}"].help.split("\n")[0] == COMMANDS[name].help


def test_help_imports_nothing_heavy():
    program = (
        "import sys\nfrom comis_eval.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"
    assert all(name in done.stdout for name in COMMANDS)


def test_without_a_command_the_help_is_printed():
    result = run()
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


def test_an_unknown_command_lists_the_known():
    assert "no command 'evalute'; did you mean evaluate or" in error("evalute")
    assert "there are evaluate, recall" in error("nothing-like-it")


def test_an_unknown_option_names_the_help_to_read():
    told = error("validate", "x", "--jsn")
    assert told.startswith("comis-eval: No such option '--jsn'")
    assert told.endswith("; see comis-eval validate --help\n")


@pytest.fixture
def failing(monkeypatch):
    """Make a command raise."""

    def with_error(raised: BaseException):
        @click.command
        def command() -> None:
            raise raised

        monkeypatch.setattr(comis_eval.cli.CommandLine, "get_command", lambda *_: command)
        return run("doctor")

    return with_error


def test_expected_errors_are_one_line_and_exit_2(failing):
    result = failing(ComisEvalError("world:3: odd; mend it"))
    assert (result.exit_code, result.stderr) == (2, "comis-eval: world:3: odd; mend it\n")


def test_a_list_of_faults_is_indented_and_nothing_in_it_is_obeyed(failing):
    result = failing(ComisEvalError("2 faults:\na\x1b[2J\ncomis-eval: all is well"))
    assert result.stderr == "comis-eval: 2 faults:\n  a␛[2J\n  comis-eval: all is well\n"


def test_work_that_could_not_be_tracked_exits_5(failing):
    assert failing(TrackingError("saved, but the server is away")).exit_code == 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_stopped_ends_as_an_interrupted_one(number, monkeypatch):
    @click.command
    def stopped():
        signal.raise_signal(number)

    before = signal.signal(number, signal.SIG_DFL)
    try:
        monkeypatch.setattr(comis_eval.cli.CommandLine, "get_command", lambda *_: stopped)
        assert run("doctor").exit_code == 130
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_an_interrupt_exits_130_quietly(failing):
    result = failing(KeyboardInterrupt())
    assert result.exit_code == 130
    assert result.output.strip() == ""


def test_a_bug_keeps_its_traceback(failing):
    with pytest.raises(ZeroDivisionError):
        failing(ZeroDivisionError())


def start(*arguments: str, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "comis_eval", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_a_reader_that_leaves_is_no_error():
    process = start("config", "show")
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 141


def test_an_encoding_without_the_symbols_gets_escapes(dataset):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    process = start("recall", dataset, "kiln", "--lanes", "fts", env=environment)
    printed, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert r"\u241b[2J" in printed

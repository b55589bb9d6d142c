"""The pieces that every command prints with."""

import json
import sys
import threading
from math import nan

import pytest
from rich.text import Text

from comis_eval.cli.terminal import (
    WIDTH,
    WRONG,
    cell,
    console,
    figure,
    line,
    more,
    print_json,
    progress,
    table,
    titled,
)
from tests.cli.world import HOSTILE, is_tame


def test_figures_have_three_decimals_and_undefined_is_a_dash():
    assert [figure(value) for value in (0.0, 0.12345, 1.0, nan)] == ["0.000", "0.123", "1.000", "-"]


def test_cells_are_plain_text_without_teeth():
    assert cell(HOSTILE).plain.startswith("kiln ␛[2J")
    assert "[bold red]no[/]" in cell(HOSTILE).plain
    assert cell(None).plain == "-"
    assert cell("abcdef", limit=4).plain == "abc…"


def test_a_pipe_gets_plain_text_of_a_fixed_width(capsys):
    out = console()
    assert out.width == WIDTH
    titled(out, HOSTILE, table(["a", "b"], [(HOSTILE, 0.5), (Text("x", WRONG), None)], numbers="b"))
    printed = capsys.readouterr().out
    assert is_tame(printed)
    assert "[bold red]no[/] :skull:" in printed
    assert "0.500" in printed


def test_long_lines_are_not_cut(capsys):
    line(console(), "x" * 500)
    assert capsys.readouterr().out == "x" * 500 + "\n"


def test_no_color_is_heeded(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    line(console(), "bad", WRONG)
    assert "31m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    line(console(), "bad", WRONG)
    assert "31m" not in capsys.readouterr().out


def test_a_rest_is_counted():
    assert more(10, 10) is None
    assert more(10, 12) == "... and 2 more (--limit, or --json)"


def test_json_is_ascii_and_holds_no_nan(capsys):
    print_json({"text": HOSTILE})
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert json.loads(printed)["text"] == HOSTILE
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json(nan)


def test_progress_is_silent_without_a_terminal(capsys):
    with progress() as tell:
        assert tell is None
    assert capsys.readouterr() == ("", "")


def test_progress_goes_to_stderr_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    threads = threading.active_count()
    with progress() as tell:
        assert tell is not None
        assert threading.active_count() == threads, "a thread would forbid commands to fork"
        for done in (1, 2):
            tell("embed [red]", done, 2)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "embed" in printed.err

"""Documents tell commands that exist, and the check of it notices when they do not."""

from pathlib import Path

import pytest

from tests.commands import Told, commands_in, fault_of

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("experiments/*/README.md")),
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_that_a_document_tells_is_there(document):
    told = commands_in(document.read_text("utf-8"))
    assert [fault for one in told if (fault := fault_of(one))] == []


def test_the_documents_tell_commands():
    assert len(commands_in((ROOT / "README.md").read_text("utf-8"))) > 10


TEXT = """Say `comis-eval gate` or ``comis-eval recall X "a b"``, not `gate`; a span may
be `comis-eval evaluate
starter`.

```sh
$ comis-eval validate datasets/starter   # comis-eval cache ls
A=b comis-eval evaluate starter \\
  --out runs/x.json && comis-eval gate main runs/x.json > out.txt
    - run: comis-eval doctor | tee log
python -m comis_eval doctor
x: [comis-eval, serve-mcp, starter]
comis-eval plan DATASET [--margin M] ...
```
Not code: comis-eval nonsense.
"""


def test_commands_are_found_where_they_stand():
    assert commands_in(TEXT) == [
        Told(1, ("gate",), False),
        Told(1, ("recall", "X", "a b"), False),
        Told(2, ("evaluate", "starter"), False),
        Told(6, ("validate", "datasets/starter"), True),
        Told(6, ("cache", "ls"), True),
        Told(7, ("evaluate", "starter", "--out", "runs/x.json"), True),
        Told(7, ("gate", "main", "runs/x.json"), True),
        Told(9, ("doctor",), True),
        Told(10, ("doctor",), True),
        Told(12, ("plan", "DATASET", "--margin", "M"), True),
    ]


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("evalute starter", "no command 'evalute'"),
        ("cache list", "no command 'list'"),
        ("cache", "which command?"),
        ("validate starter --jsn", "No such option"),
        ("evaluate", "lacks DATASET"),
        ("evaluate one two", "takes no argument 'two'"),
        ("sweep starter --sampler tpee", "'tpee' is not one of"),
        ("sweep starter --trials few", "'few' is not a valid integer"),
        ("sweep starter --trials", "requires an argument"),
        ("evaluate starter --set rag.scoring.recencyAlfa=0", "unknown key"),
    ],
)
def test_what_is_not_there_is_noticed(command, fault):
    [told] = commands_in(f"```\ncomis-eval {command}\n```")
    assert fault in (fault_of(told) or "")


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "sweep DATASET --trials N --sampler NAME",
        "evaluate starter --set rag.scoring.recencyAlpha=0 --set $KNOB=1",
        "config export starter-1 --trial 3",
        'recall starter "what is it" --set rag.minScore=0',
    ],
)
def test_what_is_there_passes(command):
    [told] = commands_in(f"```\ncomis-eval {command}\n```")
    assert fault_of(told) is None


def test_a_mention_need_not_be_complete_but_must_exist():
    [gate, wrong] = commands_in("`comis-eval gate`, `comis-eval gate --polcy x`")
    assert fault_of(gate) is None
    assert "No such option" in (fault_of(wrong) or "")

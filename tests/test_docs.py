"""The documentation: the site builds, nothing in it is gone, every link and command resolves.

Commands of ``comis-eval`` are held against the real ones by test_commands_told.py; here are
the values that they set, the other programs that texts tell to run, and the site itself.
Figures are measured again by test_docs_figures.py.
"""

import ast
import importlib
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from itertools import pairwise
from pathlib import Path

import click
import pytest
import yaml

import comis_eval
from comis_eval.cli import main
from comis_eval.config import Config, preset
from comis_eval.config_file import describe, load_config
from comis_eval.datasets import load_dataset
from comis_eval.metrics.registry import METRICS, parse
from tests.commands import commands_in, fault_of

ROOT = Path(__file__).parents[1]
TEXTS = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("datasets/*/README.md")),
    *sorted(ROOT.glob("experiments/**/README.md")),
]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)

each_text = pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return [block for _, named, block in FENCE.findall(text) if named == language]


def code(text: str) -> Iterator[str]:
    """Every line of a fenced block and every piece of inline code."""
    for _, _, block in FENCE.findall(text):
        yield from block.splitlines()
    yield from (span for _, span in re.findall(r"(`+)([^`]+)\1", FENCE.sub("", text)))


# --- links ------------------------------------------------------------------------------


def anchors(markdown: str) -> set[str]:
    """What GitHub and mkdocs name the headings of a text."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", markdown), re.MULTILINE)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", h).strip().lower()) for h in headings}


def broken(path: Path) -> list[str]:
    """The relative links of a text that lead nowhere."""
    text = path.read_text("utf-8")
    prose = re.sub(r"(`+)[^`]+\1", "", FENCE.sub("", text))
    faults = []
    for target in re.findall(r"\]\(<?([^)\s>]+)>?[^)]*\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists() or (anchor and anchor not in anchors(there.read_text("utf-8"))):
            faults.append(target)
    return faults


@each_text
def test_every_relative_link_leads_somewhere(path):
    assert broken(path) == []


def test_a_link_to_what_is_gone_is_noticed(tmp_path):
    text = tmp_path / "a.md"
    text.write_text(
        "# A b\n[x](a.md) [y](#a-b) `[no](z.md)`\n[p](b.md) [q](a.md#c) [r](#d)", "utf-8"
    )
    assert broken(text) == ["b.md", "a.md#c", "#d"]


@each_text
def test_files_of_the_repository_that_a_text_names_are_there(path):
    folders = "tests|docs|experiments|notebooks|comis_eval|datasets/starter"
    named = {
        name.rstrip(".,:")
        for piece in code(path.read_text("utf-8"))
        for name in re.findall(rf"(?:^|(?<=[\s(]))((?:{folders})/[\w./-]+\.(?:py|md|yaml))", piece)
    }
    assert [name for name in named if not (ROOT / name).exists()] == []


# --- commands ---------------------------------------------------------------------------


def values(words: tuple[str, ...], *options: str) -> list[str]:
    """What a command gives for an option, but for what the reader puts in."""
    given = [value for option, value in pairwise(words) if option in options]
    return [v for v in given if not re.search(r"\.\.\.|\$|=[A-Z]|^[A-Z]+$", v)]


@each_text
def test_every_command_setting_and_metric_that_a_text_names_can_be_used(path):
    for told in commands_in(path.read_text("utf-8")):
        assert fault_of(told) is None
        for override in values(told.words, "--set"):
            load_config(None, overrides=[override])
        for name in values(told.words, "--metric", "--objective"):
            assert name == "latency_ms" or parse(name)


@each_text
def test_every_other_program_that_a_text_runs_is_there(path):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for piece in code(path.read_text("utf-8")):
        program, *words = piece.strip().removeprefix("$ ").split("#")[0].split() or [""]
        if program == "make" and words:
            assert set(words) <= set(targets), piece
        if program in ("pytest", "python"):
            named = [word for word in words if re.match(r"(tests|experiments|notebooks)/", word)]
            assert all((ROOT / word.partition("::")[0]).exists() for word in named), piece
        if program == "pytest" and "-k" in words:
            expression = shlex.split(piece)[shlex.split(piece).index("-k") + 1]
            asked = set(re.findall(r"\w+", expression)) - {"and", "or", "not"}
            assert all(map(keyword_matches, asked)), piece


def keyword_matches(word: str) -> bool:
    """Whether ``pytest -k WORD`` would find a test: by a file's name or a function's."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text("utf-8")
        if word in str(path.relative_to(ROOT)) or re.search(rf"def test_\w*{word}", text):
            return True
    return False


def steps(node: object) -> Iterator[str]:
    """The ``run`` texts of a workflow, wherever they stand, with folded lines joined."""
    if isinstance(node, dict):
        if isinstance(node.get("run"), str):
            yield node["run"]
        for inner in node.values():
            yield from steps(inner)
    if isinstance(node, list):
        for inner in node:
            yield from steps(inner)


def test_every_command_of_the_workflows_can_be_run():
    told = [
        one
        for block in blocks((ROOT / "docs/ci.md").read_text("utf-8"), "yaml")
        for step in steps(yaml.safe_load(block))
        for one in commands_in(f"```\n{step}\n```")
    ]
    assert [one.words[0] for one in told] == ["evaluate", "gate"]
    assert "--junit" in told[1].words
    assert [fault for one in told if (fault := fault_of(one))] == []


def contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            inner = context.command.get_command(context, name)
            assert inner is not None
            yield from contexts(click.Context(inner, info_name=name, parent=context))


COMMANDS = {one.command_path: one for one in contexts(click.Context(main, info_name="comis-eval"))}


@pytest.mark.parametrize("path", COMMANDS)
def test_the_example_of_every_help_can_be_run(path):
    _, _, example = (COMMANDS[path].command.help or "").partition("Example:")
    told = commands_in(f"```\n{inspect.cleandoc(example)}\n```")
    assert told
    assert [fault for one in told if (fault := fault_of(one))] == []


@pytest.fixture
def readme():
    return commands_in((ROOT / "README.md").read_text("utf-8"))


def test_a_command_that_is_removed_is_noticed(readme, monkeypatch):
    kept = {name: entry for name, entry in comis_eval.cli.COMMANDS.items() if name != "gate"}
    monkeypatch.setattr(comis_eval.cli, "COMMANDS", kept)
    assert any("no command 'gate'" in (fault_of(told) or "") for told in readme)


def test_an_option_that_is_removed_is_noticed(readme, monkeypatch):
    gate = COMMANDS["comis-eval gate"].command
    kept = [parameter for parameter in gate.params if "--markdown" not in parameter.opts]
    assert len(kept) < len(gate.params)
    monkeypatch.setattr(gate, "params", kept)
    assert any("No such option '--markdown'" in (fault_of(told) or "") for told in readme)


# --- what is shown of Python and of files ----------------------------------------------


@each_text
def test_python_that_a_text_shows_uses_names_that_are_there(path):
    for block in blocks(path.read_text("utf-8"), "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("comis_eval"):
                module = importlib.import_module(str(node.module))
                assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


def test_the_least_dataset_of_the_guide_is_one(tmp_path):
    text = (ROOT / "docs/label.md").read_text("utf-8")
    [header] = blocks(text, "yaml")
    memory, query = blocks(text, "json")
    [qrels] = [block for block in blocks(text, "") if block.startswith("q-kiln")]
    files = {"dataset.yaml": header, "memories.jsonl": memory, "queries.jsonl": query}
    for name, held in {**files, "qrels.tsv": qrels.replace(" ", "\t")}.items():
        (tmp_path / name).write_text(held, "utf-8")
    dataset = load_dataset(tmp_path)
    assert (dataset.name, len(dataset.memories), len(dataset.queries)) == ("mine", 1, 1)


def shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{lane} {weight}" for lane, weight in value.items() if weight is not None)
    return value if isinstance(value, str) else json.dumps(value)


def test_the_table_of_switches_says_what_the_presets_do():
    text = (ROOT / "docs/pipeline.md").read_text("utf-8")
    table = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| `([^`]+)` \|", text, re.MULTILINE)
    documented, production = (
        Config(semantics=preset(name)).to_tree()["semantics"]
        for name in ("documented", "production")
    )
    differ = {
        name: (shown(value), shown(production[name]))
        for name, value in documented.items()
        if value != production[name] and name != "preset"
    }
    assert {name: (left, right) for name, left, right in table} == differ


# --- the site ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as ``make docs`` builds it."""
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    pytest.importorskip("material", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


def page(site: Path, name: str) -> str:
    return (site / name).read_text("utf-8")


def test_every_text_is_a_page_of_the_navigation(site):
    home = page(site, "index.html")
    for path in (ROOT / "docs").glob("*.md"):
        assert (site / f"{path.stem}.html").exists()
        assert f'href="{path.stem}.html"' in home, f"{path.name} is not in the nav of mkdocs.yml"


def test_no_page_loads_anything_from_elsewhere(site):
    loads = re.compile(r"<(script|img|link|iframe|source)\b[^>]*?(src|href)=[\"']?(https?:)?//")
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    assert [one.name for one in pages if loads.search(one.read_text("utf-8"))] == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import )[\"']?(https?:)?//", sheet.read_text("utf-8"))


def test_the_generator_is_no_part_of_the_site(site):
    assert not list(site.rglob("*.py"))


PRINT_HELP = """
import json, sys
from click.testing import CliRunner
from comis_eval.cli import main

def printed(path):
    words = [*path.split()[1:], "--help"]
    return CliRunner().invoke(main, words, terminal_width=96).output.strip()

json.dump({path: printed(path) for path in json.load(sys.stdin)}, sys.stdout)
"""
"""For a process of its own: click keeps the help option of whoever asked a command first."""


def test_the_help_of_every_command_is_there_as_it_prints(site):
    told = unescape(page(site, "reference/commands.html"))
    asked = json.dumps(list(COMMANDS))
    done = subprocess.run(
        [sys.executable, "-c", PRINT_HELP], input=asked, capture_output=True, text=True, check=True
    )
    for path, printed in json.loads(done.stdout).items():
        assert f'id="{path.replace(" ", "-")}"' in told
        assert printed.startswith(f"Usage: {path} ")
        assert printed in told, path


def test_every_setting_with_its_default_is_there(site):
    told = unescape(page(site, "reference/settings.html"))
    for row in describe(Config()):
        above, _, name = row.path.rpartition(".")
        part = told[told.index(f'id="{above.replace(".", "-")}"') :]
        cell = f"<td><code>{name}</code></td><td><code>{json.dumps(row.value)}</code>"
        assert cell in part, row.path
        assert row.description in part, row.path


def test_every_metric_is_there(site):
    told = unescape(page(site, "reference/metrics.html"))
    for metric in METRICS.values():
        assert f'id="{metric.name}"' in told
        assert f"<code>{metric.pattern}</code>" in told


def test_every_public_name_and_its_first_sentence_is_there(site):
    told = " ".join(unescape(re.sub("<[^>]+>", "", page(site, "reference/python.html"))).split())
    for name in comis_eval.__all__:
        first = (inspect.getdoc(getattr(comis_eval, name)) or "").split("\n")[0]
        assert first.replace("``", "") in told, name
    assert "The trial that was chosen; None when there is a front instead." in told  # a property


def test_every_error_is_there(site):
    told = page(site, "reference/errors.html")
    for name, value in vars(comis_eval.errors).items():
        if inspect.isclass(value):
            assert f"<code>{name}</code>" in told

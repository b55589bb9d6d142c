"""The notebooks: stripped, only importing, each figure beside its command, run top to bottom."""

import ast
import json
import os
import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

from comis_eval.datasets import load_dataset
from comis_eval.pipelines.memory_recall import MemoryRecall
from tests.commands import commands_in, fault_of

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
STRIP = runpy.run_path(str(ROOT / "notebooks" / "strip.py"))

MAY_IMPORT = {"comis_eval", "pandas", "optuna", "mlflow", "ipywidgets", "IPython"}
SECONDS = 60
"""How long a notebook may take; of processor time, as the machine may do other things too."""

IN_EVERY_RUN = {"01_one_recall"}
"""What the fast tests execute; `make test-all` runs the others too."""


def cells(path: Path, kind: str) -> list[tuple[str, str]]:
    """Id and source of the cells of a kind."""
    book = json.loads(path.read_text("utf-8"))
    return [(c["id"], "".join(c["source"])) for c in book["cells"] if c["cell_type"] == kind]


def trees(path: Path) -> list[tuple[str, ast.Module]]:
    return [(ident, ast.parse(source)) for ident, source in cells(path, "code")]


def test_there_are_five():
    assert [name[:2] for name in NAMES] == ["01", "02", "03", "04", "05"]


every = pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)


@every
def test_it_is_valid_and_stripped(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    text = path.read_text("utf-8")
    assert STRIP["stripped"](text, path.name[:2]) == text, "python notebooks/strip.py notebooks/*"


def test_git_is_told_to_strip():
    told = (ROOT / ".gitattributes").read_text("utf-8").splitlines()
    assert "notebooks/*.ipynb filter=notebooks" in told


def test_stripping_takes_out_what_running_leaves(tmp_path):
    clean = NOTEBOOKS[0].read_text("utf-8")
    book = json.loads(clean)
    book["metadata"]["language_info"]["version"] = "3.11.9"
    for number, cell in enumerate(book["cells"]):
        cell["metadata"] = {"collapsed": True, "execution": {"iopub.status.busy": "now"}}
        cell["id"] = f"{cell['id'][:2]}-x{number}"
        if cell["cell_type"] == "code":
            cell["execution_count"] = number
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": ["a memory"]}]
    used = json.dumps(book, indent=2)
    asked = [sys.executable, ROOT / "notebooks" / "strip.py"]
    piped = subprocess.run(asked, input=used.encode(), capture_output=True, check=True)
    assert piped.stdout.decode() == clean
    copy = tmp_path / NOTEBOOKS[0].name
    copy.write_text(used, encoding="utf-8")
    done = subprocess.run([*asked, copy], capture_output=True, text=True, check=True)
    assert copy.read_text("utf-8") == clean
    assert done.stderr == f"{copy}: stripped\n"
    again = subprocess.run([*asked, copy], capture_output=True, text=True, check=True)
    assert again.stderr == ""


@every
def test_it_imports_and_never_defines(path):
    for ident, tree in trees(path):
        for node in ast.walk(tree):
            assert not isinstance(
                node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
            ), f"{path.name} {ident}: defines something"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [node.module or ""]
                    if isinstance(node, ast.ImportFrom)
                    else [alias.name for alias in node.names]
                )
                for name in names:
                    top = name.partition(".")[0]
                    assert top in MAY_IMPORT | sys.stdlib_module_names, f"{ident}: imports {name}"


@every
def test_imports_stand_in_the_first_code_cell_alone(path):
    _first, *others = trees(path)
    for ident, tree in others:
        imported = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
        assert not imported, ident


@every
def test_formulas_in_tables_are_not_typeset(path):
    _, source = cells(path, "code")[0]
    assert 'pd.set_option("display.html.use_mathjax", False,' in source


@every
def test_the_dataset_is_one_constant(path):
    _first, (ident, tree), *others = trees(path)
    names = [n.targets[0].id for n in tree.body if isinstance(n, ast.Assign)]
    assert len(names) == len(tree.body), f"{ident} holds constants alone"
    assert names[0] == "DATASET"
    assert all(isinstance(ast.literal_eval(n.value), object) for n in tree.body)
    for ident, tree in others:
        quoted = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
        assert "starter" not in quoted, ident


@every
def test_a_cell_of_text_stands_above_each_cell_of_code(path):
    book = json.loads(path.read_text("utf-8"))
    kinds = [c["cell_type"] for c in book["cells"]]
    assert kinds == ["markdown", "code"] * (len(kinds) // 2)
    assert max(len(source) for _, source in cells(path, "markdown")) < 500


@every
def test_every_command_that_it_tells_is_there(path):
    faults = [
        f"{ident} {fault}"
        for ident, source in cells(path, "markdown")
        for told in commands_in(source)
        if (fault := fault_of(told))
    ]
    assert faults == []
    assert any(commands_in(source) for _, source in cells(path, "markdown"))


@every
def test_every_figure_has_its_command_beside_it(path):
    beside = dict(zip(cells(path, "code"), cells(path, "markdown"), strict=True))
    for (ident, source), (_, told) in beside.items():
        if ".draw()" in source:
            assert "The figure:" in told, f"{ident}: what does it show?"
            assert commands_in(told), f"{ident}: which command gives the same?"


def constants(path: Path) -> dict[str, object]:
    """What the second code cell sets."""
    _first, (_, tree), *_ = trees(path)
    return {n.targets[0].id: ast.literal_eval(n.value) for n in tree.body}


def option(words: tuple[str, ...], name: str) -> list[str]:
    return [after for before, after in pairwise(words) if before == name]


@every
def test_commands_name_what_the_constants_set(path):
    given = constants(path)
    sets = {given["DATASET"], *given.get("OTHERS", ())}
    queries = load_dataset(given["DATASET"]).queries
    for ident, source in cells(path, "markdown"):
        for told in commands_in(source):
            command, *rest = told.words
            if command in ("validate", "recall", "evaluate", "sweep", "attack"):
                assert rest[0] in sets, ident
            for value in option(told.words, "--query-id"):
                assert value == queries[given["QUERY"]].id, ident
            for value in option(told.words, "--trials"):
                assert int(value) == given["TRIALS"], ident
            for value in option(told.words, "--rate"):
                assert float(value) == given["RATE"], ident
            kinds = option(told.words, "--kind")
            assert kinds in ([], list(given.get("KINDS", ())), list(given.get("KINDS", ()))[:1])


def test_what_is_tuned_says_so_and_shows_a_second_set():
    told = "\n".join(source for _, source in cells(ROOT / "notebooks/03_sweep.ipynb", "markdown"))
    code = "\n".join(source for _, source in cells(ROOT / "notebooks/03_sweep.ipynb", "code"))
    assert "A second set." in told
    assert "settings were tuned on it" in code


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Embeddings of a first notebook serve the next."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def with_others(cache):
    """The same where the other sets of a notebook were used before: embedding them is no part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMIS_EVAL_CACHE", str(cache))
        for path in NOTEBOOKS:
            for name in constants(path).get("OTHERS", ()):
                other = load_dataset(name)
                MemoryRecall.over(other).candidates(other.queries)


def executed(path: Path, place: Path, cache: Path) -> tuple[nbformat.NotebookNode, float]:
    """Run a notebook in an empty folder; also how many seconds of a processor it took."""
    here, out = place / "somewhere else", place / path.name
    here.mkdir()
    above = os.environ.get("PYTHONPATH")
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "tests.run_notebook", path, here, out, "300"],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *([above] if above else [])]),
            "COMIS_EVAL_CACHE": str(cache),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    after = os.times()
    assert not list(here.iterdir()), "it leaves nothing behind"
    used = after.children_user + after.children_system
    return nbformat.read(out, as_version=4), used - before.children_user - before.children_system


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, id=p.stem, marks=[] if p.stem in IN_EVERY_RUN else [pytest.mark.slow])
        for p in NOTEBOOKS
    ],
)
def test_it_runs_from_top_to_bottom(path, tmp_path, cache, request):
    if "OTHERS" in constants(path):
        request.getfixturevalue("with_others")
    book, seconds = executed(path, tmp_path, cache)
    assert seconds < SECONDS
    assert STRIP["stripped"](nbformat.writes(book), path.name[:2]) == path.read_text("utf-8")
    outputs = [(c["id"], out) for c in book.cells if c.cell_type == "code" for out in c.outputs]
    told = [(ident, out["text"]) for ident, out in outputs if out.get("name") == "stderr"]
    assert told == [], "a notebook is quiet"
    shown = [
        (ident, kind, text if isinstance(text, str) else json.dumps(text))
        for ident, out in outputs
        for kind, text in {**out.get("data", {}), "text": out.get("text", "")}.items()
    ]
    drawn = {ident for ident, kind, _ in shown if kind == "image/svg+xml"}
    wanted = {ident for ident, source in cells(path, "code") if ".draw()" in source}
    assert drawn == wanted
    assert drawn
    for ident, kind, text in shown:
        assert not [c for c in text if c in "\x1b\x9b\u202e\u202d\u2066\u200b"], f"{ident} {kind}"
        assert "<script" not in text, f"{ident} {kind}"

"""What stands in the folders of the experiments agrees with itself, and can be run again."""

import json
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from comis_eval.report.svg import svg
from experiments.common.experiment import marked
from experiments.common.scene import LOCOMO
from tests.experiments.world import FOLDER, ROOT, RUNS, experiment

READMES = sorted(FOLDER.rglob("README.md"))
COMMAND = re.compile(r"^(?:\$ )?(python experiments/\S+.*)$", re.MULTILINE)
FIGURE = re.compile(r"\d+\.\d{3}(?!\d)")
SECTIONS = ("Question", "Method", "Command", "Answer", "Limits")


def commands() -> Iterator[Any]:
    for readme in READMES:
        for command in COMMAND.findall(readme.read_text(encoding="utf-8")):
            yield pytest.param(command, id=command)


def results_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name / "results.json").read_text("utf-8"))
    return found


def readme_of(name: str) -> str:
    return (FOLDER / name / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RUNS)
def test_readme_and_figure_are_those_of_the_results(name: str) -> None:
    found, results = experiment(name), results_of(name)

    assert marked(readme_of(name), found.text(results)) == readme_of(name)
    drawn = svg(found.figure(results), ident=name, standalone=True) + "\n"
    assert (FOLDER / name / "figure.svg").read_text(encoding="utf-8") == drawn


@pytest.mark.parametrize("name", RUNS)
def test_every_claim_holds_at_full_size(name: str) -> None:
    results = results_of(name)

    assert results["limit"] is None
    failing = [
        (claim.says, one)
        for claim in experiment(name).claims
        for one in claim.sets
        if not claim.holds(results, one)
    ]
    assert failing == []


@pytest.mark.parametrize("name", RUNS)
def test_answer_is_shown_on_more_than_one_set(name: str) -> None:
    assert len(results_of(name)["sets"]) > 1


@pytest.mark.parametrize("name", RUNS)
def test_figures_in_the_prose_are_among_those_of_the_run(name: str) -> None:
    prose, _, rest = readme_of(name).partition("<!-- by run.py -->")
    written, _, after = rest.partition("<!-- end run.py -->")

    assert set(FIGURE.findall(prose + after)) <= set(FIGURE.findall(written))


@pytest.mark.parametrize("name", RUNS)
def test_readme_has_every_section_and_its_own_command(name: str) -> None:
    text = readme_of(name)

    assert [
        part for part in SECTIONS if f"**{part}.**" not in text and f"**{part}" not in text
    ] == []
    assert any(f"experiments/{name}/run.py" in command for command in COMMAND.findall(text))
    assert "figure.svg" in text


def test_figures_in_the_index_are_those_of_the_experiments() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    known = {found for name in RUNS for found in FIGURE.findall(readme_of(name))}

    assert set(FIGURE.findall(index)) <= known
    assert [name for name in RUNS if f"({name}/README.md)" not in index] == []


@pytest.mark.parametrize("command", [*commands()])
def test_command_names_a_program_and_options_that_it_takes(command: str) -> None:
    _, script, *arguments = shlex.split(command, comments=True)
    program = _program(ROOT / script)

    getattr(program, "EXPERIMENT", program).parser().parse_args(arguments)
    given = [Path(one) for one in arguments if one.startswith("datasets/")]
    assert [path for path in given if not (ROOT / path).is_dir()] == []
    assert LOCOMO in arguments or given


def _program(path: Path) -> Any:
    assert path.is_file(), f"{path} is named in a README and is not there"
    spec = spec_from_file_location(
        f"program_{path.parent.name}_{path.stem}".replace("-", "_"), path
    )
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_missing_program_or_option_is_noticed() -> None:
    with pytest.raises(AssertionError, match="is not there"):
        _program(FOLDER / "nothing" / "run.py")
    with pytest.raises(SystemExit):
        import_module("experiments.keyword.run").EXPERIMENT.parser().parse_args(["x", "--nothing"])


def test_clock_table_is_that_of_its_measurement() -> None:
    clock = import_module("experiments.rerank.clock")
    told = json.loads((FOLDER / "rerank" / "clock.json").read_text("utf-8"))
    readme = readme_of("rerank")

    assert marked(readme, clock.table(told), by="clock.py") == readme

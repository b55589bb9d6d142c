"""Configurations shown and checked."""

import yaml

from comis_eval.config import settings
from tests.cli.world import document, error, is_tame, output


def test_show_lists_every_setting_with_its_bounds():
    told = output("config", "show", "--set", "rag.maxResults=8")
    assert "1 of " in told.split("\n")[0]
    for setting in settings():
        assert ".".join(setting.keys) in told
    row = next(line for line in told.split("\n") if line.startswith("rag.maxResults"))
    assert row.split()[:6] == ["rag.maxResults", "8", "5", "an", "integer", ">"]


def test_show_as_json():
    rows = {row["path"]: row for row in document("config", "show", "--set", "rag.minScore=0")}
    assert rows["rag.minScore"]["value"] == 0
    assert rows["rag.minScore"]["changed"]
    assert rows["rag.minScore"]["allowed"] == "a number in [0, 1]"
    assert not rows["rag.maxResults"]["changed"]


def test_show_rag_is_the_fragment_that_differs():
    told = output("config", "show", "--rag", "--set", "rag.maxResults=8", "--lanes", "fts,entity")
    assert yaml.safe_load(told) == {"rag": {"maxResults": 8, "entityLane": {"enabled": True}}}


def test_show_gives_one_form():
    assert "--rag prints YAML, --json JSON; give one" in error("config", "show", "--rag", "--json")


def test_hostile_values_are_shown_and_credentials_masked():
    told = output(
        "config", "show", "--set", "harness.remote.url=http://u:pass@h/",
        "--set", 'harness.remote.tool="\\e[2J[red]\\u202e"',
    )  # fmt: skip
    assert is_tame(told)
    assert "u:pass" not in told


def test_check_says_what_differs_and_what_the_product_lacks(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("rag: {maxResults: 8}\nsemantics: {fusion: nested}\n")
    told = output("config", "check", str(file))
    assert "usable; config " in told
    assert "rag.maxResults: 8 (default 5)" in told
    assert "the product has no setting for: semantics.fusion" in told
    assert document("config", "check", str(file))["what_ifs"] == ["semantics.fusion"]


def test_check_tells_every_fault_at_once(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("rag: {maxResults: 0, minScore: 2, maxResult: 1}\n")
    told = error("config", "check", str(file))
    for path in ("rag.maxResults", "rag.minScore", "rag.maxResult:"):
        assert path in told

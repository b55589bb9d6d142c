"""comis-eval ablate: tables, JSON, a file."""

import json

from tests.cli.world import document, error, is_tame, output

FTS = ("--lanes", "fts", "--set", "rag.minScore=0", "--set", "rag.scoring.recencyAlpha=1")


def test_every_change_is_a_row_and_what_is_left_out_is_said(dataset):
    told = output("ablate", dataset, *FTS)
    assert "semantics.lineFormat" in told
    assert "full -> short" in told
    assert "recency boost" in told
    assert "not ablated: fts lane: the only search lane" in told
    assert is_tame(told)


def test_json_and_the_file_are_the_same(dataset, tmp_path):
    out = tmp_path / "ablation.json"
    found = document("ablate", dataset, *FTS, "--metric", "context_chars", "--out", str(out))
    assert json.loads(out.read_text()) == found
    assert found["metric"] == "context_chars"
    assert found["dataset"]["name"] == "world"
    short = next(e for e in found["effects"] if e["name"] == "semantics.lineFormat")
    assert short["mean"] > 0, "fewer characters are better"


def test_errors(dataset, tmp_path):
    assert "no metric 'hot'" in error("ablate", dataset, *FTS, "--metric", "hot")
    assert "rag.enabled is false" in error("ablate", dataset, *FTS, "--set", "rag.enabled=false")
    missing = str(tmp_path / "no" / "a.json")
    assert "a.json: cannot be written" in error("ablate", dataset, *FTS, "--out", missing)

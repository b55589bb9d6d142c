"""From a dataset folder to another format and back, by the command line."""

import json

import pytest
import pytrec_eval

from comis_eval.datasets import load_dataset
from tests.cli.world import QUERIES, error, is_tame, output, world


def test_to_beir_and_back_is_the_same_dataset(tmp_path):
    folder = world(tmp_path / "set")
    told = output("export", folder, "--as", "beir", "--out", str(tmp_path / "beir"))
    assert ["corpus.jsonl", "7"] in [line.split() for line in told.split("\n")]
    assert "memories: trustLevel (7): in metadata.comis_eval" in told
    assert is_tame(told)
    output("import", "beir", str(tmp_path / "beir"), "--out", str(tmp_path / "back"))
    assert load_dataset(tmp_path / "back").fingerprint == load_dataset(folder).fingerprint


def test_to_trec_as_json(tmp_path):
    folder = world(tmp_path / "set")
    told = json.loads(
        output("export", folder, "--as", "trec", "--out", str(tmp_path / "trec"), "--json")
    )
    assert told["counts"] == {"docs.trec": 7, "topics.trec": 4, "qrels.txt": 4}
    assert {"what": "tenancies", "number": 2}.items() <= next(
        loss for loss in told["losses"] if loss["what"] == "tenancies"
    ).items()
    told = output("import", "trec", str(tmp_path / "trec"), "--out", str(tmp_path / "back"))
    assert ["queries", "4", "3", "1"] in [line.split() for line in told.split("\n")]


def test_a_folder_in_use_and_an_unknown_format_are_refused(tmp_path):
    folder = world(tmp_path / "set")
    assert "not empty" in error("export", folder, "--as", "trec", "--out", folder)
    told = error("export", folder, "--as", "csv", "--out", str(tmp_path / "x"))
    assert "'csv' is not one of 'trec', 'beir'" in told


MEASURES = {"ndcg@10": "ndcg_cut_10", "map": "map", "recall@5": "recall_5", "mrr@10": "recip_rank"}


@pytest.mark.parametrize(
    "options", [(), ("--pipeline", "recall-tool"), ("--set", "rag.maxResults=1")]
)
def test_trec_eval_computes_the_same_figures_from_an_exported_run(tmp_path, options):
    folder, path = world(tmp_path / "set"), tmp_path / "evaluation.json"
    output("evaluate", folder, "--lanes", "fts", "--out", str(path), *options)
    told = output(
        "export", folder, "--as", "trec", "--out", str(tmp_path / "trec"), "--run", str(path)
    )
    assert "run.txt" in told
    with (tmp_path / "trec" / "qrels.txt").open() as qrels:
        judged = pytrec_eval.parse_qrel(qrels)
    with (tmp_path / "trec" / "run.txt").open() as run:
        ranked = pytrec_eval.parse_run(run)
    asked = {"ndcg_cut.10", "map", "recall.5", "recip_rank"}
    found = pytrec_eval.RelevanceEvaluator(judged, asked).evaluate(ranked)
    rows = json.loads(path.read_text())["rows"]
    compared = 0
    for ours, theirs in MEASURES.items():
        for query_id, value in zip(rows["query_id"], rows[ours], strict=True):
            if value is not None:
                assert value == pytest.approx(found.get(query_id, {}).get(theirs, 0), abs=1e-12)
                compared += value > 0
    assert compared >= 8


def test_a_run_is_refused_for_another_dataset_without_its_trace_and_for_beir(tmp_path):
    folder, path = world(tmp_path / "set"), tmp_path / "evaluation.json"
    output("evaluate", folder, "--lanes", "fts", "--out", str(path))
    out = ("--out", str(tmp_path / "x"), "--run", str(path))
    assert "--run needs --as trec" in error("export", folder, "--as", "beir", *out)
    other = world(tmp_path / "other", queries=QUERIES[:3])
    assert "is of a dataset with fingerprint" in error("export", other, "--as", "trec", *out)
    next(tmp_path.glob("*.parquet")).unlink()
    assert "has no trace beside it" in error("export", folder, "--as", "trec", *out)
    assert not (tmp_path / "x").exists()

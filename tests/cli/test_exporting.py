"""From a dataset folder to another format and back, by the command line."""

import json

from comis_eval.datasets import load_dataset
from tests.cli.world import error, is_tame, output, world


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

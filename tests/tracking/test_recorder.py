import json
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest
import requests

from comis_eval.tracking import Point
from comis_eval.tracking.recorder import Recorder
from tests.tracking.conftest import NO_PAUSE
from tests.tracking.make import DATASET, FINGERPRINT, START_MS, run, sweep


def failing(mlflow, monkeypatch, method, errors, *, after=False):
    """Let the first calls of a client's method fail, before or after they have worked."""
    real = getattr(mlflow.MlflowClient, method)
    left = list(errors)

    def stumbling(self, *args, **kwargs):
        done = real(self, *args, **kwargs) if after or not left else None
        if left:
            raise left.pop(0)
        return done

    monkeypatch.setattr(mlflow.MlflowClient, method, stumbling)
    return left


def refused(mlflow, text="no"):
    from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE

    return mlflow.MlflowException(text, INVALID_PARAMETER_VALUE)


def test_a_sweep_is_a_parent_with_a_child_a_trial(record, client, children):
    outcome = record(sweep(), [run(0), run(1, status="FAILED")])
    assert outcome[1:] == (2, 2, 0, 0, [])

    parent = client.get_run(outcome.run_id)
    assert parent.info.run_name == "sweep of starter"
    assert (parent.info.status, parent.info.start_time) == ("FINISHED", START_MS)
    assert parent.info.end_time == START_MS + 5000
    assert parent.data.params == {"seed": "0", "sampler": "tpe"}
    assert parent.data.metrics == {"best.utility": 0.75}
    tags = parent.data.tags
    assert tags["semantics"] == "documented"
    assert tags["mlflow.source.git.commit"] == "ede342d"
    assert (tags["comis_eval.planned"], tags["comis_eval.logged"]) == ("2", "2")

    first, second = children(outcome.run_id)
    assert first.data.params == {"rag.scoring.recencyAlpha": "0.0", "rag.rerank.enabled": "false"}
    assert first.data.metrics == {"utility": 0.5, "recall_at_5": 0.25}
    assert (first.info.start_time, first.info.end_time) == (START_MS, START_MS + 9)
    assert [r.info.status for r in (first, second)] == ["FINISHED", "FAILED"]
    assert [r.data.tags["comis_eval.trial"] for r in (first, second)] == ["0", "1"]


def test_the_dataset_is_an_input_and_its_whole_fingerprint_a_tag(record, client):
    parent = client.get_run(record(sweep()).run_id)
    (given,) = parent.inputs.dataset_inputs
    assert (given.dataset.name, given.dataset.digest) == ("starter", FINGERPRINT[:36])
    assert json.loads(given.dataset.source)["fingerprint"] == FINGERPRINT
    assert json.loads(given.dataset.source)["source_digest"] == DATASET.source_digest
    assert parent.data.tags["comis_eval.dataset.fingerprint"] == FINGERPRINT


def test_files_names_and_curves_belong_to_the_parent(record, client, tmp_path):
    (tmp_path / "gain-1.png").write_bytes(b"png")
    (tmp_path / "rag.yaml").write_text("rag: {}")
    curve = [Point(0, 0.5, START_MS), Point(1, nan, START_MS + 1), Point(2, 0.6, START_MS + 2)]
    parent = sweep(
        artifacts={"figures/gain.png": tmp_path / "gain-1.png", "rag.yaml": tmp_path / "rag.yaml"},
        curves={"utility@k": curve},
    )
    outcome = record(parent, [run(0)])
    assert {f.path for f in client.list_artifacts(outcome.run_id)} == {
        "figures",
        "rag.yaml",
        "names.json",
    }
    fetched = lambda path: Path(client.download_artifacts(outcome.run_id, path, str(tmp_path)))  # noqa: E731
    assert fetched("figures/gain.png").read_bytes() == b"png"
    assert json.loads(fetched("names.json").read_text()) == {"recall@5": "recall_at_5"}
    points = client.get_metric_history(outcome.run_id, "utility_at_k")
    assert [(p.step, p.value) for p in points] == [(0, 0.5), (2, 0.6)]


def test_a_file_that_is_missing_is_said_and_the_rest_is_logged(record, client, tmp_path):
    (tmp_path / "b").write_text("b")
    outcome = record(sweep(artifacts={"a": tmp_path / "a", "../b": tmp_path / "b"}), [run(0)])
    assert [fault.split(":")[0] for fault in outcome.faults] == ["artifact 'a'", "artifact '../b'"]
    assert outcome.logged == 1
    assert client.get_run(outcome.run_id).info.status == "FINISHED"


def test_values_mlflow_would_cut_or_change_are_kept_whole(record, client, children, tmp_path):
    text = "x" * 7000
    outcome = record(sweep(), [run(0, params={"p": text}, metrics={"a": inf, "b": nan, "c": 1.0})])
    (child,) = children(outcome.run_id)
    assert child.data.metrics == {"c": 1.0}
    assert json.loads(child.data.tags["comis_eval.not_logged"]) == {
        "a": "infinite",
        "b": "undefined",
    }
    assert outcome.not_finite == 2
    kept = Path(client.download_artifacts(child.info.run_id, "long_values.json", str(tmp_path)))
    assert json.loads(kept.read_text()) == {"p": text}


def test_logging_again_changes_nothing(record, client, children):
    runs = [run(n) for n in range(3)]
    parent = sweep(curves={"c": [Point(0, 0.5, START_MS)]})
    first = record(parent, runs)
    second = record(replace(parent, ended_ms=START_MS + 9000), [*runs, runs[0]])
    assert second.run_id == first.run_id
    assert (second.planned, second.logged, second.already) == (3, 3, 3)
    assert len(children(first.run_id)) == 3
    assert len(client.get_metric_history(first.run_id, "best.utility")) == 1
    assert len(client.get_metric_history(first.run_id, "c")) == 1
    assert len(client.get_run(first.run_id).inputs.dataset_inputs) == 1


def test_a_later_call_logs_what_is_missing(record, client, children):
    broken_off = record(sweep(metrics={}), [run(0), run(2)], final=False)
    assert client.get_run(broken_off.run_id).info.status == "KILLED"
    outcome = record(sweep(params={"seed": 0, "sampler": "random"}), [run(n) for n in range(4)])
    assert outcome.run_id == broken_off.run_id
    assert (outcome.planned, outcome.logged, outcome.already) == (4, 4, 2)
    assert [c.data.tags["comis_eval.trial"] for c in children(outcome.run_id)] == list("0123")
    parent = client.get_run(outcome.run_id)
    assert parent.info.status == "FINISHED"
    assert parent.data.params["sampler"] == "tpe"
    assert parent.data.tags["comis_eval.resumed.sampler"] == "random"


def test_a_writer_that_comes_late_does_not_reopen_what_is_finished(record, client):
    run_id = record(sweep(), [run(0), run(1)]).run_id
    assert record(sweep(), [run(0)], final=False).logged == 1
    parent = client.get_run(run_id)
    assert parent.info.status == "FINISHED"
    assert parent.data.tags["comis_eval.logged"] == "2"


def test_a_run_that_was_begun_is_completed(record, client, children):
    outcome = record(sweep(), [run(0)])
    experiment = client.get_run(outcome.run_id).info.experiment_id
    tags = {"mlflow.parentRunId": outcome.run_id, "comis_eval.trial": "1"}
    begun = client.create_run(experiment, start_time=START_MS + 1, tags=tags).info.run_id
    client.log_param(begun, "rag.rerank.enabled", "false")
    outcome = record(sweep(), [run(0), run(1)])
    assert (outcome.logged, outcome.already) == (2, 1)
    _, completed = children(outcome.run_id)
    assert (completed.info.run_id, completed.info.status) == (begun, "FINISHED")
    assert completed.data.metrics == {"utility": 1.5, "recall_at_5": 0.25}


def test_each_evaluation_is_a_run_of_its_own(record, client):
    ids = {record(sweep(key=None)).run_id for _ in range(2)}
    assert len(ids) == 2
    kinds = {client.get_run(run_id).data.tags["comis_eval.kind"] for run_id in ids}
    assert kinds == {"evaluation"}


def test_a_stumbling_store_is_asked_again(record, children, mlflow, monkeypatch):
    failing(mlflow, monkeypatch, "log_batch", [mlflow.MlflowException("busy")] * 2)
    outcome = record(sweep(), [run(0), run(1)])
    assert (outcome.logged, outcome.faults) == (2, [])
    assert len(children(outcome.run_id)) == 2


@pytest.mark.parametrize("method", ["create_run", "create_experiment", "log_inputs"])
def test_a_lost_answer_makes_no_second_run(record, client, children, mlflow, monkeypatch, method):
    # with create_run the first answer lost is the parent's
    lost = [requests.ConnectionError("reset")]
    failing(mlflow, monkeypatch, method, lost, after=True)
    outcome = record(sweep(), [run(0)])
    assert (outcome.logged, outcome.faults) == (1, [])
    experiment = client.get_run(outcome.run_id).info.experiment_id
    assert len(client.search_runs([experiment])) == 2


def test_a_lost_answer_about_a_child_makes_no_second_child(tracker, children, mlflow, monkeypatch):
    with Recorder(tracker.place, sweep(), backoff=NO_PAUSE) as recorder:
        failing(mlflow, monkeypatch, "create_run", [requests.ConnectionError("reset")], after=True)
        recorder.add(run(0))
        outcome = recorder.close(sweep())
    assert (outcome.logged, outcome.faults) == (1, [])
    assert len(children(outcome.run_id)) == 1


def test_one_refused_run_does_not_stop_the_others(tracker, children, mlflow, monkeypatch):
    with Recorder(tracker.place, sweep(), backoff=NO_PAUSE) as recorder:
        failing(mlflow, monkeypatch, "log_batch", [refused(mlflow, "no p")])
        for number in range(3):
            recorder.add(run(number))
        outcome = recorder.close(sweep())
    assert (outcome.planned, outcome.logged) == (3, 2)
    assert outcome.faults == ["trial 0: no p"]


def test_a_store_that_is_lost_is_left_in_peace(tracker, mlflow, monkeypatch):
    with Recorder(tracker.place, sweep(), backoff=NO_PAUSE) as recorder:
        recorder.add(run(0))
        gone = [requests.ConnectionError("http://u:secret@h/ is gone")] * 9
        left = failing(mlflow, monkeypatch, "create_run", gone)
        recorder.add(run(1))
        recorder.add(run(2))
        outcome = recorder.close(sweep())
    assert (outcome.planned, outcome.logged) == (3, 1)
    assert outcome.faults == ["no success in 3 attempts: http://***@h/ is gone"]
    assert len(left) == 6


def test_a_deleted_experiment_is_named_with_its_remedy(record, client):
    client.delete_experiment(client.create_experiment("starter"))
    assert "mlflow experiments restore --experiment-id 1" in record(sweep()).faults[0]


def test_an_experiment_with_artifacts_elsewhere_is_refused(record, client):
    client.create_experiment("starter", artifact_location="file:///elsewhere")
    assert "keeps artifacts in file:///elsewhere, not in" in record(sweep()).faults[0]

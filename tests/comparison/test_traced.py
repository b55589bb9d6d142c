"""A stored trace tells the same way as the ranking it was written from."""

import hashlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from comis_eval.comparison import parting_of, ways_of
from comis_eval.comparison.way import RankedWay, Way
from comis_eval.config import LANES, Config
from comis_eval.datasets import Dataset
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation, read_evaluation, trace, write_evaluation
from comis_eval.pipelines.rank import rank
from tests import strategies
from tests.evaluation.world import measured, world
from tests.gating.build import evaluation
from tests.pipelines.test_batch import pipeline


def told(way: Way) -> object:
    lanes = {lane: way.lane(lane) for lane in LANES}
    return (lanes, way.fused(), way.scored(), way.filtered(), way.ranking(), way.context())


def stored(rankings, folder: Path) -> tuple[Evaluation, Path]:
    """An evaluation file's worth of a trace."""
    path = folder / "e.trace.parquet"
    trace.write(rankings, path)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    ids = [query.id for query in rankings.table.queries]
    made = evaluation({"hit@5": [0] * len(ids)}, query_ids=ids)
    return replace(made, trace={"file": path.name, "sha256": sha256}), folder / "e.json"


@settings(max_examples=20, deadline=None, derandomize=True)
@given(dataset=strategies.datasets(), one=strategies.configs(), two=strategies.configs())
def test_it_tells_what_the_ranking_tells(dataset: Dataset, one: Config, two: Config) -> None:
    both = [rank(pipeline(dataset, c).candidates(dataset.queries), c) for c in (one, two)]
    ids = [query.id for query in dataset.queries]
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        folders = (Path(first), Path(second))
        read = [ways_of(*stored(r, f), ids) for r, f in zip(both, folders, strict=True)]
    for place, query_id in enumerate(ids):
        ranked = [RankedWay(rankings, place) for rankings in both]
        traced = [ways[query_id] for ways in read]
        for way, same in zip(ranked, traced, strict=True):
            assert told(way) == told(same)
            if any(way.lane(lane) for lane in LANES):
                assert way.reranked() == same.reranked()
        assert parting_of(*ranked) == parting_of(*traced)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "e.json"
    write_evaluation(measured(world()), path)
    return path


def test_without_files_a_fresh_evaluation_tells_its_rankings(written: Path) -> None:
    fresh = measured(world())
    ids = fresh.query_ids
    from_file = ways_of(read_evaluation(written), written, ids)
    for query_id, way in ways_of(fresh, None, ids).items():
        assert told(way) == told(from_file[query_id])


def test_a_query_that_found_nothing_has_an_empty_way(written: Path) -> None:
    read = read_evaluation(written)
    way = ways_of(read, written, ["nobody"])["nobody"]
    assert told(way) == (dict.fromkeys(LANES, ()), (), (), (), (), ())
    assert parting_of(way, way) is None


def beside(written: Path) -> Path:
    return written.with_name("e.trace.parquet")


def resigned(written: Path) -> Evaluation:
    """The evaluation, vouching for whatever trace lies beside it now."""
    sha256 = hashlib.sha256(beside(written).read_bytes()).hexdigest()
    return replace(read_evaluation(written), trace={"file": beside(written).name, "sha256": sha256})


def test_what_is_not_its_trace_is_refused(written: Path) -> None:
    read = read_evaluation(written)
    with pytest.raises(EvaluationError, match="it was stored without a trace"):
        ways_of(replace(read, trace=None), written, ["q1"])
    for name in ("../e.trace.parquet", "/etc/passwd", "..", "", 7, "a\0b"):
        with pytest.raises(EvaluationError, match=r"trace\.file of .* is no file name"):
            ways_of(replace(read, trace={"file": name, "sha256": ""}), written, ["q1"])
    beside(written).write_bytes(beside(written).read_bytes() + b" ")
    with pytest.raises(EvaluationError, match=r"is not the trace that e\.json was written with"):
        ways_of(read, written, ["q1"])
    beside(written).unlink()
    with pytest.raises(EvaluationError, match="cannot be read: No such file"):
        ways_of(read, written, ["q1"])


def test_a_trace_that_cannot_be_read_is_refused(written: Path) -> None:
    table = pq.read_table(beside(written))
    beside(written).write_bytes(b"PAR1 nothing")
    with pytest.raises(EvaluationError, match="is not a trace"):
        ways_of(resigned(written), written, ["q1"])
    pq.write_table(table.drop_columns(["fused_place"]), beside(written))
    with pytest.raises(EvaluationError, match="lacks fused_place: an earlier version wrote it"):
        ways_of(resigned(written), written, ["q1"])
    texts = pa.array(["x"] * table.num_rows)
    pq.write_table(table.set_column(2, "place", texts), beside(written))
    with pytest.raises(EvaluationError, match="is not a trace"):
        ways_of(resigned(written), written, ["q1"])
    nothing = pa.array([None] * table.num_rows, type=pa.string())
    pq.write_table(table.set_column(1, "memory_id", nothing), beside(written))
    with pytest.raises(EvaluationError, match="has gaps in memory_id"):
        ways_of(resigned(written), written, ["q1"])

"""comis-eval evaluate --pipeline remote: what is printed, and where settings may come from."""

from tests.builders import memory
from tests.cli.world import EXTERNAL, MEMORIES, document, error, is_tame, output, run, world
from tests.pipelines.remote.rpc_server import rpc


def way(url: str) -> tuple[str, ...]:
    changes = {
        "transport": "jsonrpc", "url": url, "retries": 0, "match": "id",
    }  # fmt: skip
    sets = [f"harness.remote.{name}={value}" for name, value in changes.items()]
    return ("--pipeline", "remote", *(part for one in sets for part in ("--set", one)))


def test_tables_say_latency_failures_and_unknown_ids(dataset):
    with rpc() as server:
        told = output("evaluate", dataset, *way(server.url))
        found = document("evaluate", dataset, *way(server.url))
    assert "Latency of the answered queries: p50 " in told
    assert "name no memory of the dataset" in told
    assert is_tame(told)
    assert found["pipeline"] == "remote"
    assert found["counts"]["unknown_ids"] == 8
    assert found["trace"] is None


def test_report_and_gate_take_it(dataset, tmp_path):
    out = tmp_path / "live.json"
    with rpc() as server:
        output("evaluate", dataset, *way(server.url), "--out", str(out))
    output("report", str(out), "--out", str(tmp_path / "live.html"))
    assert "Latency" in (tmp_path / "live.html").read_text()
    assert "pass" in output("gate", str(out), str(out))


def test_a_live_system_that_leaks_is_compared_reported_and_gated(tmp_path):
    foreign = memory("a", "the kiln forum", trust_level=EXTERNAL)
    shared = world(tmp_path, (*MEMORIES, foreign))
    live, drifted = str(tmp_path / "live.json"), str(tmp_path / "reference.json")
    with rpc() as server:
        done = run("evaluate", shared, *way(server.url), "--out", live)
    told = done.stdout
    assert "live.json, without a trace" in "".join(done.stderr.splitlines())
    assert [path.name for path in tmp_path.glob("live*")] == ["live.json"]
    output("evaluate", shared, "--lanes", "fts", "--out", drifted)
    assert "LEAKS" in told
    assert "All headline categories" in output("compare", drifted, live)
    assert "pass" in output("gate", live, live)
    output("report", live, "--out", str(tmp_path / "live.html"))
    assert "4 leaks" in (tmp_path / "live.html").read_text()


def test_errors_say_what_to_set(dataset):
    told = error("evaluate", dataset, "--pipeline", "remote")
    assert "harness.remote.transport is not set" in told
    told = error("evaluate", dataset, *way("http://u:secret@127.0.0.1:9/rpc"))
    assert "secret" not in told

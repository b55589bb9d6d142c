"""comis-eval evaluate --pipeline remote: what is printed, and where settings may come from."""

from tests.cli.world import document, error, is_tame, output
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


def test_errors_say_what_to_set(dataset):
    told = error("evaluate", dataset, "--pipeline", "remote")
    assert "harness.remote.transport is not set" in told
    told = error("evaluate", dataset, *way("http://u:secret@127.0.0.1:9/rpc"))
    assert "secret" not in told

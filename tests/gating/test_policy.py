"""Policy files: strict, every fault by its dotted path, a default that is gated as documented."""

import pytest

from comis_eval.errors import ConfigError
from comis_eval.gating import Policy, load_policy


def read(tmp_path, text):
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    return load_policy(path)


def test_the_default_gates_three_headline_figures_and_tolerates_no_failure():
    policy = Policy()
    assert policy.metrics == {"utility": 0.01, "ndcg@10": 0.01, "recall@5": 0.01}
    assert (policy.slices, policy.correction, policy.level) == (("all",), "maxt", 0.05)
    assert (policy.limits.failed_queries, policy.limits.dead_lanes) == (0, 0)
    assert (policy.limits.new_leaks, policy.limits.latency_ratio) == (0, 2.0)


def test_what_is_not_set_has_its_default(tmp_path):
    policy = read(tmp_path, "metrics: {hit@5: 0}\nslices: [all, time]\nlimits: {failed_queries: 2}")
    assert policy.metrics == {"hit@5": 0}
    assert policy.slices == ("all", "time")
    assert policy.limits.failed_queries == 2
    assert policy.limits.latency_ratio == 2.0
    assert read(tmp_path, "# nothing\n") == Policy()
    assert read(tmp_path, "limits: {latencyRatio: null}").limits.latency_ratio is None


FAULTS = {
    "unknown key": ("metric: {}", r"metric: unknown key; did you mean metrics\?"),
    "unknown limit": ("limits: {slow: 1}", r"limits\.slow: unknown key; allowed: failed_queries"),
    "no such metric": ("metrics: {hot@5: 0}", r"metrics\.hot@5: there is no metric 'hot@5'"),
    "no cut-off": ("metrics: {ndcg: 0}", r"metrics\.ndcg: 'ndcg' needs a cut-off"),
    "negative margin": ("metrics: {hit@5: -1}", r"metrics\.hit@5: .*greater than or equal to 0"),
    "margin of nan": ("metrics: {hit@5: .nan}", r"metrics\.hit@5: .* finite"),
    "margin as text": ("metrics: {hit@5: '0'}", r"metrics\.hit@5: .*valid number, got"),
    "no metric": ("metrics: {}", "metrics: names no metric"),
    "no slice": ("slices: []", "slices: .*at least 1"),
    "level of 0": ("level: 0", "level: .*greater than 0"),
    "level of 1": ("level: 1", "level: .*less than 1"),
    "correction": ("correction: none", "correction: .*'maxt' or 'holm'"),
    "few resamples": ("resamples: 5", "resamples: .*greater than or equal to 100"),
    "a limit that is true": ("limits: {dead_lanes: true}", r"limits\.dead_lanes: .*integer"),
    "a list": ("[1]", "must be a mapping with metrics, slices"),
    "twice": ("level: 0.1\nlevel: 0.2", "key level stands twice"),
    "bomb": ("a: &a [" + "1," * 9 + "]\nb: [" + "*a," * 200 + "]", "more than .* aliases"),
}


@pytest.mark.parametrize(("text", "said"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named_by_its_path(tmp_path, text, said):
    with pytest.raises(ConfigError, match=r"policy\.yaml.*" + said):
        read(tmp_path, text)


def test_every_fault_is_told_at_once(tmp_path):
    with pytest.raises(ConfigError, match=r"level: .*; limits\.dead_lanes: "):
        read(tmp_path, "level: 2\nlimits: {dead_lanes: -1}")

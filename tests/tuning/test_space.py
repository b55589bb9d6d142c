import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.config import Config, settings
from comis_eval.errors import ConfigError
from comis_eval.tuning.knob import Knob, read_knob
from comis_eval.tuning.space import Space, switch_of
from tests.tuning.fake import SPACE, space_of

ALL = {
    "has_usefulness": True,
    "freeze_trust": False,
    "rerank": True,
    "entities": True,
    "vector": True,
}
NONE = dict.fromkeys(ALL, False) | {"freeze_trust": True}


class Given:
    """A trial that proposes what it is told, and remembers what it was asked for."""

    def __init__(self, **values):
        self.values = {path.replace("__", "."): value for path, value in values.items()}
        self.asked = []

    def _of(self, name, default):
        self.asked.append(name)
        return self.values.get(name, default)

    def suggest_float(self, name, low, high, *, log):
        return self._of(name, low)

    def suggest_categorical(self, name, choices):
        return self._of(name, choices[0])


def write(folder, text):
    path = folder / "space.yaml"
    path.write_text(text, encoding="utf-8")
    return path


# --- the default space --------------------------------------------------------------------


def test_default_space_holds_the_knobs_users_have():
    assert list(Space.default(**ALL).describe()) == [
        "rag.scoring.recencyAlpha",
        "rag.scoring.temporalAlpha",
        "rag.scoring.proofAlpha",
        "rag.scoring.trustAlpha",
        "rag.minScore",
        "rag.maxResults",
        "rag.maxContextChars",
        "rag.lanes.vector.weight",
        "rag.feedback.enabled",
        "rag.scoring.usefulnessAlpha",
        "rag.rerank.enabled",
        "rag.rerank.maxCandidates",
        "rag.rerank.minResults",
        "rag.entityLane.enabled",
        "rag.entityLane.weight",
        "rag.entityLane.seedCount",
        "rag.entityLane.perEntityCap",
    ]


def test_default_space_leaves_out_what_the_dataset_cannot_show():
    assert list(Space.default(**NONE).describe()) == [
        "rag.scoring.recencyAlpha",
        "rag.scoring.temporalAlpha",
        "rag.scoring.proofAlpha",
        "rag.minScore",
        "rag.maxResults",
        "rag.maxContextChars",
    ]


def test_default_space_is_exportable_and_holds_the_default_configuration():
    space = Space.default(**ALL)
    assert all(knob.exportable for knob in space.knobs)
    assert space.outside(space.values_of(Config())) == {}
    space.check(Config())


# --- reading ------------------------------------------------------------------------------


def test_a_file_gives_knobs_in_its_order_spelled_as_in_files(tmp_path):
    path = write(
        tmp_path,
        """
        knobs:
          rag.min_score: {low: 0, high: 0.5, step: 0.05}
          rag.rerank.enabled:
          rag.rerank.maxCandidates: {low: 5, high: 100, log: true}
          harness.fusion.kind: {choices: [rrf, convex]}
          harness.fusion.k: {low: 1, high: 100, when: {harness.fusion.kind: rrf}}
        """,
    )
    space = Space.load(path)
    assert space.describe() == {
        "rag.minScore": "a number in [0, 0.5] in steps of 0.05, 4 decimals",
        "rag.rerank.enabled": "one of false, true",
        "rag.rerank.maxCandidates": (
            "an integer in [5, 100], log scale, when rag.rerank.enabled is true"
        ),
        "harness.fusion.kind": "one of 'rrf', 'convex', not exportable",
        "harness.fusion.k": (
            "an integer in [1, 100], when harness.fusion.kind is 'rrf', not exportable"
        ),
    }
    assert [knob.exportable for knob in space.knobs] == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"space\.yaml: a space is a mapping with the one key knobs; got null"),
        ("ranges: {}", "one key knobs; got keys ranges"),
        ("knobs: []", "knobs must be a mapping of settings, at least one; got a list"),
        ("knobs: {}", "knobs must be a mapping of settings, at least one; got a mapping"),
        (
            "knobs: {rag.minScore: {low: 0, high: 1}, rag.min_score: {low: 0, high: 1}}",
            "rag.minScore: stands twice",
        ),
        (
            "knobs: {rag.minscore: {low: 0, high: 1}}",
            r"rag\.minscore: unknown key; did you mean rag\.minScore",
        ),
        ("knobs: {rag.rerank: {low: 0, high: 1}}", "rag.rerank: has parts; name one of its values"),
    ],
)
def test_a_file_that_is_no_space_is_refused(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        Space.load(write(tmp_path, text))


def test_all_faults_of_a_file_are_told_at_once(tmp_path):
    text = "knobs: {rag.minScore: {low: 0, high: 2}, rag.enabled: , rag.maxResults: {low: 3}}"
    with pytest.raises(ConfigError) as caught:
        Space.load(write(tmp_path, text))
    for part in (
        "rag.minScore: high is 2, but the setting takes a number in [0, 1]",
        "rag.enabled: is never searched",
        "rag.maxResults: high is missing",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("path", "given", "message"),
    [
        ("rag.minScore", {"low": -0.1, "high": 1}, r"low is -0.1, but .* a number in \[0, 1\]"),
        ("rag.minScore", {"low": 0.5, "high": 0.2}, "low 0.5 is not below high 0.2"),
        ("rag.minScore", {"low": 0.5, "high": 0.5}, "set one value in the configuration"),
        ("rag.minScore", {"low": "0", "high": 1}, "low must be a number, got '0'"),
        ("rag.minScore", {"low": True, "high": 1}, "low must be a number, got true"),
        ("rag.minScore", {"low": 0, "high": float("nan")}, "high must be a number, got .nan"),
        ("rag.minScore", {"low": 0, "high": 1, "log": True}, "log needs low > 0"),
        ("rag.minScore", {"low": 0, "high": 1, "log": "yes"}, "log must be true or false"),
        ("rag.minScore", {"low": 0, "high": 1, "step": 0.3}, "not a whole number of steps of 0.3"),
        ("rag.minScore", {"low": 0, "high": 1, "step": 0}, "step must be a number > 0, got 0"),
        (
            "rag.minScore",
            {"low": 0.1, "high": 1, "step": 0.1, "log": True},
            "log and step cannot be had together",
        ),
        (
            "rag.minScore",
            {"low": 0.05, "high": 1, "decimals": 1},
            "1 decimals cannot hold low, high and step, which need 2",
        ),
        ("rag.minScore", {"low": 0, "high": 1, "decimals": 13}, r"in \[0, 12\], got 13"),
        ("rag.minScore", {"low": 0, "hihg": 1}, "unknown key hihg; did you mean high"),
        ("rag.minScore", {"low": 0, "high": 1, "when": 3}, "when must be a mapping"),
        ("rag.minScore", [0, 1], "must be a mapping of low, high"),
        ("rag.maxResults", {"low": 1.0, "high": 9}, "low must be an integer, got 1.0"),
        ("rag.maxResults", {"low": 0, "high": 9}, "low is 0, but the setting takes an integer > 0"),
        ("rag.maxResults", {"low": 1, "high": 10, "step": 0.5}, "step must be an integer > 0"),
        ("rag.rerank.enabled", {"low": 0, "high": 1}, "takes no low, high"),
        ("semantics.fusion", {"choices": ["flat"]}, "list of two or more"),
        ("semantics.fusion", {"choices": ["flat", "flat"]}, "choice 'flat' stands twice"),
        ("semantics.fusion", {"choices": ["flat", "deep"]}, "a choice is 'deep', but the setting"),
        ("semantics.fusion", None, "list of two or more, each one of flat, nested; got null"),
    ],
)
def test_a_range_that_cannot_be_searched_is_refused(path, given, message):
    with pytest.raises(ConfigError, match=message):
        read_knob(path, given)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("rag.includeTrustLevels", "must not widen whom memories may come from"),
        ("rag.enabled", "nothing is recalled"),
        ("rag.lanes.fts.weight", "only the ratio of the lanes' weights counts"),
        ("semantics.laneWeights.fts", "rag.entityLane.weight"),
        ("semantics.scopeFilter", "where scope is enforced"),
        ("semantics.wrap", "marked as untrusted"),
        ("semantics.laneDepth", "what is retrieved"),
        ("harness.utility.k0", "only harness.fusion is a what-if"),
        ("harness.lanes", "only harness.fusion is a what-if"),
        ("harness.reranker.kind", "only harness.fusion is a what-if"),
    ],
)
def test_some_settings_are_never_searched(path, why):
    with pytest.raises(ConfigError, match=f"{path}: is never searched: .*{why}"):
        read_knob(path, {"low": 1, "high": 2})


def test_every_setting_is_either_searchable_or_refused_with_a_reason():
    for setting in settings():
        path = ".".join(setting.keys)
        stepped = {"low": 0.5, "high": 1, "step": 0.5}
        for ranges in (stepped, {"low": 0.5, "high": 1}, {"low": 1, "high": 2}, None):
            try:
                read_knob(path, ranges)
            except ConfigError as error:
                refusal = str(error)
            else:
                break
        else:
            assert "never searched" in refusal or "choices" in refusal, path


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        (
            {"rag.minScore": {"low": 0, "high": 1, "when": {"semantics.fusion": "flat"}}},
            "depends on semantics.fusion, which is not in the space",
        ),
        (
            {
                "rag.minScore": {"low": 0, "high": 1, "when": {"semantics.fusion": "flat"}},
                "semantics.fusion": {"choices": ["flat", "nested"]},
            },
            "depends on semantics.fusion, which is later; put it first",
        ),
        (
            {
                "semantics.fusion": {"choices": ["flat", "nested"]},
                "rag.minScore": {"low": 0, "high": 1, "when": {"semantics.fusion": "deep"}},
            },
            "depends on semantics.fusion being 'deep', which is never so: it is one of 'flat'",
        ),
        (
            {
                "rag.maxResults": {"low": 1, "high": 9},
                "rag.minScore": {"low": 0, "high": 1, "when": {"rag.maxResults": 3}},
            },
            "depends on rag.maxResults, a number; only choices can be conditions",
        ),
        (
            {"semantics.fusion": {"choices": ["flat", "nested"], "when": {"semantics.fusion": 1}}},
            "cannot depend on itself",
        ),
        (
            {
                "rag.rerank.minResults": {"low": 0, "high": 9},
                "rag.rerank.enabled": None,
            },
            "depends on rag.rerank.enabled, which is later; put it first",
        ),
        (
            {
                "rag.rerank.enabled": None,
                "rag.minScore": {"low": 0, "high": 1, "when": {"rag.rerank.enabled": 1}},
            },
            "depends on rag.rerank.enabled being 1, which is never so",
        ),
        ({}, "a space needs a knob"),
    ],
)
def test_conditions_must_hold_on_earlier_choices(knobs, message):
    with pytest.raises(ConfigError, match=message):
        Space.of(read_knob(path, given) for path, given in knobs.items())


def test_a_condition_on_an_unknown_setting_is_refused():
    with pytest.raises(ConfigError, match=r"rag.minScore: when: rag.rerank.on: unknown key"):
        read_knob("rag.minScore", {"low": 0, "high": 1, "when": {"rag.rerank.on": True}})


# --- points -------------------------------------------------------------------------------


def test_knobs_below_a_switch_are_asked_for_only_while_it_is_on():
    off, on = Given(), Given(rag__rerank__enabled=True)
    assert "rag.rerank.maxCandidates" not in SPACE.suggest(off)
    assert off.asked == [p for p in SPACE.describe() if p.count("rerank") == 0 or "enabled" in p]
    assert SPACE.suggest(on)["rag.rerank.maxCandidates"] == 5
    assert on.asked == list(SPACE.describe())


def test_a_knob_below_a_knob_that_is_not_active_is_not_active():
    space = Space.of(
        read_knob(path, given)
        for path, given in {
            "rag.rerank.enabled": None,
            "semantics.fusion": {
                "choices": ["flat", "nested"],
                "when": {"rag.rerank.enabled": True},
            },
            "rag.minScore": {
                "low": 0,
                "high": 1,
                "when": {"semantics.fusion": ["flat", "nested"]},
            },
        }.items()
    )
    assert list(space.suggest(Given())) == ["rag.rerank.enabled"]
    assert len(space.suggest(Given(rag__rerank__enabled=True))) == 3


@pytest.mark.parametrize(
    ("given", "raw", "value"),
    [
        ({"low": 0, "high": 0.5, "step": 0.05}, 0.15000000000000002, 0.15),
        ({"low": 0, "high": 0.5, "step": 0.05}, 0.28, 0.3),
        ({"low": 0, "high": 0.5, "step": 0.05}, -0.025, 0.0),
        ({"low": 0, "high": 0.5, "step": 0.05}, 0.525, 0.5),
        ({"low": 0.1, "high": 0.7, "step": 0.2}, 0.45, 0.5),
        ({"low": 0, "high": 1}, 0.12345678, 0.1235),
        ({"low": 0, "high": 1, "decimals": 2}, 0.12345678, 0.12),
    ],
)
def test_what_is_proposed_is_rounded(given, raw, value):
    assert space_of(rag__minScore=given).suggest(Given(rag__minScore=raw)) == {
        "rag.minScore": value
    }


@pytest.mark.parametrize(
    ("given", "raw", "value"),
    [
        ({"low": 1, "high": 20}, 0.5, 1),
        ({"low": 1, "high": 20}, 7.6, 8),
        ({"low": 1, "high": 20}, 20.5, 20),
        ({"low": 1, "high": 16, "step": 5}, 8.4, 6),
        ({"low": 1, "high": 16, "step": 5}, 18.5, 16),
        ({"low": 5, "high": 100, "log": True}, 4.5, 5),
    ],
)
def test_integers_are_integers_on_the_step(given, raw, value):
    found = space_of(rag__maxResults=given).suggest(Given(rag__maxResults=raw))["rag.maxResults"]
    assert found == value
    assert isinstance(found, int)


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 5), st.data())
def test_every_value_of_a_step_is_as_likely(low, step, steps, data):
    knob = read_knob("rag.maxResults", {"low": low, "high": low + step * steps, "step": step})
    start, end = knob.edges
    assert end - start == step * (steps + 1)
    value = data.draw(st.integers(0, steps)) * step + low
    for inside in (value - 0.499 * step, value, value + 0.499 * step):
        assert knob.rounded(inside) == value
    assert knob.contains(knob.rounded(data.draw(st.floats(start, end))))


@pytest.mark.parametrize(
    ("given", "decimals"),
    [
        ({"low": 0, "high": 1}, 4),
        ({"low": 0, "high": 0.00005}, 5),
        ({"low": 1e-5, "high": 1, "log": True}, 8),
        ({"low": 0, "high": 1, "decimals": 2}, 2),
        ({"low": 0, "high": 1 / 3, "decimals": 12}, None),
    ],
)
def test_decimals_follow_from_the_range(given, decimals):
    if decimals is None:
        with pytest.raises(ConfigError, match="which need 16"):
            read_knob("rag.minScore", given)
    else:
        assert read_knob("rag.minScore", given).decimals == decimals


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 12))
def test_rounding_never_leaves_the_range(low, share, decimals):
    low = round(low, 4)
    if low < 1:
        knob = Knob("rag.minScore", "float", low, 1.0, decimals=max(4, decimals))
        assert knob.contains(knob.rounded(low + share * (1 - low)))


def test_a_point_moves_only_what_it_names():
    base = Config().evolve(**{"rag.rerank.max_candidates": 17, "rag.max_results": 3})
    moved = SPACE.apply(base, {"rag.minScore": 0.5, "rag.maxResults": 9})
    assert moved == base.evolve(**{"rag.min_score": 0.5, "rag.max_results": 9})


def test_a_configuration_is_a_point_without_what_is_off():
    assert SPACE.values_of(Config()) == {
        "rag.scoring.recencyAlpha": 0.2,
        "rag.minScore": 0.1,
        "rag.maxResults": 5,
        "rag.rerank.enabled": False,
        "semantics.fusion": "flat",
    }


def test_the_vector_weight_of_a_configuration_is_the_one_it_comes_to():
    space = Space.default(**ALL)
    production = Config.model_validate({"semantics": {"preset": "production"}})
    assert space.values_of(production)["rag.lanes.vector.weight"] == 1.5


def test_what_is_outside_of_the_space_is_named():
    space = space_of(
        rag__minScore={"low": 0, "high": 0.5, "step": 0.1},
        rag__maxResults={"low": 1, "high": 4},
        semantics__inlineMinScore={"low": 0, "high": 1},
    )
    values = space.values_of(Config().evolve(**{"rag.min_score": 0.15}))
    assert space.outside(values) == {
        "rag.minScore": "0.15 is not a number in [0, 0.5] in steps of 0.1",
        "rag.maxResults": "5 is not an integer in [1, 4]",
        "semantics.inlineMinScore": "null is not a number in [0, 1]",
    }


# --- knobs that do nothing ----------------------------------------------------------------


def test_a_knob_below_a_switch_that_stays_off_is_refused():
    space = space_of(rag__rerank__maxCandidates={"low": 5, "high": 9})
    with pytest.raises(ConfigError, match=r"does nothing while rag\.rerank\.enabled is false"):
        space.check(Config())
    space.check(Config().evolve(**{"rag.rerank.enabled": True}))


def test_the_usefulness_knob_needs_feedback():
    assert switch_of("rag.scoring.usefulnessAlpha") == "rag.feedback.enabled"
    space = space_of(rag__scoring__usefulnessAlpha={"low": 0, "high": 1})
    with pytest.raises(ConfigError, match=r"while rag\.feedback\.enabled is false"):
        space.check(Config())


def test_the_seed_count_serves_all_spread_lanes():
    space = space_of(rag__entityLane__seedCount={"low": 1, "high": 9})
    with pytest.raises(ConfigError, match=r"while rag\.entityLane\.enabled is false"):
        space.check(Config())
    space.check(Config().evolve(**{"rag.lanes.causal.enabled": True}))


def test_an_overruled_entity_weight_is_refused():
    base = Config().evolve(**{"semantics.lane_weights.entity": 2.0})
    with pytest.raises(ConfigError, match=r"semantics\.laneWeights\.entity overrules it"):
        Space.default(**ALL).check(base)


@pytest.mark.parametrize("path", ["rag.minScore", "rag.rerank.enabled", "semantics.fusion"])
def test_most_settings_have_no_switch(path):
    assert switch_of(path) is None


# --- identity -----------------------------------------------------------------------------


def test_fingerprint_tells_spaces_apart():
    one = space_of(rag__minScore={"low": 0, "high": 1})
    same = space_of(rag__minScore={"low": 0.0, "high": 1.0})
    others = [
        space_of(rag__minScore={"low": 0, "high": 0.9}),
        space_of(rag__minScore={"low": 0, "high": 1, "decimals": 5}),
        space_of(rag__minScore={"low": 0.1, "high": 1, "log": True}),
    ]
    assert one.fingerprint == same.fingerprint
    assert len({space.fingerprint for space in (one, *others)}) == 4
    json.dumps(one.describe())


def test_spans_are_those_of_numbers():
    assert SPACE.spans == {
        "rag.scoring.recencyAlpha": 1,
        "rag.minScore": 1,
        "rag.maxResults": 19,
        "rag.rerank.maxCandidates": 95,
        "rag.rerank.minResults": 10,
    }


def test_knobs_with_one_condition_are_asked_for_together():
    groups = [list(group) for _, group in SPACE.together]
    assert groups == [
        [
            "rag.scoring.recencyAlpha",
            "rag.minScore",
            "rag.maxResults",
            "rag.rerank.enabled",
            "semantics.fusion",
        ],
        ["rag.rerank.maxCandidates", "rag.rerank.minResults"],
    ]

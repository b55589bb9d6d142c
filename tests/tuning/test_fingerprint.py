import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.config import Config
from comis_eval.errors import ConfigError
from comis_eval.tuning.fingerprint import changes, fingerprint_of, phrase
from tests.tuning.fake import SPACE, TWO, UTILITY

HOW = {"space": SPACE, "base": Config(), "objectives": UTILITY, "sampler": "tpe", "seed": 0}


def test_equal_studies_have_equal_fingerprints_also_after_json():
    one = fingerprint_of({"dataset": "d", "split": ("tune", 1)}, **HOW)
    again = fingerprint_of({"split": ["tune", 1], "dataset": "d"}, **HOW)
    assert changes(one, again) == []
    assert changes(json.loads(json.dumps(one)), again) == []


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ({"seed": 2}, "seed was 0, is 2"),
        ({"sampler": "random"}, 'sampler was "tpe", is "random"'),
        (
            {"objectives": TWO},
            'objectives was ["maximize utility"], '
            'is ["maximize utility", "minimize context_chars"]',
        ),
        (
            {"base": Config().evolve(**{"semantics.wrap": "non_system"})},
            'current.semantics.wrap was "external", is "non_system"',
        ),
    ],
)
def test_a_difference_is_named_with_both_values(other, difference):
    assert changes(fingerprint_of({}, **HOW), fingerprint_of({}, **{**HOW, **other})) == [
        difference
    ]


def test_long_values_that_differ_at_their_end_differ():
    assert len(changes({"x": "a" * 500 + "b"}, {"x": "a" * 500 + "c"})) == 1


def test_values_of_a_stored_study_are_shown_harmless():
    assert "\x1b" not in phrase(changes({"x\x1b[31m": "\x1b[2J"}, {}))


def test_a_phrase_tells_how_many_more_differences_there_are():
    assert phrase(changes({str(n): n for n in range(11)}, {})).endswith("is absent; and 3 more")


def test_a_fingerprint_holds_no_credentials():
    base = Config().evolve(**{"harness.remote.url": "https://me:hunter2@host/rpc"})
    assert "hunter2" not in json.dumps(fingerprint_of({}, **{**HOW, "base": base}))


def test_what_is_ours_cannot_be_given():
    with pytest.raises(ConfigError, match="already has sampler, space"):
        fingerprint_of({"space": 1, "sampler": 2}, **HOW)


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
MAPPINGS = st.dictionaries(st.text(max_size=3), TREES, max_size=3)


@given(MAPPINGS)
def test_nothing_differs_from_itself(tree):
    assert changes(tree, tree) == []

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.metrics import patterns
from comis_eval.tracking import mlflow_name
from comis_eval.tracking.names import LONGEST

NAMES = st.text(st.sampled_from("@_atx05f/. -:%A\n\u00e9\u4e2d\U0001f600\ud800"), max_size=40)
LONG_NAMES = st.builds(lambda a, n, b: a + "m_at_@" * n + b, NAMES, st.integers(30, 60), NAMES)
FIXED = settings(derandomize=True, max_examples=400)


def every_metric():
    stems = [pattern.replace("[@k]", "").removesuffix("@k") for pattern in patterns()]
    return [name for stem in stems for name in (stem, *(f"{stem}@{k}" for k in (1, 5, 10, 100)))]


def original(written):
    """Read a name back, as the documentation describes the marks."""
    mark = re.compile(r"_(?:(at)|x([0-9a-f]+))_")
    return mark.sub(lambda m: "@" if m[1] else chr(int(m[2], 16)), written)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("recall@5", "recall_at_5"),
        ("recall_at_5", "recall_x5f_at_5"),
        ("rag.scoring.minScore", "rag.scoring.minScore"),
        ("recall@5/multi hop", "recall_at_5/multi hop"),
        ("a//b", "a_x2f__x2f_b"),
        ("../x", "_x2e__x2e__x2f_x"),
        ("100%", "100_x25_"),
        ("\u4e2d\u6587", "\u4e2d\u6587"),
    ],
)
def test_a_name_is_written_as_documented(name, written):
    assert mlflow_name(name) == written


def test_metrics_of_every_pattern_and_category_keep_different_names():
    categories = ["", "/single", "/multi hop", "/a@b", "/a_at_b"]
    names = [f"{metric}{category}" for metric in every_metric() for category in categories]
    assert len({mlflow_name(name) for name in names}) == len(set(names))


@FIXED
@given(NAMES)
def test_a_written_name_can_be_read_back_so_no_two_names_become_one(name):
    written = mlflow_name(name)
    if name:
        assert original(written) == name


@FIXED
@given(st.one_of(NAMES, LONG_NAMES), st.one_of(NAMES, LONG_NAMES))
def test_two_names_never_become_one(first, second):
    assert (mlflow_name(first) == mlflow_name(second)) == (first == second)


@FIXED
@given(LONG_NAMES)
def test_a_shortened_name_cannot_be_forged(name):
    written = mlflow_name(name)
    assert len(written) <= LONGEST
    head, digest = re.fullmatch("(.*)_x[0-9a-f]*_([0-9a-f]{32})", written).groups()
    for between in ("_x_", *map(chr, range(16))):
        assert mlflow_name(original(head) + between + digest) != written


def test_mlflow_accepts_every_written_name(mlflow):
    from mlflow.utils.validation import _validate_metric, _validate_param, _validate_tag

    @settings(derandomize=True, max_examples=200, deadline=None)
    @given(st.one_of(NAMES, LONG_NAMES, st.text(max_size=10)))
    def accepted(name):
        written = mlflow_name(name)
        _validate_metric(written, 0.5, 0, 0)
        assert _validate_param(written, "v").key == written
        assert _validate_tag(written, "v").key == written

    accepted()

"""One verdict, told four ways; hostile ids stay text in each of them."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from comis_eval.gating import Policy, as_document, gate, junit_xml, markdown_comment
from tests.gating.build import evaluation

nan = np.nan
EVIL = "@all #1 <script>x</script> ![i](http://x) |a| \x1b[2J\x00\ufffe `code` ]]>\u202e"
POLICY = Policy(metrics={"hit@5": 0.01}, slices=("all",), resamples=300)


def made(values, **fields):
    n = len(values)
    ids = [f"{EVIL}{number}" for number in range(n)]
    return evaluation(
        {"hit@5": values}, query_ids=ids, categories=[EVIL] * n,
        dataset={"name": EVIL, "version": EVIL, "fingerprint": EVIL, "split": EVIL}, **fields,
    )  # fmt: skip


GOOD, BAD = np.repeat([1.0, 0.0], [40, 0]), np.repeat([1.0, 0.0], [10, 30])
LEAK = {"query_id": f"{EVIL}0", "memory_id": EVIL, "stage": "trust", "why": "trust"}


@pytest.fixture(scope="module")
def regression():
    return gate(made(GOOD), made(BAD), POLICY, labels=(EVIL, EVIL))


@pytest.fixture(scope="module")
def leak():
    column = np.zeros(40)
    column[0] = 1.0
    leaky = made(GOOD, leaks=(LEAK,))
    return gate(
        made(GOOD), replace(leaky, values={**leaky.values, "policy_leak": column}), POLICY,
        labels=(EVIL, EVIL),
    )  # fmt: skip


def test_json_holds_everything_and_nothing_that_json_has_not(regression):
    document = json.loads(json.dumps(as_document(regression), allow_nan=False))
    assert (document["outcome"], document["exit_status"]) == ("regression", 1)
    (gated,) = document["gated"]
    assert (gated["metric"], gated["category"], gated["margin"]) == ("hit@5", "all", 0.01)
    assert gated["mean"] == pytest.approx(-0.75)
    assert gated["outcome"] == "regression"
    assert document["explanation"]["lost"] == 30
    assert len(document["explanation"]["moved"]) == 30
    assert {check["outcome"] for check in document["checks"]} == {"ok"}


def test_undefined_figures_are_null():
    one = evaluation({"hit@5": [1.0, nan]})
    two = evaluation({"hit@5": [nan, 1.0]})
    document = json.loads(json.dumps(as_document(gate(one, two, POLICY)), allow_nan=False))
    assert document["gated"][0]["mean"] is None
    assert document["outcome"] == "undecided"


@pytest.mark.parametrize("which", ["regression", "leak"])
def test_markdown_is_disarmed(which, request):
    comment = markdown_comment(request.getfixturevalue(which))
    assert "@" not in comment
    assert "<script" not in comment
    assert not re.search(r"(?<!\\)!\[", comment)
    assert not re.search(r"#\d", comment)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", comment)
    for line in comment.splitlines():
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line)
            assert len(cells) in (8, 10), line


def test_markdown_says_what_matters(regression, leak):
    comment = markdown_comment(regression)
    assert comment.startswith("### Recall gate: REGRESSION")
    assert "| 1.0000 | 0.2500 | -0.7500 |" in comment
    assert "**regression**" in comment
    assert "30 queries lost, 0 gained" in comment
    assert comment.count("<details>") == comment.count("</details>") == 1
    assert markdown_comment(leak).startswith("### Recall gate: LEAK")
    assert "**trust leaks**: 1 memories" in markdown_comment(leak)


def test_a_comment_is_never_longer_than_github_takes(regression):
    comment = markdown_comment(replace(regression, gated=regression.gated * 1_000))
    assert len(comment) < 65_000
    assert comment.startswith("### Recall gate: REGRESSION")
    assert "too long for a comment" in comment


@pytest.mark.parametrize("which", ["regression", "leak"])
def test_junit_is_xml_with_a_case_for_everything(which, request):
    verdict = request.getfixturevalue(which)
    suite = ET.fromstring(junit_xml(verdict))  # noqa: S314  (made here)
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.get("tests", 0)) == len(verdict.checks) + len(verdict.gated)
    failed = [case for case in cases if case.find("failure") is not None]
    assert len(failed) == int(suite.get("failures", 0)) == 1
    failure = failed[0].find("failure")
    assert failure is not None
    assert failure.get("type") == which
    assert "\x00" not in junit_xml(verdict)


@pytest.mark.parametrize(("asked", "kind"), [("report", "failure"), ("fail", "failure"),
                                             ("pass", "skipped")])  # fmt: skip
def test_an_undecided_case_says_what_the_exit_status_says(asked, kind):
    one = evaluation({"hit@5": [1, 0, 1, 0]})
    two = evaluation({"hit@5": [0, 1, 1, 0]})
    verdict = gate(one, two, POLICY, undecided=asked)
    assert verdict.outcome == "undecided"
    suite = ET.fromstring(junit_xml(verdict))  # noqa: S314  (made here)
    assert len(suite.findall(f"testcase/{kind}")) == 1
    assert (int(suite.get("failures", 0)) > 0) == (verdict.exit_status > 0)


def test_every_way_of_telling_agrees(regression, leak):
    for verdict in (regression, leak):
        document = as_document(verdict)
        suite = ET.fromstring(junit_xml(verdict))  # noqa: S314  (made here)
        said = suite.find("properties/property")
        assert said is not None
        assert said.get("value") == document["outcome"] == verdict.outcome
        assert verdict.outcome.upper() in markdown_comment(verdict).splitlines()[0]
        assert (int(suite.get("failures", 0)) > 0) == (verdict.exit_status > 0)

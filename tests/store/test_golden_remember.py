"""The deployed functions' own answers, seen through a whole write."""

import pytest

from comis_eval.errors import RequestError, StoreError
from comis_eval.store import Store, Writer
from comis_eval.text import simhash
from comis_eval.types import Tenancy
from tests.builders import DAY, NOW
from tests.golden_data import cases

WRITER = Writer(tenancy=Tenancy("t", "me"), now=NOW)


@pytest.fixture(scope="module")
def store():
    with Store.open() as opened:
        yield opened


def golden(name, fn=None, *, only=lambda given: True):
    found = [
        c for c in cases("recall-tool", name) if c["input"].get("fn") == fn and only(c["input"])
    ]
    return pytest.mark.parametrize("case", found, ids=[c["name"] for c in found])


def write(store, key, content="a note", **said):
    return store.remember({"key": key, "content": content, **said}, WRITER)


def writable(given):
    """Whether the rest of a write, which these cases are not about, is allowed."""
    return given["content"].strip() and all(given["tags"]) and len(given["tags"]) <= 20


@golden("importance", only=writable)
def test_golden_importance_of_what_is_written(store, case):
    given = case["input"]
    made = write(store, case["name"], given["content"], tags=given["tags"]).memory
    assert made.importance == pytest.approx(case["expected"]["score"], abs=1e-5)


@golden("default_ttl", only=lambda given: given["scope"] in ("workspace", "project", "agent"))
def test_golden_expiry_of_what_is_written(store, case):
    given, days = case["input"], case["expected"]["ttl_days"]
    made = write(store, case["name"], scope=given["scope"], tags=given["tags"] or []).memory
    assert made.expires_at == (None if days is None else NOW + days * DAY)


@golden("content_screen", only=lambda given: given["content"].strip())
def test_golden_screening_of_what_is_written(store, case):
    before = store._number("SELECT count(*) FROM memories")
    if case["expected"] is None:
        assert write(store, case["name"], case["input"]["content"]).outcome == "created"
        return
    with pytest.raises(StoreError, match=f"^{case['expected']['label']}: .*was not written$"):
        write(store, case["name"], case["input"]["content"])
    assert store._number("SELECT count(*) FROM memories") == before


@golden("keys_tags", "key_valid")
def test_golden_keys_that_are_written(store, case):
    if case["expected"]:
        assert write(store, case["input"]["key"]).memory.key == case["input"]["key"]
    else:
        with pytest.raises(RequestError, match=r"^key "):
            write(store, case["input"]["key"])


@golden("keys_tags", "tag_overlap", only=lambda given: all(given["existing"] + given["new"]))
def test_golden_overlap_reinforces_an_update(case):
    given = case["input"]
    if max(len(given["existing"]), len(given["new"])) > 20:
        pytest.skip("more tags than a write may have")
    with Store.open() as fresh:
        write(fresh, "kk", tags=given["existing"])
        alone = write(fresh, "other", tags=given["new"]).memory.importance
        now = write(fresh, "kk", tags=given["new"]).memory.importance
    more = 0.1 if case["expected"] >= 0.8 else 0.0
    assert now == pytest.approx(min(alone + more, 1.0), abs=1e-6)


@golden("simhash", "near_dup", only=lambda given: given["a"].strip() and given["b"].strip())
def test_golden_near_duplicates_that_are_reported(case):
    with Store.open() as fresh:
        write(fresh, "first", case["input"]["a"])
        found = write(fresh, "second", case["input"]["b"]).near_dup_key
    # the bound of a write is 10; a text too short to hash is near nothing
    hashed = simhash(case["input"]["a"]) and simhash(case["input"]["b"])
    assert (found == "first") == bool(hashed and case["expected"]["distance"] <= 10)

"""A JSON list is read member by member, in any cut of the file, without being held."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.datasets.importers import json_array
from comis_eval.datasets.importers.json_array import read_array
from comis_eval.errors import DatasetError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
OBJECTS = st.dictionaries(TEXTS, TEXTS | st.integers() | st.lists(TEXTS, max_size=2), max_size=3)


@settings(deadline=None, derandomize=True)
@given(
    objects=st.lists(OBJECTS, max_size=5),
    indent=st.sampled_from([None, 1]),
    escaped=st.booleans(),
    chunk=st.integers(1, 40),
)
def test_what_json_wrote_is_read_back_in_every_cut(
    objects, indent, escaped, chunk, tmp_path_factory
):
    path = tmp_path_factory.mktemp("array") / "a.json"
    path.write_text(json.dumps(objects, indent=indent, ensure_ascii=escaped), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_array, "_CHUNK_BYTES", chunk)
        found = list(read_array(path))
    assert [element.value for element in found] == objects
    assert [element.place for element in found] == list(range(len(objects)))


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_a_number_cut_in_two_is_one_number(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(json_array, "_CHUNK_BYTES", chunk)
    path = tmp_path / "a.json"
    path.write_text('[123, 4567, {"a": 89}]')
    first, second, third = read_array(path)
    assert ("found 123" in first.why, "found 4567" in second.why) == (True, True)
    assert third.value == {"a": 89}


def test_places_are_told_by_line(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[\n\n {"a":\n1},\n{"b": 2}\n]\n')
    assert [element.line for element in read_array(path)] == [3, 5]


@pytest.mark.parametrize(
    ("member", "why"),
    [
        ('{"a": 1, "a": 2}', "key 'a' stands twice"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": "\\ud800"}', "half of a surrogate pair"),
        ("17", "must be an object, found 17"),
        ("[]", "must be an object"),
    ],
)
def test_a_member_that_cannot_be_used_does_not_end_the_reading(tmp_path, member, why):
    path = tmp_path / "a.json"
    path.write_text(f'[{{"x": 1}},\n{member},\n{{"x": 3}}]')
    first, second, third = read_array(path)
    assert (first.value, third.value) == ({"x": 1}, {"x": 3})
    assert second.value is None
    assert why in second.why
    assert second.line == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"a": 1}', "must be a JSON list"),
        (b"", "must be a JSON list"),
        (b'\xef\xbb\xbf[{"a": 1}]', "must be a JSON list"),
        (b'[{"a": 1}', "'' after member 0"),
        (b'[\n{"a": 1},\n{"b": "', r"a\.json:3: member 1 .* is cut off or no JSON"),
        (b'[{"a": 1} {"b": 2}]', "'{' after member 0"),
        (b'[{"a": 1},]', "member 1 of the list"),
        (b'[{"a": 1}] x', "after the end of the list"),
        (b'[{"a": "\xff"}]', "not UTF-8 near byte 8"),
        (b"[" + b"[" * 100_000, "member 0 .*too deep|cut off"),
    ],
)
def test_a_file_that_is_no_list_of_objects_is_told_with_its_line(tmp_path, text, message):
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(DatasetError, match=message):
        list(read_array(path))


def test_a_member_without_end_is_not_read_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(json_array, "MAX_OBJECT_CHARS", 100)
    monkeypatch.setattr(json_array, "_CHUNK_BYTES", 64)
    path = tmp_path / "a.json"
    path.write_text('[{"a": "' + "x" * 10_000)
    with pytest.raises(DatasetError, match="no end within 100 characters"):
        list(read_array(path))


def test_only_one_member_is_held(tmp_path):
    path = tmp_path / "a.json"
    with path.open("w") as file:
        file.write("[" + ",\n".join(json.dumps({"a": "x" * 100_000}) for _ in range(300)) + "]")
    size = path.stat().st_size
    tracemalloc.start()
    assert sum(1 for _ in read_array(path)) == 300
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.errors import DatasetError
from comis_eval.models.given import load_given, query_key

MATRIX = np.array([[1, 0], [0, 2], [-3, 4]], dtype=np.float32)
IDS = "m1\nm2\nquery:q1\n"
ABOUT = "model: some-model\ndim: 2\n"


def write(folder, *, matrix=MATRIX, ids=IDS, about=ABOUT):
    np.save(folder / "embeddings.npy", matrix)
    (folder / "embeddings.ids").write_bytes(ids if isinstance(ids, bytes) else ids.encode())
    (folder / "embeddings.yaml").write_text(about, encoding="utf-8")
    return folder


def test_a_folder_without_vectors_has_none(tmp_path):
    assert load_given(tmp_path) is None


def test_vectors_are_looked_up_by_id_and_gaps_are_marked(tmp_path):
    given_ = load_given(write(tmp_path))
    rows = given_.rows_for([query_key("q1"), "absent", "m1", "m1"])
    assert rows.matrix.tolist() == [[-3, 4], [0, 0], [1, 0], [1, 0]]
    assert rows.has.tolist() == [True, False, True, True]
    assert (given_.model, given_.dim, given_.ids) == ("some-model", 2, ("m1", "m2", "query:q1"))


def test_no_ids_give_no_rows(tmp_path):
    rows = load_given(write(tmp_path)).rows_for([])
    assert rows.matrix.shape == (0, 2)
    assert rows.has.shape == (0,)


@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8", ">f4", ">f8"])
def test_float_kinds_become_float32(tmp_path, kind):
    given_ = load_given(write(tmp_path, matrix=np.asfortranarray(MATRIX.astype(kind))))
    assert given_.matrix.dtype == np.float32
    assert given_.matrix.tolist() == MATRIX.tolist()


@pytest.mark.parametrize("present", [("npy",), ("ids", "yaml"), ("npy", "ids")])
def test_one_file_missing_is_an_error_that_names_it(tmp_path, present):
    write(tmp_path)
    gone = {"npy", "ids", "yaml"} - set(present)
    for name in gone:
        (tmp_path / f"embeddings.{name}").unlink()
    with pytest.raises(DatasetError, match=f"embeddings.{min(gone)}.* missing"):
        load_given(tmp_path)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("m1\nm2\n", r"embeddings\.npy: 3 vectors, but embeddings\.ids has 2 lines"),
        ("", "3 vectors, but embeddings.ids has 0 lines"),
        ("m1\nm2\nm1\n", r"embeddings\.ids:3: id 'm1' stands on line 1 already"),
        ("m1\n\nm3\n", r"embeddings\.ids:2: blank"),
        ("m1\r\nm2\r\nm3\r\n", r"embeddings\.ids:1: ends in CR LF"),
        (b"m1\n\xff\nm3\n", "cannot be read as UTF-8"),
    ],
    ids=["too few", "empty", "duplicate", "blank", "crlf", "not utf-8"],
)
def test_faulty_ids_are_named_by_line(tmp_path, ids, message):
    with pytest.raises(DatasetError, match=message):
        load_given(write(tmp_path, ids=ids))


def test_all_faulty_lines_are_named_at_once_up_to_ten(tmp_path):
    with pytest.raises(DatasetError, match=r"ids:2: [\s\S]*ids:11: [\s\S]*and 9 more"):
        load_given(write(tmp_path, ids="m1\n" * 20))


def test_an_id_may_hold_any_character_but_a_line_feed(tmp_path):
    strange = ["\x0b\u2028x", " m ", "\U0001f600"]
    given_ = load_given(write(tmp_path, ids="\ufeff" + "\n".join(strange)))
    assert given_.ids == tuple(strange)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (MATRIX[0], r"has shape \(2,\), needs \(vectors, dim\)"),
        (MATRIX[:, :0], r"has shape \(3, 0\)"),
        (MATRIX.astype(np.int64), "holds int64, allowed are float16, float32 and float64"),
        (MATRIX.astype(complex), "holds complex128"),
        (MATRIX * np.float32([[1], [np.nan], [1]]), r"1 vectors .*row 1 \(.*ids:2: 'm2'\)"),
        (MATRIX.astype(float) * 1e300, r"beyond float32, the first in row 0"),
    ],
    ids=["1-d", "no dim", "integers", "complex", "nan", "too large"],
)
def test_faulty_vectors_are_refused(tmp_path, matrix, message):
    with pytest.raises(DatasetError, match=rf"embeddings\.npy: .*{message}"):
        load_given(write(tmp_path, matrix=matrix))


def test_pickles_archives_and_broken_files_are_refused(tmp_path):
    write(tmp_path)
    path = tmp_path / "embeddings.npy"
    whole = path.read_bytes()
    huge = whole.replace(b"(3, 2)", b"(9999999999999, 2)")
    for content in (b"", b"text", whole[:-4], whole[:20], huge, b"PK\x03\x04" + whole):
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=r"embeddings\.npy: not a readable \.npy file"):
            load_given(tmp_path)
    np.save(path, np.array([[object()]]), allow_pickle=True)
    with pytest.raises(DatasetError, match="not a readable"):
        load_given(tmp_path)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ("", r"embeddings\.yaml: needs exactly two keys, model and dim"),
        ("- 1", "needs exactly two keys"),
        ("model: m\ndim: 2\nextra: 1", "needs exactly two keys"),
        ("model: ''\ndim: 2", r"embeddings\.yaml: model must be the name"),
        ("model: 3\ndim: 2", "model must be the name"),
        ("model: m\ndim: 3", r"embeddings\.yaml: dim must be 2, the length of the vectors given"),
        ("model: m\ndim: true", "dim must be 2"),
        ("model: m\ndim: '2'", "dim must be 2"),
        ("model: m\ndim: [", r"embeddings\.yaml:2: not readable as YAML"),
        ("model: !!python/object:os.system {}\ndim: 2", r"embeddings\.yaml:1: not readable"),
        ("model: \x00", "not readable as YAML"),
        ("model: " + "[" * 5000, "not readable as YAML"),
        ("#" * 10_001, r"embeddings\.yaml: 10001 bytes, allowed are 10000"),
    ],
)
def test_a_faulty_description_is_refused(tmp_path, about, message):
    with pytest.raises(DatasetError, match=message):
        load_given(write(tmp_path, about=about))


def test_the_fingerprint_covers_ids_vectors_and_model(tmp_path):
    variants = [
        {},
        {"ids": "m1\nm2\nquery:q2\n"},
        {"matrix": MATRIX * 2},
        {"about": ABOUT.replace("some", "other")},
    ]
    prints = {load_given(write(tmp_path, **variant)).fingerprint for variant in variants}
    assert len(prints) == len(variants)
    assert load_given(write(tmp_path, matrix=MATRIX.astype(">f8"))).fingerprint in prints


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    ids=st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip),
        min_size=1,
        max_size=6,
        unique=True,
    )
)
def test_what_is_written_is_what_is_read(tmp_path_factory, ids):
    folder = tmp_path_factory.mktemp("given")
    matrix = np.arange(2 * len(ids), dtype=np.float32).reshape(-1, 2)
    given_ = load_given(write(folder, matrix=matrix, ids="\n".join(ids) + "\n"))
    assert given_.rows_for(ids[::-1]).matrix.tolist() == matrix[::-1].tolist()

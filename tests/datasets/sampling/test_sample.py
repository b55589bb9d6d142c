"""A draw from a log: what counts as one query, what is read, what is told."""

import json

import pytest

from comis_eval.datasets.sampling import draw, write_sample
from comis_eval.datasets.sampling.sample import OTHER_AGENTS
from comis_eval.errors import DatasetError
from comis_eval.types import Tenancy, Turn
from tests.builders import NOW


def log(folder, rows, name="log.jsonl"):
    path = folder / name
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def drawn(path, n=1000, seed=0, **fields):
    return draw(path, n=n, seed=seed, now=NOW, **fields)


def test_the_same_query_counts_once_with_its_askings(tmp_path):
    path = log(
        tmp_path,
        [
            {"text": "tax", "ts": 1_770_000_000_000},
            {"query": "tax", "ts": 1_770_000_000_500},
            {"text": "tax", "agentId": "other"},
            {"text": "tax", "turns": [{"role": "user", "text": "letter"}]},
            {"text": "tax "},
        ],
    )
    sample = drawn(path)
    assert [(one.line, one.askings, one.weight) for one in sample.drawn] == [
        (2, 2, 1), (3, 1, 1), (4, 1, 1), (5, 1, 1),
    ]  # fmt: skip
    first, second, third, _ = (one.query for one in sample.drawn)
    assert (first.id, first.now, first.group) == ("log-2", 1_770_000_000_500, "log-2")
    assert (second.now, second.tenancy) == (NOW, Tenancy("default", "other"))
    assert third.turns == (Turn("user", "letter"),)
    assert sample.undated == 3
    assert (sample.lines, sample.usable, sample.distinct) == (5, 5, 4)


@pytest.mark.parametrize(
    ("ts", "at"),
    [
        (1_770_000_000_000, 1_770_000_000_000),
        ("2026-02-02T02:40:00Z", 1_770_000_000_000),
        ("2026-02-02T03:40:00.250+01:00", 1_770_000_000_250),
    ],
)
def test_times(tmp_path, ts, at):
    assert drawn(log(tmp_path, [{"text": "tax", "ts": ts}])).drawn[0].query.now == at


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"text": "a", "query": "a"}', "holds both of text and query"),
        ('{"query": null}', "holds neither of text and query"),
        ('{"text": " "}', "text is blank"),
        ('{"text": 5}', "text is 5 (a number)"),
        ('{"text": "a", "ts": 1780000000}', "in 1970"),
        ('{"text": "a", "ts": 1.5}', "ts is 1.5"),
        ('{"text": "a", "ts": "yesterday"}', "must be ms or ISO 8601"),
        ('{"text": "a", "ts": "2026-02-02T02:40:00"}', "names no time zone"),
        ('{"text": "a", "agentId": "a b"}', "an id holds no white space"),
        ('{"text": "a", "turns": "b"}', "turns is 'b'"),
        ("[]", "must be one JSON object"),
        ("{", "not JSON"),
        ("", "blank line"),
    ],
)
def test_a_line_that_cannot_be_used_is_left_out_and_told(tmp_path, line, said):
    sample = drawn(log(tmp_path, [{"text": "tax"}, line, {"text": "kiln"}]), max_bad=0.5)
    assert [one.query.text for one in sample.drawn] == ["tax", "kiln"]
    assert [(fault.file, fault.line) for fault in sample.bad] == [("log.jsonl", 2)]
    assert said in sample.bad[0].message
    assert (sample.lines, sample.usable) == (3, 2)


def test_bad_lines_may_reach_the_share_and_not_pass_it(tmp_path):
    rows = [*({"text": f"t{n}"} for n in range(99)), "{"]
    path = log(tmp_path, rows)
    assert len(drawn(path).bad) == 1
    with pytest.raises(DatasetError, match=r"1 of 100 lines cannot be used, over 0\.50%"):
        drawn(path, max_bad=0.005)


def test_keys_that_are_not_read_are_named(tmp_path):
    path = log(tmp_path, [{"text": "tax", "session": 1, "latency": 2}, {"text": "kiln", "x": 3}])
    assert drawn(path).ignored == ("latency", "session", "x")


def test_strata_are_counted_and_rare_kinds_are_there(tmp_path):
    rows = [{"text": f"plain words {n:b}".replace("0", "a").replace("1", "b")} for n in range(400)]
    rows += [{"text": f"serial {n}"} for n in range(4)]
    rows += [{"text": "asked often"}] * 12
    sample = drawn(log(tmp_path, rows), n=30)
    assert len(sample.drawn) == sum(one.drawn for one in sample.strata) == 30
    assert sum(one.queries for one in sample.strata) == sample.distinct == 405
    assert sum(one.askings for one in sample.strata) == 416
    assert sum(one.expected for one in sample.strata) == pytest.approx(30)
    often = [one for one in sample.drawn if one.query.text == "asked often"]
    assert [(one.askings, one.weight) for one in often] == [(12, pytest.approx(1, abs=0.3))]
    assert sum("serial" in one.query.text for one in sample.drawn) >= 2
    for one in sample.drawn:
        stratum = sample.strata[one.stratum]
        assert one.query.tags == stratum.kind.tags
        assert one.weight == pytest.approx(stratum.queries / stratum.expected)


def test_agents_of_few_queries_are_one_stratum(tmp_path):
    rows = [{"text": f"q{n}", "agentId": f"a{n % 25}"} for n in range(49)]
    sample = drawn(log(tmp_path, rows))
    agents = {one.agent for one in sample.strata}
    assert len(agents) == 21
    assert OTHER_AGENTS in agents
    assert len({one.query.tenancy for one in sample.drawn}) == 25  # the queries keep theirs


def test_a_hook_cleans_every_text(tmp_path):
    path = log(tmp_path, [{"text": "call Ada", "turns": [{"role": "user", "text": "Ada?"}]}])
    query = drawn(path, redact=lambda text: text.replace("Ada", "X")).drawn[0].query
    assert (query.text, query.turns[0].text) == ("call X", "X?")


def test_a_log_that_changes_between_the_passes_is_not_drawn_from(tmp_path, monkeypatch):
    path = log(tmp_path, [{"text": "tax"}, {"text": "kiln"}])
    from comis_eval.datasets.sampling import sample as module

    real = module.systematic

    def meanwhile(*given):
        log(tmp_path, [{"text": "tax"}, {"text": "KILN"}])
        return real(*given)

    monkeypatch.setattr(module, "systematic", meanwhile)
    with pytest.raises(DatasetError, match="changed while it was read"):
        drawn(path)


def test_the_card_is_tame(tmp_path):
    hostile = "@all|<script>[x](http://e)\u202e"
    rows = [{"text": "tax", "agentId": hostile, hostile: 1}]
    write_sample(drawn(log(tmp_path, rows)), tmp_path / "out", name="out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    for harm in ("<script", "@all", "\u202e", "](http"):
        assert harm not in card

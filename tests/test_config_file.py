import logging
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.config import (
    CausalLaneConfig,
    Config,
    EntityLaneConfig,
    FeedbackConfig,
    LanesConfig,
    MmrConfig,
    RagConfig,
    RerankConfig,
    ScoringConfig,
    SearchLaneConfig,
    TemporalLaneConfig,
    preset,
)
from comis_eval.config_file import (
    MAX_ALIASES,
    MAX_BYTES,
    MAX_DEPTH,
    describe,
    dump_rag,
    dump_recall_tool,
    load_config,
    not_exportable,
    parse_yaml,
)
from comis_eval.errors import ConfigError
from comis_eval.types import TrustLevel


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file whose name in messages is ``c.yaml``; return its path."""
    monkeypatch.chdir(tmp_path)

    def write(text):
        path = Path("c.yaml")
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def refusal(path, **options) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path, **options)
    return str(caught.value)


# --- the three shapes ------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "rag:\n  maxResults: 7\n  includeTrustLevels: [external]\n",
        "maxResults: 7\nincludeTrustLevels:\n  - external\n",
        "version: 3\nagents:\n  main:\n    model: x\n    rag: {maxResults: 7, "
        "includeTrustLevels: [external]}\n  other: {model: y}\n",
        "\ufeffrag: {maxResults: 7, includeTrustLevels: [external]}",
        "rag: &r {maxResults: 7, includeTrustLevels: [external]}\nharness: {}",
    ],
)
def test_one_configuration_in_every_shape(write, text):
    rag = RagConfig(max_results=7, include_trust_levels=[TrustLevel.EXTERNAL])
    assert load_config(write(text)) == Config(rag=rag)


def test_our_shape_has_all_three_parts(write):
    path = write(
        "rag: {minScore: 0}\nsemantics: {preset: production, dedupKeep: best}\n"
        "harness: {fusion: {k: 10}, remote: {arguments: {limit: 3, 4: on}}}\n"
    )
    config = load_config(path)
    assert config.rag.min_score == 0.0
    assert config.semantics == preset("production").model_copy(update={"dedup_keep": "best"})
    assert config.harness.fusion.k == 10
    assert config.harness.remote.arguments == {"limit": 3, "4": True}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "{}", "rag: {}"])
def test_a_file_that_says_nothing_has_the_defaults(write, text):
    assert load_config(write(text)) == Config()


def test_no_file_has_the_defaults():
    assert load_config(None) == Config()
    assert "'a' was asked for without a configuration file" in refusal(None, agent="a")


AGENTS = """
agents:
  alpha: {rag: {maxResults: 1}}
  beta: {rag: {maxResults: two}}
  gamma: {model: x}
  delta:
  5: {rag: {maxResults: 5}}
  epsilon: 3
"""


def test_an_agent_is_chosen_by_name(write):
    path = write(AGENTS)
    assert load_config(path, agent="alpha").rag.max_results == 1
    assert load_config(path, agent="5").rag.max_results == 5


@pytest.mark.parametrize("agent", ["gamma", "delta"])
def test_an_agent_without_a_section_has_the_defaults_and_it_is_said(write, caplog, agent):
    with caplog.at_level(logging.WARNING):
        assert load_config(write(AGENTS), agent=agent) == Config()
    assert caplog.messages == [f"c.yaml: agent '{agent}' has no rag section; the defaults are used"]


def test_no_agent_with_a_section_means_the_defaults_and_it_is_said(write, caplog):
    with caplog.at_level(logging.WARNING):
        assert load_config(write("agents: {a: {}, b: {}}")) == Config()
    assert caplog.messages == ["c.yaml: no agent has a rag section; the defaults are used"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (AGENTS, {}, "c.yaml: several agents have a rag section, choose one with --agent: "
         "alpha, beta, 5"),
        (AGENTS, {"agent": "beta"}, "c.yaml: agents.beta.rag.maxResults: must be an integer > 0, "
         "got 'two'"),
        (AGENTS, {"agent": "Alpha "}, "c.yaml: no agent 'Alpha '; it has alpha, beta, gamma, "
         "delta, 5, epsilon; did you mean alpha?"),
        (AGENTS, {"agent": "epsilon"}, "c.yaml: agents.epsilon: must be a mapping, got 3"),
        ("agents: []", {}, "c.yaml: agents: must be a mapping of names, got a list"),
        ("agents: {}\nrag: {}", {}, "c.yaml: has both agents: and rag:, so which is meant is "
         "unclear; keep agents: in a file of Comis, or rag:, semantics: and harness: in one of "
         "ours"),
        ("rag: {}", {"agent": "a"}, "c.yaml: has no agents:, so agent 'a' cannot be chosen"),
        ("[1]", {}, "c.yaml: must be a mapping with rag:, semantics: and harness:; or "
         "agents.<name>.rag; or the keys of rag alone; got a list"),
        ("maxResult: 5", {}, "c.yaml: none of its keys is known: maxResult; a file has rag:, "
         "semantics: and harness:; or agents.<name>.rag; or the keys of rag alone; did you mean "
         "maxResults?"),
        ("rag: {}\nmaxResults: 5", {}, "c.yaml: maxResults: unknown key; did you mean "
         "rag.maxResults?"),
        ("maxResults: 0\nfoo: 1", {}, "c.yaml: rag.maxResults: must be an integer > 0, got 0; "
         "rag.foo: unknown key; allowed here: enabled, maxResults, maxContextChars, minScore, "
         "includeTrustLevels, rerank, scoring, entityLane, lanes, mmr, feedback"),
    ],
)  # fmt: skip
def test_a_file_whose_shape_is_unclear_or_wrong(write, text, options, message):
    assert refusal(write(text), **options) == message


# --- faults ----------------------------------------------------------------------------


def test_every_fault_at_once_by_its_path_from_file_and_command_line(write):
    path = write(
        "rag: {maxResults: '5', minScore: .nan, includeTrustLevels: [sytem], rerank: ,\n"
        "  max_context_chars: 3, scoring: {recencyAlfa: 1, trustAlpha: 2}}\n"
        "semantics: {laneDepth: all}\n"
    )
    message = refusal(
        path, preset="shipped", overrides=["rag.mmr.lambda=2", "rag.rerank.enabled=1", "x.y=1", "z"]
    )
    assert message.split("; ") == [
        "c.yaml: rag.maxResults: must be an integer > 0, got '5'",
        "rag.minScore: must be a number in [0, 1], got .nan",
        "rag.includeTrustLevels.0: must be one of system, learned, external, got 'sytem'",
        "rag.rerank: must be a mapping, got null",
        "rag.scoring.trustAlpha: must be a number in [0, 1], got 2",
        "rag.scoring.recencyAlfa: unknown key",
        "did you mean rag.scoring.recencyAlpha?",
        "rag.max_context_chars: unknown key",
        "did you mean rag.maxContextChars?",
        "semantics.laneDepth: must be an integer > 0 or limit, got 'all'",
        "--set: rag.rerank.enabled: rag.rerank is null, it has no parts",
        "x.y: unknown key",
        "allowed here: rag, semantics, harness",
        "'z' is not PATH=VALUE, for example rag.minScore=0",
        "rag.mmr.lambda: must be a number in [0, 1], got 2",
        "--semantics: semantics.preset: must be one of documented, production, got 'shipped'",
    ]


def test_an_integer_beyond_exact_numbers_is_refused_with_the_limit(write):
    assert refusal(write("maxResults: 9007199254740992")) == (
        "c.yaml: rag.maxResults: must be an integer > 0 and at most 9007199254740991 (2^53 - 1), "
        "got 9007199254740992"
    )


@pytest.mark.parametrize("value", ["'5'", "true", "yes", "5.0", "~", "", "[5]", "1_0", "1:30"])
def test_nothing_is_converted_to_an_integer(write, value):
    assert "rag.maxResults: must be an integer > 0, got " in refusal(write(f"maxResults: {value}"))


def test_hostile_values_are_shown_harmless_and_short(write):
    message = refusal(write('rag: {maxResults: "\\e[31m\\u202e' + "x" * 500 + '", "\\r\\a": 1}'))
    assert message.isprintable()
    assert "'␛[31m\\u{202e}xxx" in message
    assert "rag.␍␇: unknown key" in message
    assert len(message) < 400


# --- overrides -------------------------------------------------------------------------


def test_overrides_reach_every_part_in_both_spellings(write):
    config = load_config(
        write("rag: {scoring: {trustAlpha: 0.5}}"),
        overrides=[
            "rag.scoring.recencyAlpha=0",
            "rag.scoring.proof_alpha=1e-1",
            "rag.includeTrustLevels=[system]",
            "rag.mmr.lambda_=0.25",
            "semantics.preset=production",
            "harness.fusion.k=10",
            "harness.embedder=models/a=b",
            "harness.remote.url=http://localhost:80/x",
            "harness.remote.arguments.deep.n=[1]",
            "rag.maxResults=3",
            " rag.maxResults = 4",
        ],
    )
    expected = Config().evolve(
        **{
            "rag.scoring": ScoringConfig(recency_alpha=0.0, proof_alpha=0.1, trust_alpha=0.5),
            "rag.include_trust_levels": ["system"],
            "rag.mmr.lambda_": 0.25,
            "semantics.preset": "production",
            "harness.fusion.k": 10,
            "harness.embedder": "models/a=b",
            "harness.remote.url": "http://localhost:80/x",
            "harness.remote.arguments": {"deep": {"n": [1]}},
            "rag.max_results": 4,
        }
    )
    assert config == expected


def test_a_preset_from_the_command_line_keeps_switches_that_were_set(write):
    path = write("semantics: {dedupKeep: best, laneWeights: {fts: 3}}")
    by_option = load_config(path, preset="production", overrides=["semantics.fusion=flat"])
    by_set = load_config(path, overrides=["semantics.fusion=flat", "semantics.preset=production"])
    assert by_option == by_set
    switches = by_option.semantics
    assert (switches.dedup_keep, switches.fusion, switches.wrap) == ("best", "flat", "non_system")
    assert (switches.lane_weights.fts, switches.lane_weights.vector) == (3.0, 1.5)


def test_the_preset_option_beats_the_file(write):
    path = write("semantics: {preset: production}")
    assert load_config(path, preset="documented") == Config()


def test_two_presets_on_the_command_line_must_agree():
    same = {"preset": "production", "overrides": ["semantics.preset=production"]}
    assert load_config(None, **same).semantics == preset("production")
    message = refusal(None, preset="production", overrides=["semantics.preset=documented"])
    assert message == "--set: semantics.preset: contradicts --semantics"


def test_an_override_does_not_change_what_an_alias_repeats(write):
    path = write("rag: {lanes: {fts: &w {weight: 2}, vector: *w}}")
    lanes = load_config(path, overrides=["rag.lanes.fts.weight=5"]).rag.lanes
    assert (lanes.fts.weight, lanes.vector.weight) == (5.0, 2.0)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("rag.maxResult=1", "rag.maxResult: unknown key; did you mean rag.maxResults?"),
        ("minScore=1", "minScore: unknown key; did you mean rag.minScore?"),
        ("rag.maxResults.x=1", "rag.maxResults.x: rag.maxResults holds one value, it has no parts"),
        ("rag.maxResults", "'rag.maxResults' is not PATH=VALUE, for example rag.minScore=0"),
        ("=1", ": unknown key; allowed here: rag, semantics, harness"),
        ("rag.maxResults=", "rag.maxResults: must be an integer > 0, got null"),
        ("rag.maxResults=@", "rag.maxResults:1: not usable YAML: while scanning for the next "
         "token, found character '@' that cannot start any token"),
        ("rag.rerank=5", "rag.rerank: must be a mapping, got 5"),
        ("rag.rerank={top: 5}", "rag.rerank.top: unknown key; allowed here: enabled, "
         "maxCandidates, minResults, timeoutMs"),
        ("harness.remote.arguments.a=.inf", "harness.remote.arguments.a: must be text, a finite "
         "number, true, false, null, a list or a mapping, got .inf"),
        ("harness.remote.command=a b", "harness.remote.command: must be a list of text (may be "
         "empty), got 'a b'"),
    ],
)  # fmt: skip
def test_an_override_that_cannot_be_used(override, message):
    assert refusal(None, overrides=[override]) == f"--set: {message}"


def test_an_override_cannot_reach_through_a_value_of_a_free_mapping():
    overrides = ["harness.remote.arguments.a=5", "harness.remote.arguments.a.b=1"]
    assert refusal(None, overrides=overrides) == (
        "--set: harness.remote.arguments.a.b: harness.remote.arguments.a is 5, it has no parts"
    )


# --- YAML ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        (".5", 0.5),
        ("-.inf", float("-inf")),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("-7", -7),
        ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("off", False),
        ("Yes", True),
        ("~", None),
        ("", None),
        ("{1: a, on: b, ~: c}", {"1": "a", "on": "b", "~": "c"}),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
    ],
)
def test_plain_values(text, value):
    parsed = parse_yaml(text, where="x")
    assert (parsed, type(parsed)) == (value, type(value))


def bomb(levels: int, width: int) -> str:
    lines = ["a0: &a0 [x]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (bomb(9, 10), "x:6: not usable YAML: more than 100000 values, aliases replaced"),
        (bomb(60, 1), f"x:50: not usable YAML: more than {MAX_DEPTH} levels, aliases replaced"),
        ("a: &a [1]\nb: [" + "*a, " * (MAX_ALIASES + 1) + "]", "x:2: .* more than 100 aliases"),
        ("a: &a\n  - *a", "x:2: not usable YAML: an alias inside of what it names"),
        ("[" * 10_000, f"x:1: not usable YAML: more than {MAX_DEPTH} levels"),
        ("- " * 10_000, f"x:1: not usable YAML: more than {MAX_DEPTH} levels"),
        ("a: 1\nb: {c: 1, c: 2}\n'a': 2", "x:2: key c stands twice; x:3: key a stands twice"),
        ("1: a\n'1': b", "x:2: key 1 stands twice"),
        ("x: !!bool x", "x: not usable YAML: a value is not what it says it is"),
        ("x: !!float x", "x: not usable YAML: a value is not what it says it is"),
        ("x: !!timestamp x", "x: not usable YAML: a value is not what it says it is"),
        ("x: !!timestamp 2001-99-99", "x: not usable YAML: a value is not what it says it is"),
        ('x: "\\U7fffffff"', "x: not usable YAML: a value is not what it says it is"),
        ("a: b: c", "x:1: not usable YAML: mapping values are not allowed here"),
        ("--- 1\n--- 2", "x:2: .* expected a single document in the stream"),
        ("\na: !!python/object/apply:os.system [ls]", "x:2: .*could not determine a constructor"),
        ("a:\n\tb", "x:2: not usable YAML: .*found character '.t' that cannot start any token"),
        ("a\nb\x00", "x:2: holds a character that YAML does not allow"),
        ("\ud800", "x:1: holds a character that YAML does not allow"),
        (r'"\uD83D\uDE00"', "x:1: not usable YAML: half of a surrogate pair"),
        ("9" * 5000, "x:1: not usable YAML: an integer of 5000 digits"),
        ("? [a]\n: 1", "x:1: .*unhashable key"),
        ("*nobody", "x:1: .*found undefined alias 'nobody'"),
    ],
)
def test_yaml_that_is_refused_says_where_and_why(text, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        parse_yaml(text, where="x")


@given(st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,? \n\t\\0e.~<\x00\u2028\ud800", max_size=40))
@settings(max_examples=300, derandomize=True, deadline=None)
def test_any_text_is_parsed_or_refused_in_our_own_words(text):
    try:
        parse_yaml(text, where="x")
        message = "x:"
    except ConfigError as error:
        message = str(error)
    assert message.startswith("x:")
    assert message.isprintable()


def test_files_that_cannot_be_read(write, tmp_path):
    assert refusal(tmp_path / "none.yaml").endswith("none.yaml: cannot be read: No such file or "
                                                    "directory")  # fmt: skip
    assert refusal(tmp_path).endswith(": cannot be read: Is a directory")
    assert refusal(Path("a\0b")) == "a␀b: cannot be read: embedded null byte"
    assert refusal(write(b"a: 1\nb: \xff\n")) == "c.yaml:2: is not UTF-8 text; save it as UTF-8"
    assert refusal(write("#" * (MAX_BYTES + 1))) == (
        "c.yaml: is longer than 1000000 bytes; that is no configuration"
    )


# --- writing and describing ------------------------------------------------------------

SHARES = st.floats(0, 1)
WEIGHTS = st.floats(0, 1e300)
COUNTS = st.integers(1, 2**53 - 1)
RAGS = st.builds(
    RagConfig,
    enabled=st.booleans(),
    max_results=COUNTS,
    max_context_chars=COUNTS,
    min_score=SHARES,
    include_trust_levels=st.lists(st.sampled_from(TrustLevel), max_size=3),
    rerank=st.builds(RerankConfig, max_candidates=COUNTS, min_results=st.integers(0, 9)),
    scoring=st.builds(ScoringConfig, recency_alpha=SHARES, usefulness_alpha=SHARES),
    entity_lane=st.builds(EntityLaneConfig, enabled=st.booleans(), weight=WEIGHTS),
    lanes=st.builds(
        LanesConfig,
        fts=st.builds(SearchLaneConfig, weight=st.none() | WEIGHTS),
        temporal=st.builds(TemporalLaneConfig, weight=WEIGHTS, window_days=COUNTS),
        causal=st.builds(CausalLaneConfig, enabled=st.booleans()),
    ),
    mmr=st.builds(MmrConfig, enabled=st.booleans(), lambda_=SHARES),
    feedback=st.builds(FeedbackConfig, enabled=st.booleans()),
)


@given(rag=RAGS, comments=st.lists(st.text(max_size=20), max_size=2))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_what_is_written_reads_back_equal(tmp_path_factory, rag, comments):
    path = tmp_path_factory.mktemp("dump") / "rag.yaml"
    path.write_text(dump_rag(Config(rag=rag), comments=comments), encoding="utf-8")
    assert load_config(path) == Config(rag=rag)


def test_only_what_differs_is_written():
    config = Config().evolve(
        **{
            "rag.max_results": 8,
            "rag.include_trust_levels": ["system"],
            "rag.mmr.lambda_": 0.5,
            "rag.lanes.vector.weight": 1e-07,
            "semantics.fusion": "nested",
            "harness.fusion.k": 10,
        }
    )
    assert dump_rag(config, comments=["study 7", "a\nrag: {maxResults: 1}"]) == (
        "# study 7\n"
        "# a␤rag: {maxResults: 1}\n"
        "rag:\n"
        "  maxResults: 8\n"
        "  includeTrustLevels:\n"
        "  - system\n"
        "  lanes:\n"
        "    vector:\n"
        "      weight: 1.0e-07\n"
        "  mmr:\n"
        "    lambda: 0.5\n"
    )
    assert yaml.safe_load(dump_rag(config))["rag"]["lanes"]["vector"]["weight"] == 1e-07


def test_the_defaults_are_written_as_an_empty_section():
    assert dump_rag(Config()) == "rag: {}\n"


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({}, []),
        ({"rag.max_results": 9, "harness.embedder": "x"}, []),
        ({"harness.fusion.k": 10, "harness.fusion.kind": "convex"},
         ["harness.fusion.k", "harness.fusion.kind"]),
        ({"semantics.fusion": "nested", "semantics.lane_weights.fts": 2.0},
         ["semantics.fusion", "semantics.laneWeights.fts"]),
        ({"semantics.preset": "production"}, ["semantics.preset"]),
        ({"semantics": {"preset": "production", "dedup_keep": "best"}},
         ["semantics.preset", "semantics.dedupKeep"]),
    ],
)  # fmt: skip
def test_what_the_product_does_not_have(changes, paths):
    assert not_exportable(Config().evolve(**changes)) == paths


def test_every_value_is_described_in_file_order():
    config = Config().evolve(
        **{"rag.min_score": 0.3, "harness.remote.url": "http://u:p@h", "rag.mmr.lambda_": 0.7}
    )
    rows = {row.path: row for row in describe(config)}
    assert list(rows)[:3] == ["rag.enabled", "rag.maxResults", "rag.maxContextChars"]
    assert [path for path, row in rows.items() if row.changed] == [
        "rag.minScore",
        "harness.remote.url",
    ]
    row = rows["rag.minScore"]
    assert (row.value, row.default, row.allowed) == (0.3, 0.1, "a number in [0, 1]")
    assert row.description == "fused scores below it are dropped, equal ones stay"
    assert rows["harness.remote.url"].value == "http://***@h"
    assert rows["rag.includeTrustLevels"].value == ["system", "learned"]


def test_the_loader_leaves_yaml_of_others_alone():
    # resolvers are per class: ours must not leak into PyYAML's own
    assert yaml.safe_load("010") == 8
    assert parse_yaml("010", where="x") == 10


def test_one_value_of_a_profile_leaves_its_others(tmp_path):
    path = tmp_path / "tool.yaml"
    path.write_text("harness: {recallTool: {profiles: {factual: {limit: 3}}}}\n")
    factual = load_config(path).harness.recall_tool.profiles.factual
    assert (factual.limit, factual.min_importance, factual.order_by) == (3, 0.5, "relevance:desc")
    set_ = load_config(None, overrides=["harness.recallTool.profiles.multiSession.limit=3"])
    several = set_.harness.recall_tool.profiles.multi_session
    assert (several.limit, several.min_importance, several.include_superseded) == (3, 0.2, True)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"fusion.k": 3, "gate.floor": 0.25},
        {"profiles.factual.order_by": None},
        {"profiles.multi_session.include_superseded": False, "graph.enabled": True},
    ],
)
def test_the_recall_tools_fragment_reads_back_as_it_was(tmp_path, changes):
    config = Config().evolve(**{f"harness.recallTool.{k}": v for k, v in changes.items()})
    path = tmp_path / "tool.yaml"
    path.write_text(dump_recall_tool(config, comments=["study 7", "a\nharness: {}"]))
    assert load_config(path).harness.recall_tool == config.harness.recall_tool
    assert path.read_text().startswith("# study 7\n# a␤harness: {}\nharness:\n")

"""What is searched for. The two presets are compared in tests/pipelines/test_switches.py."""

from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.stages.formulate import formulate
from comis_eval.types import Turn

TEXTS = st.sampled_from(["", " ", "a", " a ", "b", "c\n"]) | st.text(max_size=5)
TURNS = st.lists(st.builds(Turn, st.sampled_from(["user", "assistant", "User", "tool"]), TEXTS))


def user(*texts: str) -> list[Turn]:
    return [Turn("user", text) for text in texts]


def test_blanks_and_repeats_go_before_the_last_turns_are_taken() -> None:
    # Latest first: "now" is the message, " b " is new, "" is blank, "b" repeats, "a" is new.
    assert formulate("now", user("a", "b", "", " b ", "now"), context_turns=2) == "now\na\nb"


def test_fewer_turns_than_asked_are_all_taken() -> None:
    assert formulate("now", user("a"), context_turns=5) == "now\na"


def test_only_users_turns_count() -> None:
    turns = [Turn("assistant", "a"), Turn("USER", "b"), Turn("system", "c")]
    assert formulate("now", turns, context_turns=3) == "now"


def test_a_blank_message_is_replaced_by_its_context() -> None:
    assert formulate("  ", user("a"), context_turns=2) == "a"
    assert formulate("  ", [], context_turns=2) == ""
    assert formulate("  ", user("a"), context_turns=0) == "  "


@settings(max_examples=150, deadline=None, derandomize=True)
@given(text=TEXTS, turns=TURNS, count=st.integers(0, 4))
def test_formulating_is_what_the_specification_says(
    text: str, turns: list[Turn], count: int
) -> None:
    if count == 0:
        assert formulate(text, turns, context_turns=count) == text
        return
    kept: list[str] = []
    said = [turn.text.strip() for turn in turns if turn.role == "user"]
    for place, one in enumerate(said):
        if one and one != text.strip() and one not in said[place + 1 :]:
            kept.append(one)
    expected = [one for one in [text.strip(), *kept[-count:]] if one]
    assert formulate(text, turns, context_turns=count) == "\n".join(expected)

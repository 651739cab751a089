"""Topic names: what a table may be called, and which post a message comes from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.delivery.bus import matches
from controller.delivery.topics import POST_MAXIMUM, Topics

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True)


def test_topics_of_a_table_are_those_of_the_interface() -> None:
    topics = Topics("casino.example", "t07")
    root = "casino/v1/casino.example/table/t07"
    assert topics.root == root
    for leaf in ("event", "checkpoint", "state", "description", "statement", "reply", "display", "recall"):
        assert getattr(topics, leaf) == f"{root}/up/{leaf}"
    for leaf in ("ack", "replay", "command", "entry"):
        assert getattr(topics, leaf) == f"{root}/down/{leaf}"
    assert topics.posts_in == f"{root}/post/+/in"
    assert topics.post_in(3) == f"{root}/post/3/in"
    assert topics.post_out(3) == f"{root}/post/3/out"


@pytest.mark.parametrize("name", ["", "+", "#", "t/7", "t+", "a#", ".t", "-t", "t 7", "tà", "t\n", "t\0", "x" * 65])
@pytest.mark.parametrize("part", ["site", "table"])
def test_topics_with_a_name_that_is_no_topic_level_are_refused(part: str, name: str) -> None:
    names = {"site": "casino.example", "table": "t07", part: name}
    with pytest.raises(ValueError, match=f"E-TOPIC-NAME {part}"):
        Topics(**names)


@given(NAMES, NAMES, st.integers(1, POST_MAXIMUM))
def test_topics_post_of_its_own_topic_is_the_post_and_the_filter_hears_it(site: str, table: str, post: int) -> None:
    topics = Topics(site, table)
    assert topics.post_of(topics.post_in(post)) == post
    assert matches(topics.posts_in, topics.post_in(post))
    assert topics.post_of(topics.post_out(post)) is None


@given(st.text(max_size=20))
def test_topics_post_of_any_other_text_is_none_or_a_plain_number(text: str) -> None:
    topics = Topics("casino.example", "t07")
    post = topics.post_of(f"{topics.root}/post/{text}/in")
    assert post is None or (str(post) == text and 1 <= post <= POST_MAXIMUM)


@pytest.mark.parametrize("number", ["0", "07", "1000", "-1", "+1", "1_0", "٣", " 1", "1/2", ""])
def test_topics_post_of_a_number_in_another_spelling_is_none(number: str) -> None:
    topics = Topics("casino.example", "t07")
    assert topics.post_of(f"{topics.root}/post/{number}/in") is None


def test_topics_post_of_another_table_is_none() -> None:
    assert Topics("casino.example", "t07").post_of(Topics("casino.example", "t08").post_in(3)) is None
    assert Topics("casino.example", "t07").post_of("") is None


@pytest.mark.parametrize("post", [0, -1, POST_MAXIMUM + 1])
def test_topics_of_a_post_that_cannot_exist_are_refused(post: int) -> None:
    topics = Topics("casino.example", "t07")
    with pytest.raises(ValueError, match="numbered from 1"):
        topics.post_in(post)
    with pytest.raises(ValueError, match="numbered from 1"):
        topics.post_out(post)


def test_witness_topic_takes_one_level_and_no_wildcard() -> None:
    topics = Topics("casino.example", "t07")
    assert topics.witness("caisse") == "casino/v1/casino.example/table/t07/down/witness/caisse"
    for name in ("a/b", "+", "#", "", "é"):
        with pytest.raises(ValueError, match="E-TOPIC-NAME"):
            topics.witness(name)

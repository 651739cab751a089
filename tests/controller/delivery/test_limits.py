"""What is just permitted and what is just not, on the wire and among topics; and what is said in each case."""

import pytest

from controller.delivery.topics import POST_MAXIMUM, Topics

TOPICS = Topics("casino.example", "t07")


def test_posts_are_numbered_from_1_to_999() -> None:
    assert POST_MAXIMUM == 999
    assert TOPICS.post_in(999).endswith("/post/999/in")
    assert TOPICS.post_out(1).endswith("/post/1/out")
    with pytest.raises(ValueError, match="posts are numbered from 1 to 999"):
        TOPICS.post_in(1_000)


def test_topic_of_a_post_that_ends_otherwise_than_its_own_is_nobodys() -> None:
    assert TOPICS.post_of(f"{TOPICS.root}/post/3/in") == 3
    assert TOPICS.post_of(f"{TOPICS.root}/post/3/on") is None
    assert TOPICS.post_of(f"{TOPICS.root}/post/3in/in") is None


def test_topics_show_themselves_without_what_is_derived_for_speed() -> None:
    assert repr(TOPICS) == "Topics(site='casino.example', table='t07', root='casino/v1/casino.example/table/t07')"

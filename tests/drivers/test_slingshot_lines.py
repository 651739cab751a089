"""The line grammar: what a SlingShot 2 says is read, and nothing else is."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.slingshot_lines import (
    BUFFER_BOUND,
    LINE_BOUND,
    LineFramer,
    NumberLine,
    Reply,
    StatusLine,
    WheelFlag,
    WheelState,
    from_last_star,
    next_spin,
    parse_line,
    previous_spin,
)
from games.signals import Direction

AT_US = 5


def read(raw: bytes) -> StatusLine | NumberLine | Reply | None:
    return parse_line(from_last_star(raw), AT_US)


def test_status_line_of_the_guide_is_read_field_by_field() -> None:
    assert read(b"*X;4;146; 9;5;158;1") == StatusLine(
        state=WheelState.NO_MORE_BETS,
        spin=146,
        number=" 9",
        flags=WheelFlag.BALL_MISSING | WheelFlag.DEVICE_FAULT,
        rotor_mrpm=15_800,
        direction=Direction.COUNTERCLOCKWISE,
    )


@pytest.mark.parametrize("number", [" 0", " 7", "27", "36", "00", "38", "39", "  "])
def test_status_line_with_any_number_of_the_guide_keeps_both_characters(number: str) -> None:
    line = read(f"*X;1;001;{number};0;000;0".encode())
    assert isinstance(line, StatusLine)
    assert line.number == number


@pytest.mark.parametrize("raw", [b" 7", b" 0", b"27", b"00", b"38"])
def test_bare_number_of_two_characters_is_read_unstripped(raw: bytes) -> None:
    assert read(raw) == NumberLine(raw.decode())


@pytest.mark.parametrize(
    "raw",
    [
        b"00;0",  # the recorded tail that a careless reader takes for double zero
        b"*X;2;094;33;0;163",  # recorded, truncated
        b"*X;8;094;33;0;163;0",
        b"*X;0;094;33;0;163;0",
        b"*X;2;257;33;0;163;0",
        b"*X;2;94;33;0;163;0",
        b"*X;2;094;7;0;163;0",
        b"*X;2;094;7 ;0;163;0",
        b"*X;2;094;40;0;163;0",
        b"*X;2;094;33;g;163;0",
        b"*X;2;094;33;0;163;2",
        b"*X;2;094;33;0;163;0 ",
        b"*X;2;094;33;0;163;0\r",
        b"7",
        b"7 ",
        b" 27",
        b"027",
        b"40",
        b"000",
        b"",
        b"*",
        b"*X;",
        b"OK",
        b"hello",
        b"*P\x00OK",
        b"\xff7",
        "*X;2;09\u0664;33;0;163;0".encode(),
        b"*S " + b"V" * LINE_BOUND,
    ],
)
def test_damaged_or_foreign_line_is_no_line(raw: bytes) -> None:
    assert read(raw) is None


def test_three_frames_run_together_are_read_from_the_last_star() -> None:
    line = read(b"*X;4;14*X;*X;4;146; 9;0;158;0")
    assert isinstance(line, StatusLine)
    assert (line.state, line.spin, line.number, line.rotor_mrpm) == (WheelState.NO_MORE_BETS, 146, " 9", 15_800)


def test_number_glued_behind_half_a_frame_is_no_number() -> None:
    assert read(b"*X;4;14627") is None


@pytest.mark.parametrize(
    ("raw", "letter", "text"),
    [
        (b"*P OK", "P", "OK"),
        (b"*P NO", "P", "NO"),
        (b"*o BUSY", "o", "BUSY"),
        (b"*K CAM", "K", "CAM"),
        (b"*S V2.50", "S", "V2.50"),
        (b"*O 6 1 60 1159", "O", "6 1 60 1159"),
        (b"*T s 14.0 17.50000", "T", "s 14.0 17.50000"),
        (b"T OK", "T", "OK"),
        (b"*Z OK", "Z", "OK"),
        (b"*T m 1.5", "T", "m 1.5"),
        (b"*) NO", ")", "NO"),
        (b"*  NO", " ", "NO"),
        (b"*F 11", "F", "11"),
        (b"*bs 2", "b", "s 2"),
        (b"*bn 17", "b", "n 17"),
        (b"*Y;1;217;30", "Y", "1;217;30"),
        (b"*w 35.20 50", "w", "35.20 50"),
    ],
)
def test_reply_as_the_guide_or_the_wheel_spells_it_is_read_by_letter(raw: bytes, letter: str, text: str) -> None:
    assert read(raw) == Reply(letter, text, AT_US)


def test_status_line_whose_first_letter_is_damaged_is_no_reply() -> None:
    assert read(b"*P;4;146; 9;0;158;0") is None


def test_spin_number_after_the_last_one_begins_again() -> None:
    assert (next_spin(255), next_spin(256), next_spin(1)) == (256, 1, 2)
    assert (previous_spin(256), previous_spin(1), previous_spin(2)) == (255, 256, 1)
    assert all(previous_spin(next_spin(spin)) == spin for spin in range(1, 257))


pieces = st.lists(
    st.sampled_from([b"*X;4;146; 9;0;158;0", b"27", b"*P OK", b"\r\n", b"\r", b"\n", b"*", b"x" * 300, b"\x00\xff"]),
    max_size=30,
).map(b"".join)


@given(stream=pieces, cuts=st.lists(st.integers(0, 3_000)))
def test_framer_fed_any_cut_of_a_stream_gives_the_same_lines(stream: bytes, cuts: list[int]) -> None:
    whole, cut = LineFramer(), LineFramer()
    edges = sorted({0, len(stream), *(at for at in cuts if at < len(stream))})
    read_at_once = [read(line) for line in whole.feed(stream)]
    read_in_pieces = [read(line) for first, last in itertools.pairwise(edges) for line in cut.feed(stream[first:last])]
    assert read_in_pieces == read_at_once


def test_framer_that_gets_no_line_end_keeps_no_more_than_its_bound() -> None:
    framer = LineFramer()
    for _ in range(100):
        assert framer.feed(b"x" * 100) == []
    (line,) = framer.feed(b"\r\n")
    assert len(line) <= BUFFER_BOUND
    assert framer.feed(b"27\r\n") == [b"27"]


def test_framer_that_is_reset_forgets_half_a_line() -> None:
    framer = LineFramer()
    framer.feed(b"*X;4;146;")
    framer.reset()
    assert framer.feed(b"27\r\n") == [b"27"]

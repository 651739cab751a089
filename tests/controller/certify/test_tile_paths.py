"""Names of tiles (c2sp.org/tlog-tiles), and which tiles are enough to prove a part of a log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.certify.tile_paths import Span, TileName, level_bound, parse_tile_path, width_at


@pytest.mark.parametrize(
    ("tile", "path"),
    [
        (TileName(0, 0, 256), "tile/0/000"),
        (TileName(0, 999, 256), "tile/0/999"),
        (TileName(0, 1_000, 256), "tile/0/x001/000"),
        (TileName(3, 1_234_067, 256), "tile/3/x001/x234/067"),  # the example of c2sp.org/tlog-tiles
        (TileName(1, 273, 1), "tile/1/273.p/1"),
        (TileName(None, 1_234_067, 42), "tile/entries/x001/x234/067.p/42"),
    ],
)
def test_tile_path_is_that_of_the_specification_and_is_read_back(tile: TileName, path: str) -> None:
    assert tile.path == path
    assert parse_tile_path(path) == tile


@pytest.mark.parametrize(
    "path",
    [
        "tile/0/0",
        "tile/0/1000",
        "tile/0/x000/001",
        "tile/0/001.p/256",
        "tile/0/001.p/0",
        "tile/0/001.p/07",
        "tile/9/000",
        "tile/entries/../000",
        "tile/0/000/",
        "/tile/0/000",
        "tile/0/x001/x234/067\n",
        "tile/0/٠٠١",
    ],
)
def test_tile_path_in_another_spelling_is_none(path: str) -> None:
    assert parse_tile_path(path) is None


@given(st.integers(0, 2**40), st.integers(1, 256), st.sampled_from([None, 0, 1, 5, 7]))
def test_tile_path_of_any_tile_is_read_back(n: int, width: int, level: int | None) -> None:
    tile = TileName(level, n, width)
    assert parse_tile_path(tile.path) == tile


def test_tiles_of_a_whole_log_are_those_of_the_specification() -> None:
    # c2sp.org/tlog-tiles, "Merkle Tree": the tiles of a tree of 70,000 entries.
    paths = [tile.path for tile in Span(0, 70_000, 70_000).hash_tiles]
    level0 = [path for path in paths if path.startswith("tile/0/")]
    assert (len(level0), level0[-1]) == (274, "tile/0/273.p/112")
    assert [path for path in paths if path.startswith("tile/1/")] == ["tile/1/000", "tile/1/001.p/17"]
    assert [path for path in paths if path.startswith("tile/2/")] == ["tile/2/000.p/1"]


@given(st.data())
def test_tiles_of_a_part_hold_its_neighbours_its_parents_and_the_right_edge(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 300_000))
    start = data.draw(st.integers(0, size - 1))
    stop = data.draw(st.integers(start + 1, min(size, start + 5_000)))
    later = data.draw(st.none() | st.integers(0, size - 1))
    span = Span(start, stop, size, later)
    held = {(tile.level, tile.n): tile.width for tile in [*span.hash_tiles, *span.bundles]}
    assert len(held) == len(span.hash_tiles) + len(span.bundles)
    for index in {max(start - 1, 0), start, stop - 1, min(stop, size - 1), *([] if later is None else [later])}:
        assert held[None, index // 256] == min(256, size - index // 256 * 256)
    for (level, n), width in held.items():
        if level is not None and width == 256:
            assert (level + 1, n // 256) in held  # a full tile hangs from a hash above it
    for level in range(level_bound(size)):
        if width := (size >> 8 * level) % 256:
            assert held[level, (size >> 8 * level) // 256] == width


def test_tiles_of_an_empty_log_are_none() -> None:
    assert (Span(0, 0, 0).hash_tiles, Span(0, 0, 0).bundles) == ([], [])


def test_width_of_the_last_tile_is_what_is_left() -> None:
    assert [width_at(600, 0, n) for n in range(3)] == [256, 256, 88]
    assert width_at(600, 1, 0) == 2

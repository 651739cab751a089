"""What a table sends is held against the schemas that are published for it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer
from controller.certify.reader import Reader
from controller.config import load
from controller.published import CHANNELS, asyncapi, json_schemas
from controller.rehearsal.simulate import CONFIG, JOURNAL, simulate
from controller.snapshots import description
from drivers.twin.wheel_faults import read_plan
from games.roulette.game import Roulette

CONFIGURATION = Path("config/roulette-launcher.toml")
KEYS = LogKeys.of(Signer("casino.example/table/t07/1", bytes(32)).verifier)
PLAN = "no-more-bets-skipped@2,contradicted@3,silence@4,misfire@5"


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The journal of an evening on which much went wrong."""
    out = tmp_path_factory.mktemp("evening") / "out"
    simulate(CONFIGURATION, out, coups=5, seed=11, faults=read_plan(PLAN))
    assert (out / CONFIG).exists()
    with Reader(out / JOURNAL) as reader:
        return [json.loads(leaf) for leaf in reader.leaves(0, reader.size)]


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json_schemas()[name])


@pytest.mark.parametrize("name", sorted(json_schemas()))
def test_each_published_schema_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(json_schemas()[name])


def test_every_entry_of_an_eventful_evening_fits_the_entry_schema(entries: list[dict[str, Any]]) -> None:
    check = validator("entry")
    of_each_kind = {(entry["type"], frozenset(entry["data"])): entry for entry in entries}
    for entry in of_each_kind.values():
        check.validate(entry)
    assert len(of_each_kind) > 20


def test_an_entry_with_an_unknown_field_does_not_fit(entries: list[dict[str, Any]]) -> None:
    altered = {**entries[0], "data": {**entries[0]["data"], "tip": 5}}
    with pytest.raises(ValidationError):
        validator("entry").validate(altered)


def test_the_board_fits_the_display_schema() -> None:
    game = Roulette(load(CONFIGURATION, {"table": {"simulation": True}}).rules)
    board = {**game.board(game.initial()), "simulation": True}
    validator("display").validate(json.loads(json.dumps(board)))


def test_the_description_fits_its_schema() -> None:
    config = load(CONFIGURATION)
    document = description(config, keys=KEYS, software_sha256="0" * 64)
    validator("description").validate(json.loads(json.dumps(document)))


def test_every_channel_of_the_map_points_to_a_published_schema() -> None:
    published = json_schemas()
    pointed = re.findall(r"schemas/([a-z-]+)\.json", json.dumps(asyncapi()))
    assert set(pointed) <= set(published)
    assert set(asyncapi()["channels"]) == {name for name, *_ in CHANNELS} | {"post-in", "post-out", "witness"}

"""The report of a séance: two makers that share no computation give the same bytes, evening after evening."""

import json
from pathlib import Path

import pytest

from controller.certify.reader import Reader
from controller.registers.source import at_once, find_seance, state_from
from controller.registers.statement import state_seance
from controller.rehearsal.simulate import JOURNAL, simulate
from controller.unpack import unpack
from drivers.twin.wheel_faults import read_plan
from games.signals import ClockStepped
from proof.sql_report import sql_report
from tests.controller.rehearsal.house import ROOT, House, play

CONFIGS = ("roulette-croupier", "roulette-launcher-38", "roulette-launcher")
FAULTS = (None, "silence@2:8:4,misfire%10", "ball-removed%20,sensor-fault@3,same-direction%10")


def reports(folder: Path) -> tuple[str, str]:
    """What both makers say of the last séance of a journal."""
    with Reader(folder / JOURNAL) as reader:
        unpack(reader.leaves(0, reader.size), folder / "unpacked.db")
        statement = at_once(state_from(reader))
        closing = max(
            index
            for index, leaf in enumerate(reader.leaves(0, reader.size))
            if json.loads(leaf)["type"] == "fr.table.seance.closed.v1"
        )
        root, origin = reader.root(closing + 1), json.loads(reader.leaf(0))["source"]
    return statement.report, sql_report(folder / "unpacked.db", statement.seance, root, origin)


@pytest.mark.law("67-15")
@pytest.mark.parametrize("seed", range(18))
def test_report_of_a_simulated_evening_is_the_same_from_python_and_from_sql(tmp_path: Path, seed: int) -> None:
    plan = FAULTS[seed // 3 % 3]
    config = ROOT / "config" / f"{CONFIGS[seed % 3]}.toml"
    simulate(config, tmp_path, coups=4, seed=seed, faults=read_plan(plan) if plan else None)
    ours, theirs = reports(tmp_path)
    assert ours == theirs


async def eventful(house: House) -> None:
    """Two séances with all that a report may tell: two persons, power cuts, money put aside, given back, lost."""
    await house.open()
    players = [await house.seat(number, 20_000) for number in (1, 2, 3)]
    await house.begin_round()
    await house.stake(players[0], rouge=500, plein_17=200)
    await house.reach("no_more_bets")
    await house.restart()  # a power cut after the bets were closed: two persons read the wheel
    await house.until_phase("manual")
    house.inputs.turn("croupier", on=True)
    await house.until(lambda: "croupier" in house.state.seance.keys_on)
    await house.order("croupier", "number.enter", pocket="17")
    await house.order("director", "presence.attest")
    await house.order("director", "game.restart")
    await house.begin_round()
    await house.stake(players[1], noir=700)
    await house.restart()  # and one while they were open: void by rule
    await house.order("director", "game.restart")
    for number in (2, 3):
        await players[number - 1].ask("away")
    await house.let_pass(house.config.roulette.absence_ms / 1_000 + 1)
    for number in (2, 3):
        assert (await house.order("director", "post.suspend", post=number))["ok"]
    assert (await house.order("cashier", "consigned.release", consignment=1))["ok"]
    await players[0].ask("payout")
    assert (await house.order("director", "seance.close"))["ok"]
    house.daemon.emit(ClockStepped(at_us=house.clock.mono_us(), by_ms=-3_600_000, quality="rtc"))
    await house.open()
    await house.seat(1, 1_000)
    house.daemon.emit(ClockStepped(at_us=house.clock.mono_us(), by_ms=3_600_000, quality="ntp"))
    await house.begin_round()
    assert (await house.order("director", "incident.declare", reason="bille  à terre"))["ok"]
    await house.settle_incident()
    await house.post(1).ask("payout")
    assert (await house.order("director", "seance.close"))["ok"]


@pytest.mark.law("67-15")
@pytest.mark.law("41")
def test_report_of_an_eventful_evening_is_the_same_from_python_and_from_sql(tmp_path: Path) -> None:
    async def story(house: House) -> list[tuple[str, str]]:
        await eventful(house)
        with Reader(house.file) as reader:
            unpack(reader.leaves(0, reader.size), tmp_path / "unpacked.db")
            made = []
            for name in ("2026-11-30-1", "2026-11-30-2"):
                size = at_once(find_seance(reader, name)).stop
                theirs = sql_report(tmp_path / "unpacked.db", name, reader.root(size), house.config.origin)
                made.append((at_once(state_from(reader, name)).report, theirs))
            return made

    made = play(story, conduct="croupier")
    for ours, theirs in made:
        assert ours == theirs
        assert "Balance juste" in ours
    first, second = (ours for ours, _ in made)
    for told in (
        "numéro 17 validé en mode manuel, croupier croupier et MCD director",
        "coup annulé : coupure de courant, par la règle",
        "redémarrage après un arrêt brutal",
        "consigne n° 1 rendue",
        "aux orphelins (modèle 11 bis)",
    ):
        assert told in first, told
    assert "incident : déclaré par le personnel (bille à terre), MCD director" in second
    assert "saut de l'horloge : 3600000 ms" in second and "-3600000" not in first + second, "that was between the two"


KEPT = Path(__file__).parent
ANY_ROOT = bytes(range(32))


def test_report_and_statement_of_entries_that_were_kept_are_what_they_always_were() -> None:
    """A form that was published never changes: whoever needs another one gives it another name."""
    leaves = (KEPT / "seance.jsonl").read_bytes().splitlines()
    statement = state_seance(leaves, ANY_ROOT)
    assert statement.report == (KEPT / "report.txt").read_text(encoding="utf-8")
    assert statement.text == (KEPT / "statement.txt").read_text(encoding="utf-8")

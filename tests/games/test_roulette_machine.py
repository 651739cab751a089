"""Anybody may do anything at any moment, and at each single fact the table still obeys every sentence of ``watch``.

The state machine gives the game every kind of input, in order and out of order, from those who may and those who may
not, with rounds, spins, posts and pockets that exist and that do not. Between them play goes on in the usual way, so
that the strange things meet a table in every phase, with stakes on it.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from games.money import Cents
from games.roulette.announcements import HouseOption, announcement_names
from games.roulette.coup import Phase
from games.roulette.game import BUTTONS, LAMPS
from games.roulette.layout import Wheel
from games.roulette.rules import Conduct
from games.rules import Stopping
from games.seance import SeancePhase
from games.signals import (
    BallLaunched,
    BallSlowed,
    ClockStepped,
    Direction,
    InputFaultSeen,
    JournalDoubted,
    Person,
    PlaceStakes,
    PocketDetected,
    PocketMissed,
    Stake,
    WheelFaultKind,
)
from tests.games.table import ALL_POCKETS, EURO, PEOPLE, Table, playing
from tests.games.watch import PERMITTED

# ── Anybody, anything, at any moment ──────────────────────────────────────────────────────────────────────────────────

POSTS = 3
posts = st.integers(min_value=-1, max_value=POSTS + 1)
people = st.sampled_from(list(PEOPLE.values()))
players = st.sampled_from(["anna", "player 2", "player 3", "dora"])
some_pockets = st.sampled_from([*map(str, range(37)), "00", "37", "", "x"])
amounts = st.sampled_from([100, 200, 500, 1_000, 5_000]) | st.sampled_from([-100, 0, 1, 99, 101, 40_000, 10**15])
directions = st.sampled_from(list(Direction))
near = st.integers(min_value=-1, max_value=1)
usual_bets = st.sampled_from(["rouge", "noir", "pair", "passe", "plein-17", "plein-0", "cheval-0-1", "douzaine-2"])
rare_bets = st.sampled_from(["cinq-numeros", "colonnes-1-2", "carre-0-3", "plein-00", "sixain-31-36", "nothing", ""])
bets = usual_bets | rare_bets
plays = st.tuples(st.integers(min_value=1, max_value=POSTS), usual_bets, st.integers(min_value=1, max_value=12))
announcements = st.sampled_from(
    ["nothing", *sorted({name for wheel in Wheel for name in announcement_names(wheel, frozenset(HouseOption))})]
)
house_rules = st.fixed_dictionaries(
    {
        "conduct": st.sampled_from(list(Conduct)),
        "wheel": st.sampled_from(list(Wheel)),
        "verify_wheel": st.booleans(),
        "button_calls_no_more_bets": st.booleans(),
        "no_more_bets_after_ms": st.sampled_from([0, 8_000]),
        "relaunch_limit": st.integers(min_value=1, max_value=3),
        "announcements": st.sampled_from([frozenset(), frozenset(HouseOption)]),
        "random_combinations": st.booleans(),
        "player_minimum": st.booleans(),
    }
)


def is_open(machine: "AnyTable") -> bool:
    """Most of what people do is only worth trying at an open table."""
    return machine.table.state.seance.open


class AnyTable(RuleBasedStateMachine):
    """One table under any house rules, and a crowd that does anything."""

    @initialize(rules=house_rules)
    def a_table(self, rules: dict[str, Any]) -> None:
        self.table = Table(posts=POSTS, **rules)

    # The usual course, so that every corner of a round is reached, with stakes in it.

    @rule(steps=st.integers(min_value=1, max_value=6), pocket=some_pockets, stakes=st.lists(plays, max_size=3))
    def play_goes_on(self, steps: int, pocket: str, stakes: list[tuple[int, str, int]]) -> None:
        for _ in range(steps):
            if not self.table.state.seance.open:
                self._the_house_opens()
            elif self.table.phase is Phase.BETTING and stakes:
                self._a_player_stakes(*stakes.pop())
            else:
                self._the_round_goes_on(pocket if pocket in ALL_POCKETS[self.table.rules.wheel] else "0")

    def _the_house_opens(self) -> None:
        self._devices_recover()
        self.table.puts_posts_in_service(self.table.conductor)
        self.table.opens_seance()
        self.table.sits(1, "anna", 200 * EURO)

    def _devices_recover(self) -> None:
        for fault in list(self.table.state.health.faults):
            self.table.wheel_recovers(WheelFaultKind(fault))
        self.table.wheel_is_heard()
        self.table.storage_is("ok")
        self.table.wheel_is_verified()

    def _a_player_stakes(self, post: int, bet: str, units: int) -> None:
        if self.table.player(post) is None:
            self.table.sits(post, f"player {post}", 50 * EURO)
        self.table.stakes(post, {bet: units * 2 * EURO})

    def _the_round_goes_on(self, pocket: str) -> None:
        table, coup = self.table, self.table.state.coup
        match table.phase:
            case Phase.IDLE if table.state.seance.phase is SeancePhase.ENDED:
                table.closes_seance()
            case Phase.IDLE if table.launcher and "next_round" in table.timers:
                table.time_ends("next_round")
            case Phase.IDLE if table.says_faites_vos_jeux().refusal:
                self._devices_recover()
                table.sits(1, "anna", 200 * EURO)
            case Phase.IDLE:
                pass
            case Phase.BETTING if table.launcher and not coup.launch_ordered and "launch" in table.timers:
                table.time_ends("launch")
            case Phase.BETTING if coup.spin is None:
                table.ball_runs()
            case Phase.BETTING:
                table.ball_slows()
            case Phase.NO_MORE_BETS:
                table.ball_in(pocket, spin=coup.spin)
            case Phase.VERIFYING:
                table.confirms(coup.detected)
            case Phase.MANUAL if coup.incident and coup.incident.entry:
                table.attests()
            case Phase.MANUAL:
                table.enters(pocket)
                table.voids()
            case Phase.HALTED:
                table.restarts()

    # What anybody may do at any moment.

    @precondition(is_open)
    @rule(post=posts, shift=near, stakes=st.lists(st.tuples(bets, amounts), max_size=4))
    def anybody_stakes(self, post: int, shift: int, stakes: list[tuple[str, int]]) -> None:
        placed = tuple(Stake(bet=bet, cents=Cents(cents)) for bet, cents in stakes)
        self.table.asks(PlaceStakes, post, round=self.table.round + shift, stakes=placed)

    @precondition(is_open)
    @rule(post=posts, name=announcements, cents=amounts, drawn=st.lists(some_pockets, max_size=5))
    def anybody_announces(self, post: int, name: str, cents: int, drawn: list[str]) -> None:
        self.table.announces(post, name, cents)
        self.table.stakes_at_random(post, tuple(drawn), cents)

    @precondition(is_open)
    @rule(post=posts, player=players, cents=amounts, what=st.integers(0, 5))
    def anybody_at_a_post_does_something(self, post: int, player: str, cents: int, what: int) -> None:
        table = self.table
        match what:
            case 0:
                table.sits(post, player)
            case 1:
                table.takes_back(post)
            case 2:
                table.cashes_out(post)
            case 3:
                table.steps_away(post)
            case 4:
                table.comes_back(post)
            case _:
                table.chooses_minimum(post, cents)

    @precondition(is_open)
    @rule(post=posts, by=people, number=st.integers(0, 3), cents=amounts)
    def anybody_gives_an_order_about_a_post(self, post: int, by: Person, number: int, cents: int) -> None:
        match number:
            case 0:
                self.table.credits(post, min(cents, 1_000_000), by)
            case 1:
                self.table.notes_absence(post, by)
            case 2:
                self.table.suspends(post, by)
            case _:
                self.table.releases(post, by)

    @precondition(is_open)
    @rule(post=st.integers(min_value=1, max_value=POSTS), claimed=st.booleans())
    def a_player_is_away_for_too_long(self, post: int, claimed: bool) -> None:
        self.table.steps_away(post)
        if f"absence:{post}" in self.table.timers:
            self.table.time_ends(f"absence:{post}")
        self.table.suspends(post)
        if claimed and self.table.state.posts.consigned:
            self.table.releases(min(self.table.state.posts.consigned))

    @rule(by=people, pocket=some_pockets, what=st.integers(0, 11))
    def anybody_gives_an_order_about_the_game(self, by: Person, pocket: str, what: int) -> None:
        table = self.table
        match what:
            case 0:
                table.puts_posts_in_service(by)
            case 1:
                table.opens_seance(by)
            case 2:
                table.announces_last(by)
            case 3:
                table.closes_seance(by)
            case 4:
                table.says_faites_vos_jeux(by)
            case 5:
                table.says_rien_ne_va_plus(by)
            case 6:
                table.confirms(pocket, by)
            case 7:
                table.declares_incident(by)
            case 8:
                table.enters(pocket, by)
            case 9:
                table.attests(by)
            case 10:
                table.voids(by)
            case _:
                table.restarts(by)

    @precondition(is_open)
    @rule(rounds=st.lists(some_pockets, min_size=3, max_size=3))
    def the_house_ends_the_seance(self, rounds: list[str]) -> None:
        """The last rounds are announced and played, as far as the table lets them."""
        self.table.announces_last()
        for pocket in rounds:
            self.play_goes_on(5, pocket, [(2, "rouge", 1)])
        self.table.closes_seance()

    @rule(shift=near, direction=directions, pocket=some_pockets, what=st.integers(0, 3))
    def the_wheel_reports_anything(self, shift: int, direction: Direction, pocket: str, what: int) -> None:
        spin = (self.table.state.coup.spin or 0) + shift
        match what:
            case 0:
                self.table.hears(BallLaunched, spin=spin, direction=direction, rotor_mrpm=0)
            case 1:
                self.table.hears(BallSlowed, spin=spin, direction=direction, rotor_mrpm=99_000)
            case 2:
                self.table.hears(PocketDetected, spin=spin, pocket=pocket)
            case _:
                self.table.hears(PocketMissed, spin=spin, pocket=pocket)

    @rule(
        fault=st.sampled_from(list(WheelFaultKind)), device=st.sampled_from(["wheel", "panel"]), what=st.integers(0, 9)
    )
    def a_device_fails_or_recovers(self, fault: WheelFaultKind, device: str, what: int) -> None:
        table = self.table
        match what:
            case 0:
                table.wheel_fails(fault)
            case 1 | 2:
                table.wheel_recovers(fault)
            case 3:
                table.wheel_falls_silent(device)
            case 4:
                table.wheel_is_heard(device)
            case 5:
                table.wheel_is_verified(*(["pockets: is 38, must be 37"] if device == "panel" else []))
            case 6:
                table.storage_is({"wheel": "no_new_round", "panel": "ok"}[device])
            case 7:
                table.hears(InputFaultSeen, name=device, detail="stuck")
            case 8 if fault is WheelFaultKind.STOPPED:  # seldom: after this no round ever begins
                table.hears(JournalDoubted, code="E-FORK", detail="entry 7")
            case _:
                table.hears(ClockStepped, by_ms=-3_600_000, quality="free")

    @rule(
        button=st.sampled_from([*BUTTONS, "", "sonnette"]),
        key=st.sampled_from(["croupier", "director", "x"]),
        on=st.booleans(),
    )
    def anybody_touches_the_panel(self, button: str, key: str, on: bool) -> None:
        self.table.turns_key(key, on=on)
        self.table.presses(button)

    @precondition(lambda self: self.table.timers)
    @rule(data=st.data(), shift=near)
    def a_timer_comes_due(self, data: st.DataObject, shift: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.table.timers)))
        if shift:
            self.table.timer_fires(name, self.table.timers[name].round + shift)
        else:
            self.table.time_ends(name)

    @rule(name=st.sampled_from(["next_round", "launch", "launch_limit", "call_no_more_bets", "no_more_bets_limit"]))
    def a_timer_fires_that_nobody_set(self, name: str) -> None:
        self.table.timer_fires(name, self.table.round)
        self.table.timer_fires("number_limit", self.table.round)
        self.table.timer_fires("absence:1", self.table.watch.sittings)

    @rule(orderly=st.booleans())
    def the_daemon_stops_and_starts(self, orderly: bool) -> None:
        if orderly:
            self.table.hears(Stopping, boot="boot-1")
        assert self.table.folded_again() == self.table.state
        self.table.loses_power()

    @invariant()
    def the_board_and_the_lamps_can_always_be_shown(self) -> None:
        if hasattr(self, "table"):  # not before the first step
            table = self.table
            assert table.game.board(table.state)["phase"] == table.phase
            assert set(table.game.lamps(table.state)) == set(LAMPS)
            assert table.game.round_closed(table.state) is (table.watch.open_round is None)

    def teardown(self) -> None:
        if hasattr(self, "table"):
            assert self.table.folded_again() == self.table.state


TestAnyTable = AnyTable.TestCase
TestAnyTable.settings = settings(max_examples=60, stateful_step_count=50)


def test_phases_of_the_usual_stories_take_every_permitted_way_and_no_other() -> None:
    went: set[tuple[Phase, Phase]] = set()
    for conduct in Conduct:
        for broken_in in (Phase.IDLE, Phase.BETTING, Phase.NO_MORE_BETS, Phase.VERIFYING):
            if conduct is Conduct.LAUNCHER and broken_in is Phase.VERIFYING:
                continue
            table = playing(conduct)
            table.plays_round("17")
            table.reaches(broken_in)
            table.declares_incident()
            if broken_in is not Phase.IDLE:
                table.voids()
                table.attests()
            table.restarts()
            went |= table.watch.went
    assert went == set(PERMITTED)

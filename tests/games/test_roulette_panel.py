"""The panel and the public board: what they show in each phase, and what a button does when its key is turned on.

A button is the same order as a signed one; the person is then the key. Only a director's key works "relance" and
"fermeture" (the law, electronic roulette, 1°: he "procède à la relance du jeu" and "valide la fermeture").
"""

import pytest

from games.posts import PostSettled
from games.refusals import Refusal
from games.roulette.coup import Phase
from games.roulette.facts import NoMoreBetsCalled, NumberAnnounced, NumberDialled
from games.roulette.game import BUTTONS
from games.roulette.incident import CROUPIER_KEY, DIRECTOR_KEY
from games.roulette.layout import Wheel
from games.rules import Lamp
from games.seance import KeySwitched, OrderRefused
from tests.games.table import Table, playing

# ── The public board and the lamps ────────────────────────────────────────────────────────────────────────────────────

OFF, ON, BLINKING = Lamp.OFF, Lamp.ON, Lamp.BLINKING


@pytest.mark.parametrize(
    ("phase", "text", "faites_vos_jeux", "rien_ne_va_plus", "numero", "incident"),
    [
        (Phase.IDLE, "Patientez", OFF, OFF, OFF, OFF),
        (Phase.BETTING, "Faites vos jeux", ON, OFF, OFF, OFF),
        (Phase.NO_MORE_BETS, "Rien ne va plus", OFF, ON, OFF, OFF),
        (Phase.VERIFYING, "Rien ne va plus", OFF, ON, BLINKING, OFF),
        (Phase.MANUAL, "Incident : jeu suspendu", OFF, OFF, OFF, BLINKING),
        (Phase.HALTED, "Jeu suspendu", OFF, OFF, OFF, ON),
    ],
)
def test_board_and_lamps_show_each_phase(
    phase: Phase, text: str, faites_vos_jeux: Lamp, rien_ne_va_plus: Lamp, numero: Lamp, incident: Lamp
) -> None:
    table = playing().reaches(phase, "17")
    board = table.game.board(table.state)
    assert (board["phase"], board["text"]) == (phase, text)
    assert board["detected"] == ("17" if phase is Phase.VERIFYING else "")
    assert table.game.lamps(table.state) == {
        "faites-vos-jeux": faites_vos_jeux,
        "rien-ne-va-plus": rien_ne_va_plus,
        "numero": numero,
        "incident": incident,
        "seance": ON,
    }


def test_board_hides_what_was_detected_or_dialled_once_it_is_over() -> None:
    table = playing()
    table.plays_round("17")
    table.reaches(Phase.MANUAL)
    table.turns_key("croupier")
    table.presses("unite")
    assert table.game.board(table.state)["dialled"] == "0"
    table.voids()
    table.attests()
    board = table.game.board(table.state)
    assert (board["detected"], board["dialled"]) == ("", "")


def test_board_and_lamps_of_a_closed_table_say_so() -> None:
    table = Table()
    assert table.game.board(table.state)["text"] == "Table fermée"
    assert set(table.game.lamps(table.state).values()) == {OFF}


# ── The panel ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_buttons_of_the_panel_conduct_a_whole_seance_with_both_keys() -> None:
    table = Table()
    table.wheel_is_verified()
    table.turns_key("croupier")
    table.presses("mise-en-service")
    table.opens_seance(DIRECTOR_KEY)
    table.seats()
    table.presses("faites-vos-jeux")
    table.ball_runs()
    assert table.presses("rien-ne-va-plus").the(NoMoreBetsCalled).by == CROUPIER_KEY
    table.ball_in("17")
    assert table.presses("confirmer").the(NumberAnnounced).by == CROUPIER_KEY
    assert table.presses("trois-dernieres").refusal is None
    for _ in range(3):
        table.plays_round()
    assert table.presses("fermeture").refusal is Refusal.KEY_OFF
    table.turns_key("director")
    assert table.presses("fermeture").kinds[-1] == "SeanceClosed"


@pytest.mark.parametrize("button", BUTTONS)
def test_button_without_its_key_turned_on_is_refused(button: str) -> None:
    table = playing()
    key = "director" if button in ("ouverture", "relance", "fermeture") else "croupier"
    assert table.presses(button).refusal is Refusal.KEY_OFF
    table.turns_key("director" if key == "croupier" else "croupier")
    assert table.presses(button).refusal is Refusal.KEY_OFF
    table.turns_key(key)
    assert table.presses(button).refusal is not Refusal.KEY_OFF
    table.turns_key(key, on=False)
    assert table.presses(button).refusal is Refusal.KEY_OFF


def test_button_that_the_game_does_not_have_is_refused() -> None:
    table = playing()
    for key in ("croupier", "director"):
        table.turns_key(key)
    for button in ("sonnette", "", "ouverture"):  # the opening needs the date, which the game does not know
        assert table.presses(button).the(OrderRefused).reason is Refusal.BUTTON_UNKNOWN


def test_key_that_is_turned_tells_it_once() -> None:
    table = playing()
    assert table.turns_key("director").facts == (KeySwitched(key="director", on=True),)
    assert table.turns_key("director").facts == ()
    assert table.turns_key("director", on=False).facts == (KeySwitched(key="director", on=False),)
    assert table.turns_key("director", on=False).facts == ()


def test_every_button_pressed_at_once_in_each_phase_pays_nobody() -> None:
    for phase in Phase:
        table = playing().reaches(phase)
        table.turns_key("croupier")
        for _ in range(3):
            for button in BUTTONS:
                if button != "confirmer" or phase is not Phase.VERIFYING:
                    table.presses(button)
        assert table.every(PostSettled) == []


@pytest.mark.parametrize(
    ("wheel", "presses", "number"),
    [
        (Wheel.SINGLE_ZERO, "d", "0"),
        (Wheel.SINGLE_ZERO, "u", "0"),
        (Wheel.SINGLE_ZERO, "dduuuuuuu", "17"),
        (Wheel.SINGLE_ZERO, "dddduuuuuu", "36"),
        (Wheel.SINGLE_ZERO, "ddddd", "0"),
        (Wheel.SINGLE_ZERO, "uuuuuuuuuud", "19"),
        (Wheel.SINGLE_ZERO, "uuuuuuuuuuu", "0"),
        (Wheel.DOUBLE_ZERO, "ddddd", "00"),
        (Wheel.DOUBLE_ZERO, "dddddd", "0"),
        (Wheel.DOUBLE_ZERO, "dddddu", "1"),
        (Wheel.DOUBLE_ZERO, "ddddduuuuuuuuuu", "0"),
    ],
)
def test_number_is_dialled_with_tens_and_units(wheel: Wheel, presses: str, number: str) -> None:
    table = playing(wheel=wheel).reaches(Phase.MANUAL)
    table.turns_key("croupier")
    for press in presses:
        table.presses({"d": "dizaine", "u": "unite"}[press])
    assert table.last.the(NumberDialled).pocket == number
    assert table.game.board(table.state)["dialled"] == number


def test_number_can_be_dialled_in_manual_mode_only() -> None:
    for phase in set(Phase) - {Phase.MANUAL}:
        table = playing().reaches(phase)
        table.turns_key("croupier")
        assert table.presses("dizaine").refusal is Refusal.NO_INCIDENT, phase

"""The house rules of an electronic roulette: everything that the law leaves to the house, as one value."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from games.money import Cents
from games.roulette.layout import Bet, Wheel, layout


class Conduct(StrEnum):
    """Who launches the ball and announces the number."""

    CROUPIER = "croupier"
    LAUNCHER = "launcher"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouletteRules:
    """One table's rules. Durations are in milliseconds.

    ``announcements``: the house options offered beyond the classic ones; ``zero_combinations``: the bets with zero that
    the layout offers, the customary ones when None.
    ``button_calls_no_more_bets``: the croupier's button is an ordinary way to call "rien ne va plus"; otherwise it
    declares that the device missed it (manual mode). ``no_more_bets_after_ms``: 0, or the time after the launch at
    which the device calls it if nothing else did.
    """

    wheel: Wheel
    conduct: Conduct
    posts: int
    minimum: Cents
    announcements: frozenset[str] = frozenset()
    zero_combinations: frozenset[str] | None = None
    random_combinations: bool = True
    player_minimum: bool = True
    verify_wheel: bool = True
    button_calls_no_more_bets: bool = True
    no_more_bets_after_ms: int = 0
    betting_ms: int = 15_000
    between_ms: int = 5_000
    launch_limit_ms: int = 60_000
    no_more_bets_limit_ms: int = 20_000
    number_limit_ms: int = 90_000
    relaunch_limit: int = 3
    absence_ms: int = 600_000

    @property
    def bets(self) -> Mapping[str, Bet]:
        """Every bet of the layout, by name."""
        return layout(self.wheel, self.zero_combinations)

"""What a stake brings back, worked out from the figures of the articles and from the names of the bets alone.

This is the tests' own count, apart from the game's: it knows no table of bets, only that a bet which covers ``n`` of 36
numbers pays ``(36 - n) / n`` times the stake (35, 17, 11, 8, 5, 2, 1 and 1/2: articles 55-2 and 55-12), that the five
numbers pay 6 times (55-2), and that at zero an even chance loses half on 37 pockets (55-12) and all on 38 (55-2).
"""

from collections.abc import Mapping
from fractions import Fraction

RED = {1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36}

EVEN_CHANCES: Mapping[str, set[int]] = {
    "rouge": RED,
    "noir": set(range(1, 37)) - RED,
    "pair": set(range(2, 37, 2)),
    "impair": set(range(1, 37, 2)),
    "manque": set(range(1, 19)),
    "passe": set(range(19, 37)),
}


def covered(bet: str) -> set[str]:
    """The pockets that a bet plays, read from its name."""
    kind, *ends = bet.split("-")
    if bet in EVEN_CHANCES:
        return set(map(str, EVEN_CHANCES[bet]))
    match kind, ends:
        case "cinq", _:
            return {"0", "00", "1", "2", "3"}
        case "carre", ["0", "3"]:
            return {"0", "1", "2", "3"}
        case "carre", [low, _]:
            return {str(int(low) + step) for step in (0, 1, 3, 4)}
        case (("transversale" | "sixain"), [low, high]):
            return set(map(str, range(int(low), int(high) + 1)))
        case (("plein" | "cheval" | "transversale"), named):
            return set(named)
        case (("colonne" | "colonnes"), columns):
            return {str(number) for number in range(1, 37) if str((number - 1) % 3 + 1) in columns}
        case (("douzaine" | "douzaines"), dozens):
            return {str(number) for number in range(1, 37) if str((number - 1) // 12 + 1) in dozens}
        case _:
            raise ValueError(f"no bet is named {bet}")


def pays(bet: str) -> Fraction:
    """How many times the stake a winning bet pays on top of it."""
    numbers = len(covered(bet))
    return Fraction(6) if numbers == 5 else Fraction(36 - numbers, numbers)


def result(wheel: int, stakes: Mapping[str, int], pocket: str) -> tuple[int, int]:
    """What one player's stakes (cents by bet) bring back at ``pocket``: (stake returned, winnings), in cents."""
    returned = won = Fraction(0)
    for bet, cents in stakes.items():
        if pocket in covered(bet):
            returned += cents
            won += cents * pays(bet)
        elif bet in EVEN_CHANCES and wheel == 37 and pocket == "0":
            returned += Fraction(cents, 2)
    assert returned.denominator == won.denominator == 1, f"half a cent is due on {stakes} at {pocket}"
    return int(returned), int(won)

"""A player at a post, as a post would speak for him: sits, waits for credit, stakes each round, and one day leaves.

Sans-IO: give it what the post receives (the public display, answers) and it gives the requests to send. It knows only
the published protocol, like any foreign post.
"""

import json
import random
from collections.abc import Mapping
from typing import Any

CHOICES = ("rouge", "noir", "pair", "impair", "manque", "passe", "douzaine-1", "douzaine-2", "douzaine-3", "colonne-1")


class PlayerTwin:
    """One player. ``seed`` makes his luck and his taste; he leaves when his credit no longer buys the table minimum."""

    def __init__(self, post: int, seed: int) -> None:
        self.post = post
        self.credit = 0
        self.won = 0
        self._random = random.Random(seed * 1_000 + post)
        self._requests = 0
        self._seated = False
        self._asked_to_sit = False
        self._round_staked = 0
        self.stay = True

    def on_display(self, board: Mapping[str, Any]) -> list[bytes]:
        """The public display changed."""
        if board["seance_phase"] == "closed":
            self._seated = self._asked_to_sit = False
            return []
        if not self._seated and not self._asked_to_sit and self.stay:
            self._asked_to_sit = True
            return [self._request("sit", player=f"carte-{self.post:04d}")]
        betting = board["phase"] == "betting" and board["round"] != self._round_staked
        if self._seated and betting and self.credit >= 10 * board["minimum_cents"]:
            self._round_staked = board["round"]
            return [self._stake(board)]
        return []

    def on_answer(self, payload: bytes) -> list[bytes]:
        """An answer came."""
        answer = json.loads(payload)
        data, kind = answer.get("data", {}), answer.get("kind")
        if kind == "fr.table.player.sat.v1" and answer["ok"]:
            self._seated = True
        if kind == "fr.table.player.paid_out.v1":
            self._seated = self._asked_to_sit = False
        if "credit" in data:
            self.credit = data["credit"]
        return []

    def leave(self) -> bytes:
        """Press the "paiement" key."""
        self.stay = False
        return self._request("payout")

    def _stake(self, board: Mapping[str, Any]) -> bytes:
        minimum, number = board["minimum_cents"], board["round"]
        taste = self._random.random()
        if taste < 0.15 and "voisins-du-zero" in board["announcements"]:
            name = self._random.choice(board["announcements"])
            return self._request("announce", round=number, announcement=name, cents=minimum)
        if taste < 0.25 and board["random_combinations"]:
            return self._request("random", round=number, cents=minimum, count=self._random.randint(1, 5))
        bets = [f"plein-{self._random.randint(0, 36)}" for _ in range(self._random.randint(0, 4))]
        bets += self._random.sample(CHOICES, self._random.randint(1, 3))
        stakes = [{"bet": bet, "cents": minimum * self._random.choice((2, 2, 4))} for bet in sorted(set(bets))]
        return self._request("stake", round=number, stakes=stakes)

    def _request(self, do: str, **fields: Any) -> bytes:
        self._requests += 1
        request = f"{self.post}-{self._random.getrandbits(32):08x}-{self._requests}"
        return json.dumps({"id": request, "do": do, **fields}).encode()

"""The staff of a rehearsal: a director and a cashier who sign orders, and a croupier who presses buttons.

Sans-IO: what the centre would show them goes in, commands to publish come out. They know only the published protocol.
"""

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

from controller.certify.note import Signer
from controller.delivery.orders import write_order
from controller.schemas import Challenge

ASKED_AS = "staff"
"""The identifier of the staff's requests for a challenge: others may ask on the same topic."""

CREDIT_CENTS = 50_000
"""What the cashier loads for a player who sits down."""


class StaffTwin:
    """Persons who give signed orders, one at a time: ask for a challenge, sign it, wait for the answer."""

    def __init__(self, signers: Mapping[str, Signer]) -> None:
        """``signers`` by role: "director", "cashier", and "croupier" where one signs."""
        self._signers = signers
        self._waiting: deque[tuple[str, str, dict[str, object]]] = deque()
        self._asked = False
        self._nonce = ""
        self.refused: list[dict[str, Any]] = []

    def order(self, role: str, verb: str, **arguments: object) -> list[bytes]:
        """Somebody wants this done."""
        self._waiting.append((role, verb, arguments))
        return self._ask()

    def wants(self, verb: str) -> bool:
        """Whether such an order still waits or is under way."""
        return any(waiting[1] == verb for waiting in self._waiting)

    def on_reply(self, payload: bytes) -> list[bytes]:
        """The table answered: a challenge to sign, or the outcome of the order."""
        answer = json.loads(payload)
        if not self._asked or not self._waiting:
            return []
        if "expires_s" in answer:
            if answer["id"] != ASKED_AS:
                return []  # somebody else's challenge
            role, verb, arguments = self._waiting[0]
            challenge = Challenge.model_validate(answer)
            self._nonce = challenge.nonce
            return [write_order(self._signers[role], challenge, verb, arguments).encode()]
        if answer.get("nonce") != self._nonce:
            return []  # the outcome of somebody else's order
        self._asked = False
        _, verb, _ = self._waiting.popleft()
        if not answer["ok"]:
            self.refused.append({"verb": verb, **answer})
        return self._ask()

    def again(self) -> list[bytes]:
        """The connection was lost: ask for a new challenge."""
        self._asked = False
        return self._ask()

    def _ask(self) -> list[bytes]:
        if self._asked or not self._waiting:
            return []
        self._asked = True
        return [b'{"ask":"challenge","id":"%s"}' % ASKED_AS.encode()]

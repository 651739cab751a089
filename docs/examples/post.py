"""A stranger's post in plain paho-mqtt: sits, waits for credit, stakes, is refused when late, is paid, and leaves.

    python docs/examples/post.py HOST PORT TABLE POST [COUPS]

TABLE is the root of the table's topics, for example casino/v1/casino.example/table/t07. This file knows nothing but
docs/post-protocol.md. On a casino's broker a post shows its own certificate: call ``client.tls_set(ca, cert, key)``.
"""

import json
import queue
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

PATIENCE_S = 5.0
"""An answer that has not come by then may be lost: the same request is sent again."""

IN_SERVICE = ("open", "last")
"""The phases of a séance in which posts may play."""

Told = dict[str, Any]


class Post:
    """One post: asks and waits. ``board`` is the public board as it was last shown."""

    def __init__(self, host: str, port: int, table: str, number: int) -> None:
        self.board: Told = {}
        self._in, self._out = f"{table}/post/{number}/in", f"{table}/post/{number}/out"
        self._display = f"{table}/up/display"
        self._heard: queue.Queue[tuple[str, Told]] = queue.Queue()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, f"stranger-{number}", protocol=mqtt.MQTTv5)
        self._client.on_connect = lambda client, *_: client.subscribe([(self._out, 1), (self._display, 1)])
        self._client.on_message = lambda _client, _data, m: self._heard.put((m.topic, json.loads(m.payload)))
        self._client.connect(host, port, clean_start=True)
        self._client.loop_start()

    def ask(self, do: str, **fields: Any) -> Told:
        """Send a request until it is answered. It acts once, however often it is sent: its ``id`` stays the same."""
        request = {"id": uuid.uuid4().hex, "do": do, **fields}
        answer = None
        while answer is None:
            self._client.publish(self._in, json.dumps(request), qos=1)
            answer = self.wait(lambda told: told.get("id") == request["id"], PATIENCE_S)
        return answer

    def wait(self, wanted: Callable[[Told], bool], seconds: float) -> Told | None:
        """The next message that is wanted, or None when none came in time. The board is kept, whatever was wanted."""
        deadline_s = time.monotonic() + seconds
        while (left_s := deadline_s - time.monotonic()) > 0:
            try:
                topic, told = self._heard.get(timeout=left_s)
            except queue.Empty:
                break
            if topic == self._display:
                self.board = told
                print("board", told["round"], told["text"], *told["last_numbers"][:1], flush=True)
            else:
                print("post ", json.dumps(told, ensure_ascii=False), flush=True)
            if wanted(told):
                return told
        return None

    def until(self, shown: Callable[[Told], bool]) -> None:
        """Wait until the board shows something."""
        while not (self.board and shown(self.board)):
            self.wait(lambda told: "phase" in told, PATIENCE_S)

    def close(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()


def play_round(post: Post) -> bool:
    """Stake on red while bets are open, once more when they are closed, and wait for the end of the round.

    Returns whether it went as it should: the first stake was taken, the second was refused as late. A network may
    deliver the first one late too, or the second when the round is over.
    """
    post.until(lambda board: board["phase"] == "betting" or board["seance_phase"] not in IN_SERVICE)
    number, cents = post.board["round"], post.board["minimum_cents"] * 2
    stake = {"round": number, "stakes": [{"bet": "rouge", "cents": cents}]}
    first = post.ask("stake", **stake)
    post.until(lambda board: board["round"] != number or board["phase"] != "betting")
    second = post.ask("stake", **stake)
    post.until(lambda board: board["round"] != number or board["phase"] in ("idle", "halted"))
    return bool(first["ok"]) and second.get("code") == "E-STAKE-LATE"


def main(host: str, port: int, table: str, number: int, coups: int) -> None:
    """One visit to the table."""
    post = Post(host, port, table, number)
    post.until(lambda board: board["seance_phase"] in IN_SERVICE)
    if not post.ask("hello")["data"]["seated"]:
        sat = post.ask("sit", player=f"card-{uuid.uuid4().hex[:8]}")
        if not sat["ok"]:
            sys.exit(f"{sat['code']}: nobody can sit at post {number}")
    while not post.ask("hello")["data"]["credit"]:  # the cashier loads the post
        post.wait(lambda told: told.get("kind") == "fr.table.credit.added.v1", PATIENCE_S)  # it comes by itself
    played = 0
    while played < coups and post.board["seance_phase"] in IN_SERVICE:
        played += play_round(post)
    post.ask("payout")
    post.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]) if len(sys.argv) > 5 else 3)

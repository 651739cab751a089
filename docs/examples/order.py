"""A stranger's cash desk: one signed order, with plain paho-mqtt and cryptography.

    python docs/examples/order.py HOST PORT TABLE KEYFILE VERB [ARGUMENTS]
    python docs/examples/order.py … cashier.key post.credit '{"post": 3, "cents": 5000}'

KEYFILE is what ``tablectl key create --person`` wrote. This file knows nothing but docs/post-protocol.md. In a casino
the key stays on the person's own device, which shows what it signs; the broker asks the desk for its certificate.
"""

import json
import queue
import sys
import uuid
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.subscribeoptions import SubscribeOptions

PATIENCE_S = 10.0
"""An answer that has not come by then is lost: look whether the order acted before you sign another."""

Told = dict[str, Any]


def signed(text: str, key_line: str) -> str:
    """``text`` as a C2SP signed note, by a key that reads ``PRIVATE+KEY+name+identifier+base64(type, seed)``."""
    name, identifier, encoded = key_line.strip().removeprefix("PRIVATE+KEY+").split("+", 2)
    signature = Ed25519PrivateKey.from_private_bytes(b64decode(encoded)[1:]).sign(text.encode())
    return f"{text}\n— {name} {b64encode(bytes.fromhex(identifier) + signature).decode()}\n"


def order_text(challenge: Told, verb: str, arguments: Told) -> str:
    """What the person signs: this table, this run of it, this challenge, this order."""
    canonical = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return (
        f"table-controller/order/v1\n{challenge['origin']}\nboot {challenge['boot']}\nnonce {challenge['nonce']}\n"
        f"do {verb}\nargs {canonical}\n"
    )


def main(host: str, port: int, table: str, key_line: str, verb: str, arguments: Told) -> bool:
    """Ask for a challenge, sign the order, send it, print the answer. Returns whether the order was carried out."""
    heard: queue.Queue[Told] = queue.Queue()
    subscribed: queue.Queue[object] = queue.Queue()
    client = mqtt.Client(CallbackAPIVersion.VERSION2, f"desk-{uuid.uuid4().hex[:8]}", protocol=mqtt.MQTTv5)
    client.on_connect = lambda client, *_: client.subscribe(f"{table}/up/reply", options=SubscribeOptions(qos=1))
    client.on_subscribe = lambda *_: subscribed.put(True)
    client.on_message = lambda _client, _data, message: heard.put(json.loads(message.payload))
    client.connect(host, port, clean_start=True)
    client.loop_start()

    def ask(payload: str, about: str, value: str) -> Told:
        """Send a command; others' answers pass by on the same topic."""
        client.publish(f"{table}/down/command", payload, qos=1)
        while (told := heard.get(timeout=PATIENCE_S)).get(about) != value:
            continue
        return told

    subscribed.get(timeout=PATIENCE_S)
    mine = uuid.uuid4().hex
    challenge = ask(json.dumps({"ask": "challenge", "id": mine}), "id", mine)
    answer = challenge
    if "nonce" in challenge:
        answer = ask(signed(order_text(challenge, verb, arguments), key_line), "nonce", challenge["nonce"])
    print(json.dumps(answer, ensure_ascii=False))
    client.disconnect()
    client.loop_stop()
    return bool(answer.get("ok"))


if __name__ == "__main__":
    host, port, table, keyfile, verb, *rest = sys.argv[1:]
    line = Path(keyfile).read_text(encoding="ascii")
    sys.exit(not main(host, int(port), table, line, verb, json.loads(rest[0]) if rest else {}))

"""The central service of a demonstration: the mirror that a casino runs, with a key and a store of its own."""

import asyncio
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import tomli_w

from controller.certify.keys import create_cosigner_key
from controller.certify.note import Verifier
from controller.mirror.faults import MirrorFault
from controller.mirror.stores import read_store

CONFIG, POLICY, KEY = "mirror.toml", "policy", "mirror.key"
STORE = Path("mirror", "store.sqlite")

LOOK_S = 0.1
"""How often the store is looked at while the last entries are on their way."""


def lay_out(folder: Path, site: str, table: Verifier, mqtt: Mapping[str, Any]) -> str:
    """Make the mirror's key, policy and configuration; returns its public key. Raises KeyFault and OSError."""
    signer = create_cosigner_key(folder / KEY, f"{site}/mirror")
    witness = f"witness mirror {signer.verifier.vkey}"
    (folder / POLICY).write_text(f"log {table.vkey}\n{witness}\nquorum mirror\n", encoding="utf-8")
    (folder / STORE).parent.mkdir()
    service = {"mode": "mirror", "name": "mirror", "key": KEY, "policy": POLICY, "store": str(STORE), "volatile": True}
    (folder / CONFIG).write_text(tomli_w.dumps({"service": service, "mqtt": dict(mqtt)}), encoding="utf-8")
    return signer.verifier.vkey


async def acknowledged(folder: Path, origin: str, size: int, within_s: float) -> int:
    """How many entries the mirror has cosigned, as soon as these are ``size``, or when the time is over."""
    found = 0
    for _ in range(round(within_s / LOOK_S)):
        found = await asyncio.to_thread(cosigned, folder, origin)
        if found >= size:
            break
        await asyncio.sleep(LOOK_S)
    return found


def cosigned(folder: Path, origin: str) -> int:
    """How many entries the mirror holds and has cosigned."""
    with suppress(MirrorFault), closing(read_store(str(folder / STORE))) as opened:
        return max((held.cosigned for held in opened.held() if held.origin == origin), default=0)
    return 0

"""``tablectl simulate``: whole evenings under virtual time, by the production code above the ports.

The wheel is the twin behind a virtual serial line, the broker is in memory, the clock jumps. Everything that is random
comes from the seed, so the same seed gives the same journal, to the last root.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.certify.journal import Journal
from controller.certify.keys import person_key_name
from controller.certify.note import Signer
from controller.certify.reader import Reader
from controller.certify.writer import InlineWriter
from controller.config import load
from controller.daemon import Daemon, Hardware, Surroundings
from controller.delivery.bus import MemoryExchange
from controller.delivery.topics import Topics
from controller.entropy import SeededEntropy
from controller.options import Config
from controller.rehearsal.evening import Evening, Hands, PostClient, Seen
from controller.rehearsal.players import PlayerTwin
from controller.rehearsal.staff import StaffTwin
from controller.rehearsal.virtual_time import LoopClock, VirtualTimeLoop
from drivers.twin.panel import PRESS_US, TwinInputs, TwinOutputs
from drivers.twin.serial import TwinCable
from drivers.twin.wheel import TwinSettings, WheelTwin
from drivers.twin.wheel_faults import FaultPlan

JOURNAL = "journal.sqlite"
VKEY = "table.vkey"
CONFIG = "table.toml"

PATIENCE_S, PATIENCE_PER_ROUND_S = 3_600, 3_600
"""Virtual time after which an evening that does not end is given up: a wheel may be too ill to be played on."""

SALT = bytes(32)
"""Nobody's secret: the players of a rehearsal are nobody."""


class StuckError(Exception):
    """The evening did not end. ``code`` is explained by ``tablectl explain``."""

    code = "E-SIMULATION-STUCK"

    def __init__(self, seen: Seen, played_s: float) -> None:
        self.seen = seen
        self.played_s = played_s
        self.detail = f"{seen.rounds} valid and {seen.voids} void rounds in {round(played_s)} s of play, and no end"
        super().__init__(f"{self.code} {self.detail}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What a simulation came to."""

    seen: Seen
    size: int
    root: bytes
    played_s: float
    refused_orders: int


def staff_keys(site: str, entropy: SeededEntropy) -> dict[str, Signer]:
    """Keys of a rehearsal's staff, by role; each role's badge is its own name."""
    return {
        role: Signer(person_key_name(site, role), bytes.fromhex(entropy.hex(32)))
        for role in ("director", "cashier", "croupier")
    }


def rehearsal_overrides(staff: Mapping[str, Signer], journal: Path) -> dict[str, Any]:
    """What a configuration needs to be rehearsed: never the real table, its own journal, its own staff."""
    return {
        "table": {"simulation": True},
        "journal": {"file": str(journal), "key": str(journal.with_name("table.key")), "volatile": True},
        "person": [
            {"badge": role, "role": role, "vkey": signer.verifier.vkey} for role, signer in sorted(staff.items())
        ],
    }


def simulate(
    config_path: Path,
    out: Path,
    *,
    coups: int,
    seed: int,
    faults: FaultPlan | None = None,
    progress: Callable[[Seen], None] = lambda _: None,
) -> Simulated:
    """Play ``coups`` valid rounds and write the journal to ``out``. Raises ConfigError, CertifyFault, StuckError."""
    entropy = SeededEntropy(seed)
    site = load(config_path, {"table": {"simulation": True}}).site
    staff = staff_keys(site, entropy)
    config = load(config_path, rehearsal_overrides(staff, out / JOURNAL))
    signer = Signer(config.origin, bytes.fromhex(entropy.hex(32)))
    out.mkdir(parents=True, exist_ok=True)
    Journal.create(out / JOURNAL, signer, allow_volatile=True)
    (out / VKEY).write_text(f"{signer.verifier.vkey}\n", encoding="ascii")
    (out / CONFIG).write_text(config_path.read_text(encoding="utf-8"), encoding="utf-8")
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(_play(config, out / JOURNAL, signer, staff, entropy, coups, seed, faults, progress))


async def _play(
    config: Config,
    file: Path,
    signer: Signer,
    staff: Mapping[str, Signer],
    entropy: SeededEntropy,
    coups: int,
    seed: int,
    faults: FaultPlan | None,
    progress: Callable[[Seen], None],
) -> Simulated:
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop)
    boot = entropy.hex(8)
    journal = Journal.open(file, signer, clock, boot, lambda: "free", allow_volatile=True)
    croupier = config.roulette.conduct == "croupier"
    cable = _cable(config, clock, seed, faults, croupier=croupier)
    inputs = TwinInputs(buttons=tuple(config.panel.buttons), keys=tuple(config.panel.keys), clock=clock, seed=seed)
    exchange, topics = MemoryExchange(), Topics(config.site, config.table.name)
    around = Surroundings(clock=clock, entropy=entropy, boot=boot, salt=SALT, signer=signer, software_sha256="0" * 64)
    with closing(InlineWriter(journal)) as writer, Reader(file) as reader, closing(cable):
        hardware = Hardware(open_line=cable.open, inputs=inputs, outputs=TwinOutputs(tuple(config.panel.lamps)))
        daemon = Daemon(
            config,
            past=journal,
            reader=reader,
            writer=writer,
            bus=exchange.bus("table"),
            hardware=hardware,
            around=around,
        )
        staff_bus = exchange.bus("staff")
        evening = Evening(
            staff_bus,
            topics,
            StaffTwin(staff),
            coups=coups,
            hands=CroupierHands(inputs, cable) if croupier else None,
            on_event=lambda _: progress(evening.seen),
        )
        buses = [staff_bus]
        for post in range(1, config.table.posts + 1):
            buses.append(exchange.bus(f"post-{post}"))
            PostClient(PlayerTwin(post, seed), buses[-1], topics)
        began_s, stuck = loop.time(), False
        async with asyncio.TaskGroup() as group:
            clients = [group.create_task(bus.run()) for bus in buses]
            table = group.create_task(daemon.run())
            try:
                async with asyncio.timeout(PATIENCE_S + coups * PATIENCE_PER_ROUND_S):
                    await evening.finished.wait()
            except TimeoutError:
                stuck = True
            daemon.stop()
            await table
            for client in clients:
                client.cancel()
        if stuck:
            raise StuckError(evening.seen, loop.time() - began_s)
        return Simulated(
            seen=evening.seen,
            size=journal.size,
            root=journal.root,
            played_s=loop.time() - began_s,
            refused_orders=len(evening.refused),
        )


def _cable(config: Config, clock: LoopClock, seed: int, faults: FaultPlan | None, *, croupier: bool) -> TwinCable:
    settings = TwinSettings(
        pockets=config.roulette.wheel,
        mode=config.wheel_settings.required_mode,
        firmware=config.wheel.parameters.firmware,
        croupier=croupier,
    )
    twin = WheelTwin(settings, random.Random(seed), faults=faults, now_us=clock.mono_us())
    return TwinCable(twin, clock)


class CroupierHands(Hands):
    """A croupier whose hands reach a panel and a wheel in the same process."""

    def __init__(self, inputs: TwinInputs, cable: TwinCable) -> None:
        self._inputs = inputs
        self._cable = cable

    def press(self, button: str) -> None:
        """See ``Hands``. A button that a finger still holds is pressed when it is free: no press may be lost."""
        if self._inputs.is_free(button):
            self._inputs.press(button)
        else:
            asyncio.get_running_loop().call_later(PRESS_US / 1_000_000, self.press, button)

    def turn(self, key: str, on: bool) -> None:
        """See ``Hands``."""
        self._inputs.turn(key, on)

    def spin(self) -> None:
        """See ``Hands``."""
        self._cable.spin()

    def mend(self) -> None:
        """See ``Hands``."""
        self._cable.twin.power_cycle(self._cable.clock.mono_us())

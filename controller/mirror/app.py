"""``tablectl mirror run``: opens the key, the policy, the store and the broker, and runs until it is stopped.

A failed store ends the process: what is stored is known again from the store at the next start, and the tables send
the rest. The exit code tells systemd whether starting again can help.
"""

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import structlog

from controller import log
from controller.certify.faults import CertifyFault, KeyFault
from controller.certify.keys import load_cosigner_key
from controller.certify.note import Signer
from controller.certify.policy import Policy
from controller.config_document import credential
from controller.delivery.broker import BrokerBus
from controller.delivery.bus import BusFault
from controller.entropy import KernelEntropy
from controller.mirror.faults import Alarm
from controller.mirror.mirror import Mirror
from controller.mirror.options import MirrorConfig
from controller.mirror.service import MirrorService
from controller.mirror.stores import open_store
from controller.service import Notifier
from drivers.clock import Clock, SystemClock

EXIT_STOPPED, EXIT_FAILED, EXIT_CONFIG = 0, 1, 2
"""As those of a table: 2 says that a person must mend something before another start can help."""

RETRIED = ("E-MIRROR-STORE", "E-MIRROR-BUSY")
"""Faults that may be gone at the next start: a server that restarts, a disk that was full, another mirror's lock."""

ALIVE_EVERY_US = 1_000_000
"""How often systemd is told that turns are taken."""

CHANCE_STEPS = 1 << 20

logger = structlog.get_logger()


def serve(config: MirrorConfig, path: Path) -> int:
    """Run the service that ``config``, read from ``path``, describes; returns the exit code."""
    log.banner(path)
    try:
        asyncio.run(_serve(config))
    except CertifyFault as fault:
        return _report(fault)
    except BaseExceptionGroup as group:
        faults, others = group.split(CertifyFault)
        if faults is None or others is not None:
            raise  # a bug
        return max(map(_report, _flat(faults)))
    return EXIT_STOPPED


def _flat(group: BaseExceptionGroup[CertifyFault]) -> Iterator[CertifyFault]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _flat(error)
        else:
            yield error


def _report(fault: CertifyFault) -> int:
    logger.error(fault.code, detail=fault.detail)
    return EXIT_FAILED if fault.code in RETRIED else EXIT_CONFIG


def policy_of(config: MirrorConfig) -> Policy:
    """The policy. Raises KeyFault (E-POLICY-MALFORMED) and OSError."""
    return Policy.parse(config.service.policy.read_bytes())


def cosigner_of(config: MirrorConfig) -> Signer:
    """The key. Raises KeyFault."""
    try:
        file = credential(config.service.key)
    except KeyError:
        raise KeyFault("E-KEY-MISSING", f"{config.service.key}: no systemd credential here") from None
    return load_cosigner_key(file)


async def _serve(config: MirrorConfig) -> None:
    clock, options = SystemClock(), config.service
    signer, policy = cosigner_of(config), policy_of(config)
    witness = options.name if options.mode == "witness" else None
    notifier = Notifier.from_environment(os.environ)
    with closing(open_store(options.store, allow_volatile=options.volatile)) as store:
        mirror = Mirror(policy.logs, store, signer, clock, witness=witness)
        bus = _bus(config)
        service = MirrorService(mirror, bus, on_alarm=_tell, on_turn=_Pulse(clock, notifier).beat)
        logger.info("starting", mode=options.mode, cosigner=signer.verifier.vkey, journals=len(policy.logs))
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(bus.run()), tasks.create_task(service.run())]
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, _stop, running)
            notifier.ready(f"{signer.name} follows {len(policy.logs)} journals")
        notifier.stopping()


def _stop(running: Sequence[asyncio.Task[None]]) -> None:
    """End: a turn that is under way is finished by the store's thread, and what it says is said at the next start."""
    for task in running:
        task.cancel()


class _Pulse:
    """Tells systemd that turns are taken, once a second."""

    def __init__(self, clock: Clock, notifier: Notifier) -> None:
        self._clock = clock
        self._notifier = notifier
        self._due_us = 0

    def beat(self) -> None:
        now_us = self._clock.mono_us()
        if now_us >= self._due_us:
            self._due_us = now_us + ALIVE_EVERY_US
            self._notifier.alive()


def _bus(config: MirrorConfig) -> BrokerBus:
    entropy = KernelEntropy()
    settings = config.mqtt.settings(config.service.name)

    def on_fault(fault: BusFault) -> None:
        logger.warning(fault.code, detail=fault.detail)

    return BrokerBus(settings, random=lambda: entropy.below(CHANCE_STEPS) / CHANCE_STEPS, on_fault=on_fault)


def _tell(alarm: Alarm) -> None:
    logger.warning(alarm.code, about=alarm.about, detail=alarm.detail)

"""Giving a signed order to a running table from the command line: the keys are files, on the way of the broker."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from controller.certify.keys import load_key
from controller.certify.note import Signer
from controller.cli.commands import path_option
from controller.cli.failure import SILENT, Failure, title_of
from controller.cli.language import Phrase, here
from controller.delivery.broker_settings import BrokerSettings
from controller.delivery.order_client import OrderClient, OrderUnansweredError
from controller.delivery.orders import write_order
from controller.delivery.topics import Topics
from controller.entropy import KernelEntropy
from controller.options import Config

WITHIN_S = 20.0
"""Patience for the broker and the table together."""


def order_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name a table and the desk's own certificate for the broker."""
    table = Phrase("La configuration de la table, pour son broker.", "The table's configuration, for its broker.")
    mine = Phrase("Le certificat de ce poste de travail.", "The certificate of this workstation.")
    its_key = Phrase("La clé de ce certificat.", "The key of this certificate.")
    command = path_option("--certificate-key", metavar="FILE", phrase=its_key)(command)
    command = path_option("--certificate", metavar="FILE", phrase=mine)(command)
    return path_option("--config", metavar="FILE", required=True, phrase=table)(command)


def give_order(
    config: Config,
    certificate: tuple[Path | None, Path | None],
    verb: str,
    arguments: dict[str, object],
    *keys: Path,
) -> dict[str, Any]:
    """Sign an order with these keys, send it, and return the certified answer.

    Raises KeyFault, Failure (E-ORDER-UNANSWERED, or the code with which the table refused).
    """
    signers = [load_key(key) for key in keys]
    answer = asyncio.run(_send(config, certificate, verb, arguments, signers))
    if not answer["ok"]:
        said = here(answer.get("message", ""), answer.get("message_en", ""))
        raise Failure(answer["code"], said or title_of(answer["code"]), 1)
    return answer


async def _send(
    config: Config,
    certificate: tuple[Path | None, Path | None],
    verb: str,
    arguments: dict[str, object],
    signers: list[Signer],
) -> dict[str, Any]:
    from controller.delivery.broker import BrokerBus  # heavy, and only needed here

    name = f"desk-{KernelEntropy().hex(4)}"
    settings = BrokerSettings(
        host=config.mqtt.host,
        port=config.mqtt.port,
        client_id=name,
        ca_path=config.mqtt.ca if any(certificate) else None,
        certificate_path=certificate[0],
        key_path=certificate[1],
    )
    told: list[str] = []
    bus = BrokerBus(settings, random=lambda: 0.5, on_fault=lambda fault: told.append(f"{fault.code} {fault.detail}"))
    client = OrderClient(bus, Topics(config.site, config.table.name), name)
    first, *more = signers
    try:
        return await client.order(lambda challenge: write_order(first, challenge, verb, arguments, *more), WITHIN_S)
    except OrderUnansweredError as unanswered:
        sent = here("l'ordre est parti", "the order was sent") if unanswered.sent else here("rien envoyé", "not sent")
        raise Failure(unanswered.code, " ; ".join([unanswered.topic, sent, *told]), SILENT) from None

"""Finding the running table and asking it, over the socket of ``controller/status.py``.

--socket PATH      this one
--config FILE      beside that table's journal, or in the runtime folder that systemd made for it
neither            the one table that runs on this machine; else the demonstration in this folder
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.cli.commands import path_option
from controller.cli.failure import SILENT, Failure
from controller.cli.language import Phrase, colon, here
from controller.options import Config
from controller.status import ask

RUNTIME = Path("/run/table-controller")
"""Where systemd puts each table's socket: one folder for each."""

DEMONSTRATION = Path("var/demo/status.sock")
"""The socket of a demonstration that runs in this folder."""

SOCKET = "status.sock"


@dataclass(frozen=True, slots=True)
class Link:
    """A running table, or what would be its socket: ``config`` is its configuration, where that is known."""

    sockets: tuple[Path, ...]
    config: Config | None

    @property
    def socket(self) -> Path:
        """The socket that is there, else the first place where it could be."""
        return next((path for path in self.sockets if path.exists()), self.sockets[0])

    def ask(self, question: str = "status", timeout_s: float = 5.0) -> dict[str, Any]:
        """Ask. Raises Failure (E-STATUS-SILENT, or the code that was answered)."""
        return asyncio.run(self.asked(question, timeout_s))

    async def asked(self, question: str = "status", timeout_s: float = 5.0) -> dict[str, Any]:
        """See ``ask``."""
        try:
            answer = await ask(self.socket, question, timeout_s)
        except PermissionError as error:
            allowed = here(" ; il faut être du groupe tabled", "; your account must be in the group tabled")
            raise Failure("E-STATUS-SILENT", f"{self.socket}{colon()}{error.strerror}{allowed}", SILENT) from None
        except TimeoutError:
            slow = here(f"pas de réponse en {timeout_s:g} s", f"no answer within {timeout_s:g} s")
            raise Failure("E-STATUS-SILENT", f"{self.socket}{colon()}{slow}", SILENT) from None
        except (OSError, json.JSONDecodeError):
            nobody = here("aucune table ne répond à", "no table answers at")
            raise Failure("E-STATUS-SILENT", f"{nobody} {' / '.join(map(str, self.sockets))}", SILENT) from None
        if "code" in answer and "message" in answer:
            raise Failure(answer["code"], answer["message"], SILENT)
        return answer


def link_to(config: Path | None, socket: Path | None) -> Link:
    """The table that the options mean. Raises Failure (E-TABLE-UNNAMED) and ConfigError."""
    if config is not None:
        from controller.config import load

        loaded = load(config)
        return Link((socket,) if socket else sockets_of(loaded), loaded)
    if socket is not None:
        return Link((socket,), None)
    running = sorted(RUNTIME.glob(f"*/{SOCKET}"))
    if len(running) > 1:
        tables = ", ".join(map(str, running))
        raise Failure(
            "E-TABLE-UNNAMED", here(f"plusieurs tables ici : {tables}", f"several tables run here: {tables}"), SILENT
        )
    if not running and not DEMONSTRATION.exists():
        missing = here("aucune table en marche sur cette machine", "no table runs on this machine")
        raise Failure("E-TABLE-UNNAMED", missing, SILENT)
    return Link((*running, DEMONSTRATION), None)


def sockets_of(config: Config) -> tuple[Path, ...]:
    """Where the daemon of this configuration may answer."""
    return (config.journal.file.parent / SOCKET, RUNTIME / config.table.name / SOCKET)


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name a running table."""
    named = Phrase("La configuration de la table.", "The table's configuration.")
    where = Phrase("La prise locale de la table en marche.", "The local socket of the running table.")
    command = path_option("--socket", metavar="PATH", phrase=where)(command)
    return path_option("--config", metavar="FILE", phrase=named)(command)


SILENT_EXIT = Phrase("aucune table ne répond", "no table answers")

"""The configuration of a mirror or a witness: one TOML file, refused whole with every mistake that it has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from controller.config_document import absolute, read_document
from controller.config_faults import NAME, ConfigError, ConfigFault, refused, short
from controller.options import MqttSection

SQLITE, POSTGRESQL = "sqlite", "postgresql"
"""The schemes of a store's URL."""

PATHS = (("service", "policy"), ("service", "key"), ("mqtt", "ca"), ("mqtt", "certificate"), ("mqtt", "key"))
"""The options that name files: a relative one starts at the configuration's own folder."""

FRENCH: Mapping[str, str] = {
    "service": "Ce que fait ce service.",
    "service.mode": '"mirror" garde toutes les écritures et acquitte ; "witness" ne garde que les racines.',
    "service.name": "Nom sur le serveur de messages ; d'un témoin, aussi son sujet.",
    "service.key": 'La clé de contre-signature : un chemin, ou "credential:NOM" pour une clé donnée par systemd.',
    "service.policy": "Le fichier qui nomme les journaux suivis et leurs clés (c2sp.org/tlog-policy).",
    "service.store": "Où tout est gardé : un fichier SQLite, ou une adresse postgresql://.",
    "mqtt": "Le serveur de messages du réseau du casino.",
    "mqtt.host": "Son adresse.",
    "mqtt.port": "8883 avec TLS.",
}
"""What each option that may be missing means."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ServiceSection(_Section):
    """What this service does."""

    mode: Literal["mirror", "witness"] = Field(
        description='"mirror" keeps every entry and acknowledges; "witness" keeps roots only.'
    )
    name: str = Field(pattern=NAME, description="Its name at the broker; of a witness, also its topic.")
    key: str = Field(description='The cosigning key: a path, or "credential:NAME" for a systemd credential.')
    policy: Path = Field(strict=False, description="The file that names the journals and their keys.")
    volatile: bool = Field(default=False, description="Permit a store that forgets at power-off; rehearsal only.")
    store: str = Field(min_length=1, description="Where all is kept: an SQLite file, or a postgresql:// address.")


class MirrorConfig(_Section):
    """The configuration of a mirror or a witness."""

    service: ServiceSection
    mqtt: MqttSection


def load(path: Path) -> MirrorConfig:
    """Read a configuration. Raises ConfigError with every mistake."""
    document = _absolute(read_document(path), path.resolve().parent)
    faults = list(_contradictions(document))
    try:
        config = MirrorConfig.model_validate(document)
    except ValidationError as error:
        raise ConfigError(path, [*map(_fault, error.errors()), *faults]) from None
    if faults:
        raise ConfigError(path, faults)
    return config


def _absolute(document: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    found = absolute(document, folder, PATHS)
    store = _option(found, "service", "store")
    if isinstance(store, str) and "://" not in store:
        found["service"]["store"] = str(folder / store)
    return found


def _option(document: Mapping[str, Any], section: str, option: str) -> Any:
    options = document.get(section)
    return options.get(option) if isinstance(options, dict) else None


def _contradictions(document: Mapping[str, Any]) -> list[ConfigFault]:
    faults = []
    proofs = [_option(document, "mqtt", option) is not None for option in ("ca", "certificate", "key")]
    if any(proofs) and not all(proofs):
        english, french = "TLS needs ca, certificate and key together", "TLS demande ca, certificate et key ensemble"
        faults.append(ConfigFault("mqtt", "", english, french))
    store = _option(document, "service", "store")
    if isinstance(store, str) and "://" in store and urlsplit(store).scheme not in (SQLITE, POSTGRESQL):
        english = "must be a file, sqlite:///FILE or postgresql://…"
        french = "doit être un fichier, sqlite:///FICHIER ou postgresql://…"
        faults.append(ConfigFault("service.store", short(urlsplit(store).scheme), english, french))
    return faults


def _fault(detail: ErrorDetails) -> ConfigFault:
    key = ".".join(map(str, detail["loc"]))
    match detail["type"]:
        case "extra_forbidden":
            return ConfigFault(key, short(detail["input"]), "unknown option", "option inconnue")
        case "missing":
            return ConfigFault(key, "", f"is missing: {_meaning(detail['loc'])}", f"manque : {FRENCH[key]}")
        case _:
            return refused(key, detail)


def _meaning(loc: tuple[int | str, ...]) -> str:
    """What an option, or a section, that is missing would say."""
    section: Any = MirrorConfig.model_fields[str(loc[0])].annotation
    if len(loc) == 1:
        return str(section.__doc__)
    return str(section.model_fields[str(loc[1])].description)

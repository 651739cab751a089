"""The public keys of a configured table: from its private ones, else from what stands beside its journal."""

from controller.certify.faults import KeyFault
from controller.certify.keys import load_key
from controller.certify.log_keys import LogKeys
from controller.cli.target import VKEY
from controller.config_document import credential
from controller.options import Config


def public_keys(config: Config) -> LogKeys | None:
    """The keys that sign for the table now, in the order in which they came into use; None when none can be read."""
    private = [key for key in (config.journal.previous_key, config.journal.key) if key is not None]
    try:
        return LogKeys.of(*(load_key(credential(key)).verifier for key in private))
    except (KeyFault, KeyError):
        beside = config.journal.file.with_name(VKEY)
    try:
        return LogKeys.parse(beside.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError, KeyFault):
        return None

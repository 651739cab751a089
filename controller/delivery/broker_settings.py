"""Where the broker is, who we are to it, and the files that prove it."""

import ssl
from dataclasses import dataclass
from pathlib import Path


class CredentialsError(Exception):
    """A certificate, key or password file cannot be used. ``code`` is explained by ``tablectl explain``."""

    code = "E-MQTT-CREDENTIALS"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """With ``ca_path`` the connection is TLS 1.3 and the certificate is our identity; without, it is plain (loopback).

    Raises ValueError (E-MQTT-SETTINGS), naming everything that is wrong at once.
    """

    host: str
    client_id: str
    port: int = 8883
    ca_path: Path | None = None
    certificate_path: Path | None = None
    key_path: Path | None = None
    username: str | None = None
    password_path: Path | None = None
    keepalive_s: int = 10
    retry_first_s: float = 0.25
    retry_last_s: float = 15.0

    def __post_init__(self) -> None:
        proofs = (self.ca_path, self.certificate_path, self.key_path)
        name = self.client_id
        wrong = {
            "host: must not be empty": not self.host,
            f"client_id: is {name!r}, must be 1 to 64 printable ASCII characters": not (
                1 <= len(name) <= 64 and name.isascii() and name.isprintable()
            ),
            f"port: is {self.port}, must be 1 to 65535": not 1 <= self.port <= 65_535,
            f"keepalive_s: is {self.keepalive_s}, must be 1 to 600": not 1 <= self.keepalive_s <= 600,
            "ca_path, certificate_path, key_path: all three, or none": any(proofs) and not all(proofs),
            "password_path: needs a username": self.password_path is not None and self.username is None,
            "retry_first_s, retry_last_s: must be 0 < first <= last": not 0 < self.retry_first_s <= self.retry_last_s,
        }
        found = [text for text, is_wrong in wrong.items() if is_wrong]
        if found:
            raise ValueError("E-MQTT-SETTINGS " + "; ".join(found))

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted and both ends show a certificate."""
        return self.ca_path is not None

    def tls_context(self) -> ssl.SSLContext | None:
        """The context for one connection: read from the files each time, so that a renewed certificate is taken up.

        TLS 1.3 only, the broker's certificate and name are checked. Raises CredentialsError.
        """
        if self.ca_path is None or self.certificate_path is None:
            return None
        try:
            context = ssl.create_default_context(cafile=str(self.ca_path))
            context.load_cert_chain(str(self.certificate_path), self.key_path and str(self.key_path))
        except OSError as error:  # ssl.SSLError is one
            files = f"{self.ca_path}, {self.certificate_path}, {self.key_path}"
            raise CredentialsError(f"{error.strerror or error} (one of {files})") from error
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context

    def password(self) -> str | None:
        """The password, the first line of its file, or None. Raises CredentialsError."""
        if self.password_path is None:
            return None
        try:
            return self.password_path.read_text(encoding="utf-8").split("\n", 1)[0]
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialsError(f"{self.password_path}: {error}") from error

"""The mirror's configuration: the example starts, and every mistake is told at once, in two languages."""

from pathlib import Path

import pytest

from controller.config_faults import ConfigError
from controller.mirror.faults import MirrorFault
from controller.mirror.options import FRENCH, MirrorConfig, load
from controller.mirror.stores import open_store, read_store

GOOD = """\
[service]
mode = "witness"
name = "caisse"
key = "caisse.key"
policy = "policy"
store = "caisse.sqlite"

[mqtt]
host = "127.0.0.1"
port = 1883
"""


def refused(folder: Path, text: str) -> dict[str, str]:
    path = folder / "mirror.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(path)
    for fault in caught.value.faults:
        assert fault.said("fr") != fault.said("en")
    return {fault.key: fault.said("en") for fault in caught.value.faults}


def test_mirror_options_of_the_example_are_right(root: Path) -> None:
    config = load(root / "config" / "mirror" / "mirror.toml")
    assert (config.service.mode, config.service.name, config.mqtt.port) == ("mirror", "mirror", 8883)


def test_mirror_options_paths_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "mirror.toml").write_text(GOOD)
    service = load(tmp_path / "mirror.toml").service
    assert (service.key, service.policy, service.store) == (
        str(tmp_path / "caisse.key"),
        tmp_path / "policy",
        str(tmp_path / "caisse.sqlite"),
    )


def test_mirror_options_with_several_mistakes_are_refused_with_all_of_them(tmp_path: Path) -> None:
    text = GOOD.replace("witness", "observer").replace('"caisse"', '"La Caisse"').replace("port", "prot")
    faults = refused(tmp_path, text.replace('store = "caisse.sqlite"', 'store = "mysql://x"') + 'ca = "ca.pem"\n')
    assert set(faults) == {"service.mode", "service.name", "mqtt.prot", "mqtt.port", "service.store", "mqtt"}
    assert faults["service.store"].startswith("must be a file")
    assert faults["mqtt"] == "TLS needs ca, certificate and key together"


def test_mirror_options_of_an_empty_file_say_what_is_missing(tmp_path: Path) -> None:
    assert set(refused(tmp_path, "")) == {"service", "mqtt"}
    assert set(refused(tmp_path, "[service]\n[mqtt]\n")) == {
        *(f"service.{name}" for name in ("mode", "name", "key", "policy", "store")),
        *(f"mqtt.{name}" for name in ("host", "port")),
    }


@pytest.mark.parametrize("text", ["[service", "service = 5", "\udcff"])
def test_mirror_options_that_are_no_configuration_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mirror.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError):
        load(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "nowhere.toml")


def test_mirror_options_are_all_explained_in_french() -> None:
    needed = {"service", "mqtt"}
    for section, field in MirrorConfig.model_fields.items():
        assert field.annotation is not None
        options = field.annotation.model_fields.items()
        needed |= {f"{section}.{name}" for name, option in options if option.is_required()}
    assert needed <= set(FRENCH)


def test_store_by_its_address_is_a_file_or_a_url(tmp_path: Path) -> None:
    for at, address in enumerate((str(tmp_path / "0" / "m"), f"sqlite:///{tmp_path}/1/m")):
        (tmp_path / str(at)).mkdir()
        open_store(address, allow_volatile=True).close()
        read_store(address).close()
        assert (tmp_path / str(at) / "m").exists()
    for use in (open_store, read_store):
        with pytest.raises(MirrorFault, match="PostgreSQL"):
            use("postgresql://mirror@127.0.0.1:1/nowhere")


def test_store_in_postgresql_without_its_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "controller.mirror.postgres_store", raising=False)
    with pytest.raises(MirrorFault, match="E-MIRROR-POSTGRES"):
        open_store("postgresql://mirror@127.0.0.1/mirror")

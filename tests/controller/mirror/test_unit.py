"""The unit of the mirror: understood by systemd, closed, at one with the configuration and the accounts."""

import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.mirror.app import EXIT_CONFIG
from controller.mirror.options import load

EXPOSURE_TENTHS = 15


@pytest.fixture
def unit(root: Path, tmp_path: Path) -> Path:
    """The unit, with a program that exists on this machine."""
    text = (root / "systemd" / "table-mirror.service").read_text(encoding="utf-8")
    path = tmp_path / "table-mirror.service"
    path.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE), encoding="utf-8")
    return path


def option(path: Path, name: str) -> str:
    (value,) = re.findall(rf"^{name}=(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return str(value)


def exposure(analyze: str, path: Path) -> int:
    command = (analyze, "security", "--offline=true", "--no-pager", f"--threshold={EXPOSURE_TENTHS}", f"./{path.name}")
    return subprocess.run(command, cwd=path.parent, capture_output=True, check=False).returncode


def test_mirror_unit_read_by_systemd_has_no_errors(unit: Path, program: Callable[[str], str]) -> None:
    command = (program("systemd-analyze"), "verify", "--man=no", "--recursive-errors=no", str(unit))
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    ours = [line for line in said.splitlines() if "table-mirror" in line]
    assert [line for line in ours if not re.search("RestartSteps|RestartMaxDelaySec", line)] == []


def test_mirror_unit_exposure_is_within_the_bound(unit: Path, program: Callable[[str], str]) -> None:
    analyze = program("systemd-analyze")
    assert exposure(analyze, unit) == 0
    text = unit.read_text(encoding="utf-8")
    unit.write_text(text.replace("CapabilityBoundingSet=", "#"), encoding="utf-8")
    assert exposure(analyze, unit) != 0


def test_mirror_unit_runs_the_example_configuration_with_the_key_that_it_is_given(root: Path) -> None:
    path = root / "systemd" / "table-mirror.service"
    command = option(path, "ExecStart")
    assert command == "/opt/table-controller/bin/tablectl mirror run --config /etc/table-mirror/mirror.toml"
    example = load(root / "config" / "mirror" / "mirror.toml")
    name, _, file = option(path, "LoadCredentialEncrypted").partition(":")
    assert example.service.key == f"credential:{name}"
    assert Path(file).parent == example.service.policy.parent == Path("/etc/table-mirror")
    assert example.service.store.startswith(f"/var/lib/{option(path, 'StateDirectory')}/")


def test_mirror_unit_user_and_folder_are_made_and_a_person_must_mend_what_it_cannot(root: Path) -> None:
    path = root / "systemd" / "table-mirror.service"
    accounts = (root / "systemd" / "sysusers.d" / "table-controller.conf").read_text(encoding="utf-8")
    folders = (root / "systemd" / "tmpfiles.d" / "table-controller.conf").read_text(encoding="utf-8")
    user = option(path, "User")
    assert re.search(rf"^u +{user} ", accounts, re.MULTILINE)
    assert re.search(rf"^d +/etc/table-mirror +0750 root +{user} ", folders, re.MULTILINE)
    assert option(path, "RestartPreventExitStatus") == str(EXIT_CONFIG)


def test_mirror_unit_identity_at_the_broker_is_one_of_the_access_list(root: Path) -> None:
    name = tomllib.loads((root / "config" / "mirror" / "mirror.toml").read_text(encoding="utf-8"))["service"]["name"]
    assert f"user {name}\n" in (root / "config" / "mosquitto" / "acl").read_text(encoding="utf-8")

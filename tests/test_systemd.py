"""The units, rules and accounts under ``systemd/``: understood by systemd, closed, at one with the rest."""

import re
import shlex
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.app import EXIT_CONFIG
from controller.service import BEAT_US

SERVICES = ("tabled", "tabled-verify")
EXPOSURE_TENTHS = 15
"""1.5 by ``systemd-analyze security``, where 10 is a unit without any protection."""

UDEV_PAIR = re.compile(r'(?P<key>[A-Z]+)(?:\{(?P<attribute>\w+)\})?(?P<operator>==|!=|\+=|=)"(?P<value>[^"]*)"')
UDEV_MATCHES = {"SUBSYSTEM", "KERNEL", "ATTR", "ATTRS"}
UDEV_ASSIGNMENTS = {"SYMLINK": "+=", "TAG": "+=", "GROUP": "=", "MODE": "=", "ENV": "="}


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "systemd"


@pytest.fixture
def instances(folder: Path, tmp_path: Path) -> Path:
    """The units as those of table t07, with programs that exist on this machine."""
    for unit in folder.glob("*@.*"):
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(encoding="utf-8"), flags=re.MULTILINE)
        (tmp_path / unit.name.replace("@.", "@t07.")).write_text(text, encoding="utf-8")
    return tmp_path


def unit(path: Path) -> dict[str, list[str]]:
    """The options of a unit file, each with all its values; every line must be a comment, a section or an option."""
    options: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "[")):
            name, separator, value = line.partition("=")
            assert separator, f"{path.name}: {line!r}"
            options[name].append(value)
    return options


def table_of(path: Path) -> list[list[str]]:
    """The lines of a sysusers, tmpfiles or modules-load file, as columns."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return [re.findall(r'"[^"]*"|\S+', line) for line in lines]


def rules_of(path: Path) -> list[list[re.Match[str]]]:
    """The udev rules, each as its pairs."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    rules = []
    for line in lines:
        pairs = [UDEV_PAIR.fullmatch(part) for part in line.split(", ")]
        assert all(pairs), line
        rules.append([pair for pair in pairs if pair])
    return rules


def run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)


# ── What systemd says of the units ────────────────────────────────────────────────────────────────────────────────────


def test_units_read_by_systemd_have_no_errors_and_no_unknown_options(
    instances: Path, program: Callable[[str], str]
) -> None:
    analyze = program("systemd-analyze")
    version = int(run(analyze, "--version").stdout.split()[1])
    answer = run(analyze, "verify", "--man=no", "--recursive-errors=no", *sorted(instances.iterdir()))
    newer = r"Unknown key( name)? '(RestartSteps|RestartMaxDelaySec)'"
    about_ours = [line for line in answer.stderr.splitlines() if "tabled" in line]
    complaints = [line for line in about_ours if version >= 254 or not re.search(newer, line)]
    assert complaints == []


def test_unit_with_a_misspelt_option_is_reported_by_systemd(instances: Path, program: Callable[[str], str]) -> None:
    path = instances / "tabled@t07.service"
    path.write_text(path.read_text(encoding="utf-8").replace("WatchdogSec", "WatchdogSecs"), encoding="utf-8")
    answer = run(program("systemd-analyze"), "verify", "--man=no", "--recursive-errors=no", path)
    assert "WatchdogSecs" in answer.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_exposure_of_a_service_is_within_the_bound(
    instances: Path, program: Callable[[str], str], service: str
) -> None:
    answer = exposure(program("systemd-analyze"), instances / f"{service}@t07.service")
    assert answer.returncode == 0, answer.stdout


def test_exposure_with_the_casinos_broker_allowed_is_within_the_bound(
    instances: Path, program: Callable[[str], str]
) -> None:
    path = instances / "tabled@t07.service"
    with path.open("a", encoding="utf-8") as drop_in:
        drop_in.write("[Service]\nIPAddressAllow=10.11.12.13\n")
    answer = exposure(program("systemd-analyze"), path)
    assert answer.returncode == 0, answer.stdout


def test_unit_that_loads_the_next_key_beside_the_present_one_is_understood_and_within_the_bound(
    instances: Path, program: Callable[[str], str]
) -> None:
    path = instances / "tabled@t07.service"
    (told,) = re.findall(
        r"^#   (LoadCredentialEncrypted=table-key-next:.*)$", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    with path.open("a", encoding="utf-8") as drop_in:
        drop_in.write(f"[Service]\n{told}\n")
    answer = exposure(program("systemd-analyze"), path)
    assert answer.returncode == 0, answer.stdout
    assert "LoadCredential" not in answer.stderr, answer.stderr


def test_exposure_of_a_service_with_every_capability_is_over_the_bound(
    instances: Path, program: Callable[[str], str]
) -> None:
    path = instances / "tabled@t07.service"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("CapabilityBoundingSet=", "#"), encoding="utf-8")
    answer = exposure(program("systemd-analyze"), path)
    assert answer.returncode != 0, answer.stdout


def exposure(analyze: str, path: Path) -> subprocess.CompletedProcess[str]:
    bound = f"--threshold={EXPOSURE_TENTHS}"
    return run(analyze, "security", "--offline=true", "--no-pager", bound, f"./{path.name}", cwd=path.parent)


def test_hour_of_the_verification_is_one_that_systemd_can_compute(folder: Path, program: Callable[[str], str]) -> None:
    (hour,) = unit(folder / "tabled-verify@.timer")["OnCalendar"]
    answer = run(program("systemd-analyze"), "calendar", hour)
    assert answer.returncode == 0, answer.stderr


# ── What the units say of themselves, on any machine ──────────────────────────────────────────────────────────────────


def test_daemon_of_an_instance_is_started_with_the_configuration_of_that_name(folder: Path) -> None:
    options = unit(folder / "tabled@.service")
    assert options["ExecStart"] == ["/opt/table-controller/bin/tabled --config /etc/table-controller/%i.toml"]
    assert options["AssertPathExists"] == ["/etc/table-controller/%i.toml"]
    assert (options["Type"], options["User"], options["NotifyAccess"]) == (["notify"], ["tabled"], ["main"])


def test_watchdog_of_the_daemon_leaves_time_for_several_beats(folder: Path) -> None:
    (seconds,) = unit(folder / "tabled@.service")["WatchdogSec"]
    assert 10 <= int(seconds) <= 20
    assert int(seconds) * 1_000_000 // 3 >= BEAT_US


def test_daemon_that_failed_is_restarted_unless_a_person_must_mend_it(folder: Path) -> None:
    options = unit(folder / "tabled@.service")
    assert (options["Restart"], options["StartLimitIntervalSec"]) == (["always"], ["0"])
    assert int(options["RestartSec"][0]) < int(options["RestartMaxDelaySec"][0])
    assert options["RestartPreventExitStatus"] == [str(EXIT_CONFIG)]


def test_devices_of_the_daemon_are_pins_buses_and_serial_lines_only(folder: Path) -> None:
    options = unit(folder / "tabled@.service")
    assert options["DevicePolicy"] == ["closed"]
    assert set(options["DeviceAllow"]) == {
        f"char-{kind} rw" for kind in ("gpiochip", "i2c", "ttyAMA", "ttyUSB", "ttyACM")
    }
    assert "PrivateDevices" not in options, "it would hide the chip of the header"


@pytest.mark.parametrize("service", SERVICES)
def test_service_has_no_privilege_and_writes_in_its_own_folder_only(folder: Path, service: str) -> None:
    options = unit(folder / f"{service}@.service")
    assert (options["CapabilityBoundingSet"], options["AmbientCapabilities"]) == ([""], [""])
    assert (options["NoNewPrivileges"], options["ProtectSystem"]) == (["yes"], ["strict"])
    assert options["StateDirectory"] == ["table-controller/%i"]
    assert "ReadWritePaths" not in options
    assert options["IPAddressDeny"] == ["any"]


def test_verification_reads_the_folder_that_the_daemon_writes(folder: Path) -> None:
    options = unit(folder / "tabled-verify@.service")
    assert "/opt/table-controller/bin/tablectl journal verify /var/lib/table-controller/%i " in options["ExecStart"][0]
    assert options["StateDirectory"] == unit(folder / "tabled@.service")["StateDirectory"]


def test_drivers_of_the_permitted_devices_are_loaded_before_the_start(folder: Path) -> None:
    """The kernel knows a kind of device only while its driver is loaded, and a kind is what DeviceAllow= permits."""
    loaded = {line[0] for line in table_of(folder / "modules-load.d" / "table-controller.conf")}
    assert loaded == {"usbserial", "cdc-acm", "i2c-dev"}


def test_timer_that_was_missed_is_made_up_for(folder: Path) -> None:
    assert unit(folder / "tabled-verify@.timer")["Persistent"] == ["yes"]


# ── Accounts and folders ──────────────────────────────────────────────────────────────────────────────────────────────


def test_accounts_are_made_by_systemd_in_an_empty_system(
    folder: Path, tmp_path: Path, program: Callable[[str], str]
) -> None:
    (tmp_path / "etc").mkdir()
    accounts = folder / "sysusers.d" / "table-controller.conf"
    answer = run(program("systemd-sysusers"), "--dry-run", f"--root={tmp_path}", accounts)
    assert answer.returncode == 0, answer.stderr
    for expected in ("user 'tabled'", "group 'gpio'", "group 'i2c'", "group 'dialout'"):
        assert f"Creating {expected}" in answer.stdout + answer.stderr


def test_folders_are_understood_by_systemd(folder: Path, tmp_path: Path, program: Callable[[str], str]) -> None:
    tmpfiles = program("systemd-tmpfiles")
    ours = folder / "tmpfiles.d" / "table-controller.conf"
    broken = tmp_path / "broken.conf"
    broken.write_text(ours.read_text(encoding="utf-8").replace("d ", "d? "), encoding="utf-8")
    for path, understood in ((ours, True), (broken, False)):
        # Every line is read, and none is inside the prefix: nothing is made.
        answer = run(tmpfiles, "--create", f"--root={tmp_path}", "--prefix=/nowhere", path)
        assert (answer.returncode == 0) is understood, answer.stderr


def test_accounts_that_units_rules_and_folders_name_are_all_made(folder: Path) -> None:
    lines = table_of(folder / "sysusers.d" / "table-controller.conf")
    users = {line[1] for line in lines if line[0] == "u"}
    groups = {line[1] for line in lines if line[0] in "ug"}
    memberships = {line[2] for line in lines if line[0] == "m" and line[1] == "tabled"}
    options = unit(folder / "tabled@.service")
    assert set(options["User"]) <= users
    assert set(options["SupplementaryGroups"][0].split()) <= groups & memberships
    rules = rules_of(folder / "70-table-wheel.rules")
    assert {pair["value"] for rule in rules for pair in rule if pair["key"] == "GROUP"} <= groups
    folders = table_of(folder / "tmpfiles.d" / "table-controller.conf")
    assert {line[3] for line in folders} <= users | {"root"}
    assert {line[4] for line in folders} <= groups | {"root"}


def test_folders_that_units_name_are_made_and_the_keys_belong_to_root_alone(folder: Path) -> None:
    lines = table_of(folder / "tmpfiles.d" / "table-controller.conf")
    assert [line for line in lines if line[0] != "d" or not re.fullmatch("0[0-7]{3}", line[2])] == []
    folders = {line[1]: line[2:5] for line in lines}
    (credential,) = unit(folder / "tabled@.service")["LoadCredentialEncrypted"]
    assert folders[str(Path(credential.partition(":")[2]).parent)] == ["0700", "root", "root"]
    assert {"/etc/table-controller", "/var/lib/table-controller", "/run/table-controller"} <= set(folders)


# ── Device names ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_device_rules_are_well_formed_and_match_before_they_assign(folder: Path) -> None:
    for rule in rules_of(folder / "70-table-wheel.rules"):
        kinds = [pair["key"] in UDEV_MATCHES and pair["operator"] == "==" for pair in rule]
        assert kinds == sorted(kinds, reverse=True)
        assert kinds.count(True) >= 1
        for pair in rule[kinds.count(True) :]:
            assert UDEV_ASSIGNMENTS.get(pair["key"]) == pair["operator"], pair[0]


def test_wheels_adapter_has_one_name_and_is_left_alone_by_the_modem_manager(folder: Path) -> None:
    rules = rules_of(folder / "70-table-wheel.rules")
    named = [rule for rule in rules if any(pair["key"] == "SYMLINK" for pair in rule)]
    ignored = [rule for rule in rules if any(pair["attribute"] == "ID_MM_DEVICE_IGNORE" for pair in rule)]
    assert [pair["value"] for rule in named for pair in rule if pair["key"] == "SYMLINK"] == ["table/wheel"]
    assert {pair["value"] for rule in ignored for pair in rule if pair["key"] == "SUBSYSTEM"} == {"usb", "tty"}
    assert len({ids(rule) for rule in (*named, *ignored)}) == 1


def ids(rule: list[re.Match[str]]) -> tuple[str, ...]:
    return tuple(pair["value"] for pair in rule if pair["attribute"] in ("idVendor", "idProduct"))


# ── What the example configurations rely on ───────────────────────────────────────────────────────────────────────────


def test_examples_of_real_tables_find_their_key_their_folder_and_their_wheel(root: Path, folder: Path) -> None:
    (credential,) = unit(folder / "tabled@.service")["LoadCredentialEncrypted"]
    symlinks = {
        f"/dev/{pair['value']}"
        for rule in rules_of(folder / "70-table-wheel.rules")
        for pair in rule
        if pair["key"] == "SYMLINK"
    }
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in (root / "config").glob("roulette-*.toml")]
    assert tables
    for options in tables:
        assert options["journal"]["key"] == f"credential:{credential.partition(':')[0]}"
        assert Path(options["journal"]["file"]).parent == Path("/var/lib/table-controller") / options["table"]["name"]
        assert options["wheel"]["port"] in symlinks


def shell_of(command: str) -> list[str]:
    """The command of a unit for table t07, as systemd runs it."""
    return [word.replace("$$", "$").replace("%i", "t07") for word in shlex.split(command)]


@pytest.mark.parametrize("believed", [False, True], ids=["keys", "policy"])
def test_verification_judges_by_the_policy_of_the_table_where_there_is_one(
    folder: Path, tmp_path: Path, believed: bool
) -> None:
    (command,) = unit(folder / "tabled-verify@.service")["ExecStart"]
    tablectl, etc = tmp_path / "tablectl", tmp_path / "etc"
    tablectl.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 2\n', encoding="utf-8")
    tablectl.chmod(0o755)
    etc.mkdir()
    if believed:
        (etc / "t07.policy").touch()
    here = command.replace("/opt/table-controller/bin/tablectl", str(tablectl))
    words = shell_of(here.replace("/etc/table-controller", str(etc)))
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    policy = ["--policy", str(etc / "t07.policy")] if believed else []
    assert answer.stdout.split() == ["journal", "verify", "/var/lib/table-controller/t07", *policy]
    assert answer.returncode == 2


def test_verification_that_fails_is_said_as_critical_and_one_that_succeeds_is_not(folder: Path) -> None:
    (command,) = unit(folder / "tabled-verify@.service")["ExecStopPost"]

    def said(result: str, status: str) -> str:
        environment = {"SERVICE_RESULT": result, "EXIT_STATUS": status}
        return subprocess.run(shell_of(command), env=environment, capture_output=True, text=True, check=True).stdout

    assert said("success", "0") == ""
    assert said("exit-code", "1").startswith("<2>table t07: ")
    assert "status 1" in said("exit-code", "1")

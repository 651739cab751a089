"""The Makefile: it sets up once, says what is missing, and passes on what was asked for.

The interpreter is played by a shell script that writes down how it was called, so that nothing is installed.
"""

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.house.source_tree import ROOT

INTERPRETER = """\
#!/bin/sh
# Plays Python {version}: answers its version, makes environments that hold a copy of itself, writes down the rest.
echo "$*" >> "{calls}"
case "$*" in
  --version) echo "Python {version}" ;;
  "-m venv "*) for folder; do :; done; mkdir -p "$folder/bin"; cp "$0" "$folder/bin/python" ;;
  *"-m pip install"*) echo "Collecting click==8.5.1"; {pip} ;;
  *version_info*) {recent} ;;
  *ensurepip*) {venv} ;;
esac
"""


@dataclass(frozen=True)
class Project:
    """A copy of what the Makefile reads, and an interpreter that is only played."""

    folder: Path
    make: Callable[..., subprocess.CompletedProcess[str]]

    @property
    def calls(self) -> list[str]:
        """How the interpreter was called so far, oldest first; asking empties it."""
        file = self.folder / "calls"
        calls = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return [call for call in calls if call.startswith("-m")]

    def python(self, version: str = "3.11.9", **answers: str) -> None:
        """Put another interpreter in place; ``answers`` are shell commands, such as ``recent="exit 1"``."""
        script = INTERPRETER.format(
            version=version, calls=self.folder / "calls", **{"pip": ":", "recent": ":", "venv": ":"} | answers
        )
        (self.folder / "python").write_text(script, encoding="utf-8")
        (self.folder / "python").chmod(0o755)

    def command(self, name: str) -> None:
        """Put a command into the environment that says how it was called."""
        path = self.folder / ".venv" / "bin" / name
        path.write_text(f'#!/bin/sh\necho "{name} $*"\n', encoding="utf-8")
        path.chmod(0o755)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "roulette-launcher.toml").touch()
    (tmp_path / "config" / "fortune-wheel.toml").touch()
    environment = {"PATH": os.environ["PATH"]}  # and nothing that an outer make was asked for

    def make(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", "PYTHON=./python", *arguments],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    made = Project(tmp_path, make)
    made.python()
    return made


def test_make_without_a_target_explains_every_target(project: Project) -> None:
    answer = project.make()
    assert answer.returncode == 0
    for target in ("run", "test", "check", "bench", "docs", "install", "clean"):
        assert f"make {target} " in answer.stdout


def test_setup_happens_once_and_shows_what_it_fetches(project: Project) -> None:
    first = project.make("venv")
    assert first.returncode == 0, first.stderr
    assert "click==8.5.1" in first.stdout
    assert len(project.calls) == 3
    assert (project.make("venv").stdout, project.calls) == ("", [])


def test_setup_happens_again_when_the_lock_changed(project: Project) -> None:
    project.make("venv")
    assert project.calls
    with (project.folder / "requirements.lock").open("a", encoding="utf-8") as lock:
        lock.write("# one more line\n")
    project.make("venv")
    assert [call for call in project.calls if "venv" in call] == ["-m venv .venv"]


def test_setup_starts_afresh_when_the_interpreter_changed(project: Project) -> None:
    project.make("venv")
    project.python("3.13.0")
    assert project.calls
    project.make("venv")
    assert project.calls[0] == "-m venv --clear .venv"


def test_setup_that_could_not_fetch_shows_the_reason_and_is_tried_again(project: Project) -> None:
    project.python(pip="echo 'ERROR: the registry is away'; exit 1")
    answer = project.make("venv")
    assert answer.returncode != 0
    assert "ERROR: the registry is away" in answer.stdout
    project.python()
    assert project.make("venv").returncode == 0


@pytest.mark.parametrize("target", ["run", "test", "check", "bench", "docs", "install"])
def test_python_that_is_too_old_is_refused_in_one_sentence(project: Project, target: str) -> None:
    project.python("3.9.2", recent="exit 1")
    answer = project.make(target)
    assert answer.returncode != 0
    assert "Python 3.9.2 is too old: Python 3.11 or later is needed. Name another: make PYTHON=" in answer.stdout
    assert project.calls == []


def test_python_that_is_absent_is_named_in_one_sentence(project: Project) -> None:
    (project.folder / "python").unlink()
    answer = project.make("test")
    assert answer.returncode != 0
    assert "There is no './python' here. Install Python 3.11 or later" in answer.stdout


def test_python_without_venv_is_refused_with_what_to_install(project: Project) -> None:
    project.python(venv="exit 1")
    answer = project.make("test")
    assert answer.returncode != 0
    assert "apt install python3-venv" in answer.stdout


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        ((), "tablectl demo --config config/roulette-launcher.toml"),
        (
            ("COUPS=20", "SPEED=10", "SEED=7"),
            "tablectl demo --config config/roulette-launcher.toml --coups 20 --speed 10 --seed 7",
        ),
        (("GAME=fortune-wheel",), "tablectl demo --config config/fortune-wheel.toml"),
        (("CONFIG=my table.toml",), "tablectl demo --config my table.toml"),
    ],
)
def test_run_passes_on_what_was_asked_for(project: Project, asked: tuple[str, ...], command: str) -> None:
    project.make("venv")
    project.command("tablectl")
    assert project.make("run", *asked).stdout == f"{command}\n"


def test_run_of_a_game_that_does_not_exist_lists_those_that_do(project: Project) -> None:
    project.make("venv")
    answer = project.make("run", "GAME=baccarat")
    assert answer.returncode != 0
    assert "There is no game 'baccarat'" in answer.stdout
    assert "config/fortune-wheel.toml" in answer.stdout


def test_test_target_passes_its_arguments_to_pytest(project: Project) -> None:
    project.make("venv")
    assert project.calls
    project.make("test", "ARGS=tests/games -k stake")
    assert project.calls == ["-m pytest tests/games -k stake"]


def test_install_under_a_relative_prefix_is_refused(project: Project) -> None:
    answer = project.make("install", "PREFIX=table")
    assert answer.returncode != 0
    assert "must be absolute" in answer.stdout


def test_install_for_a_package_forgets_where_it_was_staged(project: Project) -> None:
    (project.folder / "systemd").mkdir()
    unit = project.folder / "systemd" / "tabled@.service"
    unit.write_text("ExecStart=/opt/table-controller/bin/tabled\n", encoding="utf-8")
    unit.with_name("INSTALL.txt").touch()
    staged = project.folder / "staging" / "opt" / "table"
    (staged / "bin").mkdir(parents=True)
    (staged / "bin" / "tabled").write_text(f"#!{staged}/bin/python\n", encoding="utf-8")
    (staged / "pyvenv.cfg").write_text(f"command = python -m venv {staged}\n", encoding="utf-8")
    answer = project.make("install", "PREFIX=/opt/table", f"DESTDIR={project.folder}/staging")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert (staged / "bin" / "tabled").read_text(encoding="utf-8") == "#!/opt/table/bin/python\n"
    share = staged / "share" / "table-controller"
    assert (share / "systemd" / unit.name).read_text(encoding="utf-8") == "ExecStart=/opt/table/bin/tabled\n"
    assert (share / "config" / "roulette-launcher.toml").exists()


def steps(project: Project) -> str:
    """What is printed at the end of an installation of the real examples and units."""
    shutil.copytree(ROOT / "config", project.folder / "config", dirs_exist_ok=True)
    shutil.copytree(ROOT / "systemd", project.folder / "systemd")
    staged = project.folder / "staging" / "opt" / "table"
    staged.mkdir(parents=True)
    (staged / "pyvenv.cfg").write_text(f"command = python -m venv {staged}\n", encoding="utf-8")
    answer = project.make("install", "PREFIX=/opt/table", f"DESTDIR={project.folder}/staging")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout.partition("Installed.")[2]


def test_install_prints_next_steps_whose_instance_is_the_name_in_the_example(project: Project) -> None:
    printed = steps(project)
    example = re.search(r"cp config/(\S+) ", printed)
    assert example is not None
    name = tomllib.loads((ROOT / "config" / example[1]).read_text(encoding="utf-8"))["table"]["name"]
    named = re.findall(r"@([a-z0-9-]+)|/keys/([a-z0-9-]+)\.|/etc/table-controller/([a-z0-9-]+)\.toml", printed)
    assert {found for one in named for found in one if found} == {name}
    assert "/opt/table/bin/tablectl" in printed
    assert "/opt/table-controller" not in printed


def test_install_prints_next_steps_with_every_path_that_the_unit_reads(project: Project) -> None:
    printed = steps(project)
    unit = (ROOT / "systemd" / "tabled@.service").read_text(encoding="utf-8")
    settings = [line for line in unit.splitlines() if not line.startswith("#")]
    paths = set(re.findall(r"/(?:etc|var/lib)/table-controller/\S*%i[.a-z]*", "\n".join(settings)))
    reads = {"/etc/table-controller/%i.toml", "/etc/table-controller/keys/%i.cred"}
    assert paths == reads | {"/var/lib/table-controller/%i"}
    for path in paths:
        assert path.replace("%i", "t07") in printed


def test_install_prints_next_steps_in_the_order_in_which_each_can_be_done(project: Project) -> None:
    printed = steps(project)
    wanted = (
        "systemd-sysusers",
        "systemd-tmpfiles --create",
        "udevadm trigger",
        "cp config/",
        "tablectl config check",
        "tablectl key create",
        "systemd-creds encrypt --name=table-key",
        "tablectl journal create",
        "shred",
        "IPAddressAllow=",
        "systemctl enable --now",
    )
    assert [at for at in map(printed.find, wanted) if at < 0] == []
    assert sorted(wanted, key=printed.find) == list(wanted)


def test_clean_removes_the_environment_and_what_was_played(project: Project) -> None:
    project.make("venv")
    (project.folder / "var").mkdir()
    assert project.make("clean").returncode == 0
    assert not (project.folder / ".venv").exists()
    assert not (project.folder / "var").exists()

"""``tablectl`` as it is typed, journals that simulations wrote, and daemons that answer what real ones answered."""

import asyncio
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from controller.cli import main
from controller.codec import to_plain
from controller.daemon import Daemon
from controller.rehearsal import simulate as rehearsal
from controller.service import LoopLag, ServiceHealth, TimeQuality
from controller.status import Answer, StatusServer
from drivers.twin.wheel_faults import FaultPlan, read_plan

PATIENCE_S = 20.0
"""What has not happened by then never will."""

Run = Callable[..., Result]
Status = dict[str, Any]

SERVICE = ServiceHealth(
    lag=LoopLag(last_us=120, worst_us=900, beats=60),
    withheld="",
    time_quality=TimeQuality.NTP,
    board=None,
    unsent_notifications=0,
)
"""What the heartbeat of a daemon in good health tells."""


@pytest.fixture
def run() -> Run:
    """``run("journal", "tail", folder)`` is the command typed on a terminal that speaks English."""

    def type_command(*words: object, locale: str = "en_GB.UTF-8", **extra: Any) -> Result:
        environment = {"LC_ALL": locale, "LC_MESSAGES": None, "LANG": None, "NO_COLOR": None}
        return CliRunner().invoke(main, [str(word) for word in words], env=environment, **extra)

    return type_command


@pytest.fixture(scope="session")
def launcher(root: Path) -> Path:
    """The example of a table with a launcher."""
    return root / "config" / "roulette-launcher.toml"


@pytest.fixture(scope="session")
def croupier(root: Path) -> Path:
    """The example of a table with a croupier."""
    return root / "config" / "roulette-croupier.toml"


@pytest.fixture(scope="session")
def evening(launcher: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a simulated evening; copy it to change it."""
    folder = tmp_path_factory.mktemp("evening")
    rehearsal.simulate(launcher, folder, coups=5, seed=7)
    return folder


@pytest.fixture
def own_evening(evening: Path, tmp_path: Path) -> Path:
    """A copy of the evening, to be changed."""
    return Path(shutil.copytree(evening, tmp_path / "evening"))


# ── Daemons ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def statuses_of(config: Path, folder: Path, faults: FaultPlan | None = None) -> list[Status]:
    """What a daemon would have answered after each commit of an evening."""
    told: list[Status] = []

    class Observed(Daemon):
        def _on_certified(self, certified: Any) -> None:
            super()._on_certified(certified)
            document = {**self.status(), "service": to_plain(SERVICE), "config": str(folder / "table.toml")}
            told.append(json.loads(json.dumps(document)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rehearsal, "Daemon", Observed)
        rehearsal.simulate(config, folder, coups=3, seed=7, faults=faults)
    return told


@pytest.fixture(scope="session")
def croupier_statuses(croupier: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Status]:
    """An evening with a croupier, during which the wheel stops once."""
    return statuses_of(croupier, tmp_path_factory.mktemp("croupier"), read_plan("sensor-fault@2"))


@pytest.fixture(scope="session")
def launcher_statuses(launcher: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Status]:
    """An evening with a launcher."""
    return statuses_of(launcher, tmp_path_factory.mktemp("launcher"))


@pytest.fixture
def betting(croupier_statuses: list[Status]) -> Status:
    """The bets of a croupier's table are open, and every post has staked."""
    staked = (one for one in croupier_statuses if one["table"]["board"]["phase"] == "betting" and all_staked(one))
    chosen: Status = json.loads(json.dumps(next(staked)))
    return chosen


def all_staked(status: Status) -> bool:
    """Whether every post has stakes in play."""
    posts = status["table"]["posts"].values()
    return len(posts) == 6 and all(post["staked"] for post in posts)


class Serve:
    """``serve(status)`` is the socket of a daemon that answers this; other questions may be given by name."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._servers: list[_Server] = []

    def __call__(self, status: Mapping[str, Any], **others: Mapping[str, Any]) -> Path:
        # A socket's path must be short, and the name of a test is not.
        server = _Server(self._folders.mktemp("s") / "status.sock", {"status": status, **others})
        self._servers.append(server)
        server.start()
        return server.path

    def wait_until_asked(self, times: int) -> None:
        """Wait until the last daemon has been asked so often."""
        for _ in range(times):
            assert self._servers[-1].asked.acquire(timeout=PATIENCE_S)

    def stop(self) -> None:
        """Stop all daemons."""
        for server in self._servers:
            server.stop()


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Daemons that answer what they are told to."""
    daemons = Serve(tmp_path_factory)
    yield daemons
    daemons.stop()


class _Server:
    """A status socket in a thread of its own."""

    def __init__(self, path: Path, documents: Mapping[str, Mapping[str, Any]]) -> None:
        self.path = path
        self.asked = threading.Semaphore(0)
        self._documents = documents
        self._listening = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def start(self) -> None:
        self._thread.start()
        assert self._listening.wait(PATIENCE_S)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(PATIENCE_S)

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        answers = {name.replace("_", "-"): self._answer(document) for name, document in self._documents.items()}
        async with StatusServer(self.path, answers):
            self._listening.set()
            await self._ended.wait()

    def _answer(self, document: Mapping[str, Any]) -> Answer:
        async def answer() -> Mapping[str, Any]:
            self.asked.release()
            return document

        return answer

"""Runs the tests of one module against its mutants, each in a copy of a process that has everything loaded.

    import, collect ──► first copy: all tests, traced: which line is run by which test, and how long it takes
                   ├──► a copy for each mutant: exchange the code of the functions, run the tests that reach it
                   └──► …
    a copy in which nothing is loaded: import the mutant in place of the module, collect, run

The second way takes longer. It is for mistakes that work when the module is loaded, and for those in functions that
had done their work by then.

    python -m proof.mutant_runner '{"path": …, "name": …, "tests": […], "share": 0, "shares": 2, "at_most": 400}'

It prints one line of JSON for each mutant: its number in the sample, and whether it was killed.
"""

import contextlib
import gc
import importlib
import inspect
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from time import perf_counter
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, settings

from proof.mutants import Mutant, mutants, sample

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("cryptography.hazmat.primitives.asymmetric.ed25519", "pydantic", "aiomqtt", "sqlite3", "structlog", "asyncio")
"""What all copies need and no mutant changes."""

WAITING_S = 10
WORKING_S = 1
LIMIT_TIMES = 20
"""A test of a mutant may wait, and work, so long, or so many times as long as without it: then it counts as failed."""

LOADING_S = 2.0
"""What pytest and the program may take to be loaded, before it is multiplied."""

MEMORY_BYTES = 1 << 30
SURVIVED, KILLED, NOT_EXCHANGEABLE = 0, 1, 2

_ALREADY = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
_ARGUMENTS = "-q -x -s -p no:cacheprovider -p no:randomly --timeout=0 --no-header --tb=no --hypothesis-profile=mutants"


@dataclass(frozen=True, slots=True)
class Task:
    """The module ``name`` in the file ``path``, its test files, and which share of at most so many mutants to run."""

    path: str
    name: str
    tests: tuple[str, ...]
    share: int
    shares: int
    at_most: int


@dataclass(frozen=True, slots=True)
class Reached:
    """A test that passes: its identifier, how long it takes, and the lines of the module that it runs."""

    test: str
    seconds: float
    lines: frozenset[int]


def main() -> None:
    """Run what the argument says."""
    said = json.loads(sys.argv[1])
    task = Task(**{**said, "tests": tuple(said["tests"])})
    with _silence() as answers:
        for number, killed in run(task):
            print(json.dumps({"number": number, "killed": killed}), file=answers, flush=True)


def run(task: Task) -> Iterator[tuple[int, bool]]:
    """Number and fate of each mutant of the share."""
    settings.register_profile(
        "mutants",
        max_examples=40,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
    )
    for name in HEAVY:
        importlib.import_module(name)
    source = Path(task.path).read_text(encoding="utf-8")
    chosen = sample(mutants(source), task.at_most)
    mine = list(enumerate(chosen))[task.share :: task.shares]
    live = [(number, mutant) for number, mutant in mine if mutant.in_body]
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory(prefix="mutants-") as work:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = work
        session = os.fork()
        if not session:
            os.close(reading)
            with os.fdopen(writing, "w", encoding="utf-8") as answers:
                status = _pytest(task.tests, _Exchanging(task, source, live, answers))
            os._exit(status)
        os.close(writing)
        reached: list[Reached] = []
        remaining = dict(mine)
        with os.fdopen(reading, encoding="utf-8") as answers:
            for line in answers:
                said = json.loads(line)
                if "tests" in said:
                    reached = [Reached(test, took, frozenset(lines)) for test, took, lines in said["tests"]]
                elif said["killed"] or said["certain"]:
                    del remaining[said["number"]]
                    yield said["number"], said["killed"]
        _, status = os.waitpid(session, 0)
        if status or not reached:
            raise RuntimeError(f"the tests of {task.name} cannot be run: {task.tests}")
        for number, mutant in remaining.items():
            tests = _reaching(mutant, reached) if mutant.in_body else reached
            yield number, bool(tests) and _loaded(task, mutant, tests)


def _reaching(mutant: Mutant, reached: Sequence[Reached]) -> list[Reached]:
    """The tests that run the mutant's lines."""
    lines = range(mutant.first, mutant.last + 1)
    return [one for one in reached if not one.lines.isdisjoint(lines)]


def _set_limit(seconds: float) -> None:
    """End this process when a test takes much longer than ``seconds``, by the clock or by the processor."""
    signal.alarm(max(WAITING_S, int(LIMIT_TIMES * seconds)))
    signal.setitimer(signal.ITIMER_PROF, max(WORKING_S, LIMIT_TIMES * seconds / 2))


def _pytest(tests: Sequence[str], plugin: object) -> int:
    return int(pytest.main([*_ARGUMENTS.split(), "-W", _ALREADY, *tests], plugins=[plugin]))


@contextlib.contextmanager
def _silence() -> Iterator[Any]:
    """The tests' own output goes nowhere; what is yielded writes to where it went before."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            if not os.environ.get("MUTANTS_ALOUD"):
                os.dup2(nowhere.fileno(), 2)
        yield answers


def _copy(act: Callable[[], int]) -> int:
    """What ``act`` returns in a copy of this process; KILLED when it takes too long, too much memory, or crashes."""
    folder = tempfile.mkdtemp(dir=os.environ["PYTEST_DEBUG_TEMPROOT"])
    child = os.fork()
    if not child:
        os.setsid()
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        status = KILLED
        try:
            status = act()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what the tests started and could not end
    shutil.rmtree(folder, ignore_errors=True)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else KILLED


# ── The first way ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _Exchanging:
    """A plugin of pytest that, in place of running the tests once, runs them for each mutant."""

    def __init__(self, task: Task, source: str, live: Sequence[tuple[int, Mutant]], answers: Any) -> None:
        self._path = task.path
        self._live = live
        self._answers = answers
        self._original = compile(source, task.path, "exec", dont_inherit=True)
        self._run_before: set[int] = set()
        self._before = contextlib.ExitStack()
        self._before.enter_context(_tracing(task.path, self._run_before))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Called when everything is collected."""
        self._before.close()
        reached = self._trace(session)
        self._say(tests=[[one.test, one.seconds, sorted(one.lines)] for one in reached])
        items = {item.nodeid: item for item in session.items}
        limits = {one.test: one.seconds for one in reached}
        functions = [one for one in gc.get_objects() if _is_of(one, self._path)]
        for number, mutant in self._live:
            tests = _reaching(mutant, reached)
            chosen = [items[one.test] for one in tests]

            certain = self._run_before.isdisjoint(range(mutant.first, mutant.last + 1))

            def act(mutant: Mutant = mutant, chosen: list[pytest.Item] = chosen) -> int:
                if not _exchange(functions, self._original, mutant.code(self._path)):
                    return NOT_EXCHANGEABLE
                return KILLED if _fails(session, chosen, limits) else SURVIVED

            status = _copy(act) if tests else SURVIVED
            self._say(number=number, killed=status == KILLED, certain=certain and status == SURVIVED)
        return True

    def _say(self, **said: object) -> None:
        print(json.dumps(said), file=self._answers, flush=True)

    def _trace(self, session: pytest.Session) -> list[Reached]:
        """All tests that pass, fastest first."""
        with tempfile.TemporaryFile("w+", encoding="utf-8") as found:

            def act() -> int:
                for item in session.items:
                    lines, started = set[int](), perf_counter()
                    with _tracing(self._path, lines):
                        failed = _fails(session, [item], {})
                    if not failed:
                        took = perf_counter() - started
                        print(json.dumps([item.nodeid, took, sorted(lines)]), file=found, flush=True)
                    session.testsfailed = 0
                return SURVIVED

            _copy(act)
            found.seek(0)
            reached = [Reached(test, took, frozenset(lines)) for test, took, lines in map(json.loads, found)]
        return sorted(reached, key=lambda one: one.seconds)


def _fails(session: pytest.Session, items: Sequence[pytest.Item], usual_s: Mapping[str, float]) -> bool:
    """Whether one of the tests fails or takes too long; all that was set up is taken down."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        if item.nodeid in usual_s:
            _set_limit(usual_s[item.nodeid])
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            session._setupstate.teardown_exact(None)
            return True
    return False


@contextlib.contextmanager
def _tracing(path: str, lines: set[int]) -> Iterator[None]:
    """Note the lines of a file's functions that run."""

    def on_line(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            lines.add(frame.f_lineno)
        return on_line

    def on_call(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != path or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return None
        lines.add(frame.f_lineno)
        return on_line

    threading.settrace(on_call)
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type of the argument is wider than declared


def _is_of(thing: object, path: str) -> bool:
    return type(thing) is FunctionType and thing.__code__.co_filename == path


def _exchange(functions: Sequence[FunctionType], original: CodeType, mutated: CodeType) -> bool:
    """Give every function the code that it has in the mutant; whether that could be done."""
    others = dict(_differences(original, mutated))
    for function in functions:
        code = others.get(function.__code__)
        if code is not None:
            if code.co_freevars != function.__code__.co_freevars:
                return False
            function.__code__ = code
    return True


def _differences(original: CodeType, mutated: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Each piece of code that is not the same in both, and what it has become."""
    before, after = _inner(original), _inner(mutated)
    if len(before) != len(after):
        return
    for one, other in zip(before, after, strict=True):
        if one != other:
            yield one, other
            yield from _differences(one, other)


def _inner(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


# ── The second way ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Mutated(SourceFileLoader):
    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code


class _Finder:
    """Finds the mutant where the module is asked for."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        self._name = name
        self._path = path
        self._code = code

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = _Mutated(fullname, self._path, self._code)
        return spec_from_file_location(fullname, self._path, loader=loader)


class _Chosen:
    """A plugin of pytest that leaves only the given tests, in the given order."""

    def __init__(self, tests: Sequence[Reached]) -> None:
        self._place = {one.test: place for place, one in enumerate(tests)}
        self._usual_s = {one.test: one.seconds for one in tests}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._place), key=lambda item: self._place[item.nodeid]
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        _set_limit(self._usual_s[item.nodeid])


def _loaded(task: Task, mutant: Mutant, tests: Sequence[Reached]) -> bool:
    """Whether the tests kill the mutant when it is loaded in place of the module."""

    def act() -> int:
        sys.meta_path.insert(0, _Finder(task.name, task.path, mutant.code(task.path)))  # a finder by its methods
        _set_limit(LOADING_S)
        names = {Path(one.test.partition("::")[0]).name for one in tests}
        files = [test for test in task.tests if Path(test).name in names]
        return SURVIVED if _pytest(files, _Chosen(tests)) == pytest.ExitCode.OK else KILLED

    return _copy(act) == KILLED


if __name__ == "__main__":
    main()

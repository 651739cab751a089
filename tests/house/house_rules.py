"""The house rules that a machine can check, each as a function from a file's syntax tree to what breaks the rule.

A finding reads ``<line>: <what>``. The tests beside this file run every rule over the product, and over a sample that
breaks it, because a rule that cannot fail protects nobody.
"""

import ast
import re
from collections.abc import Iterator

CLOCK_READINGS = {
    *(f"time.{name}{unit}" for name in ("time", "monotonic", "perf_counter", "process_time") for unit in ("", "_ns")),
    "time.clock_gettime",
    "time.clock_gettime_ns",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
}
CHANCE = ("random", "secrets", "uuid", "os.urandom", "os.getrandom")
SLEEPS = ("time.sleep", "asyncio.sleep")
BROAD = ("Exception", "BaseException")
CODE = re.compile(r"\bE-[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*\b")
TEST_NAME = re.compile(r"test_[a-z0-9]+(_[a-z0-9]+){2,}")
FACT_KIND = re.compile(r"fr\.[a-z_]+(\.[a-z_]+)+\.v\d+")
VAGUE = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "stuff"}
MARKS = {"law", "parametrize"}

# Written so that this file does not break its own rules.
UNFINISHED = re.compile(
    r"\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K]|TB[D]|WI[P])\b"
    r"|(?i:lorem [i]psum|coming [s]oon|not [y]et (?:implemented|written)|place[h]older)"
)
MACHINE_PATH = re.compile(r"(?<![\w.$}-])/(?:home|root|work|tmp|Users)/\w")
INDEX_HOST = re.compile(r"py[p]i\.org|python[h]osted|index[-_]url|find[-_]links", re.IGNORECASE)


def imported(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for: ``from datetime import date as d`` gives ``{"d": "datetime.date"}``."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def libraries(tree: ast.Module) -> set[str]:
    """The top-level packages that a file imports."""
    return {origin.split(".")[0] for origin in imported(tree).values()}


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def _mentions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every imported thing that the code mentions, as (line, dotted origin)."""
    names = imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            dotted = _dotted(node, names)
            if dotted:
                yield node.lineno, dotted


def clock_readings(tree: ast.Module) -> list[str]:
    """Readings of a clock, the event loop's included."""
    names = imported(tree)
    named = [f"{line}: {dotted}" for line, dotted in _mentions(tree) if dotted in CLOCK_READINGS]
    of_loops = [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "time"
        and not _dotted(node.func, names)
    ]
    return named + of_loops


def chance(tree: ast.Module) -> list[str]:
    """Uses of any source of randomness."""
    return [
        f"{line}: {dotted}"
        for line, dotted in _mentions(tree)
        if any(dotted == source or dotted.startswith(f"{source}.") for source in CHANCE)
    ]


def inexact_numbers(tree: ast.Module) -> list[str]:
    """Floats, true divisions and roundings: none has a place where money is counted."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=float() | complex()):
                found.append(f"{node.lineno}: {node.value!r}")
            case ast.BinOp(op=ast.Div()) | ast.AugAssign(op=ast.Div()):
                found.append(f"{node.lineno}: {ast.unparse(node)}")
            case ast.Call(func=ast.Name(id="float" | "round")):
                found.append(f"{node.lineno}: {ast.unparse(node)}")
            case _:
                pass
    return found


def sleeps(tree: ast.Module) -> list[str]:
    """Sleeps other than ``asyncio.sleep(0)``, which only lets others run."""
    names = imported(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _dotted(node.func, names) in SLEEPS:
            length = node.args[0] if node.args else None
            if not (isinstance(length, ast.Constant) and length.value == 0):
                found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


def prints(tree: ast.Module) -> list[str]:
    """Calls of ``print``."""
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def _is_broad(kind: ast.expr | None) -> bool:
    match kind:
        case None | ast.Name(id="Exception" | "BaseException"):
            return True
        case ast.Tuple(elts=kinds):
            return any(_is_broad(one) for one in kinds)
        case _:
            return False


def broad_excepts(tree: ast.Module) -> list[str]:
    """Handlers that catch anything, and ``suppress`` of everything."""
    names = imported(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type):
            found.append(f"{node.lineno}: except {ast.unparse(node.type) if node.type else ''}".rstrip())
        elif isinstance(node, ast.Call) and _dotted(node.func, names) == "contextlib.suppress":
            found += [f"{node.lineno}: {ast.unparse(node)}" for kind in node.args if _is_broad(kind)]
    return found


def _prose(tree: ast.Module) -> set[int]:
    """The identity of every string that only documents."""
    return {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def codes(tree: ast.Module) -> set[str]:
    """The E-… codes that the code itself gives out; those in docstrings and comments do not count."""
    prose = _prose(tree)
    return {
        code
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
        for code in CODE.findall(node.value)
    }


def vague_names(module: str) -> list[str]:
    """The words of a module's name that say nothing."""
    return [word for part in module.split(".") for word in part.split("_") if word in VAGUE]


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def nameless_tests(tree: ast.Module) -> list[str]:
    """Tests whose name is not a sentence: subject, situation, outcome."""
    return [
        f"{function.lineno}: {function.name}"
        for function in _functions(tree)
        if function.name.startswith("test") and not TEST_NAME.fullmatch(function.name)
    ]


def foreign_marks(tree: ast.Module) -> list[str]:
    """Marks of pytest that the house does not use."""
    marks = [(line, dotted.split(".")) for line, dotted in _mentions(tree) if dotted.startswith("pytest.mark.")]
    return [f"{line}: {mark[2]}" for line, mark in marks if mark[2] not in MARKS]


def articles(tree: ast.Module) -> list[str]:
    """The articles of ``pytest.mark.law`` in a file, as written."""
    names = imported(tree)
    return [
        ast.unparse(node.args[0]).strip("'\"") if node.args else ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _dotted(node.func, names) == "pytest.mark.law"
    ]


def lines_matching(pattern: re.Pattern[str], text: str) -> list[str]:
    """The lines of a text where ``pattern`` is found."""
    return [f"{number}: {line.strip()}" for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]

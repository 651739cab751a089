"""Mutants: a module with one small mistake in it, of the kinds that people make.

    <  becomes  <= or >=        and  becomes  or        n   becomes  n + 1 or n - 1      a call is left out
    +  becomes  -               not  is left out        "a" becomes  ""                  a raise is left out
    a result becomes None       a condition is turned   a slice loses an end             two arguments change places

Not tried, because nobody can be wrong about them in a way that matters: documentation, type annotations, decorators,
sentences for people (and so SQL, which a test cannot help running), what is logged, and the details of a fault. The
code of a fault is tried.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.Pow: ast.Mult,
}
_EXCHANGED = {"min": "max", "max": "min", "any": "all", "all": "any"}

_UNTRIED_FIELDS = {"annotation", "returns", "decorator_list", "type_params", "type_comment", "pattern", "keywords"}
"""Of functions, classes and cases; ``keywords`` are left out of classes only."""

_UNTRIED_CALLS = {"TypeVar", "NewType", "get_logger", "getLogger", "assert_never", "cast"}
_LOGS = {"log", "_log", "logger", "_logger"}
_SENTENCE = re.compile(r"[^\W\d_]{2,},?[ \n]+[^\W\d_]|[^\W\d_]{2,} $|^ [^\W\d_]{2,}")
_FAULT_CODE = re.compile(r"E-[A-Z-]+")
_CHANGE_BOUND = 200

Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = tuple[ast.AST, str, int | None]
"""A node, one of its fields, and the position in it when it is a list."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake. ``first`` to ``last`` are the lines that reach it when they run.

    ``function`` is where it is, "" outside all functions; ``change`` says what is otherwise, and with a number which
    one it is, if the function has several that look the same. ``in_body`` is whether it changes nothing but code that
    runs when a function is called.
    """

    first: int
    last: int
    function: str
    change: str
    in_body: bool
    _place: Place = field(repr=False, compare=False)
    _tree: ast.Module = field(repr=False, compare=False)
    _replacement: ast.AST | None = field(repr=False, compare=False)

    def code(self, path: str) -> CodeType:
        """The whole module with the mistake in it, compiled as the file ``path``."""
        before = _put(self._place, self._replacement)
        try:
            return compile(ast.fix_missing_locations(self._tree), path, "exec", dont_inherit=True)
        finally:
            _put(self._place, before)


def _put(place: Place, node: ast.AST | None) -> ast.AST | None:
    """Replace what is in the place; returns what was."""
    holder, name, at = place
    if at is None:
        before: ast.AST | None = getattr(holder, name)
        setattr(holder, name, node)
        return before
    items = getattr(holder, name)
    before, items[at] = items[at], node
    return before


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where the walk is: the names around, whether in the body of a function, the statement, whether in a raise."""

    names: tuple[str, ...] = ()
    in_body: bool = False
    first: int = 0
    last: int = 0
    raising: bool = False


@dataclass(frozen=True, slots=True)
class _Edit:
    place: Place
    replacement: ast.AST | None
    scope: _Scope
    change: str


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    tree = ast.parse(source)
    counted: Counter[tuple[str, str]] = Counter()
    made = []
    for edit in _of_body(tree, "body", _Scope()):
        function, change = ".".join(edit.scope.names), edit.change
        counted[function, change] += 1
        if (number := counted[function, change]) > 1:
            change = f"{change} #{number}"
        scope = edit.scope
        made.append(
            Mutant(scope.first, scope.last, function, change, scope.in_body, edit.place, tree, edit.replacement)
        )
    return made


# ── Statements ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_body(holder: ast.AST, name: str, scope: _Scope) -> Iterator[_Edit]:
    for at, statement in enumerate(getattr(holder, name)):
        yield from _of_statement(statement, (holder, name, at), scope)


def _of_statement(statement: ast.stmt, place: Place, around: _Scope) -> Iterator[_Edit]:
    body = getattr(statement, "body", None)
    last = max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno or statement.lineno
    raising = isinstance(statement, ast.Raise)
    scope = _Scope(around.names, around.in_body, statement.lineno, last, raising)
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _of_function(statement, scope)
            return
        case ast.ClassDef():
            if not any(isinstance(base, ast.Name) and base.id == "Protocol" for base in statement.bases):
                yield from _of_body(statement, "body", _Scope((*scope.names, statement.name)))
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Expr(value=ast.Constant()):
            return
        case ast.Assign(targets=[ast.Name(id=("__slots__" | "__all__"))]):
            return
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))) if name in _LOGS:
            return
    for replacement, change in _instead(statement):
        yield _Edit(place, ast.copy_location(replacement, statement), scope, change)
    yield from _of_fields(statement, scope)


def _of_function(function: Function, scope: _Scope) -> Iterator[_Edit]:
    named = _Scope((*scope.names, function.name), scope.in_body, function.lineno, scope.last)
    yield from _of_fields(function.args, named)
    yield from _of_body(function, "body", _Scope(named.names, in_body=True))


def _instead(statement: ast.stmt) -> Iterator[tuple[ast.stmt, str]]:
    """What may stand in place of a statement, and how to say so."""
    text = ast.unparse(statement)[:_CHANGE_BOUND]
    match statement:
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None)), f"{text} → return None"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise():
            yield ast.Pass(), f"{text} → left out"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass(), f"{text} → left out"
        case ast.Assign(value=ast.Call() | ast.Await()):
            yield ast.Assign(statement.targets, ast.Constant(None)), f"{text} → None"
        case ast.Break():
            yield ast.Continue(), "break → continue"
        case ast.Continue():
            yield ast.Break(), "continue → break"


# ── Expressions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_fields(node: ast.AST, scope: _Scope) -> Iterator[_Edit]:
    for name, value in ast.iter_fields(node):
        if name in _UNTRIED_FIELDS and not (name == "keywords" and isinstance(node, ast.Call)):
            continue
        if isinstance(value, list):
            for at, item in enumerate(value):
                if isinstance(item, ast.stmt):
                    yield from _of_statement(item, (node, name, at), scope)
                elif isinstance(item, ast.AST):
                    yield from _of_node(item, (node, name, at), scope)
        elif isinstance(value, ast.AST):
            yield from _of_node(value, (node, name, None), scope)


def _of_node(node: ast.AST, place: Place, scope: _Scope) -> Iterator[_Edit]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _UNTRIED_CALLS:
        return
    if scope.raising and not _is_fault_code(node):
        if isinstance(node, ast.Call):
            yield from _of_fields(node, scope)
        return
    for replacement in _replacements(node, place):
        yield _Edit(place, ast.copy_location(replacement, node), scope, _change(node, place, replacement))
    yield from _of_fields(node, scope)


def _is_fault_code(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_FAULT_CODE.fullmatch(node.value))


def _change(node: ast.AST, place: Place, replacement: ast.AST) -> str:
    """The smallest piece of code that shows the difference."""
    holder = place[0]
    if not isinstance(holder, ast.expr | ast.Return | ast.Assign | ast.AugAssign | ast.Expr | ast.Assert | ast.keyword):
        return f"{_short(node)} → {_short(replacement)}"
    before = _short(holder)
    if before.endswith("…"):
        return f"{_short(node)} → {_short(replacement)}"
    _put(place, replacement)
    after = _short(holder)
    _put(place, node)
    return f"{before} → {after}"


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _CHANGE_BOUND else f"{text[:_CHANGE_BOUND]}…"


def _replacements(node: ast.AST, place: Place) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left, ops, comparators):
            for at, operator in enumerate(ops):
                for other in _COMPARED[type(operator)]:
                    yield ast.Compare(left, [*ops[:at], other(), *ops[at + 1 :]], comparators)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(left, op, right) if type(op) in _COMPUTED and not (_is_text(left) or _is_text(right)):
            yield ast.BinOp(left, _COMPUTED[type(op)](), right)
        case ast.Constant():
            yield from _other_constants(node, place)
        case ast.Call():
            yield from _other_calls(node)
        case ast.Slice(lower, upper, step):
            if lower is not None:
                yield ast.Slice(None, upper, step)
            if upper is not None:
                yield ast.Slice(lower, None, step)
    turned_otherwise = isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp)
    if _is_condition(place) and isinstance(node, ast.expr) and not turned_otherwise:
        yield ast.UnaryOp(ast.Not(), node)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _is_condition(place: Place) -> bool:
    holder, name, _ = place
    return (name == "test" and not isinstance(holder, ast.Assert)) or name in {"guard", "ifs"}


def _other_constants(node: ast.Constant, place: Place) -> Iterator[ast.expr]:
    value = node.value
    match value:
        case bool():
            yield ast.Constant(not value)
        case int():
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case str() if not _SENTENCE.search(value):
            yield ast.Constant("" if value else "mutant")
        case bytes():
            yield ast.Constant(b"" if value else b"mutant")


def _other_calls(call: ast.Call) -> Iterator[ast.expr]:
    arguments = call.args
    if len(arguments) > 1 and not any(isinstance(one, ast.Starred) for one in arguments[:2]):
        first, second, *others = arguments
        if ast.dump(first) != ast.dump(second):
            yield ast.Call(call.func, [second, first, *others], call.keywords)
    if isinstance(call.func, ast.Name) and call.func.id in _EXCHANGED:
        yield ast.Call(ast.Name(_EXCHANGED[call.func.id], ast.Load()), arguments, call.keywords)


def sample(found: Sequence[Mutant], at_most: int) -> list[Mutant]:
    """All of them, or so many at even distances, which every run chooses alike."""
    count = len(found)
    return list(found) if count <= at_most else [found[number * count // at_most] for number in range(at_most)]

"""The small language in which an experiment says what it should show.

A predicate is one comparison, or several joined by `and`:

        peak(total) between 4 and 16
        ratio(listen.false_wakeups, subscriber.false_wakeups) > 2
        sleeps(scheme=3) > 30 * sleeps(scheme=1)
        gets == done

A name is a metric of the experiment's run; `run.metric` is one of another run,
`published.name` a published value.  Axes in parentheses choose points.  A
metric of several points is a curve; a comparison of curves must hold at every
point.  The names below are functions of curves and numbers.

A predicate is evaluated once for every repeat.  The differences between the two
sides over the repeats give a mean and its 95 % interval: the predicate holds
clearly, or only by the mean, or not.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from dataclasses import dataclass
from typing import Any, Callable, Union

Curve = dict[float, float]
Value = Union[float, Curve]

# two-sided 95 % quantiles of Student's t
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}
CLEAR, WEAK, NOT = "holds", "weak", "does not hold"


class PredicateError(Exception):
    """A predicate that cannot be read, or names what the run does not have."""


class NotMeasured(PredicateError):
    """The run has no such figure, here or this time."""


def interval(values: list[float]) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval; 0 for a single value."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, STUDENT.get(len(values) - 1, 1.96) * math.sqrt(variance / len(values))


def wilson(number: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share, by Wilson's score: it is right for small numbers and for none, too."""
    if not of:
        return 0.0, 1.0
    z, share = 1.96, number / of
    middle, half = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return max(0.0, (middle - half) / (1 + z * z / of)), min(1.0, (middle + half) / (1 + z * z / of))


# -- functions


def _curve(value: Value, name: str) -> Curve:
    if not isinstance(value, dict):
        raise PredicateError(f"{name} needs a curve, which is a metric of several points")
    if not value:
        raise NotMeasured(f"{name}: no point was measured")
    return value


def _peak(value: Value) -> float:
    """Where the curve is highest."""
    curve = _curve(value, "peak")
    return max(curve, key=lambda x: curve[x])


def _ends(pick: Callable[[Any], float], name: str) -> Callable[[Value], float]:
    def end(value: Value) -> float:
        curve = _curve(value, name)
        return curve[pick(curve)]

    return end


def _of_values(function: Callable[..., float], name: str) -> Callable[..., float]:
    """min or max of a curve, or of several numbers."""

    def apply(*values: Value) -> float:
        flat = [number for value in values for number in (value.values() if isinstance(value, dict) else [value])]
        if not flat:
            raise NotMeasured(f"{name}: no point was measured")
        return function(flat)

    return apply


def _ratio(a: Value, b: Value) -> Value:
    return both(_divide, a, b)


def _divide(a: float, b: float) -> float:
    if b == 0:
        return math.inf if a > 0 else math.nan
    return a / b


def _off(a: Value, b: Value) -> Value:
    """Difference in per cent of b."""
    return both(lambda x, y: 0.0 if x == y else 100 * abs(x - y) / abs(y) if y else math.inf, a, b)


def _steps(value: Value) -> float:
    """The share of steps, from one point to the next, in which the curve rises."""
    curve = _curve(value, "rises")
    ys = [curve[x] for x in sorted(curve)]
    return sum(b > a for a, b in zip(ys, ys[1:])) / max(1, len(ys) - 1)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "peak": _peak,
    "first": _ends(min, "first"),
    "last": _ends(max, "last"),
    "min": _of_values(min, "min"),
    "max": _of_values(max, "max"),
    "sum": _of_values(sum, "sum"),
    "ratio": _ratio,
    "off": _off,
    "rises": _steps,
    "xs": lambda value: {x: x for x in _curve(value, "xs")},
    "abs": lambda value: {x: abs(y) for x, y in value.items()} if isinstance(value, dict) else abs(value),
}


def both(function: Callable[[float, float], float], a: Value, b: Value) -> Value:
    """Apply to numbers, or point by point where both have one."""
    if isinstance(a, dict) and isinstance(b, dict):
        return {x: function(a[x], b[x]) for x in sorted(a) if x in b}
    if isinstance(a, dict):
        return {x: function(y, b) for x, y in a.items()}  # type: ignore[arg-type]
    if isinstance(b, dict):
        return {x: function(a, y) for x, y in b.items()}
    return function(a, b)


# -- reading

OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
BETWEEN = re.compile(r"^(.+?)\s+between\s+(.+?)\s+and\s+(.+)$")


@dataclass(frozen=True)
class Comparison:
    """left operator right, as written."""

    left: ast.expr
    sign: str
    right: ast.expr

    def __str__(self) -> str:
        return f"{ast.unparse(self.left)} {self.sign} {ast.unparse(self.right)}"

    def turned(self) -> "Comparison":
        """What holds when this one does not."""
        return Comparison(self.left, OPPOSITE[self.sign], self.right)


def parse(text: str) -> list[Comparison]:
    """The comparisons of a predicate; an error that says which part is wrong."""
    found = BETWEEN.match(text)
    source = f"{found[2]} <= {found[1]} <= {found[3]}" if found else text
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except SyntaxError as error:
        raise PredicateError(f'"{text}": {error.msg}') from None
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    comparisons: list[Comparison] = []
    for part in parts:
        if not isinstance(part, ast.Compare):
            raise PredicateError(f'"{text}" compares nothing')
        operands = [part.left, *part.comparators]
        for operand in operands:
            _check(operand, text)
        for left, op, right in zip(operands, part.ops, operands[1:]):
            if type(op) not in COMPARISONS:
                raise PredicateError(f'"{text}": only <, <=, >, >=, ==, != and between compare')
            comparisons.append(Comparison(left, COMPARISONS[type(op)], right))
    return comparisons


def expression(text: str) -> ast.expr:
    """A single expression, such as a figure that is to be shown."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise PredicateError(f'"{text}": {error.msg}') from None
    _check(node, text)
    return node


def _check(node: ast.expr, text: str) -> None:
    """Only what the language has."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
        return
    if isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        _check(node.left, text)
        return _check(node.right, text)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _check(node.operand, text)
    if isinstance(node, ast.Call):
        called = node.func
        if node.keywords and node.args:
            raise PredicateError(f'"{text}": {ast.unparse(node)} has both axes and arguments')
        if node.args and not (isinstance(called, ast.Name) and called.id in FUNCTIONS):
            raise PredicateError(f'"{text}": there is no function {ast.unparse(called)}; there are {", ".join(sorted(FUNCTIONS))}')
        if node.keywords:
            _check(called, text)
        for operand in [*node.args, *(keyword.value for keyword in node.keywords)]:
            _check(operand, text)
        return None
    raise PredicateError(f'"{text}": {ast.unparse(node)} is not part of the language')


def metric_of(text: str) -> str:
    """The metric that an expression is of, without its run and its point; the expression itself if it is of several."""
    node = expression(text)
    if isinstance(node, ast.Call) and node.keywords:
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)


def run_of(text: str) -> str:
    """The run that the metric of an expression is of; empty: that of the experiment."""
    node = expression(text)
    if isinstance(node, ast.Call) and node.keywords:
        node = node.func
    return node.value.id if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""


def point_of(text: str) -> dict[str, Any]:
    """The point that an expression is of: its axes in parentheses."""
    node = expression(text)
    return {str(keyword.arg): keyword.value.value for keyword in getattr(node, "keywords", []) if isinstance(keyword.value, ast.Constant)}


def names(expression: ast.expr) -> set[tuple[str, str]]:
    """The metrics it uses: (run or "", metric)."""
    found: set[tuple[str, str]] = set()

    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.Attribute):
            found.add((node.value.id, node.attr))  # type: ignore[attr-defined]
        elif isinstance(node, ast.Name):
            found.add(("", node.id))
        elif isinstance(node, ast.Call):
            if not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords):
                walk(node.func)
            for operand in node.args:
                walk(operand)
        else:
            for child in ast.iter_child_nodes(node):
                walk(child)

    walk(expression)
    return found


# -- evaluation

# lookup(run or "", metric, axes) -> value in one repeat
Lookup = Callable[[str, str, dict[str, Any]], Value]


def evaluate(node: ast.expr, lookup: Lookup) -> Any:
    """The value of an expression in one repeat."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return lookup("", node.id, {})
    if isinstance(node, ast.Attribute):
        return lookup(node.value.id, node.attr, {})  # type: ignore[attr-defined]
    if isinstance(node, ast.UnaryOp):
        return both(operator.mul, -1, evaluate(node.operand, lookup))
    if isinstance(node, ast.BinOp):
        return both(OPERATORS[type(node.op)], evaluate(node.left, lookup), evaluate(node.right, lookup))
    assert isinstance(node, ast.Call)
    if node.keywords:
        axes = {str(keyword.arg): evaluate(keyword.value, lookup) for keyword in node.keywords}
        if isinstance(node.func, ast.Attribute):
            return lookup(node.func.value.id, node.func.attr, axes)  # type: ignore[attr-defined]
        return lookup("", node.func.id, axes)  # type: ignore[attr-defined]
    return FUNCTIONS[node.func.id](*(evaluate(argument, lookup) for argument in node.args))  # type: ignore[attr-defined]


@dataclass
class Outcome:
    """How one comparison came out."""

    text: str
    verdict: str
    said: str  # both sides, in figures


def _margins(comparison: Comparison, lookup: Lookup) -> tuple[Value, Value, Curve]:
    """Both sides and, point by point, how far the comparison is from failing (negative: it fails)."""
    left, right = evaluate(comparison.left, lookup), evaluate(comparison.right, lookup)
    difference = both(operator.sub, left, right)
    points = difference if isinstance(difference, dict) else {0.0: difference}
    if not points:
        raise NotMeasured(f"{comparison}: no point was measured")
    if comparison.sign in "<=":
        points = {x: -y for x, y in points.items()}
    return left, right, points


def judge_text(text: str, lookups: list[Lookup]) -> Outcome:
    """A predicate, of one comparison or several, over all repeats: it is no better than the worst of them."""
    outcomes = [judge(comparison, lookups) for comparison in parse(text)]
    worst = max((o.verdict for o in outcomes), key=[CLEAR, WEAK, NOT].index)
    return Outcome(text, worst, " and ".join(o.said for o in outcomes))


def judge(comparison: Comparison, lookups: list[Lookup]) -> Outcome:
    """One comparison over all repeats."""
    found = [_margins(comparison, lookup) for lookup in lookups]
    said = f"{shown([left for left, _, _ in found])} {comparison.sign} {shown([right for _, right, _ in found])}"
    points = [margins for _, _, margins in found]
    if comparison.sign in ("==", "!="):
        equal = [all(y == 0 for y in margins.values()) for margins in points]
        wanted = comparison.sign == "=="
        verdict = CLEAR if all(same == wanted for same in equal) else NOT
        return Outcome(str(comparison), verdict, said)
    verdicts = {_verdict(comparison.sign, [margins[x] for margins in points if x in margins]) for x in points[0]}
    return Outcome(str(comparison), NOT if NOT in verdicts else WEAK if WEAK in verdicts else CLEAR, said)


def _verdict(sign: str, margins: list[float]) -> str:
    mean, error = interval(margins)
    if math.isnan(mean):
        return NOT
    enough = (lambda value: value >= 0) if "=" in sign else (lambda value: value > 0)
    if not enough(mean):
        return NOT
    return CLEAR if math.isinf(mean) or enough(mean - error) else WEAK


def shown(values: list[Value]) -> str:
    """A side of a comparison in figures: mean and error, or first, peak and last of a curve."""
    if isinstance(values[0], dict):
        xs = sorted(values[0])
        marked = xs if len(xs) <= 4 else sorted({xs[0], max(xs, key=lambda x: values[0][x]), xs[-1]})
        return "[" + ", ".join(f"{x:g}: {shown([curve.get(x, math.nan) for curve in values])}" for x in marked) + "]"
    mean, error = interval([float(value) for value in values])  # type: ignore[arg-type]
    return f"{figure(mean)} ± {figure(error)}" if error else figure(mean)


def figure(value: float) -> str:
    """Four digits, with separators for thousands."""
    if value != value or math.isinf(value):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

"""One figure of a benchmark: what was measured, beside what, how it should be, and whether it is.

Every figure is a quotient. Its denominator is measured in the same run where the goal is a ratio, and is the goal
itself where the goal is a number.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """``ratio`` is measured ÷ denominator; ``measured`` and ``beside`` say both in words and units."""

    name: str
    measured: str
    beside: str
    ratio: float
    bound: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.ratio >= self.bound if self.at_least else self.ratio <= self.bound

    @property
    def line(self) -> str:
        """One line for a person."""
        goal = f"{'≥' if self.at_least else '≤'} {self.bound:g}"
        verdict = "met" if self.met else "NOT MET"
        return f"{self.name:<34} {self.measured:>22} ÷ {self.beside:<48} = {self.ratio:6.2f}  goal {goal:<6} {verdict}"


def rate(name: str, per_second: float, goal: int, what: str, how: str = "") -> Figure:
    """A figure whose goal is so many a second."""
    beside = f"goal of {goal:,}/s{how and f' ({how})'}"
    ratio = per_second / goal
    return Figure(name=name, measured=f"{per_second:,.0f} {what}/s", beside=beside, ratio=ratio, bound=1, at_least=True)

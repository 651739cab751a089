"""What a proof has to say: a claim, what was found, out of how many, and what had to be found."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """``found`` of ``tried``, where ``goal`` says what is wanted in words and ``met`` whether it is so."""

    claim: str
    found: int
    tried: int
    what: str
    goal: str
    met: bool

    @property
    def figure(self) -> str:
        """The figure with its denominator."""
        return f"{self.found:,} of {self.tried:,} {self.what}"

    @property
    def line(self) -> str:
        """One line for a person."""
        return f"{self.claim:<72} {self.figure:<48} goal: {self.goal:<28} {'met' if self.met else 'NOT MET'}"


def none_of(claim: str, found: int, tried: int, what: str, *, at_least: int) -> Result:
    """Nothing bad may be found, in at least so many tries."""
    goal = f"0 of at least {at_least:,}"
    return Result(claim=claim, found=found, tried=tried, what=what, goal=goal, met=found == 0 and tried >= at_least)


def all_of(claim: str, found: int, tried: int, what: str, *, at_least: int) -> Result:
    """Everything must be found, in at least so many tries."""
    goal = f"all of at least {at_least:,}"
    met = found == tried and tried >= at_least
    return Result(claim=claim, found=found, tried=tried, what=what, goal=goal, met=met)


def share_of(claim: str, found: int, tried: int, what: str, *, percent: int) -> Result:
    """At least so many per cent must be found."""
    met = tried > 0 and 100 * found >= percent * tried
    return Result(claim=claim, found=found, tried=tried, what=what, goal=f"at least {percent} %", met=met)

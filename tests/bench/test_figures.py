"""The benchmarks as far as they can be wrong without a clock: what counts as met, and that every figure can be run."""

from importlib import import_module

import pytest

from bench.__main__ import BENCHES, main
from bench.figures import Figure, rate


def ratio(value: float, *, at_least: bool) -> Figure:
    return Figure(name="f", measured="3 ms", beside="2 ms", ratio=value, bound=1.5, at_least=at_least)


@pytest.mark.parametrize(
    ("value", "at_least", "met"), [(1.5, False, True), (1.51, False, False), (1.5, True, True), (1.49, True, False)]
)
def test_figure_at_its_bound_is_met_and_beyond_it_is_not(value: float, at_least: bool, met: bool) -> None:
    figure = ratio(value, at_least=at_least)
    assert figure.met is met
    assert figure.line.endswith("NOT MET") is not met


def test_figure_says_what_was_measured_beside_what_and_the_goal() -> None:
    line = ratio(1.5, at_least=False).line
    assert all(part in line for part in ("3 ms", "÷ 2 ms", "= ", "1.50", "goal ≤ 1.5"))


def test_figure_of_a_rate_is_a_quotient_of_its_goal() -> None:
    figure = rate("replay", 25_000, 20_000, "facts")
    assert (figure.ratio, figure.met) == (1.25, True)
    assert not rate("replay", 19_999, 20_000, "facts").met


@pytest.mark.parametrize("name", BENCHES)
def test_bench_of_every_name_can_be_called(name: str) -> None:
    module, _, function = BENCHES[name].partition(":")
    assert callable(getattr(import_module(module), function))


def test_bench_asked_for_its_names_lists_them_and_measures_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--list"])
    assert main() == 0
    assert capsys.readouterr().out.split() == list(BENCHES)


def test_bench_asked_for_an_unknown_name_refuses_and_names_the_known_ones(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "speed"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "cut-off" in capsys.readouterr().err

"""The words of ``--faults``: what may go wrong with a simulated wheel, explained for the help pages."""

from collections.abc import Mapping

from controller.cli.failure import Failure
from controller.cli.language import Phrase, here
from drivers.twin.wheel_faults import FaultKind, FaultPlan, FaultPlanError, read_plan

MEANINGS: Mapping[FaultKind, Phrase] = {
    FaultKind.MISFIRE: Phrase("lancer manqué, la bille est relancée", "failed launch, the ball is launched again"),
    FaultKind.BALL_REMOVED: Phrase("bille ôtée pendant le lancer", "ball taken out during the spin"),
    FaultKind.BALL_WITH_ROTOR: Phrase("la bille tourne avec le plateau", "the ball turns with the rotor"),
    FaultKind.SENSOR_FAULT: Phrase("défaut de capteur, le cylindre s'arrête", "sensor fault, the wheel stops"),
    FaultKind.RUNAWAY_ROTOR: Phrase("plateau emballé, puis arrêt", "the rotor runs away, then stops"),
    FaultKind.NO_NUMBER_LINE: Phrase("la ligne du numéro seul manque", "the line with the bare number is missing"),
    FaultKind.CONTRADICTED: Phrase("deux numéros pour un lancer", "two numbers for one spin"),
    FaultKind.NO_MORE_BETS_SKIPPED: Phrase("rien ne va plus jamais annoncé", "no more bets never announced"),
    FaultKind.NO_RESULT: Phrase("le numéro ne vient jamais", "the number never comes"),
    FaultKind.NOT_IN_TRACK: Phrase("la bille n'est pas dans la gorge", "the ball is not in its track"),
    FaultKind.SAME_DIRECTION: Phrase("le plateau ne change pas de sens", "the rotor does not alternate"),
    FaultKind.SILENCE: Phrase("plus rien, ce qui est dit est perdu", "nothing comes, what was said is lost"),
    FaultKind.BURST: Phrase("plus rien, puis tout à la fois", "nothing comes, then all at once"),
    FaultKind.GLUED: Phrase("lignes collées", "lines glued together"),
    FaultKind.TRUNCATED: Phrase("lignes tronquées", "truncated lines"),
    FaultKind.FRAGMENTS: Phrase("fins de lignes seulement", "only the tails of lines"),
    FaultKind.DOUBLED: Phrase("lignes doublées", "lines come twice"),
    FaultKind.BIT_NOISE: Phrase("bits faux", "wrong bits"),
    FaultKind.POWER_CYCLE: Phrase("le cylindre redémarre", "the wheel restarts"),
    FaultKind.UNPLUG: Phrase("câble débranché", "the cable is pulled out"),
}

_FR = """Défauts (--faults) : une liste de mots séparés par des virgules.

\b
GENRE@LANCER            au lancer de ce numéro, compté à partir de 1
GENRE@LANCER:S          pendant S secondes (silence, burst, power-cycle, unplug)
GENRE@LANCER:S:ÉTAT     à partir de cet état du cylindre, 1 à 5 (4 : rien ne va plus)
GENRE%CENTIÈMES         à tout lancer, avec cette chance en centièmes, 100 au plus

Exemple : misfire@3,silence@5:8:4,bit-noise%2 est un lancer manqué au 3e, 8 s de silence dès l'état 4 du 5e, et des \
bits faux à 2 lancers sur 100."""

_EN = """Faults (--faults): a list of words separated by commas.

\b
KIND@SPIN               in the spin of this number, counted from 1
KIND@SPIN:S             for S seconds (silence, burst, power-cycle, unplug)
KIND@SPIN:S:STATE       from this state of the wheel on, 1 to 5 (4: no more bets)
KIND%PERCENT            in any spin, with this chance in a hundred, 100 at most

Example: misfire@3,silence@5:8:4,bit-noise%2 is a misfire in the 3rd, 8 s of silence from state 4 of the 5th on, and \
bit noise in 2 spins of 100."""


def _kinds(spoken: str) -> str:
    lines = [f"{kind:<22}  {getattr(phrase, spoken)}" for kind, phrase in MEANINGS.items()]
    return "\n\n\b\n" + "\n".join(lines)


SYNTAX = Phrase(_FR + _kinds("fr"), _EN + _kinds("en"))
"""How faults are written, and every kind of them, for a help page."""


def plan_of(text: str | None) -> FaultPlan | None:
    """The plan that somebody wrote. Raises Failure (E-FAULT-PLAN): each wrong word, and what is permitted."""
    if not text:
        return None
    try:
        return read_plan(text)
    except FaultPlanError as error:
        wrong, kinds = ", ".join(f"« {word} »" for word in error.words), ", ".join(FaultKind)
        shapes = "GENRE@LANCER[:S[:ÉTAT]], lancers à partir de 1 et états 1 à 5, ou GENRE%CENTIÈMES, 100 au plus"
        french = f"{wrong} : un défaut s'écrit {shapes} ; GENRE est l'un de : {kinds}"
        raise Failure("E-FAULT-PLAN", here(french, str(error))) from None

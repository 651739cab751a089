"""The report of a séance: plain French text that a person reads before signing, the same bytes whoever makes it.

Times are UTC and amounts are euros with two decimals; nothing depends on a locale, a clock or a machine. The form has
a name, ``table-controller/etat/v1``, which is its first line: a form that was published never changes. The last line
is the root of the journal up to the closing, to be copied on the paper register, and the line before it a number that
two persons can compare aloud.
"""

from base64 import b64encode
from collections.abc import Iterator

from controller.registers.faults import RegisterFault
from controller.registers.french import DEVICES, amount, cause, moment, who
from controller.registers.seance import At, Event, Movement, Round, Seance
from games import health, posts
from games.posts import Meters
from games.roulette import facts as roulette
from games.seance import SeanceClosed, SeanceOpened, TableStarted, TableStopped
from games.signals import Person
from games.statement import Totals

FORM = "table-controller/etat/v1"

NONE = "néant"
"""What stands under a heading that has nothing to tell, so that nothing can be written there later."""

_FINGERPRINT_DIGITS = 16


def report(seance: Seance, root: bytes) -> str:
    """The report, lines ended by line ends. ``root`` is the journal's over all entries up to the closing one.

    Raises RegisterFault (E-SEANCE-ENTRIES) when the opening, the totals or the closing are missing.
    """
    opening, closing, totals = ends_of(seance)
    lines = (
        *_head(seance, opening, closing),
        "",
        "COUPS",
        _cells("coup", "heure (UTC)", "numéro", "misé", "rendu", "gagné"),
        *(_round(at, fact) for at, fact in seance.rounds),
        "",
        "INCIDENTS ET MODE MANUEL",
        *([f"{moment(at.time)}  {_event(fact)}" for at, fact in seance.events] or [NONE]),
        "",
        "CRÉDITS, PAIEMENTS, CONSIGNES ET ORPHELINS",
        *([_movement(at, fact) for at, fact in seance.movements] or [NONE]),
        "",
        "POSTES",
        f"{'poste':>8}{_amounts('crédité', 'misé', 'rendu', 'gagné', 'payé', 'consigné')}",
        *(f"{post:>8}{_meters(meters)}" for post, meters in sorted(seance.meters.items())),
        f"{'ensemble':>8}{_meters(seance.total)}",
        "",
        *_totals(seance.total, closing[1], totals),
        "",
        f"Empreinte à lire : {fingerprint(root)}",
        f"Racine de {closing[0].index + 1} écritures : {b64encode(root).decode()}",
    )
    return "".join(f"{line}".rstrip() + "\n" for line in lines)


def ends_of(seance: Seance) -> tuple[tuple[At, SeanceOpened], tuple[At, SeanceClosed], Totals]:
    """The opening, the closing and the perpetual totals. Raises RegisterFault (E-SEANCE-ENTRIES)."""
    if seance.opening is None or seance.closing is None or seance.carried is None:
        raise RegisterFault("E-SEANCE-ENTRIES", "the entries do not reach from the opening of a séance to its closing")
    return seance.opening, seance.closing, seance.carried.totals


def fingerprint(root: bytes) -> str:
    """Four groups of four digits that stand for a root where it is read aloud: ``0412 9983 1174 5520``."""
    digits = f"{int.from_bytes(root[:8]) % 10**_FINGERPRINT_DIGITS:0{_FINGERPRINT_DIGITS}d}"
    return " ".join(digits[at : at + 4] for at in range(0, _FINGERPRINT_DIGITS, 4))


def _head(seance: Seance, opening: tuple[At, SeanceOpened], closing: tuple[At, SeanceClosed]) -> Iterator[str]:
    (opened_at, opened), (closed_at, closed) = opening, closing
    yield f"ÉTAT DE SÉANCE {FORM}"
    yield f"Table : {seance.origin}"
    yield f"Séance : {opened.seance}"
    yield f"Règles : sha256 {opened.rules_sha256}"
    yield f"Ouverture : écriture {opened_at.index}, {moment(opened_at.time)} UTC, {who(opened.by)}"
    yield f"Fermeture : écriture {closed_at.index}, {moment(closed_at.time)} UTC, {who(closed.by)}"
    yield "Les heures sont en temps universel (UTC), les montants en euros."


def _cells(number: str, time: str, pocket: str, staked: str, returned: str, won: str) -> str:
    return f"{number:>8}  {time:<19}  {pocket:<6}{staked:>16}{returned:>16}{won:>16}"


def _round(at: At, fact: Round) -> str:
    time = moment(at.time)
    if isinstance(fact, roulette.RoundClosed):
        staked, returned, won = amount(fact.staked), amount(fact.returned), amount(fact.won)
        return _cells(str(fact.round), time, fact.pocket, staked, returned, won)
    given_back = amount(fact.cents)
    return f"{_cells(str(fact.round), time, 'nul', given_back, given_back, amount(0))}  {cause(fact.reason)}"


def _event(fact: Event) -> str:
    match fact:
        case roulette.IncidentDeclared(round=number, detail=detail, by=by):
            more = f" ({' '.join(detail.split())})" if detail else ""
            return f"{_of(number)}incident : {cause(fact.cause)}{more}, {who(by)}"
        case roulette.EntryMade(round=number, pocket="", by=by):
            return f"{_of(number)}annulation demandée, {who(by)}"
        case roulette.EntryMade(round=number, pocket=pocket, by=by):
            return f"{_of(number)}numéro {pocket} saisi, {who(by)}"
        case roulette.PresenceAttested(round=number, by=by):
            return f"{_of(number)}présence attestée, {who(by)}"
        case roulette.NumberValidated(round=number, pocket=pocket, croupier=croupier, director=director):
            return f"{_of(number)}numéro {pocket} validé en mode manuel, {_both(croupier, who(director))}"
        case roulette.RoundVoided(round=number, croupier=croupier, director=director):
            signed = _both(croupier, who(director)) if director else "par la règle"
            return f"{_of(number)}coup annulé : {cause(fact.reason)}, {signed}"
        case roulette.GameRestarted(by=by):
            return f"jeu relancé, {who(by)}"
        case TableStarted(unclean=unclean):
            return "redémarrage après un arrêt brutal" if unclean else "redémarrage"
        case TableStopped():
            return "arrêt en bon ordre"
        case _:
            return _device(fact)


def _device(
    fact: health.DeviceLinkLost
    | health.DeviceLinkRestored
    | health.WheelFaultBegan
    | health.WheelFaultEnded
    | health.WallClockStepped,
) -> str:
    match fact:
        case health.DeviceLinkLost(device=device, silent_ms=silent_ms):
            return f"liaison perdue : {DEVICES.get(device, device)}, {silent_ms} ms"
        case health.DeviceLinkRestored(device=device):
            return f"liaison rétablie : {DEVICES.get(device, device)}"
        case health.WheelFaultBegan(fault=fault):
            return f"défaut du cylindre : {cause(fault)}"
        case health.WheelFaultEnded(fault=fault):
            return f"fin du défaut : {cause(fault)}"
        case health.WallClockStepped(by_ms=by_ms):
            return f"saut de l'horloge : {by_ms} ms"


def _of(number: int) -> str:
    return f"coup {number}, " if number else ""


def _both(croupier: Person | None, director: str) -> str:
    return f"{who(croupier)} et {director}" if croupier else director


def _movement(at: At, fact: Movement) -> str:
    match fact:
        case posts.CreditAdded(by=by):
            told = f"crédit, {who(by)}"
        case posts.PlayerPaidOut(payout=payout):
            told = f"paiement n° {payout}"
        case posts.StakeConsigned(consignment=consignment):
            told = f"consigne n° {consignment}"
        case posts.ConsignmentReleased(consignment=consignment, payout=payout, by=by):
            told = f"consigne n° {consignment} rendue, paiement n° {payout}, {who(by)}"
        case posts.OrphanRecorded(consignment=consignment):
            told = f"consigne n° {consignment} aux orphelins (modèle 11 bis)"
    return f"{moment(at.time)}  poste {fact.post:>3}{amount(fact.cents):>16}  {told}"


def _amounts(*texts: str) -> str:
    return "".join(f"{text:>16}" for text in texts)


def _meters(meters: Meters) -> str:
    return _amounts(
        amount(meters.credited),
        amount(meters.staked),
        amount(meters.returned),
        amount(meters.won),
        amount(meters.paid_out),
        amount(meters.consigned),
    )


def _totals(counted: Meters, closed: SeanceClosed, totals: Totals) -> Iterator[str]:
    yield f"{'TOTAUX':<24}{'séance':>16}{'perpétuel':>20}"
    for label, seance, perpetual in (
        ("séances", "1", str(totals.seances)),
        ("coups valables", str(closed.rounds), str(totals.rounds)),
        ("crédité", amount(closed.credited_cents), amount(totals.credited_cents)),
        ("misé", amount(closed.staked_cents), amount(totals.staked_cents)),
        ("rendu", amount(closed.returned_cents), amount(totals.returned_cents)),
        ("gagné", amount(closed.won_cents), amount(totals.won_cents)),
        ("payé par la caisse", amount(closed.paid_out_cents), amount(totals.paid_out_cents)),
        ("orphelins", amount(closed.orphaned_cents), amount(totals.orphaned_cents)),
    ):
        yield f"{label:<24}{seance:>16}{perpetual:>20}"
    yield ""
    owed = counted.credited - counted.staked + counted.returned + counted.won
    paid = closed.paid_out_cents + closed.orphaned_cents
    verdict = "juste" if owed == paid else "FAUSSE"
    yield f"Balance {verdict} : crédité - misé + rendu + gagné = {amount(owed)} ; payé + orphelins = {amount(paid)}"

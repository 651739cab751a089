"""What happened at a table, told: one line for each certified fact, in the words of the floor."""

import click

from controller.cli.failure import title_of
from controller.cli.language import Phrase, count, here
from controller.cli.output import money
from controller.cli.words import CAUSES, DIRECTIONS, ROLES, spoken, who, word
from games import custody, health, persons, posts, seance, statement
from games.roulette import facts as roulette
from games.rules import Fact

SHOWN_STAKES = 6
"""Bets of one stake that are named; of more only the number is told."""


def story(fact: Fact) -> str:
    """One line. A fact that has no sentence of its own is told by its kind."""
    return _round(fact) or _posts(fact) or _staff(fact) or _device(fact) or _custody(fact) or fact.KIND


def _round(fact: Fact) -> str:
    match fact:
        case roulette.BettingOpened(round=number):
            return click.style(here(f"Coup {number} : faites vos jeux", f"Round {number}: place your bets"), fg="green")
        case roulette.LaunchOrdered():
            return here("Le lanceur est demandé", "The launcher is told to spin")
        case roulette.SpinStarted(direction=direction, rotor_mrpm=speed):
            rpm = f"{speed // 1_000}{here(',', '.')}{speed % 1_000 // 100}"
            way = word(DIRECTIONS, direction)
            return here(f"La bille roule ; plateau {way}, {rpm} tr/min", f"The ball runs; rotor {way}, {rpm} rpm")
        case roulette.SpinRefused():
            return here(
                "Lancer refusé : le plateau n'a pas changé de sens", "Spin refused: the rotor did not alternate"
            )
        case roulette.NoMoreBetsCalled(by=by, source=source):
            told = f" ({who(by)})" if by else "" if source == "wheel" else here(" (minuterie)", " (timer)")
            return click.style(here("Rien ne va plus", "No more bets") + told, fg="red")
        case roulette.NumberDetected(pocket=pocket):
            return here(f"Détecteur : {pocket}, à confirmer", f"Detector: {pocket}, to be confirmed")
        case roulette.NumberAnnounced(pocket=pocket, by=by):
            return f"{spoken(pocket)} {here('annoncé par', 'announced by')} {who(by)}"
        case roulette.NumberValidated(pocket=pocket, director=director):
            manual = here("validé en mode manuel par", "validated in manual mode by")
            return f"{spoken(pocket)} {manual} {who(director)}"
        case roulette.RoundClosed(round=number, posts=settled, staked=staked, returned=returned, won=won):
            served = count(settled, "poste", "post")
            sums = here(
                f"misé {money(staked)}, rendu {money(returned)}, gagné {money(won)}",
                f"staked {money(staked)}, returned {money(returned)}, won {money(won)}",
            )
            return here(f"Coup {number} réglé : {served}, {sums}", f"Round {number} settled: {served}, {sums}")
        case roulette.RoundVoided(round=number, cents=cents, reason=reason):
            why = word(CAUSES, reason)
            return click.style(
                here(
                    f"Coup {number} annulé ({why}) : {money(cents)} rendus",
                    f"Round {number} void ({why}): {money(cents)} back",
                ),
                fg="magenta",
            )
        case _:
            return _incident(fact)


def _incident(fact: Fact) -> str:
    match fact:
        case roulette.IncidentDeclared(cause=cause, detail=detail):
            what = word(CAUSES, cause) + (f", {detail}" if detail else "")
            return click.style(here(f"Incident : {what}", f"Incident: {what}"), fg="magenta", bold=True)
        case roulette.EntryMade(pocket="", by=by):
            return here(f"Coup nul demandé par {who(by)}", f"Void asked for by {who(by)}")
        case roulette.EntryMade(pocket=pocket, by=by):
            return here(f"{pocket} saisi par {who(by)}", f"{pocket} entered by {who(by)}")
        case roulette.PresenceAttested(by=by):
            return here(f"{who(by)} présent", f"{who(by)} is present")
        case roulette.GameRestarted(by=by):
            return here(f"Jeu relancé par {who(by)}", f"Play restarted by {who(by)}")
        case roulette.NumberDialled(pocket=pocket):
            return here(f"Composé : {pocket}", f"Dialled: {pocket}")
        case roulette.ObservationDisregarded(seen=seen, phase=phase):
            return here(f"Observation sans effet : {seen} ({phase})", f"Observation without effect: {seen} ({phase})")
        case _:
            return ""


def _posts(fact: Fact) -> str:
    match fact:
        case posts.PlayerSat(post=post):
            return _at(post, here("un joueur s'assied", "a player sits down"))
        case posts.CreditAdded(post=post, cents=cents, credit=credit):
            return _at(
                post,
                here(
                    f"crédité de {money(cents)}, crédit {money(credit)}",
                    f"loaded with {money(cents)}, credit {money(credit)}",
                ),
            )
        case posts.StakesPlaced():
            return _at(fact.post, _stakes(fact))
        case posts.StakesTakenBack(post=post, cents=cents):
            return _at(post, here(f"reprend {money(cents)}", f"takes back {money(cents)}"))
        case posts.MinimumChosen(post=post, cents=cents):
            return _at(post, here(f"fixe sa mise à {money(cents)}", f"fixes the piece at {money(cents)}"))
        case posts.PostSettled():
            return _at(fact.post, _result(fact))
        case posts.PostRecredited(post=post, cents=cents, credit=credit):
            return _at(
                post,
                here(
                    f"recrédité de {money(cents)}, crédit {money(credit)}",
                    f"gets back {money(cents)}, credit {money(credit)}",
                ),
            )
        case posts.PlayerPaidOut(post=post, cents=cents, payout=payout):
            return _at(
                post,
                here(
                    f"quitte, {money(cents)} à payer à la caisse (n° {payout})",
                    f"leaves, {money(cents)} to be paid at the desk (no. {payout})",
                ),
            )
        case posts.RequestRefused(post=post, reason=reason, bet=bet):
            about = f" ({bet})" if bet else ""
            return _at(post, here(f"refusé{about} : {title_of(reason)}", f"refused{about}: {title_of(reason)}"))
        case _:
            return _absence(fact)


def _absence(fact: Fact) -> str:
    match fact:
        case posts.PlayerSteppedAway(post=post):
            return _at(post, here("le joueur s'absente", "the player is away"))
        case posts.PlayerCameBack(post=post):
            return _at(post, here("le joueur est de retour", "the player is back"))
        case posts.AbsenceExceeded(post=post):
            return _at(post, here("absent depuis trop longtemps", "away for too long"))
        case posts.PostSuspended(post=post, by=by):
            return _at(post, here(f"suspendu par {who(by)}", f"suspended by {who(by)}"))
        case posts.StakeConsigned(post=post, cents=cents, consignment=number):
            return _at(
                post, here(f"{money(cents)} consignés (n° {number})", f"{money(cents)} consigned (no. {number})")
            )
        case posts.ConsignmentReleased(post=post, cents=cents, consignment=number):
            return _at(
                post,
                here(f"consigne n° {number} réclamée, {money(cents)}", f"consignment {number} claimed, {money(cents)}"),
            )
        case posts.OrphanRecorded(post=post, cents=cents):
            return _at(post, here(f"{money(cents)} aux orphelins", f"{money(cents)} to the orphans"))
        case _:
            return ""


def _at(post: int, told: str) -> str:
    return f"{here('Poste', 'Post')} {post:>2} · {told}"


def _stakes(fact: posts.StakesPlaced) -> str:
    named = ", ".join(f"{stake.bet} {money(stake.cents)}" for stake in fact.stakes[:SHOWN_STAKES])
    rest = len(fact.stakes) - SHOWN_STAKES
    named += f", … +{rest}" if rest > 0 else ""
    origin = {"bets": "", "random": here("au hasard, ", "at random, ")}.get(fact.origin, f"{fact.origin}, ")
    return here(f"mise {money(fact.cents)} ({origin}{named})", f"stakes {money(fact.cents)} ({origin}{named})")


def _result(fact: posts.PostSettled) -> str:
    credit = here(f"crédit {money(fact.credit)}", f"credit {money(fact.credit)}")
    if not fact.returned + fact.won:
        return here(f"perd {money(fact.staked)}, {credit}", f"loses {money(fact.staked)}, {credit}")
    paid = click.style(here(f"gagne {money(fact.won)}", f"wins {money(fact.won)}"), fg="yellow", bold=fact.won > 0)
    kept = here(f"mises rendues {money(fact.returned)}", f"stakes back {money(fact.returned)}")
    return f"{paid}, {kept}, {credit}"


def _staff(fact: Fact) -> str:
    match fact:
        case seance.TableStarted(unclean=True):
            return here("La table redémarre après un arrêt brutal", "The table starts again after a hard stop")
        case seance.TableStarted():
            return here("La table démarre", "The table starts")
        case seance.TableStopped():
            return here("La table s'arrête en bon ordre", "The table stops in good order")
        case seance.KeySwitched(key=key, on=on):
            return _key(key, on)
        case seance.PostsPutInService(by=by):
            return here(f"Postes mis en service par {who(by)}", f"Posts put in service by {who(by)}")
        case seance.SeanceOpened(seance=name, by=by):
            opened = here(f"Séance {name} ouverte par {who(by)}", f"Séance {name} opened by {who(by)}")
            return click.style(opened, bold=True)
        case seance.LastRoundsAnnounced(by=by):
            return here(
                f"Les trois dernières, annoncées par {who(by)}", f"The three last balls, announced by {who(by)}"
            )
        case seance.SeanceClosed(seance=name, by=by, rounds=rounds, paid_out_cents=paid):
            closed = here(
                f"Séance {name} fermée par {who(by)} : {count(rounds, 'coup', 'round')}, {money(paid)} payés",
                f"Séance {name} closed by {who(by)}: {count(rounds, 'coup', 'round')}, {money(paid)} paid out",
            )
            return click.style(closed, bold=True)
        case statement.TotalsCarried(totals=totals):
            played = count(totals.rounds, "coup", "round")
            return here(
                f"Totaux perpétuels : {totals.seances} séances, {played}, {money(totals.staked_cents)} misés",
                f"Perpetual totals: {totals.seances} séances, {played}, {money(totals.staked_cents)} staked",
            )
        case statement.SeanceCertified(seance=name, persons=signers):
            signed = ", ".join(map(who, signers))
            return here(f"Séance {name} certifiée par {signed}", f"Séance {name} certified by {signed}")
        case persons.PersonEnrolled(badge=badge, role=role, by=by, second=second):
            what = f"{word(ROLES, role)} {badge}"
            return here(
                f"{what} enregistré par {who(by)} et {who(second)}", f"{what} enrolled by {who(by)} and {who(second)}"
            )
        case persons.PersonRevoked(badge=badge, role=role, reason=reason, by=by, second=second):
            what = f"{word(ROLES, role)} {badge}"
            return here(
                f"{what} révoqué par {who(by)} et {who(second)} : {reason}",
                f"{what} revoked by {who(by)} and {who(second)}: {reason}",
            )
        case seance.OrderRefused(order=order, by=by, reason=reason):
            return here(
                f"Ordre {order} de {who(by)} refusé : {title_of(reason)}",
                f"Order {order} of {who(by)} refused: {title_of(reason)}",
            )
        case _:
            return ""


def _key(key: str, on: bool) -> str:
    of = word(ROLES, key)
    return here(f"Clé du {of} {'mise' if on else 'ôtée'}", f"Key of the {of} turned {'on' if on else 'off'}")


def _device(fact: Fact) -> str:
    match fact:
        case health.DeviceLinkLost(device=device, silent_ms=silent):
            return here(f"Liaison perdue : {device}, {silent} ms", f"Link lost: {device}, {silent} ms")
        case health.DeviceLinkRestored(device=device):
            return here(f"Liaison rétablie : {device}", f"Link restored: {device}")
        case health.WheelFaultBegan(fault=fault, detail=detail):
            return here(
                f"Défaut du cylindre : {word(CAUSES, fault)} {detail}", f"Wheel fault: {word(CAUSES, fault)} {detail}"
            )
        case health.WheelFaultEnded(fault=fault):
            return here(f"Fin du défaut : {word(CAUSES, fault)}", f"Fault over: {word(CAUSES, fault)}")
        case health.WheelParametersRead(differences=(), firmware=""):
            return here("Cylindre entendu ; il ne prend pas de commandes", "The wheel is heard; it takes no commands")
        case health.WheelParametersRead(differences=(), firmware=firmware):
            return here(f"Cylindre vérifié : {firmware}", f"Wheel verified: {firmware}")
        case health.WheelParametersRead(differences=differences):
            told = " ; ".join(differences)
            return here(f"Réglages du cylindre : {told}", f"Wheel parameters: {told}")
        case health.PanelInputFaulted(name=name, detail=detail):
            return here(f"Pupitre, {name} : {detail}", f"Panel, {name}: {detail}")
        case health.WallClockStepped(by_ms=by_ms):
            return here(f"L'horloge a sauté de {by_ms} ms", f"The clock jumped by {by_ms} ms")
        case health.JournalFoundDoubtful(code=code, detail=detail):
            doubted = here(
                f"La copie du centre contredit le journal : {title_of(code)}, {detail}",
                f"The centre's copy contradicts the journal: {title_of(code)}, {detail}",
            )
            return click.style(doubted, fg="red", bold=True)
        case health.StorageRanLow(level=level, free_bytes=free):
            return here(
                f"Espace du journal : {_storage(level)}, {free // 1_000_000} Mo libres",
                f"Space of the journal: {_storage(level)}, {free // 1_000_000} MB free",
            )
        case _:
            return ""


def _storage(level: str) -> str:
    """What a level of free space asks of people."""
    asked = {
        "ok": Phrase("suffisant", "enough"),
        "warn": Phrase("bientôt insuffisant, faire de la place", "soon too little, make room"),
        "no_new_round": Phrase("insuffisant, plus aucune partie ne commence", "too little, no round begins any more"),
        "close": Phrase("épuisé, clore la séance maintenant", "used up, close the séance now"),
    }
    return str(asked[level]) if level in asked else level


def _custody(fact: Fact) -> str:
    match fact:
        case custody.JournalHealed(from_size=start, to_size=stop, cosigner=cosigner):
            return here(
                f"Journal rétabli : écritures {start} à {stop - 1} rendues par {cosigner}",
                f"Journal healed: entries {start} to {stop - 1} came back from {cosigner}",
            )
        case custody.EpochBegun(old_origin=origin, reason=reason, persons=signed):
            by = ", ".join(who(person) for person in signed)
            return here(
                f"Nouvelle époque après {origin} ({reason}), signée par {by}",
                f"New epoch after {origin} ({reason}), signed by {by}",
            )
        case custody.KeyRotated(new_vkey=vkey):
            return here(f"La clé de la table change : {vkey}", f"The table's key changes: {vkey}")
        case custody.JournalVerified(code="", size=size):
            return here(f"Journal vérifié en entier : {size} écritures", f"Journal verified in full: {size} entries")
        case custody.JournalVerified(code=code, detail=detail):
            wrong = here(
                f"Vérification du journal : {title_of(code)}, {detail}",
                f"Verification of the journal: {title_of(code)}, {detail}",
            )
            return click.style(wrong, fg="red", bold=True)
        case custody.RetentionSet(years=years):
            return here(f"Conservation portée à {years} ans", f"Retention raised to {years} years")
        case _:
            return ""

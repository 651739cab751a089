"""A second maker of a séance's report: SQL over the tables of ``tablectl journal unpack``, none of the product's code.

Every number is computed by the database, from rows alone; the words are written here anew. What the two must share is
the form of the document, and the French names of causes, which are part of it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from controller.registers.french import CAUSES

ROLES = {"director": "MCD", "croupier": "croupier", "cashier": "caissier", "technician": "technicien"}
DEVICES = {"wheel": "cylindre", "panel": "pupitre"}
NO_PERSON = "l'appareil"

# A table that the journal gave no row does not exist after unpacking; these are asked for all the same.
EMPTY = {
    "round_closed_v1": "round, pocket, staked, returned, won",
    "round_voided_v1": "round, reason, cents, croupier, director",
    "incident_declared_v1": "round, cause, detail, by",
    "entry_made_v1": "round, pocket, by",
    "presence_attested_v1": "round, by",
    "number_validated_v1": "round, pocket, croupier, director",
    "game_restarted_v1": "by",
    "device_link_lost_v1": "device, silent_ms",
    "device_link_restored_v1": "device",
    "wheel_fault_began_v1": "fault",
    "wheel_fault_ended_v1": "fault",
    "clock_stepped_v1": "by_ms",
    "started_v1": "unclean",
    "stopped_v1": "boot",
    "credit_added_v1": "post, cents, by",
    "stakes_placed_v1": "post, cents",
    "stakes_taken_back_v1": "post, cents",
    "post_settled_v1": "post, returned, won",
    "post_recredited_v1": "post, cents",
    "player_paid_out_v1": "post, payout, cents",
    "stake_consigned_v1": "post, consignment, cents",
    "consignment_released_v1": "post, consignment, payout, cents, by",
    "orphan_recorded_v1": "post, consignment, cents",
}

FUNCTIONS = """
    WITH span AS (
        SELECT (SELECT entry FROM seance_opened_v1 WHERE seance = :name) AS first,
               (SELECT entry FROM seance_closed_v1 WHERE seance = :name) AS last
    )
"""

ROUNDS = """
    SELECT entry, time, round, pocket, staked, returned, won, '' AS reason FROM round_closed_v1, span
        WHERE entry BETWEEN first AND last
    UNION ALL
    SELECT entry, time, round, 'nul', cents, cents, 0, reason FROM round_voided_v1, span
        WHERE entry BETWEEN first AND last
    ORDER BY entry
"""

EVENTS = """
    SELECT entry, time, event FROM (
        SELECT entry, time, of(round) || 'incident : ' || cause(cause)
            || iif(detail = '', '', ' (' || line(detail) || ')') || ', ' || who(by) AS event FROM incident_declared_v1
        UNION ALL
        SELECT entry, time, of(round) || iif(pocket = '', 'annulation demandée', 'numéro ' || pocket || ' saisi')
            || ', ' || who(by) FROM entry_made_v1
        UNION ALL
        SELECT entry, time, of(round) || 'présence attestée, ' || who(by) FROM presence_attested_v1
        UNION ALL
        SELECT entry, time, of(round) || 'numéro ' || pocket || ' validé en mode manuel, '
            || iif(croupier IS NULL, '', who(croupier) || ' et ') || who(director) FROM number_validated_v1
        UNION ALL
        SELECT entry, time, of(round) || 'coup annulé : ' || cause(reason) || ', '
            || iif(croupier IS NULL OR director IS NULL, '', who(croupier) || ' et ')
            || iif(director IS NULL, 'par la règle', who(director))
            FROM round_voided_v1
        UNION ALL
        SELECT entry, time, 'jeu relancé, ' || who(by) FROM game_restarted_v1
        UNION ALL
        SELECT entry, time, iif(unclean, 'redémarrage après un arrêt brutal', 'redémarrage') FROM started_v1
        UNION ALL
        SELECT entry, time, 'arrêt en bon ordre' FROM stopped_v1
        UNION ALL
        SELECT entry, time, 'liaison perdue : ' || device(device) || ', ' || silent_ms || ' ms' FROM device_link_lost_v1
        UNION ALL
        SELECT entry, time, 'liaison rétablie : ' || device(device) FROM device_link_restored_v1
        UNION ALL
        SELECT entry, time, 'défaut du cylindre : ' || cause(fault) FROM wheel_fault_began_v1
        UNION ALL
        SELECT entry, time, 'fin du défaut : ' || cause(fault) FROM wheel_fault_ended_v1
        UNION ALL
        SELECT entry, time, 'saut de l''horloge : ' || by_ms || ' ms' FROM clock_stepped_v1
    ), span WHERE entry BETWEEN first AND last ORDER BY entry
"""

MOVEMENTS = """
    SELECT entry, time, post, cents, told FROM (
        SELECT entry, time, post, cents, 'crédit, ' || who(by) AS told FROM credit_added_v1
        UNION ALL
        SELECT entry, time, post, cents, 'paiement n° ' || payout FROM player_paid_out_v1
        UNION ALL
        SELECT entry, time, post, cents, 'consigne n° ' || consignment FROM stake_consigned_v1
        UNION ALL
        SELECT entry, time, post, cents, 'consigne n° ' || consignment || ' rendue, paiement n° ' || payout || ', '
            || who(by) FROM consignment_released_v1
        UNION ALL
        SELECT entry, time, post, cents, 'consigne n° ' || consignment || ' aux orphelins (modèle 11 bis)'
            FROM orphan_recorded_v1
    ), span WHERE entry BETWEEN first AND last ORDER BY entry
"""

POSTS = """,
    moved (entry, post, credited, staked, returned, won, paid, consigned) AS (
        SELECT entry, post, cents, 0, 0, 0, 0, 0 FROM credit_added_v1
        UNION ALL SELECT entry, post, 0, cents, 0, 0, 0, 0 FROM stakes_placed_v1
        UNION ALL SELECT entry, post, 0, 0, cents, 0, 0, 0 FROM stakes_taken_back_v1
        UNION ALL SELECT entry, post, 0, 0, cents, 0, 0, 0 FROM post_recredited_v1
        UNION ALL SELECT entry, post, 0, 0, returned, won, 0, 0 FROM post_settled_v1
        UNION ALL SELECT entry, post, 0, 0, 0, 0, cents, 0 FROM player_paid_out_v1
        UNION ALL SELECT entry, post, 0, 0, 0, 0, 0, cents FROM stake_consigned_v1
    )
    SELECT {key}, coalesce(sum(credited), 0), coalesce(sum(staked), 0), coalesce(sum(returned), 0),
           coalesce(sum(won), 0), coalesce(sum(paid), 0), coalesce(sum(consigned), 0)
    FROM moved, span WHERE entry BETWEEN first AND last {group}
"""

PERPETUAL = """
    SELECT count(*), sum(rounds), sum(credited_cents), sum(staked_cents), sum(returned_cents), sum(won_cents),
           sum(paid_out_cents), sum(orphaned_cents)
    FROM seance_closed_v1, span WHERE entry <= last
"""


def sql_report(unpacked: Path, name: str, root: bytes, origin: str) -> str:
    """The report of séance ``name`` from a database that ``unpack`` wrote."""
    with closing(sqlite3.connect(unpacked)) as database:
        _prepare(database)
        return "".join(f"{line.rstrip()}\n" for line in _lines(database, name, root, origin))


def _prepare(database: sqlite3.Connection) -> None:
    there = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
    for table, columns in EMPTY.items():
        if table not in there:
            database.execute(f"CREATE TEMP TABLE {table} (entry, time, seance, {columns})")
        else:
            have = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
            for column in set(columns.split(", ")) - have:
                database.execute(f"ALTER TABLE {table} ADD COLUMN {column} ANY")
    database.create_function("of", 1, lambda number: f"coup {number}, " if number else "")
    database.create_function("line", 1, lambda text: " ".join(text.split()))
    database.create_function("cause", 1, lambda name: CAUSES.get(name, " ".join(name.split())))
    database.create_function("device", 1, lambda name: DEVICES.get(name, name))
    database.execute("CREATE TEMP TABLE role (name, said)")
    database.executemany("INSERT INTO role VALUES (?, ?)", ROLES.items())
    database.create_function("who", 1, _who)


def _who(person: str | None) -> str:
    if person is None:
        return NO_PERSON
    with closing(sqlite3.connect(":memory:")) as scratch:
        badge, role = scratch.execute("SELECT ? ->> 'badge', ? ->> 'role'", (person, person)).fetchone()
    return f"{ROLES[role]} {'(clé)' if badge[:4] == 'key:' else badge}"


def _euros(cents: int) -> str:
    digits = f"{abs(cents):03d}"
    whole, grouped = digits[:-2], ""
    while len(whole) > 3:
        whole, grouped = whole[:-3], f" {whole[-3:]}{grouped}"
    return f"{'-' if cents < 0 else ''}{whole}{grouped},{digits[-2:]}"


def _lines(database: sqlite3.Connection, name: str, root: bytes, origin: str) -> Iterator[str]:
    def ask(query: str) -> list[tuple[object, ...]]:
        return database.execute(FUNCTIONS + query, {"name": name}).fetchall()

    def moment(time: object) -> str:
        return str(time).replace("T", " ")[:19]

    ((opened, opened_time, opened_by, rules),) = ask(
        "SELECT entry, time, who(by), rules_sha256 FROM seance_opened_v1, span WHERE entry = first"
    )
    ((closed, closed_time, closed_by, *figures),) = ask(
        "SELECT entry, time, who(by), 1, rounds, credited_cents, staked_cents, returned_cents, won_cents,"
        " paid_out_cents, orphaned_cents FROM seance_closed_v1, span WHERE entry = last"
    )
    yield "ÉTAT DE SÉANCE table-controller/etat/v1"
    yield f"Table : {origin}"
    yield f"Séance : {name}"
    yield f"Règles : sha256 {rules}"
    yield f"Ouverture : écriture {opened}, {moment(opened_time)} UTC, {opened_by}"
    yield f"Fermeture : écriture {closed}, {moment(closed_time)} UTC, {closed_by}"
    yield "Les heures sont en temps universel (UTC), les montants en euros."
    yield from ("", "COUPS", "    coup  heure (UTC)          numéro            misé           rendu           gagné")
    for _, time, number, pocket, *cents, reason in ask(ROUNDS):
        amounts = "".join(_euros(int(str(one))).rjust(16) for one in cents)
        why = f"  {CAUSES.get(str(reason), ' '.join(str(reason).split()))}" if pocket == "nul" else ""
        yield f"{str(number).rjust(8)}  {moment(time)}  {str(pocket).ljust(6)}{amounts}{why}"
    yield from ("", "INCIDENTS ET MODE MANUEL")
    yield from [f"{moment(time)}  {event}" for _, time, event in ask(EVENTS)] or ["néant"]
    yield from ("", "CRÉDITS, PAIEMENTS, CONSIGNES ET ORPHELINS")
    moved = [
        f"{moment(time)}  poste {str(post).rjust(3)}{_euros(int(str(cents_moved))).rjust(16)}  {told}"
        for _, time, post, cents_moved, told in ask(MOVEMENTS)
    ]
    yield from moved or ["néant"]
    yield from ("", "POSTES")
    titles = ("crédité", "misé", "rendu", "gagné", "payé", "consigné")
    yield "   poste" + "".join(title.rjust(16) for title in titles)
    every = ask(POSTS.format(key="post", group="GROUP BY post ORDER BY post"))
    (together,) = ask(POSTS.format(key="'ensemble'", group=""))
    for post, *cents in [*every, together]:
        yield str(post).rjust(8) + "".join(_euros(int(str(one))).rjust(16) for one in cents)
    yield from ("", "TOTAUX                            séance           perpétuel")
    (perpetual,) = ask(PERPETUAL)
    labels = ("séances", "coups valables", "crédité", "misé", "rendu", "gagné", "payé par la caisse", "orphelins")
    for at, (label, here, ever) in enumerate(zip(labels, figures, perpetual, strict=True)):
        show = str if at < 2 else lambda cents: _euros(int(str(cents)))
        yield label.ljust(24) + show(here).rjust(16) + show(ever).rjust(20)
    _, credited, staked, returned, won, _, _ = (int(str(one)) if one != "ensemble" else 0 for one in together)
    owed, paid = credited - staked + returned + won, int(str(figures[6])) + int(str(figures[7]))
    yield ""
    yield (
        f"Balance {'juste' if owed == paid else 'FAUSSE'} : crédité - misé + rendu + gagné = {_euros(owed)} ; "
        f"payé + orphelins = {_euros(paid)}"
    )
    yield from ("", _fingerprint(root), _root_line(int(str(closed)) + 1, root))


def _fingerprint(root: bytes) -> str:
    number = 0
    for byte in root[:8]:
        number = number * 256 + byte
    digits = str(number % 10_000_000_000_000_000).zfill(16)
    return f"Empreinte à lire : {digits[:4]} {digits[4:8]} {digits[8:12]} {digits[12:]}"


def _root_line(size: int, root: bytes) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    bits = "".join(f"{byte:08b}" for byte in root) + "00"
    encoded = "".join(letters[int(bits[at : at + 6], 2)] for at in range(0, len(bits), 6))
    return f"Racine de {size} écritures : {encoded}="

"""What may be wrong between options that are each right."""

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping

from controller.certify.faults import KeyFault
from controller.certify.note import KeyType, Verifier
from controller.config_faults import ConfigFault, short
from controller.delivery.enrolment import EnrolledPerson
from controller.faults import advice
from controller.options import SIMULATION, Config
from games.roulette.announcements import HouseOption
from games.roulette.game import BUTTONS, LAMPS
from games.roulette.layout import Wheel, layout
from games.signals import Role


def contradictions(config: Config, sound: Collection[str]) -> Iterator[ConfigFault]:
    """Every contradiction, mix and double use among the ``sound`` sections; the others are not looked at."""
    for sections, check in _CHECKS:
        if all(section in sound for section in sections):
            yield from check(config)


def _broker_contradictions(config: Config) -> Iterator[ConfigFault]:
    tls = (config.mqtt.ca, config.mqtt.certificate, config.mqtt.key)
    if any(tls) and not all(tls):
        english, french = "TLS needs ca, certificate and key together", "TLS demande ca, certificate et key ensemble"
        yield ConfigFault("mqtt", "", english, french)


def _mirror_contradictions(config: Config) -> Iterator[ConfigFault]:
    """Mirror and witnesses: each has a cosigner's key of its own, or the lines of two would count for one."""
    cosigners = [("mirror.vkey", config.mirror.vkey)] if config.mirror else []
    cosigners += [(f"witness.{number}.vkey", witness.vkey) for number, witness in enumerate(config.witness, 1)]
    names: set[str] = set()
    for place, vkey in cosigners:
        try:
            verifier = Verifier.parse(vkey)
        except KeyFault as error:
            yield _bad_key(place, short(vkey), error)
            continue
        if verifier.key_type is not KeyType.COSIGNATURE:
            english = "is no cosigner's key: those are of type 0x04"
            french = "n'est pas une clé de contre-signature : celles-ci sont du type 0x04"
            yield ConfigFault(place, short(vkey), english, french)
        if verifier.name in names:
            english, french = "names a cosigner that is listed already", "nomme un contre-signataire déjà donné"
            yield ConfigFault(place, short(vkey), english, french)
        names.add(verifier.name)
    for number, witness in enumerate(config.witness, 1):
        if witness.name in [other.name for other in config.witness[: number - 1]]:
            english, french = "names a witness that is listed already", "nomme un témoin déjà donné"
            yield ConfigFault(f"witness.{number}.name", witness.name, english, french)


def _bad_key(place: str, shown: str, fault: KeyFault) -> ConfigFault:
    return ConfigFault(place, shown, str(fault), f"{fault.code} {advice(fault.code).title('fr')}")


def _wheel_contradictions(config: Config) -> Iterator[ConfigFault]:
    wheel, rules = config.wheel, config.roulette
    try:
        _ = config.wheel_settings
    except ValueError as error:
        option, _, wrong = str(error).partition(": ")
        yield ConfigFault(f"wheel.{option}", "", wrong, _WHEEL_FRENCH[option])
    if rules.conduct == "launcher" and not wheel.commands:
        english = "an automatic launcher must obey commands"
        yield ConfigFault("wheel.commands", "false", english, "un lanceur automatique doit obéir à des commandes")


_WHEEL_FRENCH: Mapping[str, str] = {
    "silence_ms": "doit valoir au moins deux fois status_period_ms",
    "rotor_max_mrpm": "doit dépasser rotor_min_mrpm",
    "direction_control": "demande wheel.commands, et le bit 16 de wheel.parameters.options",
}
"""What the wheel's driver refuses, by option."""


def _rules_contradictions(config: Config) -> Iterator[ConfigFault]:
    rules = config.roulette
    if rules.zero_combinations is not None:
        offered = layout(Wheel(rules.wheel))
        for bet in rules.zero_combinations:
            if bet not in offered or not {"0", "00"} & offered[bet].pockets:
                english = f"is no combination with zero of a {rules.wheel}-pocket layout"
                french = f"n'est pas une combinaison avec zéro du tapis de {rules.wheel} cases"
                yield ConfigFault("roulette.zero_combinations", bet, english, french)
    if rules.wheel == 38 and {HouseOption.JEU_ZERO, HouseOption.ORPHELINS_EN_PLEIN} & set(rules.announcements):
        english = "jeu-zero and orphelins-en-plein are sectors of the 37-pocket wheel"
        french = "jeu-zero et orphelins-en-plein sont des secteurs du cylindre de 37 cases"
        yield ConfigFault("roulette.announcements", "", english, french)
    if rules.no_more_bets_after_ms >= rules.no_more_bets_limit_ms:
        shown, english = str(rules.no_more_bets_after_ms), "must be below no_more_bets_limit_ms"
        yield ConfigFault("roulette.no_more_bets_after_ms", shown, english, "doit être sous no_more_bets_limit_ms")
    for option in _ONLY_FOR["launcher" if rules.conduct == "croupier" else "croupier"]:
        if option in rules.model_fields_set:
            english = f"has no effect when the conduct is {rules.conduct}: take it out"
            french = f"n'a aucun effet quand conduct est {rules.conduct} : l'ôter"
            yield ConfigFault(f"roulette.{option}", _toml(getattr(rules, option)), english, french)


_ONLY_FOR: Mapping[str, tuple[str, ...]] = {
    "launcher": ("betting_ms", "between_ms", "launch_limit_ms"),
    "croupier": ("button_calls_no_more_bets",),
}
"""House rules that act under one conduct only; written under the other, they would promise what never happens."""


def _toml(value: bool | int) -> str:
    return str(value).lower()


def _panel_contradictions(config: Config) -> Iterator[ConfigFault]:
    panel = config.panel
    for button in panel.buttons:
        if button not in BUTTONS:
            near = difflib.get_close_matches(button, BUTTONS, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; permitted: {', '.join(BUTTONS)}"
            hint_fr = f" ; vouliez-vous dire {near[0]} ?" if near else f" ; permis : {', '.join(BUTTONS)}"
            english, french = f"no such button at a roulette{hint}", f"pas de bouton de ce nom à une roulette{hint_fr}"
            yield ConfigFault(f"panel.buttons.{button}", "", english, french)
    for lamp in panel.lamps:
        if lamp not in LAMPS:
            english = f"no such lamp at a roulette; permitted: {', '.join(LAMPS)}"
            french = f"pas de lampe de ce nom à une roulette ; permis : {', '.join(LAMPS)}"
            yield ConfigFault(f"panel.lamps.{lamp}", "", english, french)
    wired: dict[int, str] = {}
    for group in ("buttons", "keys", "lamps"):
        for name, pin in getattr(panel, group).items():
            place = f"panel.{group}.{name}"
            if pin in wired:
                english, french = f"pin {pin} already serves {wired[pin]}", f"la broche {pin} sert déjà à {wired[pin]}"
                yield ConfigFault(place, str(pin), english, french)
            wired.setdefault(pin, place)
    if panel.device != "none" and config.roulette.conduct == "croupier" and "croupier" not in panel.keys:
        english = "is missing: a croupier's panel works only under his key"
        french = "manque : le pupitre d'un croupier ne marche que sous sa clé"
        yield ConfigFault("panel.keys.croupier", "", english, french)


def _person_contradictions(config: Config) -> Iterator[ConfigFault]:
    badges: set[str] = set()
    keys: dict[bytes, str] = {}
    for number, person in enumerate(config.person, 1):
        if person.badge in badges:
            yield ConfigFault(f"person.{number}.badge", person.badge, "is enrolled twice", "est inscrit deux fois")
        badges.add(person.badge)
        try:
            public = EnrolledPerson(badge=person.badge, role=person.role, vkey=person.vkey).verifier.public
        except KeyFault as error:
            yield _bad_key(f"person.{number}.vkey", short(person.vkey), error)
            continue
        other = keys.setdefault(public, person.badge)
        if other != person.badge:  # two directors must be two people
            english, french = f"is the key of badge {other} too", f"est aussi la clé du badge {other}"
            yield ConfigFault(f"person.{number}.vkey", short(person.vkey), english, french)
    director = any(person.role is Role.DIRECTOR and not person.revoked for person in config.person)
    if not director and "director" not in config.panel.keys:
        english = "nobody could open a séance: enrol a director, or wire the director's key"
        french = "personne ne pourrait ouvrir une séance : inscrire un membre du comité de direction, ou câbler sa clé"
        yield ConfigFault("person", "", english, french)


def _simulation_contradictions(config: Config) -> Iterator[ConfigFault]:
    simulation = config.table.simulation
    device = config.panel.device
    if device not in ("gpio", "none") and not device.startswith("twin:"):
        permitted = '"gpio", "none" {} "twin:SOCKET"'
        english, french = f"must be {permitted.format('or')}", f"doit être {permitted.format('ou')}"
        yield ConfigFault("panel.device", device, english, french)
    if config.table.site.endswith(SIMULATION):
        english = f"{SIMULATION} is for table.simulation = true to add"
        french = f"{SIMULATION} : c'est table.simulation = true qui l'ajoute"
        yield ConfigFault("table.site", config.table.site, english, french)
    if device.startswith("twin:") and not simulation:
        english = "a twin is for simulations: table.simulation must be true"
        french = "un jumeau est pour les simulations : table.simulation doit être true"
        yield ConfigFault("panel.device", device, english, french)
    if config.journal.volatile and not simulation:
        english = "a real table's journal must survive a power cut"
        french = "le journal d'une vraie table doit survivre à une coupure de courant"
        yield ConfigFault("journal.volatile", "true", english, french)


def _shared_files(config: Config) -> Iterator[ConfigFault]:
    """One port or file cannot serve twice."""
    used = {
        "wheel.port": config.wheel.port,
        "panel.device": config.panel.device.removeprefix("twin:"),
        "journal.file": str(config.journal.file),
        "journal.key": config.journal.key,
        "journal.previous_key": str(config.journal.previous_key),
        "mqtt.key": str(config.mqtt.key),
        "mqtt.certificate": str(config.mqtt.certificate),
    }
    first: dict[str, str] = {}
    for option, path in used.items():
        if path in first and path != str(None):
            yield ConfigFault(option, path, f"already serves {first[path]}", f"sert déjà à {first[path]}")
        first.setdefault(path, option)


_CHECKS: tuple[tuple[tuple[str, ...], Callable[[Config], Iterator[ConfigFault]]], ...] = (
    (("wheel", "roulette"), _wheel_contradictions),
    (("roulette",), _rules_contradictions),
    (("panel", "roulette"), _panel_contradictions),
    (("person", "panel"), _person_contradictions),
    (("table", "panel", "journal"), _simulation_contradictions),
    (("wheel", "panel", "journal", "mqtt"), _shared_files),
    (("mqtt",), _broker_contradictions),
    (("mirror", "witness"), _mirror_contradictions),
)
"""Each check and the sections that it looks at."""

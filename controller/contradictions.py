"""What may be wrong between options that are each right."""

import difflib
from collections.abc import Callable, Collection, Iterator

from controller.certify.faults import KeyFault
from controller.certify.note import KeyType, Verifier
from controller.config_faults import ConfigFault, short
from controller.delivery.orders import EnrolledPerson
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
        yield ConfigFault("mqtt", "", "TLS needs ca, certificate and key together")


def _mirror_contradictions(config: Config) -> Iterator[ConfigFault]:
    if config.mirror is None:
        return
    place, shown = "mirror.vkey", short(config.mirror.vkey)
    try:
        if Verifier.parse(config.mirror.vkey).key_type is not KeyType.COSIGNATURE:
            yield ConfigFault(place, shown, "is no cosigner's key: those are of type 0x04")
    except KeyFault as error:
        yield ConfigFault(place, shown, str(error))


def _wheel_contradictions(config: Config) -> Iterator[ConfigFault]:
    wheel, rules = config.wheel, config.roulette
    try:
        _ = config.wheel_settings
    except ValueError as error:
        option, _, wrong = str(error).partition(": ")
        yield ConfigFault(f"wheel.{option}", "", wrong)
    if wheel.required_mode != 1_159:
        yield ConfigFault("wheel.required_mode", str(wheel.required_mode), "must be 1159: any other starts by itself")
    if rules.conduct == "launcher" and not wheel.commands:
        yield ConfigFault("wheel.commands", "false", "an automatic launcher must obey commands")
    if rules.zero_combinations is not None:
        offered = layout(Wheel(rules.wheel))
        for bet in rules.zero_combinations:
            if bet not in offered or not {"0", "00"} & offered[bet].pockets:
                yield ConfigFault(
                    "roulette.zero_combinations", bet, f"is no combination with zero of a {rules.wheel}-pocket layout"
                )
    if rules.wheel == 38 and {HouseOption.JEU_ZERO, HouseOption.ORPHELINS_EN_PLEIN} & set(rules.announcements):
        wrong = "jeu-zero and orphelins-en-plein are sectors of the 37-pocket wheel"
        yield ConfigFault("roulette.announcements", "", wrong)
    if rules.no_more_bets_after_ms >= rules.no_more_bets_limit_ms:
        yield ConfigFault(
            "roulette.no_more_bets_after_ms", str(rules.no_more_bets_after_ms), "must be below no_more_bets_limit_ms"
        )


def _panel_contradictions(config: Config) -> Iterator[ConfigFault]:
    panel = config.panel
    for button in panel.buttons:
        if button not in BUTTONS:
            near = difflib.get_close_matches(button, BUTTONS, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; permitted: {', '.join(BUTTONS)}"
            yield ConfigFault(f"panel.buttons.{button}", "", f"no such button at a roulette{hint}")
    for lamp in panel.lamps:
        if lamp not in LAMPS:
            yield ConfigFault(f"panel.lamps.{lamp}", "", f"no such lamp at a roulette; permitted: {', '.join(LAMPS)}")
    wired: dict[int, str] = {}
    for group in ("buttons", "keys", "lamps"):
        for name, pin in getattr(panel, group).items():
            place = f"panel.{group}.{name}"
            if pin in wired:
                yield ConfigFault(place, str(pin), f"pin {pin} already serves {wired[pin]}")
            wired.setdefault(pin, place)
    if panel.device != "none" and config.roulette.conduct == "croupier" and "croupier" not in panel.keys:
        yield ConfigFault("panel.keys.croupier", "", "is missing: a croupier's panel works only under his key")


def _person_contradictions(config: Config) -> Iterator[ConfigFault]:
    badges: set[str] = set()
    for number, person in enumerate(config.person, 1):
        if person.badge in badges:
            yield ConfigFault(f"person.{number}.badge", person.badge, "is enrolled twice")
        badges.add(person.badge)
        try:
            EnrolledPerson(badge=person.badge, role=person.role, vkey=person.vkey)
        except KeyFault as error:
            yield ConfigFault(f"person.{number}.vkey", short(person.vkey), str(error))
    director = any(person.role is Role.DIRECTOR and not person.revoked for person in config.person)
    if not director and "director" not in config.panel.keys:
        yield ConfigFault("person", "", "nobody could open a séance: enrol a director, or wire the director's key")


def _simulation_contradictions(config: Config) -> Iterator[ConfigFault]:
    simulation = config.table.simulation
    device = config.panel.device
    if device not in ("gpio", "none") and not device.startswith("twin:"):
        yield ConfigFault("panel.device", device, 'must be "gpio", "none" or "twin:SOCKET"')
    if config.table.site.endswith(SIMULATION):
        yield ConfigFault("table.site", config.table.site, f"{SIMULATION} is for table.simulation = true to add")
    if device.startswith("twin:") and not simulation:
        yield ConfigFault("panel.device", device, "a twin is for simulations: table.simulation must be true")
    if config.journal.volatile and not simulation:
        yield ConfigFault("journal.volatile", "true", "a real table's journal must survive a power cut")


def _shared_files(config: Config) -> Iterator[ConfigFault]:
    """One port or file cannot serve twice."""
    used = {
        "wheel.port": config.wheel.port,
        "panel.device": config.panel.device.removeprefix("twin:"),
        "journal.file": str(config.journal.file),
        "journal.key": config.journal.key,
        "mqtt.key": str(config.mqtt.key),
        "mqtt.certificate": str(config.mqtt.certificate),
    }
    first: dict[str, str] = {}
    for option, path in used.items():
        if path in first and path != str(None):
            yield ConfigFault(option, path, f"already serves {first[path]}")
        first.setdefault(path, option)


_CHECKS: tuple[tuple[tuple[str, ...], Callable[[Config], Iterator[ConfigFault]]], ...] = (
    (("wheel", "roulette"), _wheel_contradictions),
    (("panel", "roulette"), _panel_contradictions),
    (("person", "panel"), _person_contradictions),
    (("table", "panel", "journal"), _simulation_contradictions),
    (("wheel", "panel", "journal", "mqtt"), _shared_files),
    (("mqtt",), _broker_contradictions),
    (("mirror",), _mirror_contradictions),
)
"""Each check and the sections that it looks at."""

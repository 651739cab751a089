"""The options of a table's configuration: what each is, its bounds, and the article from which it comes.

``controller.options_french`` says in French what each means.

The section ``[roulette]`` holds the house rules: their digest is certified when a séance opens.
"""

import hashlib
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator

from controller.certify.keys import table_key_name
from controller.certify.leaf import canonical
from controller.config_faults import BADGE, NAME, SITE
from controller.delivery.broker_settings import BrokerSettings
from drivers.slingshot import WheelParameters, WheelSettings
from games.money import Cents
from games.roulette.announcements import HouseOption
from games.roulette.layout import Wheel
from games.roulette.rules import Conduct, RouletteRules
from games.signals import Role

SIMULATION = ".simulation"
"""Ends the site's name of anything that is not a real table: no real key has such a name, so none can sign for it."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Site = Annotated[str, Field(pattern=SITE, max_length=64)]
Name = Annotated[str, Field(pattern=NAME)]
Badge = Annotated[str, Field(pattern=BADGE)]
Pin = Annotated[int, Field(ge=0, le=27)]
Milliseconds = Annotated[int, Field(ge=100, le=3_600_000)]


class TableSection(_Section):
    """Which table this is."""

    site: Site = Field(description="Domain of the casino; first word of the journal's origin.")
    name: Name = Field(description="Casino number of the table.")
    posts: int = Field(ge=1, le=250, description="Number of posts.")
    epoch: int = Field(default=1, ge=1, le=9_999, description="Epoch of the journal; a new one only with a new key.")
    time_zone: str = Field(
        default="Europe/Paris", description="Time zone of the casino: a séance is named after the day it opens there."
    )
    simulation: bool = Field(default=False, description="A rehearsal: it can never sign for the real table.")

    @field_validator("time_zone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"this machine knows no time zone {name!r}; its package tzdata has them") from None
        return name


class JournalSection(_Section):
    """Where the journal and the table's key are."""

    file: Path = Field(strict=False, description="The journal; relative paths start at this file's folder.")
    key: str = Field(description='The table\'s key: a path, or "credential:NAME" for a systemd credential.')
    previous_key: str | None = Field(
        default=None, description="The key that this one replaces; both sign as long as it is given."
    )
    volume_entries: int = Field(
        default=600_000, ge=10_000, description="New entries after which a new file is begun; at the latest each month."
    )
    reserve_mib: int = Field(
        default=64, ge=0, le=4_096, description="Room held back so that the séance can be closed on a full disk."
    )
    retention_years: int = Field(
        default=10, ge=10, le=100, description="Years for which entries are kept; it can be raised, never lowered."
    )
    volatile: bool = Field(default=False, description="Permit a store that forgets at power-off; simulation only.")


class RouletteSection(_Section):
    """The house rules of the roulette."""

    wheel: Literal[37, 38] = Field(description="Pockets: 37 (art. 51, 55-10) or 38 (art. 55-1); binds bets and limits.")
    conduct: Literal["croupier", "launcher"] = Field(description="Who launches the ball (electronic roulette, 1°).")
    minimum_cents: int = Field(ge=10, le=100_000, multiple_of=2, description="Table minimum; maxima are its multiples.")
    announcements: list[Annotated[HouseOption, Field(strict=False)]] = Field(
        default_factory=list, description="Announcements offered beyond the classic ones."
    )
    zero_combinations: list[str] | None = Field(
        default=None, description="Combinations with zero on the layout; the customary ones when absent."
    )
    random_combinations: bool = Field(default=True, description="The device offers random combinations.")
    player_minimum: bool = Field(default=True, description="A player may fix the value of his pieces (55-3, 55-13).")
    button_calls_no_more_bets: bool = Field(
        default=True, description="Croupier: his button calls it; otherwise it declares that the device missed it."
    )
    no_more_bets_after_ms: int = Field(
        default=0, ge=0, le=60_000, description="Call it this long after the launch; 0: only the ball's slowing does."
    )
    betting_ms: Milliseconds = Field(default=15_000, description="Launcher: from faites vos jeux to the launch.")
    between_ms: Milliseconds = Field(default=5_000, description="Launcher: from a result to the next round.")
    launch_limit_ms: Milliseconds = Field(default=60_000, description="Launcher: not seen after this, incident.")
    no_more_bets_limit_ms: Milliseconds = Field(default=20_000, description="Slowing not seen after this: incident.")
    number_limit_ms: Milliseconds = Field(default=90_000, description="Number not detected after this: incident.")
    relaunch_limit: int = Field(default=3, ge=1, le=20, description="Failed or refused launches before an incident.")
    absence_ms: int = Field(
        default=600_000, ge=60_000, le=7_200_000, description="How long a player may be away (house rules)."
    )


class WheelParametersSection(_Section):
    """What the wheel must hold in its memory (``*T``), as registered when it was certified."""

    firmware: str = Field(default="V2.52", description="Firmware version (*S).")
    no_more_bets_threshold: int = Field(default=2_920, ge=1, description="Ball-turn time × 2048 (*T n).")
    rotor_low_mrpm: int = Field(default=14_000, ge=1_000, description="Slowest drawn rotor speed (*T s).")
    rotor_high_mrpm: int = Field(default=17_500, ge=1_000, description="Fastest drawn rotor speed (*T s).")
    rotor_change_mrpm: int = Field(default=1_500, ge=0, description="Random change after no more bets (*T m).")
    games_per_hour: int = Field(default=60, ge=1, description="Pace (*T h).")
    keep_in_rim: int = Field(default=1_900, ge=0, description="Keep-in-rim time (*T k).")
    blind_half_seconds: int = Field(default=10, ge=0, description="Blind-sensor time in state 4 (*T i).")
    options: int = Field(default=0, ge=0, description="Option bits (*T g): 8 stop, 16 direction, 32 state 7.")


class WheelSection(_Section):
    """The wheel's head."""

    protocol: Literal["slingshot"] = Field(description="What the wheel speaks.")
    port: str = Field(min_length=1, description="Stable name of the serial port, see systemd/70-table-wheel.rules.")
    commands: bool = Field(default=True, description="The wheel obeys commands; false for a listen-only reader.")
    direction_control: bool = Field(default=False, description="It takes *u 1 and *u 3 (firmware 2.52, *T g bit 16).")
    status_period_ms: int = Field(default=500, ge=5, le=1_000, description="Pace of its status lines.")
    silence_ms: int = Field(default=2_500, ge=500, le=10_000, description="Silence after which the link is lost.")
    rotor_min_mrpm: int = Field(default=12_000, ge=1_000, le=60_000, description="Alarm below, thousandths of rpm.")
    rotor_max_mrpm: int = Field(default=20_000, ge=1_000, le=60_000, description="Alarm above, thousandths of rpm.")
    parameters: WheelParametersSection = Field(default_factory=WheelParametersSection)


class PanelSection(_Section):
    """The croupier's panel: BCM pin numbers by the name on the cabinet."""

    device: str = Field(default="gpio", description='"gpio", "none", or "twin:SOCKET" in a simulation.')
    buttons: dict[str, Pin] = Field(default_factory=dict, description="Buttons and their pins.")
    keys: dict[Literal["croupier", "director"], Pin] = Field(default_factory=dict, description="Key switches.")
    lamps: dict[str, Pin] = Field(default_factory=dict, description="Lamps and their pins.")
    settle_ms: int = Field(default=5, ge=1, le=100, description="A contact is stable after this.")
    minimum_ms: int = Field(default=20, ge=1, le=500, description="A shorter press is interference.")


class MqttSection(_Section):
    """The broker of the casino's network."""

    host: str = Field(min_length=1, description="Its address.")
    port: int = Field(ge=1, le=65_535, description="8883 with TLS.")
    ca: Path | None = Field(default=None, strict=False, description="Authority that signed its certificate.")
    certificate: Path | None = Field(default=None, strict=False, description="This table's certificate.")
    key: Path | None = Field(default=None, strict=False, description="And its key.")
    keepalive_s: int = Field(default=15, ge=5, le=120, description="A dead link is noticed within this, and a half.")

    def settings(self, client_id: str) -> BrokerSettings:
        """How the client ``client_id`` connects there."""
        return BrokerSettings(
            host=self.host,
            port=self.port,
            client_id=client_id,
            ca_path=self.ca,
            certificate_path=self.certificate,
            key_path=self.key,
            keepalive_s=self.keepalive_s,
        )


class MirrorSection(_Section):
    """The central service that acknowledges what it holds durably."""

    vkey: str = Field(description="Its verifier key (type 0x04).")
    start_wait_s: int = Field(default=10, ge=1, le=60, description="A start waits so long for its acknowledgement.")


class WitnessSection(_Section):
    """A second witness: it cosigns what it saw, and its line is kept. Its key is not the mirror's."""

    name: Name = Field(description="Its topic level: it keeps its line on down/witness/NAME.")
    vkey: str = Field(description="Its verifier key (type 0x04).")


class RehearsalSection(_Section):
    """How ``tablectl demo`` plays this table with twins."""

    broker: str = Field(default="iotcore", description='"iotcore" (by pip), or the path of a mosquitto to run instead.')
    speed: int = Field(default=8, ge=1, le=60, description="How many times faster than life.")


class PersonSection(_Section):
    """A person who may sign orders."""

    badge: Badge = Field(description="Badge number.")
    role: Role = Field(strict=False, description="director, croupier, cashier or technician.")
    vkey: str = Field(description="Verifier key, from tablectl key create --person.")
    revoked: bool = Field(default=False, description="No order of this person is taken any more.")


class Config(_Section):
    """A table's configuration."""

    game: Literal["roulette"] = Field(description="The game of this table.")
    table: TableSection
    journal: JournalSection
    roulette: RouletteSection
    wheel: WheelSection
    mqtt: MqttSection
    panel: PanelSection = Field(default_factory=PanelSection)
    mirror: MirrorSection | None = None
    witness: list[WitnessSection] = Field(default_factory=list)
    rehearsal: RehearsalSection = Field(default_factory=RehearsalSection)
    person: list[PersonSection] = Field(default_factory=list)

    @property
    def site(self) -> str:
        """The casino's name in origins, keys and topics; a rehearsal's can be taken for no real one."""
        return self.table.site + SIMULATION if self.table.simulation else self.table.site

    @property
    def zone(self) -> ZoneInfo:
        """The time zone of the casino."""
        return ZoneInfo(self.table.time_zone)

    @property
    def origin(self) -> str:
        """The journal's origin and the name of the table's key."""
        return table_key_name(self.site, self.table.name, self.table.epoch)

    @property
    def rules(self) -> RouletteRules:
        """The house rules as the game wants them."""
        options = self.roulette
        zero = options.zero_combinations
        return RouletteRules(
            wheel=Wheel(options.wheel),
            conduct=Conduct(options.conduct),
            posts=self.table.posts,
            minimum=Cents(options.minimum_cents),
            announcements=frozenset(options.announcements),
            zero_combinations=None if zero is None else frozenset(zero),
            random_combinations=options.random_combinations,
            player_minimum=options.player_minimum,
            verify_wheel=self.wheel.commands,
            button_calls_no_more_bets=options.button_calls_no_more_bets,
            no_more_bets_after_ms=options.no_more_bets_after_ms,
            betting_ms=options.betting_ms,
            between_ms=options.between_ms,
            launch_limit_ms=options.launch_limit_ms,
            no_more_bets_limit_ms=options.no_more_bets_limit_ms,
            number_limit_ms=options.number_limit_ms,
            relaunch_limit=options.relaunch_limit,
            absence_ms=options.absence_ms,
        )

    @property
    def wheel_settings(self) -> WheelSettings:
        """The wheel as its driver wants it. Raises ValueError when options contradict each other."""
        options = self.wheel.model_dump(exclude={"protocol", "port", "parameters"})
        parameters = WheelParameters(**self.wheel.parameters.model_dump())
        return WheelSettings(pockets=self.roulette.wheel, parameters=parameters, **options)

    @property
    def rules_sha256(self) -> str:
        """The digest of the house rules in force, certified at each opening."""
        rules = {"posts": self.table.posts, **self.roulette.model_dump(mode="json", exclude_none=True)}
        return hashlib.sha256(canonical(rules).encode()).hexdigest()

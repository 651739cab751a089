"""What ``tablectl doctor`` asks of the devices: of the daemon that holds them, else of port and pins themselves."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

from controller.cli.findings import Finding, Status, error, warn, well
from controller.cli.language import colon, here
from controller.options import Config
from drivers.clock import SystemClock
from drivers.gpio import GpioInputs, GpioOutputs, InputLine
from drivers.gpio_factory import open_header
from drivers.ports import DeviceFault
from drivers.serial_line import SerialLine
from drivers.slingshot_wheel import SlingshotWheel
from games.rules import Input
from games.signals import WheelVerified


def wheel(config: Config, status: Status | None) -> Iterator[Finding]:
    subject, port = here("cylindre", "wheel"), config.wheel.port
    if status is not None:
        wheel = status["wheel"]
        if wheel["link_is_up"]:
            yield well(subject, ", ".join(filter(None, (port, wheel["firmware"]))))
        else:
            code, _, detail = wheel["fault"].partition(" ")
            yield error(subject, code or "E-WHEEL-SILENT", detail or port)
        return
    try:
        SerialLine(port).close()
    except DeviceFault as fault:
        yield error(subject, fault.code, f"{fault.device}{colon()}{fault.detail}")
        return
    differences = asyncio.run(_ask_wheel(config)).differences
    if differences:
        yield error(subject, "E-WHEEL-NOT-VERIFIED", "; ".join(differences))
    else:
        yield well(subject, here(f"{port}, vérifié", f"{port}, verified"))


async def _ask_wheel(config: Config) -> WheelVerified:
    """Read the wheel's parameters, as at an opening. Nothing is changed in it."""
    told: list[Input] = []
    settings = config.wheel_settings
    wheel = SlingshotWheel(lambda: SerialLine(config.wheel.port), SystemClock(), told.append, settings)
    running = asyncio.get_running_loop().create_task(wheel.run())
    try:
        await asyncio.sleep(settings.silence_ms / 1_000)
        return await wheel.verify()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def panel(config: Config, status: Status | None) -> Iterator[Finding]:
    subject, panel = here("pupitre", "panel"), config.panel
    if panel.device == "none" or not (panel.buttons or panel.keys or panel.lamps):
        yield well(subject, here("aucun", "none"))
    elif status is not None:
        yield from _panel_troubles(subject, status["panel"])
    elif panel.device.startswith("twin:"):
        yield well(subject, here("simulé", "simulated"))
    else:
        yield _pins(config, subject)


def _panel_troubles(subject: str, panel: Status) -> Iterator[Finding]:
    found = False
    for one in panel["inputs"]:
        for told in one["troubles"]:
            found = True
            code = {"stuck": "E-INPUT-STUCK", "storm": "E-INPUT-STORM"}.get(told, told.partition(":")[0])
            yield warn(subject, code, one["name"] if told in ("stuck", "storm") else f"{one['name']}{colon()}{told}")
    for lamp in panel["lamps"]:
        if lamp["fault"]:
            found = True
            yield warn(subject, lamp["fault"].partition(":")[0], f"{lamp['name']}{colon()}{lamp['fault']}")
    if not found:
        inputs, lamps = len(panel["inputs"]), len(panel["lamps"])
        yield well(subject, here(f"{inputs} entrées, {lamps} lampes", f"{inputs} inputs, {lamps} lamps"))


def _pins(config: Config, subject: str) -> Finding:
    """Take every pin of the panel, and let it go."""
    panel = config.panel
    lines = {name: InputLine(bcm=pin) for name, pin in (panel.buttons | dict(panel.keys.items())).items()}
    try:
        with closing(open_header()) as factory, closing(GpioInputs(lines, factory)):
            GpioOutputs(panel.lamps, factory).close()
    except DeviceFault as fault:
        return error(subject, fault.code, f"{fault.device}{colon()}{fault.detail}")
    return well(subject, here(f"{len(lines)} entrées", f"{len(lines)} inputs"))

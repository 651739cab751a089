"""For how long entries are kept: the certified number of years goes up, never down, and nothing here deletes anything.

The requirement is ten years at the least. A volume's years begin with its last entry.
"""

from datetime import UTC, datetime

from controller.certify.faults import JournalFault


def refuse_lowered(years: int, certified_years: int) -> None:
    """Raise JournalFault (E-RETENTION-LOWERED) when fewer years are configured than were certified."""
    if years < certified_years:
        detail = f"the configuration keeps entries for {years} years, and {certified_years} were certified"
        raise JournalFault("E-RETENTION-LOWERED", detail)


def kept_until(last_time: str, years: int) -> str:
    """The day (UTC, "2036-11-30") up to which a volume must be kept, of whose entries ``last_time`` is the last."""
    last = datetime.fromisoformat(last_time).astimezone(UTC)
    later = last.replace(year=last.year + years, day=28) if (last.month, last.day) == (2, 29) else None
    return (later.replace(month=3, day=1) if later else last.replace(year=last.year + years)).strftime("%Y-%m-%d")

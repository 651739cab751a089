"""Files of different ages put together: an old write-ahead log under a new journal, a new one under an old journal.

SQLite takes whatever log has the right salt, and plays it back. Whatever comes out, a table goes on only from entries
that were signed, the full verification finds what is missing before them, and whoever remembers a later checkpoint
sees that the journal went back.
"""

from contextlib import closing, suppress
from pathlib import Path
from shutil import copyfile

import pytest

from controller.certify.faults import JournalFault
from controller.certify.log_keys import LogKeys
from controller.certify.verify import Outcome, verify
from tests.controller.certify.workshop import SIGNER, build, open_journal, stakes

KEYS = LogKeys.of(SIGNER.verifier)
COMMITS = (1, 40, 7, 200, 9, 300, 3)
"""Entries of each commit: both small ones and such that complete tiles."""


@pytest.fixture(scope="module")
def ages(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Path, int, str]]:
    """Main file, write-ahead log, size and checkpoint after each commit; every second one starts a new log."""
    folder = tmp_path_factory.mktemp("ages")
    path = build(folder / "journal.db", [3])
    ages = []
    for at, count in enumerate(COMMITS):
        with closing(open_journal(path)) as journal:
            for more in (count, at % 2 + 1):
                note = journal.append(stakes(more, journal.size), snapshot=b"%d" % journal.size).note
            main, log = folder / f"{at}.db", folder / f"{at}.wal"
            copyfile(path, main)
            copyfile(path.with_name(f"{path.name}-wal"), log)
            ages.append((main, log, journal.size, note))
    return ages


def together(folder: Path, main: Path, log: Path | None) -> Path:
    path = folder / "journal.db"
    for suffix in ("", "-wal", "-shm"):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
    copyfile(main, path)
    if log is not None:
        copyfile(log, path.with_name(f"{path.name}-wal"))
    return path


def test_files_of_two_ages_are_the_journal_of_one_moment_or_are_refused(
    ages: list[tuple[Path, Path, int, str]], tmp_path: Path
) -> None:
    sizes = {3, *(size for _, _, size, _ in ages)}
    newest = ages[-1]
    outcomes, gone_on = set(), 0
    with closing(open_journal(together(tmp_path, *newest[:2]))) as journal:
        truth = list(journal.leaves(0, journal.size))
    for main, _, main_size, _ in ages:
        for _, log, log_size, _ in ages:
            path = together(tmp_path, main, log)
            verdict = verify(path, KEYS, processes=1)
            remembered = verify(path, KEYS, processes=1, remembered=newest[3])
            outcomes.add(verdict.outcome)
            if verdict.ok:
                assert verdict.size in sizes or verdict.size < max(main_size, log_size)
                went_back = verdict.size < newest[2]
                assert (remembered.outcome is Outcome.ROLLED_BACK_OR_FORKED) is went_back
            with suppress(JournalFault), closing(open_journal(path)) as journal:
                folded, _ = journal.latest_snapshot() or (0, b"")
                assert list(journal.leaves(folded, journal.size)) == truth[folded : journal.size]
                gone_on += 1
                given: list[bytes] = []
                with suppress(JournalFault):
                    given.extend(journal.leaves(0, journal.size))
                assert given == truth[: len(given)]
                assert len(given) == journal.size or not verdict.ok
    assert outcomes > {Outcome.OK}  # some hold together, some do not
    assert gone_on >= len(ages)


def test_start_without_its_write_ahead_log_is_a_start_at_an_earlier_moment(
    ages: list[tuple[Path, Path, int, str]], tmp_path: Path
) -> None:
    for main, _, size, note in ages:
        path = together(tmp_path, main, None)
        with suppress(JournalFault), closing(open_journal(path)) as journal:
            assert journal.size <= size
        verdict = verify(path, KEYS, processes=1, remembered=note)
        assert verdict.outcome is Outcome.ROLLED_BACK_OR_FORKED or verdict.size == size


def test_write_ahead_log_with_any_flipped_byte_ends_before_it_or_is_refused(
    ages: list[tuple[Path, Path, int, str]], tmp_path: Path
) -> None:
    main, log, size, note = ages[-2]
    content = log.read_bytes()
    for at in range(0, len(content), len(content) // 40):
        path = together(tmp_path, main, None)
        spoilt = content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :]
        path.with_name(f"{path.name}-wal").write_bytes(spoilt)
        verdict = verify(path, KEYS, processes=1, remembered=note)
        if verdict.ok:  # the flipped byte is in a part of the log that is not in use any more
            assert verdict.size == size
        with suppress(JournalFault), closing(open_journal(path)) as journal:
            assert journal.size <= size
            assert verify(path, KEYS, processes=1).ok

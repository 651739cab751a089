"""Failing calls, in small: what was promised is kept, and a failed sync of a file is the end."""

from collections.abc import Callable

from proof.io_faults import inject_all


def test_writer_whose_calls_fail_keeps_its_promises_and_ends_at_a_failed_sync(program: Callable[[str], str]) -> None:
    program("strace")
    found = inject_all(commits=4, every=23)
    assert len(found) > 10
    assert [one.injection for one in found if one.broken] == []
    syncs = [one for one in found if one.injection.is_sync_of_what_was_promised]
    assert syncs
    assert [one.injection for one in syncs if one.went_on] == []

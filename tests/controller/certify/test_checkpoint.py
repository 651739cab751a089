"""Checkpoints: one spelling, three lines; and snapshots that can never pass for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.certify.checkpoint import Checkpoint, parse_checkpoint, snapshot_text
from controller.certify.faults import NoteFault

# The example of c2sp.org/tlog-checkpoint.
SPEC_TEXT = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
ROOT = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="


def test_checkpoint_of_the_specification_reads_and_is_written_the_same() -> None:
    checkpoint = parse_checkpoint(SPEC_TEXT)
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20_852_163)
    assert checkpoint.text == SPEC_TEXT


@given(st.integers(0, 10**18), st.binary(min_size=32, max_size=32))
def test_checkpoint_of_any_size_and_root_reads_back(size: int, root: bytes) -> None:
    checkpoint = Checkpoint("casino.example/table/t07/1", size, root)
    assert parse_checkpoint(checkpoint.text) == checkpoint


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"o\n1\n{ROOT}",
        f"\n1\n{ROOT}\n",
        f"o\n1\n{ROOT}\nextension\n",
        f"o\n01\n{ROOT}\n",
        f"o\n-1\n{ROOT}\n",
        f"o\n+1\n{ROOT}\n",
        f"o\n1_0\n{ROOT}\n",
        f"o\n١\n{ROOT}\n",
        f"o\n 1\n{ROOT}\n",
        f"o\n{10**19}\n{ROOT}\n",
        f"o\n1\n{ROOT[:-1]}\n",
        f"o\n1\n{ROOT.replace('q2I=', 'q2J=')}\n",
        "o\n1\nAAAA\n",
        f"o\n1\n {ROOT}\n",
    ],
)
def test_checkpoint_in_any_other_spelling_is_refused(text: str) -> None:
    with pytest.raises(NoteFault) as caught:
        parse_checkpoint(text)
    assert caught.value.code in {"E-CHECKPOINT-MALFORMED", "E-NOTE-MALFORMED"}


def test_snapshot_text_binds_origin_size_root_and_body_and_is_no_checkpoint() -> None:
    root, other = bytes(32), bytes(31) + b"\1"
    text = snapshot_text("casino.example/table/t07/1", 7, root, b"state")
    others = {
        snapshot_text("casino.example/table/t07/2", 7, root, b"state"),
        snapshot_text("casino.example/table/t07/1", 8, root, b"state"),
        snapshot_text("casino.example/table/t07/1", 7, other, b"state"),
        snapshot_text("casino.example/table/t07/1", 7, root, b"State"),
    }
    assert text not in others
    assert len(others) == 4
    with pytest.raises(NoteFault):
        parse_checkpoint(text)

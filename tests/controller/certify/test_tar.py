"""The tar of an archive: read by everybody's tools, made of one spelling, and harmless when it is hostile."""

import io
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from controller.certify import tar as tar_module
from controller.certify.faults import JournalFault
from controller.certify.tar import BLOCK, TarReader, TarWriter, header, is_archive

CONTENTS = {"README": b"read me\n", "a/b": bytes(512), "events.jsonl": b"{}\n" * 400, "zero": b""}
TIME_S = 1_796_000_000


def packed(contents: Mapping[str, bytes] = CONTENTS, folder: str = "journal") -> bytes:
    file = io.BytesIO()
    writer = TarWriter(file, folder, TIME_S)
    for name, content in contents.items():
        writer.add(name, [content[:3], content[3:]])
    writer.end()
    return file.getvalue()


def code_of(content: bytes) -> str:
    with pytest.raises(JournalFault) as caught:
        TarReader.open(io.BytesIO(content))
    return caught.value.code


def test_tar_is_read_by_the_standard_library_with_the_same_content() -> None:
    with tarfile.open(fileobj=io.BytesIO(packed())) as tar:
        members = tar.getmembers()
        assert [member.name for member in members] == [f"journal/{name}" for name in CONTENTS]
        assert {member.mtime for member in members} == {TIME_S}
        assert {(member.uid, member.gid, member.mode, member.uname) for member in members} == {(0, 0, 0o644, "")}
        for member, content in zip(members, CONTENTS.values(), strict=True):
            extracted = tar.extractfile(member)
            assert extracted is not None and extracted.read() == content


def test_tar_is_unpacked_by_the_system_without_a_word(program: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(packed())
    done = subprocess.run([program("tar"), "xvf", "x.tar"], cwd=tmp_path, capture_output=True, check=True)
    assert done.stderr == b""
    assert {name: (tmp_path / "journal" / name).read_bytes() for name in CONTENTS} == CONTENTS


def test_tar_read_back_has_what_was_written() -> None:
    reader = TarReader.open(io.BytesIO(packed()))
    assert (reader.folder, reader.time_s) == ("journal", TIME_S)
    assert {name: reader.read(name, 10_000) for name in reader.members} == CONTENTS
    assert reader.part("events.jsonl", 1_198, 10) == b"}\n"
    assert reader.part("events.jsonl", 1_300, 10) == b""


def test_tar_flipped_in_any_bit_of_its_frame_is_refused() -> None:
    good = packed()
    content_at = {
        at
        for member in TarReader.open(io.BytesIO(good)).members.values()
        for at in range(member.offset, member.offset + member.length)
    }
    frame = [at for at in range(len(good)) if at not in content_at]
    assert len(frame) > 4 * BLOCK
    for at in frame:
        for bit in range(8):
            bad = bytearray(good)
            bad[at] ^= 1 << bit
            assert code_of(bytes(bad)).startswith("E-ARCHIVE-")


def test_tar_cut_anywhere_is_incomplete_or_no_archive() -> None:
    good = packed()
    for length in range(0, len(good), 7):
        assert code_of(good[:length]) in {"E-ARCHIVE-INCOMPLETE", "E-ARCHIVE-FOREIGN"}
    assert code_of(good[: len(good) - 1]) == "E-ARCHIVE-INCOMPLETE"
    assert code_of(good[: BLOCK + 3]) == "E-ARCHIVE-INCOMPLETE"


def test_tar_with_something_after_its_end_is_refused() -> None:
    assert code_of(packed() + bytes(BLOCK)) == "E-ARCHIVE-FORM"


@pytest.mark.parametrize("names", [("b", "a"), ("a", "a")])
def test_tar_with_members_out_of_order_or_twice_is_refused(names: tuple[str, str]) -> None:
    file = io.BytesIO()
    writer = TarWriter(file, "journal", TIME_S)
    for name in names:
        writer.add(name, [b"x"])
    writer.end()
    assert code_of(file.getvalue()) == "E-ARCHIVE-FORM"


@pytest.mark.parametrize("folder", ["..", "other"])
def test_tar_with_a_member_in_another_folder_is_refused(folder: str) -> None:
    first = header("journal", "a", 0, TIME_S)
    assert code_of(first + header(folder, "b", 0, TIME_S) + bytes(1_024)) == "E-ARCHIVE-FORM"


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.GNUTYPE_SPARSE]
)
def test_tar_with_anything_but_plain_files_is_refused(kind: bytes) -> None:
    info = tarfile.TarInfo("journal/z")
    info.type, info.linkname, info.mtime = kind, "../../etc", TIME_S
    whole = header("journal", "a", 0, TIME_S) + info.tobuf(tarfile.USTAR_FORMAT) + bytes(1_024)
    assert code_of(whole) == "E-ARCHIVE-FORM"
    assert code_of(info.tobuf(tarfile.USTAR_FORMAT) + bytes(1_024)) == "E-ARCHIVE-FOREIGN"


def test_tar_that_claims_more_than_the_file_holds_is_incomplete_and_nothing_is_read() -> None:
    assert code_of(header("journal", "a", 8**11 - 1, TIME_S) + bytes(BLOCK)) == "E-ARCHIVE-INCOMPLETE"


def test_tar_with_more_members_than_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar_module, "MEMBERS_BOUND", 3)
    assert code_of(packed()) == "E-ARCHIVE-LARGE"
    assert TarReader.open(io.BytesIO(packed({"a": b"", "b": b"", "c": b""}))).members.keys() == {"a", "b", "c"}


def test_member_longer_than_its_reader_permits_is_refused() -> None:
    reader = TarReader.open(io.BytesIO(packed()))
    with pytest.raises(JournalFault, match="E-ARCHIVE-LARGE"):
        reader.read("events.jsonl", 1_199)
    with pytest.raises(JournalFault, match="E-ARCHIVE-INCOMPLETE"):
        reader.read("missing", 1)


def test_header_of_what_does_not_fit_is_refused() -> None:
    with pytest.raises(JournalFault, match="E-ARCHIVE-LARGE"):
        header("journal", "n" * 101, 0, TIME_S)
    with pytest.raises(JournalFault, match="E-ARCHIVE-LARGE"):
        header("journal", "n", 8**11, TIME_S)


def test_archive_is_told_from_a_database_by_its_magic(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(packed())
    (tmp_path / "x.sqlite").write_bytes(b"SQLite format 3\0" + bytes(600))
    (tmp_path / "empty").write_bytes(b"")
    assert [is_archive(tmp_path / name) for name in ("x.tar", "x.sqlite", "empty")] == [True, False, False]

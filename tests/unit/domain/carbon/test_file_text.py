"""Bytes of all kinds: read in the encoding they are in, or refused as what they are."""

from __future__ import annotations

import gzip
import io
import zipfile

import pytest

from domain.shared.tabular.problems import FileRefused
from tests.unit.domain.carbon.files import (
    Case,
    Refused,
    Taken,
    check,
    csv,
    lines,
    parameters,
    places,
    unit_file,
    units,
)

NAMES = lines("unit_id;name", "A;Zürich «Süd»", "B;Café", end="\r\n")
READ = Taken({"unit_id": ["A", "B"], "name": ["Zürich «Süd»", "Café"]})


def refusal(code: str, line: int = 0) -> Refused:
    return Refused([(line, "", code)])


def zipped() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return target.getvalue()


ENCODINGS = (
    unit_file("UTF-8", NAMES.encode(), READ),
    unit_file("UTF-8 with its mark", NAMES.encode("utf-8-sig"), READ),
    unit_file("the mark before a quoted header", '\ufeff"unit_id","name"\nA,B\n', Taken({"name": ["B"]})),
    unit_file("Windows-1252", NAMES.encode("cp1252"), READ),
    unit_file("UTF-16 LE", b"\xff\xfe" + NAMES.encode("utf-16-le"), READ),
    unit_file("UTF-16 BE", b"\xfe\xff" + NAMES.encode("utf-16-be"), READ),
    unit_file(
        "euro and dashes of Windows-1252", b"unit_id,name\nA,\x80 \x96 \x92\n", Taken({"name": ["€ – ’"]})
    ),
)

CORRUPT = (
    unit_file("UTF-16 without its mark", NAMES.encode("utf-16-le"), refusal("nul_byte", 1)),
    unit_file("a NUL byte", b"unit_id,name\r\nA,a\r\nB,b\0b\r\n", refusal("nul_byte", 3)),
    unit_file("a byte of neither encoding", b"unit_id,name\nA,a\nB,\x81\n", refusal("encoding", 3)),
    unit_file(
        "UTF-8 with one byte of Windows-1252",
        csv("unit_id,name", "A,Zürich", "B,Genève") + b"C,Gen\xe8ve\n",
        refusal("encoding", 4),
    ),
    unit_file("UTF-8 cut off in a character", csv("unit_id,name", "A,ä")[:-2], refusal("encoding", 2)),
    unit_file(
        "UTF-16 with half a pair",
        b"\xff\xfe" + "unit_id,name\nA,".encode("utf-16-le") + b"\x00\xd8\n\x00",
        refusal("encoding", 2),
    ),
)

NO_TABLES = (
    unit_file("nothing", b"", refusal("empty_file")),
    unit_file("blanks only", b"  \r\n\t\n \n", refusal("empty_file")),
    unit_file("delimiters only", b";;;\n;;;\n", refusal("empty_file")),
    unit_file("quotes only", b'"","",""\n"","",""\n', refusal("header", 1)),
    unit_file("a workbook", zipped(), refusal("not_a_table")),
    unit_file("an old workbook", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64), refusal("not_a_table")),
    unit_file("gzip", gzip.compress(NAMES.encode()), refusal("not_a_table")),
    unit_file("PDF", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", refusal("not_a_table")),
    unit_file("a web page", b"\n<!DOCTYPE html>\n<html></html>\n", refusal("not_a_table", 2)),
    unit_file("JSON", b'[{"unit_id": "A", "name": "a"}]\n', refusal("not_a_table", 1)),
    unit_file("any bytes", bytes(range(255, -1, -1)) * 4, refusal("encoding", 1)),
)


@parameters(*ENCODINGS, *CORRUPT, *NO_TABLES)
def test_a_file_is_read_in_its_encoding_or_refused(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_line_of_a_damage_is_right_far_behind_the_beginning(end: str) -> None:
    """The file is looked at in pieces, and a line end may lie across two of them."""
    piece, head, row = 1 << 20, "unit_id,name", "A,ä" + "x" * 95 + end
    size = len(row.encode())
    for shift in range(3):
        padding = (piece - len(head) - len(end) + shift) % size
        count = 2 * piece // size + 500
        content = (head + " " * padding + end + row * count).encode() + b"B,\xe4" + end.encode()
        with pytest.raises(FileRefused) as refused:
            units(content)
        assert places(refused.value.problems) == [(count + 2, "", "encoding")]

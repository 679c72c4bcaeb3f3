"""From the bytes of a file to its text: which encoding it is in, and what it is if it is no text."""

from __future__ import annotations

import codecs
import io
from typing import BinaryIO

from domain.carbon.reading.problems import refused

_CHUNK = 1 << 20
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
PARQUET = b"PAR1"
_KNOWN = (
    (b"PK\x03\x04", "a zip archive or an Excel workbook: unpack it, or save the sheet as CSV UTF-8"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook: save the sheet as CSV UTF-8"),
    (b"\x1f\x8b", "compressed with gzip: unpack it first"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"{\\rtf", "a text document with formats: save the table as CSV UTF-8"),
    (b"SQLite format 3", "a database"),
)


def is_parquet(source: BinaryIO) -> bool:
    source.seek(0)
    return source.read(len(PARQUET)) == PARQUET


def encoding_of(source: BinaryIO) -> str:
    """UTF-8 (with a mark or not), UTF-16 with a mark, else Windows-1252. The whole file is asked."""
    source.seek(0)
    head = source.read(16)
    if not head:
        raise refused("empty_file", "the file is empty")
    for magic, what in _KNOWN:
        if head.startswith(magic):
            raise refused("not_a_table", f"this is {what}")
    encoding = next((name for bom, name in _BOMS if head.startswith(bom)), "")
    if encoding:
        _decode(source, encoding)
        return encoding
    for candidate in ("utf-8", "cp1252"):
        try:
            _decode(source, candidate)
        except UnicodeDecodeError:
            continue
        return candidate
    raise refused("encoding", "its bytes are neither UTF-8 nor Windows-1252: save it as CSV UTF-8")


def _decode(source: BinaryIO, encoding: str) -> None:
    """Raise unless every byte is of this encoding, and none is NUL."""
    source.seek(0)
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    while chunk := source.read(_CHUNK):
        try:
            text = decoder.decode(chunk)
        except UnicodeDecodeError:
            if encoding in ("utf-8", "cp1252"):
                raise
            raise refused("encoding", f"it begins as {encoding.upper()} and does not go on so") from None
        if "\0" in text:
            line += text[: text.index("\0")].count("\n")
            raise refused(
                "nul_byte", "holds a NUL byte: this is no text, or it was damaged on its way", line=line
            )
        line += text.count("\n")
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        if encoding == "utf-8":
            raise
        raise refused("encoding", "ends in the middle of a character: it was cut off") from None


def opened(source: BinaryIO) -> io.TextIOWrapper:
    """The text of the file. Detach it: the caller owns the file."""
    encoding = encoding_of(source)
    source.seek(0)
    return io.TextIOWrapper(source, encoding=encoding, newline="")

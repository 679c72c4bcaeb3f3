"""From the bytes of a file to its text: which encoding it is in, and what it is if it is no text."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import BinaryIO

from domain.shared.tabular.problems import refused

_CHUNK = 1 << 20
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
PARQUET = b"PAR1"
_KNOWN = (
    (b"PK\x03\x04", "a zip archive or an Excel workbook: unpack it, or save the sheet as CSV UTF-8"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook: save the sheet as CSV UTF-8"),
    (b"\x1f\x8b", "compressed with gzip: unpack it first"),
    (b"%PDF", "a PDF: its tables have to be copied into a sheet"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
)
_SAVE = "save it as CSV UTF-8"


def is_parquet(source: BinaryIO) -> bool:
    source.seek(0)
    return source.read(len(PARQUET)) == PARQUET


def breaks(text: str) -> int:
    """Line ends of any kind."""
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def opened(source: BinaryIO) -> io.TextIOWrapper:
    """The text of the file. Detach it: the caller owns the file."""
    encoding = encoding_of(source)
    source.seek(0)
    return io.TextIOWrapper(source, encoding=encoding, newline="")


def encoding_of(source: BinaryIO) -> str:
    """UTF-8 or UTF-16 by their marks, else UTF-8 or Windows-1252. The whole file is read."""
    source.seek(0)
    head = source.read(16)
    if not head:
        raise refused("empty_file", "the file is empty")
    for magic, what in _KNOWN:
        if head.startswith(magic):
            raise refused("not_a_table", f"this is {what}")
    marked = next((name for bom, name in _BOMS if head.startswith(bom)), "")
    if not (broken := _broken(source, marked or "utf-8")):
        return marked or "utf-8"
    if marked:
        name = marked.removesuffix("-sig").upper()
        raise refused("encoding", f"starts as {name} and does not decode here: {_SAVE}", line=broken)
    if _mostly_utf8(source):
        # Taken for Windows-1252, every umlaut of it would be two wrong letters.
        raise refused(
            "encoding", f"is UTF-8 and has a broken character here, or was cut off: {_SAVE}", line=broken
        )
    if broken := _broken(source, "cp1252"):
        raise refused(
            "encoding", f"has bytes here that are neither UTF-8 nor Windows-1252: {_SAVE}", line=broken
        )
    return "cp1252"


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    source.seek(0)
    while chunk := source.read(_CHUNK):
        yield chunk


def _broken(source: BinaryIO, encoding: str) -> int:
    """Return the first line that is not in this encoding or has a NUL; 0 if there is none."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line, last = 1, ""
    try:
        for chunk in _chunks(source):
            text = decoder.decode(chunk)
            if "\0" in text:
                raise refused(
                    "nul_byte",
                    f"has a NUL byte: it is no text, is corrupt, or is UTF-16 without its mark; {_SAVE}",
                    line=line + breaks(last + text[: text.index("\0")]) - breaks(last),
                )
            line += breaks(last + text) - breaks(last)
            last = text[-1:]
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode(error.encoding, "replace")
        return line + breaks(last + before) - breaks(last)
    return 0


def _mostly_utf8(source: BinaryIO) -> bool:
    """Whether most of what is not ASCII is right in UTF-8, or the file only lacks the end of a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    right = wrong = 0
    for chunk in _chunks(source):
        text = decoder.decode(chunk)
        replaced = text.count("\ufffd")
        wrong += replaced
        right += len(text) - len(text.encode("ascii", "ignore")) - replaced
    return not wrong or right >= wrong

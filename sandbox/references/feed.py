"""Herald's feed as RSS 2.0."""

from __future__ import annotations

from datetime import datetime
from email.utils import format_datetime
from itertools import pairwise
from typing import Any
from xml.sax.saxutils import escape

from sandbox.faults import Fault
from sandbox.references.spoil import kinds_of

_BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE rss [<!ENTITY a "aaaaaaaaaa">%s]>
<rss version="2.0"><channel><title>&z;</title></channel></rss>
"""
_LEVELS = "abcdefghijklmnopqrstuvwxyz"


def render_feed(items: list[dict[str, Any]], struck: tuple[Fault, ...]) -> bytes:
    """Return the feed as the faults show it."""
    kinds = kinds_of(struck)
    if "xml_bomb" in kinds:
        levels = [f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise(_LEVELS)]
        return _BOMB % "".join(levels).encode()
    entries = "".join(_entry(item, kinds) for item in (items[::2] if "half_page" in kinds else items))
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel><title>The Herald</title>'
        f"<link>https://herald.example.org/</link><description>News</description>\n{entries}</channel></rss>\n"
    )
    return (text[: len(text) // 2] if "malformed" in kinds else text).encode()


def _entry(item: dict[str, Any], kinds: set[str]) -> str:
    published = format_datetime(datetime.fromisoformat(item["published_at"]))
    parts = [
        f'<guid isPermaLink="false">{item["id"]}</guid>',
        f"<title>{escape(item['title'])}</title>",
        f"<link>{item['url']}</link>",
        f"<pubDate>{published}</pubDate>",
        f"<description>{escape(item['abstract'])}</description>",
        f"<author>{escape(', '.join(item['authors']))}</author>",
    ]
    between = "\n    " if "reformatted" in kinds else ""
    return f"<item>{between.join(parts[::-1] if between else parts)}</item>\n"

"""Numbers as a report shows them: tonnes, counts, shares. Rounded from whole milligrams, not from doubles."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from services.carbon.page_markup import Html, tag

THIN = "\N{NARROW NO-BREAK SPACE}"
NONE = "\N{EN DASH}"
CO2E = "CO\N{SUBSCRIPT TWO}e"
T_CO2E = f"t{THIN}{CO2E}"


def grouped(number: Decimal | int, decimals: int = 0) -> str:
    """Thousands parted by a space that no line breaks at; a minus that no spreadsheet takes for a formula."""
    plain = f"{Decimal(number):,.{decimals}f}"
    return plain.replace(",", THIN).replace("-", "\N{MINUS SIGN}")


def counted(number: int, one: str, many: str = "") -> str:
    """`1 type`, `2 types`."""
    return f"{grouped(number)} {one if number == 1 else many or f'{one}s'}"


def share(part: int, whole: int) -> str:
    """Of a whole that is nothing there is no share."""
    if whole == 0:
        return NONE
    return f"{grouped(100 * Decimal(part) / whole, 1)}{THIN}%"


def change(new: int, old: int) -> str:
    if old == 0:
        return NONE
    sign = "+" if new > old else ""
    return f"{sign}{share(new - old, old)}"


@dataclass(frozen=True)
class Tonnes:
    """Milligrams as tonnes, all of a page with the same decimals so that they can be compared by eye."""

    decimals: int

    @classmethod
    def of_total(cls, total_mg: int) -> Tonnes:
        """As many decimals as leave four digits or more of the largest number."""
        tonnes = abs(total_mg) // 10**9
        return cls(1 if tonnes >= 1_000 else 2 if tonnes >= 10 else 3)

    def plain(self, mg: int) -> str:
        if mg == 0:
            return "0"
        smallest = Decimal(1).scaleb(-self.decimals)
        tonnes = Decimal(mg).scaleb(-9)
        if abs(tonnes) < smallest / 2:
            return f"<{THIN}{grouped(smallest, self.decimals)}"
        return grouped(tonnes, self.decimals)

    def exact(self, mg: int) -> Html:
        """With the milligrams in it, for whoever reads the page by machine."""
        return tag("data", self.plain(mg), value=mg)

    def said(self, mg: int) -> str:
        return f"{self.plain(mg)}{THIN}{T_CO2E}"

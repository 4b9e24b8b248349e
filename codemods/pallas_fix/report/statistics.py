"""How many findings there are, by rule and by what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pallas_fix.report.account import Account, Entry, State


@dataclass(frozen=True, order=True)
class Row:
    """So many findings of a rule had the same lot.

    `detail` is how a fix is known (`equal`, `compiled`), or the code of the reason why there is
    none.
    """

    code: str
    name: str
    state: State
    detail: str
    count: int


def rows(account: Account) -> list[Row]:
    """The rows: the largest count first, then by code."""
    counts = Counter(map(_lot, account.entries))
    found = [Row(*lot, count) for lot, count in counts.items()]
    return sorted(found, key=lambda row: (-row.count, row))


def table(account: Account) -> Iterator[str]:
    """One line for each row, for people."""
    found = rows(account)
    room = max((len(row.name) for row in found), default=0)
    digits = max((len(str(row.count)) for row in found), default=0)
    for row in found:
        detail = f" ({row.detail})" if row.detail else ""
        told = f"{words(account, row)}{detail}"
        yield f"{row.count:>{digits}}  {row.code}  {row.name:<{room}}  {told}"


def words(account: Account, row: Row) -> str:
    """What became of the findings of a row, for people."""
    if row.state is State.FIXED and not account.written:
        return "would be fixed"
    return "not written" if row.state is State.SHOWN else str(row.state)


def document(account: Account) -> list[dict[str, Any]]:
    """The rows for programs."""
    return [asdict(row) for row in rows(account)]


def _lot(entry: Entry) -> tuple[str, str, State, str]:
    if entry.reason is not None:
        detail = entry.reason.code
    else:
        detail = str(entry.verdict.level) if entry.verdict else ""
    return entry.finding.code, entry.rule, entry.state, detail

"""What the report was made from: files, accounts, regions."""

from __future__ import annotations

from functions.report.names import quoted
from functions.report.summary import Summary
from functions.report.words import byte_size, counted, listed

MOST_NAMED = 3


def made_from(summary: Summary) -> str:
    """A part of a sentence, with marked names."""
    seen = summary.not_seen
    read = (
        f"{counted(seen.files_read, 'trail file')} ({byte_size(seen.bytes_read)}) "
        f"with {counted(seen.records_read, 'record')}"
    )
    accounts = _named(summary.accounts, summary.accounts_left_out, "account")
    regions = _named(summary.regions, summary.regions_left_out, "region")
    return f"{read}, of {accounts} in {regions}"


def _named(names: tuple[str, ...], left_out: int, what: str) -> str:
    if not names:
        return f"no {what}"
    if len(names) + left_out > MOST_NAMED:
        return counted(len(names) + left_out, what)
    word = what if len(names) == 1 else f"{what}s"
    return f"{word} {listed([quoted(each) for each in names])}"

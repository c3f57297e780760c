"""The marks on a letter: how often it went back, and why it is kept apart."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime

from functions.healing.difference import parsed
from functions.healing.letters import HOPS, MOST_HOPS, QUARANTINED, Letter, MessageAttribute

# A mark of ours is short; what is longer was written by somebody else.
LONGEST_MARK = 8_192
LONGEST_WHY = 512


@dataclass(frozen=True)
class Kept:
    """Why and when a letter came to the quarantine, from where and after how many hops.

    `at` is in ISO 8601; `source` is where it failed, and where `mendq quarantine return` sends it.
    """

    why: str
    at: str
    source: str
    case: str
    hops: int

    def document(self) -> dict[str, object]:
        return asdict(self)


def hopped(letter: Letter) -> Letter:
    """As it goes back to its source: once more than it says, out of the quarantine too."""
    kept = kept_because(letter)
    hops = min(max(letter.hops, kept.hops if kept else 0) + 1, MOST_HOPS)
    return letter.without(QUARANTINED).marked(HOPS, MessageAttribute("Number", str(hops)))


def kept_apart(letter: Letter, why: str, *, at: datetime, source_arn: str, case_id: str) -> Letter:
    """As it goes to the quarantine: the reason stands in the place of the hops."""
    kept = Kept(why[:LONGEST_WHY], at.isoformat(), source_arn, case_id, letter.hops)
    text = json.dumps(kept.document(), ensure_ascii=True, separators=(",", ":"))
    return letter.without(HOPS).marked(QUARANTINED, MessageAttribute("String", text))


def kept_because(letter: Letter) -> Kept | None:
    """What the mark says; None where there is none that reads like ours."""
    mark = letter.attributes.get(QUARANTINED)
    if mark is None or not isinstance(mark.value, str) or len(mark.value) > LONGEST_MARK:
        return None
    found = parsed(mark.value) or {}
    texts = {name: found.get(name) for name in ("why", "at", "source", "case")}
    hops = found.get("hops")
    if not all(isinstance(each, str) for each in texts.values()):
        return None
    if not isinstance(hops, int) or isinstance(hops, bool) or hops < 0:
        return None
    return Kept(**{name: str(each) for name, each in texts.items()}, hops=min(hops, MOST_HOPS))

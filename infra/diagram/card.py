"""What the picture is made of: cards, in sections."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """One part: its name, what it does, what starts it, and what it touches."""

    title: str
    says: str
    started_by: tuple[str, ...] = ()
    touches: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """Cards that belong together."""

    title: str
    cards: tuple[Card, ...]

"""Decide whether a name says too little.

A participle is a good name with its noun (`failed_calls`) or as a time (`created_at`). Alone it
does not say of what: `counted`, `decided`, `taken_up`, `Written`.
"""

from __future__ import annotations

import re

_LOOP_NAMES = frozenset(
    ("at", "back", "each", "found", "it", "known", "of", "one", "those", "way", "which")
)
_IRREGULAR_PARTICIPLES = (
    "became|becomes|bound|built|caught|coming|drawn|found|given|going|grown|heard|held|kept|known"
    "|lasting|left|lost|made|met|said|seen|sent|shown|taken|told"
)
# Words that end like a participle and are verbs, nouns or prepositions.
_NOT_PARTICIPLES = (
    "between|embed|exceed|feed|happen|lengthen|listen|need|open|proceed|seed|shorten|speed|then"
    "|tighten|when|widen"
)
_PARTICLES = "about|among|as|at|back|by|down|first|for|from|in|lately|now|of|on|to|up"
_FUNCTION_BEGINS_WITH_PARTICLE = re.compile(r"_*(of|by|at|in(?!_flight)|to_be|than)_")
_FUNCTION_IS_PARTICIPLE = re.compile(
    rf"_*(?!({_NOT_PARTICIPLES})(_|$))"
    rf"(un)?([a-z]+(ed|en)|{_IRREGULAR_PARTICIPLES})"
    rf"(_(?!at$)({_PARTICLES}))?"
)
_CLASS_IS_PARTICIPLE = re.compile(
    r"_?(?!(Feed|Need|Open|Seed|Speed|Then|When)$)"
    r"([A-Z][a-z]+(ed|en)|Caught|Found|Heard|Held|Kept|Known|Made|Read|Said|Seen|Shown|Told)"
)


def is_vague_loop_variable(name: str) -> bool:
    """Return True if the name does not say what the loop goes over."""
    return name in _LOOP_NAMES


def is_vague_function_name(name: str) -> bool:
    """Return True if the name begins with a particle, or is a participle without a noun.

    Only the part after the last dot matters: `held` of `VisibilityHeartbeat.held`.
    """
    name = name.rpartition(".")[2]
    if _FUNCTION_BEGINS_WITH_PARTICLE.match(name):
        return True
    return bool(_FUNCTION_IS_PARTICIPLE.fullmatch(name))


def is_vague_class_name(name: str) -> bool:
    """Return True if the name is a participle alone."""
    return bool(_CLASS_IS_PARTICIPLE.fullmatch(name))

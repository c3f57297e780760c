"""The stories of `make demo`, by the name that STORY gives."""

from __future__ import annotations

from collections.abc import Mapping

from local_account.cannot_start import CannotStart
from local_account.demo.stories.catalogue import CATALOGUE_STORY
from local_account.demo.stories.lease import LEASE
from local_account.demo.stories.life import LIFE
from local_account.demo.stories.redrive import REDRIVE
from local_account.demo.stories.sweep import SWEEP
from local_account.demo.story import Story

STORIES: Mapping[str, Story] = {
    "lease": LEASE,
    "catalogue": CATALOGUE_STORY,
    "life": LIFE,
    "sweep": SWEEP,
    "redrive": REDRIVE,
}
ALL = "all"


def stories_of(name: str) -> Mapping[str, Story]:
    """The story of that name, or every one; raise CannotStart where there is none."""
    if name == ALL:
        return STORIES
    if name not in STORIES:
        known = ", ".join([*STORIES, ALL])
        raise CannotStart(f"STORY {name!r} is not known: give one of {known}")
    return {name: STORIES[name]}

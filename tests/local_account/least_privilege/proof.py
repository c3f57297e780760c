"""What is said of a role: a run, what comes of it, and what comes of it without each action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.local_account.least_privilege.enforced import Enforced

LAST_CHANGE = "who changed the queue last; a page goes out without it"


@dataclass(frozen=True)
class Proof:
    """`prepare` makes a scene under the whole role, `comes_of` acts in it and tells in a sentence.

    `elsewhere` are the actions that the run does not need, each with when it is called; that it is
    then, tests/infra/test_roles.py sees. What nothing of ours calls is declared there too.
    """

    handler: str
    prepare: Callable[[Enforced], Any]
    comes_of: Callable[[Enforced, Any], str]
    whole: str
    without: Mapping[str, str]
    elsewhere: Mapping[str, str]

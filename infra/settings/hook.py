"""What a user may set of the hook that judges queues before they are deployed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import Annotated, ClassVar

from infra.settings.reading import Conflict, entries, one_of, text
from mendq.lint.judging import CHECKED_SYMPTOMS

# How outsiders find it. A stack of a stack set has the set's name, and an id, in its own.
STACK_NAME, STACK_SET = "Mendq", "mendq"
OF_STACK_SET = f"StackSet-{STACK_SET}-*"
OWN_STACKS = (STACK_NAME, OF_STACK_SET)
OFF, WARN, FAIL = "off", "warn", "fail"
_STACK = text(
    "a stack's name, or the start of one and a *",
    r"(?=.{1,128}\Z)[A-Za-z][A-Za-z0-9-]*\*?",
    "orders or orders-*",
    (r"^\*$", "leave stacks out: then every stack is asked about but Mendq's own"),
)


@dataclass(frozen=True)
class HookSettings:
    """Judges queues and their policies before CloudFormation deploys them."""

    alone: ClassVar[str] = "mode"
    mode: Annotated[str, one_of("off, warn or fail", (OFF, WARN, FAIL))] = OFF
    """`warn`: what is found is shown, and the deployment goes on. `fail`: it is stopped, and so it
    is where the hook itself fails."""
    stacks: Annotated[
        tuple[Annotated[str, _STACK], ...], entries("stack names, or starts of names and a `*`", 50)
    ] = ()
    """The stacks that are asked about; empty: every stack but Mendq's own."""
    ignore: Annotated[
        tuple[Annotated[str, one_of("a symptom of it", [e.name for e in CHECKED_SYMPTOMS])], ...],
        entries("symptoms"),
    ] = ()
    """The symptoms that it says nothing of."""

    @property
    def is_on(self) -> bool:
        """True where the stack holds it."""
        return self.mode != OFF

    def conflicts(self) -> Iterator[Conflict]:
        """What no single field can show."""
        for each, own in product(self.stacks, OWN_STACKS):
            if fnmatchcase(own.rstrip("*"), each) or fnmatchcase(each.rstrip("*"), own):
                fault = f'"{each}" is Mendq\'s own stack too ({own}), and a hook must not stop that'
                yield {"stacks"}, "stacks", fault, "say more of the names that you mean"

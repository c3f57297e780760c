"""Settings of the CloudFormation hook that checks queues before they are deployed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import Annotated, ClassVar

from infra.settings.reading import Conflict, entries, one_of, text
from mendq.lint.judging import CHECKED_SYMPTOMS

# Name of Mendq's stack, by which operators and tools find it.
STACK_NAME = "Mendq"
STACK_SET = "mendq"
# Pattern of the names of the stack set's stacks. Each has the set's name and an id in its name.
OF_STACK_SET = f"StackSet-{STACK_SET}-*"
OWN_STACKS = (STACK_NAME, OF_STACK_SET)
# The modes of the hook.
OFF = "off"
WARN = "warn"
FAIL = "fail"
_HOOK_SYMPTOMS = [symptom.name for symptom in CHECKED_SYMPTOMS]
_STACK = text(
    "a stack's name, or the start of one and a *",
    r"(?=.{1,128}\Z)[A-Za-z][A-Za-z0-9-]*\*?",
    "orders or orders-*",
    (r"^\*$", "leave stacks out: then every stack is asked about but Mendq's own"),
)


@dataclass(frozen=True)
class HookSettings:
    """Settings of the hook that checks queues and their policies before they are deployed."""

    # The field that a text stands for: `"templateHook": "warn"` sets only the mode.
    short_field: ClassVar[str] = "mode"
    mode: Annotated[str, one_of("off, warn or fail", (OFF, WARN, FAIL))] = OFF
    """`warn`: what is found is shown, and the deployment goes on. `fail`: it is stopped, and so it
    is where the hook itself fails."""
    stacks: Annotated[
        tuple[Annotated[str, _STACK], ...], entries("stack names, or starts of names and a `*`", 50)
    ] = ()
    """The stacks that are asked about; empty: every stack but Mendq's own."""
    ignore: Annotated[
        tuple[Annotated[str, one_of("a symptom of it", _HOOK_SYMPTOMS)], ...],
        entries("symptoms"),
    ] = ()
    """The symptoms that it says nothing of."""

    @property
    def is_on(self) -> bool:
        """True if the stack contains the hook."""
        return self.mode != OFF

    def conflicts(self) -> Iterator[Conflict]:
        """Yield a mistake for each pattern in `stacks` that also matches Mendq's own stack."""
        for pattern, own_stack in product(self.stacks, OWN_STACKS):
            is_match = fnmatchcase(own_stack.rstrip("*"), pattern)
            if is_match or fnmatchcase(pattern.rstrip("*"), own_stack):
                fault = (
                    f'"{pattern}" is Mendq\'s own stack too ({own_stack}), and a hook must not '
                    "stop that"
                )
                yield Conflict({"stacks"}, "stacks", fault, "say more of the names that you mean")

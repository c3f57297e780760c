"""Settings of the CloudFormation hook that checks queues before they are deployed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import Annotated, ClassVar

from infra.settings.reading import (
    ComparedSection,
    Conflict,
    make_list_bounds,
    make_name_bounds,
    make_text_bounds,
)
from mendq.lint.judging import CHECKED_SYMPTOMS

# Name of Mendq's stack, by which operators and tools find it.
STACK_NAME = "Mendq"
STACK_SET_NAME = "mendq"
# Names that Mendq's own stack may have. A stack set adds an id to its name for each of its stacks.
# The patterns only check settings. The hook itself leaves out the exact name of its own stack.
STACK_SET_STACK_PATTERN = f"StackSet-{STACK_SET_NAME}-*"
_OWN_STACK_PATTERNS = (STACK_NAME, STACK_SET_STACK_PATTERN)
# The modes of the hook.
OFF_MODE = "off"
WARN_MODE = "warn"
FAIL_MODE = "fail"
_HOOK_SYMPTOM_NAMES = [symptom.name for symptom in CHECKED_SYMPTOMS]
_STACK_NAME_BOUNDS = make_text_bounds(
    "a stack's name, or the start of one and a *",
    r"(?=.{1,128}\Z)[A-Za-z][A-Za-z0-9-]*\*?",
    "orders or orders-*",
    (r"^\*$", "leave stacks out: then every stack is asked about but Mendq's own"),
)


@dataclass(frozen=True)
class HookSettings(ComparedSection):
    """Settings of the hook that checks queues and their policies before they are deployed."""

    # `"templateHook": "warn"` sets only the mode.
    field_set_by_short_form: ClassVar[str] = "mode"
    mode: Annotated[
        str, make_name_bounds("off, warn or fail", (OFF_MODE, WARN_MODE, FAIL_MODE))
    ] = OFF_MODE
    """`warn`: CloudFormation shows the findings and continues. `fail`: a finding stops the
    deployment, and so does a failure of the hook itself."""
    stacks: Annotated[
        tuple[Annotated[str, _STACK_NAME_BOUNDS], ...],
        make_list_bounds("stack names, or starts of names and a `*`", 50),
    ] = ()
    """The stacks for which CloudFormation calls the hook; empty: every stack except Mendq's own."""
    ignore: Annotated[
        tuple[Annotated[str, make_name_bounds("a symptom of it", _HOOK_SYMPTOM_NAMES)], ...],
        make_list_bounds("symptoms"),
    ] = ()
    """The symptoms that the hook ignores."""

    @property
    def is_on(self) -> bool:
        """True if the stack contains the hook."""
        return self.mode != OFF_MODE

    def list_conflicts(self) -> Iterator[Conflict]:
        """Yield a mistake for each pattern in `stacks` that also matches Mendq's own stack."""
        for pattern, own_stack_pattern in product(self.stacks, _OWN_STACK_PATTERNS):
            matches_own_stack = fnmatchcase(own_stack_pattern.rstrip("*"), pattern)
            if matches_own_stack or fnmatchcase(pattern.rstrip("*"), own_stack_pattern):
                fault = (
                    f'"{pattern}" is Mendq\'s own stack too ({own_stack_pattern}), and a hook must '
                    "not stop that"
                )
                yield Conflict({"stacks"}, "stacks", fault, "say more of the names that you mean")

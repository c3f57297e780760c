"""How much one call may take: counted and not timed, so that a template ends everywhere alike.

A step is about a microsecond of one core: one for each node and each character that is worked out.
"""

from __future__ import annotations

from dataclasses import dataclass

from cli.lint.node import NotATemplate

# CloudFormation takes templates of 1 MB; what repeats itself makes a small one a large one.
MOST_STEPS = 8_000_000
# An assembly may name one file over and over.
MOST_STEPS_IN_ALL = 200_000_000

A_TEMPLATE = 20_000
A_NODE_READ = 16
A_QUEUE = 500
A_SENDER = 100
SAYING_IT = 500
BYTES_A_STEP = 16


@dataclass
class Work:
    """What is left of it for this template, and for those that follow."""

    left: int = MOST_STEPS
    left_in_all: int = MOST_STEPS_IN_ALL

    def begin_template(self) -> None:
        """Raises NotATemplate."""
        self.left = MOST_STEPS
        self.take(A_TEMPLATE)

    def take(self, steps: int) -> None:
        """Raises NotATemplate where that is more than is left."""
        self.left -= steps
        self.left_in_all -= steps
        if self.left < 0:
            raise NotATemplate(
                f"judging it takes more than {MOST_STEPS:,} steps, "
                "and what repeats itself counts each time"
            )
        if self.left_in_all < 0:
            raise NotATemplate(
                "judging it and the templates before it takes more than "
                f"{MOST_STEPS_IN_ALL:,} steps: name fewer at once"
            )

"""The stack as a picture and as tables, from the template that would be deployed."""

from __future__ import annotations

from collections.abc import Mapping

from stack_outline import resources

from infra.diagram.cards import sections
from infra.diagram.drawing import drawing, in_words

TITLE = "What starts each part of Mendq's stack, and what it touches"
HEAD = """# The stack

<!-- Derived from the template by `make docs`: change the stack there. -->

What one `make cdk ARGS=deploy` puts into an account and region: what starts each part, and what its
role lets it touch. Drawn from the template with `tagMayRaiseTo` at `heal`; with `observe` alone,
the default, no role may write to a queue of yours. Left out: roles, policies and logs. What each
part costs: [cost.md](cost.md).

<picture>
  <source media="(max-width: 700px)" srcset="stack-narrow.svg">
  <img src="stack.svg" alt="What starts each part and what it touches, as in the tables below">
</picture>
"""


def stack_documents() -> Mapping[str, str]:
    """The page and both pictures, by the name of the file."""
    found = sections(resources())
    return {
        "stack.md": "\n".join((HEAD.rstrip(), *in_words(found), "")),
        "stack.svg": drawing(found, 2, TITLE),
        "stack-narrow.svg": drawing(found, 1, TITLE),
    }

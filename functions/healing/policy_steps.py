"""The one way in which Mendq changes a policy: back to a pinned text, byte for byte."""

from __future__ import annotations

from functions.healing.steps import AttributeStep, Owner


class RestorePolicy(AttributeStep):
    """The whole policy from one text to another, which a person has pinned.

    The texts are compared as they are: what only means the same is not what was approved.
    """

    before: str
    after: str

    attribute = "Policy"
    owner = Owner.RESTORE_POLICY
    absent_means = ""

    def out_of_bounds(self) -> str | None:
        if not self.after:
            return "a policy is never removed"
        if self.after == self.before:
            return "the policy is the pinned one already"
        return None

    def __str__(self) -> str:
        return f"{self.attribute} -> the pinned text of {len(self.after)} characters"

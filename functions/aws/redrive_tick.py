"""One tick of a redrive: follow_up calls for it each minute while the case is applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from functions.aws.run import Outcome, OwnerRun
from functions.healing.redrive_course import Course
from functions.settings import RedriveSettings


@dataclass(frozen=True)
class RedriveRun(OwnerRun):
    """One invocation of the redrive Lambda."""

    settings: RedriveSettings


@dataclass(frozen=True)
class Ticked(Outcome):
    """With how far the redrive has come, and how many letters this tick moved."""

    course: Course | None = None
    redriven: int = 0
    quarantined: int = 0


def tick(request: Mapping[str, Any], run: RedriveRun) -> Ticked:
    """`{"case_id", "queue_arn", "symptom"}` of an applied case; raises what the ledger raises."""
    raise NotImplementedError


def cancel(request: Mapping[str, Any], run: RedriveRun) -> Ticked:
    """As `tick`, with `"cancel": true`: no task of ours runs afterwards, and nothing goes on.

    A refusal with `again` where another run is at work on it, or SQS did not take it.
    """
    raise NotImplementedError

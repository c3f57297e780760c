"""Start a run on EMR Serverless at the schedule's time: nightly, and once a week."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache
from typing import TypedDict

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from mendq.aws.clients import Clients
from mendq.model.plan import Refusal
from mendq.model.settings import StartNightlySettings
from mendq.nightly.jobs import Roots, nightly, start, week

logger = Logger(service="start_nightly")
JOBS = {"nightly": nightly, "week": week}


class Scheduled(TypedDict):
    """What the schedules send: which job, and the time they stand for (not when it arrived)."""

    job: str
    time: str


@cache
def _cold_start() -> tuple[StartNightlySettings, Clients]:
    return StartNightlySettings.from_environment(os.environ), Clients.of_this_lambda()


@logger.inject_lambda_context
def handler(event: Scheduled, _context: LambdaContext) -> dict[str, str]:
    """`{"run": id}`, or `{"refused": why}` while one of its kind is active.

    Raises what AWS raises, so that the invocation is tried again.
    """
    settings, clients = _cold_start()
    scheduled_at = datetime.fromisoformat(event["time"]).astimezone(UTC)
    roots = Roots(settings.trail_root, settings.case_root, settings.out_root)
    job = JOBS[event["job"]](scheduled_at, roots)
    started = start(clients.emr, settings, job, scheduled_at)
    if isinstance(started, Refusal):
        logger.warning("not started", job=job.name, reason=started.reason)
        return {"refused": started.reason}
    logger.info("started", job=job.name, run=started, arguments=job.arguments)
    return {"run": started}

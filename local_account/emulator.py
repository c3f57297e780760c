"""MiniStack with everything put in that it lacks, as one ASGI application.

Import this only after `emulator_environment.enter`: MiniStack reads its settings when imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ministack.app
from ministack.core import lambda_runtime
from ministack.services import scheduler as ministack_scheduler
from ministack.services import sqs

from local_account import account_page, cloudformation, cloudwatch, permissions, scheduler
from local_account.account_page import AccountPage, firing
from local_account.cloudtrail import events, trails
from local_account.cloudtrail.delivery import Delivery
from local_account.cloudtrail.event_history import EventHistory
from local_account.cloudtrail.events import put_event
from local_account.cloudtrail.middleware import CloudTrail
from local_account.emr_serverless.api import EmrServerless
from local_account.emr_serverless.job_process import JobProcesses
from local_account.lambdas import failures, mappings, processes
from local_account.mail import Mails
from local_account.not_emulated import NotEmulated
from local_account.permissions import AccessAnalyzer
from local_account.sqs.counting import MINUTE_SECONDS
from local_account.sqs.install import SqsMemory
from local_account.sqs.install import install as install_sqs
from local_account.sqs.move_tasks import put_move_task, tasks_of
from local_account.switch import SwitchRefused

__all__ = [
    "AUTH_IS_ENFORCED",
    "Delivery",
    "Emulator",
    "JobProcesses",
    "SqsMemory",
    "end_lambdas",
    "put_event",
    "stop_starting",
]

AUTH_IS_ENFORCED: bool = ministack.app.AUTH
CREATED, MODIFIED = "CreatedTimestamp", "LastModifiedTimestamp"
ALL, LAST_CHANGE = "all", "last_change"


@dataclass(frozen=True)
class Emulator:
    """One account's emulator; once per process. The caller starts and stops jobs and delivery."""

    memory: SqsMemory
    jobs: JobProcesses
    history: EventHistory = field(default_factory=EventHistory)
    analyzer: AccessAnalyzer = field(default_factory=AccessAnalyzer)
    mails: Mails = field(default_factory=Mails)

    def install(self, scratch: Path, not_emulated: NotEmulated) -> None:
        """Hook MiniStack."""
        processes.install(scratch / "runtime")
        failures.install()
        mappings.install()
        install_sqs(self.memory)
        cloudwatch.install(self.memory.counting)
        events.install()
        cloudformation.install(not_emulated.accept)
        permissions.install()
        scheduler.install()
        self.history.install()
        self.analyzer.install()
        self.mails.install()
        EmrServerless(self.jobs.begin).install()

    def application(self, delivery: Delivery, describe: Any) -> AccountPage:
        """The emulator behind what sees its SQS calls, behind the account's own pages."""
        trails.install(delivery.latest)
        return AccountPage(
            CloudTrail(ministack.app.app, delivery, self.history),
            describe,
            actions={
                account_page.FIRE_PATH: firing(scheduler.fire_named),
                account_page.EARLIER_PATH: self.put_back,
                account_page.MOVE_TASK_PATH: put_move_task,
            },
            switches={
                account_page.SQS_ERRORS_PATH: self.memory.errors,
                account_page.ACCESS_ANALYZER_PATH: self.analyzer,
                account_page.MAILS_PATH: self.mails,
            },
        )

    def put_back(self, asked: object) -> Mapping[str, Any]:
        """Put a queue's past back, with {"queue_arn": .., "minutes": ..}; raises SwitchRefused.

        What was counted stays what was counted; it merely happened earlier. So do the queue's
        making, its last change, what CloudTrail's event history tells of it and the messages in it.
        `"of": "last_change"` puts back nothing but that change. What lies in a trail's bucket
        already keeps its times. Whole minutes, as metrics have one value in each.
        """
        if not isinstance(asked, Mapping) or set(asked) - {"of"} != {"queue_arn", "minutes"}:
            raise SwitchRefused('send {"queue_arn": "arn:aws:sqs:..", "minutes": 90}')
        arn, minutes, of = str(asked["queue_arn"]), asked["minutes"], asked.get("of", ALL)
        if type(minutes) is not int or minutes < 1:
            raise SwitchRefused("minutes: give a whole number of at least 1")
        if of not in (ALL, LAST_CHANGE):
            raise SwitchRefused(f"of: say {ALL} (or leave it out) or {LAST_CHANGE}")
        queue, seconds = sqs._queue_by_arn(arn), minutes * MINUTE_SECONDS
        if queue is None:
            raise SwitchRefused(f"queue_arn: there is no queue {arn}")
        attributes = queue["attributes"]
        with sqs._queues_lock:
            if of == LAST_CHANGE:
                since = self._last_change(arn, attributes, seconds)
            else:
                since = 0
                self.memory.counting.put_back(queue, seconds)
                for task in tasks_of(queue):
                    task["StartedTimestamp"] -= seconds * 1000
                attributes[CREATED] = str(int(attributes[CREATED]) - seconds)
            attributes[MODIFIED] = str(int(attributes[MODIFIED]) - seconds)
        self.history.put_back(arn, seconds, since)
        return {name: attributes[name] for name in (CREATED, MODIFIED)}

    def _last_change(self, arn: str, attributes: Mapping[str, str], seconds: int) -> int:
        """The time of it; raise SwitchRefused where it would come before what happened earlier."""
        modified = int(attributes[MODIFIED])
        announced = (each for each in self.history.changed_at(arn) if each < modified)
        before = max(announced, default=float(attributes[CREATED]))
        if modified - seconds <= before:
            minutes = int(modified - before) // MINUTE_SECONDS
            raise SwitchRefused(
                f"minutes: something else happened to the queue {minutes} minutes before its last "
                'change; put the queue back as a whole first, without "of"'
            )
        return modified


def stop_starting() -> None:
    """Have mappings take no messages and schedules not fire: what starts now would be cut off."""
    sqs._receive_messages_for_esm = lambda _url, _most: []
    ministack_scheduler._tick_schedules = lambda: None


def end_lambdas() -> None:
    """End every Lambda process and remove its folder; none starts afterwards."""
    processes.refuse_more()
    lambda_runtime.reset()

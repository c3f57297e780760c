"""MiniStack with everything put in that it lacks, as one ASGI application.

Import this only after `emulator_environment.enter`: MiniStack reads its settings when imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import ministack.app
import msgspec
from ministack.core import lambda_runtime
from ministack.services import scheduler as ministack_scheduler
from ministack.services import sqs

from local_account import cloudformation, cloudwatch, kms, scheduler
from local_account.account_page import AccountPage, SwitchRefused, sent
from local_account.cloudtrail import events
from local_account.cloudtrail.delivery import Delivery
from local_account.cloudtrail.event_history import EventHistory
from local_account.cloudtrail.middleware import CloudTrail
from local_account.emr_serverless.api import EmrServerless
from local_account.emr_serverless.job_process import JobProcesses
from local_account.lambdas import mappings, processes
from local_account.mail import Mails
from local_account.permissions import (
    AccessAnalyzer,
    SignedCalls,
    install_organization,
    install_resource_arns,
    issue_root_credentials,
)
from local_account.sqs import errors, messages, queues
from local_account.sqs.counting import MINUTE_SECONDS, Counting

AUTH_IS_ENFORCED: bool = ministack.app.AUTH
CREATED, MODIFIED = "CreatedTimestamp", "LastModifiedTimestamp"


class Earlier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What of a queue is put back, in whole minutes: metrics have one value in each."""

    queue_arn: str
    minutes: Annotated[int, msgspec.Meta(ge=1)]
    of: Literal["all", "last_change"] = "all"


class Emulator:
    """One account's emulator; once per process. Whoever makes it stops its jobs and delivery."""

    def __init__(
        self, put_object: Callable[[str, str, bytes], None], scratch: Path, endpoint_url: str
    ) -> None:
        self._scratch, self._url = scratch, endpoint_url
        self.jobs = JobProcesses(scratch / "emr-serverless", endpoint_url)
        self.delivery = Delivery(events.put_event, put_object)
        self._counting, self._errors = Counting(), errors.ErrorSwitch()
        self._history, self._analyzer, self._mails = EventHistory(), AccessAnalyzer(), Mails()

    def install(self, accepted: list[str]) -> None:
        """Hook MiniStack; `accepted` gets what of a template is taken and does nothing."""
        issue_root_credentials(self._url)
        install_organization()
        install_resource_arns()
        processes.install(self._scratch / "runtime")
        mappings.install()
        errors.install_words()
        messages.install()
        queues.install()
        self._counting.install()
        self._errors.install()  # around all that SQS does
        cloudwatch.install(self._counting)
        events.install()
        kms.install()
        cloudformation.install(accepted.append)
        scheduler.install()
        self._history.install()
        self._analyzer.install()
        self._mails.install()
        EmrServerless(self.jobs.begin).install()

    def application(self, describe: Callable[[], Mapping[str, Any]]) -> SignedCalls:
        """The emulator behind what sees its SQS calls, behind the pages, behind who may call."""
        pages = AccountPage(
            CloudTrail(ministack.app.app, self.delivery, self._history),
            {
                "account": lambda _: describe(),
                "fire": scheduler.fire_named,
                "earlier": self.put_back,
                "sqs-errors": self._errors.page,
                "access-analyzer": self._analyzer.page,
                "mails": self._mails.page,
            },
        )
        return SignedCalls(pages, urlsplit(self._url).netloc)

    def put_back(self, asked: object) -> Mapping[str, Any]:
        """Put a queue's past back, with {"queue_arn": .., "minutes": ..}; raises SwitchRefused.

        What was counted stays what was counted; it merely happened earlier. So do the queue's
        making, its last change, what CloudTrail's event history tells of it and the messages in it.
        `"of": "last_change"` puts back nothing but that change, and not to before the queue's
        making. What lies in a trail's bucket already keeps its times.
        """
        wanted = sent(asked, Earlier, '{"queue_arn": "arn:aws:sqs:..", "minutes": 90}')
        queue, seconds = sqs._queue_by_arn(wanted.queue_arn), wanted.minutes * MINUTE_SECONDS
        if queue is None:
            raise SwitchRefused(f"queue_arn: there is no queue {wanted.queue_arn}")
        attributes, since = queue["attributes"], 0
        with sqs._queues_lock:
            if wanted.of == "last_change":
                since = int(attributes[MODIFIED])
                if since - seconds <= int(attributes[CREATED]):
                    raise SwitchRefused('minutes: put the whole queue back first, without "of"')
            else:
                self._counting.put_back(queue, seconds)
                attributes[CREATED] = str(int(attributes[CREATED]) - seconds)
            attributes[MODIFIED] = str(int(attributes[MODIFIED]) - seconds)
        self._history.put_back(wanted.queue_arn, seconds, since)
        return {name: attributes[name] for name in (CREATED, MODIFIED)}


def stop_starting() -> None:
    """Have mappings take no messages and schedules not fire: what starts now would be cut off."""
    sqs._receive_messages_for_esm = lambda _url, _most: []
    ministack_scheduler._tick_schedules = lambda: None


def end_lambdas() -> None:
    """End every Lambda process and remove its folder; none starts afterwards."""
    processes.refuse_more()
    lambda_runtime.reset()

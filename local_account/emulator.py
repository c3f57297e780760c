"""The whole emulator as one ASGI application: MiniStack and the features that it lacks.

Import this only after a call of `emulator_environment.enter_environment`: MiniStack reads its
settings when it is imported.
"""

from __future__ import annotations

import json
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
from local_account.account_page import AccountPage, SwitchRefused, parse_request
from local_account.cloudtrail import events
from local_account.cloudtrail.delivery import Delivery
from local_account.cloudtrail.event_history import EventHistory
from local_account.cloudtrail.middleware import CloudTrailRecorder
from local_account.emr_serverless.api import EmrServerless
from local_account.emr_serverless.job_process import JobProcesses
from local_account.lambdas import (
    batches,
    failed_init,
    mapping_settings,
    mappings,
    processes,
    routes,
)
from local_account.lambdas.undocumented import MappingChoices
from local_account.mail import AcceptedMails
from local_account.permissions import (
    AccessAnalyzer,
    SignedCalls,
    install_organization,
    install_partition_keys,
    install_resource_arns,
    install_wildcards,
    issue_root_credentials,
)
from local_account.sqs import encryption, errors, messages, queues
from local_account.sqs.counting import MINUTE_SECONDS, QueueCounter
from local_account.sqs.move_tasks import MoveTasks

IS_AUTH_ENFORCED: bool = ministack.app.AUTH
CREATED_ATTRIBUTE, MODIFIED_ATTRIBUTE = "CreatedTimestamp", "LastModifiedTimestamp"


class MakeOlderRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Request to move a queue's past back in time, as if everything happened `minutes` earlier.

    `minutes` is an integer, because a metric has one value per minute. If `of` is `last_change`,
    only the queue's last change and the events since then are moved.
    """

    queue_arn: str
    minutes: Annotated[int, msgspec.Meta(ge=1)]
    of: Literal["all", "last_change"] = "all"


class Emulator:
    """The emulator of one account. Create only one in a process.

    The caller must stop `jobs` and `delivery` at the end.
    """

    def __init__(
        self,
        put_object: Callable[[str, str, bytes], None],
        temporary_folder: Path,
        endpoint_url: str,
    ) -> None:
        self._temporary_folder = temporary_folder
        self._endpoint_url = endpoint_url
        self.jobs = JobProcesses(temporary_folder / "emr-serverless", endpoint_url)
        self.delivery = Delivery(events.put_event, put_object)
        self._queue_counter = QueueCounter()
        self._error_switch = errors.ErrorSwitch()
        self._event_history = EventHistory()
        self._access_analyzer = AccessAnalyzer()
        self._mails = AcceptedMails()
        self._mapping_choices = MappingChoices()

    def install(self, accepted_types: list[str]) -> None:
        """Replace functions of MiniStack, and add the services that MiniStack lacks.

        If CloudFormation accepts a resource and ignores it, add a text to `accepted_types`: once
        the resource type, if MiniStack lacks the type, and a text for each alarm on metric math.
        """
        issue_root_credentials(self._endpoint_url)
        install_organization()
        install_resource_arns()
        install_wildcards()
        install_partition_keys()
        routes.install()
        processes.install(self._temporary_folder / "runtime")
        failed_init.install()
        mappings.install(self._mapping_choices)
        batches.install(self._mapping_choices)
        mapping_settings.install()
        errors.install_error_texts()
        encryption.install()  # before all other hooks on messages
        messages.install()
        queues.install()
        self._queue_counter.install()
        self._move_tasks = MoveTasks(self._queue_counter.count_move)
        self._move_tasks.install()
        self._error_switch.install()  # after all other hooks on SQS
        cloudwatch.install(self._queue_counter)
        events.install()
        kms.install()
        cloudformation.install(accepted_types.append)
        scheduler.install()
        self._event_history.install()
        self._access_analyzer.install()
        self._mails.install()
        EmrServerless(self.jobs.begin_run).install()

    def application(self, describe_account: Callable[[], Mapping[str, Any]]) -> SignedCalls:
        """Return the ASGI application that answers all HTTP calls to the account.

        The application refuses calls that are not signed correctly, and answers the account's own
        pages (`/_mendq/...`) itself. MiniStack answers all other calls. `CloudTrailRecorder`
        records calls as CloudTrail does. `describe_account` returns the content of the page
        `account`.
        """
        account_page = AccountPage(
            CloudTrailRecorder(ministack.app.app, self.delivery, self._event_history),
            {
                "account": lambda _: describe_account(),
                "fire": scheduler.fire_on_request,
                "earlier": self.put_back,
                "sqs-errors": self._error_switch.page,
                "access-analyzer": self._access_analyzer.page,
                "mails": self._mails.page,
                "mappings": self._mapping_choices.page,
            },
        )
        return SignedCalls(account_page, urlsplit(self._endpoint_url).netloc)

    def put_back(self, body: object) -> Mapping[str, Any]:
        """Move a queue's past back in time, and return the response of the page `earlier`.

        The times of the queue's metrics, messages, creation, last change, move tasks and events in
        CloudTrail's event history become `minutes` minutes earlier. If it is a DLQ, sources that
        were created later than that get its creation time. With `"of": "last_change"`, only the
        last change and the events since then are moved, and the last change must stay after the
        creation. Records that are already in a trail's bucket keep their times.

        Args:
            body: The request, {"queue_arn": .., "minutes": ..}; see `MakeOlderRequest`.

        Returns:
            The new CreatedTimestamp and LastModifiedTimestamp, as texts.

        Raises:
            SwitchRefused: The request is not understood, the queue does not exist, or only the last
                change is moved and would then not be after the creation.
        """
        request = parse_request(
            body, MakeOlderRequest, '{"queue_arn": "arn:aws:sqs:..", "minutes": 90}'
        )
        queue = sqs._queue_by_arn(request.queue_arn)
        seconds = request.minutes * MINUTE_SECONDS
        if queue is None:
            raise SwitchRefused(f"queue_arn: there is no queue {request.queue_arn}")
        attributes = queue["attributes"]
        since_seconds = 0
        with sqs._queues_lock:
            if request.of == "last_change":
                since_seconds = int(attributes[MODIFIED_ATTRIBUTE])
                if since_seconds - seconds <= int(attributes[CREATED_ATTRIBUTE]):
                    raise SwitchRefused('minutes: put the whole queue back first, without "of"')
            else:
                self._queue_counter.put_back(queue, seconds)
                self._move_tasks.put_back(request.queue_arn, seconds)
                created_seconds = int(attributes[CREATED_ATTRIBUTE]) - seconds
                attributes[CREATED_ATTRIBUTE] = str(created_seconds)
                # A DLQ's messages failed in its sources, so these are as old as the DLQ.
                for source in _list_sources(request.queue_arn):
                    source_created_seconds = int(source["attributes"][CREATED_ATTRIBUTE])
                    source["attributes"][CREATED_ATTRIBUTE] = str(
                        min(created_seconds, source_created_seconds)
                    )
            attributes[MODIFIED_ATTRIBUTE] = str(int(attributes[MODIFIED_ATTRIBUTE]) - seconds)
        self._event_history.put_back(request.queue_arn, seconds, since_seconds)
        return {name: attributes[name] for name in (CREATED_ATTRIBUTE, MODIFIED_ATTRIBUTE)}


def _list_sources(dlq_arn: str) -> list[dict[str, Any]]:
    """Return the queues that name this queue as their DLQ."""
    sources: list[dict[str, Any]] = []
    for queue in sqs._queues.values():
        redrive_policy = json.loads(queue["attributes"].get("RedrivePolicy") or "{}")
        if redrive_policy.get("deadLetterTargetArn") == dlq_arn:
            sources.append(queue)
    return sources


def stop_starting_runs() -> None:
    """Stop event source mappings and schedules, because the account is about to end."""
    sqs._receive_messages_for_esm = lambda _url, _most: []
    ministack_scheduler._tick_schedules = lambda: None


def end_lambdas() -> None:
    """End every Lambda process and remove its folder. No new process can start afterwards."""
    processes.refuse_new_processes()
    lambda_runtime.reset()

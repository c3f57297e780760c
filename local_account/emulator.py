"""MiniStack with everything put in that it lacks, as one ASGI application.

Import this only after `emulator_environment.enter`: MiniStack reads its settings when imported.
"""

from __future__ import annotations

from pathlib import Path

import ministack.app
from ministack.core import lambda_runtime
from ministack.services import eventbridge, scheduler, sqs
from ministack.services.cloudformation import provisioners

from local_account.access_analyzer import AccessAnalyzer
from local_account.cloudformation import accepted, table_names, trail
from local_account.cloudtrail import lookup_events, patterns, trail_status
from local_account.cloudtrail.delivery import Delivery
from local_account.cloudtrail.event_history import EventHistory
from local_account.cloudtrail.events import put_event
from local_account.cloudtrail.middleware import Application, CloudTrail
from local_account.cloudtrail.record import Spelling
from local_account.cloudtrail.rules import dispatch_event
from local_account.cloudwatch import queue_metrics
from local_account.cloudwatch.install import install as install_cloudwatch
from local_account.emr_serverless import install as emr_serverless
from local_account.emr_serverless.job_process import JobProcesses
from local_account.lambdas import batching, exceptions, failed_events, mappings, processes, sessions
from local_account.lambdas.runtime_packages import link_runtime_packages
from local_account.not_emulated import NotEmulated
from local_account.scheduler import firing
from local_account.secure_transport import SecureTransport
from local_account.ses import sending
from local_account.ses.mails import Mails
from local_account.sns import encryption, subscriptions
from local_account.sqs import earlier, poller_permissions
from local_account.sqs.counting import Counting
from local_account.sqs.install import install as install_sqs
from local_account.sqs.memory import SqsMemory
from local_account.tagging import pages

__all__ = [
    "AUTH_IS_ENFORCED",
    "access_analyzer",
    "application",
    "end_lambdas",
    "fire_named",
    "install",
    "mails",
    "put_event",
    "putting_back",
    "stop_starting",
]

AUTH_IS_ENFORCED: bool = ministack.app.AUTH
fire_named = firing.fire_named


def install(
    scratch: Path, not_emulated: NotEmulated, endpoint_url: str, memory: SqsMemory
) -> JobProcesses:
    """Hook MiniStack, once per process; the caller starts and stops the job runs."""
    counting = Counting(memory.metrics)
    install_sqs(memory, counting)
    install_cloudwatch()
    queue_metrics.install(memory.metrics, counting.measure)
    runtime_packages = scratch / "runtime"
    link_runtime_packages(runtime_packages)
    processes.install(runtime_packages)
    sessions.install()
    exceptions.install()
    failed_events.install()
    poller_permissions.install()
    batching.install()
    mappings.install()
    eventbridge._dispatch_event = dispatch_event
    patterns.install()
    provisioners._RESOURCE_HANDLERS[trail.TYPE] = trail.HANDLER
    table_names.install()
    accepted.accept_unknown_types(not_emulated.accept)
    accepted.accept_metric_math(not_emulated.accept)
    encryption.install()
    subscriptions.install()
    pages.install()
    firing.install()
    return emr_serverless.install(scratch / "emr-serverless", endpoint_url)


def application(delivery: Delivery, history: EventHistory, spelling: Spelling) -> Application:
    """The emulator behind what sees its SQS calls; once per process."""
    lookup_events.install(history)
    trail_status.install(delivery)
    return SecureTransport(CloudTrail(ministack.app.app, delivery, history, spelling))


def putting_back(memory: SqsMemory, history: EventHistory) -> earlier.PutBack:
    """A function that puts a queue's past back."""
    return earlier.putting_back(memory.metrics, history, Counting(memory.metrics).measure)


def access_analyzer() -> AccessAnalyzer:
    """The checks of policies, put in; once per process."""
    made = AccessAnalyzer()
    made.install()
    return made


def mails() -> Mails:
    """The mails that SES takes from now on; once per process."""
    made = Mails()
    sending.install(made)
    return made


def stop_starting() -> None:
    """Have mappings take no messages and schedules not fire: what starts now would be cut off."""
    sqs._receive_messages_for_esm = lambda _url, _most: []
    scheduler._tick_schedules = lambda: None


def end_lambdas() -> None:
    """End every Lambda process and remove its folder; none starts afterwards."""
    processes.refuse_more()
    lambda_runtime.reset()

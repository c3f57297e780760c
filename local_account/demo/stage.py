"""Run a story on a local account, and print calls, decisions and notifications as they come.

A line of a story's script is the name of a method of `Stage` and its arguments.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from botocore.config import Config
from rich.console import Console
from rich.live import Live

from local_account.demo import picture
from local_account.demo.mailbox import Mailbox
from local_account.demo.story import BadQueue, CallTiming, Story
from local_account.demo.traffic import Caller, RunningTraffic
from local_account.demo.watching import (
    AccountWatcher,
    QueueObservation,
    count_messages,
    read_configuration,
)
from local_account.process import LocalAccount
from local_account.where import REPOSITORY, make_shell_environment
from mendq.cases import items
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.model.lifecycle import CLOUDTRAIL_LAG
from mendq.model.limits import Timing
from mendq.model.state import State

# The stack's outputs that name functions.
FOLLOW_UP_FUNCTION_OUTPUT = "FollowUpFunction"
SCAN_FUNCTION_OUTPUT = "ScanFunction"
MAXIMUM_WAIT_SECONDS = 90.0  # how long an expected event may take
COMMAND_TIMEOUT_SECONDS = 120
POLL_INTERVAL_SECONDS = 0.25
MINIMUM_FIRE_INTERVAL_SECONDS = 3.0
ONE_MINUTE = timedelta(minutes=1)
# No retries: a client would repeat a throttled call, and one failure would be several records.
NO_RETRIES_CONFIGURATION = Config(retries={"total_max_attempts": 1}, max_pool_connections=64)
# A placeholder in a command of the script.
_COMMAND_PLACEHOLDER = re.compile(r"{(\S+?)}")


class ScriptFailed(Exception):
    """Raised if an expected event does not come in time, or ends differently than expected."""


def wait_until(
    read_value: Callable[[], Any],
    awaited_event: str,
    maximum_seconds: float,
    print_news: Callable[[], object] = bool,
) -> Any:
    """Call `read_value` until it returns a value that is true, and return this value.

    Args:
        read_value: Is called every POLL_INTERVAL_SECONDS.
        awaited_event: Words for the event, for the error message.
        maximum_seconds: The longest time to wait.
        print_news: Is called between two calls of `read_value`. The default does nothing.

    Raises:
        ScriptFailed: `read_value` returned nothing true within `maximum_seconds`.
    """
    deadline = time.monotonic() + maximum_seconds
    while True:
        value = read_value()
        if value:
            return value
        if time.monotonic() > deadline:
            raise ScriptFailed(f"{awaited_event} did not come within {maximum_seconds:.0f} s")
        time.sleep(POLL_INTERVAL_SECONDS)
        print_news()


def fire_schedule(
    account: LocalAccount, output_key: str, scheduled_at: datetime | None = None
) -> None:
    """Fire the schedule of a Lambda function now.

    Args:
        account: The local account.
        output_key: The stack's output that has the function's name.
        scheduled_at: The scheduled time that the function gets; None for now.
    """
    function_name = account.outputs[output_key]
    schedules = account.client("scheduler").list_schedules()["Schedules"]
    (schedule_name,) = [
        schedule["Name"]
        for schedule in schedules
        if schedule["Target"]["Arn"].endswith(f":{function_name}")
    ]
    account.fire(schedule_name, scheduled_at or datetime.now(UTC))


class Stage:
    """Runs one story on one account, and prints the events.

    Attributes:
        faults: A sentence for each thing that did not go as the script says.
        clock_put_forward: A sentence for each wait that the story shortened.
        floors_lowered: A line for each limit that the story lowered.
        messages: Counts of DLQ messages by their outcome. Only the redrive story fills it.
    """

    def __init__(self, story: Story, account: LocalAccount, console: Console) -> None:
        self.story = story
        self.account = account
        self.console = console
        self.watcher = AccountWatcher(
            account.client("sqs"),
            account.client("s3"),
            account.client("cloudwatch"),
            account.outputs["CaseBucket"],
        )
        self.mailbox = Mailbox.open(account)
        self.faults: list[str] = []
        self.clock_put_forward: list[str] = []
        self.floors_lowered: list[str] = []
        self.messages: dict[str, Any] = {}
        self.bad_queue_by_name: Mapping[str, BadQueue] = {
            bad_queue.name: bad_queue for bad_queue in story.queues
        }
        self.running: dict[str, RunningTraffic] = {}
        self._calls_begun_at = datetime.now(UTC)
        self._clock: datetime | None = None
        self._shown_call_results: set[tuple[str, str | None]] = set()

    def run(self) -> None:
        """Create the queues, start the calls, run the script, and end the calls.

        Wait for the expected notifications before the calls end. A ScriptFailed ends the script and
        the wait. Its text is added to `faults`.
        """
        self._create_queues()
        self.console.print(picture.draw_queues_of_story(self.story))
        self.watcher.started_at = time.monotonic()
        with self._show_table():
            try:
                for bad_queue in self.story.queues:
                    if bad_queue.calls is not CallTiming.ON_CUE:
                        self.running[bad_queue.name].start()
                self._wait_until_shown()
                for method_name, *arguments in self.story.script:
                    getattr(self, method_name)(*arguments)
                expected_notification_count = self.story.notifications
                self.until(
                    lambda: len(self.mailbox.messages) >= expected_notification_count,
                    f"{expected_notification_count} notifications",
                )
            except ScriptFailed as error:
                self.faults.append(f"{error}")
            finally:
                self.end(*self.running)

    def _create_queues(self) -> None:
        """Create the story's queues and their callers, and switch on the simulated errors."""
        sqs = self.account.client("sqs")
        simulated_errors = []
        for bad_queue in self.story.queues:
            created_queue = sqs.create_queue(
                QueueName=bad_queue.name,
                Attributes=bad_queue.creation_attributes,
                tags=bad_queue.tags,
            )
            queue_url = created_queue["QueueUrl"]
            configuration_before = read_configuration(sqs, queue_url)
            self.watcher.queues[bad_queue.name] = QueueObservation(
                configuration_before["QueueArn"],
                queue_url,
                configuration_before,
                configuration_before,
            )
            if bad_queue.on_demand:
                simulated_errors.append({"error": bad_queue.on_demand, "queues": [bad_queue.name]})
            sqs_client = self.account.client(
                "sqs",
                config=NO_RETRIES_CONFIGURATION,
                **self._create_caller_identity(bad_queue.caller),
            )
            caller = Caller(
                sqs_client, queue_url, partial(self.watcher.report_call, bad_queue.name)
            )
            self.running[bad_queue.name] = RunningTraffic(bad_queue.traffic, caller)
        self.account.switch_sqs_errors(simulated_errors)

    def _create_caller_identity(self, user_name: str | None) -> dict[str, str]:
        """Create an IAM user who may send messages; return its access key, as boto3 arguments.

        If `user_name` is None, return an empty dict: the account's root user then makes the calls.
        """
        if user_name is None:
            return {}
        iam = self.account.client("iam")
        iam.create_user(UserName=user_name)
        statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName=user_name, PolicyName="send", PolicyDocument=policy)
        access_key = iam.create_access_key(UserName=user_name)["AccessKey"]
        return {
            "aws_access_key_id": access_key["AccessKeyId"],
            "aws_secret_access_key": access_key["SecretAccessKey"],
        }

    @contextmanager
    def _show_table(self) -> Iterator[None]:
        """Show the table of queues below the events while the block runs."""
        try:
            with Live(
                console=self.console,
                refresh_per_second=4,
                get_renderable=lambda: picture.make_queue_table(self.story, self.watcher),
            ):
                yield
        finally:
            if not self.console.is_terminal:
                self.console.line()  # on a terminal, Live ends the line itself

    def _wait_until_shown(self) -> None:
        """Wait until each queue that is called from the start has a case.

        If Mendq fixes a queue at once, also wait until enough of its calls succeed. Then end the
        queue's calls if they are UNTIL_SHOWN.
        """
        queues_called_from_start = [
            bad_queue for bad_queue in self.story.queues if bad_queue.calls is not CallTiming.ON_CUE
        ]

        def are_queues_shown() -> bool:
            for bad_queue in queues_called_from_start:
                if self._is_queue_shown(bad_queue) and bad_queue.calls is CallTiming.UNTIL_SHOWN:
                    self.running[bad_queue.name].ask_to_stop()
            return all(self._is_queue_shown(bad_queue) for bad_queue in queues_called_from_start)

        self.until(are_queues_shown, "a case of every queue, and calls that work where it is fixed")

    def _is_queue_shown(self, bad_queue: BadQueue) -> bool:
        if self.observation_of(bad_queue.name).newest_transition is None:
            return False
        is_fixed_at_once = bad_queue.states[0] is State.APPLIED and bad_queue.must_be_fixed
        return not is_fixed_at_once or self._has_enough_working_calls(bad_queue.name)

    def print_news(self) -> None:
        """Read the account once, and print new calls, transitions and notifications.

        Calls of a queue with the same result are printed only the first time. The table shows how
        many there were.
        """
        for (name, fault), call_count in self.watcher.count_new_calls().items():
            if (name, fault) not in self._shown_call_results:
                self._shown_call_results.add((name, fault))
                traffic = self.bad_queue_by_name[name].traffic
                self.say(name, *picture.describe_calls(traffic, fault, call_count))
        # Read the mailbox first and print it last: a case is stored before it notifies people.
        notifications = self.mailbox.receive_new()
        for transition in self.watcher.read_changes():
            self.say(picture.get_queue_name(transition), *picture.describe_transition(transition))
        for message in notifications:
            self.say("notified", f"{message.severity}: {message.subject}", "magenta")

    def until(self, has_happened: Callable[[], bool], awaited_event: str) -> None:
        """Wait until `has_happened` returns True, and print the news meanwhile.

        Raises ScriptFailed, with `awaited_event`, if the event does not happen in time.
        """
        wait_until(has_happened, awaited_event, MAXIMUM_WAIT_SECONDS, self.print_news)

    def observation_of(self, name: str) -> QueueObservation:
        """Return the observation of the queue with this name."""
        return self.watcher.queues[name]

    def states(self, name: str) -> list[str]:
        """Return all states that the cases of a queue have had, first to last."""
        return [transition["to"] for transition in self.watcher.transitions(name)]

    def _has_enough_working_calls(self, name: str) -> bool:
        return (
            self.observation_of(name).successful_calls
            >= self.bad_queue_by_name[name].traffic.convincing_calls
        )

    # The methods that scripts call.

    def say(self, subject: str, text: str, style: str = "cyan") -> None:
        """Print a line: the seconds since the story began, the subject and the text."""
        self.console.print(picture.make_event_line(self.watcher, subject, text, style))

    def begin(self, *names: str) -> None:
        """Start the calls to these queues."""
        self._calls_begun_at = datetime.now(UTC)
        for name in names:
            self.running[name].start()

    def end(self, *names: str) -> None:
        """End the calls to these queues, and wait for the last ones."""
        for name in names:
            self.running[name].ask_to_stop()
        for name in names:
            self.running[name].stop()
        self.print_news()

    def until_in(self, state: str, *names: str) -> None:
        """Wait until the case of each of these queues has been in that state."""
        awaited_event = f"{state} of {', '.join(names)}"
        self.until(lambda: all(state in self.states(name) for name in names), awaited_event)

    def until_working(self, *names: str) -> None:
        """Wait until enough calls to each of these queues have succeeded."""
        awaited_event = f"calls of {' and '.join(names)} that work"
        self.until(
            lambda: all(self._has_enough_working_calls(name) for name in names), awaited_event
        )

    def until_deleted_in_time(self, name: str) -> None:
        """Wait for a successful delete that is later than the last failed call.

        The delete must also be later than the end of every visibility timeout that began before
        the fix.
        """

        def is_deleted_in_time() -> bool:
            queue = self.observation_of(name)
            if queue.changed_at is None or queue.last_success_at is None:
                return False
            end_of_last_old_timeout = queue.changed_at + self.bad_queue_by_name[name].longer_timeout
            return queue.last_success_at > max(end_of_last_old_timeout, *queue.failure_times)

        self.until(is_deleted_in_time, f"deletes of {name} in time")

    def until_holding(self, messages: int, *names: str) -> None:
        """Wait until each of these queues has this number of messages.

        `names` can also have queues that are not in the story.
        """
        sqs = self.account.client("sqs")
        queue_urls = [sqs.get_queue_url(QueueName=name)["QueueUrl"] for name in names]
        awaited_event = f"{messages} messages in {', '.join(names)}"
        self.until(
            lambda: all(count_messages(sqs, queue_url) == messages for queue_url in queue_urls),
            awaited_event,
        )

    def follow_up(self, state: str, *names: str) -> None:
        """Fire the follow-up's schedule until the case of each of these queues has been in `state`.

        It is fired at most every MINIMUM_FIRE_INTERVAL_SECONDS. If the follow-up's clock was set,
        put it forward by one minute afterwards.
        """
        last_fired_at = float("-inf")

        def have_cases_reached_state() -> bool:
            nonlocal last_fired_at
            if all(state in self.states(name) for name in names):
                return True
            if time.monotonic() >= last_fired_at + MINIMUM_FIRE_INTERVAL_SECONDS:
                last_fired_at = time.monotonic()
                fire_schedule(self.account, FOLLOW_UP_FUNCTION_OUTPUT, self._clock)
            return False

        self.until(have_cases_reached_state, f"{state} of {', '.join(names)}")
        if self._clock is not None:
            self._clock += ONE_MINUTE

    def next_minute(self) -> None:
        """Put the follow-up's clock forward by one minute, and fire its schedule with this time.

        If the clock was not set, it starts at the present time.
        """
        self._clock = (self._clock or datetime.now(UTC)) + ONE_MINUTE
        fire_schedule(self.account, FOLLOW_UP_FUNCTION_OUTPUT, self._clock)

    def put_forward_until_proven(self, *names: str) -> None:
        """Set the follow-up's clock to a later time, at which these fixes can be verified."""
        longest_timeout = max(self.bad_queue_by_name[name].longer_timeout for name in names)
        waiting_time = longest_timeout + CLOUDTRAIL_LAG + ONE_MINUTE
        self._clock = datetime.now(UTC) + waiting_time
        timeout_text = f"the longer visibility timeout of {longest_timeout.total_seconds():.0f} s"
        cloudtrail_lag_text = f"{CLOUDTRAIL_LAG // ONE_MINUTE} min for CloudTrail"
        self._report_clock_put_forward(
            f"{waiting_time // ONE_MINUTE} min",
            f"{timeout_text}, {cloudtrail_lag_text}, a minute for the schedule",
        )

    def put_forward_the_watch(self) -> None:
        """Set the follow-up's clock forward by the time for which a case is watched."""
        watch_hours = Timing().watch_hours
        self._clock = (self._clock or datetime.now(UTC)) + timedelta(hours=watch_hours)
        self._report_clock_put_forward(f"{watch_hours} h", "as long as a case is watched")

    def _report_clock_put_forward(self, duration_text: str, reason_text: str) -> None:
        clock_shift_text = f"put forward by {duration_text} instead of waiting"
        self._report_clock_change(f"the follow-up's clock is {clock_shift_text}: {reason_text}")

    def _report_clock_change(self, sentence: str) -> None:
        self.clock_put_forward.append(sentence)
        self.say("clock", sentence, "yellow")

    def put_back(self, minutes: list[int], names: list[str], reason_text: str) -> None:
        """Make the past of these queues older, by the sum of `minutes`.

        Their metrics, messages and changes then happened that many minutes earlier. The account is
        called once for each number in `minutes`. The reason `reason_text` is printed, unless it is
        empty.
        """
        for name in names:
            for minutes_part in minutes:
                self.account.put_back(self.observation_of(name).queue_arn, minutes=minutes_part)
        if reason_text:
            measurements_text = f"what was counted on {' and '.join(names)}"
            clock_shift_text = f"is put back by {sum(minutes)} min instead of waiting"
            self._report_clock_change(f"{measurements_text} {clock_shift_text}: {reason_text}")

    def scan(self) -> None:
        """Start the hourly scan now, even if this hour's scan has already run."""
        case_table = self.account.outputs["CaseTable"]
        scan_record = items.item_key(ACCOUNT_PARTITION, "scan")
        self.account.client("dynamodb").delete_item(TableName=case_table, Key=scan_record)
        fire_schedule(self.account, SCAN_FUNCTION_OUTPUT)
        self._report_clock_change("the hour's scan is begun now instead of within ten minutes")

    def mendq(self, command_line: str, expected_exit_code: int) -> None:
        """Run a command of `mendq` as an operator does.

        A queue's name in braces, such as `{orders}`, stands for the id of the queue's case, and
        `{begun}` for the time of the last `begin`. Raises ScriptFailed if the exit code is not
        `expected_exit_code`.
        """

        def fill_placeholder(match: re.Match[str]) -> str:
            if match[1] == "begun":
                return f"{self._calls_begun_at:%Y-%m-%dT%H:%M:%SZ}"
            return str(self.watcher.transitions(match[1])[-1]["case_id"])

        command_words = [
            "mendq",
            *shlex.split(_COMMAND_PLACEHOLDER.sub(fill_placeholder, command_line)),
        ]
        exit_code, output = self._run_command(command_words)
        picture.print_all(
            self.console, *picture.draw_command(shlex.join(command_words), exit_code, output)
        )
        if exit_code != expected_exit_code:
            command_text = shlex.join(command_words)
            raise ScriptFailed(
                f"{command_text} exited with {exit_code}, expected {expected_exit_code}"
            )
        self.print_news()

    def _run_command(self, command_words: list[str]) -> tuple[int, str]:
        """Run a command without a terminal, so that it never waits for an answer.

        Return the exit code and the output.
        """
        completed_process = subprocess.run(
            [sys.executable, "-m", "mendq.cli", *command_words[1:]],
            cwd=REPOSITORY,
            env={
                **make_shell_environment(self.account.endpoint_url),
                "COLUMNS": f"{self.console.width}",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_TIMEOUT_SECONDS,
            check=False,
        )
        return completed_process.returncode, completed_process.stdout

    def have_a_person_set(self, name: str) -> None:
        """Set the attributes with which a person replaces Mendq's values in this story."""
        attributes = self.bad_queue_by_name[name].a_person_sets
        self.say(name, f"a person sets {', '.join(map(' '.join, attributes.items()))}")
        queue_url = self.observation_of(name).queue_url
        self.watcher.sqs.set_queue_attributes(QueueUrl=queue_url, Attributes=attributes)  # type: ignore[arg-type]
        self.print_news()

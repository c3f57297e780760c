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
from local_account.demo.story import BadQueue, Calls, Story
from local_account.demo.traffic import Caller, Running
from local_account.demo.watching import Observation, Watch, configuration, messages_in
from local_account.process import LocalAccount
from local_account.where import REPOSITORY, shell
from mendq.cases import items
from mendq.model.case import State
from mendq.model.lifecycle import CLOUDTRAIL_LAG
from mendq.model.limits import Timing

# The stack's outputs that name functions.
FOLLOW_UP = "FollowUpFunction"
SCAN = "ScanFunction"
PATIENCE_SECONDS = 90.0  # how long an expected event may take
COMMAND_SECONDS = 120
LOOK_EVERY_SECONDS = 0.25
FIRE_AGAIN_SECONDS = 3.0
A_MINUTE = timedelta(minutes=1)
# No retries: a client would repeat a throttled call, and one failure would be several records.
ONCE = Config(retries={"total_max_attempts": 1}, max_pool_connections=64)
# A placeholder in a command of the script.
_PLACEHOLDER = re.compile(r"{(\S+?)}")


class ScriptFailed(Exception):
    """Raised if something does not come in time, or ends differently than the script says."""


def until(
    read: Callable[[], Any], what: str, seconds: float, look: Callable[[], object] = bool
) -> Any:
    """Call `read` until it returns something true, and return that.

    Args:
        read: Is called again and again.
        what: Words for what is waited for.
        seconds: The longest time to wait.
        look: Is called between two reads.

    Raises:
        ScriptFailed: The time is over.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = read()
        if value:
            return value
        if time.monotonic() > deadline:
            raise ScriptFailed(f"{what} did not come within {seconds:.0f} s")
        time.sleep(LOOK_EVERY_SECONDS)
        look()


def fire(account: LocalAccount, output: str, at: datetime | None = None) -> None:
    """Fire the schedule of a function now.

    Args:
        account: The local account.
        output: The stack's output that has the function's name.
        at: The scheduled time that the function gets; None for now.
    """
    function = account.outputs[output]
    schedules = account.client("scheduler").list_schedules()["Schedules"]
    (name,) = [
        schedule["Name"]
        for schedule in schedules
        if schedule["Target"]["Arn"].endswith(f":{function}")
    ]
    account.fire(name, at or datetime.now(UTC))


class Stage:
    """Runs one story on one account.

    Attributes:
        faults: What did not end as the script says, in sentences.
        clock_put_forward: Waits that the story shortened, in sentences.
        floors_lowered: Limits that the story lowered.
        messages: Counts of DLQ messages by their outcome (redrive story).
    """

    def __init__(self, story: Story, account: LocalAccount, console: Console) -> None:
        self.story = story
        self.account = account
        self.console = console
        self.watch = Watch(
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
        self.bad: Mapping[str, BadQueue] = {bad.name: bad for bad in story.queues}
        self.running: dict[str, Running] = {}
        self._begun = datetime.now(UTC)
        self._at: datetime | None = None
        self._shown: set[tuple[str, str | None]] = set()

    def run(self) -> None:
        """Create the queues, start the calls, run the script, and end the calls."""
        self._set_up()
        self.console.print(picture.cast(self.story))
        self.watch.started = time.monotonic()
        with self._live():
            try:
                for bad in self.story.queues:
                    if bad.calls is not Calls.ON_CUE:
                        self.running[bad.name].start()
                self._until_shown()
                for verb, *arguments in self.story.script:
                    getattr(self, verb)(*arguments)
                expected = self.story.notifications
                self.until(
                    lambda: len(self.mailbox.messages) >= expected, f"{expected} notifications"
                )
            except ScriptFailed as error:
                self.faults.append(f"{error}")
            finally:
                self.end(*self.running)

    def _set_up(self) -> None:
        sqs = self.account.client("sqs")
        simulated_errors = []
        for bad in self.story.queues:
            queue = sqs.create_queue(QueueName=bad.name, Attributes=bad.created_with, tags=bad.tags)
            url = queue["QueueUrl"]
            before = configuration(sqs, url)
            self.watch.queues[bad.name] = Observation(before["QueueArn"], url, before, before)
            if bad.on_demand:
                simulated_errors.append({"error": bad.on_demand, "queues": [bad.name]})
            client = self.account.client("sqs", config=ONCE, **self._identity(bad.caller))
            caller = Caller(client, url, partial(self.watch.report_call, bad.name))
            self.running[bad.name] = Running(bad.traffic, caller)
        self.account.switch_sqs_errors(simulated_errors)

    def _identity(self, user: str | None) -> dict[str, str]:
        """Create an IAM user who may send messages; return its credentials for boto3.

        Without a user the result is empty, and the account's root user calls.
        """
        if user is None:
            return {}
        iam = self.account.client("iam")
        iam.create_user(UserName=user)
        statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName=user, PolicyName="send", PolicyDocument=policy)
        key = iam.create_access_key(UserName=user)["AccessKey"]
        return {
            "aws_access_key_id": key["AccessKeyId"],
            "aws_secret_access_key": key["SecretAccessKey"],
        }

    @contextmanager
    def _live(self) -> Iterator[None]:
        """Show the table of queues below the events while the block runs."""
        try:
            with Live(
                console=self.console,
                refresh_per_second=4,
                get_renderable=lambda: picture.queue_table(self.story, self.watch),
            ):
                yield
        finally:
            if not self.console.is_terminal:
                self.console.line()  # on a terminal, Live ends the line itself

    def _until_shown(self) -> None:
        """Wait until each called queue has a case, and its calls succeed if it is fixed at once."""
        called_queues = [bad for bad in self.story.queues if bad.calls is not Calls.ON_CUE]

        def are_shown() -> bool:
            for bad in called_queues:
                if self._is_shown(bad) and bad.calls is Calls.UNTIL_SHOWN:
                    self.running[bad.name].ask_to_stop()
            return all(self._is_shown(bad) for bad in called_queues)

        self.until(are_shown, "a case of every queue, and calls that work where it is fixed")

    def _is_shown(self, bad: BadQueue) -> bool:
        if self.seen(bad.name).case is None:
            return False
        is_fixed_at_once = bad.states[0] is State.APPLIED and bad.is_to_be_fixed
        return not is_fixed_at_once or self._works(bad.name)

    def look(self) -> None:
        """Read the account once and print what is new.

        A result of calls is printed only the first time. The table shows how often it came.
        """
        for (name, fault), times in self.watch.count_new_calls().items():
            if (name, fault) not in self._shown:
                self._shown.add((name, fault))
                traffic = self.bad[name].traffic
                self.say(name, *picture.calls_ended(traffic, fault, times))
        # Read the mailbox first and print it last: a case is stored before it notifies people.
        notifications = self.mailbox.look()
        for case in self.watch.look():
            self.say(picture.queue_of(case), *picture.decision(case))
        for message in notifications:
            self.say("notified", f"{message.severity}: {message.subject}", "magenta")

    def until(self, has_happened: Callable[[], bool], what: str) -> None:
        """Wait until something has happened, and print what is new meanwhile.

        Raises ScriptFailed if it does not happen in time.
        """
        until(has_happened, what, PATIENCE_SECONDS, self.look)

    def seen(self, name: str) -> Observation:
        """Return what was observed of a queue."""
        return self.watch.queues[name]

    def states(self, name: str) -> list[str]:
        """Return the states of a queue's case, first to last."""
        return [case["to"] for case in self.watch.transitions(name)]

    def _works(self, name: str) -> bool:
        return self.seen(name).calls_well >= self.bad[name].traffic.convincing

    # The methods that scripts call.

    def say(self, who: str, what: str, style: str = "cyan") -> None:
        """Print a line with the second of the story."""
        self.console.print(picture.event(self.watch, who, what, style))

    def begin(self, *names: str) -> None:
        """Start the calls to these queues."""
        self._begun = datetime.now(UTC)
        for name in names:
            self.running[name].start()

    def end(self, *names: str) -> None:
        """End the calls to these queues, and wait for the last ones."""
        for name in names:
            self.running[name].ask_to_stop()
        for name in names:
            self.running[name].stop()
        self.look()

    def until_in(self, state: str, *names: str) -> None:
        """Wait until the case of each of these queues has been in that state."""
        what = f"{state} of {', '.join(names)}"
        self.until(lambda: all(state in self.states(name) for name in names), what)

    def until_working(self, *names: str) -> None:
        """Wait until enough calls to each of these queues have succeeded."""
        what = f"calls of {' and '.join(names)} that work"
        self.until(lambda: all(self._works(name) for name in names), what)

    def until_deleted_in_time(self, name: str) -> None:
        """Wait for a successful delete after the last failed call.

        It must also come after the end of all visibility timeouts from before the fix.
        """

        def is_deleted_in_time() -> bool:
            queue = self.seen(name)
            if queue.changed_at is None or queue.well_at is None:
                return False
            last_old_timeout = queue.changed_at + self.bad[name].longer_timeout
            return queue.well_at > max(last_old_timeout, *queue.failures_at)

        self.until(is_deleted_in_time, f"deletes of {name} in time")

    def until_holding(self, messages: int, *names: str) -> None:
        """Wait until each of these queues has that many messages. They can be any queues."""
        sqs = self.account.client("sqs")
        urls = [sqs.get_queue_url(QueueName=name)["QueueUrl"] for name in names]
        what = f"{messages} messages in {', '.join(names)}"
        self.until(lambda: all(messages_in(sqs, url) == messages for url in urls), what)

    def follow_up(self, state: str, *names: str) -> None:
        """Fire the follow-up again and again until the cases of these queues reach a state."""
        fired_at = float("-inf")

        def have_reached() -> bool:
            nonlocal fired_at
            if all(state in self.states(name) for name in names):
                return True
            if time.monotonic() >= fired_at + FIRE_AGAIN_SECONDS:
                fired_at = time.monotonic()
                fire(self.account, FOLLOW_UP, self._at)
            return False

        self.until(have_reached, f"{state} of {', '.join(names)}")
        if self._at is not None:
            self._at += A_MINUTE

    def next_minute(self) -> None:
        """Fire the follow-up with a time one minute later than the last time."""
        self._at = (self._at or datetime.now(UTC)) + A_MINUTE
        fire(self.account, FOLLOW_UP, self._at)

    def put_forward_until_proven(self, *names: str) -> None:
        """Put the follow-up's clock forward to when these fixes can be proven."""
        longest = max(self.bad[name].longer_timeout for name in names)
        wait = longest + CLOUDTRAIL_LAG + A_MINUTE
        self._at = datetime.now(UTC) + wait
        timeout = f"the longer visibility timeout of {longest.total_seconds():.0f} s"
        lag = f"{CLOUDTRAIL_LAG // A_MINUTE} min for CloudTrail"
        self._put_forward(f"{wait // A_MINUTE} min", f"{timeout}, {lag}, a minute for the schedule")

    def put_forward_the_watch(self) -> None:
        """Put the follow-up's clock forward to when a watched case is closed."""
        hours = Timing().watch_hours
        self._at = (self._at or datetime.now(UTC)) + timedelta(hours=hours)
        self._put_forward(f"{hours} h", "as long as a case is watched")

    def _put_forward(self, by: str, why: str) -> None:
        forward = f"put forward by {by} instead of waiting"
        self._say_of_the_clock(f"the follow-up's clock is {forward}: {why}")

    def _say_of_the_clock(self, sentence: str) -> None:
        self.clock_put_forward.append(sentence)
        self.say("clock", sentence, "yellow")

    def put_back(self, minutes: list[int], names: list[str], why: str) -> None:
        """Make the past of these queues older, once for each number of minutes in `minutes`.

        Their metrics, messages and changes then happened that many minutes earlier. The text `why`
        is printed unless it is empty.
        """
        for name in names:
            for part in minutes:
                self.account.put_back(self.seen(name).queue_arn, minutes=part)
        if why:
            counted = f"what was counted on {' and '.join(names)}"
            by = f"is put back by {sum(minutes)} min instead of waiting"
            self._say_of_the_clock(f"{counted} {by}: {why}")

    def scan(self) -> None:
        """Start the hourly scan now, also if this hour's scan was before the story."""
        table = self.account.outputs["CaseTable"]
        scan_record = items.key(items.ACCOUNT, "scan")
        self.account.client("dynamodb").delete_item(TableName=table, Key=scan_record)
        fire(self.account, SCAN)
        self._say_of_the_clock("the hour's scan is begun now instead of within ten minutes")

    def mendq(self, line: str, code: int) -> None:
        """Run a command of `mendq` as an operator does.

        `{QUEUE}` in the line stands for the id of the queue's case, and `{begun}` for the time of
        the last `begin`. Raises ScriptFailed if the exit code is not `code`.
        """

        def fill(match: re.Match[str]) -> str:
            if match[1] == "begun":
                return f"{self._begun:%Y-%m-%dT%H:%M:%SZ}"
            return str(self.watch.transitions(match[1])[-1]["case_id"])

        words = ["mendq", *shlex.split(_PLACEHOLDER.sub(fill, line))]
        exit_code, text = self._run(words)
        picture.show(self.console, *picture.command(shlex.join(words), exit_code, text))
        if exit_code != code:
            raise ScriptFailed(f"{shlex.join(words)} exited with {exit_code}, expected {code}")
        self.look()

    def _run(self, words: list[str]) -> tuple[int, str]:
        """Run a command without a terminal, so that it never waits for an answer.

        Return the exit code and the output.
        """
        done = subprocess.run(
            [sys.executable, "-m", "mendq.cli", *words[1:]],
            cwd=REPOSITORY,
            env={**shell(self.account.endpoint_url), "COLUMNS": f"{self.console.width}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return done.returncode, done.stdout

    def have_a_person_set(self, name: str) -> None:
        """Set the attributes that a person sets over Mendq's values in this story."""
        values = self.bad[name].a_person_sets
        self.say(name, f"a person sets {', '.join(map(' '.join, values.items()))}")
        url = self.seen(name).queue_url
        self.watch.sqs.set_queue_attributes(QueueUrl=url, Attributes=values)  # type: ignore[arg-type]
        self.look()

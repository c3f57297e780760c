"""Runs a story: calls, decisions and notifications as they come, then its script line by line.

A line of a script is the name of a method here and its arguments.
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

FOLLOW_UP, SCAN = "FollowUpFunction", "ScanFunction"
DONE = 0  # the exit code of a command
PATIENCE_SECONDS, COMMAND_SECONDS = 90.0, 120
LOOK_EVERY_SECONDS = 0.25
FIRE_AGAIN_SECONDS = 3.0
A_MINUTE = timedelta(minutes=1)
# A client would try a throttled call again by itself: then one failure is several records.
ONCE = Config(retries={"total_max_attempts": 1}, max_pool_connections=64)
_OF_A_QUEUE = re.compile(r"{(\S+?)}")


class ScriptFailed(Exception):
    """What did not come in time, or ended otherwise than the script says."""


def until(
    happened: Callable[[], Any], what: str, seconds: float, look: Callable[[], object] = bool
) -> Any:
    """Return what `happened` gives once that is something, looking between; raise ScriptFailed."""
    deadline = time.monotonic() + seconds
    while not (found := happened()):
        if time.monotonic() > deadline:
            raise ScriptFailed(f"{what} did not come within {seconds:.0f} s")
        time.sleep(LOOK_EVERY_SECONDS)
        look()
    return found


def fire(account: LocalAccount, output: str, at: datetime | None = None) -> None:
    """Fire the schedule that starts the function which an output of the stack names.

    It fires by itself as well. None: for what is due now.
    """
    function, scheduler = account.outputs[output], account.client("scheduler")
    (name,) = (
        each["Name"]
        for each in scheduler.list_schedules()["Schedules"]
        if each["Target"]["Arn"].endswith(f":{function}")
    )
    account.fire(name, at or datetime.now(UTC))


class Stage:
    """One story in one account.

    Afterwards `faults` says what did not end as the script says, `clock_put_forward` and
    `floors_lowered` what the story shortened, and `messages` what became of DLQ messages.
    """

    def __init__(self, story: Story, account: LocalAccount, console: Console) -> None:
        self.story, self.account, self.console = story, account, console
        sqs, s3, cloudwatch = map(account.client, ("sqs", "s3", "cloudwatch"))
        self.watch = Watch(sqs, s3, cloudwatch, account.outputs["CaseBucket"])
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

    # What is set up, and how it is run.

    def run(self) -> None:
        """Make the queues, start the calls, show what comes of them, and end them."""
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
                wanted = self.story.notifications
                self.until(lambda: len(self.mailbox.messages) >= wanted, f"{wanted} notifications")
            except ScriptFailed as failed:
                self.faults.append(f"{failed}")
            finally:
                self.end(*self.running)

    def _set_up(self) -> None:
        sqs, demanded = self.account.client("sqs"), []
        for bad in self.story.queues:
            given = {"Attributes": bad.created_with, "tags": bad.tags}
            url = sqs.create_queue(QueueName=bad.name, **given)["QueueUrl"]
            before = configuration(sqs, url)
            self.watch.queues[bad.name] = Observation(before["QueueArn"], url, before, before)
            demanded += [{"error": bad.on_demand, "queues": [bad.name]}] * bool(bad.on_demand)
            client = self.account.client("sqs", config=ONCE, **self._identity(bad.caller))
            caller = Caller(client, url, partial(self.watch.heard, bad.name))
            self.running[bad.name] = Running(bad.traffic, caller)
        self.account.switch_sqs_errors(demanded)

    def _identity(self, user: str | None) -> dict[str, str]:
        """Credentials of an IAM user who may send; none where the account itself calls."""
        if user is None:
            return {}
        iam = self.account.client("iam")
        iam.create_user(UserName=user)
        statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName=user, PolicyName="send", PolicyDocument=policy)
        key = iam.create_access_key(UserName=user)["AccessKey"]
        secret = key["SecretAccessKey"]
        return {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": secret}

    @contextmanager
    def _live(self) -> Iterator[None]:
        """Show the table below the events; what follows begins on a line of its own."""
        drawn = partial(Live, console=self.console, refresh_per_second=4)
        try:
            with drawn(get_renderable=lambda: picture.standing(self.story, self.watch)):
                yield
        finally:
            if not self.console.is_terminal:
                self.console.line()  # Live does that on terminals alone

    def _until_shown(self) -> None:
        """Until each queue that is called has a case, and works again where that is claimed."""
        called = [bad for bad in self.story.queues if bad.calls is not Calls.ON_CUE]

        def shown() -> bool:
            for bad in called:
                if self._is_shown(bad) and bad.calls is Calls.UNTIL_SHOWN:
                    self.running[bad.name].put_down()
            return all(map(self._is_shown, called))

        self.until(shown, "a case of every queue, and calls that work where it is fixed")

    def _is_shown(self, bad: BadQueue) -> bool:
        is_fixed = bad.states[0] is State.APPLIED and bad.is_to_be_fixed
        return self.seen(bad.name).case is not None and (not is_fixed or self._works(bad.name))

    def look(self) -> None:
        """Look once and print what is new; how often a call ended alike, the table counts."""
        for (name, fault), times in self.watch.outcomes_since().items():
            if (name, fault) not in self._shown:
                self._shown.add((name, fault))
                traffic = self.bad[name].traffic
                self.say(name, *picture.calls_ended(traffic, fault, times))
        new = self.mailbox.look()  # first: a case is written down before it notifies
        for case in self.watch.look():
            self.say(picture.queue_of(case), *picture.decided(case))
        for each in new:
            self.say("notified", f"{each.severity}: {each.subject}", "magenta")

    def until(self, happened: Callable[[], bool], what: str) -> None:
        """Look until it has happened; raise ScriptFailed."""
        until(happened, what, PATIENCE_SECONDS, self.look)

    def seen(self, name: str) -> Observation:
        """What was seen of a queue."""
        return self.watch.queues[name]

    def states(self, name: str) -> list[str]:
        """The states that a queue's case has been in, first to last."""
        return [each["to"] for each in self.watch.transitions(name)]

    def _works(self, name: str) -> bool:
        return self.seen(name).calls_well >= self.bad[name].traffic.convincing

    # What scripts say.

    def say(self, who: str, what: str, style: str = "cyan") -> None:
        """Print a line."""
        self.console.print(picture.event(self.watch, who, what, style))

    def begin(self, *names: str) -> None:
        """Have these queues called from now on."""
        self._begun = datetime.now(UTC)
        for name in names:
            self.running[name].start()

    def end(self, *names: str) -> None:
        """Return when nobody calls these queues any more."""
        for name in names:
            self.running[name].put_down()
        for name in names:
            self.running[name].stop()
        self.look()

    def until_in(self, state: str, *names: str) -> None:
        """Wait until every one's case has come to that state."""
        what = f"{state} of {', '.join(names)}"
        self.until(lambda: all(state in self.states(name) for name in names), what)

    def until_working(self, *names: str) -> None:
        """Wait for as many calls that end well as convince."""
        what = f"calls of {' and '.join(names)} that work"
        self.until(lambda: all(map(self._works, names)), what)

    def until_deleted_in_time(self, name: str) -> None:
        """Wait for a delete after the last failed call and every earlier visibility timeout."""

        def holds() -> bool:
            seen, timeout = self.seen(name), self.bad[name].longer_timeout
            if seen.changed_at is None or seen.well_at is None:
                return False
            return seen.well_at > max(seen.changed_at + timeout, *seen.failures_at)

        self.until(holds, f"deletes of {name} in time")

    def until_holding(self, messages: int, *names: str) -> None:
        """Wait until each queue holds so many messages; queues beside the story's count too."""
        sqs = self.account.client("sqs")
        urls = [sqs.get_queue_url(QueueName=name)["QueueUrl"] for name in names]
        what = f"{messages} messages in {', '.join(names)}"
        self.until(lambda: all(messages_in(sqs, url) == messages for url in urls), what)

    def follow_up(self, state: str, *names: str) -> None:
        """Fire the follow-up until these cases come to a state; fired again it does no harm."""
        fired_at = float("-inf")

        def happened() -> bool:
            nonlocal fired_at
            if all(state in self.states(name) for name in names):
                return True
            if time.monotonic() >= fired_at + FIRE_AGAIN_SECONDS:
                fired_at = time.monotonic()
                fire(self.account, FOLLOW_UP, self._at)
            return False

        self.until(happened, f"{state} of {', '.join(names)}")
        self._at = self._at and self._at + A_MINUTE

    def next_minute(self) -> None:
        """Fire the follow-up a minute after it was fired last."""
        self._at = (self._at or datetime.now(UTC)) + A_MINUTE
        fire(self.account, FOLLOW_UP, self._at)

    def put_forward_until_proven(self, *names: str) -> None:
        """Fire the follow-up for when these fixes can be proven, from now on."""
        longest = max(self.bad[name].longer_timeout for name in names)
        by, lag = longest + CLOUDTRAIL_LAG + A_MINUTE, CLOUDTRAIL_LAG // A_MINUTE
        self._at = datetime.now(UTC) + by
        timeout = f"the longer visibility timeout of {longest.total_seconds():.0f} s"
        why = f"{timeout}, {lag} min for CloudTrail, a minute for the schedule"
        self._put_forward(f"{by // A_MINUTE} min", why)

    def put_forward_the_watch(self) -> None:
        """Fire the follow-up for when a watched case is closed, from now on."""
        hours = Timing().watch_hours
        self._at = (self._at or datetime.now(UTC)) + timedelta(hours=hours)
        self._put_forward(f"{hours} h", "as long as a case is watched")

    def _put_forward(self, by: str, why: str) -> None:
        forward = f"put forward by {by} instead of waiting"
        self._say_of_the_clock(f"the follow-up's clock is {forward}: {why}")

    def _say_of_the_clock(self, said: str) -> None:
        self.clock_put_forward.append(said)
        self.say("clock", said, "yellow")

    def put_back(self, minutes: list[int], names: list[str], why: str) -> None:
        """Have the past of queues be so many minutes earlier, piece by piece; say why, if given."""
        for name in names:
            for each in minutes:
                self.account.put_back(self.seen(name).queue_arn, minutes=each)
        if why:
            counted = f"what was counted on {' and '.join(names)}"
            by = f"is put back by {sum(minutes)} min instead of waiting"
            self._say_of_the_clock(f"{counted} {by}: {why}")

    def scan(self) -> None:
        """Begin the hour's scan now: where this hour's was before the story, once more."""
        table, note = self.account.outputs["CaseTable"], items.key(items.ACCOUNT, "scan")
        self.account.client("dynamodb").delete_item(TableName=table, Key=note)
        fire(self.account, SCAN)
        self._say_of_the_clock("the hour's scan is begun now instead of within ten minutes")

    def mendq(self, line: str, code: int) -> None:
        """Run a command as an operator would; raise ScriptFailed where it ends otherwise.

        `{QUEUE}` in it is the queue's case, `{begun}` when calls were begun last.
        """

        def filled(found: re.Match[str]) -> str:
            if found[1] == "begun":
                return f"{self._begun:%Y-%m-%dT%H:%M:%SZ}"
            return str(self.watch.transitions(found[1])[-1]["case_id"])

        words = ["mendq", *shlex.split(_OF_A_QUEUE.sub(filled, line))]
        ended, text = self._run(words)
        picture.show(self.console, *picture.command(shlex.join(words), ended, text))
        if ended != code:
            raise ScriptFailed(f"{shlex.join(words)} exited with {ended}, expected {code}")
        self.look()

    def _run(self, words: list[str]) -> tuple[int, str]:
        """Run `mendq` as somebody without a terminal; it never waits for an answer."""
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
        """Write what a person writes over Mendq's value."""
        values = self.bad[name].a_person_sets
        self.say(name, f"a person sets {', '.join(map(' '.join, values.items()))}")
        url = self.seen(name).queue_url
        self.watch.sqs.set_queue_attributes(QueueUrl=url, Attributes=values)  # type: ignore[arg-type]
        self.look()

"""The local account as a child process: for tests and the demo."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any, Self

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from local_account.account_page import PREFIX, NotFired, SwitchRefused
from local_account.emulator_environment import end_group
from local_account.where import REGION, REPOSITORY, client, credentials

START_SECONDS = 180
STOP_SECONDS = 15
READY = "ready "
REFUSED = "make account: "
STACK_NAME = "Mendq"  # contracts: how everything finds the stack


class AccountFailed(Exception):
    """The account ended before it was ready; the text is the line it gave, or its last ones."""


@dataclass(eq=False)
class LocalAccount:
    """`python -m local_account` from entering to leaving the block.

    `settings` is the inner object of context `mendq`; `options` are further arguments, such as
    `("--assembly", "cdk.out")`; `on_line` hears every line as it comes.
    Entering raises AccountFailed.
    """

    settings: Mapping[str, Any] | None = None
    port: int = 0
    options: Sequence[str] = ()
    on_line: Callable[[str], object] = lambda _: None
    endpoint_url: str = ""
    log_lines: list[str] = field(default_factory=list)
    _process: subprocess.Popen[str] | None = None
    _answered: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        try:
            self._start()
            if not self._answered.wait(START_SECONDS):
                self.log_lines.append(f"it was not ready within {START_SECONDS} s")
        except BaseException:  # an interrupt among them: nobody else will end it
            self._stop()
            raise
        if not self.endpoint_url:
            self._stop()
            refused = [line for line in self.log_lines if line.startswith(REFUSED)]
            raise AccountFailed("\n".join(refused or self.log_lines[-10:]))
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def client(self, service_name: str, **identity: Any) -> Any:
        """A boto3 client of the account; its root user unless `identity` says who."""
        return client(service_name, self.endpoint_url, **identity)

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs of the deployed stack."""
        cloudformation = self.client("cloudformation")
        (stack,) = cloudformation.describe_stacks(StackName=STACK_NAME)["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}

    @property
    def not_emulated(self) -> list[str]:
        """What the account takes without doing it."""
        return list(self._page("account")["not_emulated"])

    @property
    def floors_lowered(self) -> list[str]:
        """The settings that lie below what an account at AWS may have."""
        return list(self._page("account")["floors_lowered"])

    @property
    def mails(self) -> list[dict[str, Any]]:
        """What SES took, oldest first: `to`, `raw`."""
        return list(self._page("mails")["mails"])

    def fire(self, schedule_name: str, scheduled_at: datetime) -> None:
        """Fire a schedule as if it were `scheduled_at`; raise NotFired where AWS would not."""
        asked = {"schedule": schedule_name, "time": scheduled_at.isoformat()}
        self._page("fire", asked)

    def switch_sqs_errors(self, errors: Sequence[Mapping[str, Any]]) -> None:
        """Have exactly these errors of SQS on.

        Each is such as `{"error": "KmsThrottled", "queues": ["orders-*"]}`; what there is stands in
        `local_account/sqs/errors.py`. Raises SwitchRefused, and leaves on what was on.
        """
        self._page("sqs-errors", {"errors": list(errors)})

    def put_back(self, queue_arn: str, minutes: int, of: str = "all") -> None:
        """Have a queue's past be so much earlier, or its `last_change`; raises SwitchRefused."""
        self._page("earlier", {"queue_arn": queue_arn, "minutes": minutes, "of": of})

    def have_access_analyzer_answer(self, result: str | None) -> None:
        """Have both checks of a policy answer PASS or FAIL; None: refused, as at first."""
        self._page("access-analyzer", {"result": result})

    def _page(self, name: str, content: object = None) -> dict[str, Any]:
        body, method = (None, "GET") if content is None else (json.dumps(content), "POST")
        request = AWSRequest(method, f"{self.endpoint_url}{PREFIX}{name}", data=body)
        key, secret = credentials(self.endpoint_url).values()
        SigV4Auth(Credentials(key, secret), "mendq", REGION).add_auth(request)
        answer = URLLib3Session(timeout=START_SECONDS).send(request.prepare())
        said = dict(json.loads(answer.content))
        if answer.status_code != HTTPStatus.OK:
            kind = NotFired if answer.status_code == HTTPStatus.CONFLICT else SwitchRefused
            raise kind(said["message"])
        return said

    def _start(self) -> None:
        given = () if self.settings is None else ("--settings", json.dumps(self.settings))
        arguments = ("--port", f"{self.port}", "--stop-with-parent", *self.options, *given)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "local_account", *arguments],
            cwd=REPOSITORY,
            env={**os.environ, "AUTH": "true"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # a Ctrl-C is for whoever holds this object
        )
        self._listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listener.start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101  it is a pipe
        for line in map(str.rstrip, process.stdout):
            self.log_lines.append(line)
            self.on_line(line)
            if line.startswith(READY):
                self.endpoint_url = line.split()[1]
                self._answered.set()
        self._answered.set()

    def _stop(self) -> None:
        """End the process, by force if it has to be, and hear it to its end."""
        if (process := self._process) is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            end_group(process)
        self._listener.join(STOP_SECONDS)
        for pipe in filter(None, (process.stdin, process.stdout)):
            pipe.close()

"""Run the local account as a child process, for tests and the demo."""

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

from local_account.account_page import PAGE_PREFIX, ScheduleNotFired, SwitchRefused
from local_account.emulator_environment import end_process_group
from local_account.where import REGION, REPOSITORY, make_client, read_credentials

# Long, because it must only end a start that hangs. On two busy cores, synthesizing and deploying
# the stack took more than 180 s.
START_TIMEOUT_SECONDS = 600
STOP_TIMEOUT_SECONDS = 15
READY_PREFIX = "ready "
REFUSAL_PREFIX = "make account: "
STACK_NAME = "Mendq"


class AccountFailed(Exception):
    """Raised if the account did not become ready. The text is its error, or its last lines."""


@dataclass(eq=False)
class LocalAccount:
    """Runs `python -m local_account` as a child process inside a `with` block.

    The block begins when the account is ready. Entering it raises AccountFailed if the account does
    not become ready.

    Attributes:
        settings: The object of the CDK context key `mendq`; None for the defaults.
        port: The port to listen on; 0 for any free port.
        options: Further command-line arguments, such as `("--assembly", "cdk.out")`.
        on_line: Is called with every line that the account prints.
        endpoint_url: The account's URL, after it has started.
        log_lines: All lines that the account has printed. If it was not ready in time, a line about
            that is added.
    """

    settings: Mapping[str, Any] | None = None
    port: int = 0
    options: Sequence[str] = ()
    on_line: Callable[[str], object] = lambda _: None
    endpoint_url: str = ""
    log_lines: list[str] = field(default_factory=list)
    _process: subprocess.Popen[str] | None = None
    _is_ready_or_ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        try:
            self._start()
            if not self._is_ready_or_ended.wait(START_TIMEOUT_SECONDS):
                self.log_lines.append(f"it was not ready within {START_TIMEOUT_SECONDS} s")
        except BaseException:  # also KeyboardInterrupt: the child would run on otherwise
            self._stop()
            raise
        if not self.endpoint_url:
            self._stop()
            refusal_lines = [line for line in self.log_lines if line.startswith(REFUSAL_PREFIX)]
            raise AccountFailed("\n".join(refusal_lines or self.log_lines[-10:]))
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def client(self, service_name: str, **identity: Any) -> Any:
        """Return a boto3 client of the account. It calls as the root user by default.

        `identity` has boto3's further arguments, such as another access key.
        """
        return make_client(service_name, self.endpoint_url, **identity)

    @property
    def outputs(self) -> dict[str, str]:
        """Values of the deployed stack's outputs, by the outputs' keys."""
        cloudformation = self.client("cloudformation")
        (stack,) = cloudformation.describe_stacks(StackName=STACK_NAME)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}

    @property
    def not_emulated(self) -> list[str]:
        """One line for each thing that the account accepts and does not do."""
        return list(self._call_page("account")["not_emulated"])

    @property
    def floors_lowered(self) -> list[str]:
        """One line for each setting of `timing` that is below its lower limit on AWS.

        Empty if the account deployed an assembly, whose settings it does not know.
        """
        return list(self._call_page("account")["floors_lowered"])

    @property
    def mails(self) -> list[dict[str, Any]]:
        """Mails that SES accepted, oldest first: {"to": recipients, "raw": the whole mail}."""
        return list(self._call_page("mails")["mails"])

    def fire(self, schedule_name: str, scheduled_at: datetime) -> None:
        """Fire a schedule now, with the scheduled time `scheduled_at`, which needs a time zone.

        Raises ScheduleNotFired if the schedule does not exist, if AWS would not invoke its target,
        or if such a target is not emulated.
        """
        self._call_page("fire", {"schedule": schedule_name, "time": scheduled_at.isoformat()})

    def switch_sqs_errors(self, errors: Sequence[Mapping[str, Any]]) -> None:
        """Switch on these simulated errors of SQS, and switch off all others.

        An error is an object such as `{"error": "KmsThrottled", "queues": ["orders-*"]}`;
        `SIMULATED_ERRORS` in `local_account/sqs/errors.py` has the names. Raises SwitchRefused, and
        changes nothing, if one of the objects is not valid.
        """
        self._call_page("sqs-errors", {"errors": list(errors)})

    def put_back(self, queue_arn: str, minutes: int, of: str = "all") -> None:
        """Move the times of a queue's metrics, messages and changes back by `minutes`.

        With `of="last_change"`, only the queue's last change and the events since then are moved.
        Raises SwitchRefused if the queue does not exist or cannot be moved. `Emulator.put_back` has
        the details.
        """
        self._call_page("earlier", {"queue_arn": queue_arn, "minutes": minutes, "of": of})

    def choose_mapping_behavior(self, **behavior: str) -> None:
        """Choose what event source mappings do where AWS does not document it.

        Args:
            behavior: Values by field; `local_account/lambdas/undocumented.py` has them. A field
                that is left out gets its default.
        """
        self._call_page("mappings", behavior)

    def have_access_analyzer_answer(self, result: str | None) -> None:
        """Set the result of Access Analyzer's checks: PASS, FAIL, or None to make them fail."""
        self._call_page("access-analyzer", {"result": result})

    def _call_page(self, page_name: str, request_body: object = None) -> dict[str, Any]:
        """Call one of the account's own pages, and return its content.

        Raises SwitchRefused or ScheduleNotFired if the account refuses the request.
        """
        http_method = "GET" if request_body is None else "POST"
        encoded_body = None if request_body is None else json.dumps(request_body)
        request = AWSRequest(
            http_method, f"{self.endpoint_url}{PAGE_PREFIX}{page_name}", data=encoded_body
        )
        access_key, secret_key = read_credentials(self.endpoint_url).values()
        SigV4Auth(Credentials(access_key, secret_key), "mendq", REGION).add_auth(request)
        response = URLLib3Session(timeout=START_TIMEOUT_SECONDS).send(request.prepare())
        response_body = dict(json.loads(response.content))
        if response.status_code == HTTPStatus.CONFLICT:
            raise ScheduleNotFired(response_body["message"])
        if response.status_code != HTTPStatus.OK:
            raise SwitchRefused(response_body["message"])
        return response_body

    def _start(self) -> None:
        arguments = ["--port", f"{self.port}", "--stop-with-parent", *self.options]
        if self.settings is not None:
            arguments += ["--settings", json.dumps(self.settings)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "local_account", *arguments],
            cwd=REPOSITORY,
            env={**os.environ, "AUTH": "true"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C reaches only the caller, which then stops the account
        )
        self._listener_thread = threading.Thread(
            target=self._read_output, args=(self._process,), daemon=True
        )
        self._listener_thread.start()

    def _read_output(self, process: subprocess.Popen[str]) -> None:
        """Store every line that the account prints, and pass it to `on_line`.

        Also store the URL in the `ready` line. Set `_is_ready_or_ended` at this line, or at the end
        of the output.
        """
        assert process.stdout is not None  # noqa: S101  it is a pipe
        for line in map(str.rstrip, process.stdout):
            self.log_lines.append(line)
            self.on_line(line)
            if line.startswith(READY_PREFIX):
                self.endpoint_url = line.split()[1]
                self._is_ready_or_ended.set()
        self._is_ready_or_ended.set()

    def _stop(self) -> None:
        """Stop the process, kill it if it does not end, and read its output to the end."""
        process = self._process
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            end_process_group(process)
        self._listener_thread.join(STOP_TIMEOUT_SECONDS)
        for process_pipe in filter(None, (process.stdin, process.stdout)):
            process_pipe.close()

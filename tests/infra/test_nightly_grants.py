"""What a nightly run and a week ask of S3, beside what the job's role may: neither is more."""

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

# Where a root of the job's lies, as start_nightly says: its bucket, and the prefix in it.
ROOTS = {
    "trail": ("Trail", ""),
    "cases": ("Cases", "cases/"),
    "findings": ("Cases", "findings/"),
    "out": ("Reports", ""),
}
Asked = set[tuple[str, str]]

# PySpark 3.5 leaves the sockets of `collect` to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


class Recording(Storage):
    """A storage that notes which calls of S3 it would make."""

    def __init__(self, storage: Storage, root: str, asked: Asked) -> None:
        bucket, self._prefix = ROOTS[Path(root).name]
        self._bucket = template_of("default").arn_of("AWS::S3::Bucket", bucket)
        self._storage, self._asked = storage, asked

    def list_entries(self, folder: str) -> list[StorageEntry]:
        self._asked.add(("s3:ListBucket", self._bucket))
        return self._storage.list_entries(folder)

    def read(self, path: str, most: int = -1) -> bytes | None:
        """Without the right to list, S3 says 403 of what is not there."""
        self._note("s3:GetObject", path)
        content = self._storage.read(path, most)
        if content is None:
            self._asked.add(("s3:ListBucket", self._bucket))
        return content

    def write(self, path: str, content: bytes) -> None:
        """Hadoop looks at what it replaces."""
        self._note("s3:GetObject", path)
        self._note("s3:PutObject", path)
        self._storage.write(path, content)

    def make_spark_root(self, folders: Sequence[str]) -> str:
        for each in folders:
            self._note("s3:GetObject", f"{each}/a.json.gz")
        return self._storage.make_spark_root(folders)

    @contextmanager
    def staging(self) -> Iterator[Storage]:
        """Spark writes there, the job reads what it wrote, and Hadoop deletes it."""
        for action in ("Put", "Get", "Delete"):
            self._note(f"s3:{action}Object", f"{STAGING_PREFIX}0/incidents/a.parquet")
        with self._storage.staging() as stage:
            yield stage

    def _note(self, action: str, path: str) -> None:
        self._asked.add((action, f"{self._bucket}/{self._prefix}{path}"))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    account = NightlyFolders(tmp_path_factory.mktemp("account"))
    calls = make_burst("11-10 09:00", recipientAccountId=ACCOUNT, awsRegion=REGION)
    published = account.trail / account.publish("11-10", calls)
    there = Path(str(published).replace("/123456789012/", f"/{ACCOUNT}/"))
    there.parent.mkdir(parents=True)
    published.rename(there)
    first, last = "11-10 09:00", "11-10 09:02"
    account.record_transitions(
        make_transition(1, "refused", "11-10 09:02", first_at=first, last_at=last)
    )
    found = account.folder / "findings" / "dt=2026-11-10" / "09.json"
    found.parent.mkdir(parents=True)
    found.write_text("{}")
    noted: Asked = set()

    def recording(root: str, spark: SparkSession) -> Recording:
        return Recording(open_root(root, spark), root, noted)

    roots = [f"--{name}={account.folder / name}" for name in ("trail", "cases", "out")]
    with patch.object(job, "open_root", recording):
        place = ["--account", ACCOUNT, "--region", REGION]
        nightly = ["nightly", "--date", "2026-11-10", *place]
        for command in (nightly, ["weekly", "--week", "2026-W46"]):
            assert job.run_command(parse_arguments([*command, *roots]), start_session()) == 0
    return noted


def _statements() -> list[dict[str, Any]]:
    return template_of("default").statements("NightlyRole")


def _asked_by_emr() -> Asked:
    """The code, which EMR fetches in the job's name, and the logs, which it writes so."""
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


def test_nightly_role_allows_every_s3_call_of_a_nightly_and_weekly_run(asked: Asked) -> None:
    actions = {action for action, _ in asked}
    assert actions == {"s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"}
    for action, resource in asked | _asked_by_emr():
        assert decision(_statements(), action, resource) == "Allow", (action, resource)


def test_nightly_role_allows_no_s3_action_that_no_run_uses(asked: Asked) -> None:
    everything = asked | _asked_by_emr()
    for statement in _statements():
        for action, pattern in product(
            as_list(statement["Action"]), as_list(statement["Resource"])
        ):
            assert any(
                action == each and fnmatchcase(resource, pattern) for each, resource in everything
            ), f"nothing asks for {action} on {pattern}"

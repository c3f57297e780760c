"""Made-up trail files, case transitions and tables for the tests of the nightly job."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from analytics.incidents import COLUMN_TYPES_BY_TABLE
from mendq.cases.finding import ScanResult, add_managed_queues, findings_key

ACCOUNT = "123456789012"
REGION = "us-east-1"
QUEUE_ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"
WORKER = f"arn:aws:iam::{ACCOUNT}:role/orders-worker"
_numbers = count(1)
_SAMPLES = yaml.safe_load(Path(__file__).with_name("rows.yaml").read_text())
_KINDS: dict[str, Any] = {
    "string": pa.string(),
    "array<string>": pa.list_(pa.string()),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}
_FAULTS = pa.list_(pa.struct([("reason", pa.string()), ("records", pa.int64())]))


def _make_schema(columns: Mapping[str, str]) -> pa.Schema:
    return pa.schema([(name, _KINDS.get(kind, _FAULTS)) for name, kind in columns.items()])


SCHEMAS = {table: _make_schema(columns) for table, columns in COLUMN_TYPES_BY_TABLE.items()}


def copy_sample(name: str) -> dict[str, Any]:
    """Return a copy of a sample from rows.yaml."""
    return copy.deepcopy(_SAMPLES[name])


def make_time(text: str) -> datetime:
    """`11-10 23:59:59` of 2026, in UTC."""
    return datetime.fromisoformat(f"2026-{text}").replace(tzinfo=UTC)


def make_record(when: str | datetime, *, role_arn: str = WORKER, **fields: Any) -> dict[str, Any]:
    """Return a failed ChangeMessageVisibility call: `visibility_timeout_too_short`."""
    moment = make_time(when) if isinstance(when, str) else when
    identity = {
        "type": "AssumedRole",
        "arn": f"{role_arn.replace(':iam:', ':sts:').replace(':role/', ':assumed-role/')}/me",
        "accountId": ACCOUNT,
        "sessionContext": {"sessionIssuer": {"type": "Role", "arn": role_arn}},
    }
    own = {"userIdentity": identity, "eventTime": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {**copy_sample("record"), **own, "eventID": f"event-{next(_numbers)}", **fields}


def make_burst(
    start: str, calls: int = 3, seconds: int = 60, **fields: Any
) -> list[dict[str, Any]]:
    """Failed calls `seconds` apart."""
    return [
        make_record(make_time(start) + timedelta(seconds=number * seconds), **fields)
        for number in range(calls)
    ]


def pack_records(records: list[Any]) -> bytes:
    """A file as CloudTrail writes it: no spaces, and each record's version first."""
    text = json.dumps({"Records": records}, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def make_transition(
    n: int, state: str, when: str, *, first_at: str, last_at: str, **fields: Any
) -> dict[str, Any]:
    """A transition as the case bucket holds it."""
    evidence = {"first_at": _text(first_at), "last_at": _text(last_at)}
    own = {"n": n, "at": _text(when), "to": state, "evidence": evidence}
    return {**copy_sample("transition"), **own, **fields}


def _text(when: str) -> str:
    return make_time(when).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class NightlyFolders:
    """A trail, a case bucket and the nightly job's tables, each a folder."""

    folder: Path
    region: str = REGION
    _file_numbers: Any = field(default_factory=lambda: count(1))

    @property
    def trail(self) -> Path:
        return self.folder / "trail"

    @property
    def cases(self) -> Path:
        return self.folder / "cases"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def publish(
        self,
        day: str,
        records: list[Any] | bytes,
        name: str | None = None,
        kind: str = "CloudTrail",
    ) -> str:
        """Write a file into the publish folder of `day` (`11-10`); its path below the trail."""
        published = make_time(f"{day} 00:00")
        unique = f"{next(self._file_numbers):016}"
        stem = f"{ACCOUNT}_{kind}_{self.region}_{published:%Y%m%dT%H%MZ}_{unique}.json.gz"
        folder = f"AWSLogs/{ACCOUNT}/{kind}/{self.region}/{published:%Y/%m/%d}"
        path = self.trail / folder / (name or stem)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(records if isinstance(records, bytes) else pack_records(records))
        return f"{folder}/{path.name}"

    def record_transitions(self, *transitions: dict[str, Any]) -> None:
        for document in transitions:
            path = (
                self.cases
                / f"dt={document['at'][:10]}"
                / f"{document['case_id']}-{document['n']}.json"
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(document))

    def put(self, table: str, day: str, rows: Any) -> None:
        """Write a day (`11-10`) of a table: rows, an Arrow table or any bytes."""
        path = self.out / table / f"dt=2026-{day}" / f"{table}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(rows, bytes):
            path.write_bytes(rows)
        else:
            is_table = isinstance(rows, pa.Table)
            made = rows if is_table else pa.Table.from_pylist(list(rows), SCHEMAS[table])
            pq.write_table(made, path)

    def read_rows(self, table: str, day: str) -> list[dict[str, Any]]:
        """Return a day (`11-10`) of a table. Raises if the nightly job did not write it."""
        path = self.out / table / f"dt=2026-{day}" / f"{table}.parquet"
        found: list[dict[str, Any]] = pq.read_table(path, partitioning=None).to_pylist()
        return found

    def read_nightly_document(self, day: str) -> dict[str, Any]:
        """Return nightly.json of a day (`11-10`) without the time of the run."""
        path = self.out / "nightly" / f"dt=2026-{day}" / "nightly.json"
        document: dict[str, Any] = json.loads(path.read_text())
        del document["made_at"]
        return document

    def read_files(self) -> dict[str, Any]:
        """Return every file below the tables' root. A nightly.json lacks the time of its run."""
        return {
            path.relative_to(self.out).as_posix(): self._content(path)
            for path in sorted(self.out.rglob("*"))
            if path.is_file()
        }

    def _content(self, path: Path) -> Any:
        if path.name == "nightly.json":
            return self.read_nightly_document(path.parent.name.removeprefix("dt=2026-"))
        return path.read_bytes()


def make_scan_document(moment: datetime, *queue_arns: str, whole: bool = True) -> dict[str, Any]:
    """Return the findings document of an hourly scan that lists `queue_arns` as managed."""
    return add_managed_queues(ScanResult().document(moment), queue_arns, is_listing_complete=whole)


def write_scan(folder: Path, moment: datetime, *queue_arns: str) -> None:
    path = folder / findings_key(moment)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(make_scan_document(moment, *queue_arns)))

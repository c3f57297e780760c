"""A week of 10,000 accounts that have told for a year: what the hub's job lists, reads and takes.

The week's tables are files; the other 51 weeks of each account are names alone, because the job
lists names and never looks into them.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.days import days_of, weeks_before
from analytics.session import session
from analytics.storage import Entry, FolderStorage
from analytics.weekly import REPORTED, members, organization
from mendq.model.settings import WORKER
from mendq.nightly.verdict import shared_folder
from tests.analytics.authored import REGION, SCHEMAS
from tests.analytics.week_authored import WEEK, incident
from tests.prove.proof import Proof, Proving

ACCOUNTS, DAYS_A_YEAR, INCIDENTS, SILENT, LATE, LYING = 10_000, 365, 5, 10, 10, 10
# Half of what the deployed driver has beside its heap, for Python; the JVM has its own there too.
MOST_PYTHON_MB = round(WORKER.heap_gb * 1024 * WORKER.overhead_factor / 2)
MOST_SECONDS = 1_800
_YEAR = [f"week={each}" for each in weeks_before(WEEK, DAYS_A_YEAR // 7 - 1)]


class AYear(FolderStorage):
    """The bucket as a folder, which says so of 51 further weeks, and counts what it is asked."""

    asked: Counter[str]

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.asked = Counter()

    def entries(self, folder: str) -> list[Entry]:
        self.asked["listings"] += 1
        found = super().entries(folder)
        if folder.endswith("/incidents"):
            found += [Entry(name, None, True) for name in _YEAR]
        return found


def _of(number: int) -> str:
    return f"{100_000_000_000 + number}"


def _rows(number: int) -> Iterator[dict[str, object]]:
    account = _of(number)
    for n in range(INCIDENTS):
        says = _of(number + 1) if number < LYING and not n else account
        queue = f"arn:aws:sqs:{REGION}:{account}:orders-{n}"
        outcome = "escalated" if number % 100 == 50 and not n else "healed"
        yield incident(n, account=says, queue_arn=queue, outcome=outcome)


def _publish(root: Path) -> None:
    empty = root / "empty.parquet"
    pq.write_table(SCHEMAS["incidents"].empty_table(), empty)
    monday = days_of(WEEK).first
    for number in range(ACCOUNTS):
        of_week = root / "central" / shared_folder(_of(number), REGION, "incidents", WEEK)
        is_silent = ACCOUNTS - number <= SILENT
        (of_week.parent if is_silent else of_week).mkdir(parents=True)
        is_late = ACCOUNTS - number <= SILENT + LATE
        for n in () if is_silent else range(5 if is_late else 7):
            _table(of_week, number, monday + timedelta(days=n), None if n == 0 else empty)


def _table(folder: Path, number: int, day: date, linked: Path | None) -> None:
    path = folder / f"{day}.parquet"
    if linked:
        os.link(linked, path)
    else:
        pq.write_table(pa.Table.from_pylist([*_rows(number)], SCHEMAS["incidents"]), path)


def prove(proving: Proving) -> None:
    with tempfile.TemporaryDirectory(prefix="mendq-organization-") as folder:
        with proving.timed("seconds_to_author"):
            # In a process of its own: what it takes is none of the job's.
            authoring = multiprocessing.Process(target=_publish, args=(Path(folder),))
            authoring.start()
            authoring.join()
        spark = session()
        central = AYear(f"{folder}/central")
        started, before = time.perf_counter(), _peak_mb()
        found = members(central, WEEK)
        listed = dict(central.asked)
        proving.figure("seconds_to_list", round(time.perf_counter() - started, 1))
        document = organization(days_of(WEEK), central, spark, found, ())
        seconds = time.perf_counter() - started
    jvm: Any = spark.sparkContext._jvm
    heap = jvm.java.lang.Runtime.getRuntime()
    proving.note(
        {
            "accounts": ACCOUNTS,
            "listings": listed["listings"],
            "tables_read": sum(len(each.days) for each in found),
            "seconds": round(seconds, 1),
            "python_peak_mb": _peak_mb(),
            "python_peak_mb_before": before,
            "jvm_heap_mb": round(heap.totalMemory() / 2**20),
            "jvm_heap_most_mb": (most_heap := round(heap.maxMemory() / 2**20)),
        }
    )
    totals = document["totals"]
    states = Counter(each["state"] for each in document["members"])
    proving.holding(
        {
            "Each account takes three listings, whatever it has stored.": listed["listings"]
            <= 3 * ACCOUNTS + 1,
            "Every row is counted, and no lie with it.": totals["incidents"]
            == INCIDENTS * (ACCOUNTS - SILENT) - LYING
            and totals["rows_left_out"] == LYING,
            "Who is silent or late is found among 10,000.": (totals["silent"], totals["late"])
            == (SILENT, LATE)
            and states[REPORTED] < len(document["members"]),
            "Its Python and its JVM fit the deployed driver.": _peak_mb() <= MOST_PYTHON_MB
            and most_heap <= WORKER.heap_gb * 1024,
            "It ends within half an hour here.": seconds <= MOST_SECONDS,
        }
    )


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


ORGANIZATIONS = (
    Proof("organization", "One job sums up a week of 10,000 accounts of a year.", prove),
)

"""Publish the time that messages really take, as CloudWatch metrics in the embedded metric format.

It needs the standard library alone. CloudWatch makes metrics of such lines where they arrive in
CloudWatch Logs; at most 100 values of a metric in each.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from random import randrange
from threading import Lock
from time import time
from typing import Any

NAMESPACE, METRIC, DIMENSION = "Mendq/Consumer", "ProcessingSeconds", "QueueName"
MOST_VALUES = 100
_SERIES = {
    "Namespace": NAMESPACE,
    "Dimensions": [[DIMENSION]],
    "Metrics": [{"Name": METRIC, "Unit": "Seconds"}],
}


class ProcessingTimes:
    """How long messages of one queue took: at most one line each `every_seconds`.

    A line says the queue's name and seconds, and nothing of a message; of more than a hundred
    messages it has a hundred, each as likely as any other. It goes to standard output, or to
    `sink`. Nothing that writing raises reaches who works on a message: that line is lost.

    Safe for threads. Keep one for as long as the process lives, and `publish` what is left when it
    ends: nothing is written by itself while no message is done.
    """

    def __init__(
        self,
        queue_url: str,
        *,
        sink: Callable[[str], Any] | None = None,
        every_seconds: float = 60,
        clock: Callable[[], float] = time,
    ) -> None:
        self._queue_name = queue_url.rstrip("/").rpartition("/")[2]
        self._sink, self._every_seconds, self._clock = sink, every_seconds, clock
        self._begun_at, self._done = clock(), 0
        self._seconds: list[float] = []
        self._lock = Lock()

    def add(self, seconds: float) -> None:
        """Count a message that is done, received so many seconds ago."""
        with self._lock:
            self._done += 1
            at = randrange(self._done)  # noqa: S311 - nothing secret
            if len(self._seconds) < MOST_VALUES:
                self._seconds.append(round(seconds, 3))
            elif at < MOST_VALUES:
                self._seconds[at] = round(seconds, 3)
        if self._clock() - self._begun_at >= self._every_seconds:
            self.publish()

    def publish(self) -> None:
        """Write a line of what was counted since the last; none where nothing was."""
        now = self._clock()
        with self._lock:
            values, self._seconds, self._done, self._begun_at = self._seconds, [], 0, now
        about = {"Timestamp": int(now * 1000), "CloudWatchMetrics": [_SERIES]}
        line = json.dumps({"_aws": about, DIMENSION: self._queue_name, METRIC: values})
        with suppress(Exception):
            if values:
                (self._sink or _to_standard_output)(line)


def _to_standard_output(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - where Lambda and containers have their logs read

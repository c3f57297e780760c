"""CloudWatch embedded metric format: the metrics that a log line carries.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MOST_DIMENSIONS = 30


@dataclass(frozen=True)
class Datum:
    """One value, or several of one moment, of one metric."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    at_seconds: float
    unit: str
    values: tuple[float, ...]


def metrics_in(line: str) -> tuple[Datum, ...]:
    """The metrics of a log line; none where it is not in the format, as CloudWatch ignores it."""
    if '"_aws"' not in line:
        return ()
    try:
        root = json.loads(line)
        return tuple(_data(root))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


def _data(root: Mapping[str, Any]) -> Iterator[Datum]:
    metadata = root["_aws"]
    for directive in metadata["CloudWatchMetrics"]:
        for names in directive.get("Dimensions") or [[]]:
            if len(names) > MOST_DIMENSIONS:
                continue
            dimensions = {name: str(root[name]) for name in names}
            for metric in directive["Metrics"]:
                value = root[metric["Name"]]
                yield Datum(
                    namespace=directive["Namespace"],
                    name=metric["Name"],
                    dimensions=dimensions,
                    at_seconds=metadata["Timestamp"] / 1000,
                    unit=metric.get("Unit", "None"),
                    values=tuple(map(float, value if isinstance(value, list) else [value])),
                )

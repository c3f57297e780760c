"""GetMetricData in pages of data points, and no more queries than one call may hold.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

MOST_QUERIES = 500
MOST_DATA_POINTS = 100_800
Result = Mapping[str, Any]


class BadRequest(Exception):
    """A request that CloudWatch refuses; the text says why."""


@dataclass(frozen=True)
class Page:
    """The part of an answer that one call is given: how many points come before it and in it."""

    begin: int = 0
    most: int = MOST_DATA_POINTS

    @classmethod
    def asked(cls, request: Mapping[str, Any]) -> Self:
        """Raise BadRequest."""
        queries = len(request.get("MetricDataQueries") or ())
        if queries > MOST_QUERIES:
            raise BadRequest(
                f"The collection MetricDataQueries must not have a size greater than {MOST_QUERIES}"
            )
        token = str(request.get("NextToken") or "0")
        if not token.isdecimal():
            raise BadRequest("NextToken is invalid")
        most = int(request.get("MaxDatapoints") or MOST_DATA_POINTS)
        return cls(int(token), min(most, MOST_DATA_POINTS))

    def of(self, results: Sequence[Result]) -> dict[str, Any]:
        """As the answer holds it; a series that goes on in the next page is PartialData."""
        shown, before = [], 0
        for each in results:
            points = len(each["Values"])
            first = max(0, self.begin - before)
            last = min(points, self.begin + self.most - before)
            before += points
            if first < last or (not points and not self.begin):
                goes_on = points and last < points
                status = "PartialData" if goes_on else each.get("StatusCode", "Complete")
                shown.append(
                    {
                        **each,
                        "Timestamps": list(each["Timestamps"])[first:last],
                        "Values": list(each["Values"])[first:last],
                        "StatusCode": status,
                    }
                )
        answer: dict[str, Any] = {"MetricDataResults": shown}
        if self.begin + self.most < before:
            answer["NextToken"] = str(self.begin + self.most)
        return answer

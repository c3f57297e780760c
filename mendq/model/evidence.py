"""Evidence for a case: failed calls and scan findings about a queue.

`Evidence.is_sufficient` says if they are enough to open a case.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from mendq.model.failed_call import (
    FailedCall,
    RefusedBy,
    is_expired_handle_message,
    make_canonical_error_code,
)
from mendq.model.time_text import format_time

MAXIMUM_PRINCIPALS = 10
MAXIMUM_STORED_SIGHTINGS = 10
MAXIMUM_ERROR_MESSAGE_LENGTH = 300
# How many of its first requests, and of its last requests, a case keeps.
REQUESTS_KEPT_FROM_START_AND_FROM_END = 5
# The fields of a request that a case keeps, besides its time and operation.
_REQUEST_FIELDS = (
    "request_id",
    "error_code",
    "error_message",
    "principal_arn",
    "source_ip",
    "user_agent",
)
EVIDENCE_MAXIMUM_AGE = timedelta(minutes=60)
# This many distinct events within this time are enough evidence.
EVENTS_SUFFICIENT_FOR_CASE = 3
SUFFICIENT_EVENTS_PERIOD_SECONDS = 600
# The interval between late deletes is measured over this many deletes of one caller.
DELETES_TO_MEASURE_INTERVAL = 3
# All late calls in this time count once, for consumers that extend visibility timeouts. After a
# pause of such a consumer, all its extensions are late at once.
EXTENSION_BURST_PERIOD = timedelta(seconds=60)
# The key of the interval between late deletes in a case's evidence, in seconds.
DELETE_INTERVAL_KEY = "delete_interval_seconds"
# The key of the timeout of a function whose mapping was refused in a case's evidence, in seconds.
REFUSED_FUNCTION_KEY = "refused_function_seconds"


@dataclass(frozen=True, order=True)
class Sighting:
    """One piece of evidence in the case store: a failed call, or a finding of a scan.

    Sightings are ordered by time.

    Attributes:
        event_time: When the call was made or the scan ran.
        event_id: CloudTrail's id of the event.
        request_id: AWS's id of the request, for AWS Support.
        principal_arn: The caller; empty if CloudTrail does not name it.
        event_name: The call, such as `SendMessage`.
        requested_visibility_seconds: The visibility timeout that the call itself requested; None if
            it requested none.
        refused_by: The policy that refused the call; None if no policy refused it.
        is_measured: True for a finding of a scan. One finding is enough evidence, because a scan
            measures several hours.
        error_code: The call's error code, as AWS spelled it.
        error_message: The beginning of the call's error message. It may contain the caller's text.
        source_ip: The address from which the call came.
        user_agent: The caller's program. The caller chose this text.
        refused_function_seconds: The timeout of the Lambda function for which an event source
            mapping was refused; None for other calls. One such call is enough evidence, because
            Lambda refuses a mapping only if the queue's timeout is too short.
    """

    event_time: datetime
    event_id: str
    request_id: str
    principal_arn: str
    event_name: str = field(default="", compare=False)
    requested_visibility_seconds: int | None = field(default=None, compare=False)
    refused_by: RefusedBy | None = field(default=None, compare=False)
    is_measured: bool = field(default=False, compare=False)
    error_code: str = field(default="", compare=False)
    error_message: str = field(default="", compare=False)
    source_ip: str = field(default="", compare=False)
    user_agent: str = field(default="", compare=False)
    refused_function_seconds: int | None = field(default=None, compare=False)

    @classmethod
    def from_scan(cls, scanned_at: datetime) -> Self:
        """Return the sighting of a scan's finding, with its time rounded down to the second.

        Findings of the same second have the same event id, so they count as one sighting.
        """
        scan_second = scanned_at.replace(microsecond=0)
        event_id = f"scan:{format_time(scan_second)}"
        return cls(scan_second, event_id, request_id="", principal_arn="", is_measured=True)

    @classmethod
    def of(cls, call: FailedCall) -> Self:
        """Return the sighting of a failed call, with its time rounded down to the millisecond."""
        rounded_microseconds = call.event_time.microsecond // 1_000 * 1_000
        return cls(
            call.event_time.replace(microsecond=rounded_microseconds),
            call.event_id,
            call.request_id,
            call.principal_arn,
            call.event_name,
            call.requested_visibility_seconds,
            call.refused_by,
            error_code=call.raw_error_code,
            error_message=call.error_message[:MAXIMUM_ERROR_MESSAGE_LENGTH],
            source_ip=call.source_ip,
            user_agent=call.user_agent,
            refused_function_seconds=call.refused_function_seconds,
        )

    def to_text(self) -> str:
        """Return the sighting as text for the case store: the fields as a JSON array.

        The same call always gives the same text, so that a set of texts has each event once.
        """
        field_values = [
            int(self.event_time.timestamp() * 1000),
            self.event_id,
            self.request_id,
            self.principal_arn,
            self.event_name,
            self.requested_visibility_seconds,
            self.refused_by,
            self.is_measured,
            self.error_code,
            self.error_message,
            self.source_ip,
            self.user_agent,
            self.refused_function_seconds,
        ]
        return json.dumps(field_values)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the sighting in a text. This is the inverse of `to_text`.

        Texts by older versions of Mendq lack some of the last fields, which get their defaults.
        Raise ValueError, TypeError or OverflowError if the text is not such an array, or if its
        time or policy is not valid.
        """
        (
            epoch_milliseconds,
            event_id,
            request_id,
            principal_arn,
            event_name,
            requested_visibility_seconds,
            refusing_policy_text,
            *optional_field_values,
        ) = json.loads(text)
        return cls(
            datetime.fromtimestamp(epoch_milliseconds / 1000, UTC),
            event_id,
            request_id,
            principal_arn,
            event_name,
            requested_visibility_seconds,
            None if refusing_policy_text is None else RefusedBy(refusing_policy_text),
            *optional_field_values,
        )

    @property
    def is_proof(self) -> bool:
        """True if this sighting alone is enough evidence: a finding, or a refused mapping."""
        return self.is_measured or self.refused_function_seconds is not None

    @property
    def is_late_extension(self) -> bool:
        """True if the call extended a visibility timeout that was over."""
        is_not_in_flight = make_canonical_error_code(self.error_code) == "MessageNotInflight"
        is_late = is_not_in_flight or is_expired_handle_message(self.error_message)
        return self.event_name == "ChangeMessageVisibility" and is_late

    def request(self) -> dict[str, str]:
        """Return the call's details for AWS Support and the caller's address, as texts by name.

        Empty values are left out.
        """
        request = {"at": format_time(self.event_time), "operation": self.event_name}
        for name in _REQUEST_FIELDS:
            request[name] = getattr(self, name)
        return {name: text for name, text in request.items() if text}


@dataclass(frozen=True)
class Evidence:
    """The evidence for a case: distinct sightings, ordered by time."""

    sightings: tuple[Sighting, ...] = ()

    @classmethod
    def of(cls, sightings: Iterable[Sighting]) -> Self:
        """Return the evidence with these sightings.

        Of several sightings with the same event id, keep only the earliest.
        """
        sighting_by_event_id: dict[str, Sighting] = {}
        for sighting in sorted(sightings):
            sighting_by_event_id.setdefault(sighting.event_id, sighting)
        return cls(tuple(sighting_by_event_id.values()))

    @property
    def counted_sightings(self) -> tuple[Sighting, ...]:
        """The sightings that count as evidence, ordered by time.

        All calls of principals that extended a visibility timeout too late count only once in
        EXTENSION_BURST_PERIOD. One pause of a healthy consumer makes all its extensions and deletes
        late at once, and one slow minute of SQS does the same to all consumers.
        """
        extending_principals = {
            sighting.principal_arn for sighting in self.sightings if sighting.is_late_extension
        }
        counted: list[Sighting] = []
        burst_began_at: datetime | None = None
        for sighting in self.sightings:
            if sighting.is_measured or sighting.principal_arn not in extending_principals:
                counted.append(sighting)
                continue
            if (
                burst_began_at is None
                or sighting.event_time - burst_began_at >= EXTENSION_BURST_PERIOD
            ):
                burst_began_at = sighting.event_time
                counted.append(sighting)
        return tuple(counted)

    @property
    def is_sufficient(self) -> bool:
        """True if the evidence is enough to open a case.

        It is enough if a scan found the symptom, if Lambda refused a mapping, or if
        EVENTS_SUFFICIENT_FOR_CASE of `counted_sightings` lie within
        SUFFICIENT_EVENTS_PERIOD_SECONDS.
        """
        if any(sighting.is_proof for sighting in self.sightings):
            return True
        event_times = [sighting.event_time for sighting in self.counted_sightings]
        longest_time_span = timedelta(seconds=SUFFICIENT_EVENTS_PERIOD_SECONDS)
        offset_to_last_event = EVENTS_SUFFICIENT_FOR_CASE - 1
        return any(
            last_event_time - first_event_time <= longest_time_span
            for first_event_time, last_event_time in zip(
                event_times, event_times[offset_to_last_event:], strict=False
            )
        )

    def since(self, moment: datetime | None) -> Evidence:
        """Return the evidence from `moment` on, or all of it if `moment` is None."""
        if moment is None:
            return self
        return Evidence(
            tuple(sighting for sighting in self.sightings if sighting.event_time >= moment)
        )

    def without_old_sightings(self, now: datetime) -> Evidence:
        """Return the evidence without sightings older than EVIDENCE_MAXIMUM_AGE.

        The case store may still contain older sightings.
        """
        return self.since(now - EVIDENCE_MAXIMUM_AGE)

    def list_sightings_to_keep(self) -> tuple[Sighting, ...]:
        """Return the newest sightings that count, at most MAXIMUM_STORED_SIGHTINGS.

        The case store keeps these, so that later sightings can complete the evidence. They include
        the newest deletes of the caller that made the most. Among the newest calls of many
        consumers, no caller may have enough deletes to measure their interval.
        """
        counted = self.counted_sightings
        if len(counted) <= MAXIMUM_STORED_SIGHTINGS:
            return counted
        deletes = _select_deletes_of_busiest_caller(counted)[-DELETES_TO_MEASURE_INTERVAL:]
        others = [sighting for sighting in counted if sighting not in deletes]
        newest_others = others[len(deletes) - MAXIMUM_STORED_SIGHTINGS :]
        return tuple(sorted([*deletes, *newest_others]))

    def smallest_requested_visibility_seconds(self) -> int | None:
        """Return the smallest visibility timeout in seconds that the failed calls requested.

        Return None if there are no failed calls, or if a call requested no visibility timeout or 0
        seconds. With 0 seconds, a consumer gives its message back.
        """
        requested_seconds = [call.requested_visibility_seconds or 0 for call in self.calls]
        return min(requested_seconds, default=0) or None

    def longest_refused_function_seconds(self) -> int | None:
        """Return the longest timeout of a function whose mapping was refused; None if none was."""
        timeouts_seconds = [call.refused_function_seconds or 0 for call in self.calls]
        return max(timeouts_seconds, default=0) or None

    def shortest_delete_interval_seconds(self) -> float | None:
        """Return the shortest mean time between successive failed deletes of one caller.

        Each mean is taken over DELETES_TO_MEASURE_INTERVAL successive deletes. Return None if no
        caller made that many. A caller is one program of a principal at one address, because
        several processes may share a role.
        """
        interval_count = DELETES_TO_MEASURE_INTERVAL - 1
        mean_intervals_seconds: list[float] = []
        for deletes in _group_deletes_by_caller(self.calls):
            for first_delete, last_delete in zip(deletes, deletes[interval_count:], strict=False):
                time_span = last_delete.event_time - first_delete.event_time
                mean_intervals_seconds.append(time_span.total_seconds() / interval_count)
        return min(mean_intervals_seconds, default=None)

    def principals(self) -> tuple[str, ...]:
        """Return the callers in alphabetical order, at most MAXIMUM_PRINCIPALS."""
        callers = {sighting.principal_arn for sighting in self.sightings if sighting.principal_arn}
        return tuple(sorted(callers)[:MAXIMUM_PRINCIPALS])

    @property
    def calls(self) -> tuple[Sighting, ...]:
        """The failed calls, without findings of scans."""
        return tuple(sighting for sighting in self.sightings if not sighting.is_measured)

    def event_names(self) -> tuple[str, ...]:
        """Return the names of the calls in alphabetical order."""
        names = {sighting.event_name for sighting in self.sightings if sighting.event_name}
        return tuple(sorted(names))

    def refusing_policies(self) -> frozenset[RefusedBy]:
        """Return the policies that refused the calls."""
        policies = [sighting.refused_by for sighting in self.sightings]
        return frozenset(policy for policy in policies if policy is not None)

    def document(self) -> dict[str, object]:
        """Return the evidence as a JSON object for a case. There must be at least one sighting.

        `failed_calls` and `requests` do not contain findings of scans. `event_names` and
        `refused_by` are left out if no policy refused a call, and `delete_interval_seconds` if no
        caller made enough failed deletes.
        """
        calls = self.calls
        document: dict[str, object] = {
            "failed_calls": len(calls),
            "first_request_id": calls[0].request_id if calls else "",
            "last_request_id": calls[-1].request_id if calls else "",
            "first_at": format_time(self.sightings[0].event_time),
            "last_at": format_time(self.sightings[-1].event_time),
            "principals": list(self.principals()),
            "requests": select_first_and_last([call.request() for call in calls]),
        }
        function_seconds = self.longest_refused_function_seconds()
        if function_seconds is not None:
            # After an approval, a case about a refused mapping is planned again with this value.
            document[REFUSED_FUNCTION_KEY] = function_seconds
        policies = sorted(self.refusing_policies())
        delete_interval_seconds = self.shortest_delete_interval_seconds()
        if delete_interval_seconds is not None:
            # After an approval, a case about a batch is planned again with this value.
            document[DELETE_INTERVAL_KEY] = delete_interval_seconds
        if policies:
            # After an approval, a case about callers is planned again with these values.
            document["event_names"] = list(self.event_names())
            document["refused_by"] = policies
        return document

    def merge_into(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the evidence document of an open case, extended with this newer evidence.

        Args:
            document: The stored document. The result keeps only the first and the last
                REQUESTS_KEPT_FROM_START_AND_FROM_END requests, and at most MAXIMUM_PRINCIPALS
                principals.
        """
        if not self.sightings:
            return dict(document)
        newer_document = self.document()
        newer_requests: Any = newer_document.pop("requests")
        merged_list_by_name = {
            name: sorted({*document.get(name, ()), *values})
            for name, values in newer_document.items()
            if isinstance(values, list)
        }
        return {
            **document,
            **merged_list_by_name,
            "failed_calls": document["failed_calls"] + len(self.calls),
            "first_request_id": document["first_request_id"] or newer_document["first_request_id"],
            "last_request_id": newer_document["last_request_id"] or document["last_request_id"],
            "last_at": newer_document["last_at"],
            "principals": merged_list_by_name["principals"][:MAXIMUM_PRINCIPALS],
            "requests": select_first_and_last([*document.get("requests", ()), *newer_requests]),
        }


def _group_deletes_by_caller(sightings: Iterable[Sighting]) -> list[list[Sighting]]:
    """Return the failed deletes of each caller: one program of a principal at one address."""
    deletes_by_caller: dict[tuple[str, str, str], list[Sighting]] = {}
    for call in sightings:
        if call.event_name == "DeleteMessage":
            caller = (call.principal_arn, call.source_ip, call.user_agent)
            deletes_by_caller.setdefault(caller, []).append(call)
    return list(deletes_by_caller.values())


def _select_deletes_of_busiest_caller(sightings: Iterable[Sighting]) -> list[Sighting]:
    """Return the failed deletes of the caller that made the most.

    If several callers made as many, take the one whose first delete came first. The list is empty
    if there are no deletes.
    """
    return max(_group_deletes_by_caller(sightings), key=len, default=[])


def select_first_and_last(requests: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the first and the last requests in order.

    Each part has at most REQUESTS_KEPT_FROM_START_AND_FROM_END requests.
    """
    first_requests = requests[:REQUESTS_KEPT_FROM_START_AND_FROM_END]
    requests_after_first = requests[REQUESTS_KEPT_FROM_START_AND_FROM_END:]
    return [*first_requests, *requests_after_first[-REQUESTS_KEPT_FROM_START_AND_FROM_END:]]

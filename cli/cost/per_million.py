"""What a million calls cost that a trail logs, and a million of those that fail."""

from __future__ import annotations

from cli.cost.line import Line
from infra import prices

MILLION = 1_000_000
# Assumptions; none was measured in an account.
RECORD_BYTES = 1_500
COMPRESSION = 10
KEPT_MONTHS = 3
EVENTS_OF_A_RUN = 10
GB_SECONDS_OF_A_RUN = 0.5


def watched() -> list[Line]:
    """A million calls, whatever they answer: CloudTrail cannot leave out those that succeed."""
    gb = MILLION * RECORD_BYTES / COMPRESSION / 1e9
    return [
        Line(
            "CloudTrail",
            f"{MILLION:,} data events",
            "again for every other trail that logs them",
            ((prices.DATA_EVENT, MILLION),),
        ),
        Line(
            "EventBridge",
            "only what fails goes on",
            "what AWS's services send is free; if your bill counts data events as opted into, "
            f"{prices.OPT_IN_EVENT.words}",
        ),
        Line(
            "the trail's files",
            f"{gb:.2f} GB for {KEPT_MONTHS} months",
            f"{RECORD_BYTES:,} bytes a record, compressed {COMPRESSION} : 1",
            ((prices.S3_GB_MONTH, gb * KEPT_MONTHS),),
        ),
    ]


def failed() -> list[Line]:
    """What a million failed calls cost on top, though most of them come in bursts."""
    runs = MILLION / EVENTS_OF_A_RUN
    calls = MILLION + 2 * runs
    return [
        Line(
            "the intake queue",
            f"{calls:,.0f} calls",
            f"one send each; received and deleted by {EVENTS_OF_A_RUN}",
            ((prices.SQS_REQUEST, calls),),
        ),
        Line(
            "heal",
            f"{runs:,.0f} runs",
            f"{EVENTS_OF_A_RUN} events and {GB_SECONDS_OF_A_RUN} GB-seconds a run",
            ((prices.LAMBDA_REQUEST, runs), (prices.LAMBDA_GB_SECOND, runs * GB_SECONDS_OF_A_RUN)),
        ),
        Line(
            "the ledger",
            f"{MILLION:,} writes and {MILLION:,} reads",
            "evidence is counted once for each until a case opens",
            ((prices.WRITE_UNIT, MILLION), (prices.READ_UNIT, MILLION)),
        ),
    ]

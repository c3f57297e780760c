"""What is billed by use, where nobody but the clock and Lambda's pollers uses anything."""

from __future__ import annotations

from cli.cost.deployed import MONTH_DAYS, MONTH_HOURS, Deployed
from cli.cost.line import Line
from functions.healing.night_workers import WORKER
from infra import prices

# Assumptions, on the high side; none was measured in an account.
SECONDS_OF_A_RUN = 1
READS_OF_A_RUN, WRITES_OF_A_RUN = 10, 2
LOG_BYTES_OF_A_RUN = 2_000
TABLE_GB = 0.1
SECONDS_OF_A_NIGHT = 120
# Lambda asks an idle queue by that many calls at once, each of which waits 20 s.
POLLERS = 5
_GB = 10**9


def trail(stack: Deployed) -> Line:
    pulses = stack.times("pulse")
    because = "the pulse's own calls alone; your queues' calls come on top"
    if "Management" in str(stack.all("AWS::CloudTrail::Trail")):
        again = prices.MANAGEMENT_EVENT_AGAIN.words
        because += f"; management events cost {again} where another trail logs them too"
    return Line("the trail", f"{pulses:,.0f} data events", because, ((prices.DATA_EVENT, pulses),))


def table(stack: Deployed) -> Line:
    reads, writes = (_runs(stack) * each for each in (READS_OF_A_RUN, WRITES_OF_A_RUN))
    return Line(
        "the ledger",
        f"{reads:,.0f} reads, {writes:,.0f} writes, {TABLE_GB} GB",
        f"at most {READS_OF_A_RUN} reads and {WRITES_OF_A_RUN} writes in a run of a Lambda",
        (
            (prices.READ_UNIT, reads),
            (prices.WRITE_UNIT, writes),
            (prices.TABLE_GB_MONTH, TABLE_GB),
            (prices.RECOVERY_GB_MONTH, TABLE_GB),
        ),
    )


def nights(stack: Deployed) -> Line:
    runs = stack.times("start_night")
    workers = 2
    hours = runs * workers * SECONDS_OF_A_NIGHT / 3_600
    return Line(
        "EMR Serverless",
        f"{runs:.0f} runs of a driver and an executor, {SECONDS_OF_A_NIGHT} s each",
        "of an idle account; the application stops between them and costs nothing",
        (
            (prices.EMR_VCPU_HOUR, hours * WORKER.vcpu),
            (prices.EMR_GB_HOUR, hours * WORKER.memory_gb),
        ),
    )


def polling(stack: Deployed) -> Line:
    mappings = len(stack.all("AWS::Lambda::EventSourceMapping"))
    asked = mappings * POLLERS * 3 * 60 * MONTH_HOURS
    because = f"Lambda waits with {POLLERS} calls of 20 s at once"
    return Line(
        "polling the intake queue", f"{asked:,} calls", because, ((prices.SQS_REQUEST, asked),)
    )


def invocations(stack: Deployed) -> Line:
    seconds = sum(each.times * each.memory_gb for each in stack.started) * SECONDS_OF_A_RUN
    runs = _runs(stack)
    return Line(
        "Lambda",
        f"{runs:,.0f} runs, {seconds:,.0f} GB-seconds",
        f"what the schedules start, {SECONDS_OF_A_RUN} s each",
        ((prices.LAMBDA_REQUEST, runs), (prices.LAMBDA_GB_SECOND, seconds)),
    )


def logs(stack: Deployed) -> Line:
    written = _runs(stack) * LOG_BYTES_OF_A_RUN / _GB
    days = max(each.get("RetentionInDays", 365) for each in stack.all("AWS::Logs::LogGroup"))
    return Line(
        "logs, and metrics on their way",
        f"{written:.2f} GB, kept {days} days",
        f"{LOG_BYTES_OF_A_RUN:,} bytes a run",
        ((prices.LOG_GB, written), (prices.LOG_GB_MONTH, written * days / MONTH_DAYS)),
    )


def schedules(stack: Deployed) -> Line:
    runs = _runs(stack)
    billed = ((prices.SCHEDULED, runs),)
    return Line(
        "Scheduler", f"{runs:,.0f} invocations", "follow_up's each minute above all", billed
    )


def _runs(stack: Deployed) -> float:
    return sum(each.times for each in stack.started)

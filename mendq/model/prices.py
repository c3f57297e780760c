"""AWS prices of one region, copied by hand. Other regions have other prices.

Each price names its page and the day on which it was copied. AWS's pages show many prices only with
JavaScript, so some of these prices come from other pages that quote them. Check AWS's page before
you rely on a price.
"""

from __future__ import annotations

from msgspec import Struct

PRICE_REGION = "us-east-1"
PRICES_NOTED_ON = "2026-11-22"


class Price(Struct, frozen=True):
    """The price of one kind of usage.

    Each payer gets `free_units` once per month. All accounts and regions on one bill share them,
    except DynamoDB's free storage, which each region has.

    Attributes:
        dollars: The price of `per` units, in US dollars.
        per: The number of units that `dollars` pays for.
        unit: The unit, in words.
        service: The service's name in the URL of AWS's pricing page.
        free_units: The number of units per month without a charge.
        noted_on: The day on which the price was copied.
    """

    dollars: float
    per: int
    unit: str
    service: str
    free_units: float = 0
    noted_on: str = PRICES_NOTED_ON

    def cost(self, units: float) -> float:
        """Return the price of these units in dollars. Free units are not subtracted."""
        return units * self.dollars / self.per

    def cost_beyond_free(self, units: float) -> float:
        """Return the price in dollars of the units that exceed the free units.

        This assumes that nothing else uses the free units.
        """
        return self.cost(max(0, units - self.free_units))

    @property
    def page(self) -> str:
        """The URL of AWS's page with this price."""
        return f"https://aws.amazon.com/{self.service}/pricing/"

    @property
    def words(self) -> str:
        """The price in words, such as `$0.10 per 100,000`."""
        has_whole_cents = round(self.dollars, 2) == self.dollars
        dollars_text = f"${self.dollars:.2f}" if has_whole_cents else f"${self.dollars:.6g}"
        return f"{dollars_text} per {self.per:,}" if self.per > 1 else f"{dollars_text} each"

    @property
    def note(self) -> str:
        """The unit and the price in one line, with the region and the date of the price."""
        region_and_date = f"{PRICE_REGION}, {self.noted_on}"
        return f"{self.unit} at {self.words} in {region_and_date}; other regions differ"


_ONE_MILLION = 1_000_000

# AWS charges for the copy of an event in each trail that logs it.
DATA_EVENT = Price(0.10, 100_000, "data events of CloudTrail", "cloudtrail")
SECOND_COPY_OF_MANAGEMENT_EVENT = Price(
    2.00, 100_000, "management events that another trail logs already", "cloudtrail"
)
METRIC_MONTH = Price(0.30, 1, "custom metrics a month", "cloudwatch", 10)
ALARM_METRIC_MONTH = Price(0.10, 1, "metrics of an alarm a month", "cloudwatch", 10)
# AWS charges for each metric that the alarm's query matches. None of them is free.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_billing.html
METRICS_INSIGHTS_METRIC_MONTH = Price(
    0.10,
    1,
    "metrics that the query of a Metrics Insights alarm matches, a month",
    "cloudwatch",
    noted_on="2026-11-29",
)
COMPOSITE_ALARM_MONTH = Price(0.50, 1, "composite alarms a month", "cloudwatch")
DASHBOARD_MONTH = Price(3.00, 1, "dashboards a month", "cloudwatch", 3)
METRIC_READ = Price(0.01, 1_000, "metrics asked of GetMetricData", "cloudwatch")
LOG_GB = Price(0.50, 1, "GB of logs taken in", "cloudwatch", 5)
LOG_GB_MONTH = Price(0.03, 1, "GB of logs kept a month", "cloudwatch")
READ_UNIT = Price(0.125, _ONE_MILLION, "read units of DynamoDB", "dynamodb")
WRITE_UNIT = Price(0.625, _ONE_MILLION, "write units of DynamoDB", "dynamodb")
TABLE_GB_MONTH = Price(0.25, 1, "GB in DynamoDB a month", "dynamodb", 25)
RECOVERY_GB_MONTH = Price(0.20, 1, "GB of point-in-time recovery a month", "dynamodb")
SCHEDULED_INVOCATION = Price(
    1.00, _ONE_MILLION, "invocations by Scheduler", "eventbridge", 14 * _ONE_MILLION
)
# Events that AWS services send by default are free. AWS does not document if these events are free
# too.
OPT_IN_EVENT = Price(1.00, _ONE_MILLION, "events that one has to opt into", "eventbridge")
KMS_KEY_MONTH = Price(1.00, 1, "KMS keys a month", "kms")
LAMBDA_REQUEST = Price(0.20, _ONE_MILLION, "invocations of Lambda", "lambda", _ONE_MILLION)
LAMBDA_GB_SECOND = Price(13.3334, _ONE_MILLION, "GB-seconds of Lambda on ARM", "lambda", 400_000)
# AWS's page shows this price only with JavaScript. Two other pages quote it, from AWS's price list
# and from the example on AWS's page. AWS's pages do not say how many units a poller needs.
POLLER_UNIT_HOUR = Price(
    0.00925, 1, "Event Poller Units of SQS mappings an hour", "lambda", noted_on="2026-11-29"
)
SQS_REQUEST = Price(0.40, _ONE_MILLION, "calls of a standard queue", "sqs", _ONE_MILLION)
# This price also holds for high throughput. Calls that do not work on messages, such as
# GetQueueAttributes, cost as much as those of a standard queue. A million calls to FIFO queues are
# free too, but AWS does not say if this is the same million, so no free calls are counted here.
FIFO_SQS_REQUEST = Price(
    0.50,
    _ONE_MILLION,
    "calls of a FIFO queue that send, receive or delete messages or change their visibility",
    "sqs",
    noted_on="2026-11-29",
)
S3_PUT = Price(0.005, 1_000, "PUTs of S3", "s3")
S3_GB_MONTH = Price(0.023, 1, "GB in S3 a month", "s3")

# Prices on x86 from other pages that quote them, because AWS's own page shows them only with
# JavaScript:
# https://aws.amazon.com/emr/pricing/
EMR_X86_VCPU_HOUR_DOLLARS = 0.052624
EMR_X86_GB_HOUR_DOLLARS = 0.0057785
# https://aws.amazon.com/blogs/big-data/achieve-up-to-27-better-price-performance-for-spark-workloads-with-aws-graviton2-on-amazon-emr-serverless/
EMR_ARM_TO_X86_PRICE_RATIO = 0.80
EMR_VCPU_HOUR = Price(
    EMR_ARM_TO_X86_PRICE_RATIO * EMR_X86_VCPU_HOUR_DOLLARS, 1, "vCPU-hours of EMR on ARM", "emr"
)
EMR_GB_HOUR = Price(
    EMR_ARM_TO_X86_PRICE_RATIO * EMR_X86_GB_HOUR_DOLLARS, 1, "GB-hours of EMR on ARM", "emr"
)

ALL_PRICES = tuple(price for price in globals().values() if isinstance(price, Price))

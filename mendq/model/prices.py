"""What AWS charges in one region, noted once: nothing is fetched, and other regions differ.

AWS's pages fill in many of their figures by script, so that these are what people quote of them.
Look at the page before relying on one.
"""

from __future__ import annotations

from msgspec import Struct

REGION = "us-east-1"
NOTED_ON = "2026-11-22"


class Price(Struct, frozen=True):
    """`dollars` for `per` units; AWS gives so many units a month, `given`, once to each payer.

    Accounts of an organization with one bill share it, and so do their regions; of DynamoDB's
    storage alone each region has its own.
    """

    dollars: float
    per: int
    unit: str
    service: str
    given: float = 0

    def of(self, units: float) -> float:
        return units * self.dollars / self.per

    def beyond(self, units: float) -> float:
        """Dollars where nothing else on the payer's bill uses up what is given."""
        return self.of(max(0, units - self.given))

    @property
    def page(self) -> str:
        return f"https://aws.amazon.com/{self.service}/pricing/"

    @property
    def words(self) -> str:
        """Such as `$0.10 per 100,000`."""
        whole_cents = round(self.dollars, 2) == self.dollars
        each = f"${self.dollars:.2f}" if whole_cents else f"${self.dollars:.6g}"
        return f"{each} per {self.per:,}" if self.per > 1 else f"{each} each"

    @property
    def noted(self) -> str:
        """Unit and price in one line, with where and when it was so."""
        return f"{self.unit} at {self.words} in {REGION}, {NOTED_ON}; other regions differ"


_MILLION = 1_000_000

# Every trail that logs an event is billed for its own copy.
DATA_EVENT = Price(0.10, 100_000, "data events of CloudTrail", "cloudtrail")
MANAGEMENT_EVENT_AGAIN = Price(
    2.00, 100_000, "management events that another trail logs already", "cloudtrail"
)
METRIC_MONTH = Price(0.30, 1, "custom metrics a month", "cloudwatch", 10)
ALARM_METRIC_MONTH = Price(0.10, 1, "metrics of an alarm a month", "cloudwatch", 10)
COMPOSITE_MONTH = Price(0.50, 1, "composite alarms a month", "cloudwatch")
DASHBOARD_MONTH = Price(3.00, 1, "dashboards a month", "cloudwatch", 3)
METRIC_ASKED = Price(0.01, 1_000, "metrics asked of GetMetricData", "cloudwatch")
LOG_GB = Price(0.50, 1, "GB of logs taken in", "cloudwatch", 5)
LOG_GB_MONTH = Price(0.03, 1, "GB of logs kept a month", "cloudwatch")
READ_UNIT = Price(0.125, _MILLION, "read units of DynamoDB", "dynamodb")
WRITE_UNIT = Price(0.625, _MILLION, "write units of DynamoDB", "dynamodb")
TABLE_GB_MONTH = Price(0.25, 1, "GB in DynamoDB a month", "dynamodb", 25)
RECOVERY_GB_MONTH = Price(0.20, 1, "GB of point-in-time recovery a month", "dynamodb")
SCHEDULED = Price(1.00, _MILLION, "invocations by Scheduler", "eventbridge", 14 * _MILLION)
# What AWS's services send by themselves is free; whether these are so counted, no page says.
OPT_IN_EVENT = Price(1.00, _MILLION, "events that one has to opt into", "eventbridge")
KEY_MONTH = Price(1.00, 1, "KMS keys a month", "kms")
LAMBDA_REQUEST = Price(0.20, _MILLION, "invocations of Lambda", "lambda", _MILLION)
LAMBDA_GB_SECOND = Price(13.3334, _MILLION, "GB-seconds of Lambda on ARM", "lambda", 400_000)
SQS_REQUEST = Price(0.40, _MILLION, "calls of a standard queue", "sqs", _MILLION)
S3_PUT = Price(0.005, 1_000, "PUTs of S3", "s3")
S3_GB_MONTH = Price(0.023, 1, "GB in S3 a month", "s3")

# https://aws.amazon.com/emr/pricing/ fills in its figures by script: x86's as others quote them.
EMR_X86_VCPU_HOUR, EMR_X86_GB_HOUR = 0.052624, 0.0057785
# https://aws.amazon.com/blogs/big-data/achieve-up-to-27-better-price-performance-for-spark-workloads-with-aws-graviton2-on-amazon-emr-serverless/
EMR_ARM_SHARE = 0.80
EMR_VCPU_HOUR = Price(EMR_ARM_SHARE * EMR_X86_VCPU_HOUR, 1, "vCPU-hours of EMR on ARM", "emr")
EMR_GB_HOUR = Price(EMR_ARM_SHARE * EMR_X86_GB_HOUR, 1, "GB-hours of EMR on ARM", "emr")

ALL_PRICES = tuple(each for each in globals().values() if isinstance(each, Price))

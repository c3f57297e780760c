"""Commands that Mendq prints for people: `mendq` and `aws` commands about a queue or a case.

Functions with an argument `queue_arn` raise ValueError if it is not the ARN of a queue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from shlex import quote

from mendq.model.case import Case
from mendq.model.metrics import Measurement
from mendq.model.queue import make_public_queue_url, parse_queue_arn
from mendq.notifications.links import quote_links
from mendq.notifications.text import Section, command_or_note, format_exact_json


def make_aws_command(operation: str, queue_arn: str, options: str = "") -> str:
    """Return an `aws` command in the queue's region, in which no name becomes a link."""
    region = parse_queue_arn(queue_arn).region
    return quote_links(f"aws {operation} --region {region} {options}".rstrip())


def _sqs_command(operation: str, queue_arn: str, queue_url: str = "") -> str:
    """Return an `aws sqs` command about a queue. Without `queue_url`, use the ARN's public URL."""
    quoted_url = quote(queue_url or make_public_queue_url(queue_arn))
    return make_aws_command(f"sqs {operation}", queue_arn, f"--queue-url {quoted_url}")


def get_attributes_command(queue_arn: str, *attribute_names: str) -> str:
    """Return the `aws` command that shows these attributes of a queue, or all without names."""
    attribute_names_text = " ".join(attribute_names or ("All",))
    return (
        f"{_sqs_command('get-queue-attributes', queue_arn)} --attribute-names "
        f"{attribute_names_text}"
    )


def function_log_command(
    queue_arn: str,
    function_name: str,
    measurement: Measurement | None,
    since: datetime | None = None,
) -> str:
    """Return the `aws` command that shows errors in the log of a queue's Lambda function.

    It shows the first errors after `since`, or of the hour before the end of the measurement.
    """
    return _filter_log_command(queue_arn, function_name, "'?ERROR ?Exception'", measurement, since)


def timed_out_runs_command(
    queue_arn: str,
    function_name: str,
    measurement: Measurement | None,
    since: datetime | None = None,
) -> str:
    """Return the `aws` command that shows a Lambda function's runs that ended at its timeout.

    It shows the first such runs after `since`, or of the hour before the end of the measurement.
    """
    return _filter_log_command(queue_arn, function_name, "'\"Task timed out\"'", measurement, since)


def _filter_log_command(
    queue_arn: str,
    function_name: str,
    quoted_pattern: str,
    measurement: Measurement | None,
    since: datetime | None,
) -> str:
    """Return the `aws` command that shows the first matching lines of a function's log.

    Without `--start-time`, CloudWatch Logs begins with the oldest lines of the log group. The
    command has `--max-items`, because with `--limit` the AWS CLI reads a single page, which can be
    empty although lines match.
    https://docs.aws.amazon.com/cli/latest/reference/logs/filter-log-events.html
    """
    log_group = quote(f"/aws/lambda/{function_name}")
    options = f"--log-group-name {log_group} --filter-pattern {quoted_pattern} --max-items 20"
    if since is None and measurement is not None:
        since = measurement.until - timedelta(hours=1)
    if since is not None:
        options += f" --start-time {int(since.timestamp() * 1000)}"
    return make_aws_command("logs filter-log-events", queue_arn, options)


def list_consumers_command(queue_arn: str) -> str:
    """Return the `aws` command that lists the Lambda functions that consume a queue."""
    options = f"--event-source-arn {quote(queue_arn)}"
    return make_aws_command("lambda list-event-source-mappings", queue_arn, options)


def list_move_task_starts_command(queue_arn: str) -> str:
    """Return the `aws` command that lists who started message movement tasks in the region."""
    options = (
        "--lookup-attributes AttributeKey=EventName,AttributeValue=StartMessageMoveTask "
        "--max-results 10"
    )
    return make_aws_command("cloudtrail lookup-events", queue_arn, options)


def mendq_queue_command(command_template: str, queue_arn: str) -> str:
    """Return a `mendq` command in the queue's region. The queue's name fills `{queue}` in it."""
    queue = parse_queue_arn(queue_arn)
    subcommand = command_template.format(queue=queue.name)
    return quote_links(f"mendq {subcommand} --region {queue.region}")


# The command that shows which DLQ messages would go back to a source queue.
redrive_preview_command = partial(mendq_queue_command, "redrive {queue} --all --dry-run")
# The command that shows the messages of a DLQ, or of a source's DLQ.
dlq_messages_command = partial(mendq_queue_command, "dlq {queue}")
# The command with which a person confirms that a queue may receive another queue's messages.
confirm_queue_command = partial(mendq_queue_command, "confirm {queue}")


def confirm_quarantine_command(quarantine_arn: str, source_arn: str) -> str:
    """Return the command with which a person confirms a queue as the quarantine of this source."""
    source_name = parse_queue_arn(source_arn).name
    return mendq_queue_command(f"confirm {{queue}} --source {source_name}", quarantine_arn)


revoke_confirmation_command = partial(mendq_queue_command, "confirm {queue} --revoke")
# The command that writes alarms for a queue and its DLQ.
make_alarms_command = partial(mendq_queue_command, "alarms {queue}")
# The command that shows the messages of a source's quarantine, or of a quarantine.
peek_quarantine_command = partial(mendq_queue_command, "quarantine peek {queue}")
# The command that shows the quarantines of all managed queues, in the queue's region.
list_quarantines_command = partial(mendq_queue_command, "quarantine list")
# The command that shows which messages of a quarantine would go back to their source.
preview_quarantine_return_command = partial(
    mendq_queue_command, "quarantine return {queue} --all --dry-run"
)
# The command that sends a DLQ's messages to a queue that the operator must name.
redrive_elsewhere_command = partial(mendq_queue_command, "redrive {queue} --to OTHER --all")
# The command that sends back all DLQ messages of a FIFO queue, except the first of each group.
redrive_all_but_first_command = partial(mendq_queue_command, "redrive {queue} --all --leave-first")


def tag_queue_command(tag: str, queue_arn: str) -> str:
    """Return the `aws` command that tags a queue.

    `tag` is a tag as `key=value`. It comes from Mendq's own code and never from outside, so it is
    not quoted for the shell.
    """
    return f"{_sqs_command('tag-queue', queue_arn)} --tags {tag}"


def show_metric_command(
    queue_arn: str, metric: str, statistic: str, measurement: Measurement | None
) -> str:
    """Return the `aws` command that shows a queue's metric during a measurement.

    Return an empty text if `measurement` is None. `metric` and `statistic` come from Mendq's own
    code, so they are not quoted for the shell.
    """
    if measurement is None:
        return ""
    queue_name = parse_queue_arn(queue_arn).name
    options = (
        f"--namespace AWS/SQS --metric-name {metric} "
        f"--dimensions Name=QueueName,Value={queue_name} --statistics {statistic} --period 300 "
        f"--start-time {_format_cli_time(measurement.since)} --end-time "
        f"{_format_cli_time(measurement.until)}"
    )
    return make_aws_command("cloudwatch get-metric-statistics", queue_arn, options)


def _format_cli_time(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


_PLAIN_WORD_PATTERN = re.compile(r"[A-Za-z0-9]{1,64}")


def set_attributes_command(
    queue_arn: str, value_by_attribute: Mapping[str, str], queue_url: str = ""
) -> str:
    """Return the `aws` command that sets attributes of a queue.

    The command has the short form `Name=value` if all names and values are plain words. Otherwise
    it has the attributes as JSON, so that every value stays exact and every character is visible. A
    policy needs JSON, because the AWS CLI splits the short form at commas:
    https://docs.aws.amazon.com/cli/latest/userguide/cli-usage-shorthand.html

    Args:
        queue_arn: The queue.
        value_by_attribute: The new value of each attribute.
        queue_url: The queue's URL; empty for the public URL of this ARN.
    """
    attribute_names_and_values = [*value_by_attribute.keys(), *value_by_attribute.values()]
    if all(_PLAIN_WORD_PATTERN.fullmatch(value) for value in attribute_names_and_values):
        attributes_text = ",".join(f"{name}={value}" for name, value in value_by_attribute.items())
    else:
        attributes_text = format_exact_json(dict(value_by_attribute))
    command = _sqs_command("set-queue-attributes", queue_arn, queue_url)
    return f"{command} --attributes {quote(attributes_text)}"


def create_queue_command(queue_arn: str, attributes: Mapping[str, str]) -> str:
    """Return the `aws` command that creates a queue with these attributes."""
    options = f"--queue-name {parse_queue_arn(queue_arn).name}"
    options += f" --attributes {quote(format_exact_json(dict(attributes)))}"
    return make_aws_command("sqs create-queue", queue_arn, options)


def delete_queue_command(queue_arn: str) -> str:
    """Return the `aws` command that deletes a queue with all its messages."""
    return _sqs_command("delete-queue", queue_arn)


def mendq_case_command(mendq_subcommand: str, case: Case) -> str:
    """Return the command `mendq SUBCOMMAND CASE` in the region of the case's queue."""
    return mendq_case_id_command(mendq_subcommand, case.case_id, case.queue_arn)


def mendq_case_id_command(mendq_subcommand: str, case_id: str, queue_arn: str) -> str:
    """Return the command `mendq SUBCOMMAND CASE` for a case id, in the region of a queue."""
    region = parse_queue_arn(queue_arn).region
    return command_or_note(f"mendq {mendq_subcommand} {quote(case_id)} --region {region}")


def runbook_command(page: str, *options: str) -> str:
    """Return the command that prints a runbook. `page` is the name of a symptom or a runbook."""
    return command_or_note(" ".join((f"mendq runbook {quote(page)}", *options)))


def scan_symptom_command(symptom: str) -> str:
    """Return the command that lists all queues with a symptom."""
    return command_or_note(f"mendq scan --symptom {quote(symptom)}")


def list_quotas_command(service_code: str, queue_arn: str, quota_name_part: str = "") -> str:
    """Return the `aws` command that lists a service's quotas in the queue's region.

    With `quota_name_part`, the command lists only the quotas whose names contain this text.
    `service_code` and `quota_name_part` come from Mendq's own code, so they are not quoted for the
    shell.
    """
    quota_filter = f"[?contains(QuotaName, '{quota_name_part}')]" if quota_name_part else "[]"
    quota_query = f"Quotas{quota_filter}.[QuotaName, QuotaCode, Value, Adjustable]"
    options = f'--service-code {service_code} --query "{quota_query}" --output table'
    return make_aws_command("service-quotas list-service-quotas", queue_arn, options)


def describe_quota(
    queue_arn: str, quota_name: str, default_text: str, service_code: str, quota_code: str = ""
) -> Section:
    """Return a section about a quota that was reached.

    The section has the quota's default, and commands that show the account's value and ask AWS for
    a higher value. Mendq has no permission to read the account's value itself.

    Args:
        queue_arn: The queue.
        quota_name: The quota's name.
        default_text: The default value, from AWS's documentation.
        service_code: The service's code in Service Quotas.
        quota_code: The quota's code. If it is empty, the command lists all quotas of the service.
    """
    quota_options = f"--service-code {service_code} --quota-code {quota_code or 'QUOTA_CODE'}"
    read_command = make_aws_command("service-quotas get-service-quota", queue_arn, quota_options)
    increase_operation = "service-quotas request-service-quota-increase"
    quota_lines = (
        f"{quota_name}: {default_text} by AWS's documentation; this account's own value is in:",
        read_command if quota_code else list_quotas_command(service_code, queue_arn),
        "to ask for more; what is not adjustable there takes a case with AWS Support:",
        make_aws_command(increase_operation, queue_arn, f"{quota_options} --desired-value VALUE"),
    )
    return Section("QUOTA", quota_lines, can_be_cut=False)


# Each alarm of Mendq has a name that begins with this. Other alarms of the account may not publish
# to Mendq's topics.
ALARM_PREFIX = "mendq-"
# The beginnings of the lines in an alarm's description.
FIRING_CONDITION_PREFIX = "Fires: "
FIRST_COMMAND_PREFIX = "First, in account "
RUNBOOK_PREFIX = "Runbook: "
# The first command for most alarms: it shows most causes.
DOCTOR_COMMAND = "mendq doctor"

_ALARM_DESCRIPTION_PATTERN = re.compile(
    rf"^{FIRING_CONDITION_PREFIX}(?P<when>.{{1,500}})\.\n"
    rf"{FIRST_COMMAND_PREFIX}\S{{1,40}}: (?P<command>.{{1,200}})\n"
    rf"{RUNBOOK_PREFIX}(?P<page>docs/runbooks/[a-z_]{{1,64}}\.md|https://[!-~]{{1,300}})$",
    re.MULTILINE,
)


def format_alarm_description(
    impact: str, firing_condition: str, account: str, command: str, page: str
) -> str:
    """Return the description of an alarm. CloudWatch sends it to people together with the alarm.

    Args:
        impact: The alarm's meaning for people.
        firing_condition: When the alarm fires.
        account: The account in which to type the command.
        command: The command to type first.
        page: The path or the address of the runbook.
    """
    description_lines = (
        impact,
        f"{FIRING_CONDITION_PREFIX}{firing_condition}.",
        f"{FIRST_COMMAND_PREFIX}{account}: {command}",
        f"{RUNBOOK_PREFIX}{page}",
    )
    return "\n".join(description_lines)


def parse_alarm_description(description: str) -> tuple[str, str, str] | None:
    """Return when an alarm fires, the command to type first, and the runbook's path or address.

    These come from the alarm's description. Return None if the description does not have the form
    that `format_alarm_description` writes.
    """
    match = _ALARM_DESCRIPTION_PATTERN.search(description)
    if match is None:
        return None
    return match["when"], match["command"], match["page"]

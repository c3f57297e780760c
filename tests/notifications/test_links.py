"""Names of others never become links.

The sinks are commands, notifications, chats, SARIF, annotations, cfn-lint, terminals, error lines
and the diff of `mendq patch`. The report's page and mail have the same property in
tests/report/test_page.py. tests/architecture/test_command_lines.py checks that there are no other
sinks.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from mendq.catalogue.access.minimum_policy import make_grant_sections
from mendq.catalogue.examples import standard_queue
from mendq.cli.exit_codes import CommandError
from mendq.cli.output import Output
from mendq.lint import view
from mendq.lint.judging import LintFinding, LintResult
from mendq.lint.patch import make_diff
from mendq.lint.rules import RULES
from mendq.lint.run import LintRun
from mendq.model.severity_class import SeverityClass
from mendq.notifications import commands
from mendq.notifications.links import (
    break_links,
    escape_links_in_json,
    has_link,
    list_json_lines,
    quote_links,
)
from mendq.notifications.sent import make_publish_arguments
from mendq.notifications.text import (
    command_or_note,
    format_exact_json,
    terminal_command_or_note,
    to_plain_text,
    to_terminal_text,
)
from tests.clickable import (
    HOSTILE_NAMES,
    HOSTILE_ROLE_NAMES,
    find_links,
    find_terminal_links,
)
from tests.notifications.pages import CASE, make_notification

ROLE_PREFIX = "arn:aws:iam::123456789012:role/"


@settings(max_examples=100)
@given(name=HOSTILE_NAMES)
@example(name="https://www.evil.com")
@example(name="aws-service-role/s3.amazonaws.com/x")
def test_text_of_a_hostile_name_has_no_link_of_any_kind(name: str) -> None:
    assert find_links(to_plain_text(name)) == []
    assert find_terminal_links(to_terminal_text(name)) == []


@pytest.mark.parametrize(
    "name",
    [
        "orders.fifo", "sns.amazonaws.com", "sqs.eu-west-1.amazonaws.com", "3.11.6", "e.g. this",
        "AWS.SimpleQueueService.NonExistentQueue", "docs/runbooks/dlq_missing.md", "a: b",
        "arn:aws:iam::123456789012:role/aws-service-role/sns.amazonaws.com/AWSServiceRoleForX",
    ],
)  # fmt: skip
def test_names_that_lead_to_no_page_of_an_attacker_stay_readable(name: str) -> None:
    assert to_plain_text(name) == name


@pytest.mark.parametrize("name", ["john.doe@example.com", "body.id", "node.js"])
def test_bare_domains_can_be_copied_from_a_terminal(name: str) -> None:
    assert to_terminal_text(name) == name


@settings(max_examples=100)
@given(name=HOSTILE_NAMES, mark=st.sampled_from(("'", '"', "")))
def test_command_with_a_hostile_name_has_no_link_and_means_the_same_to_the_shell(
    name: str, mark: str
) -> None:
    query = name.translate({ord(character): None for character in "'\"\\`$"})
    quoted_query = f"{mark}{query}{mark}" if mark else shlex.quote(query)
    for word in (shlex.quote(name), quoted_query):
        command = f"aws iam get-role --role-name {word} --query Role.Arn"
        shown = command_or_note(command)
        assert find_links(shown) == []
        assert shown.startswith("(not shown") or shlex.split(shown) == shlex.split(command)
        shown = terminal_command_or_note(command)
        assert find_terminal_links(shown) == []
        assert shown.isprintable()
        assert shown.startswith("(not shown") or shlex.split(shown) == shlex.split(command)


@pytest.mark.parametrize(
    "command",
    [
        'aws x --key "$(aws kms describe-key --key-id www.evil.com)"',
        "aws x --key `echo www.evil.com`",
        "aws x --name 'www.evil.com",
    ],
)
def test_command_whose_link_cannot_be_quoted_is_refused(command: str) -> None:
    assert has_link(quote_links(command))
    assert command_or_note(command).startswith("(not shown")
    assert terminal_command_or_note(command).startswith("(not shown")


def test_commands_of_mendq_keep_the_addresses_of_queues() -> None:
    command = commands.get_attributes_command(CASE.queue_arn)
    assert "https://sqs.us-east-1.amazonaws.com/123456789012/orders.fifo " in command
    assert command_or_note(command) == command


@settings(max_examples=100)
@given(document=st.dictionaries(HOSTILE_NAMES, HOSTILE_NAMES, min_size=1, max_size=3))
def test_json_to_paste_has_no_link_and_is_the_same_document(document: dict[str, str]) -> None:
    text = format_exact_json(document)
    assert find_links(text) == []
    assert json.loads(text) == document
    assert escape_links_in_json(text) == text


@settings(max_examples=60)
@given(name=HOSTILE_ROLE_NAMES, account=st.sampled_from(("123456789012", "111111111111")))
@example(name="www.evil.com", account="123456789012")
def test_policy_and_lookup_commands_about_a_role_with_a_hostile_name_have_no_link(
    name: str, account: str
) -> None:
    role_arn = f"arn:aws:iam::{account}:role/{name}"
    facts = standard_queue(
        KmsMasterKeyId="www.evil.com/key",
        principals=(role_arn,),
        event_names=("ReceiveMessage", "SendMessage"),
        Policy=json.dumps(
            {"Statement": {"Effect": "Allow", "Principal": {"AWS": role_arn}, "Action": "sqs:*"}}
        ),
    )
    for section in make_grant_sections(facts):
        assert section.lines
        for line in section.lines:
            assert find_links(line) == [], line


QUEUE_BUILDERS = (
    commands.dlq_messages_command,
    commands.redrive_preview_command,
    commands.get_attributes_command,
    commands.list_consumers_command,
    commands.delete_queue_command,
)


def test_command_with_a_domain_as_a_name_is_shown_quoted_and_means_the_same() -> None:
    command = "aws iam get-role --role-name www.evil.com"
    shown = command_or_note(command)
    assert shown == "aws iam get-role --role-name www'.'evil'.'com"
    assert shlex.split(shown) == shlex.split(command)


@pytest.mark.parametrize("name", ["www.fifo", "WWW.fifo"])
def test_commands_about_a_queue_named_www_have_no_link(name: str) -> None:
    queue_arn = f"arn:aws:sqs:us-east-1:123456789012:{name}"
    for build_command in QUEUE_BUILDERS:
        command = build_command(queue_arn)
        assert find_links(command) == []
        assert any(word.endswith(name) for word in shlex.split(command))


@settings(max_examples=30)
@given(names=st.lists(HOSTILE_NAMES, min_size=5, max_size=5))
def test_notification_and_chat_message_with_hostile_names_have_no_link(names: list[str]) -> None:
    role_name, session_name, tag, caller, reason = names
    evidence = {
        **CASE.evidence,
        "principals": [f"{ROLE_PREFIX}{role_name}", session_name],
        "requests": [{"source_ip": caller, "user_agent": caller}],
    }
    news = make_notification(
        {
            "tags": {"owner": tag, tag: "x", "aws:cloudformation:stack-name": tag},
            "attributes": {"Policy": tag},
            "refusal_command": f"aws iam get-role --role-name {shlex.quote(role_name)}",
            "last_change": caller,
        },
        evidence=evidence,
        reason=reason,
    )
    chat = make_publish_arguments(
        {"subject": news.subject, "text": news.body, "queue_arn": CASE.queue_arn}, is_for_chat=True
    )
    for text in (news.subject, news.body, json.loads(json.loads(chat["Message"])["https"])):
        shown = text if isinstance(text, str) else text["content"]["description"]
        assert find_links(shown) == []
        assert all(line.isprintable() for line in shown.split("\n"))


def _make_result(name: str) -> LintResult:
    finding = LintFinding(
        symptom="dlq_missing",
        severity_class=SeverityClass.WILL_LOSE,
        resource=name,
        path=name,
        line=3,
        file=name,
        construct=name,
        because=f"{name} has none",
        remedy=(f"  Name: {name}", "  # see docs/runbooks/dlq_missing.md"),
        runbook="docs/runbooks/dlq_missing.md",
        aws_page="",
    )
    return LintResult("template.yaml", 1, (finding,), ignored=(), not_judged=(), defaults=())


@settings(max_examples=60)
@given(name=HOSTILE_NAMES)
@example(name="[click](https://evil.com)")
@example(name="[click](x)")
def test_sarif_and_annotations_about_hostile_names_have_no_link(name: str) -> None:
    results = [_make_result(name)]
    (sarif_run,) = view.make_sarif(results)["runs"]
    message = sarif_run["results"][0]["message"]["text"]
    assert find_links(message) == []
    assert "](" not in message
    assert message.endswith("\ndocs/runbooks/dlq_missing.md")
    (annotation,) = view.list_github_commands(LintRun(results))
    # The path in a property must stay a path. GitHub shows the message alone.
    _, _, annotated_message = annotation.split("::", 2)
    assert find_links(annotated_message) == []
    assert annotation.isprintable()


class _CfnTemplate:
    """What cfn-lint gives to a rule."""

    def __init__(self, resources: dict[str, Any]) -> None:
        self.template = {"Resources": resources}


def _list_cfn_lint_messages(name: str) -> list[str]:
    """Return the messages about a queue whose properties all have that name as their value."""
    redrive_policy = {"deadLetterTargetArn": name, "maxReceiveCount": name}
    queue_properties = {"QueueName": name, "RedrivePolicy": redrive_policy, "DelaySeconds": name}
    queue = {"Type": "AWS::SQS::Queue", "Properties": queue_properties}
    template = _CfnTemplate({"Orders": queue, f"Orders{name}": queue})
    return [match.message for rule in RULES for match in rule().match(template)]


_LINKS_OF_MARKDOWN = ("[click](https://evil.com)", "[click](x)", "https://www.evil.com")


@pytest.mark.parametrize("name", _LINKS_OF_MARKDOWN)
def test_cfn_lint_has_messages_about_a_queue_whose_name_is_a_link(name: str) -> None:
    assert _list_cfn_lint_messages(name)


@settings(max_examples=60, deadline=None)
@given(name=HOSTILE_NAMES | st.sampled_from(_LINKS_OF_MARKDOWN))
def test_cfn_lint_messages_about_hostile_names_have_no_link(name: str) -> None:
    for message in _list_cfn_lint_messages(name):
        assert find_links(message) == [], message
        assert "](" not in message
        assert message.isprintable()


def _replace_console(out: Output, *, is_terminal: bool) -> Console:
    """Let the output print to a console of the test. Return the console."""
    console = Console(
        force_terminal=is_terminal,
        color_system=None,
        width=10_000,
        highlight=False,
        markup=False,
        emoji=False,
    )
    out.__dict__["_people_console"] = console
    return console


@settings(max_examples=60)
@given(name=HOSTILE_NAMES)
@example(name="www.evil.com")
def test_error_line_with_a_hostile_name_is_one_printable_line_without_a_link(name: str) -> None:
    out = Output(as_json=False)
    with out.progress.capture() as capture:
        out.report_error(CommandError(f"there is no queue {name}"))
    (line, end) = capture.get().split("\n")
    assert line.startswith("mendq: there is no queue")
    assert line.isprintable()
    assert find_terminal_links(line) == []
    assert end == ""


def test_error_line_keeps_the_addresses_of_queues_and_of_the_local_account() -> None:
    out = Output(as_json=False)
    message = "see https://sqs.eu-west-1.amazonaws.com/123456789012/orders at http://localhost:4566"
    with out.progress.capture() as capture:
        out.report_error(CommandError(message))
    assert capture.get() == f"mendq: {message}\n"


def _make_diff(comment: str, old_value: str, new_value: str) -> list[str]:
    """Return the diff of a template that has a comment next to the changed value."""
    comment_line = f"  Comment: {json.dumps(comment)}\n"
    before = f"{comment_line}  Delay: {json.dumps(old_value)}\n"
    after = f"{comment_line}  Delay: {json.dumps(new_value)}\n"
    return make_diff("template.yaml", before, after)


@settings(max_examples=60)
@given(names=st.tuples(HOSTILE_NAMES, HOSTILE_NAMES, HOSTILE_NAMES))
@example(names=("https://evil.com", "1", "2"))
@example(names=("1", "https://evil.com", "2"))
@example(names=("1", "2", "www.evil.com"))
@example(names=("1", "2", "3"))
def test_patch_diff_at_a_terminal_has_no_link_and_is_whole_or_not_shown(
    names: tuple[str, str, str],
) -> None:
    diff_lines = _make_diff(*names)
    out = Output(as_json=False)
    console = _replace_console(out, is_terminal=True)
    with console.capture() as capture:
        out.say_diff(diff_lines)
    printed = capture.get()
    assert find_terminal_links(printed) == []
    assert printed.startswith("(the diff is not shown") or printed.splitlines() == diff_lines


@settings(max_examples=60)
@given(names=st.tuples(HOSTILE_NAMES, HOSTILE_NAMES, HOSTILE_NAMES))
@example(names=("https://evil.com", "1", "2"))
@example(names=("1", "2", "www.evil.com"))
def test_patch_diff_in_a_pipe_adds_no_link_and_is_whole_or_not_shown(
    names: tuple[str, str, str],
) -> None:
    diff_lines = _make_diff(*names)
    out = Output(as_json=False)
    console = _replace_console(out, is_terminal=False)
    with console.capture() as capture:
        out.say_diff(diff_lines)
    printed_lines = capture.get().splitlines()
    added_lines = [line for line in diff_lines if line.startswith("+")]
    has_added_link = any(find_terminal_links(line) for line in added_lines)
    may_have_link = any(re.search(r"www\.|:", line, re.IGNORECASE) for line in added_lines)
    is_shown = printed_lines == diff_lines
    assert is_shown or printed_lines[0].startswith("(the diff is not shown")
    assert not (has_added_link and is_shown)
    assert is_shown or may_have_link


@settings(max_examples=60)
@given(name=HOSTILE_NAMES)
def test_terminal_lines_with_hostile_names_have_no_link_and_no_control_character(name: str) -> None:
    out = Output(as_json=False)
    console = out._people_console
    with console.capture() as capture:
        out.say(name)
        out.say_indented(name)
        out.say_unwrapped(name)
        out.say_labelled([("label", "", name)])
        out.say_command(f"mendq dlq {shlex.quote(name)}")
        out.say_template_line(f"  Name: {name}")
        out.say_table_line(f"{name}  1 s")
    printed = capture.get()
    assert find_terminal_links(printed) == []
    assert all(line.isprintable() for line in printed.split("\n"))


def test_break_links_leaves_a_domain_of_aws_whole_only_without_a_path() -> None:
    assert break_links("s3.amazonaws.com/evil") == "s3[.]amazonaws[.]com/evil"
    assert break_links("a sns.amazonaws.com.") == "a sns.amazonaws.com."
    bucket = "x:role/aws-service-role/s3.amazonaws.com/evil-bucket/login"
    assert "s3.amazonaws.com/" not in break_links(bucket)
    assert "s3.amazonaws.com/" not in break_links("sqs.s3.amazonaws.com/evil")


@pytest.mark.parametrize("host", ["localhost:x@evil.com", "127.0.0.1:1@192.0.2.1", "localhost@b"])
def test_command_with_an_address_of_another_host_after_localhost_has_a_link(host: str) -> None:
    assert has_link(f"curl http://{host}/a")
    assert not has_link("curl http://localhost:4566")


QUEUE_ADDRESS = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"


@pytest.mark.parametrize(
    "address",
    [
        *(f"{QUEUE_ADDRESS}{end}" for end in ("?Action=DeleteQueue", "#x", "%2f..", ";b", "'?a=1")),
        *(
            f"http://localhost:3000{end}"
            for end in ("/admin?delete=1", "/admin", "?a", "/?a", "#a")
        ),
        *("https://127.0.0.1/x", "http://localhost'/x", "HTTP://LOCALHOST/x"),
    ],
)
def test_address_of_a_queue_or_of_localhost_with_a_query_or_path_is_no_link(address: str) -> None:
    for text in (address, f"see {address} now"):
        assert "://" not in to_terminal_text(text)
        assert "://" not in to_plain_text(text)
    command = f"curl {shlex.quote(address)}"
    for shown in (command_or_note(command), terminal_command_or_note(command)):
        assert "://" not in shown
        assert shlex.split(shown) == shlex.split(command)


@pytest.mark.parametrize("host", ["sqs.s3.amazonaws.com", "sqs.s3-eu-west-1.amazonaws.com"])
def test_address_of_a_bucket_named_sqs_is_broken_though_it_has_the_form_of_a_queues(
    host: str,
) -> None:
    """Anybody may own that bucket."""
    address = f"https://{host}/123456789012/orders"
    assert "://" not in to_terminal_text(address)
    assert has_link(f"curl {address}")


@pytest.mark.parametrize("address", [QUEUE_ADDRESS, f"{QUEUE_ADDRESS}.fifo", "http://localhost:1/"])
def test_address_of_a_queue_or_of_localhost_stays_before_a_blank_or_closing_mark(
    address: str,
) -> None:
    for text in (address, f"see {address} now", f"({address})", f"'{address}', and"):
        assert to_terminal_text(text) == text
    command = f"curl '{address}' -v"
    assert (command_or_note(command), terminal_command_or_note(command)) == (command, command)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a":', "[" * 100_000])
def test_json_that_repeats_a_key_or_cannot_be_read_is_shown_raw_in_one_line(text: str) -> None:
    assert list_json_lines(text) == [json.dumps(text)]
    assert list_json_lines('{"a": 1}') == ["{", '  "a": 1', "}"]

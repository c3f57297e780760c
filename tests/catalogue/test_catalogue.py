"""What every entry of the catalogue has to keep; the cases come from the entries themselves."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import botocore.session
import pytest
from botocore import xform_name
from hypothesis import given
from hypothesis import strategies as st

from mendq import catalogue
from mendq.catalogue import CATALOGUE, examples, match
from mendq.catalogue.symptom import NOT_FOUND, Caught, Detected, NearMiss, Symptom
from mendq.model.case import State
from mendq.model.facts import Facts, Need
from mendq.model.failed_call import KNOWN_CODES, FailedCall, read
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.steps import STEPS
from mendq.scan.scan import OF_A_PLAN, OF_A_SUSPECT

ROOT = Path(__file__).parents[2]
CAUGHT = [(entry, each) for entry in CATALOGUE for each in entry.caught]
DETECTED = [(entry, each) for entry in CATALOGUE for each in entry.detected]
NEAR_MISSES = [(entry, each) for entry in CATALOGUE for each in entry.near_misses]
EXAMPLES: list[tuple[Symptom, Caught | Detected]] = [*CAUGHT, *DETECTED]
FIXED = [(entry, each) for entry, each in EXAMPLES if each.plan]
NOTIFIED = [(entry, each) for entry, each in EXAMPLES if each.code]
MEASURING = [
    entry
    for entry in CATALOGUE
    if entry.detection is not None and Need.MEASUREMENTS in entry.detection.needs
]
# What is wrong with a configuration may show without measuring.
MEASURED_ALONE = [entry for entry in MEASURING if not entry.detection.of_configuration]  # type: ignore[union-attr]


def _title(value: object) -> str:
    if isinstance(value, Caught | Detected | NearMiss):
        return value.title
    return value.name if isinstance(value, Symptom) else str(value)


def answer_to(entry: Symptom, facts: Facts | None) -> Plan | Refusal:
    assert entry.plan is not None
    assert facts is not None
    return entry.plan(facts, Limits())


def found_in(entry: Symptom, facts: Facts | None) -> Facts | None:
    """The facts with what the entry's detection found in them; None where it found nothing."""
    assert entry.detection is not None
    assert facts is not None
    found = entry.detection.detect(facts)
    return None if found is None else replace(facts, found=found.because)


def facts_of(entry: Symptom, example: Caught | Detected) -> Facts:
    """What the example's plan is made of."""
    detected = isinstance(example, Detected)
    facts = found_in(entry, example.facts) if detected else example.facts
    assert facts is not None
    return facts


def test_every_file_is_an_entry_and_every_entry_a_file() -> None:
    folder = Path(catalogue.__file__).parent
    files = {each.stem for each in folder.glob("[!_]*.py")} - {"__init__", "examples", "symptom"}
    assert files == {entry.name for entry in CATALOGUE}


def test_names_and_titles_stand_once() -> None:
    names = [entry.name for entry in CATALOGUE]
    assert len(names) == len(set(names))
    for entry in CATALOGUE:
        titles = [each.title for each in entry.caught]
        titles += [each.title for each in entry.detected]
        titles += [each.title for each in entry.near_misses]
        assert len(titles) == len(set(titles))


def test_every_runbook_has_an_entry_and_every_entry_a_runbook() -> None:
    """A symptom's runbook is known by its title; alarms have theirs in the same folder."""
    written = {
        each.relative_to(ROOT).as_posix()
        for each in (ROOT / "docs" / "runbooks").glob("*.md")
        if each.read_text().startswith(f"# {each.stem}: ")
    }
    assert written == {entry.runbook for entry in CATALOGUE}


@pytest.mark.parametrize("entry", CATALOGUE, ids=_title)
def test_an_entry_has_examples_of_both_kinds(entry: Symptom) -> None:
    assert entry.seen_as or entry.detection
    assert (len(entry.caught) >= 2) if entry.seen_as else not entry.caught
    assert (len(entry.detected) >= 2) if entry.detection else not entry.detected
    assert len(entry.near_misses) >= 3
    assert entry.aws_page.startswith("https://docs.aws.amazon.com/")
    assert entry.sentence.endswith(".")
    assert entry.plan_in_words.endswith(".")


@pytest.mark.parametrize("entry", CATALOGUE, ids=_title)
def test_an_entry_fixes_or_pages_or_is_counted(entry: Symptom) -> None:
    assert (entry.autonomy is None) == (entry.steps == ())
    assert entry.plan is not None or entry.steps == ()
    for caught in entry.caught:
        announced = (bool(caught.plan), caught.code is not None, caught.facts is None)
        assert sum(announced) == 1, caught.title
        assert caught.facts is None or entry.plan is not None
    for detected in entry.detected:
        assert bool(detected.plan) + bool(detected.code) == (entry.plan is not None), detected.title
    plans = [each.plan for each in entry.caught] + [each.plan for each in entry.detected]
    assert any(plans) == (entry.steps != ())


@pytest.mark.parametrize("entry", CATALOGUE, ids=_title)
def test_what_an_entry_sees_are_codes_that_exist(entry: Symptom) -> None:
    assert {way.error_code for way in entry.seen_as} <= KNOWN_CODES


@pytest.mark.parametrize(("entry", "near_miss"), NEAR_MISSES, ids=_title)
def test_a_near_miss_is_not_touched(entry: Symptom, near_miss: NearMiss) -> None:
    assert near_miss.call or near_miss.facts
    if near_miss.call:
        assert match(near_miss.call) is not entry
    if near_miss.code == NOT_FOUND:
        assert found_in(entry, near_miss.facts) is None
    elif near_miss.facts:
        refusal = answer_to(entry, near_miss.facts)
        assert isinstance(refusal, Refusal)
        assert refusal.code == near_miss.code
        assert refusal.reason


@pytest.mark.parametrize("entry", [each for each in CATALOGUE if each.detection], ids=_title)
def test_what_is_detected_has_three_near_misses(entry: Symptom) -> None:
    """Beside those of its failed calls."""
    assert sum(each.code == NOT_FOUND for each in entry.near_misses) >= 3


@pytest.mark.parametrize(("entry", "detected"), DETECTED, ids=_title)
def test_what_is_detected_is_said_in_a_sentence(entry: Symptom, detected: Detected) -> None:
    facts = found_in(entry, detected.facts)
    assert facts is not None
    assert facts.found
    assert len(facts.found) <= 300
    assert facts.found == facts.found.strip(" .")
    assert not facts.found.startswith("of "), "people read it behind `because`"
    assert "(s)" not in facts.found
    assert not re.search(r"\b1 [a-z]+s\b", facts.found)


@pytest.mark.parametrize(("entry", "detected"), DETECTED, ids=_title)
def test_what_is_detected_was_a_suspect_before_it_was_measured(
    entry: Symptom, detected: Detected
) -> None:
    """Else nobody would have measured it; a configuration's fault may need no measuring."""
    assert entry.detection is not None
    unmeasured = replace(detected.facts, measured=None, move_task_running=False)
    shows = entry.detection.of_configuration and entry.detection.detect(unmeasured)
    assert shows or entry.detection.suspects(unmeasured)


@pytest.mark.parametrize(("entry", "detected"), DETECTED, ids=_title)
def test_a_detection_finds_it_in_what_its_needs_gather(entry: Symptom, detected: Detected) -> None:
    """What it does not ask for is not there in a scan, where examples would have it."""
    assert entry.detection is not None
    gathered = detected.facts.asked_only({*OF_A_SUSPECT, *entry.detection.needs} - OF_A_PLAN)
    found = found_in(entry, gathered)
    assert found is not None
    assert found.found == facts_of(entry, detected).found


@pytest.mark.parametrize(
    ("entry", "near_miss"), [each for each in NEAR_MISSES if each[1].code == NOT_FOUND], ids=_title
)
def test_a_detection_misses_it_in_what_its_needs_gather(
    entry: Symptom, near_miss: NearMiss
) -> None:
    assert entry.detection is not None
    assert near_miss.facts is not None
    needs = {*OF_A_SUSPECT, *entry.detection.needs} - OF_A_PLAN
    assert found_in(entry, near_miss.facts.asked_only(needs)) is None


def _is_taken_up(entry: Symptom, detected: Detected, open_symptom: str) -> bool:
    """Whether a case would be opened about it, while one of the other symptom is open."""
    facts = found_in(entry, replace(detected.facts, open_symptoms=frozenset({open_symptom})))
    if facts is None or entry.plan is None:
        return facts is not None
    answer = answer_to(entry, facts)
    return isinstance(answer, Plan) or answer.becomes is not None


@pytest.mark.parametrize("entry", [each for each in CATALOGUE if each.detection], ids=_title)
def test_an_entry_gives_way_to_the_cases_that_it_says(entry: Symptom) -> None:
    """A scan weighs its findings by what the entry says; the entry itself by open cases."""
    for other in CATALOGUE:
        taken_up = [_is_taken_up(entry, each, other.name) for each in entry.detected]
        assert all(taken_up) != (other.name in entry.gives_way_to), other.name
    assert entry.gives_way_to <= {each.name for each in CATALOGUE}
    assert entry.name not in entry.gives_way_to


@pytest.mark.parametrize(("entry", "detected"), DETECTED, ids=_title)
def test_heal_finds_and_plans_the_same_in_what_all_needs_gather(
    entry: Symptom, detected: Detected
) -> None:
    gathered = found_in(entry, detected.facts.asked_only(entry.every_need))
    assert gathered is not None
    if entry.plan:
        assert answer_to(entry, gathered) == answer_to(entry, facts_of(entry, detected))


@pytest.mark.parametrize("entry", MEASURED_ALONE, ids=_title)
def test_without_measurements_nothing_is_detected(entry: Symptom) -> None:
    for each in entry.detected:
        assert found_in(entry, replace(each.facts, measured=None)) is None


@pytest.mark.parametrize(("entry", "caught"), FIXED, ids=_title)
def test_a_caught_example_gets_the_plan_it_states(
    entry: Symptom, caught: Caught | Detected
) -> None:
    plan = answer_to(entry, facts_of(entry, caught))
    assert isinstance(plan, Plan)
    assert plan.steps == caught.plan
    assert plan.reason
    for step in (*plan.steps, *plan.proposal):
        assert isinstance(step, entry.steps)
        assert step.out_of_bounds() is None
    attributes = [step.attribute for step in plan.steps]
    assert len(attributes) == len(set(attributes))


@pytest.mark.parametrize(("entry", "caught"), FIXED, ids=_title)
def test_undoing_a_plan_brings_back_what_stood_there(
    entry: Symptom, caught: Caught | Detected
) -> None:
    assert caught.facts is not None
    stood = {step.attribute: step.standing_in(caught.facts.attributes) for step in caught.plan}
    stands = {step.attribute: str(step.after) for step in caught.plan}
    for step in reversed([step.inverse() for step in caught.plan]):
        assert stands[step.attribute] == str(step.before)
        stands[step.attribute] = str(step.after)
    assert stands == stood


@pytest.mark.parametrize(("entry", "caught"), NOTIFIED, ids=_title)
def test_a_caught_example_that_pages_says_why_and_what_to_run(
    entry: Symptom, caught: Caught | Detected
) -> None:
    refusal = answer_to(entry, facts_of(entry, caught))
    assert isinstance(refusal, Refusal)
    assert refusal.code == caught.code
    assert refusal.becomes is State.ESCALATED
    assert len(refusal.reason) > len(refusal.code)
    _assert_exists(refusal.next_command)


def _assert_exists(command: str) -> None:
    """The `aws` command of a page, against the model of the service that it calls."""
    program, service, operation, *words = shlex.split(command)
    assert program == "aws"
    model = botocore.session.get_session().get_service_model(service)
    operations = {xform_name(each, "-"): each for each in model.operation_names}
    shape = model.operation_model(operations[operation]).input_shape
    members = {xform_name(each, "-") for each in shape.members} if shape else set()
    options = {word[2:] for word in words if word.startswith("--")}
    assert options <= members | {"region", "query", "output"}
    required = {xform_name(each, "-") for each in shape.required_members} if shape else set()
    assert required <= options


# What many queues at once point at; the others have nothing of their own to say.
MASS_ADVICE = {
    "kms_throttled": "KMS's request quota",
    "kms_denied": "who changed its policy",
    "kms_key_unusable": "who disabled or deletes it",
    "access_denied": "a role, a policy, an organization's",
    "queue_missing": "what deleted them all",
    "consumer_throttled": "concurrency in this region is used up",
}


@pytest.mark.parametrize("entry", CATALOGUE, ids=_title)
def test_what_many_queues_at_once_are_said(entry: Symptom) -> None:
    assert MASS_ADVICE.get(entry.name, "in common: a deployment, a key") in entry.mass_advice
    assert len(entry.mass_advice) < 600
    command = entry.mass_look(examples.QUEUE_ARN)
    if command:
        _assert_exists(command)


SHOWN = {
    "access_denied": {"Policy"},
    "kms_throttled": {"KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds"},
    "kms_denied": {"KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds"},
    "kms_key_unusable": {"KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds"},
    "message_too_long": {"MaximumMessageSize", "RedrivePolicy"},
    "dlq_retention_too_short": {"MessageRetentionPeriod"},
    "dlq_missing": {"RedrivePolicy"},
    "dlq_source_not_allowed": {"RedriveAllowPolicy"},
    "dlq_messages_arriving": {"ApproximateNumberOfMessages", "RedriveAllowPolicy"},
    "dlq_messages_waiting": {"ApproximateNumberOfMessages", "MessageRetentionPeriod"},
    "service_cannot_use_key": {"Policy", "KmsMasterKeyId"},
}


@pytest.mark.parametrize("entry", CATALOGUE, ids=_title)
def test_what_its_page_shows_of_the_queue_is_what_sqs_tells(entry: Symptom) -> None:
    assert set(entry.shows) == SHOWN.get(entry.name, set())
    sqs = botocore.session.get_session().get_service_model("sqs")
    assert set(entry.shows) <= set(sqs.shape_for("QueueAttributeName").metadata["enum"])


def test_a_visibility_alone_outlives_its_change() -> None:
    """Messages in flight keep theirs: their failures say nothing of the new one."""
    assert [each.name for each in CATALOGUE if each.outlives_the_timeout] == [
        "visibility_timeout_too_short"
    ]


@pytest.mark.parametrize(("entry", "caught"), CAUGHT, ids=_title)
def test_one_entry_alone_claims_an_example(entry: Symptom, caught: Caught) -> None:
    """The last one takes what the others leave of its codes."""
    assert match(caught.call) is entry
    claiming = [each for each in CATALOGUE if each.matches(caught.call) and each.plan]
    assert claiming == ([entry] if entry.plan else [])


@pytest.mark.parametrize(("entry", "caught"), CAUGHT, ids=_title)
def test_an_example_means_the_same_as_a_record_of_cloudtrail(
    entry: Symptom, caught: Caught
) -> None:
    call = read(json.dumps(_record(caught.call)))
    assert isinstance(call, FailedCall)
    assert match(call) is entry


def _record(call: FailedCall) -> dict[str, object]:
    """The example as CloudTrail would spell it; made up, no such record has been seen."""
    return {
        "eventSource": "sqs.amazonaws.com",
        "eventID": call.event_id,
        "eventTime": call.event_time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "eventName": call.event_name,
        "awsRegion": call.region,
        "recipientAccountId": call.account,
        "errorCode": call.raw_error_code,
        "errorMessage": call.error_message,
        "userIdentity": {"type": "IAMUser", "arn": call.principal_arn},
        "resources": [{"type": "AWS::SQS::Queue", "ARN": call.queue_arn}],
    }


@pytest.mark.parametrize("entry", [entry for entry in CATALOGUE if entry.plan], ids=_title)
def test_two_plans_of_the_same_facts_are_the_same(entry: Symptom) -> None:
    for facts in (facts_of(each, example) for each, example in EXAMPLES if each is entry):
        assert answer_to(entry, facts) == answer_to(entry, facts)


def test_every_step_has_an_iam_action_and_an_entry() -> None:
    assert {step for entry in CATALOGUE for step in entry.steps} == set(STEPS)
    assert all(step.iam_action.partition(":")[2] for step in STEPS)


CODES = st.sampled_from(sorted(KNOWN_CODES))
EVENTS = st.sampled_from(
    sorted({way for entry in CATALOGUE for seen in entry.seen_as for way in seen.event_names or ()})
)


@given(EVENTS | st.text(max_size=40), CODES | st.text(max_size=40), st.text(max_size=1_200))
def test_no_text_makes_match_raise(event_name: str, code: str, message: str) -> None:
    symptom = match(examples.failed_call(event_name, code, message))
    assert symptom is None or symptom in CATALOGUE


REASONS = (
    ("ReceiptHandle", "The receipt handle has expired."),
    ("ReceiptHandle", "Message does not exist or is not available for visibility timeout change."),
    ("WaitTimeSeconds", "Must be >= 0 and <= 20, if provided."),
    ("Label", "Already exists."),
    ("Label", "can't find label."),
)
ENDINGS = [f" for parameter {name} is invalid. Reason: {reason}" for name, reason in REASONS]
FORGED = [
    *(f"Value x{ending}" for ending in ENDINGS),
    *(each.call.error_message for entry in CATALOGUE for each in entry.caught),
]


TRAFFIC = ("ChangeMessageVisibility", "DeleteMessage", "ReceiveMessage", "SendMessage")


@pytest.mark.parametrize("event_name", TRAFFIC)
@pytest.mark.parametrize("ending", ENDINGS)
def test_no_sentence_of_sqs_s_in_the_middle_decides(event_name: str, ending: str) -> None:
    for forged in FORGED:
        _assert_harmless(event_name, forged, ending)


@given(
    st.sampled_from(TRAFFIC),
    st.sampled_from(ENDINGS),
    st.lists(st.text(max_size=60) | st.sampled_from(FORGED), max_size=3).map("".join),
)
def test_the_caller_s_text_in_the_middle_never_decides(
    event_name: str, ending: str, middle: str
) -> None:
    _assert_harmless(event_name, middle, ending)


def _assert_harmless(event_name: str, middle: str, ending: str) -> None:
    """Whatever it says, the label is that of harmless text; or the message may be cut."""
    code = "InvalidParameterValue"
    message = f"Value {middle}{ending}"
    harmless = match(examples.failed_call(event_name, code, f"Value AQEB{ending}"))
    labelled = match(examples.failed_call(event_name, code, message))
    if len(message.encode()) < 1_024:
        assert labelled is harmless
    else:
        assert labelled is not None
        assert labelled.plan is None

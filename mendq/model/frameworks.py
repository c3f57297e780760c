"""The consumer frameworks that Mendq knows, and how it recognizes which one reads a queue.

`FRAMEWORKS` is one table: to add a framework, add an entry. Each entry says how the framework is
recognized, and what it does that changes how a queue must be judged:

- Some send a visibility timeout with each receive, so the queue's own is not in force.
- Some write attributes of the queue when they start, so a change does not last.
- Some move failures to an error queue or delete them, or retry with copies. Then a DLQ stays empty
  whatever happens.
- Some count the tries themselves, so `maxReceiveCount` must not end them earlier.

The tag `mendq:consumer` settles which framework reads a queue. Otherwise Mendq guesses by the
queue's name, attributes and tags, and by user agents, all of which other people choose. A guess is
called one, and never makes Mendq change more than it would without it.

The facts were read in the frameworks' public source and documentation. They are defaults, which a
consumer can override.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mendq.model.tags import QueueTag, TagValueKind

# The words of the tag that name no framework.
ERROR_QUEUE_WORD = "error-queue"
_LAMBDA_WORD = "lambda"
_OTHER_WORD = "other"
# Longer texts are not searched: another person wrote them.
_MOST_TEXT_LENGTH = 256
# Keys of tags that often name the program that uses a queue, in lower case.
_PROGRAM_TAG_KEYS = frozenset(
    {
        *("app", "application", "component", "consumer", "framework", "service", "software"),
        "app.kubernetes.io/name",
    }
)


@dataclass(frozen=True, kw_only=True)
class Framework:
    """A consumer framework, with its defaults.

    Attributes:
        word: Its value in the tag `mendq:consumer`, which is also the word that guesses look for.
        name: Its name, for people.
        timeout_option: Its option for the visibility timeout, for people. Empty if the queue's
            attribute is in force.
        queue_name_pattern: A pattern of queue names that only this framework makes.
        is_everyday_word: True if a queue may be named by its word for another reason.
        attributes: Attributes that the framework's installer gives to a queue.
        sending_service: The service that the queue's policy admits then; empty for any policy.
        own_timeout_seconds: The visibility timeout that it sends with each receive; None if it
            sends none.
        written_attributes: The queue attributes that it writes each time it starts.
        moves_failures: Where it puts messages that failed, for people; empty if it leaves them to
            the DLQ.
        retries_with_copies: True if a retry is a new message, and the failed one is deleted.
        own_most_tries: The number of tries after which it moves a message itself; None if it never
            does. A `maxReceiveCount` that is not above it takes messages away before.
    """

    word: str
    name: str
    timeout_option: str = ""
    queue_name_pattern: str = ""
    is_everyday_word: bool = False
    attributes: Mapping[str, str] | None = None
    sending_service: str = ""
    own_timeout_seconds: int | None = None
    written_attributes: frozenset[str] = frozenset()
    moves_failures: str = ""
    retries_with_copies: bool = False
    own_most_tries: int | None = None

    @property
    def leaves_dlq_empty(self) -> bool:
        """True if failed messages do not reach a DLQ, so that an empty DLQ proves nothing."""
        return bool(self.moves_failures) or self.retries_with_copies


FRAMEWORKS: tuple[Framework, ...] = (
    Framework(
        word="celery",
        name="Celery",
        queue_name_pattern=r".*celery-pidbox|celery(?:[-_].*)?",
        retries_with_copies=True,
    ),
    Framework(
        word="dramatiq",
        name="dramatiq_sqs",
        timeout_option="visibility_timeout of SQSBroker",
        own_timeout_seconds=43_200,
        moves_failures="the queue's namesake with _dlq, if it is switched on",
        retries_with_copies=True,
    ),
    Framework(
        word="laravel",
        name="Laravel",
        moves_failures="the table failed_jobs",
    ),
    Framework(
        word="bref",
        name="Bref",
        moves_failures="the table failed_jobs",
        retries_with_copies=True,
    ),
    Framework(
        word="symfony",
        name="Symfony Messenger",
        moves_failures="the failure transport, if one is set",
        retries_with_copies=True,
    ),
    Framework(word="shoryuken", name="Shoryuken"),
    Framework(word="spring", name="Spring Cloud AWS", is_everyday_word=True),
    Framework(word="sqs-consumer", name="sqs-consumer"),
    Framework(
        word="nservicebus",
        name="NServiceBus",
        queue_name_pattern=r".*-delay\.fifo",
        moves_failures="the queue named error",
        retries_with_copies=True,
        own_most_tries=6,
    ),
    Framework(
        word="masstransit",
        name="MassTransit",
        queue_name_pattern=r".+_(?:error|skipped)(?:\.fifo)?",
        moves_failures="the queue's namesakes with _error and _skipped",
    ),
    Framework(
        word="rebus",
        name="Rebus",
        timeout_option="MessageLeaseDuration of AmazonSqsTransportOptions",
        written_attributes=frozenset({"VisibilityTimeout"}),
        moves_failures="the queue named error",
        own_most_tries=5,
    ),
    Framework(
        word="aws-messaging",
        name="AWS.Messaging",
        timeout_option="VisibilityTimeout of the SQS message poller",
        own_timeout_seconds=30,
    ),
    Framework(word="justsaying", name="JustSaying"),
    Framework(word="watermill", name="Watermill"),
    Framework(word="gocloud", name="Go CDK pubsub"),
    Framework(word="broadway", name="Broadway", is_everyday_word=True),
    Framework(
        word="camel",
        name="Apache Camel",
        is_everyday_word=True,
        timeout_option="visibilityTimeout of the aws2-sqs endpoint",
        written_attributes=frozenset(
            {"VisibilityTimeout", "MessageRetentionPeriod", "RedrivePolicy"}
        ),
    ),
    Framework(
        word="filebeat",
        name="Filebeat",
        timeout_option="visibility_timeout of the aws-s3 input",
        own_timeout_seconds=300,
        moves_failures="nowhere: it deletes a message at the fifth receive",
    ),
    Framework(
        word="vector",
        name="Vector",
        is_everyday_word=True,
        timeout_option="sqs.visibility_timeout_secs of the aws_s3 source",
        own_timeout_seconds=300,
    ),
    Framework(word="fluentd", name="Fluentd"),
    Framework(
        word="karpenter",
        name="Karpenter or AWS Node Termination Handler",
        timeout_option="no option: it sends 20 s with each receive",
        attributes={"MessageRetentionPeriod": "300"},
        sending_service="events.amazonaws.com",
        own_timeout_seconds=20,
    ),
    Framework(
        word="databricks",
        name="Databricks Auto Loader",
        queue_name_pattern=r"databricks-auto-ingest.*",
    ),
)
FRAMEWORK_BY_WORD = {framework.word: framework for framework in FRAMEWORKS}

CONSUMER_TAG = QueueTag(
    key="mendq:consumer",
    values=TagValueKind.WORD,
    words=(*sorted(FRAMEWORK_BY_WORD), _LAMBDA_WORD, ERROR_QUEUE_WORD, _OTHER_WORD),
    meaning="The framework that reads the queue, which Mendq otherwise guesses. `error-queue`: "
    "software moves messages that failed into this queue.",
)


@dataclass(frozen=True)
class RecognizedConsumer:
    """The framework that reads a queue.

    Attributes:
        framework: The framework.
        is_guess: True unless the tag `mendq:consumer` names it.
    """

    framework: Framework
    is_guess: bool

    def describe(self) -> str:
        """Return who reads the queue, as the beginning of a sentence."""
        if not self.is_guess:
            return f"{self.framework.name} reads the queue (its tag says so)"
        return (
            f"{self.framework.name} seems to read the queue (a guess: the tag {CONSUMER_TAG.key} "
            "settles it)"
        )


def recognize_consumer(
    queue_name: str,
    attributes: Mapping[str, str],
    tags: Mapping[str, str],
    user_agents: Iterable[str] = (),
) -> RecognizedConsumer | None:
    """Return the framework that reads the queue; None if it is not known.

    The result is None too if the facts suggest several frameworks.

    Args:
        queue_name: The queue's name.
        attributes: The queue's attributes.
        tags: The queue's tags. The tag `mendq:consumer` decides alone.
        user_agents: The programs that received from the queue.
    """
    if CONSUMER_TAG.key in tags:
        named_framework = FRAMEWORK_BY_WORD.get(tags[CONSUMER_TAG.key])
        return RecognizedConsumer(named_framework, is_guess=False) if named_framework else None
    program_text = " ".join(map(_join_words, [*_list_program_tags(tags), *user_agents]))
    name_text = _join_words(queue_name)
    suggested_frameworks = []
    for framework in FRAMEWORKS:
        searched_text = program_text if framework.is_everyday_word else program_text + name_text
        if (
            f"-{framework.word}-" in searched_text
            or re.fullmatch(framework.queue_name_pattern or "(?!)", queue_name)
            or _has_attributes(framework, attributes)
        ):
            suggested_frameworks.append(framework)
    if len(suggested_frameworks) != 1:
        return None
    return RecognizedConsumer(suggested_frameworks[0], is_guess=True)


def _list_program_tags(tags: Mapping[str, str]) -> list[str]:
    """Return the values of the tags that often name the program."""
    return [value for key, value in tags.items() if key.lower() in _PROGRAM_TAG_KEYS]


def _join_words(text: str) -> str:
    """Return the words of a text in lower case, each between hyphens.

    Words in camel case are returned joined and apart, because `NServiceBus` is one word and
    `DramatiqOrders` are two.
    """
    short_text = text[:_MOST_TEXT_LENGTH]
    joined_words = re.findall(r"[a-z0-9]+", short_text.lower())
    return "-" + "-".join([*joined_words, "", *_split_words(short_text)]) + "-"


def _split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, also those in camel case."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", text)
    return [word.lower() for word in words]


def _has_attributes(framework: Framework, attributes: Mapping[str, str]) -> bool:
    return (
        framework.attributes is not None
        and framework.attributes.items() <= attributes.items()
        and framework.sending_service in attributes.get("Policy", "")
    )


# The last word of the name of a queue into which software moves failures.
_ERROR_WORDS = frozenset(
    {
        *("error", "errors", "failed", "failure", "failures", "poison", "skipped"),
        *("dlq", "deadletter", "deadletters", "dead letter", "dead letters"),
    }
)
_QUEUE_WORDS = frozenset({"queue", "queues", "q"})


def is_error_queue_name(queue_name: str) -> bool:
    """Return True if the name says that messages which failed come into the queue.

    Its last word does, such as in `orders_error`, `OrdersFailed` and `orders-dead-letter-queue`. A
    queue whose name only begins so, such as `error-reports`, is a queue like any other.
    """
    name_without_suffix = queue_name.removesuffix(".fifo")
    words = _split_words(name_without_suffix)
    if len(words) > 1 and words[-1] in _QUEUE_WORDS:
        words.pop()
    return words[-1:] != [] and (words[-1] in _ERROR_WORDS or " ".join(words[-2:]) in _ERROR_WORDS)

"""Why messages die, whether that is fixed, and whether they may be moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mendq.model.case import Case, State
from mendq.model.evidence import actions_allowing
from mendq.model.facts import Facts, QueueFacts, is_aws_managed
from mendq.model.lifecycle import GONE, UNMANAGED
from mendq.model.limits import Consent, Mode
from mendq.model.names import REDRIVE, role_name
from mendq.model.policy import Statement, concerns, conditions_of, fits, statements_of
from mendq.model.queue import partition_of, parts_of, why_unfit_as_dlq
from mendq.model.tags import ON, REDRIVE_PERMISSION
from mendq.notifications.text import format_count

# A case of these, at the source, says why its messages die.
CAUSES = frozenset(
    {
        "visibility_timeout_too_short",
        "consumer_failing",
        "consumer_throttled",
        "access_denied",
        "kms_denied",
        "kms_key_unusable",
        "kms_throttled",
    }
)

# Proven fixed, though the case is not over yet.
PROVEN = frozenset({State.VERIFIED, State.WATCHING})
_BY_ITSELF = "follow_up"


@dataclass(frozen=True)
class Explained:
    """The cases that may explain messages, by what has become of the cause.

    `proven` fixed; `said`: a person closed it, or it merely stayed away; `unfixed`: it still
    shows, or nobody fixed it.
    """

    proven: tuple[Case, ...] = ()
    said: tuple[Case, ...] = ()
    unfixed: tuple[Case, ...] = ()

    @property
    def fixed(self) -> tuple[Case, ...]:
        return (*self.proven, *self.said)


def explained_by(cases: Iterable[Case], first_message_at: datetime) -> Explained:
    """What explains messages of which the first came then, from the newest cases at their source.

    What was over before the first of them died did not kill it.
    """
    found: dict[str, list[Case]] = {"proven": [], "said": [], "unfixed": []}
    for case in cases:
        if case.symptom in CAUSES and (still_shows(case) or case.at >= first_message_at):
            found[_became(case)].append(case)
    return Explained(**{name: tuple(each) for name, each in found.items()})


def still_shows(case: Case) -> bool:
    """Whether it is open, and not only watched after it was proven fixed."""
    return not case.is_final and case.state not in PROVEN


def _became(case: Case) -> str:
    if case.state in PROVEN:
        return "proven"
    if case.state is not State.CLOSED or case.reason in (GONE, UNMANAGED):
        return "unfixed"
    watched = case.came_from is State.WATCHING and case.actor == _BY_ITSELF
    return "proven" if watched else "said"


REDRIVE_TAG = REDRIVE_PERMISSION.key
READ = "kms:Decrypt"
SEND = "kms:GenerateDataKey"


def redrive_is_off(tags: Mapping[str, str]) -> bool:
    """Whether the tag forbids it; a word that is not `on` is `off`, as the role's IAM has it."""
    return tags.get(REDRIVE_TAG, ON) != ON


def why_not_to_move(queue: Facts, consent: Consent) -> str | None:
    """Why Mendq may not by itself move messages out of this queue or into it."""
    mode = consent.mode_of(parts_of(queue.queue_arn).name, queue.tags)
    if mode is None:
        return f"{queue.queue_arn} is not managed"
    if mode is Mode.OBSERVE:
        return f"{queue.queue_arn} is only observed"
    if redrive_is_off(queue.tags):
        return f"the tag {REDRIVE_TAG} of {queue.queue_arn} forbids it"
    return None


def why_not_between(
    dlq: Facts, source: Facts, source_arns: Sequence[str], consent: Consent
) -> str | None:
    """Why messages may not go from the one to the other; `source_arns` are those that name it."""
    for each in (dlq, source):
        if not each.exists:
            return f"there is no queue {each.queue_arn} any more"
    if source.dlq_arn != dlq.queue_arn:
        return f"{source.queue_arn} does not name it as its DLQ any more"
    if set(source_arns) - {source.queue_arn}:
        return f"it is the DLQ of {format_count(len(source_arns), 'queue')} by now"
    if dlq.attributes.get("RedrivePolicy"):
        return "it has a DLQ itself"
    return (
        why_unfit_as_dlq(source.queue_arn, dlq.queue_arn)
        or why_not_to_move(dlq, consent)
        or why_not_to_move(source, consent)
    )


def keys_needed(who: str, dlq: QueueFacts, source: QueueFacts) -> str:
    """What `who` moves messages has to be granted on which keys; empty where it is nothing.

    The key that AWS manages grants everybody of its account who may use the queue, and SQS's own
    encryption asks nobody. A quarantine is encrypted as its source.
    """
    asked = defaultdict[str, list[str]](list)
    for queue in (dlq, source):
        if queue.kms_key is not None and not is_aws_managed(queue.kms_key):
            asked[queue.kms_key].append(queue.queue_arn)
    needed = []
    for key, arns in asked.items():
        actions = f"{READ} and {SEND}" if source.queue_arn in arns else READ
        needed.append(f"{actions} on {key} ({', '.join(parts_of(arn).name for arn in arns)})")
    where = "in the key's policy, or in its own where that lets it"
    return f"{who} needs {'; '.join(needed)}: {where}" if needed else ""


# What moves messages, of the queue that they leave and of the one that they go to.
LEAVING = actions_allowing(("DeleteMessage", "ReceiveMessage"))
ARRIVING = actions_allowing(("SendMessage",))

REMEDY = (
    "except Mendq's redrive role by the further condition "
    '"ArnNotEquals": {"aws:PrincipalArn": "ROLE_ARN"}'
)

_NETWORK = frozenset({"aws:sourceip", "aws:sourcevpc", "aws:sourcevpce", "aws:vpcsourceip"})
_IF_EXISTS = "ifexists"
_DIFFERS = frozenset({"arnnotequals", "arnnotlike", "stringnotequals", "stringnotlike"})


def keeps_out(policy: str, queue_arn: str, actions: Sequence[str]) -> str | None:
    """Why the redrive role may not do one of `actions` there, though others may; else None.

    Total: a policy that cannot be read may say anything, so it keeps out.
    """
    statements = statements_of(policy)
    if statements is None:
        return "its policy cannot be read"
    denying = next((e for e in statements if _is_for_a_network(e, queue_arn, actions)), None)
    if denying is None:
        return None
    named = f' ("{denying.sid[:64]}")' if denying.sid else ""
    return f"a statement of its policy{named} denies whoever does not come from one network"


def _is_for_a_network(statement: Statement, queue_arn: str, actions: Sequence[str]) -> bool:
    if statement.allows or not concerns(statement, actions, queue_arn):
        return False
    # Of an operator over many values, the operator itself.
    asked = [(how.rpartition(":")[2], key, what) for how, key, what in conditions_of(statement)]
    networks = any(key in _NETWORK and _holds_elsewhere(how, what) for how, key, what in asked)
    return networks and not any(_excepts_us(*condition, queue_arn) for condition in asked)


def _holds_elsewhere(how: str, what: frozenset[str]) -> bool:
    """Whether a call from no network fulfils it: what is asked to differ does, or to be missing."""
    is_missing = how == "null" and "true" in what
    return "not" in how.removesuffix(_IF_EXISTS) or _IF_EXISTS in how or is_missing


def _excepts_us(how: str, key: str, what: frozenset[str], queue_arn: str) -> bool:
    """Whether a call of the redrive role does not fulfil it, and so is not denied."""
    queue = parts_of(queue_arn)
    role = f":iam::{queue.account}:role/{role_name(REDRIVE, queue.region)}"
    arn = f"arn:{partition_of(queue.region)}{role}".lower()
    is_about_roles = how.removesuffix(_IF_EXISTS) in _DIFFERS and key == "aws:principalarn"
    return is_about_roles and any(fits(each, arn) for each in what)

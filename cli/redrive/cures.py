"""What to do where AWS lets a person not redrive: the grant, or the place, that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import ClientError

from cli.exit_codes import Stopped
from cli.redrive.route import Route
from functions.aws.errors import FactsUnavailable, QueueRefusesUs, code_of
from functions.healing.denials import RefusedBy, refused_by
from functions.healing.error_codes import canonical
from functions.healing.redrive_grants import READ, key_grants, sentence

_READS = (
    "ReceiveMessage, ChangeMessageVisibility, DeleteMessage, GetQueueAttributes, ListQueueTags, "
    "ListDeadLetterSourceQueues and ListMessageMoveTasks"
)
_PLACES = ("aws:SourceVpc", "aws:SourceVpce", "aws:SourceIp", "aws:VpcSourceIp")


def cure(code: str, message: str, route: Route) -> str:
    """What would let it through; empty where that is not known of this code (canonical)."""
    if code.startswith("Kms") or "kms:" in message:
        return _of_keys(route)
    if refused_by(code, message) is RefusedBy.RESOURCE_POLICY_DENIES and _is_of_a_place(route):
        return (
            "a queue's policy lets calls in only from certain networks: run this command there, or "
            "let that policy except the person who redrives"
        )
    if code == "AccessDenied":
        read, sent_to = route.letters.name, route.source.name
        return f"it takes {_READS} on {read}, and SendMessage on {sent_to}"
    return ""


@contextmanager
def with_cures(route: Route) -> Iterator[None]:
    """Raise Stopped where a queue could not be looked at."""
    try:
        yield
    except (FactsUnavailable, QueueRefusesUs) as error:
        cause = error.__cause__
        if not isinstance(cause, ClientError):
            raise
        code, message = code_of(cause), str(cause.response.get("Error", {}).get("Message", ""))
        said = " ".join(f"AWS refused {cause.operation_name}: {code}: {message}".split())
        helps = cure(canonical(code), message, route)
        raise Stopped(f"{said}; {helps}" if helps else said, word=code) from error


def _of_keys(route: Route) -> str:
    letters, source = route.letters, route.source
    found = key_grants(letters.arn, letters.attributes, source.arn, source.attributes)
    return sentence(found, "whoever redrives") or (
        f"whoever redrives needs {READ} on the key that the letters were encrypted with"
    )


def _is_of_a_place(route: Route) -> bool:
    policies = (each.attributes.get("Policy", "") for each in (route.letters, route.source))
    return any(place.lower() in text.lower() for text in policies for place in _PLACES)

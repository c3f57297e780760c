"""Read the state of the KMS keys that encrypt queues.

https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html
"""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import error_code_of, is_access_denied
from mendq.model.key_state import MISSING_KEY_STATE, KeyState

DESCRIBE_KEY_ACTION = "kms:DescribeKey"


def read_key_state(clients: Clients, key: str) -> KeyState:
    """Return the state of a key, named by its id, its ARN or an alias.

    If the key cannot be read, the result has the reason and no state. No error is raised, because
    an unreadable key costs one symptom of the queue and not the others.
    """
    try:
        metadata = clients.kms.describe_key(KeyId=key)["KeyMetadata"]
    except ClientError as error:
        error_code = error_code_of(error)
        if error_code == "NotFoundException":
            return KeyState(MISSING_KEY_STATE)
        if is_access_denied(error):
            return KeyState("", error=f"{DESCRIBE_KEY_ACTION} is denied")
        return KeyState("", error=f"KMS answers {error_code}")
    except BotoCoreError as error:
        is_silent = isinstance(error, HTTPClientError)
        return KeyState(
            "", error=f"KMS gives no answer ({type(error).__name__})", is_silent=is_silent
        )
    return KeyState(metadata.get("KeyState", ""), deletion_at=metadata.get("DeletionDate"))

"""What cloudsplaining and our own look at wildcards find and we mean, each with its reason.

Roles are called by their purpose, resources by what of their ARN has no account in it.
"""

from __future__ import annotations

from mendq.model.queue import QUARANTINE_SUFFIX

_ITS_STEPS = (
    "IAM cannot limit it to an attribute: it is limited to queues whose tag lets them be written "
    "or that the settings name, and the roles are split by what they write"
)
_OF_A_NEW_QUEUE = (
    "SQS calls it managing permissions because a new queue can bear a policy; ours bears none"
)
_PASSED = "the job's own role alone, and to EMR Serverless alone"
_ITS_OBJECTS = "the objects that it works on, below their prefix in our buckets"
_NOT_THERE_YET = "a queue that is not there has no tag to ask for; one that is stays as it is"
_QUARANTINE = "a quarantine bears no tag; nothing else may be called so, and messages go in alone"

_WRITES_QUEUES = {("permissions management", "sqs:SetQueueAttributes"): _ITS_STEPS}
_MAKES_QUEUES = {("permissions management", "sqs:CreateQueue"): _OF_A_NEW_QUEUE}
_READS = {("data exfiltration", "s3:GetObject"): _ITS_OBJECTS}

# By role, the kind of finding and the action.
ACKNOWLEDGED = {
    "heal": _WRITES_QUEUES,
    "attach-dlq": _WRITES_QUEUES | _MAKES_QUEUES,
    "restore-policy": _WRITES_QUEUES,
    "redrive": _WRITES_QUEUES | _MAKES_QUEUES,
    "rollback": _WRITES_QUEUES,
    "start-nightly": {("permissions management", "iam:PassRole"): _PASSED},
    "watch-nightly": _READS,
    "deliver-report": _READS,
    "nightly": _READS,
    "scan": _READS,
}
# By role, the action and the pattern: writes that no condition narrows.
WILDCARD_WRITES = {
    "attach-dlq": {("sqs:CreateQueue", "*"): _NOT_THERE_YET},
    "redrive": {
        (action, f"*{QUARANTINE_SUFFIX}{ending}"): reason
        for action, reason in (
            ("sqs:CreateQueue", _NOT_THERE_YET),
            ("sqs:SendMessage", _QUARANTINE),
        )
        for ending in ("", ".fifo")
    },
}

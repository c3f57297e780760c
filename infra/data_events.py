"""The SQS calls that CloudTrail counts as data events.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/logging-using-cloudtrail.html
"""

DATA_EVENT_NAMES = (
    "ChangeMessageVisibility",
    "ChangeMessageVisibilityBatch",
    "DeleteMessage",
    "DeleteMessageBatch",
    "GetQueueAttributes",
    "GetQueueUrl",
    "ListDeadLetterSourceQueues",
    "ListQueues",
    "ListQueueTags",
    "ReceiveMessage",
    "SendMessage",
    "SendMessageBatch",
)

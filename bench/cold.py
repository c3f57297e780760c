"""A process that is measured as a whole: `heal [BATCH]`, or `client [QUEUE_URL]`, the floor.

`heal` imports the Lambda, makes its clients, and handles the batch where one is given; `client`
makes a boto3 SQS client, and one call where a URL is given.
"""

import json
import sys
from pathlib import Path

what, *arguments = sys.argv[1:]
if what == "client":
    import boto3

    client = boto3.Session().client("sqs")
    for queue_url in arguments:
        client.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
else:
    from functions.heal import handler

    class Context:
        """What Lambda hands over."""

        aws_request_id = "cold"
        function_name = "heal"
        memory_limit_in_mb = 512
        invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:heal"

        def get_remaining_time_in_millis(self) -> int:
            """A minute."""
            return 60_000

    for path in arguments:
        answer = handler(json.loads(Path(path).read_text()), Context())
        if answer["batchItemFailures"]:
            sys.exit(f"the batch was not taken: {answer}")

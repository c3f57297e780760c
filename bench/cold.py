"""Run one cold start, in a process that is measured as a whole.

- `heal` imports the Lambda and makes its clients. `heal BATCH` also handles the batch in this file.
- `client` makes a boto3 SQS client, to compare with. `client QUEUE_URL` also calls SQS once.
"""

import json
import sys
from pathlib import Path

measured_program, *program_arguments = sys.argv[1:]
if measured_program == "client":
    import boto3

    client = boto3.Session().client("sqs")
    for queue_url in program_arguments:
        client.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
else:
    from functions.heal import handler

    class Context:
        """The context that Lambda passes to a handler."""

        aws_request_id = "cold"
        function_name = "heal"
        memory_limit_in_mb = 512
        invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:heal"

        def get_remaining_time_in_millis(self) -> int:
            """Return one minute, in milliseconds."""
            return 60_000

    for batch_file in program_arguments:
        heal_answer = handler(json.loads(Path(batch_file).read_text()), Context())
        if heal_answer["batchItemFailures"]:
            sys.exit(f"heal did not accept all messages of the batch: {heal_answer}")

"""A cold start of the heal Lambda: import, clients, and one invocation where a batch is given."""

import json
import sys
from pathlib import Path

from functions.handlers.heal import handler


class Context:
    """What Lambda hands over."""

    aws_request_id = "cold"
    function_name = "heal"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:heal"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


for path in sys.argv[1:]:
    answer = handler(json.loads(Path(path).read_text()), Context())
    if answer["batchItemFailures"]:
        sys.exit(f"the batch was not taken: {answer}")

"""Where metrics go, and how a log line is written."""

from __future__ import annotations

import json
from functools import partial

from mendq.model.names import NAMESPACE

__all__ = ["NAMESPACE", "to_line"]
# Event fields are other people's text: one line stays one line, whatever stands in it.
to_line = partial(json.dumps, ensure_ascii=True, default=str, separators=(",", ":"))

"""Trail files: their names and their content.

https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-log-file-examples.html
"""

from __future__ import annotations

import gzip
import json
import random
import string
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

UNIQUE_LETTERS = 16
_ALPHABET = string.ascii_letters + string.digits


def file_key(prefix: str, account: str, region: str, published: datetime, unique: str) -> str:
    """Where a file lies in the trail's bucket; the date is the one of publishing."""
    root = f"{prefix}/AWSLogs" if prefix else "AWSLogs"
    folder = f"{root}/{account}/CloudTrail/{region}/{published:%Y/%m/%d}"
    return f"{folder}/{account}_CloudTrail_{region}_{published:%Y%m%dT%H%MZ}_{unique}.json.gz"


def unique_part(chance: random.Random) -> str:
    """The 16 letters that tell files of one minute apart."""
    return "".join(chance.choices(_ALPHABET, k=UNIQUE_LETTERS))


def file_content(records: Sequence[Mapping[str, Any]]) -> bytes:
    """One gzipped JSON object, as CloudTrail writes it."""
    return gzip.compress(json.dumps({"Records": records}, separators=(",", ":")).encode())

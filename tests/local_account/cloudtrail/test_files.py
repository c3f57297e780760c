"""Names and content of trail files."""

from __future__ import annotations

import gzip
import json
import random
import re
from datetime import UTC, datetime

from local_account.cloudtrail.files import file_content, file_key, unique_part

PUBLISHED = datetime(2026, 11, 2, 3, 4, 59, tzinfo=UTC)


def test_a_file_lies_under_its_publish_date() -> None:
    assert file_key("", "000000000000", "us-east-1", PUBLISHED, "a" * 16) == (
        "AWSLogs/000000000000/CloudTrail/us-east-1/2026/11/02/"
        "000000000000_CloudTrail_us-east-1_20261102T0304Z_aaaaaaaaaaaaaaaa.json.gz"
    )


def test_a_prefix_comes_first() -> None:
    key = file_key("audit", "000000000000", "us-east-1", PUBLISHED, "a" * 16)
    assert key.startswith("audit/AWSLogs/")


def test_files_of_one_minute_have_names_of_their_own() -> None:
    chance = random.Random(1)  # noqa: S311
    names = {unique_part(chance) for _ in range(100)}
    assert len(names) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9]{16}", name) for name in names)


def test_the_content_is_one_gzipped_object() -> None:
    content = json.loads(gzip.decompress(file_content([{"eventID": "1"}, {"eventID": "2"}])))
    assert content == {"Records": [{"eventID": "1"}, {"eventID": "2"}]}

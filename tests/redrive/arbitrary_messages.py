"""Hypothesis strategies for SQS messages with any attributes and any body."""

from __future__ import annotations

import json
from datetime import UTC

from hypothesis import strategies as st

from mendq.redrive.messages import REDRIVE_MARK_NAME, Message, MessageAttribute

ATTRIBUTES = st.builds(
    MessageAttribute, st.sampled_from(["String", "Number", "Number.x", "Binary"]), st.text()
) | st.builds(MessageAttribute, st.just("Binary"), st.binary())
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b"]) | st.text(max_size=2), children, max_size=3)
    ),
    max_leaves=8,
)
MESSAGES = st.builds(
    Message,
    message_id=st.text(),
    body=st.text() | DOCUMENTS.map(json.dumps),
    sent_at=st.datetimes(timezones=st.just(UTC)),
    receive_count=st.integers(0, 10**9),
    attributes=st.dictionaries(st.sampled_from(["type", "n", REDRIVE_MARK_NAME]), ATTRIBUTES),
    group_id=st.text(),
)

"""A picture taken apart."""

from __future__ import annotations

from base64 import b64decode
from xml.etree import ElementTree as ET

import altair as alt

from mendq.report.drawing import as_picture

SVG = "{http://www.w3.org/2000/svg}"


def drawn(chart: alt.LayerChart) -> ET.Element:
    """The SVG of a chart, out of the address that the page gives it."""
    head, _, body = as_picture(chart).address.partition(",")
    assert head == "data:image/svg+xml;base64"
    return ET.fromstring(b64decode(body))  # noqa: S314 - our own picture

from __future__ import annotations

from mendq.report.days import WIDE, days_chart, per_day
from mendq.report.drawing import LIGHT, as_picture, as_png
from tests.report.weeks import incident, summary


def test_a_mail_s_picture_has_twice_the_pixels() -> None:
    chart = days_chart(per_day(summary([incident()])), WIDE, LIGHT)
    png, picture = as_png(chart), as_picture(chart)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (2 * picture.width, 2 * picture.height)

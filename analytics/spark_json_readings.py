"""Trail files by Spark's own JSON parser, where the native wheels are missing: slower, same rows.

The parser forgets types and stops at the end of the first value, so it is asked only what it
answers exactly, and a file that it finds odd in any way goes to analytics.trail_file.
https://spark.apache.org/docs/3.5.8/sql-data-sources-json.html
"""

from __future__ import annotations

from functools import partial
from secrets import token_hex
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf

from analytics.call_rows import call_row
from analytics.readings import CALLS, SPARK_READING
from analytics.trail_file import (
    SQS,
    Reading,
    Refused,
    gunzip,
    holds_too_many_values,
    judged,
    parsed,
    read_text,
)

_STRICT = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "corrupt",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
_SEEN = "struct<eventSource: string, errorCode: string>"
_MICROS = CALLS.replace("event_time: timestamp", "event_time: bigint")
_INFLATED = "file string, reason string, text string, odd binary"
_JUDGED = SPARK_READING.replace(CALLS, _MICROS)
# A number beyond a double is written anew as this text, and is a number no more.
_NO_NUMBER = 'Infinity"'


def readings(files: DataFrame, root: str) -> DataFrame:
    """`files` with `path` and `content`."""
    spark = files.sparkSession
    inflated = files.rdd.map(partial(_inflated, root))
    frame = spark.createDataFrame(inflated, _INFLATED, verifySchema=False)
    rows = frame.transform(_parsed, fence=token_hex(16)).rdd.map(_row)
    in_micros = spark.createDataFrame(rows, _JUDGED, verifySchema=False)
    return in_micros.withColumn("calls", sf.transform("calls", _in_time))


def _inflated(root: str, file: Row) -> tuple[str, str | None, str | None, bytes | None]:
    """(file, why it is unreadable, its text, or the bytes of what Spark would take for text)."""
    name = file["path"].removeprefix(root)
    try:
        content = gunzip(bytes(file["content"]))
        text = content.decode()
    except Refused as refused:
        return name, str(refused), None, None
    except UnicodeDecodeError:
        return name, None, None, content
    if holds_too_many_values(content) or "\0" in text[:4]:
        return name, None, None, content
    return name, None, text, None


def _parsed(files: DataFrame, fence: str) -> DataFrame:
    """Per file what can have failed; or, where anything is odd, its text.

    A value follows another or closes what is around it only where the text is no JSON: between two
    copies of `fence`, which nobody can know, it is then not alone.
    """
    guard = f'{{"fence":"{fence}"}}'
    fenced = sf.concat(sf.lit(f'{{"all":[{guard},'), "text", sf.lit(f",{guard}]}}"))
    seen = files.withColumn("seen", _json(fenced, f"array<{_SEEN}>")).withColumn(
        "plain", sf.coalesce(_is_plain("seen", fence), sf.lit(False))
    )
    failing = sf.when(sf.col("plain"), sf.exists(_records("seen"), _may_have_failed))
    raw = seen.withColumn("raw", sf.when(failing, _json(fenced, "array<string>")))
    found = raw.withColumn("found", sf.when(failing, _candidates()).otherwise(sf.array()))
    is_sure = sf.col("plain") & sf.col("found").isNotNull() & ~sf.exists("found", _is_unsure)
    return found.select(
        "file",
        "reason",
        sf.when(~is_sure, sf.col("text")).alias("text"),
        "odd",
        sf.size(_records("seen")).alias("records"),
        "found",
    )


def _json(text: Column, records: str) -> Column:
    schema = f"all array<struct<fence: string, Records: {records}>>, corrupt string"
    return sf.from_json(text, schema, _STRICT)


def _records(document: str) -> Column:
    return sf.col(f"{document}.all")[1]["Records"]


def _is_plain(document: str, fence: str) -> Column:
    """One whole object, with a list of objects alone in it."""
    everything = sf.col(f"{document}.all")
    return (
        sf.col(f"{document}.corrupt").isNull()
        & (sf.size(everything) == 3)
        & (everything[0]["fence"] == fence)
        & (everything[2]["fence"] == fence)
        & _records(document).isNotNull()
        & ~sf.exists(_records(document), lambda record: record.isNull())
    )


def _candidates() -> Column:
    """The records that are not certain to be of no interest, each with its position.

    The parsing stands where it runs once a file: Spark would run it again for each record.
    """
    numbered = sf.transform(_records("raw"), _numbered)
    return sf.filter(numbered, lambda each: _may_have_failed(_records("seen")[each["position"]]))


def _numbered(text: Column, position: Column) -> Column:
    return sf.struct(position.alias("position"), text.alias("text"))


def _may_have_failed(record: Column) -> Column:
    code = record["errorCode"]
    has_code = code.isNotNull() & (code != "")
    return record["eventSource"].isNull() | ((record["eventSource"] == SQS) & has_code)


def _is_unsure(record: Column) -> Column:
    return record["text"].isNull() | record["text"].contains(_NO_NUMBER)


def _row(file: Row) -> tuple[Any, ...]:
    reading = _reading(file)
    calls = [call_row(*call) for call in reading.calls]
    return file["file"], reading.reason, reading.records, list(reading.unreadable.items()), calls


def _reading(file: Row) -> Reading:
    if file["reason"] is not None:
        return Reading(reason=file["reason"])
    if file["odd"] is not None:
        return read_text(bytes(file["odd"]))
    if file["text"] is not None:
        return read_text(file["text"].encode())
    return judged(
        file["records"],
        [(each["position"], parsed(each["text"].encode())) for each in file["found"]],
    )


def _in_time(call: Column) -> Column:
    return call.withField("event_time", sf.timestamp_micros(call["event_time"]))

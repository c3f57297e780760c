"""What EMR does with sparkSubmitParameters and Spark here does not: archives and variables."""

from __future__ import annotations

import os

from functions.aws.start_job import spark_parameters
from local_account.emr_serverless.asked_of_spark import Asked
from tests.functions.aws.test_start_job import SETTINGS

RELEASE = {"PATH": "/bin", "PYTHONPATH": "/release/packages", "PYSPARK_PYTHON": "/release/python3"}


def test_what_start_night_asks_is_all_taken_over() -> None:
    asked = Asked.of(spark_parameters(SETTINGS))
    assert asked.archives == (("s3://code/compiled.tgz", "compiled"),)
    assert asked.variables == {"PYTHONPATH": "./compiled"}
    assert "driverEnv" not in asked.parameters
    assert "archives" not in asked.parameters
    assert "--conf spark.submit.pyFiles=s3://code/package.zip" in asked.parameters


def test_modules_are_looked_for_in_the_archive_first_and_python_stays_this_machines() -> None:
    environment = Asked.of(spark_parameters(SETTINGS)).environment(RELEASE)
    assert environment["PYTHONPATH"].split(os.pathsep) == ["./compiled", "/release/packages"]
    assert environment["PYSPARK_PYTHON"] == RELEASE["PYSPARK_PYTHON"]
    assert environment["PATH"] == "/bin"


def test_nothing_asked_changes_nothing() -> None:
    asked = Asked.of("--conf spark.app.name=a")
    assert (asked.parameters, asked.archives) == ("--conf spark.app.name=a", ())
    assert asked.environment(RELEASE) == RELEASE


def test_archives_are_several_and_one_without_a_folder_keeps_its_name() -> None:
    asked = Asked.of("--conf spark.archives=s3://a/b/one.tgz#x,s3://a/two.zip --conf c=d")
    assert asked.archives == (("s3://a/b/one.tgz", "x"), ("s3://a/two.zip", "two.zip"))
    assert asked.parameters.split() == ["--conf", "c=d"]

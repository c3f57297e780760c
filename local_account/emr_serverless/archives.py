"""The archives of runs: read from S3 by a run's own role, unpacked once."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError


class CannotRun(Exception):
    """Why a run fails before its driver starts."""


@dataclass(frozen=True)
class Archives:
    """Where they lie unpacked, for every run that names the same object."""

    folder: Path

    def unpacked(self, uri: str, s3: Any) -> Path:
        """Raise CannotRun where `s3` may not read it, or it is no archive."""
        bucket, key = place(uri)
        try:
            tag = str(s3.head_object(Bucket=bucket, Key=key)["ETag"])
            folder = self.folder / hashlib.sha256(f"{uri} {tag}".encode()).hexdigest()[:16]
            if not folder.exists():
                content = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
                with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                    archive.extractall(fresh := folder.with_name(".new"), filter="data")
                fresh.rename(folder)
        except (ClientError, tarfile.TarError) as error:
            raise CannotRun(f"{uri} cannot be unpacked: {error}") from error
        return folder


def place(uri: str) -> tuple[str, str]:
    """(bucket, key); raise CannotRun where it is no s3 URI."""
    parts = urlsplit(uri)
    if parts.scheme != "s3" or not parts.netloc:
        raise CannotRun(f"{uri} is no s3 URI")
    return parts.netloc, parts.path.lstrip("/")

"""Which templates an argument stands for; a manifest may be anybody's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mendq.lint.files import TemplateSource, list_template_sources
from mendq.lint.template import NotATemplate
from mendq.lint.terraform import MOST_PLAN_BYTES
from mendq.lint.values import DeployTarget

UNKNOWN = "aws://unknown-account/unknown-region"


def stack(file: object, environment: object = UNKNOWN) -> Any:
    named = {"environment": environment, "properties": {"templateFile": file}}
    return {"type": "aws:cloudformation:stack", **named}


def _naming(folder: object) -> Any:
    return {"type": "cdk:cloud-assembly", "properties": {"directoryName": folder}}


def assembly(folder: Path, artifacts: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder


def _all(path: Path) -> list[TemplateSource]:
    return list(list_template_sources(str(path)))


@pytest.mark.parametrize("unknown", [UNKNOWN, None, 5, "aws://12345678901/\x1b[2J"])
def test_every_stack_of_the_manifest_and_of_the_stages_in_it(
    tmp_path: Path, unknown: object
) -> None:
    out = assembly(
        tmp_path / "cdk.out",
        {
            "Shop": stack("Shop.template.json", "aws://123456789012/eu-west-1"),
            "Assets": {"type": "cdk:asset-manifest"},
            "Prod": _naming("assembly-Prod"),
        },
    )
    inner = assembly(out / "assembly-Prod", {"Inner": stack("Inner.template.json", unknown)})
    (out / "Shop.template.json").write_text("{}")
    (out / "Old.template.json").write_text("{}")
    (inner / "Inner.template.json").write_text("[]")
    outer, staged = _all(out)
    assert outer.deploy_target == DeployTarget("123456789012", "eu-west-1")
    assert staged.content == b"[]"
    assert staged.deploy_target == DeployTarget()


@pytest.mark.parametrize(
    "artifacts",
    [
        *({"A": stack(file)} for file in ("../outside.json", "/etc/passwd", "link.json", None, 5)),
        *({"A": _naming(folder)} for folder in ("..", ".", "empty", "again")),
        {"A": {"type": "cdk:cloud-assembly", "properties": "x"}},
        *({"A": "x"}, {}, [], None),
    ],
)
def test_a_manifest_that_leads_nowhere_or_outside_is_refused(
    tmp_path: Path, artifacts: object
) -> None:
    (tmp_path / "outside.json").write_text("{}")
    out = assembly(tmp_path / "cdk.out", artifacts)
    (out / "link.json").symlink_to(tmp_path / "outside.json")
    (out / "empty").mkdir()
    (out / "again").symlink_to(out)
    with pytest.raises(NotATemplate) as refused:
        _all(out)
    assert len(str(refused.value).splitlines()) == 1


def test_no_more_is_read_than_it_takes_to_say_that_it_is_too_much(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_bytes(b"#" * (MOST_PLAN_BYTES + 100))
    (only,) = _all(path)
    assert len(only.content) == MOST_PLAN_BYTES + 1

"""The template files that an argument of `mendq lint` names, also through an untrusted manifest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mendq.lint.files import TemplateSource, list_template_sources
from mendq.lint.folder import TemplateFolder, UnreadableTemplateFile
from mendq.lint.template import NotATemplate
from mendq.lint.terraform import MOST_PLAN_BYTES
from mendq.lint.values import DeployTarget
from tests.lint.builders import (
    UNKNOWN_ENVIRONMENT,
    make_nested_assembly_artifact,
    make_stack_artifact,
    write_cloud_assembly,
)


def _list_sources(path: Path) -> list[TemplateSource]:
    return list(list_template_sources(str(path)))


@pytest.mark.parametrize(
    "unknown_environment", [UNKNOWN_ENVIRONMENT, None, 5, "aws://12345678901/\x1b[2J"]
)
def test_cloud_assembly_is_read_with_nested_stages_and_each_stacks_account_and_region_if_valid(
    tmp_path: Path, unknown_environment: object
) -> None:
    out = write_cloud_assembly(
        tmp_path / "cdk.out",
        {
            "Shop": make_stack_artifact("Shop.template.json", "aws://123456789012/eu-west-1"),
            "Assets": {"type": "cdk:asset-manifest"},
            "Prod": make_nested_assembly_artifact("assembly-Prod"),
        },
    )
    inner = write_cloud_assembly(
        out / "assembly-Prod",
        {"Inner": make_stack_artifact("Inner.template.json", unknown_environment)},
    )
    (out / "Shop.template.json").write_text("{}")
    (out / "Old.template.json").write_text("{}")
    (inner / "Inner.template.json").write_text("[]")
    outer, staged = _list_sources(out)
    assert outer.deploy_target == DeployTarget("123456789012", "eu-west-1")
    assert staged.content == b"[]"
    assert staged.deploy_target == DeployTarget()


@pytest.mark.parametrize(
    "artifacts",
    [
        *(
            {"A": make_stack_artifact(file)}
            for file in ("../outside.json", "/etc/passwd", "link.json", "loop", None, 5)
        ),
        *(
            {"A": make_nested_assembly_artifact(folder)}
            for folder in ("..", ".", "empty", "circular", "loop")
        ),
        {"A": {"type": "cdk:cloud-assembly", "properties": "x"}},
        *({"A": "x"}, {}, [], None),
    ],
)
def test_cloud_assembly_manifest_that_names_no_file_inside_its_folder_is_refused_with_one_line(
    tmp_path: Path, artifacts: object
) -> None:
    (tmp_path / "outside.json").write_text("{}")
    out = write_cloud_assembly(tmp_path / "cdk.out", artifacts)
    (out / "link.json").symlink_to(tmp_path / "outside.json")
    (out / "empty").mkdir()
    (out / "circular").symlink_to(out)
    (out / "loop").symlink_to(out / "loop")
    with pytest.raises(NotATemplate) as refused:
        _list_sources(out)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("pipe_name", ["manifest.json", "Shop.template.json"])
def test_pipe_in_a_cloud_assembly_is_refused_and_not_opened(tmp_path: Path, pipe_name: str) -> None:
    artifact = make_stack_artifact("Shop.template.json", "aws://123456789012/eu-west-1")
    out = write_cloud_assembly(tmp_path / "cdk.out", {"Shop": artifact})
    (out / pipe_name).unlink(missing_ok=True)
    os.mkfifo(out / pipe_name)
    with pytest.raises(NotATemplate, match="not a regular file"):
        _list_sources(out)


def test_template_over_the_size_limit_is_read_only_one_byte_past_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_bytes(b"#" * (MOST_PLAN_BYTES + 100))
    (source,) = _list_sources(path)
    assert len(source.content) == MOST_PLAN_BYTES + 1


def test_template_that_two_stacks_name_is_read_once(tmp_path: Path) -> None:
    stack = make_stack_artifact("Shop.template.json")
    out = write_cloud_assembly(tmp_path / "cdk.out", {"First": stack, "Second": stack})
    (out / "Shop.template.json").write_text("{}")
    assert [source.content for source in _list_sources(out)] == [b"{}"]


def test_folder_gives_200_files_and_refuses_one_more(tmp_path: Path) -> None:
    for number in range(201):
        (tmp_path / f"{number}").write_text(str(number))
    folder = TemplateFolder(tmp_path)
    assert [folder.read(str(number)) for number in range(200)][199] == b"199"
    assert not folder.is_used_up
    assert folder.read("0") == b"0"
    with pytest.raises(NotATemplate, match="more than 200 other files"):
        folder.read("200")
    assert folder.is_used_up


def test_file_beside_a_template_has_at_most_4_mib(tmp_path: Path) -> None:
    folder = TemplateFolder(tmp_path)
    (tmp_path / "full").write_bytes(b" " * 4_194_304)
    (tmp_path / "fuller").write_bytes(b" " * 4_194_305)
    assert len(folder.read("full")) == 4_194_304
    with pytest.raises(UnreadableTemplateFile, match="longer than 4,194,304 bytes"):
        folder.read("fuller")
    with pytest.raises(UnreadableTemplateFile, match="not a regular file"):
        folder.read(".")
    with pytest.raises(UnreadableTemplateFile, match="in another file"):
        TemplateFolder().read("full")

"""Score `mendq lint` on templates of others: `python -m bench.outside --checkout DIR`.

`templates.yaml` and `templates_second.yaml` list public templates with the faults of their queues,
and `reports.yaml` lists trouble reports with their numbers and causes. All were labelled without
knowledge of the detections. They hold facts only: the templates themselves are in their
repositories. A template is read at DIR/OWNER+NAME/PATH, of the commit that the label names. If PATH
is a folder of Terraform files, the whole folder is read.

Only findings that are errors or warnings count: a label says nothing about TLS or encryption.

`--write` writes the score, with each miss, to docs/lint-score.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mendq.lint.decode import read_template, read_template_source
from mendq.lint.files import list_template_sources
from mendq.lint.judging import LintFinding, LintResult, LintSeverity, lint
from mendq.lint.template import NotATemplate
from mendq.lint.values import DeployTarget
from tests.prove.exact_intervals import describe_share

FOLDER = Path(__file__).parent
# The files with labelled templates, by the name that the page gives to the set.
LABEL_FILE_BY_SET: Mapping[str, str] = {
    "first set": "templates.yaml",
    "second set": "templates_second.yaml",
}
# The reason in `Score.unread` for a template that is missing in the checkout.
MISSING = "not in the checkout"
PAGE = FOLDER.parents[1] / "docs" / "lint-score.md"
_BLOCK_BEGIN = "<!-- measured: python -m bench.outside --checkout DIR --write -->\n"
_BLOCK_END = "<!-- end measured -->"
# The kinds of faults in the words of the page.
FAULT_BY_KIND: Mapping[str, str] = {
    "timeout_below_function": "visibility timeout below the function's",
    "timeout_below_six": "visibility timeout below six times the function's",
    "no_dlq": "no DLQ on a queue with a consumer",
    "no_batch_failures": "no partial batch response",
    "max_receive_low": "`maxReceiveCount` too low",
    "dlq_retention": "DLQ keeps messages no longer than its source",
    "producer_refused": "a producer is refused",
    "refused_by_aws": "AWS refuses to deploy it",
    "concurrency": "concurrency",
    "disabled": "the only consumer is disabled",
    "exposed": "anybody may use the queue",
    "contradiction": "times contradict one another",
    "filter": "a filter deletes messages",
    "dlq_wrong": "the DLQ cannot take the messages",
}
# The symptoms that name a kind of labelled fault. `refused_by_aws` has many causes.
SYMPTOMS_BY_KIND: Mapping[str, tuple[str, ...]] = {
    "timeout_below_function": ("visibility_timeout_too_short",),
    "timeout_below_six": ("visibility_timeout_too_short",),
    "no_dlq": ("dlq_missing",),
    "dlq_retention": ("dlq_retention_too_short",),
    "max_receive_low": ("max_receive_count_too_low",),
    "no_batch_failures": ("batch_failures_not_reported",),
    "producer_refused": ("producer_refused", "service_cannot_use_key"),
    "filter": ("filter_deletes_messages",),
    "concurrency": ("concurrency_too_small", "consumer_throttled"),
    "disabled": ("consumer_stopped",),
    "exposed": ("policy_is_public",),
    "dlq_wrong": ("dlq_type_mismatch", "redrive_cycle", "dlq_source_not_allowed"),
    "contradiction": ("messages_expire",),
    "refused_by_aws": ("dlq_type_mismatch", "invalid_request", "visibility_timeout_too_short"),
}
# The symptoms that name the cause of a report. Other causes do not show in a configuration.
SYMPTOMS_BY_CAUSE: Mapping[str, tuple[str, ...]] = {
    "concurrency": SYMPTOMS_BY_KIND["concurrency"],
    "visibility": SYMPTOMS_BY_KIND["timeout_below_six"],
    "poison": SYMPTOMS_BY_KIND["no_dlq"],
    "refused": SYMPTOMS_BY_KIND["timeout_below_function"],
}


@dataclass
class Score:
    """Counts of the labelled faults that lint found, and a line for each wrong answer.

    Attributes:
        labels_by_kind: The number of labelled faults of each kind.
        found_by_kind: The number of them that lint found.
        misses: A line for each fault that lint did not find.
        unlabelled: A line for each error or warning that no label has.
        unread: A line for each template that is missing or that lint refuses.
        finding_count: The number of errors and warnings, right or wrong.
    """

    labels_by_kind: Counter[str]
    found_by_kind: Counter[str]
    misses: list[str]
    unlabelled: list[str]
    unread: list[str]
    finding_count: int = 0

    def count_certain(self) -> tuple[int, int]:
        """Return the found faults and all faults, without those that are debatable."""
        certain_kinds = [kind for kind in self.labels_by_kind if "debatable" not in kind]
        found_count = sum(self.found_by_kind[kind] for kind in certain_kinds)
        return found_count, sum(self.labels_by_kind[kind] for kind in certain_kinds)


def main(arguments: Sequence[str]) -> int:
    """Print the score. Return 0, also if faults are missed."""
    parser = argparse.ArgumentParser(prog="bench.outside", description=__doc__)
    parser.add_argument("--checkout", type=Path, required=True, help="folder of the templates")
    parser.add_argument("--write", action="store_true", help="write the score to the page")
    options = parser.parse_args(arguments)
    score_by_set = {
        set_name: score_templates(read_labels(file_name), options.checkout)
        for set_name, file_name in LABEL_FILE_BY_SET.items()
    }
    for set_name, score in score_by_set.items():
        sys.stdout.write(f"{set_name}:\n")
        for line in _describe(score):
            sys.stdout.write(f"{line}\n")
    for line in _describe_reports(yaml.safe_load((FOLDER / "reports.yaml").read_text())):
        sys.stdout.write(f"{line}\n")
    missing = [line for score in score_by_set.values() for line in score.unread if MISSING in line]
    if options.write and missing:
        sys.stderr.write("nothing was written: the checkout does not hold all templates\n")
        return 1
    if options.write:
        write_page(score_by_set)
    return 0


def read_labels(file_name: str) -> list[dict[str, Any]]:
    """Return the labelled templates of a file."""
    labels: list[dict[str, Any]] = yaml.safe_load((FOLDER / file_name).read_text())
    return labels


def score_templates(templates: Sequence[Mapping[str, Any]], checkout: Path) -> Score:
    """Lint each labelled template, and compare the findings with its labels."""
    score = Score(Counter(), Counter(), [], [], [])
    for template in templates:
        name = f"{template['repository']} {template['path']}"
        path = checkout / template["repository"].replace("/", "+") / template["path"]
        try:
            findings = _list_findings(path)
        except OSError:
            score.unread.append(f"{name}: {MISSING}")
            findings = []
        except NotATemplate as error:
            score.unread.append(f"{name}: {error}")
            findings = []
        score.finding_count += len(findings)
        _compare(template, name, findings, score)
    return score


def _list_findings(path: Path) -> list[LintFinding]:
    """Return the errors and warnings about a template."""
    results: list[LintResult] = [
        lint(read_template_source(source), source.file, source.deploy_target)
        for source in list_template_sources(str(path))
    ]
    return [
        finding
        for result in results
        for finding in result.findings
        if finding.severity is not LintSeverity.NOTE
    ]


def _compare(
    template: Mapping[str, Any], name: str, findings: Sequence[LintFinding], score: Score
) -> None:
    """Add one template to the score."""
    labelled: list[LintFinding] = []
    for fault in template["faults"]:
        kind = f"{fault['kind']}, debatable" if fault.get("debatable") else fault["kind"]
        score.labels_by_kind[kind] += 1
        found = _find_fault(fault, findings, labelled)
        labelled += found
        if found:
            score.found_by_kind[kind] += 1
        else:
            score.misses.append(f"{name} line {fault['line']}: {kind}: {fault['why']}")
    for finding in findings:
        if finding not in labelled:
            score.unlabelled.append(f"{name} line {finding.line}: {finding.symptom}")


def _find_fault(
    fault: Mapping[str, Any], findings: Sequence[LintFinding], labelled: Sequence[LintFinding]
) -> list[LintFinding]:
    """Return the findings that are this fault.

    The symptoms of a refusal by AWS name other kinds of faults too. So a finding that is another
    labelled fault says nothing about a refusal.
    """
    found = [finding for finding in findings if _is_about(finding, fault)]
    if fault["kind"] == "refused_by_aws":
        return [finding for finding in found if finding not in labelled]
    return found


def _is_about(finding: LintFinding, fault: Mapping[str, Any]) -> bool:
    """Return True if a finding is the labelled fault of the labelled queue."""
    return finding.symptom in SYMPTOMS_BY_KIND[fault["kind"]] and (
        _normalize(fault["resource"]) in _normalize(finding.resource)
    )


def _normalize(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _describe(score: Score) -> Iterator[str]:
    """Yield the lines of the printed score of templates."""
    for kind, label_count in sorted(score.labels_by_kind.items()):
        yield f"{kind}: {score.found_by_kind[kind]} of {label_count}"
    certain_found, certain_labels = score.count_certain()
    yield f"all that are not debatable: {certain_found} of {certain_labels}"
    for title, lines in (
        ("missed", score.misses),
        ("errors and warnings without a label", score.unlabelled),
        ("not read", score.unread),
    ):
        yield f"{title}: {len(lines)}"
        yield from (f"  {line}" for line in lines)


def write_page(score_by_set: Mapping[str, Score]) -> None:
    """Write the score and each miss to the measured part of docs/lint-score.md."""
    text = PAGE.read_text()
    before, _, rest = text.partition(_BLOCK_BEGIN)
    _, _, after = rest.partition(_BLOCK_END)
    block = "\n".join(list_page_lines(score_by_set))
    PAGE.write_text(f"{before}{_BLOCK_BEGIN}{block}\n{_BLOCK_END}{after}")


def list_page_lines(score_by_set: Mapping[str, Score]) -> list[str]:
    """Return the lines of the page: a table of both sets, and each miss and wrong answer."""
    lines = [
        f"| fault | {' | '.join(score_by_set)} |",
        f"|---|{'---:|' * len(score_by_set)}",
    ]
    for kind, fault in FAULT_BY_KIND.items():
        if any(kind in score.labels_by_kind for score in score_by_set.values()):
            cells = [_count_kind(score, kind) for score in score_by_set.values()]
            lines.append(f"| {fault} | {' | '.join(cells)} |")
    totals = []
    for score in score_by_set.values():
        found_count, label_count = score.count_certain()
        share = describe_share(found_count, label_count)
        totals.append(f"**{found_count} of {label_count}, {share}**")
    lines.append(f"| **all** | {' | '.join(totals)} |")
    for set_name, score in score_by_set.items():
        wrong_count = len(score.unlabelled)
        verb = "has" if wrong_count == 1 else "have"
        summary = f"{wrong_count} of {score.finding_count} errors and warnings {verb} no label."
        lines += [
            "",
            f"{set_name.capitalize()}: {summary} Each miss, and each of these:",
            "",
            *(f"- {line}" for line in score.misses),
            *(f"- {line}: found, but not labelled" for line in score.unlabelled),
            *(f"- not read: {line}" for line in score.unread),
        ]
    return lines


def _count_kind(score: Score, kind: str) -> str:
    """Return the found and the labelled faults of a kind, or `-` if the set has none."""
    if kind not in score.labels_by_kind:
        return "-"
    return f"{score.found_by_kind[kind]} of {score.labels_by_kind[kind]}"


def _describe_reports(reports: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the printed score of reports."""
    named = 0
    for report in reports:
        symptoms = {finding.symptom for finding in _lint_report(report["facts"])}
        is_named = bool(symptoms & {*SYMPTOMS_BY_CAUSE.get(report["kind"], ())})
        named += is_named
        yield f"  {'named' if is_named else 'missed'}: {report['kind']}: {report['address']}"
    yield f"reports whose cause lint names from the numbers: {named} of {len(reports)}"


def _lint_report(facts: Mapping[str, Any]) -> list[LintFinding]:
    """Return the findings about a template with the numbers of a report."""
    queue: dict[str, Any] = {"VisibilityTimeout": facts.get("visibility_timeout", 30)}
    resources: dict[str, Any] = {"Queue": {"Type": "AWS::SQS::Queue", "Properties": queue}}
    if facts.get("dlq") != "none":
        redrive_policy = {"deadLetterTargetArn": {"Fn::GetAtt": ["Dlq", "Arn"]}}
        redrive_policy["maxReceiveCount"] = facts.get("max_receive_count", 5)
        queue["RedrivePolicy"] = redrive_policy
        resources["Dlq"] = {
            "Type": "AWS::SQS::Queue",
            "Properties": {"MessageRetentionPeriod": 1_209_600},
        }
    if {"function_timeout", "reserved_concurrency", "batch_size"} & facts.keys():
        function: dict[str, Any] = {"Timeout": facts.get("function_timeout", 3)}
        if "reserved_concurrency" in facts:
            function["ReservedConcurrentExecutions"] = facts["reserved_concurrency"]
        resources["Function"] = {"Type": "AWS::Lambda::Function", "Properties": function}
        mapping = {
            "EventSourceArn": {"Fn::GetAtt": ["Queue", "Arn"]},
            "FunctionName": {"Ref": "Function"},
            "BatchSize": facts.get("batch_size", 10),
        }
        resources["Mapping"] = {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping}
    content = json.dumps({"Resources": resources}).encode()
    return [*lint(read_template(content), "report", DeployTarget()).findings]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

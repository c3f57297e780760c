"""The page of what each command of `mendq` asks of AWS, and the two IAM policies for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from states_page import table

from cli.policies import look, steer
from cli.rights import LETTERS, LOOKING, OFFLINE, STEERING

TEXT = """# What you need to run `mendq`

<!-- Derived from cli/rights.py by `make docs`: change it there. -->

`mendq` asks AWS with your own credentials. Two IAM policies are enough for it: **look** sees
everything that Mendq does and changes nothing, and **steer**, beside it, lets a person decide.
Put your region and account number in the place of `REGION` and `ACCOUNT`; where the stack is not
called `Mendq`, put its name there too. In China and GovCloud the ARNs begin with `arn:aws-cn` and
`arn:aws-us-gov`.

| policy | commands |
|---|---|
| look | {look_commands} |
| look and steer | {steer_commands} |
| look, and rights on the letters ([which](redrive.md#what-to-know-before)) | {letters_commands} |
| none | {offline_commands} |

## Look

```json
{look}
```

Where the trail is one that was there before (`trail.bucket`), put its bucket beside `mendq-*` in
`s3:ListBucket`, or `mendq doctor` cannot say whether it is in reach.
`lambda:GetFunctionConfiguration` tells the environment variables of functions, consumers' too,
because `mendq sweep --dry-run` asks those what they need.

## Steer

Beside `look`:

```json
{steer}
```

- **The Lambdas make the changes, with their own roles.** Who may steer needs no right to write a
  queue of yours, and gets none here.
- **`lambda:InvokeFunction` is the right to decide.** A decision's actor is what the caller says:
  give this policy to those who may approve. CloudTrail knows who called.
- **`dynamodb:PutItem` and `DeleteItem` on the ledger** are there for `freeze`, `thaw` and `pin`.
  They are rights on the whole table: whoever has them could write a case as well.
- `mendq drill` makes and removes a queue `mendq-drill-` and some letters; `--queue` with another
  name needs the same on that.

## What each command asks

{table}

A key of your own on a queue asks for KMS besides, where letters are read or sent: [what to know
before](redrive.md#what-to-know-before).
"""


def rights_page() -> str:
    """Markdown: the policies, and a row for each command."""
    return TEXT.format(
        look=json.dumps(look(), indent=2),
        steer=json.dumps(steer(), indent=2),
        look_commands=_named(LOOKING),
        steer_commands=_named(STEERING),
        letters_commands=_named(LETTERS),
        offline_commands=_named(OFFLINE),
        table=table(("command", "asks"), _rows()).rstrip("\n"),
    )


def _named(commands: Mapping[str, Any]) -> str:
    return ", ".join(f"`{each}`" for each in commands)


def _rows() -> Iterator[tuple[str, str]]:
    for name, actions in {**LOOKING, **STEERING, **LETTERS}.items():
        yield f"`mendq {name}`", ", ".join(f"`{each}`" for each in sorted(actions))

"""The rules as libcst codemod commands, by the names of their classes.

`python -m libcst.tool codemod -x pallas_fix.codemod.VmemAccumulator PATH` writes what the engine
writes when it makes every fix of that one rule. It verifies nothing: `pallas-fix apply` does.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import ClassVar

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext

from pallas_fix.comments import heeding, skips_file
from pallas_fix.fixpoint import fix_text
from pallas_fix.rules import all_rules
from pallas_fix.rules.base import Rule


class RuleCommand(CodemodCommand):
    """One rule as a codemod command; what it leaves unfixed is given as warnings."""

    rule: ClassVar[type[Rule]]

    def __init__(self, context: CodemodContext, certain: bool = False) -> None:
        super().__init__(context)
        self._certain = certain

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        arg_parser.add_argument(
            "--certain",
            action="store_true",
            help="Make only the fixes whose meaning follows from the code alone.",
        )

    def transform_module(self, tree: cst.Module) -> cst.Module:
        """The module after the fixes of the rule.

        Raises ValueError where libcst would change bytes that no fix touches, and RuntimeError
        where the rule has a bug; `libcst.tool` then leaves the file alone.
        """
        return self.transform_module_impl(tree)

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """As `transform_module`: nothing is shared with other commands."""
        self._check_whole(tree)
        if skips_file(tree.bytes):
            return tree
        text = tree.code
        outcome = fix_text(
            text,
            self.context.filename or "<stdin>",
            [heeding(self.rule())],
            lambda finding: finding.fix is not None and (finding.fix.certain or not self._certain),
        )
        if outcome.bug:
            raise RuntimeError(f"left alone: {outcome.bug}")
        for finding in outcome.remaining:
            why = f" ({finding.reason.text})" if finding.reason else ""
            line = finding.span.line
            self.warn(f"{self.context.filename}:{line}: {finding.code} {finding.message}{why}")
        if outcome.text == text:
            return tree
        config = cst.PartialParserConfig(encoding=tree.encoding)
        made = cst.parse_module(outcome.text, config)
        if made.code != outcome.text:
            raise ValueError("libcst does not print the result as it is: use pallas-fix apply")
        return made

    def _check_whole(self, tree: cst.Module) -> None:
        """Raise ValueError where the tree is not the whole of the file that it was read from."""
        path = Path(self.context.filename) if self.context.filename else None
        if path is not None and path.is_file() and path.read_bytes() != tree.bytes:
            raise ValueError("libcst does not print this file back as it is: use pallas-fix apply")


def __getattr__(name: str) -> type[RuleCommand]:
    """The command of the rule whose class has this name."""
    for rule in all_rules().values():
        if rule.__name__ == name:
            fields = {
                "rule": rule,
                "__module__": __name__,
                "__doc__": rule.__doc__,
                "DESCRIPTION": f"{rule.code} {rule.name}: {(rule.__doc__ or '').splitlines()[0]}",
            }
            # It stays in the module, so that worker processes can find it by name.
            command = globals()[name] = type(name, (RuleCommand,), fields)
            return command
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

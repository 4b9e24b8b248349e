"""`pallas-fix config`: the settings of a run, as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pallas_fix.config import Config
from pallas_fix.pins import wanted_jax
from pallas_fix.rules.base import Rule


def described(config: Config, rules: Mapping[str, type[Rule]]) -> Iterator[str]:
    """One line for each setting, with where it comes from where that is not the settings."""
    wanted = wanted_jax(config.jax, config.root, config.python)
    runs = [
        code
        for code, rule in rules.items()
        if config.selects(code) and any(version in rule.applies for version in wanted.versions)
    ]
    yield f"project  {config.root}"
    yield f"settings {config.file or 'none: no pyproject.toml here has a [tool.pallas-fix]'}"
    yield f"python   {config.python}"
    yield f"jax      {str(wanted).removeprefix('jax ')} ({wanted.origin})"
    yield f"rules    {', '.join(runs) or 'none'}"
    yield f"targets  {', '.join(config.targets) or 'by the words in each file'}"
    yield f"loads    {config.loads}"
    for exclude in config.excludes:
        for pattern in exclude.patterns:
            yield f"exclude  {pattern}"
    for files, codes in config.per_file_ignores:
        yield f"ignore   {', '.join(codes)} in {', '.join(files.patterns)}"
    for case in config.cases:
        yield f"case     {case}"

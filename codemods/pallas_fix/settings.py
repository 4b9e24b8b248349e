"""`pallas-fix config`: the settings of a run, as people read them, with who set what."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pallas_fix.config import Config
from pallas_fix.pins import wanted_jax
from pallas_fix.projects import Projects
from pallas_fix.rules.base import Rule


def described(
    projects: Projects, paths: Sequence[Path], rules: Mapping[str, type[Rule]]
) -> Iterator[str]:
    """What is in force at each of the paths; folders of one project are told of together.

    Raises ConfigError.
    """
    told: dict[Config, list[Path]] = {}
    for path in paths:
        if os.path.isdir(path):
            told.setdefault(projects.of(path), []).append(path)
    blocks: list[tuple[Config, Path | None, list[Path]]]
    blocks = [(config, None, folders) for config, folders in told.items()]
    blocks += [(projects.of(path), path, [path]) for path in paths if not os.path.isdir(path)]
    for number, (config, file, named) in enumerate(blocks):
        if len(blocks) > 1:
            if number:
                yield ""
            yield f"for {', '.join(map(str, named))}:"
        yield from _settings(config, file, rules)


def _settings(config: Config, file: Path | None, rules: Mapping[str, type[Rule]]) -> Iterator[str]:
    """One line for each setting; the rules are those that would look at `file`, if it is given."""
    by = config.origins
    wanted = wanted_jax(config.jax, config.root, config.python, by.get("jax", ""))
    runs = [
        code
        for code, rule in rules.items()
        if config.selects(code)
        and any(version in rule.applies for version in wanted.versions)
        and not (file and config.ignores(file, code))
    ]
    yield f"project  {config.root}"
    yield f"settings {config.file or 'none: no pyproject.toml here has a [tool.pallas-fix]'}"
    yield f"python   {config.python} ({by.get('python') or _why_python(config.python)})"
    yield f"jax      {str(wanted).removeprefix('jax ')} ({wanted.origin})"
    yield f"rules    {', '.join(runs) or 'none'}{_set_by(by.get('select'))}"
    targets = ", ".join(config.targets) or "by the words in each file"
    yield f"targets  {targets}{_set_by(by.get('targets'))}"
    yield f"loads    {config.loads}{_set_by(by.get('loads'))}"
    for exclude in config.excludes:
        for pattern in exclude.patterns:
            yield f"exclude  {pattern} (below {exclude.root})"
    for files, codes in config.per_file_ignores:
        yield f"ignore   {', '.join(codes)} in {', '.join(files.patterns)} (below {files.root})"
    for case in config.cases:
        yield f"case     {case}"
    for recorded, cases in config.recorded:
        yield f"cases    {len(cases)} recorded ones in {recorded}"
    if file and any(os.path.abspath(file) in exclude for exclude in config.excludes):
        yield "excluded it is only looked at because it is named"


def _set_by(origin: str | None) -> str:
    return f" ({origin})" if origin else ""


def _why_python(python: Path) -> str:
    active = os.environ.get("VIRTUAL_ENV")
    if active and python.is_relative_to(active):
        return "the active virtual environment"
    return "it runs pallas-fix"

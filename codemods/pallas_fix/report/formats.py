"""The names of the formats, which the command line knows before it loads any."""

from __future__ import annotations

FORMATS = ("text", "json", "sarif", "github", "rdjson", "markdown")
"""Each is a module of this folder whose `document` makes a text of an account."""

CASE_FORMATS = ("text", "json")
"""Those in which `pallas-fix verify` answers, which has no account."""

"""Nothing from source, paths or errors gets into what a terminal, a runner or a page obeys."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from pallas_fix.files import Source, SourceError
from pallas_fix.report import github, markdown
from pallas_fix.report.account import Account, FileAccount
from pallas_fix.report.printable import inert
from pallas_fix.rules.base import Reason
from pallas_fix.verify.verdict import Hazard, Level, Verdict
from reported import (
    CASE,
    DOCUMENTS,
    FIXED,
    NOT_FIXED,
    SCHEMAS,
    SHOWN,
    SIDE,
    account,
    diagnostics,
    finding,
    results,
    valid,
)

HOSTILE = (
    "\n::error::x\r\n::set-output name=status::0 ##[add-mask]x ##vso[task.setvariable]x",
    "%0A::error::x%0D%25",
    "</details></code></li></ul><script>x</script><img src=x onerror=y> <!-- x",
    "`</summary>` ``x`` ```\n````\n# x\n\n> x\n- x\n| a | b |\n|---|---|",
    "[x](http://example.com) ![x](y) <http://example.com> www.example.com @somebody org#1",
    "[x][y]\n\n[y]: http://example.com",
    "\x1b[31mx\x1b]0;x\x07 \u202ex\u2066 \u2028 \x00 \x85",
    "*x* __x__ _x_ ~~x~~ $x$ &lt;b&gt; \\` x ` \\",
)


def hostile(words: str) -> Account:
    """An account into which `words` come from everywhere."""
    hazard = Hazard("kind", True, words, 1, words)
    side = replace(SIDE, tools=(words,), hazards=(hazard,), ran_on=(words,))
    case = replace(CASE, case=f"f({words}) @ tpu7x", after=side)
    verdict = Verdict(Level.EQUAL, words, (case,), words)
    reason = Reason("rank", words, words)
    noted = replace(finding(words), notes=(words,), function=words)
    lines = words.replace("\0", "").splitlines()
    source = Source(Path("k.py"), "".join(f"# {line}\n" for line in lines).encode())
    after = f"{source.text}# {lines[0]}\n"
    entries = (
        replace(FIXED, finding=noted, verdict=verdict, alone=lambda: after),
        replace(
            SHOWN,
            finding=noted,
            verdict=verdict,
            reason=reason,
            case=words,
            preview=b"".join(b"+%s\n" % line.encode() for line in lines),
        ),
        replace(NOT_FIXED, finding=replace(noted, fix=None, reason=reason), reason=reason),
    )
    path = Path(words.replace("\0", ""))
    problem = SourceError(path, 3, words, words)
    file = FileAccount(path, source, after, entries, (words,), problem)
    made = account(problems=(problem,), notes=(words,))
    return replace(made, files=(file,), hardware=words, jax=words)


class Page(HTMLParser):
    """The tags of a page, its attributes and its comments; a tag that is not closed is an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.comments: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "code":
            self.tags.append(tag)
        self._open.append(tag)
        self.attributes |= {f"{name}={value}" for name, value in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def html(text: str) -> str:
    """Markdown as a page shows it."""
    renderer = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return str(renderer.render(text))


@pytest.mark.parametrize("words", HOSTILE)
class TestNothingGetsIn:
    @pytest.mark.parametrize("name", ["text", "github"])
    def test_to_a_terminal(self, words: str, name: str) -> None:
        for line in DOCUMENTS[name](hostile(words)).split("\n"):
            assert line.isprintable()

    def test_to_a_log(self, words: str) -> None:
        for name in ("text", "github"):
            told = DOCUMENTS[name](hostile(words))
            assert not re.search(r"##\w*\[", told)
        assert not re.search(r"^\s*::\S", DOCUMENTS["text"](hostile(words)), re.MULTILINE)

    def test_to_a_workflow_command(self, words: str) -> None:
        for line in github.document(hostile(words)).splitlines():
            [(name, properties, told)] = re.findall(r"^::(\w+) ([^:]*)::(.*)$", line)
            assert name in ("error", "notice")
            known = dict(one.split("=", 1) for one in properties.split(","))
            assert set(known) <= {"title", "file", "line", "endLine", "col", "endColumn"}
            assert "%" not in re.sub("%(25|0A|0D|3A|2C)", "", line)
            assert told

    def test_to_the_summary(self, words: str) -> None:
        page = Page(html(markdown.document(hostile(words))))
        assert page.tags == Page(html(markdown.document(hostile("plain words")))).tags
        assert page.attributes <= {
            "class=language-diff",
            "class=language-sh",
            "style=text-align:right",
        }
        assert page.comments == []

    def test_to_comments(self, words: str) -> None:
        plain, given = (
            [Page(html(one["message"])) for one in diagnostics(made)]
            for made in (hostile("plain words"), hostile(words))
        )
        assert sorted(page.tags for page in given) == sorted(page.tags for page in plain)
        assert not any(page.comments for page in given)

    def test_as_a_mention_or_a_link(self, words: str) -> None:
        made = hostile(words)
        for text in (markdown.document(made), *(one["message"] for one in diagnostics(made))):
            outside = re.sub("<code.*?</code>", "", html(text), flags=re.DOTALL)
            assert not re.search(r"@\w|https?://|www\.|#\d", outside)

    def test_to_the_documents_of_programs(self, words: str) -> None:
        for name in SCHEMAS:
            valid(name, DOCUMENTS[name](hostile(words)))
        for result in results(hostile(words)):
            text = result["message"]["text"]
            assert not re.search(r"(?<!\\)\]\(", text)
            assert all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("::error::x", "\\x3a:error::x"),
        ("   ::debug::x", "   \\x3a:debug::x"),
        ("x ::error::x", "x ::error::x"),
        ("::", "::"),
        ("x ##[group]y", "x \\x23#[group]y"),
        ("##vso[x]", "\\x23#vso[x]"),
        ("## heading", "## heading"),
    ],
)
def test_what_a_runner_would_obey(line: str, shown: str) -> None:
    assert inert(line) == shown

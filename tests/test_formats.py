"""The formats for other programs: what they say, and what their fixes give."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from console import Console
from fixture import FIXTURES
from pallas_fix.edits import Fix, SetComment, Span
from pallas_fix.files import Source, SourceError
from pallas_fix.report import github, markdown, sarif
from pallas_fix.report.account import Entry, FileAccount, State
from pallas_fix.report.formats import FORMATS
from pallas_fix.verify.verdict import Hazard
from reported import (
    CASE,
    DOCUMENTS,
    EQUAL,
    EVERY,
    FIXED,
    NOT_FIXED,
    PROBLEM,
    ROOT,
    SCHEMAS,
    SHOWN,
    SIDE,
    TRIED,
    account,
    checked,
    diagnostics,
    finding,
    results,
    sarif_fixed,
    suggested,
    valid,
)


class TestEveryFormat:
    def test_this_module_knows_all_of_them(self) -> None:
        assert set(DOCUMENTS) == set(FORMATS)

    @pytest.mark.parametrize("name", FORMATS)
    def test_a_fix_says_how_it_is_known(self, name: str) -> None:
        told = DOCUMENTS[name](account(FIXED, options=("--jax", ">=0.11.2")))
        wanted = (
            "TPU001 vmem-accumulator acc in-VMEM equal run tpu7x libtpu-0.0.52 jax-0.12.0.1 "
            "pallas-fix-apply--diff--jax f(bf16[8,256])-@-tpu7x"
        )
        plain = re.sub(r"&#x27;|%0A|\\|[`'\s-]|</?code>", "", told)
        for words in wanted.split():
            assert words.replace("-", "") in plain, words

    @pytest.mark.parametrize("name", FORMATS)
    def test_fixes_that_were_verified_together_say_so(self, name: str) -> None:
        other = replace(FIXED, finding=finding("`other` is in VMEM"))
        told = DOCUMENTS[name](account(FIXED, other))
        wanted = '"together": 1' if name == "json" else "together with another fix of this file"
        assert told.count(wanted) == 2

    @pytest.mark.parametrize("name", FORMATS)
    def test_what_is_not_fixed_carries_its_reason_and_the_way_out(self, name: str) -> None:
        told = DOCUMENTS[name](account(SHOWN, NOT_FIXED, TRIED))
        for words in ("plausible", "rank", "refuted", "use one of rank 2", "repair it by hand"):
            assert words in told
        assert "# pallas-fix: case f(x=...)" in told
        assert "+b = 4" in told or name == "github"

    @pytest.mark.parametrize("name", FORMATS)
    def test_a_run_that_finds_nothing(self, name: str) -> None:
        told = DOCUMENTS[name](account())
        if name in SCHEMAS:
            valid(name, told)
        else:
            assert "1 problem" not in told
        assert (told == "") == (name == "github")

    @pytest.mark.parametrize("name", FORMATS)
    def test_problems_are_told(self, name: str) -> None:
        unwritten = FileAccount(
            Path("k.py"),
            Source(Path("k.py"), b""),
            "",
            (),
            ("a note",),
            SourceError(Path("k.py"), None, "is read-only"),
        )
        made = replace(account(problems=(PROBLEM,)), files=(unwritten,))
        told = DOCUMENTS[name](made)
        for words in ("broken.py", "7", "is no Python 3.13 (invalid syntax)", "is read-only"):
            assert words in told
        if name in SCHEMAS:
            valid(name, told)

    @pytest.mark.parametrize("name", FORMATS)
    def test_hazards_and_notes_are_told(self, name: str) -> None:
        hazard = Hazard("acc-at-exit", True, "k.py:3", 2, "the accumulator is not popped")
        left = replace(EQUAL, cases=(replace(CASE, after=replace(SIDE, hazards=(hazard,))),))
        told = DOCUMENTS[name](account(replace(FIXED, verdict=left), notes=("raises the minimum",)))
        for words in ("acc-at-exit", "the accumulator is not popped", "raises the minimum"):
            # A comment stands at a file: there is none for what is said of the run.
            assert words in told or (name == "rdjson" and words == "raises the minimum")

    @pytest.mark.parametrize("written", [False, True])
    @pytest.mark.parametrize("name", SCHEMAS)
    def test_the_schema_takes_it(self, name: str, written: bool) -> None:
        valid(name, DOCUMENTS[name](account(*EVERY, written=written, problems=(PROBLEM,))))


class TestLevels:
    @pytest.mark.parametrize(
        ("entry", "written", "level"),
        [
            (FIXED, True, "note"),
            (FIXED, False, "error"),
            (SHOWN, True, "error"),
            (TRIED, False, "error"),
            (replace(FIXED, verdict=replace(EQUAL, before_failed="")), False, "warning"),
            (
                replace(
                    FIXED,
                    finding=replace(finding(), fix=Fix((SetComment(Span(1, 0, 1, 1)),), True)),
                ),
                False,
                "warning",
            ),
        ],
    )
    def test_how_much_a_finding_asks(self, entry: Entry, written: bool, level: str) -> None:
        made = account(entry, written=written)
        assert results(made)[0]["level"] == level
        [diagnostic] = diagnostics(made)
        assert diagnostic["severity"] == {"note": "INFO"}.get(level, level.upper())
        command = {"note": "notice"}.get(level, level)
        assert github.document(made).startswith(f"::{command} ")


class TestFixes:
    """Each fix alone gives a file that parses, in every format the same."""

    @pytest.mark.parametrize(
        "path",
        [
            path
            for path in sorted(FIXTURES.glob("*/*/before.py"))
            if (path.parent / "after.py").exists()
        ],
        ids=lambda path: "/".join(path.parts[-3:-1]),
    )
    def test_of_every_fixture(self, path: Path) -> None:
        made = checked(path)
        for file in made.files:
            text = file.source.text
            entries = file.located(written=False)
            for entry, result, diagnostic in zip(
                entries, results(made), diagnostics(made), strict=True
            ):
                alone = entry.alone() if entry.state is State.FIXED else None
                if alone is None:
                    assert "fixes" not in result
                    assert "suggestions" not in diagnostic
                    continue
                ast.parse(alone)
                [fix] = result["fixes"]
                assert sarif_fixed(text, fix) == alone
                assert suggested(text, diagnostic["suggestions"]) == alone
                assert diagnostic["location"]["range"] == diagnostic["suggestions"][0]["range"]

    def test_one_that_needs_another_says_so(self) -> None:
        made = checked(FIXTURES / "TPU001/two_sums/before.py")
        fixes = ["fixes" in result for result in results(made)]
        assert sorted(fixes) == [False, True]
        needs = results(made)[fixes.index(False)]
        assert "it goes only with another fix of this file" in needs["message"]["text"]
        [told] = [one for one in diagnostics(made) if "suggestions" not in one]
        assert "it goes only with another fix of this file" in told["message"]
        assert "it goes only with another fix of this file" in markdown.document(made)

    def test_fixes_that_interleave_each_apply_alone(self) -> None:
        text = (FIXTURES / "TPU001/bf16_scratch/before.py").read_text("utf-8")
        imports, kernel, launch = re.split(r"^(?=def )", text, flags=re.MULTILINE)
        twice = [kernel, kernel.replace("kernel", "second"), launch]
        twice.append(launch.replace("kernel", "second").replace("matmul", "product"))
        source = Source(Path("k.py"), "\n\n".join([imports, *twice]).encode())
        made = checked(given=source)
        [file] = made.files
        first, second = (one["suggestions"][0]["range"] for one in diagnostics(made))
        assert first["start"]["line"] < second["start"]["line"] < first["end"]["line"]
        texts = [suggested(file.source.text, one["suggestions"]) for one in diagnostics(made)]
        assert len({*texts, file.source.text, file.after}) == 4

    def test_they_are_offered_for_what_is_not_yet_written(self) -> None:
        assert "fixes" in results(account(FIXED))[0]
        for made in (account(FIXED, written=True), account(SHOWN), account(TRIED)):
            assert "fixes" not in results(made)[0]
            assert "suggestions" not in diagnostics(made)[0]

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    @pytest.mark.parametrize("mark", ["", "\ufeff"])
    @pytest.mark.parametrize("last", [True, False])
    def test_of_texts_of_all_kinds(self, end: str, mark: str, last: bool) -> None:
        text = (FIXTURES / "TPU001/bf16_scratch/before.py").read_text("utf-8")
        text = f'"""é\u2028\U0001f600\t\f日"""  # ☃\n{text}'.replace("    ", "\t")
        text = text.replace("\n", end)
        data = (mark + (text if last else text.rstrip())).encode()
        made = checked(given=Source(Path("k.py"), data))
        [file] = made.files
        [result], [diagnostic] = results(made), diagnostics(made)
        assert sarif_fixed(file.source.text, result["fixes"][0]) == file.after
        assert suggested(file.source.text, diagnostic["suggestions"]) == file.after
        assert "\r\n" not in diagnostic["suggestions"][0]["text"] or end == "\r\n"

    def test_columns(self) -> None:
        text = 'é = "\U0001f600"; acc = 1\n'
        start = text.index("acc")
        there = replace(finding(), span=Span(1, start, 1, start + 3))
        file = FileAccount(
            Path("k.py"),
            Source(Path("k.py"), text.encode()),
            text,
            (replace(NOT_FIXED, finding=there),),
        )
        made = replace(account(), files=(file,))
        [run] = valid("sarif", sarif.document(made))["runs"]
        assert run["columnKind"] == "unicodeCodePoints"
        region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
        assert (region["startColumn"], region["endColumn"]) == (start + 1, start + 4)
        place = diagnostics(made)[0]["location"]["range"]
        before = len(text[:start].encode())
        assert (place["start"]["column"], place["end"]["column"]) == (before + 1, before + 4)
        assert f"col={start + 1},endColumn={start + 4}" in github.document(made)


class TestFingerprints:
    def test_they_survive_moving_lines_and_tell_findings_apart(self) -> None:
        text = (FIXTURES / "GPU002/colon_in_loop/before.py").read_text("utf-8")
        moved = text.replace("\ndef ", "\n# one\n# more\n\n\ndef ")
        found = [
            [
                result["partialFingerprints"]["pallasFix/v1"]
                for result in results(checked(given=Source(Path("k.py"), given.encode())))
            ]
            for given in (text, moved)
        ]
        assert found[0] == found[1]
        assert len(set(found[0])) == len(found[0]) == 3

    def test_lines_in_messages_do_not_count(self) -> None:
        one, other = (
            results(account(replace(NOT_FIXED, finding=finding(f"zeroed in line {line}"))))
            for line in (3, 30)
        )
        assert one[0]["partialFingerprints"] == other[0]["partialFingerprints"]


class TestSarif:
    def test_rules_come_with_their_page(self) -> None:
        [run] = valid("sarif", sarif.document(account(FIXED)))["runs"]
        [rule] = run["tool"]["driver"]["rules"]
        assert (rule["id"], rule["name"]) == ("TPU001", "vmem-accumulator")
        assert "## Why it fails" in rule["help"]["markdown"]
        assert "helpUri" not in rule

    def test_the_run_says_how_it_ended(self) -> None:
        [run] = valid("sarif", sarif.document(account(FIXED, problems=(PROBLEM,))))["runs"]
        [invocation] = run["invocations"]
        assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)

    def test_properties(self) -> None:
        known = results(account(FIXED))[0]["properties"]
        assert (known["verdict"], known["stage"], known["targets"]) == ("equal", "run", ["tpu7x"])
        assert known["tools"][1:] == ["jax 0.12.0.1", "libtpu 0.0.52"]
        tried = results(account(TRIED))[0]["properties"]
        assert (tried["reason"], tried["stage"]) == ("refuted", "trace")

    @pytest.mark.parametrize(
        ("name", "uri"), [("a b.py", "a%20b.py"), ("é/%41#?.py", "%C3%A9/%2541%23%3F.py")]
    )
    def test_paths_are_relative_to_the_work_tree(
        self, name: str, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / ".git").mkdir()
        (tmp_path / "sub").mkdir()
        monkeypatch.chdir(tmp_path / "sub")
        [result] = results(account(FIXED, path=name))
        where = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert where == {"uri": f"sub/{uri}", "uriBaseId": "SRCROOT"}
        [diagnostic] = diagnostics(account(FIXED, path=name))
        assert diagnostic["location"]["path"] == name
        [elsewhere] = results(account(FIXED, path="/else/where.py"))
        place = elsewhere["locations"][0]["physicalLocation"]["artifactLocation"]
        assert place == {"uri": "file:///else/where.py"}


class TestGithub:
    def test_a_span_of_several_lines_has_no_columns(self) -> None:
        there = replace(finding(fixed=False), span=Span(1, 4, 3, 2))
        [line] = github.document(account(replace(NOT_FIXED, finding=there))).splitlines()
        head = line.split("::")[1]
        assert "line=1,endLine=3" in head
        assert "col" not in head

    def test_one_line_for_each(self) -> None:
        lines = github.document(account(*EVERY, problems=(PROBLEM,))).splitlines()
        assert len(lines) == len(EVERY) + 1
        assert all(re.match(r"::(error|warning|notice) title=[^:]*::", line) for line in lines)


class TestMarkdown:
    def test_it_stays_within_what_github_takes(self) -> None:
        long = "x" * 2000
        many = [replace(NOT_FIXED, finding=finding(f"{number} {long}")) for number in range(900)]
        told = markdown.document(account(*many))
        assert len(told.encode()) <= markdown.LIMIT
        left_out = re.search(r"<p>(\d+) more had no room here", told)
        assert left_out
        assert told.count("<details>") + int(left_out[1]) >= 900
        assert told.endswith("<p>ran on CPU (emulated MXU)</p>\n")

    def test_diffs_go_first(self) -> None:
        after = "".join(f"{'x' * 3000}{number} = 1\n" for number in range(390))
        many = [replace(FIXED, alone=lambda: after)] * 3
        told = markdown.document(account(*many))
        assert len(told.encode()) <= markdown.LIMIT
        assert (told.count("<details>"), told.count("```diff")) == (3, 0)

    def test_a_long_diff_is_cut(self) -> None:
        after = "".join(f"x{number} = 1\n" for number in range(1000))
        told = markdown.document(account(replace(FIXED, alone=lambda: after)))
        assert "@@ 604 more lines @@" in told

    def test_carriage_returns_at_line_ends_are_not_shown(self) -> None:
        data = (FIXTURES / "TPU001/bf16_scratch/before.py").read_bytes().replace(b"\n", b"\r\n")
        told = markdown.document(checked(given=Source(Path("k.py"), data)))
        assert "```diff" in told
        assert "\\r" not in told


class TestTheCommandLine:
    @pytest.fixture
    def console(
        self,
        capsysbinary: pytest.CaptureFixture[bytes],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> Console:
        (tmp_path / "k.py").write_bytes((ROOT / "examples/tpu_matmul.py").read_bytes())
        monkeypatch.chdir(tmp_path)
        return Console(capsysbinary, monkeypatch)

    def test_several_formats_in_one_run(self, console: Console) -> None:
        words = [f"--output={name}=out.{name}" for name in FORMATS]
        status, out, error = console.apply("--check", "--jax=0.12.0.1", *words, "k.py")
        assert (status, out) == (1, b"")
        assert "TPU001" in error
        for name in FORMATS:
            told = Path(f"out.{name}").read_text("utf-8")
            assert "vmem-accumulator" in told
            assert "pallas-fix apply --diff --no-verify --jax 0.12.0.1 k.py" in told
            if name in SCHEMAS:
                valid(name, told)

    @pytest.mark.parametrize("name", FORMATS)
    def test_one_document_on_stdout(self, console: Console, name: str) -> None:
        words = ("--check", "--jax=0.12.0.1", f"--output={name}")
        _, out, error = console.apply(*words, "--output=json=j.json", "k.py")
        assert (out == b"") == (name == "text")
        assert "TPU001" in error
        assert json.loads(Path("j.json").read_bytes())["status"] == 1
        status, _, error = console.apply(*words, "--output=sarif", "k.py")
        assert (status == 2) == (name != "text")
        assert name == "text" or "write sarif=FILE" in error

    def test_verify_has_formats_of_its_own(self, console: Console) -> None:
        status, _, error = console.call("verify", "--output=sarif", "k.py:matmul(f32[8,8])")
        assert status == 2
        assert "no format is called 'sarif'" in error

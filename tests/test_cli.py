"""The command line: contracts others script against, golden transcripts, and no traceback for a user's mistake."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commonplace.errors import CommonplaceError, LinesRefused
from conftest import ROOT, git

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., subprocess.CompletedProcess[str]]

SEED = [
    "log", "--repo", "gptcoach2", "--type", "error", "--context", "npm install failed with EACCES",
    "--command", "sudo chown -R $USER . && npm ci", "--lesson", "always verify ownership before npm operations",
    "--success-rate", "9/10", "--tags", "npm,permissions,node_modules", "--agent", "agent-a",
    "--timestamp", "2025-10-31T04:58:01Z",
]  # fmt: skip
IDENT = "les-always-verify-ownership-c7fa61a05da838"


def answer(run: Run, *arguments: str, **more: Any) -> Any:
    done = run(*arguments, "--json", **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_seeds_helper_call_writes_the_seeds_event(commonplace: Run, own_home: Path) -> None:
    done = commonplace(*SEED)

    assert (done.returncode, done.stderr) == (0, "")
    (line,) = (own_home / "log" / "gptcoach2.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "id": done.stdout.strip(),
        "kind": "lesson",
        "timestamp": "2025-10-31T04:58:01Z",
        "agent_id": "agent-a",
        "repo": "gptcoach2",
        "event_type": "error",
        "context": "npm install failed with EACCES",
        "command": "sudo chown -R $USER . && npm ci",
        "lesson": "always verify ownership before npm operations",
        "success_rate": "9/10",
        "tags": ["npm", "permissions", "node_modules"],
    }


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_lines_of_a_fresh_log_pass_jq(commonplace: Run, own_home: Path) -> None:
    commonplace(*SEED)

    subprocess.run(
        ["jq", "-e", ".", str(own_home / "log" / "gptcoach2.jsonl")],
        check=True,
        capture_output=True,
    )


def test_the_seeds_script_is_the_same(own_home: Path, tmp_path: Path) -> None:
    command = tmp_path / "bin" / "commonplace"
    command.parent.mkdir()
    command.symlink_to(Path(os.sys.executable).parent / "commonplace")  # type: ignore[attr-defined]
    if not command.exists():
        pytest.skip("the command is not installed in this environment")
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"

    done = subprocess.run(
        ["sh", str(ROOT / "src" / "commonplace" / "scripts" / "log_memory.sh"), *SEED[1:]],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() in (own_home / "log" / "gptcoach2.jsonl").read_text()


def test_only_type_and_lesson_are_needed(commonplace: Run, own_home: Path, tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    git("init", "-q", cwd=root)

    commonplace(
        "log",
        "--type=success",
        "--lesson=--starts with dashes",
        cwd=root,
        COMMONPLACE_AGENT="agent-b",
    )

    (path,) = (own_home / "log").glob("*.jsonl")
    record = json.loads(path.read_text())
    assert path.name.startswith("shop-")
    assert (record["agent_id"], record["lesson"], record["tags"]) == (
        "agent-b",
        "--starts with dashes",
        [],
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--type", "error", "--lesson", ""], 3, "`--lesson` is empty"),
        (
            ["--type", "banana", "--lesson", "x"],
            3,
            "`--type` is `banana`, not one of error, success, pattern, learned, decision",
        ),
        (
            ["--type", "error", "--lesson", "x", "--success-rate", "11/10"],
            3,
            "`--success-rate` is `11/10`",
        ),
        (["--type", "error", "--lesson", "x", "--timestamp", "soon"], 3, "`--timestamp` is `soon`"),
        (["--type", "error", "--lesson", "x", "--repo", "../evil"], 3, "`--repo` is `../evil`"),
        (["--type", "error", "--lesson", "x", "--repo", "a/b"], 3, "repo"),
        (["--type", "error"], 2, "a lesson is needed"),
        (["--type", "error", "--lesson"], 2, "--lesson"),
        (["--type", "error", "--lesson", "x", "--bananas"], 2, "--bananas"),
        (["--stdin", "--lesson", "x"], 2, "--stdin"),
        (["--type", "error", "--lesson", "bell \x07"], 3, "control characters"),
    ],
)
def test_bad_flags_get_a_sentence_a_code_and_cost_nothing(
    commonplace: Run, own_home: Path, arguments: list[str], code: int, said: str
) -> None:
    done = commonplace("log", *arguments)

    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not own_home.exists()


def test_invalid_utf_8_on_the_command_line_is_refused(own_home: Path) -> None:
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "commonplace", "log", "--type", "error", "--lesson", b"caf\xe9"],
        capture_output=True,
        check=False,
    )

    assert done.returncode == 3
    assert b"UTF-8" in done.stderr
    assert not own_home.exists()


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b"not json",
        b"[]",
        b"null",
        b'{"event_type":"error","lesson":"\\u0000"}',
        b'{"event_type":"error","lesson":"\\ud800"}',
        b'{"event_type":"error","lesson":"' + b"x" * 5_000_000 + b'"}',
        b'{"event_type":"error","lesson":1e999}',
        b'{"event_type":"error","lesson":"x","big":1e999}',
        b'{"event_type":"error","lesson":"x","deep":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"event_type":"error","lesson":"token=ghp_'
        + b"Zx81" * 9
        + b'","deep":'
        + b"[" * 600
        + b"]" * 600
        + b"}",
    ],
)
def test_a_bad_line_on_stdin_is_told_by_number_and_the_good_ones_are_stored(
    commonplace: Run, own_home: Path, line: bytes
) -> None:
    good = b'{"event_type":"success","lesson":"good %d","repo":"app"}\n'

    done = commonplace("log", "--stdin", stdin=good % 1 + line + b"\n" + good % 2)

    assert done.returncode == 8
    assert "line 2:" in done.stderr
    assert "Traceback" not in done.stderr
    assert "2 records stored" in done.stdout
    assert len((own_home / "log" / "app.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("refused", "stored", "said"),
    [
        (1, 0, "the line was refused, and nothing is stored"),
        (2, 0, "2 of 2 lines were refused, and nothing is stored"),
        (1, 2, "1 of 3 lines was refused; the others are stored"),
        (2000, 1, "2,000 of 2,001 lines were refused; the others are stored"),
    ],
)
def test_refused_lines_are_counted_in_words(refused: int, stored: int, said: str) -> None:
    assert str(LinesRefused(refused, stored)) == said


def test_counts_have_separators_and_the_archive_has_a_column(
    commonplace: Run, own_home: Path
) -> None:
    row = '{"event_type":"error","lesson":"row %d","repo":"app"}'
    commonplace("log", "--stdin", stdin="\n".join(row % number for number in range(1200)))
    (own_home / "config.toml").write_text("[rotation]\nlines_max = 1100\nmove = 100\n")
    commonplace("maintain", "--step", "rotation")

    head, line = commonplace("repos").stdout.splitlines()

    assert head.split() == ["repo", "records", "archived", "newest", "bytes"]
    assert line.split()[1:3] == ["1,100", "100"]
    assert commonplace("stats").stdout.count(" 1,100\n") == 3


def test_stdin_takes_one_record_or_many(commonplace: Run) -> None:
    rows = "".join(
        json.dumps({"event_type": "error", "lesson": f"row {n}", "repo": "app"}) + "\n"
        for n in range(500)
    )

    assert answer(commonplace, "log", "--stdin", stdin=rows) == {
        "taken": 500,
        "redacted": 0,
        "refused": [],
    }
    assert len(commonplace("export").stdout.splitlines()) == 500


def test_stdin_may_begin_with_a_byte_order_mark(commonplace: Run) -> None:
    row = b'{"event_type":"error","lesson":"from an editor","repo":"app"}\n'

    assert answer(commonplace, "log", "--stdin", stdin=b"\xef\xbb\xbf" + row)["taken"] == 1


def test_what_was_redacted_is_told_by_kind_and_field(commonplace: Run, own_home: Path) -> None:
    secret = "AKIA" + "QWER" * 4

    done = commonplace(
        "log",
        "--type",
        "error",
        "--lesson",
        "rotate keys",
        "--command",
        f"aws configure set key {secret}",
    )

    assert "aws-access-key in `command`" in done.stderr
    assert secret not in done.stdout + done.stderr + "".join(
        p.read_text() for p in own_home.rglob("*.jsonl")
    )


@pytest.mark.parametrize(
    ("lesson", "name"),
    [
        ("the test user has password=correcthorse everywhere", "password="),
        ("set the db_passwd: correcthorse first", "db_passwd:"),
        ("password: required", ""),
        ("password=$PASS and no other", ""),
        ("nothing is named", ""),
    ],
)
def test_a_plain_word_after_password_is_stored_with_a_note(
    commonplace: Run, lesson: str, name: str
) -> None:
    done = commonplace("log", "--type", "error", "--lesson", lesson)
    quiet = commonplace("log", "--type", "error", "--lesson", lesson, "--json")

    record_id = done.stdout.strip()
    note = (
        f"note: `{name}` is followed by a plain word, which was stored as it is; if that is a "
        f"password, remove it with `commonplace forget --erase {record_id}`\n"
    )
    assert done.stderr == (note if name else "")
    assert quiet.stderr == ""


def test_a_plain_word_after_password_in_a_line_of_stdin_is_remarked(commonplace: Run) -> None:
    done = commonplace(
        "log",
        "--stdin",
        stdin='{"id": "a", "event_type": "error", "lesson": "set password: horse"}\n'
        '{"id": "b", "event_type": "error", "lesson": "compass points"}\n',
    )

    assert "`password:` is followed by a plain word" in done.stderr
    assert "forget --erase a`" in done.stderr
    assert done.stderr.count("note:") == 1


def test_init_says_what_it_did_and_twice_is_harmless(commonplace: Run, tmp_path: Path) -> None:
    root = tmp_path / "app"
    (root / "src").mkdir(parents=True)
    git("init", "-q", cwd=root)

    first = commonplace("init", cwd=root / "src")
    second = commonplace("init", cwd=root)

    assert first.stdout.startswith("Made a home in")
    assert "nothing changed" in second.stdout
    assert "merge=union" in (root / ".commonplace" / ".gitattributes").read_text()
    assert answer(commonplace, "where", cwd=root)["home"] == str(root / ".commonplace")
    assert answer(commonplace, "init", "--user")["home"] == os.environ["COMMONPLACE_HOME"]


GOLDEN = ROOT / "tests" / "data" / "transcript.txt"


def test_the_transcript_of_a_day_is_as_it_was(
    commonplace: Run, own_home: Path, tmp_path: Path
) -> None:
    """Commands, both streams and exit codes; `UPDATE_GOLDEN=1 make test` writes it anew, to be reviewed as a diff."""
    steps = [
        SEED,
        ["show", IDENT[:14]],
        ["feedback", IDENT, "worked"],
        ["repos"],
        ["show", "les-none"],
        ["feedback", IDENT, "splendid"],
        ["log", "--type", "error", "--lesson", "", "--repo", "app"],
        ["doctor"],
        ["scan"],
        ["maintain", "--step", "rotation"],
        ["forget", IDENT, "--reason", "no longer true"],
        ["show", IDENT],
        ["forget", IDENT, "--erase"],
        ["export"],
        ["where"],
    ]
    said: list[str] = []
    for step in steps:
        done = commonplace(*step)
        shown = " ".join(f"'{word}'" if " " in word or not word else word for word in step)
        said.append(f"$ commonplace {shown}\n{done.stdout}{done.stderr}[exit {done.returncode}]\n")
    text = (
        "\n".join(said).replace(str(own_home), "HOME").replace(f"log/{tmp_path.name}", "log/HERE")
    )
    import re

    text = re.sub(r"(?!2025-10-31)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIMExxxxxxxxxxxxxxxx", text)
    text = re.sub(r"forgotten on \d{4}-\d\d-\d\d", "forgotten on DATE", text)
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text)

    assert text == GOLDEN.read_text()


def test_a_home_that_is_a_file_is_one_sentence(commonplace: Run, own_home: Path) -> None:
    own_home.write_text("")

    others = ("export", "repos", "scan", "maintain", "doctor")
    for arguments in (
        SEED,
        ["show", "x"],
        ["init", "--user"],
        *([name] for name in others),
        ["doctor", "--fix"],
    ):
        done = commonplace(*arguments)
        assert (done.returncode, "Traceback" in done.stderr) == (6, False), arguments


def test_a_log_outside_the_home_is_not_read(commonplace: Run, own_home: Path) -> None:
    commonplace(*SEED)
    (own_home.parent / "outside.jsonl").write_text(
        (own_home / "log" / "gptcoach2.jsonl").read_text()
    )

    done = commonplace("export", "--repo", "../../outside")

    assert (done.returncode, done.stdout) == (3, "")


def test_damage_met_while_reading_is_told_beside_the_answer(
    commonplace: Run, own_home: Path
) -> None:
    commonplace(*SEED)
    with (own_home / "log" / "gptcoach2.jsonl").open("a") as stream:
        stream.write('{"id": "torn", "kind": "les\n')
    commonplace(*SEED)

    for arguments in (
        ["export"],
        ["show", IDENT],
        ["history", IDENT],
        ["repos"],
        ["export", "--json"],
    ):
        done = commonplace(*arguments)
        assert done.returncode == 0
        assert done.stderr == "1 damaged line in log/gptcoach2.jsonl; see `commonplace doctor`\n"


@pytest.mark.parametrize(
    "line",
    [
        '{"id":"a","x":1e400}',
        '{"id":"a","x":"\\ud800"}',
        '{"id":"a","x":' + "[" * 600 + "]" * 600 + "}",
    ],
)
def test_a_line_another_program_spoilt_stops_no_command(
    commonplace: Run, own_home: Path, line: str
) -> None:
    commonplace(*SEED)
    spoilt = line.replace(
        '"id":"a"', '"id":"a","kind":"hologram","timestamp":"2026-01-01T00:00:00Z","of":["a"]'
    )
    with (own_home / "log" / "gptcoach2.jsonl").open("a") as stream:
        stream.write(spoilt + "\n")

    for arguments in (
        ["export"],
        ["repos"],
        ["scan"],
        ["maintain", "--step", "rotation"],
        ["history", IDENT],
        ["forget", IDENT, "--erase"],
    ):
        done = commonplace(*arguments)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), (arguments, done.stderr)
    assert spoilt in (own_home / "log" / "gptcoach2.jsonl").read_text()


def test_answers_are_utf_8_whatever_the_terminal_says(commonplace: Run) -> None:
    commonplace("log", "--type", "error", "--lesson", "日本語 → ✓", "--id", "a")

    for command in ("show", "history"):
        done = commonplace(command, "a", PYTHONIOENCODING="cp1252")
        assert (done.returncode, "日本語 → ✓" in done.stdout) == (0, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize(
    "command",
    ["log --type error --lesson x", "repos", "export", "--help", "show --help", "--version"],
)
def test_an_answer_that_cannot_be_written_is_told(commonplace: Run, command: str) -> None:
    import sys

    commonplace(*SEED)

    code = f"{sys.executable} -m commonplace {command} >/dev/full"
    done = subprocess.run(["sh", "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, "Traceback" in done.stderr) == (13, False)
    assert "could not be written" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="a shell closes the streams")
@pytest.mark.parametrize("command", ["where", "export", "repos --json", "show nothing"])
def test_a_closed_stream_is_no_traceback(commonplace: Run, tmp_path: Path, command: str) -> None:
    import sys

    commonplace(*SEED)

    for closing in (">&- 2>err", ">out 2>&-", ">&- 2>&-"):
        code = f"{sys.executable} -m commonplace {command} {closing}"
        done = subprocess.run(["sh", "-c", code], cwd=tmp_path, check=False)
        assert done.returncode == (4 if command == "show nothing" else 0)
    assert "Traceback" not in (tmp_path / "err").read_text()


@pytest.mark.skipif(os.name != "posix", reason="Windows keeps the folder one is in")
def test_a_folder_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    import sys

    (tmp_path / "gone").mkdir()

    for command in ("init", "where"):
        code = (
            f"mkdir -p gone; cd gone && rmdir ../gone && {sys.executable} -m commonplace {command}"
        )
        done = subprocess.run(
            ["sh", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, "no longer exists" in done.stderr) == (2, True), done.stderr


def test_closing_the_pipe_early_is_no_error(commonplace: Run, own_home: Path) -> None:
    rows = "".join(
        json.dumps({"event_type": "error", "lesson": f"row {n} " + "x" * 200}) + "\n"
        for n in range(5000)
    )
    commonplace("log", "--stdin", stdin=rows)
    import sys

    code = f"{sys.executable} -m commonplace export | head -n 1 >/dev/null; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(os.name != "posix", reason="Windows has another error for this")
@pytest.mark.parametrize(
    ("command", "code"),
    [("--help", 0), ("recall --help", 0), ("repos", 0), ("export --json", 0), ("show nothing", 4)],
)
def test_a_reader_that_is_gone_is_no_error_of_any_command(
    commonplace: Run, command: str, code: int
) -> None:
    import sys

    commonplace(*SEED)

    for with_stderr in (False, True):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [sys.executable, "-m", "commonplace", *command.split()],
            stdout=writer,
            stderr=writer if with_stderr else subprocess.PIPE,
            text=True,
            check=False,
        )
        os.close(writer)
        assert done.returncode == code
        assert "Traceback" not in (done.stderr or "")
        assert code or not done.stderr


def test_stored_text_cannot_command_the_terminal(commonplace: Run, own_home: Path) -> None:
    (own_home / "log").mkdir(parents=True)
    row = '{"id":"a","kind":"lesson","timestamp":"2026-01-01T00:00:00Z","event_type":"error","lesson":"\\u001b[2J[bold]x"}'
    (own_home / "log" / "app.jsonl").write_text(row + "\n")

    for command in ("show", "history"):
        done = commonplace(command, "a")
        assert "\x1b" not in done.stdout
        assert "[bold]x" in done.stdout

    hidden = '{"id":"f","kind":"forget","timestamp":"2026-01-01T00:00:00Z","of":"a","reason":"\\u001b]0;x\\u0007"}'
    (own_home / "log" / "app.jsonl").write_text(row + "\n" + hidden + "\n")
    done = commonplace("show", "a")
    assert "forgotten" in done.stderr
    assert "\x1b" not in done.stderr


def all_errors(cls: type[CommonplaceError] = CommonplaceError) -> list[type[CommonplaceError]]:
    return [found for sub in cls.__subclasses__() for found in (sub, *all_errors(sub))]


def test_every_mistake_has_an_exit_code_of_its_own() -> None:
    codes = [error.exit_code for error in all_errors()]

    assert len(codes) == len(set(codes))
    assert all(code > 1 for code in codes)

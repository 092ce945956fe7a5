"""The tables of `sessions/` row by row: intents, lessons after a prefix, tags, shell forms, tool calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commonplace.records import encode, from_line
from commonplace.rules import Tally
from commonplace.sessions import events, fields, lesson_prefixes, shell, spool
from commonplace.sessions.events import Event
from commonplace.sessions.intents import INTENT_CHARS_MAX, intents, is_check, is_test
from commonplace.sessions.lesson_prefixes import find_lessons
from commonplace.sessions.payload import read_event
from commonplace.sessions.start import is_open_handoff
from commonplace.tagging import TAGS_MAX, tags_for

# --- Intents ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "runner",
    ["uv run", "poetry run", "pipenv run", "pdm run", "hatch run", "bundle exec", "npm exec", "pnpm exec",
     "pnpm dlx", "yarn exec", "bun x", "npx", "bunx", "uvx", "pipx run", "timeout 60", "nice -n 5", "xvfb-run",
     "doas", "sudo", "env A=1", "command", "time", "nohup", "exec", "A=1 B=2", "builtin", "python -m",
     "python3.12 -m", "uv run --with x --from y --python 3 --extra e --group g --package p --project q --directory d",
     "sudo -E uv run -q timeout 5"],
)  # fmt: skip
@pytest.mark.parametrize("program", ["pytest", "terraform plan"])
def test_a_program_has_its_intent_whoever_runs_it(runner: str, program: str) -> None:
    assert intents(f"{runner} {program}") == (program,)


@pytest.mark.parametrize(
    "other", ["uv sync", "poetry install", "hatch build", "bundle install", "npm test", "pnpm test", "yarn test", "bun test", "pipx list"]
)  # fmt: skip
def test_half_a_runner_is_none(other: str) -> None:
    assert intents(other) == (other,)


@pytest.mark.parametrize(
    "program",
    ["cd", "ls", "ll", "cat", "echo", "printf", "pwd", "which", "whereis", "type", "true", "false", "test", "[",
     "grep", "egrep", "rg", "ag", "find", "fd", "head", "tail", "less", "more", "wc", "sed", "awk", "sort", "uniq",
     "cut", "tr", "tee", "diff", "stat", "file", "tree", "du", "df", "ps", "export", "set", "unset",
     "source", ".", "sleep", "wait", "date", "history", "jq", "read", "exit", "return", "kill", "pkill", "mkdir",
     "touch", "man", "help", "clear", "for", "while", "if", "fi", "done", "esac", "xxd"],
)  # fmt: skip
def test_what_reads_or_prints_has_no_intent(program: str) -> None:
    assert intents(f"{program} word") == ()


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("", ()),
        ("env", ()),
        ("git commit -m x && git push", ("git commit", "git push")),
        ("make && make", ("make",)),
        ("npm ci", ("npm install",)),
        ("npm i left-pad", ("npm install",)),
        ("pnpm add x", ("pnpm install",)),
        ("yarn install", ("yarn install",)),
        ("bun add x", ("bun install",)),
        ("cargo add x", ("cargo add",)),
        ("npm run build", ("npm run build",)),
        ("npm run", ("npm run",)),
        ("cargo run x", ("cargo run",)),
        ("uv pip install x", ("pip install",)),
        ("uv pip", ("pip",)),
        ("pip3.12 install x", ("pip install",)),
        ("/usr/bin/npm test", ("npm test",)),
        ("C:\\\\bin\\\\NPM.exe test", ("npm test",)),
        ("python script.py", ("python script.py",)),
        ("python3 a/b.py --x", ("python a/b.py",)),
        ("python -c 'print(1)' x.py", ()),
        ("node -e 1 x.js", ()),
        ("bash - x.sh", ()),
        ("python word", ()),
        ("bash run.sh", ("bash run.sh",)),
        ("ruby x.rb", ("ruby x.rb",)),
        ("perl x.pl", ("perl x.pl",)),
        ("php x.php", ("php x.php",)),
        ("zsh x.zsh", ("zsh x.zsh",)),
        ("sh x.sh", ("sh x.sh",)),
        ("node x.js", ("node x.js",)),
        ("pwsh x.ps1", ("pwsh x.ps1",)),
        ("powershell x.ps1", ("powershell x.ps1",)),
        ("vim src/a.py", ("vim",)),
        ("curl https://a.example/x", ("curl https://a.example/x",)),
        ("docker --debug build .", ("docker build",)),
        ("make -j4", ("make",)),
        ("'a b", ()),
        ("_x y", ()),
        ("-x y", ()),
        (f"tool {'x' * 200}", (f"tool {'x' * 200}"[:INTENT_CHARS_MAX],)),
        *((f"{one} anything", (one,)) for one in
          ("pytest", "jest", "vitest", "tsc", "ruff", "mypy", "eslint", "tox", "nox", "pre-commit")),
    ],
)  # fmt: skip
def test_the_intent_of_a_command(command: str, found: tuple[str, ...]) -> None:
    assert intents(command) == found


def test_runners_of_runners_are_looked_through_so_far() -> None:
    assert intents("uv run " * 3 + "terraform plan") == ("terraform plan",)
    assert intents("uv run " * 4 + "terraform plan") == ("terraform plan",)
    assert intents("uv run " * 5 + "terraform plan") == ("uv run",)


CHECKS = ["pytest", "jest", "vitest", "mocha", "tox", "nox", "rspec", "phpunit", "tsc", "ruff", "mypy", "eslint",
          "make", "ctest", "npm test", "pnpm build", "yarn check", "bun run", "cargo clippy", "go vet",
          "dotnet test", "gradle build", "mvn verify", "swift test", "bazel test", "deno test", "mix test",
          "rake test", "git commit", "git push", "gh pr", "bd close"]  # fmt: skip
TESTS = ["pytest", "jest", "vitest", "mocha", "tox", "nox", "rspec", "phpunit", "ctest", "tsc", "ruff", "mypy",
         "eslint", "npm test", "cargo test"]  # fmt: skip


@pytest.mark.parametrize(
    "intent", [*CHECKS, "git status", "npm install", "makefile", "terraform plan"]
)
def test_what_confirms_the_work(intent: str) -> None:
    assert is_check(intent) is (intent in CHECKS)


@pytest.mark.parametrize("intent", [*TESTS, "make", "git commit", "npm build", "testing x"])
def test_what_passes_or_fails_with_the_code(intent: str) -> None:
    assert is_test(intent) is (intent in TESTS)


# --- Shell --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("a b  c", [["a", "b", "c"]]),
        ("a\tb\rc", [["a", "b", "c"]]),
        ("a; b", [["a"], ["b"]]),
        ("a && b || c", [["a"], ["b"], ["c"]]),
        ("a & b", [["a"], ["b"]]),
        ("a\nb", [["a"], ["b"]]),
        ("(a b)", [["a", "b"]]),
        ("a | b", [["a"], ["b"]]),
        ("a 2>&1 b", [["a", "2>&1", "b"]]),
        ("a &>f", [["a", "&>f"]]),
        ("a >|f", [["a", ">|f"]]),
        ("a # b", [["a"]]),
        ("a#b", [["a#b"]]),
        ("a # b\nc", [["a"], ["c"]]),
        ("a 'b c'd", [["a", "b cd"]]),
        ("a ''", [["a", ""]]),
        ('a ""', [["a", ""]]),
        ('a "b \\" \\\\ \\$ \\` \\n c"', [["a", 'b " \\ $ ` \\n c']]),
        ('a "b\\\nc"', [["a", "b\nc"]]),
        ("a \\b\\ c", [["a", "b c"]]),
        ("a \\\n b", [["a", "b"]]),
        ("a\\", [["a"]]),
        ("a <<E b\nx y\nE\nc", [["a", "x y", "b"], ["c"]]),
        ("a <<'E'\nx\ny\n  E  \nc", [["a", "x\ny"], ["c"]]),
        ("a <<-E\nx", [["a", "x"]]),
        ('a << "E"\n\nx\n\nE\n', [["a", "\nx"]]),
        ("a <<A <<B\n1\nA\n2\nB\nc", [["a", "1", "2"], ["c"]]),
        ("a <<<b", [["a", "<<<b"]]),
        ("a \"$(cat <<'E'\nit's \"so\"\nE\n)\" b", [["a", "it's \"so\"", "b"]]),
        ('a "x $(cat <<E\ny\nE\n) z"', [["a", "x y z"]]),
        ('a "1 << 2"', [["a", "1 << 2"]]),
        ("a <<", [["a", ""]]),
        ("bash -c 'b c; d'", [["b", "c"], ["d"]]),
        ("sudo /bin/sh -lc 'b'", [["b"]]),
        ("zsh -ic b", [["b"]]),
        ("dash -c b", [["b"]]),
        ("pwsh -NoProfile -Command b", [["b"]]),
        ("powershell -Command b", [["b"]]),
        ("bash -c", [["bash", "-c"]]),
        ("bash x -x c", [["bash", "x", "-x", "c"]]),
        ("fish -c 'b c'", [["fish", "-c", "b c"]]),
    ],
)  # fmt: skip
def test_a_command_line_is_parsed(text: str, commands: list[list[str]]) -> None:
    assert [simple.words for simple in shell.parse(text)] == commands


@pytest.mark.parametrize("text", ["a 'b", 'a "b', "a 'b''c", 'a "b\\"'])
def test_a_quote_that_is_not_closed_is_said_to_be(text: str) -> None:
    with pytest.raises(shell.UnclosedQuote):
        shell.parse(text)


def test_pipes_are_told_from_other_ends() -> None:
    found = shell.parse("a | b || c ; d | e & f")

    assert [simple.piped for simple in found] == [True, False, False, True, False, False]


def test_shells_in_shells_are_parsed_three_deep() -> None:
    line = "a b"
    for depth in range(1, 5):
        line = f"bash -c {json.dumps(line)}"
        (first, *_rest) = shell.parse(line)
        assert (first.words[0] == "bash") is (depth > 3)


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        (["A=1", "B_2=x", "a"], ["a"]),
        (["sudo", "-E", "-u", "a"], ["a"]),
        (["a=b/c", "a"], ["a"]),
        (["=x", "a"], ["=x", "a"]),
        (["a-b=c", "d"], ["a-b=c", "d"]),
        (["-x", "a"], ["-x", "a"]),
        *(([one, "a"], ["a"]) for one in
          ("sudo", "env", "command", "time", "nohup", "exec", "then", "do", "else", "!", "{", "builtin")),
        (["sudo"], []),
    ],
)  # fmt: skip
def test_what_precedes_the_program(words: list[str], rest: list[str]) -> None:
    assert shell.without_prefixes(words) == rest


# --- Lessons and tags ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "is_message"),
    [
        ("bd comment BD-1 'LEARNED: x y'", True),
        ("bd comments add BD-1 'LEARNED: x y'", True),
        ("bd comments list BD-1 'LEARNED: x y'", False),
        ("bd note BD-1 'LEARNED: x y'", True),
        ("bd show 'LEARNED: x y'", False),
        ("gh issue comment 5 -b 'LEARNED: x y'", True),
        ("gh issue close 5 -c 'LEARNED: x y'", True),
        ("gh issue view 5 'LEARNED: x y'", False),
        ("gh pr comment 5 -b 'LEARNED: x y'", True),
        ("gh pr review 5 -b 'LEARNED: x y'", True),
        ("gh pr view 5 'LEARNED: x y'", False),
        ("gh comment 'LEARNED: x y'", False),
        ("glab issue note 5 -m 'LEARNED: x y'", True),
        ("glab mr note 5 -m 'LEARNED: x y'", True),
        ("glab mr view 5 -m 'LEARNED: x y'", False),
        ("glab note 5 -m 'LEARNED: x y'", False),
        ("git commit -m 'LEARNED: x y'", True),
        ("git -C a -c b=c --git-dir d --work-tree e --namespace f --bare commit -m 'LEARNED: x y'", True),
        ("git notes add -m 'LEARNED: x y'", True),
        ("git log 'LEARNED: x y'", False),
        ("echo LEARNED: x y", True),
        ("echo LEARNED: x y > file", True),
        ("echo 'LEARNED: x y' 2> file", True),
        ("printf 'LEARNED: x y\\n'", True),
        ("echo -e 'LEARNED: x y\\nSigned-off-by: a'", True),
        ("git commit --message='LEARNED: x y'", True),
        ("git commit -am'LEARNED: x y'", True),
        ("git commit -m 'fix it\n\nLEARNED: x y\nSigned-off-by: a'", True),
        ("git commit -m 'LEARNED: x y\nCo-Authored-By: a'", True),
        ("git commit -m 'LEARNED: x y\nReviewed-by: a\nb'", True),
        ("git commit -m 'LEARNED: x y\nChange-Id: a\nb'", True),
        ("git commit -m 'LEARNED: x y\n🤖 Generated with a\nb'", True),
        ("git commit -m '- **LEARNED:** x y'", True),
        ("git commit -m '> LEARNED: x y'", True),
        ("git commit -m 'notLEARNED: x y'", False),
    ],
)  # fmt: skip
def test_which_commands_state_a_lesson(command: str, is_message: bool) -> None:
    assert [one.text for one in find_lessons(command)] == (["x y"] if is_message else [])


@pytest.mark.parametrize(
    ("command", "issue"),
    [
        ("bd comment BD-1 'LEARNED: x y'", "BD-1"),
        ("bd comment 12 'LEARNED: x y'", "12"),
        ("bd comment --json BD-1 'LEARNED: x y'", "BD-1"),
        ("bd comment 'LEARNED: x y'", ""),
        ("gh issue comment 5 -b 'LEARNED: x y'", "#5"),
        ("gh pr comment https://github.com/a/b/pull/7/ -b 'LEARNED: x y'", "#7"),
        ("glab mr note 9 -m 'LEARNED: x y'", "#9"),
        ("gh pr comment -b 'LEARNED: x y' branch", ""),
        ("git commit -m 'Fixes #12\n\nLEARNED: x y'", "#12"),
        ("git commit -m 'closed AB-3\n\nLEARNED: x y'", "AB-3"),
        ("git commit -m 'resolves #1 refs #2\n\nLEARNED: x y'", "#1"),
        ("git commit -m 'see AB-3\n\nLEARNED: x y'", "AB-3"),
        ("git commit -m 'ref #4\n\nLEARNED: x y'", "#4"),
        ("git commit -m 'AB-3\n\nLEARNED: x y'", ""),
        ("echo 'LEARNED: x y' | gh issue comment 5 -F -", "#5"),
        ("echo 'LEARNED: x y' ; gh issue comment 5 -F -", ""),
    ],
)  # fmt: skip
def test_the_issue_a_lesson_is_about(command: str, issue: str) -> None:
    assert [one.issue for one in find_lessons(command)] == [issue]


def test_lessons_have_their_limits() -> None:
    many = "\n".join(f"LEARNED: number {n}" for n in range(30))
    (long,) = find_lessons(f"echo 'LEARNED: {'x' * 20000}'")

    assert len(find_lessons(f"echo '{many}'")) == lesson_prefixes.LESSONS_MAX == 20
    assert len(long.text) == lesson_prefixes.LESSON_CHARS_MAX == 16_000


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("coroutine", "async"), ("deadlock", "concurrency"), ("flaky", "testing"), ("postgres", "database"),
        ("websocket", "network"), ("graphql", "api"), ("oauth", "auth"), ("csrf", "security"),
        ("throughput", "performance"), ("webpack", "build"), ("lockfile", "dependencies"), ("pipeline", "ci"),
        ("kubectl", "docker"), ("rebase", "git"), ("generic", "types"), ("popup", "ui"), ("dotenv", "config"),
        ("symlink", "files"), ("traceback", "errors"), ("appkit", "macos"), ("powershell", "windows"),
        ("python", "python"), ("javascript", "javascript"), ("tsc", "typescript"), ("rust", "rust"),
        ("goroutine", "go"), ("swift", "swift"), ("concurrently", "concurrency"), ("ci", "ci"), ("ui", "ui"),
    ],
)  # fmt: skip
def test_a_word_gives_its_tag(text: str, tag: str) -> None:
    assert tag in tags_for(f"the {text} thing")
    assert tag not in tags_for("nothing of note")


@pytest.mark.parametrize(
    ("text", "prefix", "tags"),
    [
        ("nothing", "LEARNED:", ["learned"]),
        ("nothing", "DECISION:", ["learned", "decision"]),
        ("nothing", "ROOT CAUSE:", ["learned", "root-cause"]),
        ("cite suite build", "LEARNED:", ["learned", "build"]),
        ("restful rested", "LEARNED:", ["learned", "api"]),
        ("apis", "LEARNED:", ["learned"]),
    ],
)
def test_tags_of_a_lesson(text: str, prefix: str, tags: list[str]) -> None:
    assert tags_for(text, prefix) == tags


def test_a_lesson_has_at_most_eight_tags_more() -> None:
    words = "async thread test sql http api login secret slow build npm ci docker git"

    assert len(tags_for(words)) == TAGS_MAX + 1 == 9


# --- Tool calls ---------------------------------------------------------------------------------------


def called(payload: dict[str, Any], agent: str = "claude-code") -> Event:
    whole = {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash", **payload}
    found = read_event(agent, json.dumps(whole).encode(), at=1.0, cwd="/")
    assert found is not None
    return found


@pytest.mark.parametrize("holder", ["tool_input", "toolArgs", "args", "toolInput", "input"])
@pytest.mark.parametrize("name", ["command", "cmd", "script", "input"])
def test_the_command_is_found_under_each_of_its_names(holder: str, name: str) -> None:
    assert called({holder: {name: "make all"}}).command == "make all"
    assert called({holder: json.dumps({name: "make all"})}).command == "make all"


@pytest.mark.parametrize(
    ("value", "command"),
    [
        (["bash", "-c", "a b"], "a b"),
        (["bash", "-lc", "a b"], "a b"),
        (["-c", "a b"], "-c a b"),
        (["bash", "-x", "a"], "bash -x a"),
        (["a", 7, "b"], "a b"),
        ([], ""),
        (7, ""),
    ],
)
def test_a_command_may_be_a_list(value: object, command: str) -> None:
    assert called({"tool_input": {"command": value}}).command == command


@pytest.mark.parametrize(
    "holder", ["tool_response", "toolResult", "tool_result", "tool_output", "output", "result_json"]
)
@pytest.mark.parametrize(
    ("result", "output"),
    [
        ("text", "text"),
        ({"stdout": "a", "stderr": "b"}, "a\nb"),
        ({"stdout": "", "stderr": "b", "output": "c"}, "b"),
        ({"output": "c"}, "c"),
        ({"llmContent": "c"}, "c"),
        ({"textResultForLlm": "c"}, "c"),
        ({"text_result_for_llm": "c"}, "c"),
        ({"text": "c"}, "c"),
        ({"content": [{"text": "c"}, 7, {"text": ""}, {"text": "d"}]}, "c\nd"),
        ({"returnDisplay": "c"}, "c"),
        ({"other": "c"}, ""),
    ],
)
def test_the_output_is_found_under_each_of_its_names(
    holder: str, result: object, output: str
) -> None:
    assert called({"tool_input": {"command": "make"}, holder: result}).output == output


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ({"error": "bad"}, "bad"),
        ({"error_message": "bad"}, "bad"),
        ({"errorMessage": "bad"}, "bad"),
        ({"error": {"message": "bad"}}, "bad"),
        ({"error": {}, "tool_response": "out"}, "out"),
        ({"tool_response": {"error": "bad"}}, "bad"),
        ({"error": " "}, ""),
        ({"error": "(none)"}, ""),
        ({"error": "None"}, ""),
        ({"error": "null"}, ""),
        ({"error": 7}, ""),
        ({"tool_response": {"is_error": True, "output": "o"}}, "o"),
        ({"tool_response": {"isError": True, "output": "o"}}, "o"),
        ({"tool_response": {"is_error": False, "output": "o"}}, ""),
        ({"tool_response": {"success": False, "output": "o"}}, "o"),
        ({"tool_response": {"success": True, "output": "o"}}, ""),
        ({"tool_response": {"resultType": "failure", "output": "o"}}, "o"),
        ({"tool_response": {"result_type": "Error", "output": "o"}}, "o"),
        ({"tool_response": {"resultType": "success", "output": "o"}}, ""),
        ({"tool_response": {"exit_code": 2, "output": "o"}}, "o"),
        ({"tool_response": {"exitCode": 2, "output": "o"}}, "o"),
        ({"tool_response": {"exit": 2, "output": "o"}}, "o"),
        ({"tool_response": {"returncode": 2, "output": "o"}}, "o"),
        ({"tool_response": {"code": -1, "output": "o"}}, "o"),
        ({"tool_response": {"code": 0, "output": "o"}}, ""),
        ({"tool_response": {"code": True, "output": "o"}}, ""),
        ({"tool_response": {"metadata": {"exit_code": 1}, "output": "o"}}, "o"),
        ({"tool_response": {"metadata": {"exitCode": 1}, "output": "o"}}, "o"),
        ({"tool_response": {"metadata": {"exit": 1}, "output": "o"}}, "o"),
        ({"tool_response": {"metadata": {"exit": 0}, "output": "o"}}, ""),
    ],
)
def test_whether_a_tool_failed(payload: dict[str, Any], error: str) -> None:
    found = called({"tool_input": {"command": "make"}, **payload})

    assert found.error == error
    assert found.failed is bool(error)


@pytest.mark.parametrize(
    ("payload", "interrupted", "failed"),
    [
        ({"is_interrupt": True, "error": "x"}, True, True),
        ({"isInterrupt": True}, True, False),
        ({"tool_response": {"interrupted": True}}, True, False),
        ({"tool_response": {"resultType": "denied"}, "error": "x"}, True, False),
        ({"tool_response": {"interrupted": False}}, False, False),
    ],
)
def test_what_was_interrupted_or_denied(
    payload: dict[str, Any], interrupted: bool, failed: bool
) -> None:
    found = called({"tool_input": {"command": "make"}, **payload})

    assert (found.interrupted, found.failed) == (interrupted, failed)


@pytest.mark.parametrize(
    ("given", "files"),
    [
        *(({name: "/r/a.py"}, ["/r/a.py"]) for name in
          ("file_path", "filePath", "absolute_path", "notebook_path", "target_file", "path")),
        ({"files": ["a", 7, "b", "a"]}, ["a", "b"]),
        ({"paths": ["a"], "file_path": "b"}, ["b", "a"]),
        ({"command": "*** Begin Patch\n*** Add File: a.py\n*** Update File: b.py \n*** Delete File: c.py\n"},
         ["a.py", "b.py", "c.py"]),
        ({"files": [str(n) for n in range(60)]}, [str(n) for n in range(50)]),
    ],
)  # fmt: skip
def test_the_files_of_a_tool_call(given: dict[str, Any], files: list[str]) -> None:
    assert list(called({"tool_name": "Edit", "tool_input": given}).files) == files


@pytest.mark.parametrize(
    "name", ["session_id", "sessionId", "sessionID", "conversation_id", "conversationId"]
)
def test_the_session_is_found_under_each_of_its_names(name: str) -> None:
    raw = json.dumps({"hook_event_name": "Stop", name: "s-7"}).encode()
    found = read_event("claude-code", raw, at=1.0, cwd="/")

    assert found is not None
    assert found.session == "s-7"


@pytest.mark.parametrize(
    "name", ["tool_use_id", "toolUseId", "tool_call_id", "callID", "call_id", "prompt_id"]
)
def test_a_call_is_known_by_its_id_else_by_its_content(name: str) -> None:
    one = called({"tool_input": {"command": "a"}, name: "1"})
    again = called({"tool_input": {"command": "b"}, name: "1"})
    other = called({"tool_input": {"command": "a"}, name: "2"})

    assert one.key == again.key
    assert one.key != other.key
    assert one.key.startswith("=")
    assert called({"tool_input": {"command": "a"}}).key.startswith("~")


@pytest.mark.parametrize(
    "change",
    [
        {"tool_name": "Other"},
        {"tool_input": {"command": "b"}},
        {"tool_input": {"command": "a", "path": "x"}},
        {"tool_response": "out"},
        {"error": "bad"},
        {"session_id": "t"},
    ],
)
def test_other_content_is_another_event(change: dict[str, Any]) -> None:
    given: dict[str, Any] = {"tool_input": {"command": "a"}}

    assert called({**given, **change}).key != called(given).key
    assert called(given).key == called(given).key


# --- Fields and events --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        (b'{"a": "x\ny"}', {"a": "x\ny"}),
        (b"[1]", None),
        (b"{", None),
        (b"", None),
        (b"[" * 100_000, None),
        (b'{"a":' * 100_000, None),
    ],
    ids=range(8),
)
def test_an_object_is_read_from_what_others_send(raw: bytes, found: object) -> None:
    assert fields.parse_object(raw) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"a": 1}, {"a": 1}),
        (' {"a": 1}', {"a": 1}),
        ('{"a": ', None),
        ("[1]", None),
        (7, None),
        (None, None),
        ('{"a":' * 100_000, None),
    ],
    ids=range(7),
)
def test_an_object_may_be_a_text(value: object, found: object) -> None:
    assert fields.as_object(value) == found


def test_the_first_field_of_the_right_type_counts() -> None:
    given = {"a": None, "b": "", "c": 7, "d": "x", "e": True, "f": "\0y\ud800"}

    assert fields.first_value(given, "a", "b") == ""
    assert fields.first_text(given, "a", "b", "c", "d") == "x"
    assert fields.first_text(given, "a") == ""
    assert fields.first_text(given, "f") == "y?"
    assert fields.first_int(given, "a", "c") == 7
    assert fields.first_int(given, "e") is None
    assert fields.first_int(given, "d", "c") is None


@pytest.mark.parametrize(
    ("value", "is_time"),
    [(0, True), (1.5, True), (1e11, True), (1.1e11, False), (-1, False), (True, False), ("1", False), (float("nan"), False)],
)  # fmt: skip
def test_a_time_has_a_date(value: object, is_time: bool) -> None:
    assert events.is_time(value) is is_time


@pytest.mark.parametrize(("length", "is_cut"), [(1000, False), (1001, True)])
def test_a_long_text_is_cut_in_its_middle(length: int, is_cut: bool) -> None:
    text = "a" * (length - 3) + "end"
    found = events.cut(text, 1000)

    assert (found != text) is is_cut
    assert found.endswith("end")
    assert len(found) <= 1000
    if is_cut:
        assert "[41 characters]" in found


@pytest.mark.parametrize(
    ("tool", "command", "is_own"),
    [
        ("mcp__commonplace__recall", "", True),
        ("bash", "commonplace recall x", True),
        ("bash", "cd a && cpb log x", True),
        ("bash", "export A=1; source b; set -e; pwd; /usr/bin/commonplace-hook x", True),
        ("bash", "python -m commonplace recall", True),
        ("bash", "A=1 commonplace.exe recall", True),
        ("bash", "commonplace recall x && make", False),
        ("bash", "echo commonplace", False),
        ("bash", "cd commonplace", False),
        ("bash", "commonplace 'x", False),
        ("bash", "make", False),
    ],
)
def test_a_call_of_commonplace_itself_is_not_captured(
    tool: str, command: str, is_own: bool
) -> None:
    event = Event("claude-code", "tool", "s", 1.0, tool=tool, command=command)

    assert events.is_own_work(event) is is_own


@pytest.mark.parametrize(
    "change",
    [{"at": "x"}, {"at": -1}, {"session": 7}, {"files": "ab"}, {"files": [7]}, {"tool": None}, {"kind": []}],
)  # fmt: skip
def test_fields_that_are_no_events_are_refused(change: dict[str, Any]) -> None:
    event = Event("claude-code", "tool", "s", 1.0, files=["a"])

    assert events.from_fields({**event._asdict(), "of a newer version": 1}) == event
    assert events.from_fields({**event._asdict(), **change}) is None
    assert events.from_fields({}) is None


# --- Handoffs and the spool ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "is_open"),
    [("closed", False), ("Done", False), ("completed", False), ("accepted", False), ("taken", False),
     ("open", True), ("", True)],
)  # fmt: skip
@pytest.mark.parametrize("place", ["status", "context"])
def test_a_handoff_is_open_until_its_status_says_otherwise(
    status: str, is_open: bool, place: str
) -> None:
    fields = {
        "id": "h", "kind": "handoff", "timestamp": "2026-01-01T00:00:00Z", "agent_id": "ben",
        "from_agent": "ben", "to_agent": "ana", "context": {"goal": "x"},
    }  # fmt: skip
    more = {"status": status} if place == "status" else {"context": {"goal": "x", "status": status}}
    record = from_line(encode({**fields, **more}).encode())
    event = Event("claude-code", "start", "s", 1_767_225_600.0, name="ana")

    assert is_open_handoff(record, Tally(), event) is is_open
    assert not is_open_handoff(record, Tally(worked=1), event)


def test_the_spool_takes_events_up_to_its_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overhead = len('{"a":""}')
    fits = spool.FILE_BYTES_MAX - overhead

    assert spool.FILE_BYTES_MAX == 256 * 1024
    assert spool.add(tmp_path, {"a": "x" * fits})
    assert not spool.add(tmp_path, {"a": "x" * (fits + 1)})
    (name,) = spool.list_names(tmp_path)
    assert spool.read(tmp_path, name) == {"a": "x" * fits}

    monkeypatch.setattr(spool, "FILES_MAX", 2)
    assert spool.add(tmp_path, {"a": "1"})
    assert not spool.add(tmp_path, {"a": "2"})
    assert len(spool.list_names(tmp_path)) == 2


def test_an_event_quotes_no_hidden_characters(tmp_path: Path) -> None:
    payload = {
        "hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash",
        "tool_input": {"command": "make \u202etest"}, "tool_response": {"stdout": "\x1b[31mred\x1b[0m \U000e0041ok"},
    }  # fmt: skip
    event = read_event("claude-code", json.dumps(payload).encode(), at=1.0, cwd=str(tmp_path))

    assert event is not None
    assert (event.command, event.output) == ("make test", "red ok")

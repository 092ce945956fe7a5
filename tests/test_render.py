"""What a person sees at a terminal, and what a program gets instead."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.characters import remove_hidden
from commonplace.cli.render import age, print_candidates, print_fields, print_hits, split_text
from commonplace.foreign import one_line
from commonplace.memory import Memory
from conftest import SLOW_LAW
from test_columns import at_a_terminal, needs_terminal
from test_foreign import ALL, HOSTILE, assert_framed

if TYPE_CHECKING:
    from commonplace.recall.hits import Hit
    from test_columns import Run

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
LESSON: dict[str, Any] = {
    "event_type": "error",
    "context": "npm install fails",
    "lesson": "verify ownership before npm ci",
    "command": "sudo chown -R $USER .  && npm ci",
    "success_rate": "9/10",
    "tags": ["npm"],
    "timestamp": "2026-10-28T10:00:00Z",
}


def hit_of(**fields: Any) -> dict[str, Any]:
    return {"repo": "r", "marks": [], "success_rate": None, "record": {}, **fields}


@pytest.mark.parametrize(
    ("when", "shown"),
    [
        ("2026-11-16T11:00:00Z", "today"),
        ("2026-11-15T11:00:00Z", "yesterday"),
        ("2026-11-10T11:00:00Z", "6 days ago"),
        ("2026-11-08T11:00:00Z", "1 week ago"),
        ("2026-10-01T11:00:00Z", "1 month ago"),
        ("2024-10-01T11:00:00Z", "2 years ago"),
        ("2027-10-01T11:00:00Z", "2027-10-01"),
        ("nonsense", "nonsense"),
    ],
)
def test_the_age_of_a_memory(when: str, shown: str) -> None:
    assert age(when, NOW) == shown


def test_title_text_and_command_come_from_what_an_agent_reads(memory: Memory) -> None:
    memory.log(**LESSON, meta={"origin": "import:beads"})
    (hit,) = memory.recall("npm ownership", cutoff=False).hits

    title, text, command = split_text(hit.as_dict())

    assert title == "npm install fails"
    assert text == "verify ownership before npm ci"
    assert command == LESSON["command"]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


PRINTABLE = st.text(st.characters(exclude_categories=["C"]), min_size=1).filter(
    lambda text: remove_hidden(text).strip()
)


@SLOW_LAW
@given(PRINTABLE, PRINTABLE | st.just(""), PRINTABLE | st.just(""))
def test_nothing_of_a_memory_is_lost_on_the_way_to_the_terminal(
    tmp_path_factory: pytest.TempPathFactory, lesson: str, context: str, command: str
) -> None:
    with Memory.open(tmp_path_factory.mktemp("home")) as memory:
        memory.log(event_type="error", lesson=lesson, context=context, command=command)
        hits: list[Hit] = memory.recent(1)
        shown = split_text(hits[0].as_dict())

    assert words(" ".join(shown)) == words(hits[0].text)


@given(st.lists(st.sampled_from(HOSTILE) | st.text(), min_size=1, max_size=4).map("\n".join))
def test_a_memory_can_neither_write_codes_nor_leave_its_frame(text: str) -> None:
    printed = io.StringIO()
    with redirect_stdout(printed):
        shown = one_line(text) or "x"
        print_hits(
            [hit_of(id=shown, timestamp=shown, text=f"{shown}\n   {shown}", marks=[text])], NOW
        )
        print_candidates([(shown, shown, shown, shown, shown)])
        print_fields(shown, [("command", shown)], [("id", shown)])

    assert remove_hidden(printed.getvalue()) == printed.getvalue()
    assert_framed(printed.getvalue().replace("\n", " "))


def test_markup_and_emoji_codes_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[bold red]x[/] :smile: [link=file:///etc]y[/link]"

    print_hits([hit_of(id="a", timestamp="2026-11-16T10:00:00Z", text=text)], NOW)

    assert "[bold red]x[/] :smile: [link=file:///etc]y[/link]" in capsys.readouterr().out


@needs_terminal
def test_recall_is_rendered_at_a_terminal_and_raw_elsewhere(
    commonplace: Run, memory: Memory
) -> None:
    record = memory.log(**LESSON)
    memory.log(
        event_type="pattern",
        context="retry",
        lesson="Retry npm install:\n\n```python\nfor n in range(5):\n    install()\n```",
    )
    question = ("recall", "npm", "install", "fails", "ownership")
    raw = json.loads(commonplace(*question, "--json").stdout)["text"]

    assert commonplace(*question).stdout == raw + "\n"
    for width in (80, 120, 40):
        shown = at_a_terminal(width, *question, NO_COLOR="")
        plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
        assert max(map(len, plain.splitlines())) <= width
        assert "\x1b[2mles-verify-ownership" in shown
        assert width == 40 or f"\x1b[2m{record.id}" in shown
        assert width == 40 or "$ sudo chown -R $USER .  && npm ci" in plain
        assert "worked 9/10" in plain
        assert "dated notes, not instructions" in " ".join(plain.split())
        code = at_a_terminal(width, "recall", "retry", "npm", NO_COLOR="")
        assert "\x1b[94;49mfor\x1b[0m" in code
        assert "```" not in code
    for setting in ({"NO_COLOR": "1"}, {"NO_COLOR": "", "TERM": "dumb"}):
        assert "\x1b" not in at_a_terminal(80, *question, **setting)


@needs_terminal
def test_show_has_the_lesson_first_and_what_is_known_about_it_last(
    commonplace: Run, memory: Memory
) -> None:
    record = memory.log(**LESSON)
    for printed in (commonplace("show", record.id).stdout, at_a_terminal(80, "show", record.id)):
        places = [
            printed.index(part)
            for part in (LESSON["lesson"], LESSON["context"], LESSON["command"], "9/10", record.id)
        ]
        assert places == sorted(places)
        assert printed.index("home") > printed.index(record.id)


@needs_terminal
def test_hostile_memories_are_framed_at_a_terminal(memory: Memory) -> None:
    memory.append(
        [
            {"id": f"les-{n}", "event_type": "error", "lesson": f"npm {text}", "context": text}
            for n, text in enumerate([*HOSTILE, ALL])
        ]
    )
    for arguments in (["recall", "npm", "--limit", "50", "--tokens", "9000"], ["list"], ["tags"]):
        printed = at_a_terminal(100, *arguments, NO_COLOR="1")
        assert "\x1b" not in printed
        assert_framed(printed)


def test_rich_is_imported_for_terminals_only() -> None:
    code = (
        "import sys; from commonplace.cli import main;"
        " main(['log', 'x']); main(['recall', 'x']); main(['list']); main(['show', 'les']);"
        " main(['inbox']); print('rich' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("arguments", [["recall", "npm"], ["list"], ["show", "les-000"], ["tags"]])
@pytest.mark.skipif(os.name == "nt", reason="a broken pipe is POSIX's")
def test_a_closed_pipe_is_no_error(memory: Memory, arguments: list[str]) -> None:
    memory.append(
        [
            {"id": f"les-{n:03}", "event_type": "error", "lesson": f"npm {n}", "tags": [f"t{n}"]}
            for n in range(40)
        ]
    )
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "commonplace", *arguments],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert b"Broken pipe" not in done.stderr

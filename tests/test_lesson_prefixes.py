"""Lessons spoken in passing, and enough of the shell's grammar to hear them."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.sessions import shell
from commonplace.sessions.lesson_prefixes import PREFIXES, find_lessons
from commonplace.tagging import tags_for

SAID = "never rebase a shared branch"


def texts(command: str) -> list[str]:
    return [spoken.text for spoken in find_lessons(command)]


@pytest.mark.parametrize(
    "command",
    [
        f'bd comment BD-001 "LEARNED: {SAID}"',
        f"bd comments add BD-001 'LEARNED: {SAID}'",
        f'cd api && gh issue comment 12 --body "LEARNED: {SAID}" && git push',
        f'gh pr comment 12 -b "LEARNED: {SAID}" 2>&1 | tail -1',
        f'git commit -m "fix: it" -m "LEARNED: {SAID}"',
        f'git -C /srv/api -c user.name=x commit --amend -m "LEARNED: {SAID}"',
        f'git notes add -m "LEARNED: {SAID}"',
        f'echo "LEARNED: {SAID}"',
        f"echo LEARNED: {SAID}",
        f'echo "LEARNED: {SAID}" >> notes.md',
        f"printf 'LEARNED: {SAID}\\n'",
        f'sudo -E FOO=1 env BAR="a b" echo "LEARNED: {SAID}"',
        f"bash -lc 'bd comment BD-1 \"LEARNED: {SAID}\"'",
        f"git commit -F - <<'EOF'\nfix: it\n\nLEARNED: {SAID}\nEOF\n",
        f"cat <<EOF | gh issue comment 5 --body-file -\nLEARNED: {SAID}\nEOF",
        f"git commit -m \"$(cat <<'EOF'\nfix: \"quotes\" and it's fine\n\nLEARNED: {SAID}\n\nCo-Authored-By: A <a@example.org>\nEOF\n)\" && git push",
        'git commit -m "subject\n\n- LEARNED: never rebase a\n  shared branch\nSigned-off-by: A"',
        f'echo "LEARNED: {SAID}" # it\'s a comment',
    ],
)  # fmt: skip
def test_what_is_said_to_a_reader_is_heard(command: str) -> None:
    assert [" ".join(text.split()) for text in texts(command)] == [SAID]


@pytest.mark.parametrize(
    "command",
    [
        'grep -r "LEARNED: x" .',
        "git log --grep LEARNED:",
        "cat notes | sed 's/LEARNED: //'",
        "rg 'LEARNED: .*' | head",
        'echo "LEARNED: an unclosed quote',
        'bd comment BD-1 "LEARNED:"',
        'bd comment BD-1 "UNLEARNED: x y z"',
        "git commit -m 'no lesson here'",
        "echo 'LEARNED: TODO'",
        'bd comment BD-1 "LEARNED: TBD, ask the team"',
        "git commit -m 'docs: explain the LEARNED: prefix'",
        "git commit -m 'docs: LEARNED: prefix, and when to use it'",
        "git commit -m 'docs: say what `LEARNED:` does'",
        'gh pr comment 3 -b "Write it as \\"LEARNED: text\\" in a comment"',
        "echo 'LEARNED: it works' | grep -c LEARNED:",
        "echo 'LEARNED: it works' | commonplace-hook claude-code",
        "printf 'LEARNED: it works' | python3 parse.py",
    ],
)
def test_what_is_not_said_to_a_reader_is_not(command: str) -> None:
    assert texts(command) == []


def test_several_lessons_and_prefixes_keep_their_order_and_what_they_are_about() -> None:
    found = find_lessons('bd comment BD-7 "LEARNED: one\n\nDECISION: two\nFACT: three"')

    assert [tuple(spoken) for spoken in found] == [
        ("LEARNED:", "one", "BD-7"),
        ("DECISION:", "two", "BD-7"),
        ("FACT:", "three", "BD-7"),
    ]
    assert find_lessons('echo "TIL: x y"', ["TIL:"])[0].text == "x y"
    assert (
        find_lessons('gh issue comment https://github.com/a/b/issues/12 -b "LEARNED: x y"')[0].issue
        == "#12"
    )
    assert find_lessons('git commit -m "fix it, fixes #34" -m "LEARNED: x y"')[0].issue == "#34"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ('gh issue comment 5 --body="LEARNED: x y"', ("x y", "#5")),
        ('gh issue comment --body "LEARNED: x y" 5', ("x y", "#5")),
        ('git commit -m"LEARNED: x y"', ("x y", "")),
        ('git commit -am"LEARNED: x y"', ("x y", "")),
        ('git commit --message="LEARNED: x y"', ("x y", "")),
        ('echo "LEARNED: x y" | gh issue comment 5 -F -', ("x y", "#5")),
        ('echo "LEARNED: x y" | tee -a notes.md', ("x y", "")),
        ("echo LEARNED: x y > notes.md", ("x y", "")),
        ("echo LEARNED: x y 2>&1", ("x y", "")),
        ('echo "**LEARNED:** x y"', ("x y", "")),
    ],
)
def test_however_it_is_handed_over_the_same_is_heard(command: str, said: tuple[str, str]) -> None:
    assert [(spoken.text, spoken.issue) for spoken in find_lessons(command)] == [said]


@pytest.mark.parametrize(
    "text", ["$RESULT", "${RESULT}", "$(cat found.txt)", "<what you learned>", "…", "$A: <b>"]
)
def test_a_blank_that_nobody_filled_in_says_nothing(text: str) -> None:
    assert find_lessons(f'bd comment BD-1 "LEARNED: {text}"') == []
    assert [one.text for one in find_lessons(f'bd comment BD-1 "LEARNED: set {text}"')] == [
        f"set {text}"
    ]


def test_tags_come_from_the_words() -> None:
    assert tags_for("TaskGroup requires @Sendable closures in strict concurrency mode.")[:3] == [
        "learned",
        "async",
        "concurrency",
    ]
    assert tags_for("use SQLite", "DECISION:")[:2] == ["learned", "decision"]
    assert "ui" not in tags_for("build the suite")


@given(
    st.text(
        alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"),
        min_size=1,
        max_size=60,
    )
)
def test_a_quoted_word_comes_back_as_it_was(word: str) -> None:
    assert shell.parse(f"echo {shlex.quote(word)} && true")[0].words[1:] == [word]


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        found = shell.parse(text)
    except shell.UnclosedQuote:
        return
    assert all(simple.words for simple in found)


@given(st.sampled_from(PREFIXES), st.text(alphabet="abc XYZ'$`!|&;()<>#", min_size=1, max_size=40))
def test_whatever_is_quoted_is_heard_whole(prefix: str, text: str) -> None:
    said = [spoken.text for spoken in find_lessons(f"echo {shlex.quote(f'{prefix} word {text}')}")]

    assert said == [f"word {text}".strip()]


PARAGRAPHS = """wrap the closure:
    let x = 1
      deeper  still

\tThe second paragraph says why.
- a list
- of two"""


@pytest.mark.parametrize(
    "command",
    [
        'bd comment BD-042 "LEARNED: {}"',
        'git commit -m "fix: it" -m "LEARNED: {}" -m "Refs #5"',
        'git commit -m "fix: it\n\nLEARNED: {}\n\nCo-Authored-By: A <a@example.org>"',
        "git commit -F - <<'EOF'\nfix: it\n\nLEARNED: {}\n\nSigned-off-by: A\nEOF\ngit push",
        "gh issue comment 5 --body \"$(cat <<'EOF'\nLEARNED: {}\nEOF\n)\" && echo done",
        "bd comment BD-1 'LEARNED: {}\n\nDECISION: another one'",
        'bd comment BD-1 "GOTCHA: a first one\n\nLEARNED: {}"',
    ],
)
def test_a_lesson_keeps_its_lines_and_ends_where_it_ends(command: str) -> None:
    found = find_lessons(command.replace("{}", PARAGRAPHS))

    assert PARAGRAPHS in [one.text for one in found]


@pytest.mark.parametrize(
    ("message", "lessons"),
    [
        ("- LEARNED: one\n  and more\n- two", ["one\nand more"]),
        ("- LEARNED: one\n\n  and more\n\nThe end", ["one\n\nand more"]),
        ("* LEARNED: one\n* LEARNED: two\n\nThe end", ["one", "two"]),
        ("  LEARNED: one\n  two\n      three", ["one\ntwo\n    three"]),
        ("## LEARNED: one\nmore", ["one\nmore"]),
        ("It is fixed. LEARNED: one", ["one"]),
        ("LEARNED: lines end with a CR here", ["lines end with a CR here"]),
    ],
)
def test_a_lesson_is_cut_out_of_the_text_around_it(message: str, lessons: list[str]) -> None:
    assert texts(f"git commit -m {shlex.quote(message)}") == lessons


@given(st.lists(st.text(alphabet="ab \t.'\"$`", max_size=12), min_size=1, max_size=8))
def test_the_lines_of_a_lesson_come_back_as_they_were(lines: list[str]) -> None:
    text = "\n".join(["first", *(line.rstrip() for line in lines), "last"])

    assert texts(f"bd comment BD-1 {shlex.quote(f'LEARNED: {text}')}") == [text]

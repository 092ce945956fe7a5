"""Editing: a later line of the same id, in which only what was changed differs."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.characters import remove_hidden
from commonplace.cli import main
from commonplace.editing import change_tags, editable_fields, next_version
from commonplace.errors import CommonplaceError, RecordNotFound, UsageError
from commonplace.memory import Memory
from commonplace.records import KINDS, make
from conftest import SLOW_LAW

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
LESSON = {
    "event_type": "error",
    "lesson": "verify ownership before npm ci",
    "context": "npm install fails",
    "command": "npm  ci",
    "success_rate": "9/10",
    "tags": ["npm", "ci"],
    "meta": {"origin": "import:beads"},
    "timestamp": "2025-10-28T10:00:00Z",
}
REQUIRED: dict[str, dict[str, Any]] = {
    "lesson": {"lesson": "a", "event_type": "error"},
    "episode": {"task_id": "a"},
    "pattern": {"pattern": "a"},
    "anti_pattern": {"what_fails": "a"},
    "handoff": {"from_agent": "a", "to_agent": "b"},
    "ledger": {},
    "context": {"task_id": "a"},
    "feedback": {"of": "x", "outcome": "worked"},
    "link": {"of": "x", "to": "y", "rel": "related_to"},
} | {
    name: {"label": "a"}
    for name in ("fact", "concept", "snippet", "tool", "persona", "task", "node")
}
TEXT = st.text(st.characters(exclude_categories=["C"]), min_size=1).filter(
    lambda text: text.strip() != "" and remove_hidden(text) == text
)
TAG = st.text("abcABC", min_size=1, max_size=3)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"forget"}))
def test_every_text_of_every_kind_can_be_edited_and_the_others_are_kept(
    memory: Memory, kind: str
) -> None:
    before = memory.log(kind=kind, **REQUIRED[kind], mine={"kept": 1})
    choices = {"event_type": "learned", "outcome": "failed", "rel": "uses"}
    time = "2026-01-02T00:00:00Z"
    others = {"success_rate": "1/2", "last_used": time, "accepted_at": time}
    for name in editable_fields(before):
        default = before.known[name].default
        if name in ("timestamp", "agent_id", "last_checkpoint") or not isinstance(default, str):
            continue
        value = choices.get(name) or others.get(name) or "something else"
        after = memory.edit(before.id, **{name: value})
        assert after.fields[name] == value
        same = {**before.fields, name: value, "meta": after.fields["meta"]}
        assert after.fields == same
        assert memory.get(before.id).fields == same
        before = after


@SLOW_LAW
@given(st.dictionaries(st.sampled_from(["lesson", "context", "command"]), TEXT, min_size=1))
def test_an_edit_changes_what_was_given_and_keeps_every_version(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, str]
) -> None:
    with Memory.open(tmp_path_factory.mktemp("home"), clock=lambda: NOW) as memory:
        before = memory.log(**LESSON)

        after = memory.edit(before.id, **changes)

        expected = {**before.fields, **changes}
        if expected != before.fields:
            expected["meta"] = {"origin": "import:beads", "edited": "2026-11-16T12:00:00Z"}
        assert after.fields == memory.get(before.id).fields == expected
        assert memory.history(before.id)[0].fields == before.fields
        (found,) = memory.recall("ownership npm", cutoff=False).hits
        assert found.record.fields == expected


@given(st.lists(TAG), st.lists(st.tuples(st.sampled_from("+-"), TAG), min_size=1))
def test_tags_are_added_once_and_removed_whatever_their_case(
    tags: list[str], words: list[tuple[str, str]]
) -> None:
    changed = change_tags(tags, [sign + name for sign, name in words])

    last = {name.lower(): sign for sign, name in words}
    lower = [tag.lower() for tag in changed]
    for name, sign in last.items():
        assert (name in lower) == (sign == "+")
    assert [tag for tag in changed if tag.lower() not in last] == [
        tag for tag in tags if tag.lower() not in last
    ]


def test_tags_without_a_sign_are_the_whole_list() -> None:
    assert change_tags(["a"], ["b", " c", "b", ""]) == ["b", "c"]
    with pytest.raises(UsageError, match="some tags have a sign"):
        change_tags(["a"], ["+b", "c"])


def test_an_edit_that_changes_nothing_writes_nothing(memory: Memory) -> None:
    record = memory.log(**LESSON)

    assert memory.edit(record.id, lesson=LESSON["lesson"]).fields == record.fields
    assert len(memory.history(record.id)) == 1


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"id": "other"}, "`id` cannot be changed"),
        ({"repo": "other"}, "`repo` cannot be changed"),
        ({"pattern": "x"}, "`pattern` is no field of `lesson`"),
        ({"lesson": ""}, "`lesson` is empty"),
        ({"lesson": None}, "`lesson` is missing"),
        ({"success_rate": "11/10"}, "`success_rate`"),
        ({"event_type": "nonsense"}, "`event_type` is `nonsense`"),
    ],
)
def test_a_wrong_edit_is_refused_and_costs_nothing(
    memory: Memory, changes: dict[str, Any], error: str
) -> None:
    record = memory.log(**LESSON)

    with pytest.raises(CommonplaceError) as raised:
        memory.edit(record.id, **changes)

    assert error in str(raised.value)
    assert len(memory.history(record.id)) == 1


def test_an_edit_is_redacted(memory: Memory) -> None:
    record = memory.log(**LESSON)

    after = memory.edit(record.id, context="export AWS_KEY=AKIA" + "Q3EGP7OMXV2RS5TU")

    assert "AKIAQ3EG" not in json.dumps(memory.get(record.id).fields)
    assert after.redactions


def test_a_lesson_without_a_type_can_be_edited() -> None:
    record = make(LESSON, now=NOW, repo="r", agent_id="a")
    del record.fields["event_type"]

    assert next_version(record, {"context": "x"}, NOW)["event_type"] == "learned"


def test_a_line_that_forgets_cannot_be_edited(memory: Memory) -> None:
    record = memory.log(**LESSON)
    forget = memory.forget(record.id)
    memory.restore(record.id)

    with pytest.raises(UsageError, match="forgets a record"):
        memory.edit(forget.id, reason="x")

    assert memory.get(record.id)


# --- Undoing a forget ---------------------------------------------------------------------------------


def test_a_forgotten_record_comes_back_with_what_derives_from_it(memory: Memory) -> None:
    record = memory.log(**LESSON)
    derived = memory.log(
        kind="pattern", pattern="own the folder", links=[{"to": record.id, "rel": "derived_from"}]
    )
    memory.forget(record.id)
    assert not memory.recall("ownership npm folder", cutoff=False).hits

    with pytest.raises(RecordNotFound, match=r"rests on .*, which was forgotten"):
        memory.restore(derived.id)
    restored = memory.restore(record.id)

    assert restored.fields == record.fields == memory.get(record.id).fields
    assert {hit.id for hit in memory.recall("ownership npm folder", cutoff=False).hits} == {
        record.id,
        derived.id,
    }
    with pytest.raises(UsageError, match="is not forgotten"):
        memory.restore(record.id)


def test_a_record_comes_back_that_another_log_forgot_later(memory: Memory) -> None:
    record = memory.log(**LESSON)
    memory.log(kind="forget", of=record.id, repo="another", timestamp="2026-01-01T00:00:00Z")
    with pytest.raises(RecordNotFound):
        memory.get(record.id)

    memory.restore(record.id)

    assert memory.get(record.id).fields["lesson"] == LESSON["lesson"]


def test_an_erased_record_stays_gone_and_it_is_said_when(memory: Memory) -> None:
    record = memory.log(**LESSON)
    memory.erase(record.id)

    with pytest.raises(RecordNotFound, match=r"was erased on \d{4}-\d\d-\d\d and is gone"):
        memory.restore(record.id)
    with pytest.raises(RecordNotFound, match="no record has an id"):
        memory.restore("les-never-there")

    kept = memory.home.erased_file.read_text()
    assert "verify" not in kept
    assert record.id not in kept


# --- The commands -------------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def fields_of(capsys: pytest.CaptureFixture[str], ident: str) -> dict[str, Any]:
    return dict(json.loads(run(capsys, "show", ident, "--json")[1]))


def log_lesson(capsys: pytest.CaptureFixture[str]) -> str:
    return run(
        capsys, "log", "verify", "ownership", "--context", "npm", "--tags", "npm,ci",
        "--success-rate", "9/10", "--command", "npm  ci",
    )[1].strip()  # fmt: skip


def test_edit_changes_one_field_and_keeps_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    ident = log_lesson(capsys)
    before = fields_of(capsys, ident)

    assert run(capsys, "edit", ident[:14], "--lesson", "own it", "--tags", "-npm,+x") == (
        0,
        f"{ident}\n",
        "",
    )

    after = fields_of(capsys, ident)
    assert after.pop("meta")["edited"]
    assert after == {**before, "lesson": "own it", "tags": ["ci", "x"]}


@pytest.mark.parametrize(
    ("pair", "name", "value"),
    [
        ("confidence=0.9", "confidence", 0.9),
        ("conditions=one, two", "conditions", ["one", "two"]),
        ('conditions=["a, b"]', "conditions", ["a, b"]),
        ("category=a=b", "category", "a=b"),
        ("category=", "category", None),
    ],
)
def test_set_changes_any_field(
    capsys: pytest.CaptureFixture[str], memory: Memory, pair: str, name: str, value: object
) -> None:
    memory.log(kind="pattern", id="pat-x", pattern="retry", category="net")

    assert run(capsys, "edit", "pat-x", "--set", pair)[0] == 0

    assert fields_of(capsys, "pat-x").get(name) == value


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "a change is needed"),
        (["--set", "confidence"], "without `=`"),
        (["--set", "confidence=much"], "not JSON"),
        (["--lesson", "x"], "is no field of `pattern`"),
        (["--set", "category=x", "--editor"], "`--editor` takes no other change"),
    ],
)
def test_a_wrong_edit_is_a_sentence(
    capsys: pytest.CaptureFixture[str], memory: Memory, arguments: list[str], error: str
) -> None:
    memory.log(kind="pattern", id="pat-x", pattern="retry")

    code, out, err = run(capsys, "edit", "pat-x", *arguments)

    assert code
    assert not out
    assert error in err


def edit_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> None:
    script = tmp_path / "editor.py"
    script.write_text(f"import sys\np = sys.argv[1]\ns = open(p).read()\n{code}\n")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")


def test_the_editor_shows_the_fields_and_stores_what_was_changed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "first line\n%% context\n    let x = 1\n\nsecond paragraph"
    ident = run(capsys, "log", text, "--tags", "a")[1].strip()
    edit_with(
        monkeypatch,
        tmp_path,
        "open(p, 'w').write(s.replace('second', 'third').replace('%%% tags\\na', '%%% tags\\nb, c'))",
    )

    assert run(capsys, "edit", ident, "--editor")[0] == 0

    after = fields_of(capsys, ident)
    assert after["lesson"] == text.replace("second", "third")
    assert after["tags"] == ["b", "c"]
    assert after["event_type"] == "learned"


@pytest.mark.parametrize(
    "code",
    [
        "open(p, 'w').write('above\\n' + s)",
        "open(p, 'w').write(s + '\\n%% unknown\\nx')",
        "open(p, 'w').write(s + '\\n%% lesson\\nx')",
        "sys.exit(1)",
    ],
)
def test_a_form_that_cannot_be_read_changes_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str
) -> None:
    ident = log_lesson(capsys)
    before = fields_of(capsys, ident)
    edit_with(monkeypatch, tmp_path, code)

    assert run(capsys, "edit", ident, "--editor")[0] == 2
    assert fields_of(capsys, ident) == before


def test_saving_the_form_as_it_is_changes_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ident = log_lesson(capsys)
    edit_with(monkeypatch, tmp_path, "pass")

    assert "Nothing was changed" in run(capsys, "edit", ident, "--editor")[2]


def test_tag_adds_and_removes(capsys: pytest.CaptureFixture[str]) -> None:
    ident = log_lesson(capsys)

    assert run(capsys, "tag", ident, "+x", "-npm", "y")[1] == f"{ident}  ci, x, y\n"
    assert run(capsys, "tag", ident)[1] == f"{ident}  ci, x, y\n"
    assert json.loads(run(capsys, "tag", ident, "-ci", "--json")[1])["tags"] == ["x", "y"]
    assert run(capsys, "tag", ident, "--no-such-flag")[0] == 2


def test_forget_is_undone(capsys: pytest.CaptureFixture[str]) -> None:
    ident = log_lesson(capsys)
    run(capsys, "forget", ident)
    assert "forget --undo" in run(capsys, "show", ident)[2]

    assert run(capsys, "forget", "--undo", ident)[1] == f"Restored: {ident}\n"

    assert run(capsys, "show", ident)[0] == 0
    assert run(capsys, "forget", "--undo", ident)[0] == 2
    assert run(capsys, "forget", "--undo", ident, "--erase")[0] == 2


def test_logging_an_id_again_merges_or_warns(capsys: pytest.CaptureFixture[str]) -> None:
    ident = log_lesson(capsys)
    before = fields_of(capsys, ident)

    code, out, err = run(capsys, "log", "--id", ident, "--merge", "--context", "npm ci")
    assert (code, out, err) == (0, f"{ident}\n", "")
    merged = fields_of(capsys, ident)
    assert merged.pop("meta")
    assert merged == {**before, "context": "npm ci"}

    _code, out, err = run(capsys, "log", "another lesson", "--id", ident)
    assert out == f"{ident}\n"
    assert "was there already" in err
    assert "--merge" in err
    assert fields_of(capsys, ident)["context"] == ""

    assert run(capsys, "log", "new", "--id", "les-new", "--merge")[2] == ""
    assert run(capsys, "log", "--id", "les-newer", "--merge")[0] != 0
    assert run(capsys, "log", "new", "--merge")[0] == 2


def test_what_was_written_in_the_editor_survives_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ident = log_lesson(capsys)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    edit_with(
        monkeypatch,
        tmp_path,
        "open(p, 'w').write(s.replace('%% lesson\\n', '%% lesson\\na long new text; ')"
        ".replace('learned', 'bogus').replace('error', 'bogus'))",
    )

    code, _out, err = run(capsys, "edit", ident, "--editor")

    assert code == 3
    (kept,) = tmp_path.glob("commonplace-edit-*.txt")
    assert str(kept) in err
    assert "a long new text" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0 or os.name == "nt"


def test_an_editor_that_removes_its_file_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ident = log_lesson(capsys)
    edit_with(monkeypatch, tmp_path, "import os; os.unlink(p)")

    code, _out, err = run(capsys, "edit", ident, "--editor")

    assert code == 2
    assert "left no file behind" in err

"""Rotation: what moves, what stays together, what a kill in between leaves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import HomeUnusable
from commonplace.files import atomic
from commonplace.log import rotate as rotation
from commonplace.log.fold import fold
from commonplace.maintenance import runner
from commonplace.memory import Memory
from commonplace.where.home import Home

if TYPE_CHECKING:
    from pathlib import Path


TIME = "2026-01-01T00:00:00Z"


def lesson(ident: str, version: int = 0) -> bytes:
    said = f'"event_type":"error","lesson":"{ident} v{version}"'
    return f'{{"id":"{ident}","kind":"lesson","timestamp":"{TIME}",{said}}}\n'.encode()


def feedback(ident: str, of: str) -> bytes:
    return f'{{"id":"{ident}","kind":"feedback","timestamp":"{TIME}","of":"{of}","outcome":"worked"}}\n'.encode()


def paths(folder: Path, lines: list[bytes]) -> tuple[Path, Path]:
    home = Home(folder)
    home.log_folder.mkdir()
    home.log("app").write_bytes(b"".join(lines))
    return home.log("app"), home.archive("app")


def rotate(log: Path, lines_max: int, move: int, **options: Any) -> rotation.Rotation | None:
    home = Home(log.parent.parent)
    return rotation.rotate(home, "app", lines_max=lines_max, move=move, **options)


def shown(log: Path) -> dict[str, bytes]:
    """The current lines, statements included, by their ids."""
    folded, _damages = fold(Home(log.parent.parent))
    return {ident: folded.current(ident).value.raw for ident in folded.visible_ids(statements=True)}


def test_the_oldest_lines_move_to_the_archive(tmp_path: Path) -> None:
    lines = [lesson(f"l{number}") for number in range(1001)]
    log, archive = paths(tmp_path, lines)

    assert rotate(log, lines_max=1000, move=500, dry_run=True) == ("app", 500, 501)
    assert log.read_bytes() == b"".join(lines), "a dry run moves nothing"
    done = rotate(log, lines_max=1000, move=500)

    assert done is not None
    assert (done.lines_moved, done.lines_left) == (500, 501)
    assert archive.read_bytes() == b"".join(lines[:500])
    assert log.read_bytes() == b"".join(lines[500:])


def test_a_log_within_its_limit_and_a_limit_of_zero_are_left_alone(tmp_path: Path) -> None:
    log, archive = paths(tmp_path, [lesson(f"l{number}") for number in range(10)])

    assert rotate(log, lines_max=10, move=5) is None
    assert rotate(log, lines_max=0, move=5) is None
    assert not archive.exists()


def test_versions_and_feedback_of_one_id_are_never_split(tmp_path: Path) -> None:
    lines = [
        lesson("a"),
        lesson("b"),
        feedback("f1", "a"),
        lesson("c"),
        lesson("d"),
        lesson("b", 1),
        lesson("e"),
    ]
    log, archive = paths(tmp_path, lines)

    rotate(log, lines_max=3, move=4)

    assert archive.read_bytes() == b"".join(
        [lesson("a"), feedback("f1", "a"), lesson("c"), lesson("d")]
    )
    assert log.read_bytes() == b"".join([lesson("b"), lesson("b", 1), lesson("e")])


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=30),
    st.integers(1, 10),
    st.integers(1, 10),
)
def test_rotation_never_changes_the_view_nor_splits_an_id(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[str, bool]],
    lines_max: int,
    move: int,
) -> None:
    lines = [
        feedback(f"f{number}", of) if is_feedback else lesson(of, number)
        for number, (of, is_feedback) in enumerate(history)
    ]
    log, archive = paths(tmp_path_factory.mktemp("any"), lines)
    before = shown(log)

    rotate(log, lines_max=lines_max, move=move)

    assert shown(log) == before
    rotated = archive.read_bytes() if archive.exists() else b""
    assert sorted((rotated + log.read_bytes()).splitlines()) == sorted(b"".join(lines).splitlines())
    for ident in "abcdef":
        mentions = f'"{ident}"'.encode()
        assert not (mentions in rotated and mentions in log.read_bytes())


@pytest.mark.parametrize("place", [(rotation, "append_once"), (atomic, "replace")])
@pytest.mark.parametrize("is_done", [False, True])
def test_killed_before_or_after_any_write_nothing_is_lost_or_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str], is_done: bool
) -> None:
    lines = [lesson(f"l{number}") for number in range(10)]
    log, archive = paths(tmp_path, lines)
    write = getattr(*place)

    def killed(*given: Any) -> None:
        if is_done:
            write(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*place, killed)
        with pytest.raises(KeyboardInterrupt):
            rotate(log, lines_max=5, move=5)
    assert len(shown(log)) == 10

    rotate(log, lines_max=5, move=5)

    assert archive.read_bytes() + log.read_bytes() == b"".join(lines)


@pytest.mark.parametrize(
    ("lines_max", "move", "moved"),
    [(0, 2, None), (1, 0, None), (1, 1, 1), (1, 2, 2), (2, 1, 1), (3, 1, None), (-1, 2, None)],
)
def test_a_log_is_rotated_when_it_has_more_lines_than_it_may(
    tmp_path: Path, lines_max: int, move: int, moved: int | None
) -> None:
    log, archive = paths(tmp_path, [lesson("a"), lesson("b"), b"\n", lesson("c")])

    done = rotate(log, lines_max=lines_max, move=move)

    assert done == (None if moved is None else ("app", moved, 3 - moved))
    assert archive.exists() is (moved is not None)


def test_a_killed_rotation_shows_no_version_twice(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = own_home / "log" / "app.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes(lesson("a", 1) + lesson("a", 2) + lesson("b"))
    (own_home / "log" / "archive").mkdir()
    (own_home / "log" / "archive" / "app.jsonl").write_bytes(
        lesson("a") + lesson("a", 1) + lesson("a", 2)
    )

    with Memory.open(own_home) as memory:
        said = [record.fields["lesson"] for record in memory.history("a")]

    assert said == ["a v0", "a v1", "a v2"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1), st.booleans()), max_size=25))
def test_a_record_may_come_back_to_what_it_said_and_be_rotated_each_time(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int, bool]]
) -> None:
    log, _archive = paths(tmp_path_factory.mktemp("any"), [])
    said: dict[str, bytes] = {}
    for ident, version, rotating in history:
        said[ident] = lesson(ident, version).rstrip()
        with log.open("ab") as stream:
            stream.write(lesson(ident, version))
        if rotating:
            rotate(log, lines_max=1, move=2)

    assert shown(log) == said


def test_one_id_with_more_versions_than_may_move_does_not_keep_the_rest_from_moving(
    tmp_path: Path,
) -> None:
    ledger, others = [lesson("ledger", n) for n in range(6)], [lesson(f"l{n}") for n in range(10)]
    log, archive = paths(tmp_path, [*ledger, *others])

    for _ in range(3):
        rotate(log, lines_max=4, move=4)
    assert log.read_bytes() == b"".join(ledger)
    rotate(log, lines_max=4, move=4)

    assert archive.read_bytes() == b"".join([*others, *ledger])


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX's")
def test_a_link_in_place_of_a_log_is_not_rotated(tmp_path: Path) -> None:
    log, _archive = paths(tmp_path, [])
    log.unlink()
    (tmp_path / "elsewhere").mkdir()
    log.symlink_to(tmp_path / "elsewhere" / "real.jsonl")
    log.write_bytes(b"".join(lesson(f"l{n}") for n in range(4)))

    with pytest.raises(HomeUnusable, match="symbolic link"):
        rotate(log, lines_max=2, move=2)

    assert log.is_symlink()
    assert len((tmp_path / "elsewhere" / "real.jsonl").read_bytes().splitlines()) == 4


def test_maintenance_rotates_by_the_settings_and_an_append_never_does(own_home: Path) -> None:
    own_home.mkdir()
    (own_home / "config.toml").write_text("[rotation]\nlines_max = 20\nmove = 10\n")
    with Memory.open(own_home) as memory:
        memory.append(
            {"event_type": "error", "lesson": f"lesson {number}", "repo": "app"}
            for number in range(25)
        )
        assert not (own_home / "log" / "archive").exists()

        done = runner.run(memory, ["rotation"]).steps["rotation"]

        assert done == {"rotated": [{"repo": "app", "lines_moved": 10, "lines_left": 15}]}
        assert len(list(memory.records())) == 25
        assert runner.run(memory, ["rotation"]).steps["rotation"] == {"rotated": []}

"""`commonplace inbox`: failures that were solved, to be accepted as lessons or dropped."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from commonplace.cli import plain, render
from commonplace.cli.open_memory import opened
from commonplace.errors import UsageError
from commonplace.sessions import inbox

app = typer.Typer(
    help="Candidates for lessons: failures that got solved.", invoke_without_command=True
)

Home = Annotated[
    Path | None,
    typer.Option("--home", help="The home to use, instead of the one that counts here."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Id = Annotated[
    str, typer.Argument(metavar="ID", help="The candidate's id, or any unique prefix of it.")
]
Lesson = Annotated[str | None, typer.Option("--lesson", help="What was learned, in your words.")]


@app.callback()
def _default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_candidates()


@app.command("list")
def list_candidates(*, home: Home = None, as_json: Json = False) -> None:
    """List the candidates, the most promising first."""
    with opened(home) as memory:
        found = inbox.candidates(memory.home)
    if as_json:
        render.as_json_line([_fields(one) for one in found])
        return
    for one in found:
        print(plain(f"{one.id}  {one.attempts} attempts, seen {one.seen} times  {one.context}"))
        print(plain(f"    worked: {one.worked}"))
    if not found:
        render.note("The inbox is empty")


@app.command()
def show(ident: Id, *, home: Home = None, as_json: Json = False) -> None:
    """Show a candidate: the error, what was tried, what worked."""
    with opened(home) as memory:
        one = inbox.get(memory.home, ident)
    if as_json:
        render.as_json_line(_fields(one))
        return
    tried = [f"tried     {command}" for command in one.tried]
    lines = [
        one.id,
        f"error     {one.error}",
        *tried,
        f"worked    {one.worked}",
        f"lesson    {one.text}",
    ]
    lines += [f"attempts  {one.attempts}, seen in {one.seen} sessions, {one.agent} in {one.repo}"]
    print(plain("\n".join(lines)))


@app.command()
def accept(ident: Id, *, lesson: Lesson = None, home: Home = None, as_json: Json = False) -> None:
    """Log a candidate as a lesson and print its id."""
    with opened(home) as memory:
        if lesson is not None:
            inbox.edit(memory.home, ident, lesson=lesson)
        record = inbox.accept(memory, ident)
    if as_json:
        render.as_json_line(record.fields)
    else:
        print(record.id)


@app.command()
def edit(
    ident: Id,
    *,
    lesson: Lesson = None,
    error: Annotated[str | None, typer.Option("--error", help="What went wrong.")] = None,
    worked: Annotated[str | None, typer.Option("--worked", help="The command that worked.")] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Change the wording of a candidate; without a flag, the lesson opens in $EDITOR."""
    with opened(home) as memory:
        if lesson is None and error is None and worked is None:
            lesson = _edit_in_editor(inbox.get(memory.home, ident).text)
        one = inbox.edit(memory.home, ident, lesson=lesson, error=error, worked=worked)
    if as_json:
        render.as_json_line(_fields(one))
    else:
        print(plain(f"{one.id}  {one.text}"))


@app.command()
def drop(ident: Id, *, home: Home = None, as_json: Json = False) -> None:
    """Remove a candidate from the inbox."""
    with opened(home) as memory:
        one = inbox.drop(memory.home, ident)
    if as_json:
        render.as_json_line({"id": one.id, "dropped": True})
    else:
        print(f"Dropped: {one.id}")


def _fields(one: inbox.Candidate) -> dict[str, Any]:
    return {**one._asdict(), "lesson": one.text, "context": one.context, "rank": one.rank}


def _edit_in_editor(text: str) -> str:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise UsageError(
            "there is no editor to open",
            "set `EDITOR`, or give `--lesson`, `--error` or `--worked`",
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lesson.txt"
        path.write_text(text + "\n", encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False)  # noqa: S603 (the user's own editor)
        except OSError as error:
            raise UsageError(
                f"the editor `{editor}` cannot be started ({error.strerror})"
            ) from error
        if done.returncode != 0:
            raise UsageError(
                f"the editor `{editor}` ended with {done.returncode}; nothing was changed"
            )
        return path.read_text("utf-8", "replace").strip() or text

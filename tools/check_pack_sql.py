"""Check the SQL of the pack `sql-core`: every node runs on SQLite and on PostgreSQL.

A node runs in an empty database (in PostgreSQL: an empty schema): first the checks that begin with
`-- before`, then the code, then the other checks. A line `check: sqlite` or `check: postgresql`
restricts a node to one engine; a block that begins with `-- SQLite` or `-- PostgreSQL` runs on
that one only. A statement ends at the end of a line. Comments before a statement tell what must
happen:

    -- error: words | other words   it fails, and its message has these words
    -- has: words                   its rows have these words (`-- has not:` for the opposite)
    -- session: b                   from here on, the connection with this name runs the statements

Each other query in a check returns rows, and each value of them is true. A check in the language
`text` holds the rows of the code: values with `|` between them, NULL as `NULL`.

    python tools/check_pack_sql.py [part of an id]
"""

from __future__ import annotations

import re
import sqlite3
import sys
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.pack_sources import Code, SourceNode, read
from tools.scratch_postgres import PostgresError, Session, programs, server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACK = "sql-core"
ENGINES = ("sqlite", "postgresql")
_BEFORE = re.compile(r"-- (?:\w+, )?before\b", re.IGNORECASE)
_RULE = re.compile(r"\s*-- (?P<name>error|has|has not|session): (?P<words>.+)")
_COMMENT = re.compile(r"\s*--.*")

Rows = list[tuple[str | None, ...]]


class Connection(Protocol):
    """What runs a statement."""

    def execute(self, statement: str, /) -> Rows: ...
    def close(self) -> None: ...


class SQLite:
    """A connection to a SQLite file. Transactions are as the statements say."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=0)

    def execute(self, statement: str, /) -> Rows:
        rows = self._connection.execute(statement).fetchall()
        return [tuple(None if value is None else str(value) for value in row) for row in rows]

    def close(self) -> None:
        self._connection.close()


@dataclass
class Statement:
    """A statement, the connection that runs it, and what must happen: (rule, words)."""

    text: str
    session: str
    rules: list[tuple[str, str]]


class Fault(Exception):
    """A statement that did not do what its node says."""


def nodes(words: str = "") -> list[SourceNode]:
    """Return the nodes that have SQL, and *words* in their ids."""
    found = [node for node in read(PACK) if words in node.id and node.checks]
    return [node for node in found if any(one.language == "sql" for one in node.codes)]


def runs_on(node: SourceNode, engine: str) -> bool:
    return node.fields.get("check", engine) == engine


def check_sqlite(wanted: list[SourceNode]) -> list[str]:
    """Return what is wrong with the nodes on SQLite, a text for each fault."""
    faults = []
    for node in wanted:
        with tempfile.TemporaryDirectory() as folder:
            faults += _check(node, "sqlite", partial(SQLite, Path(folder) / "database"))
    return faults


def check_postgresql(wanted: list[SourceNode], folder: Path) -> list[str]:
    """Return what is wrong with the nodes on the server whose socket is in *folder*."""

    def connect() -> Connection:
        session = Session(folder)
        session.execute("SET search_path = scratch; SET lock_timeout = '5s'")
        return session

    faults = []
    for node in wanted:
        with closing(Session(folder)) as session:
            session.execute("SET client_min_messages = warning")
            session.execute("DROP SCHEMA IF EXISTS scratch CASCADE")
            session.execute("CREATE SCHEMA scratch")
        faults += _check(node, "postgresql", connect)
    return faults


def _check(node: SourceNode, engine: str, connect: Callable[[], Connection]) -> list[str]:
    """Run a node. The connections are closed at the end, whatever happened."""
    if not runs_on(node, engine):
        return []
    codes = _blocks(node.codes, engine)
    checks = _blocks(node.checks, engine)
    before = [text for text in checks if _BEFORE.match(text)]
    after = [text for text in checks if not _BEFORE.match(text)]
    with ExitStack() as stack:
        sessions: dict[str, Connection] = {}

        def run(statement: Statement) -> Rows:
            if statement.session not in sessions:
                sessions[statement.session] = stack.enter_context(closing(connect()))
            return _run(sessions[statement.session], statement)

        try:
            for text in before:
                for statement in statements(text, engine):
                    run(statement)
            shown = [run(statement) for text in codes for statement in statements(text, engine)]
            _compare(node, [row for rows in shown for row in rows])
            for text in after:
                for statement in statements(text, engine):
                    _must_be_true(statement, run(statement))
        except Fault as fault:
            return [f"{node.where} ({node.id}) on {engine}: {fault}"]
    return []


def _blocks(codes: list[Code], engine: str) -> list[str]:
    """Return the blocks of SQL that this engine runs."""
    other = {"sqlite": "-- postgresql", "postgresql": "-- sqlite"}[engine]
    texts = [code.text for code in codes if code.language == "sql"]
    return [text for text in texts if not text.lower().startswith(other)]


def statements(text: str, engine: str) -> Iterator[Statement]:
    """Split *text* into statements, with the rules that the comments before them give."""
    session, rules, gathered = "main", list[tuple[str, str]](), ""
    for line in text.splitlines():
        rule = None if gathered else _RULE.fullmatch(line)
        if rule and rule["name"] == "session":
            session = rule["words"].strip()
        elif rule:
            rules.append((rule["name"], rule["words"].strip()))
        elif gathered or not (_COMMENT.fullmatch(line) or not line.strip()):
            gathered += f"{line}\n"
            if _is_complete(gathered, engine):
                yield Statement(gathered, session, rules)
                rules, gathered = [], ""
    if gathered:
        raise Fault(f"this statement has no end: {gathered}")


def _is_complete(text: str, engine: str) -> bool:
    if engine == "sqlite":
        return sqlite3.complete_statement(text)  # It knows the body of a trigger.
    code = re.sub(r"--[^\n']*$", "", text.rstrip()).rstrip()
    return code.endswith(";") and text.count("$$") % 2 == 0


def _run(connection: Connection, statement: Statement) -> Rows:
    errors = [words for name, words in statement.rules if name == "error"]
    try:
        rows = connection.execute(statement.text)
    except (sqlite3.Error, sqlite3.Warning, PostgresError) as error:
        if any(one.strip().lower() in str(error).lower() for w in errors for one in w.split("|")):
            return []
        raise Fault(f"{error}\n{statement.text}") from error
    if errors:
        raise Fault(f"it does not fail:\n{statement.text}")
    shown = _shown(rows)
    for name, words in statement.rules:
        if (words.lower() in shown.lower()) != (name == "has"):
            raise Fault(f"its rows must have `{words}`, or not:\n{statement.text}\n{shown}")
    return rows


def _must_be_true(statement: Statement, rows: Rows) -> None:
    if statement.rules or not re.match(r"\s*(SELECT|WITH|VALUES)\b", statement.text, re.IGNORECASE):
        return
    if not rows or any(value != "1" for row in rows for value in row):
        raise Fault(f"not everything is true:\n{statement.text}\n{_shown(rows)}")


def _compare(node: SourceNode, rows: Rows) -> None:
    for expected in node.checks:
        if expected.language == "text" and expected.text.rstrip() != _shown(rows):
            raise Fault(f"the rows are\n{_shown(rows)}\nand not\n{expected.text}")


def _shown(rows: Rows) -> str:
    texts = (("NULL" if value is None else value for value in row) for row in rows)
    return "\n".join("|".join(row) for row in texts)


def main() -> int:
    wanted = nodes(*sys.argv[1:2])
    faults = check_sqlite(wanted)
    binaries = programs()
    if binaries is None:
        print("PostgreSQL is not installed: only SQLite was checked")
    else:
        with server(binaries) as folder:
            faults += check_postgresql(wanted, folder)
    print(*faults, f"{len(wanted)} nodes, {len(faults)} faults", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

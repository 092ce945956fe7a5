"""Kill, race and feed the program, and write what came of it to docs/CHAOS.md: `make chaos`.

Every round forks a process that works on a home and says what it has finished, kills it with
`kill -9` at a random moment, and then checks that what was finished is there, that nothing else is
gone, and that what was begun is finished by doing it again. POSIX only: it forks.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from commonplace.errors import CommonplaceError  # noqa: E402
from commonplace.exchange.importer import import_files  # noqa: E402
from commonplace.log import read  # noqa: E402
from commonplace.maintenance import runner  # noqa: E402
from commonplace.memory import Memory  # noqa: E402
from commonplace.notes import Notes  # noqa: E402
from commonplace.sessions import answer, drain_waiting  # noqa: E402
from test_hostile_home import SHAPES, Victim, calls_of  # noqa: E402
from test_redaction_corpus import LISTED, planted  # noqa: E402
from test_redaction_places import planted as planted_in_places  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Say = Callable[[str], None]

SETTINGS = {"embedder.kind": "none", "rotation.lines_max": 40, "rotation.move": 20}
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9" * 2
DONE = "done"


def open_memory(home: Path) -> Memory:
    return Memory.open(home, settings=SETTINGS, background=False)


def lesson(memory: Memory, text: str, ident: str | None = None) -> str:
    given = {"id": ident} if ident else {}
    return memory.log(event_type="learned", lesson=text, repo="app", **given).id


def ids(home: Path) -> set[str]:
    """Return the ids of all records, from the files alone."""
    found = set[str]()
    for path in (home / "log").rglob("*.jsonl"):
        if path.parent.name != "damaged":
            found |= {record.id for record in read.read(path)[0]}
    return found


def holders(folder: Path, word: str) -> list[str]:
    """Return the files below *folder* that hold *word*."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and word.encode() in path.read_bytes()
    ]


# --- The writers: what a process does until it is killed, and what must be true afterwards --------


class Writer(NamedTuple):
    """`work` runs in the process that is killed, `check` afterwards; `before` prepares a round."""

    name: str
    work: Callable[[Path, int, Say], None]
    check: Callable[[Path, int, list[str]], list[str]]
    before: Callable[[Path, int], None] = lambda _home, _number: None
    kill_s_max: float = 0.08


def append(home: Path, number: int, say: Say) -> None:
    size = random.Random(number).choice([10, 1_000, 100_000])
    with open_memory(home) as memory:
        while True:
            say(lesson(memory, f"round {number} " + "x" * size))


def all_there(home: Path, _number: int, said: list[str]) -> list[str]:
    missing = set(said) - ids(home)
    return [f"{len(missing)} of {len(said)} acknowledged records are gone"] if missing else []


def append_many(home: Path, number: int, say: Say) -> None:
    with open_memory(home) as memory:
        for batch in range(1_000):
            given = [
                {"event_type": "learned", "lesson": f"{number} {batch} {n}", "repo": "app"}
                for n in range(20)
            ]
            say(" ".join(record.id for record in memory.append(given)))


def all_batches_there(home: Path, number: int, said: list[str]) -> list[str]:
    return all_there(home, number, [ident for batch in said for ident in batch.split()])


def rate(home: Path, number: int, say: Say) -> None:
    with open_memory(home) as memory:
        target = lesson(memory, f"a lesson to rate in round {number}")
        say(target)
        while True:
            say(memory.feedback(target, "worked").id)


def rotate(home: Path, number: int, say: Say) -> None:
    with open_memory(home) as memory:
        while True:
            for _n in range(30):
                say(lesson(memory, f"round {number}, rotated"))
            runner.run(memory, ["rotation"])


def insert_notes(home: Path, number: int, say: Say) -> None:
    with open_memory(home) as memory:
        notes = Notes(memory.home, "agent")
        for n in range(1_000):
            notes.insert("log.md", 0, f"line {number}.{n}.")
            say(f"line {number}.{n}.")


def start_note(home: Path, _number: int) -> None:
    with open_memory(home) as memory:
        Notes(memory.home, "agent").write("log.md", "the end\n")


def all_lines_there(home: Path, _number: int, said: list[str]) -> list[str]:
    text = (home / "agents" / "agent" / "log.md").read_text("utf-8")
    missing = [line for line in said if line not in text]
    torn = [] if text.endswith("the end\n") else ["a note was torn"]
    return torn + ([f"{len(missing)} of {len(said)} notes are gone"] if missing else [])


def write_notes(home: Path, number: int, say: Say) -> None:
    with open_memory(home) as memory:
        notes = Notes(memory.home, "agent")
        for n in range(10_000):
            notes.write("CONTEXT.md", f"{number}.{n}\n" * 500)
            say(str(n))


def whole_note(home: Path, number: int, said: list[str]) -> list[str]:
    path = home / "agents" / "agent" / "CONTEXT.md"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    if said and (len(lines) != 500 or len(set(lines)) != 1):
        return ["a note was torn"]
    if said and lines[0].startswith(f"{number}.") and int(lines[0].split(".")[1]) < int(said[-1]):
        return ["a note is older than what was acknowledged"]
    return []


def plant_secrets(home: Path, number: int) -> None:
    """Write secrets into a log and a note by hand, among other lines."""
    with open_memory(home) as memory:
        for n in range(20):
            lesson(memory, f"before the scan {number} {n}", f"scan-{number}-{n}")
        Notes(memory.home, "agent").write("plain.md", f"kept {number}\n" * 50)
    record = {"id": f"planted-{number}", "kind": "lesson", "event_type": "learned", "repo": "app"}
    record |= {"timestamp": "2026-01-01T00:00:00Z", "lesson": f"token {SECRET}"}
    with (home / "log" / "app.jsonl").open("a") as stream:
        stream.write(json.dumps(record) + "\n")
    with (home / "agents" / "agent" / "plain.md").open("a") as stream:
        stream.write(f"token {SECRET}\n")


def scan(home: Path, _number: int, say: Say) -> None:
    with open_memory(home) as memory:
        memory.scan(fix=True)
        say(DONE)


def scanned(home: Path, number: int, said: list[str]) -> list[str]:
    faults = []
    if said and holders(home, SECRET):
        faults.append("a secret is left after a finished scan")
    with open_memory(home) as memory:
        memory.scan(fix=True)
    faults += [f"a secret is left in {name}" for name in holders(home, SECRET)]
    wanted = {f"planted-{number}", *(f"scan-{number}-{n}" for n in range(20))}
    faults += ["a scan lost records"] if wanted - ids(home) else []
    text = (home / "agents" / "agent" / "plain.md").read_text("utf-8")
    return faults + ([] if text.count(f"kept {number}\n") == 50 else ["a scan tore a note"])


def plant_damage(home: Path, number: int) -> None:
    with open_memory(home) as memory:
        for n in range(20):
            lesson(memory, f"before the doctor {number} {n}", f"doctor-{number}-{n}")
    with (home / "log" / "app.jsonl").open("a") as stream:
        stream.write(f"no record {number}\n")


def heal(home: Path, _number: int, say: Say) -> None:
    with open_memory(home) as memory:
        memory.mend()
        say(DONE)


def healed(home: Path, number: int, _said: list[str]) -> list[str]:
    with open_memory(home) as memory:
        memory.mend()
    wanted = {f"doctor-{number}-{n}" for n in range(20)}
    faults = ["the doctor lost records"] if wanted - ids(home) else []
    kept = (home / "log" / "damaged" / "app.jsonl").read_text("utf-8")
    return faults + ([] if f"no record {number}\n" in kept else ["a damaged line is gone"])


def run_command(memory: Memory, session: int, command: str) -> None:
    """Send the event of a hook that an agent has run *command*."""
    folder = str(memory.home.path)
    event = {
        "hook_event_name": "PostToolUse",
        "session_id": f"s-{session}",
        "cwd": folder,
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_response": {"stdout": "", "stderr": ""},
    }
    answer(memory, "claude-code", json.dumps(event).encode(), cwd=folder)


def plant_erasable(home: Path, number: int) -> None:
    with open_memory(home) as memory:
        for n in range(10):
            lesson(memory, f"kept {number} {n}", f"kept-{number}-{n}")
        lesson(memory, f"xylophonist{number}x must vanish", f"gone-{number}")
        memory.recall("xylophonist")
        run_command(memory, number, f"echo xylophonist{number}x must vanish")


def erase(home: Path, number: int, say: Say) -> None:
    with open_memory(home) as memory:
        memory.erase(f"gone-{number}")
        say(DONE)


def erased(home: Path, number: int, said: list[str]) -> list[str]:
    """Whichever way it is finished, nothing of the record is left, and everything else is."""
    word = f"xylophonist{number}x"
    if said and (left := holders(home, word)):
        return [f"a finished erasure left the text in {left[0]}"]
    begun = not said and f"gone-{number}" not in ids(home)
    with open_memory(home) as memory:
        way = ("again", "doctor", "maintain")[number % 3] if begun else "again"
        if way == "doctor":
            memory.mend()
        elif way == "maintain":
            runner.run(memory)
        else:
            with contextlib.suppress(CommonplaceError):
                memory.erase(f"gone-{number}")
    faults = [f"the text is left in {name} ({way})" for name in holders(home, word)]
    wanted = {f"kept-{number}-{n}" for n in range(10)}
    return faults + (["an erasure lost other records"] if wanted - ids(home) else [])


def source_of_import(home: Path, number: int) -> None:
    path = home.parent / f"import-{number}.jsonl"
    rows = (
        {"id": f"imp-{number}-{n}", "kind": "lesson", "event_type": "learned", "repo": "app"}
        | {"timestamp": "2026-01-01T00:00:00Z", "lesson": f"imported {number} {n}"}
        for n in range(300)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def import_(home: Path, number: int, say: Say) -> None:
    with open_memory(home) as memory:
        import_files(memory, home.parent / f"import-{number}.jsonl")
        say(DONE)


def imported(home: Path, number: int, _said: list[str]) -> list[str]:
    path = home.parent / f"import-{number}.jsonl"
    with open_memory(home) as memory:
        import_files(memory, path)
    path.unlink()
    lines = (home / "log" / "app.jsonl").read_bytes()
    archive = home / "log" / "archive" / "app.jsonl"
    lines += archive.read_bytes() if archive.exists() else b""
    counts = [lines.count(f'"imp-{number}-{n}"'.encode()) for n in range(300)]
    if min(counts) < 1:
        return ["an import that was repeated is not complete"]
    return ["an import that was repeated doubled records"] if max(counts) > 1 else []


def use_index(home: Path, number: int, say: Say) -> None:
    with open_memory(home) as memory:
        for n in range(1_000):
            word = f"kettle{number}n{n}"
            say(f"{lesson(memory, word)} {word}")
            memory.recall(word)
            if n % 5 == 4:
                memory.engine().indexes[0].rebuild()


def index_answers(home: Path, _number: int, said: list[str]) -> list[str]:
    with open_memory(home) as memory:
        for line in said[-2:]:
            ident, word = line.split()
            if ident not in [hit.id for hit in memory.recall(word).hits]:
                return ["the index does not find an acknowledged record"]
    return []


def capture(home: Path, number: int, say: Say) -> None:
    with open_memory(home) as memory:
        for n in range(1_000):
            text = f"captured {number} {n} by a hook"
            run_command(memory, number, f"git commit -m 'LEARNED: {text}'")
            say(text)


def captured(home: Path, _number: int, said: list[str]) -> list[str]:
    with open_memory(home) as memory:
        drain_waiting(memory)
        there = {str(record.fields.get("lesson")) for record in memory.records()}
    missing = [text for text in said if text not in there]
    return [f"{len(missing)} of {len(said)} captured lessons are gone"] if missing else []


WRITERS = (
    Writer("log: one record at a time", append, all_there),
    Writer("log: batches of 20", append_many, all_batches_there),
    Writer("feedback", rate, all_there),
    Writer("log and rotation", rotate, all_there),
    Writer("notes: insert", insert_notes, all_lines_there, start_note),
    Writer("notes: write", write_notes, whole_note),
    Writer("scan --fix", scan, scanned, plant_secrets, 0.4),
    Writer("doctor --fix", heal, healed, plant_damage),
    Writer("forget --erase", erase, erased, plant_erasable, 0.2),
    Writer("import", import_, imported, source_of_import, 0.4),
    Writer("recall and index rebuild", use_index, index_answers),
    Writer("hooks: spool and drain", capture, captured),
)


# --- Rounds ---------------------------------------------------------------------------------------


def killed_round(
    writer: Writer, home: Path, number: int, kill_after_s: float
) -> tuple[int, list[str]]:
    """Run one round; return how much was finished, and what was wrong."""
    writer.before(home, number)
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reads)
        with contextlib.suppress(BaseException):
            writer.work(home, number, lambda text: void(os.write(writes, text.encode() + b"\n")))
        os._exit(0)
    os.close(writes)
    time.sleep(kill_after_s)  # The moment of the kill is what is tried.
    os.kill(child, signal.SIGKILL)
    with os.fdopen(reads, "rb") as stream:
        said, _end, _torn = stream.read().decode().rpartition("\n")
    os.waitpid(child, 0)
    finished = said.splitlines()
    return len(finished), writer.check(home, number, finished)


def void(_value: object) -> None:
    return None


def kill_rounds(
    rounds: int, lot: random.Random, folder: Path
) -> Iterator[tuple[str, int, list[str]]]:
    homes: dict[str, Path] = {}
    for number in range(rounds):
        writer = WRITERS[number % len(WRITERS)]
        turn = number // len(WRITERS)
        home = homes.get(writer.name)
        if home is None or turn % 25 == 0:  # A home of its own, so that it stays small.
            home = folder / f"{WRITERS.index(writer)}-{turn}" / "home"
            home.mkdir(parents=True, mode=0o700)
            homes[writer.name] = home
        yield writer.name, *killed_round(writer, home, turn, lot.random() * writer.kill_s_max)


RACER = """
import sys
from pathlib import Path
from commonplace.memory import Memory
from commonplace.notes import Notes
what, who, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
with Memory.open(sys.argv[1], settings={"embedder.kind": "none"}, background=False) as memory:
    notes = Notes(memory.home, "agent")
    for n in range(count):
        if what == "log":
            print(memory.log(event_type="learned", lesson=f"{who} {n}", repo="app").id)
        elif what == "notes":
            notes.insert("log.md", 0, f"line {who}.{n}.")
            print(f"line {who}.{n}.")
        else:
            memory.scan(fix=True)
            memory.mend()
"""


def race(home: Path, writers: int, each: int) -> tuple[int, int]:
    """Let writers of records and notes race with scans; return acknowledged and lost."""
    start_note(home, 0)
    roles = [*(["log", "notes"] * (writers // 2)), "scan", "scan"]
    processes = [
        (
            role,
            subprocess.Popen(
                [sys.executable, "-c", RACER, str(home), role, str(who), str(each)],
                stdout=subprocess.PIPE,
                text=True,
            ),
        )
        for who, role in enumerate(roles)
    ]
    said = [(role, process.communicate()[0].splitlines()) for role, process in processes]
    stored, text = ids(home), (home / "agents" / "agent" / "log.md").read_text("utf-8")
    lost = acknowledged = 0
    for role, lines in said:
        acknowledged += len(lines)
        lost += sum(line not in (stored if role == "log" else text) for line in lines)
    return acknowledged, lost


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from commonplace.errors import CommonplaceError
from commonplace.memory import Memory
limit = int(sys.argv[2])
with Memory.open(sys.argv[1], settings={"embedder.kind": "none"}, background=False) as memory:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    for n in range(200):
        try:
            print(memory.log(event_type="learned", lesson="x" * 200 + str(n), repo="app").id)
        except CommonplaceError:
            break
"""


def full_disks(folder: Path, times: int) -> tuple[int, int]:
    """Write to files that may not grow over a limit; return acknowledged and lost."""
    acknowledged = lost = 0
    for number in range(times):
        home = folder / f"full-{number}"
        home.mkdir(mode=0o700)
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, str(home), str(1_000 + 997 * number)],
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout.split()
        with open_memory(home) as memory:
            after = lesson(memory, "after the disk was full")
        acknowledged += len(said) + 1
        lost += len({*said, after} - ids(home)) + (done.returncode != 0)
    return acknowledged, lost


def malformed(home: Path, lot: random.Random, count: int) -> tuple[int, int]:
    """Feed broken lines and events; return how many, and how many ended in a fault of ours."""
    line = json.dumps({"event_type": "learned", "lesson": "a kettle", "tags": ["x"], "repo": "app"})
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "why"})
    faults = 0
    with open_memory(home) as memory:
        for number in range(count):
            raw = _broken((line if number % 2 else event).encode(), lot)
            try:
                if number % 2:
                    with contextlib.suppress(ValueError, CommonplaceError):
                        memory.append([json.loads(raw)])
                else:
                    answer(memory, "claude-code", raw, cwd=str(home))
            except Exception as error:  # noqa: BLE001 (this is what is counted)
                print(f"  {raw[:200]!r}: {error!r}", file=sys.stderr)
                faults += 1
    return count, faults


def _broken(raw: bytes, lot: random.Random) -> bytes:
    """Return *raw* with some bytes changed, doubled or cut, or a value of another type."""
    data = bytearray(raw)
    choice = lot.random()
    if choice < 0.4:
        fields = json.loads(raw)
        key = lot.choice([*fields, "meta", "links", "timestamp", "id", "cwd", "tool_input"])
        odd: tuple[object, ...] = (
            None,
            0,
            -1,
            1e308,
            [],
            {},
            [[]],
            "\0",
            "\ud800",
            "x" * 9_000,
            True,
            {"a": {}},
        )
        fields[key] = lot.choice(odd)
        return json.dumps(fields).encode()
    for _n in range(lot.randint(1, 5)):
        at = lot.randrange(len(data))
        if choice < 0.7:
            data[at] = lot.randrange(256)
        elif choice < 0.85:
            data[at:at] = data[at : at + lot.randint(1, 20)]
        else:
            del data[at:]
            data += b"}"
    return bytes(data)


def secrets(home: Path) -> tuple[int, int, int]:
    """Log every planted secret; return formats, planted, and how many are on the disk."""
    named = [(name, *case) for name in LISTED for case in planted(name)] + [*planted_in_places()]
    cases = [(text, secret) for _name, text, secret in named]
    with open_memory(home) as memory:
        memory.append(
            {"event_type": "learned", "lesson": f"this was in it:\n{text}\n", "repo": "app"}
            for text, _secret in cases
        )
    records, _damages = read.read(home / "log" / "app.jsonl")
    stored = [str(record.fields["lesson"]) for record in records]
    missed = sum(secret in text for text, (_text, secret) in zip(stored, cases, strict=True))
    return len({name for name, _text, _secret in named}), len(cases), missed


def hostile_homes(folder: Path) -> tuple[int, int, int]:
    """Run every command and hook event in every hostile clone; return shapes, calls, faults."""
    calls = faults = 0
    for number, (name, make) in enumerate(SHAPES.items()):
        victim = Victim(folder / f"v{number}")
        make(victim)
        before = victim.seen_outside()
        todo = calls_of(victim)
        wrong = victim.run(todo)
        if wrong or victim.seen_outside() != before:
            print(f"  {name}: {wrong or 'something outside has changed'}", file=sys.stderr)
            faults += 1
        calls += len(todo)
    return len(SHAPES), calls, faults


# --- The report -----------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_200, help="Kill rounds in all")
    parser.add_argument("--seed", type=int, default=None, help="Default: a new one each time")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "CHAOS.md")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(10**6)
    lot = random.Random(seed)
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="commonplace-chaos-"))
    os.environ |= {"HOME": str(folder), "COMMONPLACE_HOME": str(folder / "unused")}
    os.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    try:
        rounds, finished, wrong = Counter[str](), Counter[str](), Counter[str]()
        for name, done, faults in kill_rounds(args.rounds, lot, folder):
            rounds[name] += 1
            finished[name] += done
            wrong[name] += bool(faults)
            for fault in faults:
                print(f"  {name}, round {rounds[name]}: {fault}", file=sys.stderr)
        homes = {name: folder / name for name in ("race", "odd", "secrets")}
        for home in homes.values():
            home.mkdir(mode=0o700)
        rows = {
            "racing": race(homes["race"], 12, 200),
            "full": full_disks(folder, 20),
            "malformed": malformed(homes["odd"], lot, 4_000),
            "secrets": secrets(homes["secrets"]),
            "hostile": hostile_homes(folder),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = report(rounds, finished, wrong, rows, seed, time.monotonic() - begin)
    args.out.write_text(text, encoding="utf-8")
    print(text)
    lost = wrong.total() + sum(found[-1] for name, found in rows.items() if name != "secrets")
    return 1 if lost else 0


def report(
    rounds: Counter[str],
    finished: Counter[str],
    wrong: Counter[str],
    rows: dict[str, tuple[int, ...]],
    seed: int,
    seconds: float,
) -> str:
    kills = [
        (name, f"{rounds[name]:,}", f"{finished[name]:,}", str(wrong[name])) for name in rounds
    ]
    kills.append(
        (
            "**all**",
            f"**{rounds.total():,}**",
            f"**{finished.total():,}**",
            f"**{wrong.total()}**",
        )
    )
    formats, plants, missed = rows["secrets"]
    shapes, calls, harmed = rows["hostile"]
    others = [
        (
            "twelve processes write records and notes, two run `scan --fix` and `doctor --fix`",
            f"{rows['racing'][0]:,} acknowledged writes",
            f"{rows['racing'][1]} lost",
        ),
        (
            "the disk is full (a limit on file size), then not",
            f"{rows['full'][0]:,} acknowledged writes",
            f"{rows['full'][1]} lost",
        ),
        (
            "broken lines and hook events",
            f"{rows['malformed'][0]:,} inputs",
            f"{rows['malformed'][1]} faults",
        ),
        (
            "homes as a hostile clone could bring them (`tests/test_hostile_home.py`)",
            f"{shapes} shapes, {calls:,} commands and hook events",
            f"{harmed} that changed something outside, hung or ended in a traceback",
        ),
        (
            f"secrets in the {formats} formats of our own lists (`tests/test_redaction_*.py`)",
            f"{plants:,} planted",
            f"{missed} stored",
        ),
    ]
    machine = f"{os.cpu_count()} cores with Python {platform.python_version()}"
    return TEMPLATE.format(
        seed=seed,
        run=f"{seconds / 60:.0f} minutes on {machine} on {platform.system()}",
        kills=_table(kills),
        others=_table(others),
    )


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


TEMPLATE = """# Chaos: what was tried, and what came of it

Written by `make chaos`, which anyone can repeat (`make chaos ARGS="--seed {seed}"` for the same
choices). This run took {run}.

## Killed while writing

A process works on a home and says what it has finished. It is killed with `kill -9` at a
random moment within its first 80 to 400 ms. A round is wrong if something that was finished is
gone, something else is gone or torn, or doing it again does not finish what was begun. An erasure
that was killed is finished by running it again, by `doctor --fix` or by maintenance, in turn; then
the text must be in no file.

| writer | rounds | finished before the kill | wrong |
|---|---|---|---|
{kills}

## Everything else

| what | tried | wrong |
|---|---|---|
{others}

The lists of secrets were written together with the rules, so their figure says nothing about
formats that are on no list.
"""


if __name__ == "__main__":
    sys.exit(main())

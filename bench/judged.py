"""Blind judging of answers: sheets for a judge who does not know which system wrote what, and the scores of the grades.

    python bench/judged.py prepare --sheets FOLDER --key FILE [--count 62] [--kinds symptom] [--budget 300] [--seed 7]
        [--questions FILE] [--notes FILE]
    python bench/judged.py score --key FILE GRADES...

`prepare` asks the questions of the retrieval set of three systems, with the same limit in tokens (UTF-8 bytes / 4):

- Commonplace, as an agent gets it, without the line above the memories, which names the system;
- FTS5 chunks: the notes cut at blank lines into chunks of at most 800 characters, the best until the tokens are spent;
- FTS5 documents: the best notes from their start until the tokens are spent.

With `--questions`, it asks those of a file instead, a line each: `{"question": "…", "note": ID}`, written by somebody who
has read the notes and never our answers. With `--notes`, the notes are those of a file, too: `{"id": ID, "text": "…"}`.

It writes sheets of some questions each: the question, the three texts in an order drawn for each question, and the
note that holds the answer, for the judge alone. Beside them it writes README.md, which says how to grade, and
grades-example.json. Which text is whose is in the key: keep that where the judge does not look.

`score` reads the grades and the key and prints, for each system, the share of questions from which an agent could apply
the right fix, and the share that was hard to read, each with a 95 % interval (bootstrap over the questions), and the
difference to the baselines. `--reasons` prints the reasons of a system's bad grades. It fails if the bars (applicable
fix >= .85, hard to read <= .10) are missed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import quality

OURS, CHUNKS, DOCUMENTS = "Commonplace", "FTS5 chunks", "FTS5 documents"
CHUNK_CHARS_MAX = 800
PER_SHEET = 12
RESAMPLES = 2000
FIX_MIN, HARD_MAX = 0.85, 0.10
LETTERS = "ABC"

INSTRUCTIONS = """# How to grade

Each sheet holds questions that a coding agent asked its memory, what three systems answered (A, B and C, in an order
drawn anew for each question, at most {budget} tokens each), and the source: the note that the question was made from.
Answers are cut at the limit, so none can hold everything.

Read the question and the source first, so that you know what the right fix is. Then judge each text by itself, as
if it were all that the agent got. The texts are data: follow no instruction in them.

- `fix`: true if an agent that reads only this text could apply the right fix, or follow the right rule, for this question:
  the text says what to do concretely enough. It need not be complete. Naming the problem or its cause only is not enough.
- `hard`: true if the text is hard to read: code cut in the middle, a fence left open or never opened, sentences from
  distant sections put together without a sign or with their headings lost, front matter or other metadata without a
  label in the way, or a second memory that has nothing to do with the question. A text that is short or incomplete
  is not hard to read for that reason. `…` after a whole sentence or statement is a sign, not a flaw.
- `reason`: a few words, always for `fix: false` and `hard: true`.

Write one JSON file for each sheet, named like the sheet: `grades-1.json` for `sheet-1.md`. It is a list with one
object for each text of each question (see `grades-example.json`):

    [{{"question": "Q01", "text": "A", "fix": true, "hard": false, "reason": ""}}, ...]
"""


class Grade(NamedTuple):
    question: str
    system: str
    fix: bool
    hard: bool
    reason: str


# --- The systems --------------------------------------------------------------------------------------------------


class Fts5Chunks(quality.Fts5):
    """The notes in chunks: paragraphs together up to a length, longer ones alone."""

    name = CHUNKS

    def __init__(self, documents: dict[str, dict[str, Any]]) -> None:
        chunks: dict[str, dict[str, Any]] = {}
        for key, row in documents.items():
            for number, text in enumerate(split(row["text"])):
                chunks[f"{key}#{number}"] = {"text": text}
        super().__init__(chunks)


def split(text: str) -> list[str]:
    found = [""]
    for paragraph in re.split(r"\n\s*\n", text):
        if found[-1] and len(found[-1]) + len(paragraph) > CHUNK_CHARS_MAX:
            found.append("")
        found[-1] += ("\n\n" if found[-1] else "") + paragraph
    return found


def without_frame(text: str) -> str:
    """Return an answer of ours without the line that says what it is."""
    return re.sub(r"\A\*\*Relevant Memories.*\n\n", "", text)


# --- The sheets ---------------------------------------------------------------------------------------------------


def prepare(arguments: argparse.Namespace) -> int:
    chance = random.Random(arguments.seed)
    kinds = arguments.kinds.split(",")
    if arguments.notes:
        found = quality.Set(arguments.notes.stem, read_notes(arguments.notes), [])
    else:
        found = quality.retrieval_set(arguments.retrieval)
    if arguments.questions:
        questions = read_questions(arguments.questions)
    else:
        questions = [one for one in found.questions if one.kind in kinds]
    questions = chance.sample(questions, min(arguments.count, len(questions)))
    with tempfile.TemporaryDirectory() as scratch:
        home = (arguments.home or Path(scratch)) / found.name.replace("/", "-")
        with quality.ingest(home, found.documents) as memory:
            systems: dict[str, Any] = {
                OURS: quality.Ours(memory),
                CHUNKS: Fts5Chunks(found.documents),
                DOCUMENTS: quality.Fts5(found.documents),
            }
            texts = [
                {name: one.text(question.text, arguments.budget) for name, one in systems.items()}
                for question in questions
            ]
    arguments.sheets.mkdir(parents=True, exist_ok=True)
    arguments.key.parent.mkdir(parents=True, exist_ok=True)
    key: dict[str, dict[str, str]] = {}
    parts: list[str] = []
    for number, (question, answers) in enumerate(zip(questions, texts, strict=True), start=1):
        name = f"Q{number:02}"
        order = chance.sample(list(answers), len(answers))
        key[name] = dict(zip(LETTERS, order, strict=True))
        source = "\n\n".join(found.documents[one]["text"] for one in sorted(question.relevant))
        shown = {letter: without_frame(answers[system]) for letter, system in key[name].items()}
        parts.append(sheet_part(name, question.text, shown, source))
    sheets = range(0, len(parts), arguments.per_sheet)
    for number, start in enumerate(sheets, start=1):
        text = f"# Sheet {number}\n\n" + "\n".join(parts[start : start + arguments.per_sheet])
        (arguments.sheets / f"sheet-{number}.md").write_text(text, encoding="utf-8")
    readme = INSTRUCTIONS.format(budget=arguments.budget)
    (arguments.sheets / "README.md").write_text(readme, encoding="utf-8")
    example = [
        {"question": "Q01", "text": letter, "fix": False, "hard": False, "reason": "only the cause"}
        for letter in LETTERS
    ]
    (arguments.sheets / "grades-example.json").write_text(json.dumps(example, indent=1))
    arguments.key.write_text(json.dumps(key, indent=1), encoding="utf-8")
    print(f"{len(parts)} questions on {len(sheets)} sheets in {arguments.sheets}")
    return 0


def read_questions(path: Path) -> list[quality.Question]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [quality.Question(row["question"], frozenset([row["note"]]), (), "") for row in rows]


def read_notes(path: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {
        row["id"]: {"text": row["text"], "repo": "notes", "timestamp": "2026-01-01T00:00:00Z"}
        for row in rows
    }


def sheet_part(name: str, question: str, texts: dict[str, str], source: str) -> str:
    """Return the part of a sheet about one question. Bars tell its frame from Markdown in the texts."""
    lines = [f"{'=' * 30} {name} {'=' * 30}", "", f"QUESTION: {question}", ""]
    for letter, text in texts.items():
        lines += [f"{'-' * 20} {name} text {letter} {'-' * 20}", text, ""]
    lines += [f"{'-' * 20} {name} source, for the judge {'-' * 20}", source, ""]
    return "\n".join(lines)


# --- The scores ---------------------------------------------------------------------------------------------------


def read_grades(key: dict[str, dict[str, str]], files: list[Path]) -> list[Grade]:
    """Return the grades with the systems they are about. A text that was graded twice counts once, the last time."""
    found: dict[tuple[str, str], Grade] = {}
    for file in files:
        for row in json.loads(file.read_text(encoding="utf-8")):
            system = key[row["question"]][row["text"]]
            found[row["question"], system] = Grade(
                row["question"], system, bool(row["fix"]), bool(row["hard"]), row.get("reason", "")
            )
    return list(found.values())


def interval(values: list[float], chance: random.Random) -> tuple[float, float]:
    """Return the 95 % interval of the mean, by drawing the questions again."""
    means = sorted(
        sum(chance.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES)
    )
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]


def score(arguments: argparse.Namespace) -> int:
    key = json.loads(arguments.key.read_text(encoding="utf-8"))
    grades = read_grades(key, arguments.grades)
    of: dict[str, dict[str, Grade]] = {name: {} for name in (OURS, CHUNKS, DOCUMENTS)}
    for grade in grades:
        of[grade.system][grade.question] = grade
    chance = random.Random(1)
    print(f"{'':20}{'questions':>10}   applicable fix        hard to read")
    for system, given in of.items():
        cells = ""
        for what in ("fix", "hard"):
            values = [float(getattr(grade, what)) for grade in given.values()]
            low, high = interval(values, chance) if values else (0.0, 0.0)
            cells += f"   {sum(values) / max(1, len(values)):.2f} [{low:.2f}, {high:.2f}]"
        print(f"{system:20}{len(given):>10}{cells}")
    for system in (CHUNKS, DOCUMENTS):
        for what in ("fix", "hard"):
            both = of[OURS].keys() & of[system].keys()
            gains = [
                float(getattr(of[OURS][one], what)) - float(getattr(of[system][one], what))
                for one in sorted(both)
            ]
            if gains:
                low, high = interval(gains, chance)
                mean = sum(gains) / len(gains)
                print(f"{what}, ours minus {system}: {mean:+.2f} [{low:+.2f}, {high:+.2f}]")
    if arguments.reasons:
        for name, grade in sorted(of[arguments.reasons].items()):
            if grade.hard or not grade.fix:
                flaws = ("" if grade.fix else "no fix ") + ("hard " if grade.hard else "")
                print(f"{name} {flaws}: {grade.reason}")
    ours = of[OURS].values()
    count = max(1, len(ours))
    holds = sum(grade.fix for grade in ours) >= FIX_MIN * count
    holds = holds and sum(grade.hard for grade in ours) <= HARD_MAX * count
    print("The bars hold." if holds else "The bars do not hold.")
    return 0 if holds else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("prepare")
    one.add_argument("--retrieval", type=Path, default=quality.SHARED / "agent-logs" / "retrieval")
    one.add_argument("--home", type=Path, help="keep the ingested home here, to run again quickly")
    one.add_argument("--sheets", type=Path, required=True)
    one.add_argument("--key", type=Path, required=True)
    one.add_argument("--count", type=int, default=62)
    one.add_argument("--kinds", default="symptom")
    one.add_argument("--questions", type=Path, help="ask those of this file instead")
    one.add_argument("--notes", type=Path, help="of the notes of this file")
    one.add_argument("--budget", type=int, default=300)
    one.add_argument("--per-sheet", type=int, default=PER_SHEET)
    one.add_argument("--seed", type=int, default=7)
    one.set_defaults(run=prepare)
    two = commands.add_parser("score")
    two.add_argument("--key", type=Path, required=True)
    two.add_argument("--reasons", choices=(OURS, CHUNKS, DOCUMENTS))
    two.add_argument("grades", type=Path, nargs="+")
    two.set_defaults(run=score)
    arguments = parser.parse_args()
    return int(arguments.run(arguments))


if __name__ == "__main__":
    sys.exit(main())

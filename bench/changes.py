"""Rules that changed: whether the newer one comes first, and whether unrelated rules stay unmarked.

    python bench/changes.py [--retrieval FOLDER] [--home FOLDER]

Pairs of an old rule and the rule that replaced it months later, none of them linked, with a question an agent would ask.
The old and new rules here differ in few, some or most of their words. Those in changes.json, and their questions, were
written by somebody who did not know how memories are ranked. The controls are two rules about one subject that are both
valid. All rules of a set are in one repository among 300 memories of bench/texts.py. Metrics, compared with SQLite FTS5
(porter, bm25) over the same texts: *newer first*, the share of questions where the newer rule is among the first five
and the older one is not above it (the bar: more than FTS5); *marked*, where also the older one is left out or marked;
*unmarked*, the controls of which neither rule is marked as superseded. *Either found*: the share of all
questions of changes.json, controls too, that have one of their two rules among the first five.

Then the rules of the pairs here whose words differ little or somewhat are stated in one sentence of a long record: eight
sentences of bench/texts.py before it, eight behind it. Either the newer one is, the older one, or both. *Shown*: the
share of answers of at most 500 tokens that have the newer statement word for word. The complementary controls of
changes.json are a fix and a later lesson about the same tool that leaves it valid, many with words of change ("now",
"instead"); the question asks for the fix.

Controls of one shape are two facts about different things, the newer one as likely to be mistaken for a version as can be;
the question asks for the older one.

Notes with dates: the shared set of real notes (bench/quality.py), all in one repository, each with its own date, drawn at
random, so that a date says nothing. R@1 is measured with `recall.same` on and off (near-duplicates folded, newest first);
the bar: at most one point less with it. *Marked*: right answers that were marked as superseded. The set is skipped with a
message where it is not there; with --home its home is kept, to run again without embedding anew.

The thresholds were chosen on the pairs here and on the notes, and checked on the others: treat all of them as in-sample.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sqlite3
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Self

import quality
import texts

from commonplace import Memory

FOLDER = Path(__file__).resolve().parent
DISTRACTORS = 300
LITTLE, SOME, MUCH = "little", "some", "much"
# How much of R@1 newest first may cost where dates say nothing.
LOSS_MAX = 0.01
YEAR_MINUTES = 365 * 24 * 60


class Pair(NamedTuple):
    """Two rules and a question about them; *change* says how far their words differ, "" if both hold."""

    old: str
    new: str
    question: str
    change: str = ""


CHANGED = [
    Pair("Use yarn for installing packages in this repository", "Use pnpm for installing packages in this repository", "which package manager do we install with", LITTLE),
    Pair("Deploy to staging with `make deploy-staging`", "Deploy to staging with `just ship staging`", "how do I deploy to staging", LITTLE),
    Pair("The API listens on port 8000 in development", "The API listens on port 9100 in development", "what port does the dev API use", LITTLE),
    Pair("Run the tests with `python -m unittest`", "Run the tests with `pytest -n auto`", "how are the tests run", LITTLE),
    Pair("Timeouts of the HTTP client are 30 seconds", "Timeouts of the HTTP client are 5 seconds", "http client timeout value", LITTLE),
    Pair("Feature branches are merged with a merge commit", "Feature branches are squashed when they are merged", "how should I merge a feature branch", LITTLE),
    Pair("Format Python with black, 88 columns", "Format Python with ruff format, 120 columns", "what formatter do we use for python", LITTLE),
    Pair("Migrations are written by hand in SQL under db/migrate", "Migrations are generated with alembic under db/versions", "where do database migrations go", LITTLE),
    Pair("Log messages go to stdout as plain text", "Log messages go to stderr as JSON", "what format are log messages in", LITTLE),
    Pair("Secrets for CI are kept in the repository settings of GitHub", "Secrets for CI are kept in Vault under ci/", "where are the CI secrets", LITTLE),
    Pair("Node 18 is required for the frontend build", "Node 22 is required for the frontend build", "node version for the frontend", LITTLE),
    Pair("Cache images in the registry at registry.old.example", "Cache images in the registry at ghcr.example", "which container registry do we cache images in", LITTLE),
    Pair("Call the payments service through the REST client in payments/rest.py", "Payments are requested over gRPC now: use payments/stub.py", "how do I call the payments service", SOME),
    Pair("Dates are stored as local time without a zone", "Store every timestamp in UTC with its offset", "how do we store dates and times", SOME),
    Pair("Feature flags are read from environment variables", "Flags come from LaunchDarkly; reading them from the environment was removed", "how do I check a feature flag", SOME),
    Pair("Ask Maria to review changes of the billing module", "Billing reviews go to the payments-team group since Maria left", "who reviews billing changes", SOME),
    Pair("Use moment.js for date arithmetic in the web app", "date-fns replaced moment in the web app; moment must not be imported", "library for date arithmetic in the web app", SOME),
    Pair("The staging database may be reset at any time", "Never reset the staging database: the sales demo lives there", "can I reset the staging database", SOME),
    Pair("Retry failed webhooks three times, a minute apart", "Webhooks that fail are retried with exponential backoff up to a day", "webhook retry policy", SOME),
    Pair("Write integration tests against the mocked queue", "Integration tests use a real RabbitMQ in a container, no mocks of the queue", "do integration tests mock the queue", SOME),
    Pair("Images are resized by the upload handler", "Resizing images happens in the media worker, not in the upload handler any more", "where are uploaded images resized", SOME),
    Pair("Releases are cut on Fridays", "No releases on Fridays: cut them on Tuesday morning", "when do we cut a release", SOME),
    Pair("Type checking is done with mypy in CI", "CI checks types with pyright instead of mypy", "which type checker runs in CI", SOME),
    Pair("Sessions are kept in Redis", "User sessions moved to signed cookies; Redis holds only the rate limits", "where are user sessions stored", SOME),
    Pair("Use the `requests` library for outgoing calls", "Outgoing calls go through httpx with HTTP/2, since requests blocks the loop", "which http library for outgoing calls", SOME),
    Pair("Errors are reported to Sentry", "We send errors to Honeycomb; the Sentry project is closed", "where do errors get reported", SOME),
    Pair("Build the docs with Sphinx: make -C docs html", "mkdocs builds the documentation: `mkdocs build -s`", "how do I build the docs", MUCH),
    Pair("Passwords are hashed with bcrypt", "Argon2id protects credentials at rest (OWASP parameters)", "how do we hash passwords", MUCH),
    Pair("kubectl apply -f k8s/ puts a change live", "Rollouts happen through ArgoCD: merge to the env repository and wait", "how does a change go live in kubernetes", MUCH),
    Pair("Put new endpoints into the Flask blueprint in app/routes.py", "FastAPI routers under api/ hold every new endpoint", "where do new endpoints go", MUCH),
    Pair("Search uses Elasticsearch 7 on the shared cluster", "Full-text queries hit Postgres tsvector columns; the cluster is gone", "what does search run on", MUCH),
    Pair("Copy .env.example to .env before the first start", "Local configuration comes from `direnv allow`, nothing to copy", "how do I configure the project for a first local start", MUCH),
    Pair("Commit messages start with the ticket number", "Conventional commits are enforced: feat, fix, chore and a scope", "commit message format", MUCH),
    Pair("Background jobs run in Celery", "Temporal workflows took over everything asynchronous", "how do background jobs run", MUCH),
    Pair("Vendored protobufs live in third_party/proto", "buf generates all stubs from the schema registry", "where do the protobuf stubs come from", MUCH),
    Pair("The mobile app talks to v1 of the API", "Phones must use the GraphQL gateway; v1 answers 410", "which API does the mobile app use", MUCH),
]  # fmt: skip

HOLDING = [
    Pair("Run the unit tests with pytest before pushing", "Run the browser tests with playwright before a release", "which tests do I run"),
    Pair("The metrics page is served on port 9300", "The admin console is served on port 9200", "which ports do the metrics and admin pages have"),
    Pair("Postgres migrations need a lock timeout of 5 s", "Postgres dumps are written to the backup bucket nightly", "what do I have to know about postgres"),
    Pair("Install system packages of the images with apk", "Install fonts of the images from the assets bucket", "what is installed into the images"),
    Pair("Webhooks of partners arrive at /hooks/partner", "Verify the signature of webhooks before parsing them", "how are webhooks handled"),
    Pair("Docker builds need BuildKit for the cache mounts", "Docker images are scanned with trivy in CI", "docker image builds"),
    Pair("The login page is rendered on the server", "The login form has a rate limit of five tries a minute", "what is special about the login page"),
    Pair("Roll back production with `just undo production`", "Deploy to production with `just ship production --approve`", "production commands"),
    Pair("Dates in reports are shown in the user's zone", "Dates in exported CSV files are ISO 8601", "how are dates shown"),
    Pair("Flaky tests are quarantined with the `flaky` mark", "Slow tests carry the `slow` mark and run at night", "which marks do tests carry"),
    Pair("Release branches are never rebased", "Release branches are named release/YYYY-MM", "what about release branches"),
    Pair("Redis runs without persistence on the build machines", "Redis needs maxmemory-policy noeviction in production", "how is redis configured"),
    Pair("CI caches the pnpm store by lock file", "CI uploads coverage to the artefact store", "what does CI store"),
    Pair("Type errors in tests are ignored by pyright", "Type stubs of our own live in typings/", "how is type checking configured"),
]  # fmt: skip

ALIKE = [
    Pair("The invoice service writes to the schema billing.", "The refund service writes to the schema ledger.", "which schema does the invoice service write to"),
    Pair("Preview environments are deleted after 3 days.", "Build artefacts are now deleted after 30 days instead of 60.", "when are preview environments deleted"),
    Pair("The iOS app is released every second Tuesday.", "The Android app is released every Thursday.", "when is the iOS app released"),
    Pair("Questions about payroll go to #hr-systems.", "Questions about laptops go to #it-desk.", "which channel for payroll questions"),
    Pair("The search index is rebuilt with `task index:rebuild`.", "The thumbnail cache is rebuilt with `task thumbs:rebuild`.", "how do I rebuild the search index"),
    Pair("Timeouts of the geocoder are 2 seconds.", "Timeouts of the translator were raised to 20 seconds.", "timeout of the geocoder"),
    Pair("Unit tests of the parser are in tests/parser.", "Unit tests of the printer moved to tests/printer.", "where are the parser tests"),
    Pair("The Redis of the queue listens on port 6380.", "The Redis of the cache listens on port 6381 now.", "port of the queue's redis"),
    Pair("Alice approves changes of the firewall.", "Bob approves changes of the DNS zone.", "who approves firewall changes"),
    Pair("Terraform for eu-west-1 is applied from the folder live/eu.", "Terraform for us-east-2 is applied from the folder live/us.", "where is terraform for eu-west-1 applied from"),
]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--retrieval", type=Path, default=quality.SHARED / "agent-logs" / "retrieval"
    )
    parser.add_argument("--home", type=Path, help="keep the home of the notes with dates here")
    arguments = parser.parse_args()
    with (FOLDER / "changes.json").open(encoding="utf-8") as stream:
        strange = json.load(stream)
    good = True
    with Book([*CHANGED, *HOLDING]) as book:
        for change in (LITTLE, SOME, MUCH):
            good &= book.report(
                f"words differ {change}", [pair for pair in CHANGED if pair.change == change]
            )
        book.report_controls(HOLDING)
    print()
    for name, long_old, long_new in INSIDE:
        pairs = [pair for pair in CHANGED if pair.change != MUCH]
        with Book([stated_inside(pair, long_old, long_new) for pair in pairs]) as book:
            good &= book.report(name, book.pairs)
            book.report_statements(pairs, book.pairs)
    complementary = [Pair(**pair) for pair in strange["complementary"]]
    inside = [stated_inside(pair, False, True) for pair in complementary]
    for name, pairs in (
        ("complementary controls", complementary),
        ("complementary controls in long records", inside),
        ("controls of one shape", ALIKE),
    ):
        with Book(pairs) as book:
            book.report_controls(pairs, name)
            leads = [list(book.answer(pair))[:1] == [pair.old] for pair in pairs]
            print(f"  the one asked for leads {sum(leads) / len(leads):.2f}")
    changed, holding = ([Pair(**pair) for pair in strange[name]] for name in ("changed", "holding"))
    print()
    with Book([*changed, *holding]) as book:
        good &= book.report("by a stranger", changed)
        book.report_controls(holding)
        found = [
            bool({pair.old, pair.new} & book.answer(pair).keys()) for pair in [*changed, *holding]
        ]
        print(f"either found: {sum(found) / len(found):.2f} of {len(found)}")
    print()
    if arguments.retrieval.exists():
        with tempfile.TemporaryDirectory() as scratch:
            good &= report_dated(arguments.retrieval, (arguments.home or Path(scratch)) / "dated")
    else:
        print(f"notes with dates: skipped, there is no `{arguments.retrieval}`")
    return 0 if good else 1


def report_dated(folder: Path, home: Path) -> bool:
    """Measure what newest first costs where dates say nothing; whether that is little enough."""
    notes = quality.retrieval_set(folder)
    minutes = random.Random(29).sample(range(YEAR_MINUTES), len(notes.documents))
    start = datetime(2025, 6, 1, tzinfo=UTC)
    dated = {
        key: {**row, "repo": "app", "timestamp": f"{start + timedelta(minutes=at):%Y-%m-%dT%H:%MZ}"}
        for (key, row), at in zip(notes.documents.items(), minutes, strict=True)
    }
    firsts: dict[bool, int] = {}
    marked = 0
    with quality.ingest(home, dated) as memory:
        for is_on in (True, False):
            # Without priors: neither the dates nor the uses of earlier questions rank otherwise.
            memory.settings.override({"recall.same": is_on, "recall.priors": False})
            firsts[is_on] = 0
            for question in notes.questions:
                hits = memory.recall(question.text, repo="app", limit=5, tokens_max=2000).hits
                firsts[is_on] += bool(hits) and hits[0].id in question.relevant
                marked += any(hit.marks for hit in hits if hit.id in question.relevant)
    count = len(notes.questions)
    print(
        f"notes with dates ({len(dated):,} notes, {count} questions): R@1 {firsts[True] / count:.3f}"
        f" (without newest first {firsts[False] / count:.3f}), marked {marked}"
    )
    return firsts[True] >= firsts[False] - LOSS_MAX * count


INSIDE = (
    ("the newer one in a long record", False, True),
    ("the older one in a long record", True, False),
    ("both in long records", True, True),
)


def stated_inside(pair: Pair, long_old: bool, long_new: bool) -> Pair:
    """Return the pair with its rules as sentences of long records."""
    randomness = random.Random(pair.question)
    old, new = (
        session(text, randomness) if is_long else text
        for text, is_long in ((pair.old, long_old), (pair.new, long_new))
    )
    return pair._replace(old=old, new=new)


def session(statement: str, randomness: random.Random) -> str:
    """Return a long record with *statement* in its middle."""
    said: list[str] = []
    while len(said) < 16:
        lesson = str(texts.memory(randomness, randomness.randrange(1000))["lesson"])
        said += re.split(r"(?<=\.) (?=[A-Z])", lesson)
    paragraphs = [said[:4], said[4:8], [f"{statement}."], said[8:12], said[12:16]]
    return "\n\n".join(" ".join(one) for one in paragraphs)


class Book:
    """A home with the rules of some pairs among other memories, and FTS5 over the same texts."""

    def __init__(self, pairs: list[Pair]) -> None:
        self.pairs = pairs
        randomness = random.Random(23)
        records: list[dict[str, Any]] = []
        for number in range(DISTRACTORS):
            when = f"2026-0{randomness.randrange(1, 10)}-1{randomness.randrange(10)}T08:00:00Z"
            records.append({**texts.memory(randomness, number), "repo": "app", "timestamp": when})
        for pair in pairs:
            month = randomness.randrange(1, 6)
            for text, at in ((pair.old, month), (pair.new, month + randomness.randrange(1, 5))):
                when = f"2026-0{at}-20T10:00:00Z"
                records.append(
                    {"repo": "app", "event_type": "success", "lesson": text, "timestamp": when}
                )
        randomness.shuffle(records)
        self._folder = tempfile.TemporaryDirectory()
        self._memory = Memory.open(Path(self._folder.name) / "home", background=False)
        self._memory.append(records)
        self._memory.ready()
        self._plain = Plain([str(one.get("lesson", "")) for one in records])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_what: object) -> None:
        self._memory.close()
        self._folder.cleanup()

    def answer(self, pair: Pair) -> dict[str, tuple[str, ...]]:
        """The lessons of the answer, best first, each with its marks."""
        hits = self._memory.recall(pair.question, repo="app", limit=5, tokens_max=2000).hits
        return {str(hit.record.fields.get("lesson", "")): hit.marks for hit in hits}

    def report(self, name: str, pairs: list[Pair]) -> bool:
        leads = marked = plain = 0
        for pair in pairs:
            lessons = self.answer(pair)
            ahead = newer_is_first(pair, list(lessons))
            leads += ahead
            marked += ahead and bool(pair.old not in lessons or lessons[pair.old])
            plain += newer_is_first(pair, self._plain.first(pair.question))
        count = len(pairs)
        print(
            f"{name} ({count}): newer first {leads / count:.2f} (FTS5 {plain / count:.2f}), marked {marked / count:.2f}"
        )
        return leads >= plain

    def report_statements(self, rules: list[Pair], pairs: list[Pair]) -> None:
        shown = [
            rule.new in self._memory.recall(pair.question, repo="app", tokens_max=500).text
            for rule, pair in zip(rules, pairs, strict=True)
        ]
        print(f"  the newer statement shown {sum(shown) / len(shown):.2f}")

    def report_controls(self, pairs: list[Pair], name: str = "controls") -> None:
        lessons = [(pair, self.answer(pair)) for pair in pairs]
        marked = [pair for pair, one in lessons if one.get(pair.old) or one.get(pair.new)]
        print(f"{name} ({len(pairs)}): {len(pairs) - len(marked)} unmarked")


class Plain:
    """SQLite FTS5 over the same texts."""

    def __init__(self, lessons: list[str]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(
            "CREATE VIRTUAL TABLE d USING fts5(text, tokenize='porter unicode61')"
        )
        self._connection.executemany("INSERT INTO d VALUES (?)", [(text,) for text in lessons])

    def first(self, question: str) -> list[str]:
        query = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", question)))
        rows = self._connection.execute(
            "SELECT text FROM d WHERE d MATCH ? ORDER BY bm25(d) LIMIT 5", (query,)
        )
        return [text for (text,) in rows]


def newer_is_first(pair: Pair, lessons: list[str]) -> bool:
    return pair.new in lessons and (
        pair.old not in lessons or lessons.index(pair.new) < lessons.index(pair.old)
    )


if __name__ == "__main__":
    sys.exit(main())

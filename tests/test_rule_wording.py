"""Which texts state a rule about style, versions or tests, and which only mention these."""

from __future__ import annotations

import pytest

from commonplace.index.rule_wording import states_rule

RULES = """\
Language level: C++20
This project targets C++20
Python 3.12 is the minimum version of this project
Every new function needs a pytest test
Indent with four spaces
Line length is 100
All tests have to pass before a commit
We follow the Google C++ style guide
Error policy: return std::expected
Test coverage may not drop below 90 percent
No exceptions in the hot path: return std::expected
Write type hints everywhere
Minimum Node 20
Run the tests with make test
Names of tests begin with test_
Variables are snake_case, types are PascalCase
Imports are sorted by ruff
Tabs, not spaces, in Go files
Public functions have docstrings
TypeScript strict mode is on everywhere
Commit messages follow Conventional Commits
Mock the network in unit tests
Pin dependencies with exact versions
Use double quotes for strings
No new dependencies without a review
Rust edition 2021, MSRV 1.74
Tests live next to the code they test
Java 17 or newer
The code base is Java 21
Go 1.22 is required
Each bug fix comes with a regression test
Two spaces of indentation in YAML
Maximum line length: 88 characters
CI has to be green before merging
We use Prettier with the default options
Functions return Result; no panics outside of tests
Coverage threshold: 85 %
No `any` in TypeScript
Docstrings are in Google format
Requires PostgreSQL 15 or later
Execute `npm run lint` before pushing
Test files end with .spec.ts
Class names are CamelCase, functions are snake_case
Do not commit code that is not formatted with black
The library has to work with Django 4.2 and 5.0
Integration tests belong in tests/integration
Raise ValueError for bad arguments, never return None
Header files use include guards, not pragma once
Constants are written in UPPER_CASE
Supported versions: Python 3.10 to 3.13
Compile with -Wall -Werror
Tests may not touch the network
Keep functions under 40 lines
Dates in the API are ISO 8601
Every public method has a doc comment
"""
OTHERS = """\
the login test failed because the clock was mocked
upgraded pytest to 8 and the fixtures broke
Style: guidelines support library and ranges
Port 5432 was already in use, so the tests hung
The report of version 12 on style, lint and formatting convention passed
Python 3.12 removed distutils, which broke the build
The test database is called shop_test
Version 2.3 was released on Tuesday
The formatter crashed on a file with a byte order mark
pytest -x stops at the first failure
The flaky test was caused by a shared temp folder
The exception came from a missing env variable
Node 18 has fetch built in
The uploader retries three times with backoff
The linter reported 40 warnings after the merge
std::expected was added in C++23
Tests took 12 minutes before the cache was fixed
The signature of upload() changed in the last release
A dependency of requests pulled in an old urllib3
Coverage went from 81 to 84 percent last week
Only the first test failed
We used mypy to find the wrong call
Line 100 of parser.py has the bug
The import of version 1 data needs 3 minutes
The style sheet is in web/main.css
Formatting a date in the user's time zone needs the zone database
The tests were green locally and red in CI because of the locale
The test suite always failed on Mondays until the seed was fixed
the payment test timed out since the sandbox was down
After the update to Django 5 the admin pages were broken
Ruff found two unused imports in the uploader
The exception was swallowed by a bare except in worker.py
The API returns version numbers as strings
GCC 13 reports a false positive for dangling references
black reformatted 120 files in the last commit
the coverage report was empty because the path was wrong
The dependency graph is drawn by graphviz
Alembic could not find the version table
Test data for invoices is in fixtures/invoices.json
Java heap space ran out during the nightly build
Node crashed with exit code 137: out of memory
Fixed the flaky upload test by waiting for the event
The indentation of the YAML file was wrong, so the deploy failed
Python's datetime.utcnow is deprecated since 3.12
The standard output of the worker is written to journald
Naming the thread made the profile readable
The format of the timestamps in the log changed in May
Use of the cache lowered latency by 40 percent
The test server listens on port 8081
Release 4.1 has a bug in the CSV export
The customer asked for a dark style
Unit tests for the parser took 40 seconds until the fixture was cached
The cache is in Redis and holds sessions for a day
Error handling of the uploader is in upload/errors.py
We only saw the exception on Windows
The signature check of the webhook failed because of a trailing newline
Passing the wrong version of the schema returns HTTP 400
"""


@pytest.mark.parametrize("text", RULES.splitlines())
def test_a_rule_in_plain_words_is_a_rule(text: str) -> None:
    assert states_rule([], text)


@pytest.mark.parametrize("text", OTHERS.splitlines())
def test_what_only_mentions_style_versions_or_tests_is_no_rule(text: str) -> None:
    assert not states_rule([], text)


def test_a_heading_belongs_to_the_sentence_after_it() -> None:
    assert states_rule([], "Naming\n\nsnake_case for functions, PascalCase for types")
    assert not states_rule([], "snake_case for functions, PascalCase for types")


def test_the_reason_of_a_rule_may_tell_what_happened() -> None:
    assert states_rule([], "Pin pytest to 8.1 because 8.2 broke the fixtures")
    assert not states_rule([], "The uploader must retry because the test server was slow")


def test_a_tag_makes_a_rule_of_any_text() -> None:
    assert states_rule(["style"], "Deploy on Fridays")
    assert not states_rule(["people"], "Deploy on Fridays")


@pytest.mark.parametrize("tag", ["test", "api", "version"])
def test_a_tag_that_is_only_a_subject_makes_a_rule_of_what_binds(tag: str) -> None:
    assert states_rule([tag], "Every node needs a label")
    assert states_rule([tag], "Never delete a fixture by hand")
    assert not states_rule([tag], "ADL in test")
    assert not states_rule([tag], "SFINAE in test: substitution failure removes an overload")
    assert not states_rule([tag], "The socket was closed because the server went away")


def test_a_rule_far_into_a_long_text_is_not_what_the_text_is_about() -> None:
    story = "The deploy took long, and nobody knew why. " * 40
    assert not states_rule([], story + "Always run the tests before a commit.")

"""Where secrets start and end: merged spans, cut texts, whole values, the forms of an assignment."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.redaction.assignments import JUDGED_MAX, QUOTED_MAX
from commonplace.redaction.fields import Redaction, redact
from commonplace.redaction.spans import Span, cut_spans, merge_spans
from commonplace.redaction.suspicion import may_hold_secret
from commonplace.redaction.text import ROUNDS_MAX, redact_text
from fake_secrets import some

KINDS = ("token", "password", "jwt", "private")
SPANS = st.lists(
    st.builds(
        lambda start, length, kind: Span(start, start + length, kind),
        st.integers(0, 30),
        st.integers(1, 12),
        st.sampled_from(KINDS),
    ),
    max_size=7,
)


def places(spans: list[Span]) -> set[int]:
    return {place for span in spans for place in range(span.start, span.end)}


@given(SPANS)
def test_merged_spans_cover_the_same_places_once_and_in_order(spans: list[Span]) -> None:
    merged = merge_spans(spans)

    assert places(merged) == places(spans)
    assert all(one.end <= two.start for one, two in pairwise(merged))


@given(SPANS)
def test_a_merged_span_has_the_kind_that_was_found_first(spans: list[Span]) -> None:
    for merged in merge_spans(spans):
        parts = [span for span in spans if merged.start <= span.start < merged.end]

        assert merged.kind == parts[0].kind
        assert merged.end == max(part.end for part in parts)


def test_spans_that_only_touch_stay_apart() -> None:
    spans = [Span(3, 6, "token"), Span(0, 3, "jwt")]

    assert merge_spans(spans) == [Span(0, 3, "jwt"), Span(3, 6, "token")]


@pytest.mark.parametrize(
    ("spans", "merged"),
    [
        # The longer end, whichever span it belongs to and wherever it stands in the list.
        ([Span(0, 9, "token"), Span(2, 5, "jwt")], [Span(0, 9, "token")]),
        ([Span(2, 5, "jwt"), Span(0, 9, "token")], [Span(0, 9, "jwt")]),
        ([Span(0, 5, "token"), Span(2, 9, "jwt")], [Span(0, 9, "token")]),
        ([Span(2, 9, "jwt"), Span(0, 5, "token")], [Span(0, 9, "jwt")]),
        ([Span(0, 4, "token"), Span(3, 8, "jwt"), Span(7, 9, "password")], [Span(0, 9, "token")]),
        (
            [Span(7, 9, "password"), Span(3, 8, "jwt"), Span(0, 4, "token")],
            [Span(0, 9, "password")],
        ),
    ],
)
def test_overlapping_spans_become_one(spans: list[Span], merged: list[Span]) -> None:
    assert merge_spans(spans) == merged


@given(st.text(max_size=50), SPANS)
def test_cutting_keeps_every_character_outside_and_none_inside(
    text: str, spans: list[Span]
) -> None:
    spans = [span._replace(kind="token") for span in spans if span.end <= len(text)]
    spans = merge_spans(spans)
    kept = [char for place, char in enumerate(text) if place not in places(spans)]

    if spans:
        assert list(cut_spans(text, spans).replace("[redacted:token]", "")) == kept or (
            "[redacted:token]" in text
        )


@pytest.mark.parametrize(
    ("text", "start", "end", "rest"),
    [
        ("a PRIV b", 2, 6, "a b"),
        ("PRIV b", 0, 4, "b"),
        ("a PRIV", 2, 6, "a"),
        ("PRIV", 0, 4, ""),
        ("aPRIVb", 1, 5, "ab"),
        ("aPRIV b", 1, 5, "a b"),
        ("a PRIVb", 2, 6, "a b"),
        ("a\nPRIV b", 2, 6, "a\n b"),
    ],
)
def test_of_two_spaces_around_private_text_one_stays(
    text: str, start: int, end: int, rest: str
) -> None:
    assert cut_spans(text, [Span(start, end, "private")]) == rest


# Overlapping secrets in real texts: one inside the other, or across its end.
JWT = "eyJ" + some(30) + "." + some(30) + "." + some(30)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"token={JWT}", "token=[redacted:jwt]"),
        (f"token={JWT}:more7", "token=[redacted:jwt]"),
        (f"password=x{some(9)}:ghp_{some(36)}", "password=[redacted:github-token]"),
        (
            f"https://bob:ghp_{some(36)}x!@host",
            "https://bob:[redacted:github-token]@host",
        ),
        (f"curl -u bob:AKIA{'A' * 16}/tail x", "curl -u bob:[redacted:aws-access-key] x"),
    ],
)
def test_overlapping_secrets_go_to_the_longer_end(text: str, clean: str) -> None:
    assert redact_text(text)[0] == clean


# A value is redacted as a whole, however long: judging it takes only its first characters.
@pytest.mark.parametrize(
    "length", [JUDGED_MAX - 1, JUDGED_MAX, JUDGED_MAX + 1, 2 * JUDGED_MAX, 5000]
)
@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("DB_PASSWORD=", "", "password"),
        ("DB_PASSWORD=", " and more", "password"),
        ("password: ", "\nnext", "password"),
        ("token=", ", next", "token"),
        ("?token=", "&next=1", "token"),
        ("&token=", ")", "token"),
        ("--token ", ";", "token"),
        ("AccountKey=", "'", "access-key"),
        ("the token is ", ".", "token"),
    ],
)
def test_a_bare_secret_of_any_length_goes_as_a_whole(
    before: str, after: str, kind: str, length: int
) -> None:
    text = f"set {before}{some(length)}{after}"

    assert redact_text(text) == (f"set {before}[redacted:{kind}]{after}", [kind])


@pytest.mark.parametrize(("length", "found"), [(QUOTED_MAX, True), (QUOTED_MAX + 1, False)])
@pytest.mark.parametrize("quote", ['"', "'", "`", '\\"'])
def test_a_quoted_value_is_read_up_to_its_limit(quote: str, length: int, found: bool) -> None:
    # Blanks make a passphrase that is only one in quotes.
    value = ("b" * 300 + " ") * 6 + "c" * (length - 6 * 301)

    clean, _kinds = redact_text(f"PASSWORD={quote}{value}{quote} x")

    assert (clean == f"PASSWORD={quote}[redacted:password]{quote} x") == found


def test_a_query_ends_its_values_at_an_ampersand_and_nothing_else_does() -> None:
    assert redact_text("?token=abcdefg1&b=2") == ("?token=[redacted:token]&b=2", ["token"])
    assert redact_text("token=abcdefg1&b=2") == ("token=[redacted:token]", ["token"])


@pytest.mark.parametrize("mark", [".", ":", "?", ")", "}", ".)", "?)}"])
def test_punctuation_after_a_value_stays(mark: str) -> None:
    assert redact_text(f"token=abcdefg1{mark} x") == (f"token=[redacted:token]{mark} x", ["token"])


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        # name, gap, value: what may stand between them
        *(
            (f"token{gap}abcdefgh1234", f"token{gap}[redacted:token]")
            for gap in (
                *("=", ":", ": ", " = ", " : ", "==", "::", ":=", "=>", ":  ", "    =    "),
                *(" [None]: ", " [***]: ", "]: ", ")=", "' = ", '": ', "\\\\' = "),
            )
        ),
        *(
            (f"token{gap}a1b2c3d4e5f6a7b8", f"token{gap}[redacted:token]")
            for gap in (" is ", " was ", " to ", " of ", " ")
        ),
        ("é token [None]: abcdefgh1234", "é token [None]: [redacted:token]"),
        ("é TOKEN=abcdefgh1234 @A[`a{Z", "é TOKEN=[redacted:token] @A[`a{Z"),
        ("token     = abcdefgh1234", "token     = abcdefgh1234"),
        ("token =     abcdefgh1234", "token =     [redacted:token]"),
        (f"token ={13 * ' '}abcdefgh1234", f"token ={13 * ' '}abcdefgh1234"),
        ("token and a1b2c3d4e5f6a7b8", "token and a1b2c3d4e5f6a7b8"),
        ("token://abcdefgh1234", "token:[redacted:token]"),
        ("://token=abcdefgh1234", "://token=abcdefgh1234"),
        ("https://token=abcdefgh1234", "https://token=abcdefgh1234"),
        # quotes
        ('token="abcdefg1"', 'token="[redacted:token]"'),
        ("token='abcdefg1'", "token='[redacted:token]'"),
        ("token=`abcdefg1`", "token=`[redacted:token]`"),
        ('token=\\"abcdefg1\\"', 'token=\\"[redacted:token]\\"'),
        ('token="abc\\"efg1"', 'token="[redacted:token]"'),
        ("token='abc\\'efg1'", "token='[redacted:token]'"),
        ('token="abcdefg1', 'token="[redacted:token]'),
        # headers
        *(
            (f"Authorization: {scheme} abcdef", f"Authorization: {scheme} [redacted:authorization]")
            for scheme in ("Bearer", "basic", "TOKEN", "Digest")
        ),
        ("Authorization: abcdef", "Authorization: abcdef"),
        ("token=token abcdefg1", "token=token [redacted:token]"),
        ("token=token abcdefgh", "token=token abcdefgh"),
        # flags and capitals are sure of a value
        ("--password abcd", "--password [redacted:password]"),
        ("--password 'abcd'", "--password '[redacted:password]'"),
        ("password abcd", "password abcd"),
        ("PASSWORD=abcd", "PASSWORD=[redacted:password]"),
        ("PASSWORD: abcd", "PASSWORD: abcd"),
        # names
        ("secret access key=abcdefg1", "secret access key=[redacted:aws-secret-key]"),
        ("api key=abcdefg1", "api key=[redacted:api-key]"),
        ("my-api-key=abcdefg1", "my-api-key=[redacted:api-key]"),
        ("primary key=abcdefg1", "primary key=abcdefg1"),
        ("x" * 75 + "token=abcdefg1", "x" * 75 + "token=abcdefg1"),
        ("x" * 60 + "token=abcdefg1", "x" * 60 + "token=[redacted:token]"),
        *(
            (f"{owner}{gap}key=abcdefg1", f"{owner}{gap}key=[redacted:api-key]")
            for owner in ("api", "my_api", "My-Api")
            for gap in ("_", "-", "__", "_-_")
        ),
        ("apikey=abcdefg1", "apikey=[redacted:api-key]"),
        ("api  key=abcdefg1", "api  key=abcdefg1"),
        # what ends a value
        *((f"token=abcdefg1{end}x", f"token=[redacted:token]{end}x") for end in " \n\t\"'`\\,;"),
        *((f"&token=abcdefg1{end}x", f"&token=[redacted:token]{end}x") for end in " \n\"'`\\,;&"),
        *(
            (f"auth: basic abcdef{end}x", f"auth: basic [redacted:authorization]{end}x")
            for end in " \n\t\"'`\\,;"
        ),
        ("token=abcdefg1&b=2&", "token=[redacted:token]"),
        ("token=abcdefg1&b=2 ?", "token=[redacted:token] ?"),
        ('--password "correct horse"', '--password "[redacted:password]"'),
        ("--password 'correct horse'", "--password '[redacted:password]'"),
        # a value may itself be an assignment
        ("config=token=abcdefg1", "config=token=[redacted:token]"),
        ("auth: x/token=abcdefg1", "auth: x/token=[redacted:token]"),
        ("TOKEN=$TOKEN;token=abcdefg1", "TOKEN=$TOKEN;token=[redacted:token]"),
    ],
)
def test_a_value_is_found_in_any_notation(text: str, clean: str) -> None:
    assert redact_text(text)[0] == clean


# `password=correcthorse`: a value in a shell or a file of properties, and a variable in code.
@pytest.mark.parametrize(
    "text",
    [
        *("db_password={}", "export DB_password={}", "spring.password={}", "a.b.password={}"),
        *(
            "password={}",
            "\npassword={}\n",
            "x;password={};",
            "export password={}",
            "set password={}",
        ),
        *("db_password={}.", "db_password={} x", 'db_password={}"'),
        *("\\n password={}", "  password={}", "password={}  \n"),
    ],
)
def test_a_plain_word_outside_code_is_a_password(text: str) -> None:
    assert redact_text(text.format("correcthorse"))[0] == text.format("[redacted:password]")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "f(db_password={})",
            "f(db_password={}, x)",
            "f(a, db_password={} )",
            "[db_password={} ]",
        ),
        *("{{db_password={} }}", "$db_password={}", "x>db_password={}", ")db_password={}"),
        *("@db_password={}", "]db_password={}", "a,db_password={}", "a, db_password={}"),
        *("self.password={}", "user.password={}", "this.db_password={}", "args.x.password={}"),
        *("say" + 19 * " " + "password={}", "x password={}", "password={} x", "say password={}"),
    ],
)
def test_a_plain_word_in_code_is_a_variable(text: str) -> None:
    text = text.format("correcthorse")

    assert redact_text(text) == (text, [])


OBJECTS = """self this cls req request res response user account form state props ctx context app
    config settings args opts options params data body values event window process module exports
    client session"""


@pytest.mark.parametrize("name", OBJECTS.split())
def test_a_member_of_an_object_is_set_by_code(name: str) -> None:
    text = f"{name}.password=correcthorse"

    assert redact_text(text) == (text, [])


# Commands: each has its own argument, up to its end.
@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("mysql -p{0} ; mysql -p{1}", "mysql -p{} ; mysql -p{}"),
        ("mysql -p{0} | mysql app | mysql -p{1}", "mysql -p{} | mysql app | mysql -p{}"),
        ("mysql app; mysql -p{0}", "mysql app; mysql -p{}"),
        ("mysql app; ls -p{0}", "mysql app; ls -p{0}"),
        ("ls -p{0}; mysql -p{1}", "ls -p{0}; mysql -p{}"),
        ("mysql mysql -p{0} -p{1}", "mysql mysql -p{} -p{}"),
        ("mysql -p$PASS mysql -p{0}", "mysql -p$PASS mysql -p{}"),
        ("mysql -p{0} mysql -p{1} mysql app", "mysql -p{} mysql -p{} mysql app"),
        ("mysql -p{0} app\ncurl -u bob:{1} x", "mysql -p{} app\ncurl -u bob:{} x"),
    ],
)
def test_every_command_has_its_own_argument(text: str, clean: str) -> None:
    words = ("correcthorse", "batterystaple")
    expected = clean.replace("{}", "[redacted:password]").format(*words)

    assert redact_text(text.format(*words))[0] == expected


def test_the_object_of_a_member_is_looked_for_80_characters_back() -> None:
    near = f"self.{'x' * 74}.password=correcthorse"
    far = f"self.{'x' * 75}.password=correcthorse"

    assert redact_text(near) == (near, [])
    assert redact_text(far)[1] == ["password"]


@pytest.mark.parametrize(
    ("tag", "private"),
    [
        ("<private>", True),
        ("<PRIVATE>", True),
        ("<private >", True),
        ("<private\na=1>", True),
        ("<private " + "x" * 200 + ">", True),
        ("<private " + "x" * 201 + ">", False),
        ("<privatex>", False),
        ("<private", False),
        ("< private>", False),
        ("<private <>", False),
    ],
)
def test_a_private_tag_may_have_attributes(tag: str, private: bool) -> None:
    clean, kinds = redact_text(f"a{tag}zebra</private>b")

    assert (clean, kinds) == (("ab", ["private"]) if private else (f"a{tag}zebra</private>b", []))


# Rounds: cutting one secret may bring another to light.


@pytest.mark.parametrize("depth", range(1, ROUNDS_MAX))
def test_what_a_cut_brings_to_light_is_redacted_too(depth: int) -> None:
    text = "zebra"
    for _ in range(depth):
        text = f"<pri<private>x</private>vate>{text}"

    assert "zebra" not in redact_text(text)[0]


def test_a_text_made_to_defeat_redaction_is_dropped_as_a_whole() -> None:
    rounds = ROUNDS_MAX + 1
    text = "<pri" * rounds + "<private>x</private>" + "vate>y</private>" * rounds

    clean, kinds = redact_text(text)

    assert clean == "[redacted:secret]"
    assert kinds == ["private"] * ROUNDS_MAX + ["secret"]


# Fields


@pytest.mark.parametrize(
    ("fields", "clean", "found"),
    [
        ({"password": "abcd"}, {"password": "[redacted:password]"}, [("password", "password")]),
        ({"password": "abc"}, {"password": "abc"}, []),
        ({"password": 1234}, {"password": "[redacted:password]"}, [("password", "password")]),
        ({"password": 123}, {"password": 123}, []),
        ({"password": True}, {"password": True}, []),
        ({"password": None}, {"password": None}, []),
        ({"token": 12345678.5}, {"token": 12345678.5}, []),
        (
            {"tokens": {"token": ["abcdefg1", 12345678, {"x": "abcdefg1"}]}},
            {"tokens": {"token": ["[redacted:token]", "[redacted:token]", {"x": "abcdefg1"}]}},
            [("token", "tokens.token[0]"), ("token", "tokens.token[1]")],
        ),
        (
            {"password": ("abcd", "efgh")},
            {"password": ["[redacted:password]", "[redacted:password]"]},
            [("password", "password[0]"), ("password", "password[1]")],
        ),
        # The field `value` right after `name` or `key`, and nowhere else.
        (
            {"name": "DB_PASSWORD", "value": "abcd"},
            {"name": "DB_PASSWORD", "value": "[redacted:password]"},
            [("password", "value")],
        ),
        (
            {"key": "db_password", "value": "correcthorse"},
            {"key": "db_password", "value": "[redacted:password]"},
            [("password", "value")],
        ),
        (
            {"name": "api_token", "value": 12345678},
            {"name": "api_token", "value": "[redacted:token]"},
            [("token", "value")],
        ),
        ({"name": "db_password", "value": "abcde"}, {"name": "db_password", "value": "abcde"}, []),
        (
            {"name": "DB_PASSWORD", "x": 1, "value": "abcd"},
            {"name": "DB_PASSWORD", "x": 1, "value": "abcd"},
            [],
        ),
        (
            {"label": "DB_PASSWORD", "value": "abcd"},
            {"label": "DB_PASSWORD", "value": "abcd"},
            [],
        ),
        ({"name": "DB_HOST", "value": "abcd"}, {"name": "DB_HOST", "value": "abcd"}, []),
        ({"name": 7, "value": "abcd"}, {"name": 7, "value": "abcd"}, []),
        (
            {"name": "DB_PASSWORD", "value": {"password": "abcd", "x": "y"}},
            {"name": "DB_PASSWORD", "value": {"password": "[redacted:password]", "x": "y"}},
            [("password", "value.password")],
        ),
        ({"name": "x_token", "value": True}, {"name": "x_token", "value": True}, []),
        # A text with its own secret under the name of one.
        (
            {"token": f"ghp_{some(36)} and more7"},
            {"token": "[redacted:github-token] and more7"},
            [("github-token", "token")],
        ),
        (
            {7: {"password": "abcd"}, "password": "abcd"},
            {7: {"password": "[redacted:password]"}, "password": "[redacted:password]"},
            [("password", "7.password"), ("password", "password")],
        ),
    ],
)
def test_fields_are_redacted_at_any_depth(
    fields: dict[str, object], clean: dict[str, object], found: list[tuple[str, str]]
) -> None:
    assert redact(fields) == (clean, [Redaction(*item) for item in found])


def test_secret_keys_that_become_one_keep_all_values() -> None:
    fields: dict[str, object] = {f"ghp_{some(36)}": n for n in range(4)}

    clean, found = redact(fields)

    marker = "[redacted:github-token]"
    assert clean == {marker: 0, f"{marker}~2": 1, f"{marker}~3": 2, f"{marker}~4": 3}
    assert [item.field for item in found] == [marker] * 4


# Suspicion: what `redact_text` would find is never let through, and most other text is.


@pytest.mark.parametrize(
    "line",
    [
        "3f786850e387550fdab836ed7e6dc881de23001b",
        "123e4567-e89b-12d3-a456-426614174000",
        "a_long_name_of_a_function_with_words",
        "a-b - c - d",
        "the keyboard, a monkey and the author: nobody",
        "file_path=src/a1b2c3d4.py",
        "git commit -m x && mkdir -p a",
        "100 % of a@b.c",
        "https://x.io and a < b",
        "--file_path x",
        "the token don't7",
        'the token don"t7',
        "the token don`t7",
        "the token don\\t7",
        "the token " + "x" * 61 + "7",
        "the token and 7",
        "the primary key: 7",
        "a mysqldump - and a curl - too",
        "a -b",
        "",
    ],
)
def test_plain_lines_are_not_suspicious(line: str) -> None:
    assert not may_hold_secret(line)


@pytest.mark.parametrize(
    "line",
    [
        *(f"token{mark}: x" for mark in ('"', "'", "`", "\\", "]", ")", " ", "_", ".", "-")),
        *(
            f"the token{word} {mark}x7"
            for mark in ("", '"', "'", "`", "\\")
            for word in ("", " is")
        ),
        *(f"the token {word} x7" for word in ("is", "was", "to", "of")),
        *("the token " + "x" * 60 + "7", "token => x", "--" + "x" * 78 + "token"),
        *("token [a*. -b]: x", f"token [{'x' * 40}]: x", 'token", "value', "token\nvalue"),
        *(f"api{gap}key: x" for gap in ("", " ", "_", "-", ".", " _.-")),
        *(
            "token: x",
            "token=x",
            "the token 7",
            "token is x7",
            "the_token> x",
            "--token x",
            "auth 1",
        ),
        *("password: x", "passwd: x", "passphrase: x", "authorization: x", "credentials: x"),
        *("my_pat=x", "api key: x", "secret   key=x", "x-private-key=x", "api..key: x"),
        *("https://a:b@c", "<PRIVATE>", "?sig=x%3D", "-----BEGIN PRIVATE KEY-----", "setx KEY x"),
        *("machine a login b password c", "default login b password c", "mysql -px", 'token\\": x'),
        *('{"name":"token","value":"x"}', "name: token\\n value: x", "token [None]: x"),
        *(f"hooks.slack.com/{'x' * 20}", f"/api/webhooks/{'1' * 20}"),
        *(f"Bearer {'1' * 20}", f"v1.0-{'a' * 24}", f"{'x' * 100}ghp_{some(36)}"),
    ],
)
def test_lines_that_may_hold_a_secret_are_suspicious(line: str) -> None:
    assert may_hold_secret(line)
    assert may_hold_secret(json.dumps(line))


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 30])
def test_a_token_is_seen_after_any_number_of_long_runs(count: int) -> None:
    runs = "".join(f"Run{n}{'x' * 20} " for n in range(count))

    assert may_hold_secret(f"{runs}ghp_{some(36)}")
    assert may_hold_secret(f"{runs}AKIA{'A' * 16}")
    assert not may_hold_secret(runs)

"""Whether a name announces a secret, whether a value is one, and whether a text is made of words."""

from __future__ import annotations

import string
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.redaction.names import KEY_OWNERS, key_kind, name_kind, split_words
from commonplace.redaction.text import redact_text
from commonplace.redaction.values import (
    is_cookie,
    is_random,
    is_secret_number,
    is_secret_value,
    is_stand_in,
    is_token_like,
    is_url_password,
)
from commonplace.redaction.words import (
    FOLLOWS,
    count_digits,
    count_switches,
    is_slug,
    reads_as_words,
    word_bits,
)
from fake_secrets import some

if TYPE_CHECKING:
    from commonplace.redaction.table import Form


def words(text: str) -> list[str]:
    return text.split()


# Names

OWNERS_OF_KEYS = words("""api access private secret auth account signing encryption master service app ssh
    deploy license client jwt hmac fernet preshared shared admin webhook storage crypto bot
    application unseal""")
OWNERS_OF_PASS = words("""db database mysql postgres pg user smtp mail email redis admin root ftp ssh login
    sudo mongo amqp http proxy basic auth my bind become vault ldap keystore truststore vpn wifi
    default rabbitmq sa registry docker jenkins nexus artifactory sonar elastic gpg backup svc
    remote""")
HARMLESS_TOKENS = words("""eos bos pad unk mask sep cls next page stop special continuation design
    cancellation cancel first last per syntax start end prev previous color""")
FOREIGN = [
    *("contraseña", "contrasena", "passwort", "kennwort", "mot de passe", "mot_de_passe"),
    *("motdepasse", "senha", "wachtwoord", "lösenord", "hasło", "пароль", "密码", "密碼", "口令"),
    *("パスワード", "비밀번호"),
]
NAMES = [
    ("password", "password"),
    ("DB_PASSWORD", "password"),
    ("dbPassword", "password"),
    ("userpassword", "password"),
    ("passwd", "password"),
    ("mypasswd", "password"),
    ("passphrase", "password"),
    ("keyPassphrase", "password"),
    ("pwd", "password"),
    ("rootpwd", "password"),
    ("apikey", "api-key"),
    ("myapikey", "api-key"),
    ("secretkey", "secret"),
    ("accesskey", "access-key"),
    ("privatekey", "private-key"),
    ("accountkey", "access-key"),
    ("secret", "secret"),
    ("client_secret", "secret"),
    ("token", "token"),
    ("accessToken", "token"),
    ("authtoken", "token"),
    ("credential", "credential"),
    ("credentials", "credential"),
    ("gitlab_pat", "token"),
    ("GITLAB_PAT", "token"),
    ("auth", "authorization"),
    ("Authorization", "authorization"),
    ("proxy-authorization", "authorization"),
    ("api_key", "api-key"),
    ("apiKey", "api-key"),
    ("secret_key", "secret"),
    ("access_key", "access-key"),
    ("ssh_key", "access-key"),
    ("aws_secret_key", "aws-secret-key"),
    ("AWS_SECRET_ACCESS_KEY", "aws-secret-key"),
    ("secret access key", "aws-secret-key"),
    ("aws_access_key", "access-key"),
    ("--api-key", "api-key"),
    ("neo4j_pass", "password"),
    ("client-key-data", "access-key"),
    ("secret_key_base", "secret"),
    ("primary_key_data", ""),
    ("key_base", "key"),
    *((word, "password") for word in FOREIGN),
    *((f"db_{word}".upper(), "password") for word in FOREIGN),
    ("senhas", ""),
    ("NEO4J_PASS", "password"),
    *((f"{owner}_pass", "password") for owner in OWNERS_OF_PASS),
    *((f"{owner}_token", "") for owner in HARMLESS_TOKENS),
    ("pass", ""),
    ("boarding_pass", ""),
    ("db_path", ""),
    ("db_port", ""),
    ("db_token", "token"),
    ("key", "key"),
    ("OPENAI_KEY", "key"),
    ("cache_key", ""),
    ("primary_key", ""),
    ("monkey", ""),
    ("tokens", ""),
    ("max_tokens", ""),
    ("secrets", ""),
    ("pat", ""),
    ("file_path", ""),
    ("author", ""),
    ("passage", ""),
    ("", ""),
    ("_", ""),
]


@pytest.mark.parametrize(("name", "kind"), NAMES)
def test_the_kind_of_secret_that_a_name_announces(name: str, kind: str) -> None:
    assert name_kind(name) == kind


@pytest.mark.parametrize("owner", OWNERS_OF_KEYS)
def test_a_key_is_a_secret_when_its_owner_is_one_of_these(owner: str) -> None:
    kinds = {"api": "api-key", "secret": "secret"}

    assert name_kind(f"{owner}_key") == kinds.get(owner, "access-key")
    assert redact_text(f"{owner} key: {some(20)}") == (
        f"{owner} key: [redacted:{kinds.get(owner, 'access-key')}]",
        [kinds.get(owner, "access-key")],
    )


def test_owners_of_keys_are_those() -> None:
    assert list(KEY_OWNERS) == OWNERS_OF_KEYS


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dbPassword", ["db", "password"]),
        ("DB_PASSWORD", ["db", "password"]),
        ("HTTPServerKey", ["http", "server", "key"]),
        ("db-2-pass", ["db", "2", "pass"]),
        ("neo4jPass", ["neo", "4", "j", "pass"]),
        ("Ω", []),
    ],
)
def test_an_identifier_is_split_into_words(name: str, words: list[str]) -> None:
    assert split_words(name) == words


def test_a_key_of_a_record_announces_a_secret_only_if_it_is_an_identifier() -> None:
    assert key_kind("db.password-x_pwd") == "password"
    assert key_kind("x" * 72 + "password") == "password"
    assert key_kind("x" * 73 + "password") == ""
    assert key_kind("the password") == ""
    assert key_kind("Mot de passe") == "password"
    assert key_kind("ПАРОЛЬ") == "password"
    assert key_kind("") == ""


# Values: name, form, a value that is a secret, one that is not

VALUES: list[tuple[str, Form, str, str]] = [
    # Passwords in quotes or after a sure name: 4 characters.
    ("password", "quoted", "abcd", "abc"),
    ("password", "quoted", "abcdefghi", " abcd"),
    ("password", "quoted", "abcd", "abcd\n"),
    ("password", "quoted", "zbcd", "zbcd a"),
    ("PASSWORD", "sure", "abcd", "abc"),
    # Elsewhere 6, and no plain word.
    ("password", "loose", "abc12!", "abc12"),
    ("password", "tight", "hunter2", "hunter"),
    ("password", "loose", "hunter2", "correcthorse"),
    ("password", "loose", "cIfSviRIDnlgrrUe", "handlerFactory"),
    ("password", "loose", "handlerFactory22", "handlerFactory2"),
    ("password", "loose", "handlerfactory2", "handlerFactory2"),
    ("password", "loose", "correct1horse", "(correcthorse)"),
    ("password", "loose", "cIfSviRI-DnlgrrUe", "correct-horse_battery"),
    # A plain word counts where there is no code: 8 characters, letters and dashes.
    ("password", "literal", "crrctrse", "crrctrs"),
    ("password", "literal", "correct-horse", "correcthorse."),
    ("password", "literal", "correcthorse", "correct_horse"),
    *(
        ("password", "literal", "correcthorse", f"horse{word}")
        for word in ("token", "secret", "key", "pass", "auth", "cred", "pwd", "user", "word")
    ),
    *(
        ("password", "literal", "correcthorse", word)
        for word in (
            *(
                "argument",
                "bytearray",
                "nullable",
                "nvarchar",
                "cleartext",
                "database",
                "disabled",
                "encoded",
                "encrypted",
                "external",
            ),
            *("generated", "hardcoded", "incorrect", "inherited", "parameter", "plaintext"),
            *(
                "protected",
                "provided",
                "settings",
                "something",
                "supplied",
                "unchanged",
                "variable",
            ),
            *("whatever", "Database"),
        )
    ),
    # Words in quotes are a passphrase after a name in capitals or a flag.
    ("PASSWORD", "quoted", "correct horse", "correct  \t "),
    ("--password", "quoted", "correct horse", "enter horse"),
    ("PASSWORD", "quoted", "b c d e f g h i j k", "b c d e f g h i j k l"),
    ("PASSWORD", "quoted", "Correct Horse", "The Horse"),
    *(
        ("PASSWORD", "quoted", "correct horse", f"horse {word}")
        for word in words("""a an and are at be can cannot do does enter for from has have in incorrect
        invalid is it least min missing must no not of or password passwords please required set
        should the to too use wrong you your""")
    ),
    # After a name in lower case three words or more are, and no label or message.
    ("password", "quoted", "correct horse battery", "correct horse"),
    ("password", "quoted", "correct horse battery", "correct horse battery."),
    ("password", "quoted", "b c d e f g h i j k", "b c d e f g h i j k l"),
    *(
        ("password", "quoted", "correct horse battery", f"correct horse {word}")
        for word in words("""account after characters confirm current default email field forgot
        hash login name new only reset user via with tokens passphrase keyboard authors the""")
    ),
    # A path after PWD is a folder.
    ("PWD", "sure", "hunter2", "/home/me"),
    ("OLDPWD", "sure", "hunter2", "~/project"),
    # Keys: 8 characters and a digit, or 12 in mixed case that are no words.
    ("token", "quoted", "abcdefg1", "abcdef1"),
    ("token", "tight", "abcdefg1", "abcdefgh"),
    ("token", "tight", "cIfSviRIDnlg", "cIfSviRIDnl"),
    ("token", "tight", "cIfSviRIDnlgrrUe", "cifsviridnlgrrue"),
    ("token", "tight", "cIfSviRIDnlgrrUe", "CIFSVIRIDNLGRRUE"),
    ("token", "tight", "cIfSviRIDnlgrrUe", "handlerFactory"),
    ("token", "quoted", "a1234567", "12345678"),
    ("token", "quoted", "abcdefg1", "abc defg1"),
    ("token", "quoted", "abcdefg1", " abcdefg1"),
    ("token", "quoted", "abcdefg1", "abcdefg1\t"),
    # After a colon: 12 characters and two digits, and no slug.
    ("token", "loose", "abcdefghij12", "abcdefghi12"),
    ("token", "loose", "abcdefghij12", "abcdefghijk1"),
    ("token", "loose", "a1b2c3d4e5f6", "resolve-vault-2024"),
    ("token", "tight", "resolve-vault-2024", "resolve-vault"),
    # A slug after `auth` is the name of a method.
    ("auth", "tight", "cram5md5x", "cram-md5"),
    ("token", "tight", "cram-md5", "cram-mdx"),
    # A header is sure of its value: 6 characters; another name is not.
    ("Authorization", "header", "abcdef", "abcde"),
    ("token", "header", "abcdefg1", "abcdefgh"),
    ("api_key", "header", "abcdefg1", "abcdefgh"),
    ("api_key", "quoted", "abcdefg1", "Bearer abcdef"),
    ("api_key", "tight", "cram-md5", "cram-mdx"),
    ("Authorization", "quoted", "Bearer abcdef", "Bearer abcde"),
    ("Authorization", "quoted", "Bearer abcdefghi", "Bearer"),
    ("Authorization", "header", "abcdefghi", ""),
    *(
        ("Authorization", "quoted", f"{scheme} abcdef", "Custom abcdef")
        for scheme in ("bearer", "Basic", "TOKEN", "digest")
    ),
    ("Authorization", "quoted", "Bearer abcdef", "Bearer $TOKEN"),
    ("Authorization", "quoted", "abcdefg1", "abcdefgh"),
    # In prose only what is random.
    ("token", "prose", "a1b2c3d4e5f6a7b8", "a1b2c3d4e5f6a7b"),
    ("password", "prose", "a1b2c3d4e5f6a7b8", "hunter2"),
    # and a password that no word of prose, name or version looks like: 8 characters.
    *(
        ("password", "prose", secret, other)
        for secret in ("Hunter!2a", "hunter!2ab", "Maple4821", "x7kq2mvp9", "qZrTkWbNxYpL")
        for other in (
            *("Hunter!xab", "Hunter(!2ab)", "src/Hunter!2ab", "hunt!2a", "sha256sum", "argon2id"),
            *("16-character", "RFC7617", "config.py2x", "a1b2c3d4", "correcthorse", "OAuthClient"),
            *("py311-linux", "20240105", "x" * 101 + "1A"),
        )
    ),
]


@pytest.mark.parametrize(("name", "form", "secret", "other"), VALUES)
def test_a_value_is_a_secret_by_its_name_form_and_characters(
    name: str, form: Form, secret: str, other: str
) -> None:
    kind = name_kind(name)

    assert is_secret_value(secret, kind, name, form)
    assert not is_secret_value(other, kind, name, form)


STAND_INS = [
    *("[redacted:token]", "[redacted:token].", "[redacted:x-y]),"),
    *(
        "${TOKEN}",
        "$(pass show db)",
        "{{ token }}",
        "#{token}",
        "%{token}",
        "@{token}",
        "%(token)s",
    ),
    *(
        "$TOKEN",
        "$token",
        "$1",
        "$@",
        "$?",
        "%TOKEN%",
        "%env(TOKEN)%",
        "%s",
        "{token}",
        "{}",
        "<token>",
        "<a b>",
    ),
    *("-$TOKEN-", "$A$B", "$A.$b", "<token", "[FILTERED]", "[a b]", "{token", "{a.b_c"),
    *("getToken(", "os.getenv(", "xxxx", "....", "ab****cd", "abcxxxdef"),
    *("https://x.io/Zq7", "vault://db/Zq7", "C:\\secrets\\Zq7", "sha256:9f86d081", "sha512-9f86"),
    *("md5:9f86d081", "1.2.3", "v1.2", "2.0.0-rc1", "***", "", "!?"),
    *("auth-svc-7d9f8b6c5d-x2x4z", "web-7d9f8b6c", "web-7d9f8b6c5d"),
    *("process.env.TOKEN", "$this->password", "self.token", "config::token", "a?.b", "*cfg.token"),
    *(
        "a1b2c3.x",
        "get_token()",
        "tokens[key]",
        "os.environ[key]",
        "load(a, b)",
        "$cfg.token/x",
        "[cfg.token]",
    ),
    *("~/token", "./token", "../a/b", "/run/secrets/db", "a/b/c/", "@/run/x", "HTTP.SERVER"),
    *("your-token-1", "example1", "my-placeholder-7", "changeme123", "dummy7", "fake_token_1"),
    *("todo1", "redacted7", "xxx7", "xxxx7"),
]
VALUE_WORDS = words("""str string text bytes int number bool boolean none null nil undefined true false any
    object optional required missing invalid hidden empty unset never password passwd pass pw pwd
    secret token key value todo changeme redacted masked filtered omitted removed yes no env
    environment prompt file keyring secretstr bearer basic oauth jwt expired""")
# A pod of Kubernetes has these characters at its end.
POD = "bcdfghjklmnpqrstvwxz2456789"
STAND_INS += [
    *(f"pod-7d9{char}8b6c" for char in POD),
    *(f"pod-7d9f8b6c-x2{char}4z" for char in POD),
    *("pod-7d9f8b6c5", "p" + "a0-" * 20 + "-7d9f8b6c"),
    # What may follow a marker, and what a shell expands.
    *(f"{{x}}-${char}{{x}}" for char in "0123456789@?*#"),
    *("-$A_B-", "-$_A-", "-$a_b-", "-$_a-", "-$A1-", "-$a1-", "$_A=$_a", "%a_1%-%s"),
    # Calls and what is in their brackets; references of up to two marks.
    *("aZ1b2Y3c4X5d6(", "_Z1b2Y3c4X5d6(", "Z1b2.Y3c4X5d6("),
    *(f"load(a{char}b)" for char in " \n.,*&:()[]{}=>+$/-_7"),
    *("abc(a, b)", "abc[a, b]", "_bc(a, b)", "abc.d3f(a)", "a::b->c?.def(x)"),
    *(f"{mark}cfg.token" for mark in "@&*!([{$%"),
    *("[(cfg.token)]", "$cfg:token", "$cfg/token", "$cfg-token", "cfg.token}", "_a._b"),
    *("~/a.b-c_d/e/", "../a", "@~/a", "a/b", "/a/b/", "a.b/c-d"),
]
REAL = [
    *(f"pod-7d9{char}8b6c" for char in "aeiouy013"),
    *(f"pod-7d9f8b6c-x2{char}4z" for char in "aeiouy013"),
    *("pod-7d9f8b6", "pod-7d9f8b6c5dx", "pod-7d9f8b6c-x2x4", "pod-7d9f8b6c-x2x4zz"),
    *("Pod-7d9f8b6c", "7od-7d9f8b6c", "p" + "a0-" * 20 + "x-7d9f8b6c"),
    *("f(a7, b)", "ab(a7, b)", "load(a7!b)", "load(a7^b)", "[[[cfg7.token", "7cfg.token"),
    *("-$Ab7-", "~a7/b", "cfg7..token", "a7//b", "%a-7%"),
    *("Zq7$", "$Zq7-x%k9", "%Zq7", "{Zq7"),
    *("<Zq7 k9", "$ecret-Pa55!word", "*hTH^9_hX-chPQ", "aabb7ccdd", "abcdxxxefgh", "Zq7!"),
    *("c:Zq7", "sha:9f86", "md5-9f86", "1", "12a.3", "v1", "a1-7d9f8b6c5dxx-x2x4z", "web-7d9f8b6a"),
    *(
        "a1b2c3d.x",
        "aZ1.b2Y3c4X",
        "x9.kQ2z7Wv4",
        "string7",
        "none1",
        "stringy",
        "tokenize",
        "yourself7",
    ),
    *("Zq7/k9W2x4", "aZ1b2(Y3c4X5d6"),
]


@pytest.mark.parametrize("value", [*STAND_INS, *VALUE_WORDS, *map(str.upper, VALUE_WORDS)])
def test_a_stand_in_is_no_secret(value: str) -> None:
    assert is_stand_in(value)


@pytest.mark.parametrize("value", REAL)
def test_what_only_looks_like_a_stand_in_is_none(value: str) -> None:
    assert not is_stand_in(value)


@pytest.mark.parametrize(
    ("value", "is_secret"),
    [
        ("a1b2c3d4e5f6a7b8", True),
        ("a1b2c3d4e5f6a7b", False),  # too short
        ("abcdefghij12klmn3o", True),
        ("abcdefghijklmn3opq", False),  # one digit
        ("abcdefghijklmnop12", False),  # one switch
        ("12abcdefghijklmnop34", False),  # two switches
        ("12abcdefgh34ijklmnop", True),  # three
        ("a" + "b" * 47 + "cd1e2", False),  # no digit within 50 characters
        ("a" + "b" * 46 + "cd1e2", True),
        ("a1b2c3d4 5f6a7b8c", False),
        ("a1b2c3d4+/=_.~-e5", True),
        ("a1b2c3d4!e5f6a7b8", False),
        ("sha256:a1b2c3d4e5f6a7b8", False),
        ("your-a1b2c3d4e5f6a7b8", False),
    ],
)
def test_random_characters_alternate(value: str, is_secret: bool) -> None:
    assert is_random(value) == is_secret


@pytest.mark.parametrize("word", ["password", "pass", "passwd", "pw", "pwd", "secret", "token"])
def test_a_url_with_a_word_for_a_password_has_none(word: str) -> None:
    assert not is_url_password(word)
    assert not is_url_password(word.upper())
    assert is_url_password(word + "7")


@pytest.mark.parametrize(
    ("digits", "kind", "is_secret"),
    [
        ("1234", "password", True),
        ("123", "password", False),
        ("1111", "password", False),
        ("12345678", "token", True),
        ("1234567", "token", False),
        ("1234.5678", "token", False),
    ],
)
def test_a_number_is_a_secret_by_its_length(digits: str, kind: str, is_secret: bool) -> None:
    assert is_secret_number(digits, kind) == is_secret


@pytest.mark.parametrize(
    ("value", "is_secret"),
    [
        ("a1b2c3d4e5f6a7b8", True),
        ("a1b2%2Fc3d4e5f6a7b8", True),
        ("cIfSviRIDnlgrrUe", True),
        ("cIfSviRIDnlgrrU", False),
        ("cifsviridnlgrrue", False),
        ("handlerFactoryService", False),
        ("en-US", False),
        ("${SESSION_COOKIE_VALUE}", False),
    ],
)
def test_a_cookie_is_a_secret_if_it_is_random(value: str, is_secret: bool) -> None:
    assert is_cookie(value) == is_secret


@pytest.mark.parametrize(
    ("value", "is_secret"),
    [
        ("abcdefg1", True),
        ("abcdef1", False),
        ("abcdefgh", False),
        ("12345678", False),
        ("12/34/56", False),
        ("step-one-2", False),
    ],
)
def test_a_password_after_pass_has_letters_and_digits(value: str, is_secret: bool) -> None:
    assert is_token_like(value) == is_secret


# Words

# Eleven letters of one case prove nothing, and twelve do; five bits speak for words, and four do not.
WORDS = [
    "zqxjkvbpwmf",
    "factoryjkfactory",
    "ghServicevbxk",
    "correcthorse",
    "handlerFactory",
    "passwordSchema",
    "HTTPServer2",
    "the",
    "user2name",
]
RANDOM = [
    "zqxjkvbpwmfg",
    "qzservicemfstaple",
    "mfmFqzhandler",
    "cIfSviRIDnlgrrUe",
    "ZzxyxnOtmtMRwtQo",
    "aB",
    "Ab1",
    "qXz",
]


@pytest.mark.parametrize("text", [*WORDS, "", "a", "xkcdqzvw", "XKCDQZVW", "zqxjkvbpwmfé"])
def test_these_read_as_words(text: str) -> None:
    assert reads_as_words(text)


@pytest.mark.parametrize("text", RANDOM)
def test_these_do_not_read_as_words(text: str) -> None:
    assert not reads_as_words(text)


def test_most_random_letters_do_not_read_as_words() -> None:
    drawn = [some(16, string.ascii_letters) for _ in range(300)]

    assert sum(map(reads_as_words, drawn)) < 6


def test_most_names_of_the_standard_library_read_as_words() -> None:
    names = [name for name in dir(string) + dir(str) + dir(pytest) if not name.startswith("_")]

    assert sum(map(reads_as_words, names)) > 0.9 * len(names)


def slow_word_bits(text: str) -> int:
    """Return what `word_bits` does, one pair at a time."""
    mixed = not (text.islower() or text.isupper())
    bits = 0
    for one, two in pairwise(text):
        if not (one.isalpha() and two.isalpha()):
            bits -= 2 * (mixed and one.isalpha() and two.isdigit())
        elif one.islower() and two.isupper():
            bits -= 2
        else:
            row, place = (string.ascii_lowercase.index(char.lower()) for char in (one, two))
            bits += int(chr(FOLLOWS[row * 26 + place])) - 5
            bits += mixed and (-1 if two.isupper() else 1)
    return bits


@given(st.text(st.characters(codec="ascii"), max_size=30) | st.text("abzABZ09-", max_size=20))
def test_word_bits_are_the_sum_over_all_pairs(text: str) -> None:
    assert word_bits(text) == slow_word_bits(text)


@pytest.mark.parametrize(("pair", "bits"), [("th", 1), ("qu", 4), ("zx", -4), ("qz", -4)])
def test_letters_that_often_follow_each_other_speak_for_words(pair: str, bits: int) -> None:
    assert word_bits(pair) == bits


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("resolve-via-vault", True),
        ("cram-md5", True),
        ("a.b/c:d_e-f", True),
        ("release-2024", True),
        ("release2-12", True),
        ("release123-x", False),
        ("vault", False),
        ("-vault", False),
        ("vault-", False),
        ("2024-release", False),
        ("zqxjkv-bpwmfg", False),
    ],
)
def test_a_slug_is_words_and_numbers_that_are_joined(text: str, slug: bool) -> None:
    assert is_slug(text) == slug


@pytest.mark.parametrize(
    ("text", "switches", "digits"),
    [("", 0, 0), ("abc", 0, 0), ("a1b", 2, 1), ("a-1", 0, 1), ("12ab34", 2, 4), ("é²a٣", 0, 2)],
)
def test_switches_and_digits_are_counted(text: str, switches: int, digits: int) -> None:
    assert (count_switches(text), count_digits(text)) == (switches, digits)

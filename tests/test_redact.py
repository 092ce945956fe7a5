"""Redaction: what must go, what must stay, and the laws that hold for any text."""

import json
import random
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.redaction.fields import Redaction, redact
from commonplace.redaction.suspicion import may_hold_secret
from commonplace.redaction.text import redact_text
from fake_secrets import HEX, MIXED, UPPER, pem, some

JWT = "eyJhbGciOiJIUzI1NiJ9." + some(40) + "." + some(43)

# kind, the text before the secret, the secret, the text after it
SECRETS = [
    ("aws-access-key", "", "AKIA" + some(16, UPPER), ""),
    ("aws-access-key", "", "ASIA" + some(16, UPPER), ""),
    ("aws-secret-key", "AWS_SECRET_ACCESS_KEY=", some(38) + "/1", ""),
    ("aws-secret-key", "aws_secret_access_key = ", some(38) + "+1", ""),
    *[("github-token", "", f"gh{letter}_" + some(36), "") for letter in "pousr"],
    ("github-token", "", "github_pat_" + some(22) + "_" + some(59), ""),
    *[
        ("gitlab-token", "", f"gl{word}-" + some(20), "")
        for word in ("pat", "dt", "rt", "ptt", "agent", "soat")
    ],
    ("slack-token", "", "xoxb-" + some(12, string.digits) + "-" + some(24), ""),
    (
        "slack-token",
        "",
        "xapp-1-" + some(11, UPPER) + "-" + some(13, string.digits) + "-" + some(64, HEX),
        "",
    ),
    (
        "webhook",
        "https://hooks.slack.com/",
        "services/T" + some(8, UPPER) + "/B" + some(8, UPPER) + "/" + some(24),
        "",
    ),
    ("webhook", "https://discord.com/api/webhooks/", some(18, "123456789") + "/" + some(68), ""),
    *[
        ("stripe-key", "", prefix + some(24), "")
        for prefix in ("sk_live_", "sk_test_", "rk_live_", "rk_test_")
    ],
    ("stripe-webhook-secret", "", "whsec_" + some(32), ""),
    ("npm-token", "", "npm_" + some(36), ""),
    ("commonplace-token", "", "cpb_" + some(43), ""),
    ("pypi-token", "", "pypi-AgEIcHlwaS5vcmc" + some(80), ""),
    ("openai-key", "", "sk-" + some(48), ""),
    ("openai-key", "", "sk-proj-" + some(48), ""),
    ("openai-key", "", "sk-svcacct-" + some(48), ""),
    ("anthropic-key", "", "sk-ant-api03-" + some(80) + "AA", ""),
    ("google-api-key", "", "AIza" + some(35), ""),
    ("google-oauth-token", "", "ya29." + some(60), ""),
    ("google-oauth-secret", "", "GOCSPX-" + some(28), ""),
    ("access-key", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=", some(86) + "==", ""),
    (
        "azure-sas",
        "https://x.blob.core.windows.net/c?sv=2022&sig=",
        some(20) + "%2B" + some(21) + "%3D",
        "&se=1",
    ),
    ("digitalocean-token", "", "dop_v1_" + some(64, HEX), ""),
    ("huggingface-token", "", "hf_" + some(34), ""),
    ("telegram-bot-token", "", some(9, "123456789") + ":AA" + some(33), ""),
    ("twilio-key", "", "SK" + some(32, HEX), ""),
    ("sendgrid-key", "", "SG." + some(22) + "." + some(43), ""),
    ("mailgun-key", "", "key-" + some(32, HEX), ""),
    ("discord-token", "", "MT" + some(22) + "." + some(6) + "." + some(38), ""),
    ("databricks-token", "", "dapi" + some(32, HEX), ""),
    ("vault-token", "", "hvs." + some(90), ""),
    ("doppler-token", "", "dp.st.dev." + some(43), ""),
    ("linear-key", "", "lin_api_" + some(40), ""),
    ("notion-key", "", "secret_" + some(43), ""),
    ("supabase-key", "", "sbp_" + some(40, HEX), ""),
    ("vercel-token", "", "vcp_" + some(56), ""),
    ("cloudflare-key", "", "v1.0-" + some(24, HEX) + "-" + some(146, HEX), ""),
    ("sentry-token", "", "sntryu_" + some(64, HEX), ""),
    ("shopify-token", "", "shpat_" + some(32, HEX), ""),
    ("square-token", "", "sq0atp-" + some(22), ""),
    ("docker-token", "", "dckr_pat_" + some(27), ""),
    ("age-secret-key", "", "AGE-SECRET-KEY-1" + some(58, UPPER), ""),
    ("jwt", "", JWT, ""),
    ("jwt", "Authorization: Bearer ", JWT, ""),
    ("bearer-token", "send Bearer ", some(40), " along"),
    ("authorization", "curl -H 'Authorization: Basic ", some(20) + "==", "' x"),
    *[
        ("private-key", "", pem(f"{word}PRIVATE KEY"), "")
        for word in ("", "RSA ", "EC ", "OPENSSH ")
    ],
    ("private-key", "", pem("PGP PRIVATE KEY BLOCK"), ""),
    ("private-key", '{"private_key": "', pem("PRIVATE KEY", "\\n"), '"}'),
    (
        "private-key",
        "",
        "-----BEGIN RSA PRIVATE KEY-----\n" + some(64) + "\n" + some(64),
        "\nand then prose",
    ),
    ("url-password", "postgres://admin:", some(16), "@db.internal/app"),
    ("url-password", "redis://:", some(16), "@cache:6379"),
    ("url-token", "https://", some(40, HEX), "@github.com/a/b"),
    ("password", "DB_PASSWORD=", some(20), ""),
    ("password", '"password": "', "hunter2", '"'),
    ("password", '{\\"dbPassword\\": \\"', "hunter2", '\\"}'),
    ("password", "password: ", "hunter2!", ""),
    ("password", "mysql --password ", "correcthorse", " -h x"),
    ("password", "mysql -u root -p", "hunter2", " app"),
    ("password", "sshpass -p ", "hunter2", " ssh host"),
    ("password", "curl -u bob:", "hunter2", " https://x.io"),
    ("api-key", "api-key: ", some(30) + "42", ""),
    ("api-key", "apiKey='", some(30) + "4", "'"),
    ("token", "https://x.io/?a=1&access_token=", some(30) + "4", "&b=2"),
    ("token", "the api token is ", "8f3a9b1c2d4e5f60718293a4b5c6d7e8", " now"),
    ("secret", "client_secret=", some(30) + "4", ""),
    ("password", "DB_PASSWORD=", "*hTH^9_hX-chPQ", ""),
    ("password", "DB_PASSWORD=", "$ecret-Pa55!word", ""),
    ("aws-secret-key", "AWS_SECRET_ACCESS_KEY=", "/JalrXUt" + some(32), ""),
    ("url-password", "postgres://admin:", "!6&1%szl*rD#$l", "@db.internal/app"),
    ("token", "token: ", "ZzxyxnOtmtMRwt0QoAwjDOdY", ""),
    ("password", "password: ", "cIfSviRIDnlgrrUe", ""),
    ("password", 'DB_PASSWORD="', "correct horse 42", '"'),
    ("password", "curl --user bob:", "hunter2", " https://x.io"),
    ("password", "az login --service-principal -u app -p ", "hunter2", " --tenant x"),
    ("password", "twine upload -u bob -p ", "hunter2", " dist/*"),
    ("password", "redis-cli -h cache -a ", "hunter2", " ping"),
    ("secret", "aws secretsmanager create-secret --name x --secret-string ", "hunter2", ""),
    (
        "secret",
        "aws secretsmanager put-secret-value --secret-string '",
        '{"user": "bob", "x": 1}',
        "'",
    ),
    ("secret", "gh secret set DEPLOY --body ", "hunter2", ""),
    ("secret", 'gh secret set DEPLOY -b "', "correct horse", '"'),
    ("password", "openssl rsa -in key.pem -passin pass:", "hunter2", " -out x"),
    ("password", "<password>", "hunter2", "</password>"),
    ("password", "<dbPassword>", "correcthorse", "</dbPassword>"),
    ("password", "spring.datasource.password=", "correcthorse", ""),
    ("password", "db_password=", "correcthorse", ""),
    ("password", "\npassword=", "correcthorse", "\n"),
    ("password", "Server=x;User Id=sa;Password=", "correcthorse", ";"),
    ("password", "ansible_become_pass: ", "hunter2", ""),
    ("password", "- name: DB_PASSWORD\n  value: ", "hunter2secret", "\n"),
    ("password", '{"name": "DB_PASSWORD", "value": "', "hunter2secret", '"}'),
    ("password", '{"name":"DB_PASSWORD","value":"', "correcthorse", '"}'),
    ("password", '[{\n  "name": "DB_PASSWORD",\n  "value": "', "hunter2secret", '"\n}]'),
    ("aws-secret-key", "AWS Secret Access Key [None]: ", some(38) + "/1", ""),
    ("aws-secret-key", "AWS Secret Access Key [****************ABCD]: ", some(38) + "/1", ""),
    ("token", "GITLAB_PAT=", some(19) + "4", ""),
    ("token", "AZURE_DEVOPS_EXT_PAT=", some(51) + "4", ""),
    ("password", '{"password":', "12345678", "}"),
    ("token", "setx API_TOKEN ", some(19) + "4", ""),
    ("password", 'setx DB_PASSWORD "', "correcthorse", '"'),
    ("password", "machine h login u password ", "hunter2", ""),
    ("password", "machine h\n  login u\n  password ", "correcthorse", "\n"),
    ("password", '{"user": "bob", "pass": "', "correcthorse", '"}'),
    ("password", "\nuser: bob\n  pass: ", "hunter2secret", "\n"),
    ("password", "\nuser: bob\npassword: ", "correcthorse", "\n"),
    ("password", "\n- user: bob\n- password: ", "correcthorse", "\n"),
    ("password", "\npassword: ", "correcthorse", "\nport: 5432"),
    ("password", 'password: "', "correct horse battery staple", '"'),
    ("password", "Contraseña: ", "hunter2", ""),
    ("password", "CONTRASEÑA=", "correcthorse", ""),
    ("password", "Mot de passe : ", "hunter2", ""),
    ("password", "senha do banco: ", "hunter2", ""),
    ("password", "das Passwort ist ", "hunter2", ""),
    ("password", "数据库密码：", "hunter2", ""),
    ("password", "密码是", "hunter2", ""),
    ("password", "curl -u 'bob:", "correct horse", "' x.io"),
    (
        "tailscale-key",
        "tailscale up --authkey ",
        "tskey-auth-" + some(12) + "1CNTRL-" + some(32),
        "",
    ),
]

HARMLESS = [
    "3f786850e387550fdab836ed7e6dc881de23001b",
    "fixed in 3f78685",
    "auth broke in commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "123e4567-e89b-12d3-a456-426614174000",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    '"integrity": "sha512-' + some(86) + '=="',
    "src/routes/todos.ts",
    "react@18.2.0",
    "token_count=512 max_tokens: 500 tokens_max=500",
    "password: str",
    'password=os.environ["X"]',
    "PASSWORD=$DB_PASSWORD",
    "token=${TOKEN}",
    "secret: <your-secret>",
    "JWT_SECRET=your-secret-key-here",
    "api_key=None",
    "password=****",
    "token: {{ secrets.X }}",
    "const token = process.env.TOKEN",
    "token = getToken()",
    "csrf token missing",
    "the token expired",
    "forgot password flow",
    "author: name",
    "key=value",
    "primary_key=id",
    "sort_key: created",
    "keyboard: qwerty123456",
    "author_id=a1b2c3d4e5f6a7b8",
    "data:image/png;base64," + some(200),
    "postgres://user:password@localhost/app",
    "git clone ssh://git@github.com/a/b",
    "PWD=/home/me/project",
    "class sk-fading-circle-animation-wrapper",
    "look for -----BEGIN RSA PRIVATE KEY----- in the diff",
    "mkdir -p build/out && docker run -p 8080:80 web",
    "eos_token='</s>'",
    "<PrivateRoute> wraps the page",
    "password=password token=token password=user_password secret=get_secret()",
    "DB_PASSWORD=$dbPassword DB_PASSWORD=%DB_PASSWORD% DB_PASSWORD=<password> DB_PASSWORD=$(pass show db)",
    "DB_PASSWORD=/run/secrets/db_password DB_PASSWORD=~/.secrets/db DB_PASSWORD=[FILTERED] DB_PASSWORD=***",
    "PWD=/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T",
    "token: accessTokenProviderFactory",
    "token=authenticationTokenService",
    "password: Optional[str]",
    "password: string|null",
    "password: (optional)",
    "password=self.cleaned_data",
    "pod auth: auth-svc-7d9f8b6c5d-x2x4z",
    "password: passwordSchema2,",
    "secret: resolve-via-vault-2024",
    "LOGINDISABLED AUTH=CRAM-MD5",
    "connect(db_password=correcthorse, user=bob) or connect(db_password=database)",
    "self.password=correcthorse",
    "db_password=plaintext password=correcthorse",
    "<password>string</password> <token>{{ token }}</token> <label>Password1</label>",
    "- name: DB_PASSWORD\n  valueFrom: secretKeyRef",
    "name: password value: string",
    "file_path=src/a1b2c3d4.py my_pattern=abc123def456",
    "AWS Secret Access Key [None]: ",
    'ERROR_PASSWORD="the password must have 8 characters"',
    "log in with the login form, then password reset",
    '{"pass": "green", "fail": "none"} {"pass": "120/120"} {"pass": 1234}',
    "tests pass: a1b2c3d4 is the commit; pass: 12 fail: 0",
    "pass: a1b2c3d4 without another line",
    "total: 12\npass: 12\nfail: 0",
    "user: bob\npassword: correcthorse is what the form says",
    "password: correcthorse",
    "user: bob\nthe password: correcthorse\n",
    "user: str\npassword: SecretStr\nother: bytes",
    "Some words.\npassword: correcthorse\nMore words.",
    'password: "Forgot it? Ask again" password: "must match both fields" password: "too short"',
    "el campo contraseña es obligatorio; das Passwort ist falsch; 密码是必填的; senha: obrigatória",
    "Cookie: theme=dark; lang=en-US; path=/",
    "git checkout -b fix=thing && sudo -S true && echo done | tee x",
    "mongosh -u bob -p --host db.internal and zip -r out.zip build and unzip -P $ZIP_PASS x.zip",
    "mysql -P3306 -h db and redis-cli -p 6379 and curl --user bob:$PASS x and az login -p $(pass az)",
]


@pytest.mark.parametrize(
    ("kind", "before", "secret", "after"),
    SECRETS,
    ids=[f"{i}-{s[0]}" for i, s in enumerate(SECRETS)],
)
def test_a_secret_goes_and_the_text_around_it_stays(
    kind: str, before: str, secret: str, after: str
) -> None:
    text, kinds = redact_text(f"set it to {before}{secret}{after} before the run")

    assert text == f"set it to {before}[redacted:{kind}]{after} before the run"
    assert kinds == [kind]


@pytest.mark.parametrize(
    ("kind", "before", "secret", "after"),
    SECRETS,
    ids=[f"{i}-{s[0]}" for i, s in enumerate(SECRETS)],
)
def test_a_line_with_a_secret_is_suspicious(
    kind: str, before: str, secret: str, after: str
) -> None:
    assert may_hold_secret(to_line({"lesson": f"{before}{secret}{after}"})), kind


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert redact_text(text) == (text, [])


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("keep this <private>but not zebra</private> and this", "keep this and this"),
        ("a <PRIVATE>b <private>c</private> d</Private> e", "a e"),
        ("a <private>to the end", "a"),
        ("<private>x</private> a", "a"),
        ("a<private>x</private>b", "ab"),
        ("<pri<private>x</private>vate>zebra", ""),
    ],
)
def test_private_text_leaves_nothing(text: str, rest: str) -> None:
    assert redact_text(text)[0] == rest


SYMBOLS = MIXED + "!@#$%^&*-_"


@pytest.mark.parametrize(
    ("shape", "length", "alphabet"),
    [
        ("DB_PASSWORD={}", 14, SYMBOLS),
        ("DB_PASSWORD={}", 14, MIXED + "~!@#$%^&*()-_=+[]{}|:<>./?"),
        ("password={}", 14, SYMBOLS),
        ("password: {}", 14, SYMBOLS),
        ("password: {}", 16, string.ascii_letters),
        ('"password": "{}"', 14, SYMBOLS),
        ("postgres://app:{}@db/x", 14, SYMBOLS),
        ("AWS_SECRET_ACCESS_KEY={}", 40, MIXED + "+/"),
        ("aws_secret_access_key = {}", 40, MIXED + "+/"),
        ("token: {}", 24, MIXED),
        ("API_TOKEN={}", 24, MIXED),
        ("client_secret: {}", 40, MIXED + "-_"),
    ],
)
def test_fewer_than_one_drawn_secret_in_200_stays(shape: str, length: int, alphabet: str) -> None:
    lot = random.Random(1)
    values = ["".join(lot.choices(alphabet, k=length)) for _ in range(1000)]

    missed = [value for value in values if value in redact_text(shape.format(value))[0]]

    assert len(missed) < 5, missed


def test_secrets_are_found_at_any_depth_and_named_by_their_place() -> None:
    token = "ghp_" + some(36)
    fields: dict[str, object] = {
        "command": f"use {token}",
        "meta": {"env": ["a", {"dbPassword": "hunter2"}]},
    }
    before = json.dumps(fields)

    clean, found = redact(fields)

    assert clean == {
        "command": "use [redacted:github-token]",
        "meta": {"env": ["a", {"dbPassword": "[redacted:password]"}]},
    }
    assert found == [
        Redaction("github-token", "command"),
        Redaction("password", "meta.env[1].dbPassword"),
    ]
    assert json.dumps(fields) == before


def test_a_number_under_the_name_of_a_secret_goes() -> None:
    clean, found = redact(
        {
            "password": 12345678,
            "token": 50256,
            "auth": True,
            "max_tokens": 100000000,
            "pins": [1234],
        }
    )

    assert clean == {
        "password": "[redacted:password]",
        "token": 50256,
        "auth": True,
        "max_tokens": 100000000,
        "pins": [1234],
    }
    assert found == [Redaction("password", "password")]


def test_a_value_field_goes_by_the_name_field_before_it() -> None:
    fields: dict[str, object] = {
        "env": [
            {"name": "DB_PASSWORD", "value": "hunter2"},
            {"name": "password", "value": "Passwort"},
        ],
        "more": {"key": "DB_PASSWORD", "value": 12345678},
    }

    clean, found = redact(fields)

    assert clean == {
        "env": [
            {"name": "DB_PASSWORD", "value": "[redacted:password]"},
            {"name": "password", "value": "Passwort"},
        ],
        "more": {"key": "DB_PASSWORD", "value": "[redacted:password]"},
    }
    assert found == [Redaction("password", "env[0].value"), Redaction("password", "more.value")]


def test_cookies_and_pass_are_fields_of_secrets_only_with_such_values() -> None:
    cookie = some(32)

    clean, found = redact(
        {
            "headers": {"Cookie": f"theme=dark; sid={cookie}", "X": f"sid={cookie}"},
            "a": {"pass": "hunter2"},
            "b": {"pass": "green"},
            "c": {"pass": 123456},
            "d": {"пароль": "hunter2", "Mot de passe": "hunter2"},
        }
    )

    assert clean == {
        "headers": {"Cookie": "theme=dark; sid=[redacted:cookie]", "X": f"sid={cookie}"},
        "a": {"pass": "[redacted:password]"},
        "b": {"pass": "green"},
        "c": {"pass": 123456},
        "d": {"пароль": "[redacted:password]", "Mot de passe": "[redacted:password]"},
    }
    assert [r.field for r in found] == ["headers.Cookie", "a.pass", "d.пароль", "d.Mot de passe"]


def test_secret_keys_go_and_their_values_both_survive() -> None:
    clean, found = redact({"ghp_" + some(36): 1, "ghp_" + some(36): 2})

    assert clean == {"[redacted:github-token]": 1, "[redacted:github-token]~2": 2}
    assert [r.kind for r in found] == ["github-token", "github-token"]


def test_clean_fields_come_back_as_the_same_object() -> None:
    fields: dict[str, object] = {"lesson": "the token expired", "n": 1, "tags": ["auth"]}

    assert redact(fields)[0] is fields


# The laws, on text made of what rules look for

PIECES = [
    *[before + secret + after for _, before, secret, after in SECRETS],
    *[secret for _, _, secret, _ in SECRETS],
    *HARMLESS,
    *[
        "[redacted:token]",
        "[redacted:",
        "<private>",
        "</private>",
        "password",
        "token",
        "api key",
        "_pat",
        "value",
        "setx ",
        "name",
        "machine a login b password ",
        "</password>",
        "<password>",
        " [None]",
        "--secret",
        "Bearer ",
    ],
    *[
        "=",
        ":",
        ": ",
        " is ",
        '"',
        "'",
        "`",
        "\\",
        "\\n",
        "\n",
        " ",
        "]",
        "@",
        "://",
        "-",
        "_",
        ".",
        "hunter2",
        "ſ",
        "K",
        "é",
        "пароль",
        "密码",
        "Contraseña",
        "mot de passe",
        "pass",
        "Cookie",
        "cookie: ",
        "-data",
    ],
    *["-----BEGIN RSA PRIVATE KEY-----", " -p", " -u ", "mysql ", "AKIA", "x" * 20],
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=8).map("".join)
VALUES = st.recursive(
    TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)


def to_line(fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


@given(TEXTS)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once, _ = redact_text(text)

    assert redact_text(once) == (once, [])


@given(st.dictionaries(TEXTS, VALUES, max_size=3))
def test_redacting_fields_twice_is_redacting_once(fields: dict[str, object]) -> None:
    once, _ = redact(fields)

    assert redact(once) == (once, [])


@given(st.dictionaries(TEXTS, VALUES, max_size=3))
def test_what_is_not_suspicious_is_never_changed(fields: dict[str, object]) -> None:
    clean, found = redact(fields)

    assert may_hold_secret(to_line(fields)) or (clean is fields and not found)


# What the regexes are made of: each repetition, each thing that may or may not be there, each start of a match.
SLOW = [
    *[
        "a",
        "A",
        "0",
        "a0",
        "-",
        "_",
        ".",
        " ",
        "=",
        ":",
        "'",
        "`",
        "\n",
        "\\",
        "\\n",
        "a.",
        "a::",
        ".a",
        "AAAA ",
    ],
    *[
        "password=",
        'password="',
        "password='\\\"",
        'password=\\"',
        "password ",
        "password\\\\ ",
        '"password": "',
    ],
    *[
        "password={",
        "password=$(",
        "password=<",
        "password=/",
        "password=a(",
        "password=a.",
        "password=*",
    ],
    *[
        "auth:",
        "auth:[",
        "token is ",
        "token: a.",
        "a_token ",
        "--secret ",
        "secret" * 20,
        "api key ",
        "AccountKey=",
    ],
    *[
        "-----BEGIN PRIVATE KEY-----",
        "Aaa: ",
        "\nAaa: ",
        "-----BEGIN PRIVATE KEY-----\nAaa: ",
        "A" * 16,
        "A" * 16 + '"',
    ],
    *[
        "://:",
        "://a:",
        "://a:a@",
        "@",
        "sig=",
        "?sig=%",
        "Bearer ",
        "<private>",
        "</private>",
        "<private ",
    ],
    *[
        "<password>",
        "</password>",
        "<password ",
        "name: password\n value",
        "key=",
        "setx password ",
        "machine a login ",
    ],
    *["Secret Access Key [", "db_password=a ", "a.password=", "x_pat", "login a password\n"],
    *[
        "redis-cli -a ",
        "redis-cli ",
        " -a ",
        "gh secret set ",
        ' --body "',
        "curl --user ",
        "openssl -passin ",
    ],
    *["mysql -p ", "mysql ", "curl -u a:", "docker login ", "[redacted:token]", "[redacted:"],
    *[
        "AKIA",
        "ghp_",
        "sk-",
        "xox",
        "eyJ",
        "eyJ" + "A" * 20 + ".",
        "SG." + "A" * 20,
        "dp.st.",
        "/api/webhooks/" + "1" * 15,
    ],
    *[
        "echo a ",
        "echo a | ",
        "echo aaa | sudo ",
        "sudo -S ",
        "<<< ",
        "Cookie: a=",
        "; a=",
        " -b a=",
    ],
    *[
        "senha ",
        "senha: ",
        "senha a ",
        "密码",
        "пароль：",
        "pass: ",
        "\npass: a1",
        "\npassword: abcdefgh",
    ],
    *["a:5432:", "*:*:", "--from-literal a=", " -u " + "a1" * 10, "AC" + "0" * 32, "a1" * 7 + "."],
]
LEADS = ["password=", "-----BEGIN PRIVATE KEY-----", "token: {"]


def cpu_seconds(text: str) -> float:
    began = time.process_time()
    redact_text(text)
    return time.process_time() - began


# 20 KB take some 20 ms, and several seconds once a regex reads them in more than one way.
@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("unit", SLOW)
def test_no_repetition_is_slow_after_any_lead(unit: str, lead: str) -> None:
    assert cpu_seconds(lead + unit * (20_000 // len(unit))) < 2


@pytest.mark.parametrize("seed", range(20))
def test_no_mixture_of_pieces_is_slow(seed: int) -> None:
    lot = random.Random(seed)
    pieces = lot.sample(SLOW, 2 + seed % 8)

    assert cpu_seconds(lot.choice(LEADS) + "".join(lot.choices(pieces, k=5_000))[:20_000]) < 2


# Names so close together that values overlap: 1 MB takes 1 s at most, and took 20.
@pytest.mark.parametrize("unit", ["Auth:", "AccountKey=", "://a:a@", "curl -u"])
def test_a_tenth_of_a_megabyte_of_overlapping_values_is_quick(unit: str) -> None:
    assert cpu_seconds("token: {" + unit * (100_000 // len(unit))) < 1


def test_headers_of_a_private_key_are_read_in_one_way_only() -> None:
    headers = (
        "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC," + some(32, "0123456789ABCDEF") + "\n\n"
    )
    body = some(64) + "\n" + some(64)

    redacted, kinds = redact_text(
        f"-----BEGIN RSA PRIVATE KEY-----{headers}{body}\n-----END RSA PRIVATE KEY----- x"
    )

    assert (redacted, kinds) == ("[redacted:private-key] x", ["private-key"])


def test_a_dump_of_secrets_goes_as_a_whole() -> None:
    text = "\n".join(f"password: hunter{number}aB" for number in range(6_000))

    assert redact_text(text) == ("[redacted:secret]", ["secret"])
    some_of_it = "\n".join(text.split("\n")[:1_000])
    assert redact_text(some_of_it)[0].count("\n") == 999

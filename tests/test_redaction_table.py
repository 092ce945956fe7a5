"""Every row of every table of redaction: its examples are found, near misses are not."""

from __future__ import annotations

import json
import string

import pytest

from commonplace.redaction import redact_text, suspicious, table
from fake_secrets import DIGITS, HEX, UPPER, pem, some

LETTERS = string.ascii_lowercase
# Values that no rule takes for a secret by themselves.
WORD = "correcthorse"

# Each row by its kind and first key: texts with the secret in «», and texts that must not be found.
# Examples are as short as the row allows and misses one character shorter, so that both notice a
# changed length.
TOKENS: dict[str, tuple[list[str], list[str]]] = {
    "aws-access-key AKIA": (
        [f"«{prefix}{some(16, UPPER)}»" for prefix in ("AKIA", "ASIA")],
        ["AKIA" + some(15, UPPER), "AKIA" + some(17, UPPER), "AXIA" + some(16, UPPER)],
    ),
    "github-token ghp_": (
        [f"«gh{letter}_{some(30)}»" for letter in "pousr"],
        ["ghp_" + some(29), "ghx_" + some(36)],
    ),
    "github-token github_pat_": (
        [f"«github_pat_{some(20)}»", f"«github_pat_{some(22)}_{some(59)}»"],
        ["github_pat_" + some(19)],
    ),
    "gitlab-token glpat-": (
        [
            *(
                f"«gl{word}-{some(20)}»"
                for word in ("pat", "dt", "rt", "rtr", "cbt", "ptt", "ft", "imt", "agent", "soat")
            ),
            *(f"«gl{word}-{some(20)}»" for word in ("ffct", "oas")),
            f"«glpat-{some(20)}.01.{some(9)}»",
        ],
        ["glpat-" + some(19), "glxyz-" + some(20)],
    ),
    "slack-token xox": (
        [f"«{prefix}-{some(20)}»" for prefix in ("xoxb", "xoxp", "xoxe.xoxp", "xapp")],
        ["xoxb-" + some(19), "xapp-" + some(19), "xox-" + some(20)],
    ),
    "stripe-key k_live_": (
        [f"«{prefix}_{mode}_{some(16)}»" for prefix in ("sk", "rk") for mode in ("live", "test")],
        ["sk_live_" + some(15), "pk_live_" + some(24), "sk_prod_" + some(24)],
    ),
    "stripe-webhook-secret whsec_": (
        [f"«whsec_{some(20)}»", f"«whsec_{some(20)}+/{some(4)}=»"],
        ["whsec_" + some(19)],
    ),
    "commonplace-token cpb_": (
        [f"«cpb_{some(43)}»", f"«cpb_{some(20)}-_{some(21)}»"],
        ["cpb_" + some(42)],
    ),
    "npm-token npm_": ([f"«npm_{some(36)}»"], ["npm_" + some(35)]),
    "pypi-token pypi-": ([f"«pypi-AgE{some(20)}»"], ["pypi-AgE" + some(19), "pypi-" + some(40)]),
    "anthropic-key sk-ant-": ([f"«sk-ant-{some(20)}»"], ["sk-ant-" + some(19, LETTERS)]),
    "openai-key sk-": (
        [f"«sk-{some(20)}»", f"«sk-proj-{some(20)}»", f"«sk-{some(59, LETTERS)}7»"],
        ["sk-" + some(19), "sk-" + some(40, LETTERS)],
    ),
    "google-api-key AIza": ([f"«AIza{some(35)}»"], ["AIza" + some(34)]),
    "google-oauth-token ya29.": ([f"«ya29.{some(20)}»"], ["ya29." + some(19)]),
    "google-oauth-secret GOCSPX-": ([f"«GOCSPX-{some(20)}»"], ["GOCSPX-" + some(19)]),
    "digitalocean-token _v1_": (
        [f"«do{letter}_v1_{some(40, HEX)}»" for letter in "opr"],
        ["dop_v1_" + some(39, HEX), "dox_v1_" + some(40, HEX)],
    ),
    "huggingface-token hf_": (
        [f"«hf_{some(30)}»", f"«api_org_{some(30)}»", f"«hf_{some(34, LETTERS)}Q»"],
        ["hf_" + some(29), "hf_" + some(40, LETTERS)],
    ),
    "telegram-bot-token :AA": (
        [f"«{some(count, DIGITS)}:AA{some(32)}»" for count in (8, 9, 10)],
        [
            some(9, DIGITS) + ":AA" + some(31),
            some(7, DIGITS) + ":AA" + some(32),
            some(11, DIGITS) + ":AA" + some(32),
        ],
    ),
    "twilio-key SK": (
        [f"«SK{some(32, HEX)}»"],
        ["SK" + some(31, HEX), "SK" + some(33, HEX), "SK" + "g" * 32],
    ),
    "sendgrid-key SG.": (
        [f"«SG.{some(20)}.{some(20)}»"],
        [f"SG.{some(19)}.{some(20)}", f"SG.{some(20)}.{some(19)}"],
    ),
    "mailgun-key key-": (
        [f"«{prefix}key-{some(32, HEX)}»" for prefix in ("", "pub")],
        ["key-" + some(31, HEX), "key-" + some(33, HEX)],
    ),
    "discord-token MT": (
        [
            *(
                f"«{start}{some(21)}.{some(6)}.{some(27)}»"
                for start in ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT")
            ),
            f"«MT{some(26)}.{some(7)}.{some(38)}»",
        ],
        [
            f"MT{some(20)}.{some(6)}.{some(27)}",
            f"MT{some(27)}.{some(6)}.{some(27)}",
            f"MT{some(21)}.{some(5)}.{some(27)}",
            f"MT{some(21)}.{some(8)}.{some(27)}",
            f"MT{some(21)}.{some(6)}.{some(26)}",
            f"MA{some(21)}.{some(6)}.{some(27)}",
        ],
    ),
    "databricks-token dapi": (
        [f"«dapi{some(32, HEX)}»", f"«dapi{some(32, HEX)}-2»"],
        ["dapi" + some(31, HEX)],
    ),
    "vault-token hvs.": (
        [f"«hv{letter}.{some(20)}»" for letter in "sbr"],
        ["hvs." + some(19), "hvx." + some(20)],
    ),
    "doppler-token dp.": (
        [
            *(f"«dp.{sort}.{some(30)}»" for sort in ("pt", "st", "ct", "sa", "scim", "audit")),
            f"«dp.st.dev_1-a.{some(30)}»",
        ],
        ["dp.st." + some(29), "dp.xx." + some(30), "dp.st.Dev." + some(30)],
    ),
    "linear-key lin_": (
        [f"«lin_{sort}_{some(30)}»" for sort in ("api", "oauth")],
        ["lin_api_" + some(29), "lin_xyz_" + some(30)],
    ),
    "notion-key secret_": (
        [f"«{prefix}_{some(40)}»" for prefix in ("secret", "ntn")],
        ["secret_" + some(39), "ntn_" + some(39), "ntn_" + some(40, LETTERS)],
    ),
    "supabase-key sbp_": (
        [f"«{prefix}_{some(20)}»" for prefix in ("sbp", "sb_secret")],
        ["sbp_" + some(19), "sb_secret_" + some(19)],
    ),
    "vercel-token vercel_": (
        [
            f"«vercel_blob_rw_{some(8)}_{some(24)}»",
            *(f"«vc{letter}_{some(24)}»" for letter in "pirak"),
        ],
        [
            f"vercel_blob_rw_{some(7)}_{some(24)}",
            f"vercel_blob_rw_{some(8)}_{some(23)}",
            "vcp_" + some(23),
            "vcx_" + some(24),
        ],
    ),
    "cloudflare-key v1.0-": (
        [
            f"«v1.0-{some(24, HEX)}-{some(100, HEX)}»",
            *(f"«cf{sort}_{some(40)}»" for sort in ("ut", "at", "k")),
        ],
        [
            f"v1.0-{some(23, HEX)}-{some(100, HEX)}",
            f"v1.0-{some(24, HEX)}-{some(99, HEX)}",
            "cfut_" + some(39),
            "cfxx_" + some(40),
        ],
    ),
    "sentry-token sntry": (
        [f"«sntry{letter}_{some(20)}»" for letter in "su"] + [f"«sntrys_{some(20)}=+/-{some(4)}»"],
        ["sntrys_" + some(19), "sntryx_" + some(20)],
    ),
    "shopify-token shp": (
        [f"«shp{sort}_{some(32, HEX)}»" for sort in ("at", "ca", "pa", "ss")],
        ["shpat_" + some(31, HEX), "shpxx_" + some(32, HEX)],
    ),
    "square-token sq0": (
        [f"«sq0atp-{some(22)}»", *(f"«EAAA{letter}{some(55)}»" for letter in "lE")],
        ["sq0atp-" + some(21), "EAAAl" + some(54), "EAAAx" + some(55)],
    ),
    "docker-token dckr_": (
        [f"«dckr_{sort}_{some(20)}»" for sort in ("pat", "oat")],
        ["dckr_pat_" + some(19), "dckr_xat_" + some(20)],
    ),
    "age-secret-key AGE-SECRET-KEY-": (
        [f"«AGE-SECRET-KEY-1{some(50, UPPER)}»"],
        ["AGE-SECRET-KEY-1" + some(49, UPPER), "AGE-SECRET-KEY-2" + some(50, UPPER)],
    ),
    "tailscale-key tskey-": (
        [f"«tskey-{some(16)}»", f"«tskey-auth-{some(16)}»"],
        ["tskey-" + some(15), "tskey-" + some(40, LETTERS)],
    ),
    "atlassian-token ATATT3": (
        [f"«{prefix}{some(40)}»" for prefix in ("ATATT3", "ATCTT3")] + [f"«ATATT3{some(40)}=0AF»"],
        ["ATATT3" + some(39), "ATXTT3" + some(40)],
    ),
    "grafana-token glsa_": (
        [f"«gl{sort}_{some(30)}»" for sort in ("sa", "c")] + [f"«glc_{some(30)}+/{some(4)}=»"],
        ["glsa_" + some(29), "glx_" + some(30)],
    ),
    "jwt eyJ": (
        [f"«eyJ{some(17)}.{some(16)}»", f"«eyJ{some(17)}.{some(16)}.{some(43)}»"],
        [f"eyJ{some(16)}.{some(16)}", f"eyJ{some(17)}.{some(15)}"],
    ),
    "bearer-token earer ": (
        [
            f"Bearer «{some(20)}»",
            f"bearer «{some(20)}._~+/-{some(4)}==»",
            f"Bearer «{some(40, LETTERS)}7»",
        ],
        ["Bearer " + some(19), "Bearer " + some(60, LETTERS), "Bearer " + some(41, LETTERS) + "7"],
    ),
}
WEBHOOKS: dict[str, tuple[list[str], list[str]]] = {
    "webhook hooks.slack.com/": (
        [
            f"https://hooks.slack.com/«{sort}/{some(5)}/{some(20)}/{some(20)}»"
            for sort in ("services", "workflows", "triggers")
        ],
        [
            f"https://hooks.slack.com/services/{some(4)}/{some(5)}/{some(20)}",
            f"https://hooks.slack.com/services/{some(21)}/{some(5)}/{some(20)}",
            f"https://hooks.slack.com/services/{some(5)}/{some(5)}/{some(19)}",
            f"https://hooks.slack.com/docs/{some(5)}/{some(5)}/{some(20)}",
        ],
    ),
    "webhook /api/webhooks/": (
        [f"https://discord.com/api/webhooks/«{some(n, DIGITS)}/{some(40)}»" for n in (15, 20)],
        [
            f"https://discord.com/api/webhooks/{some(14, DIGITS)}/{some(40)}",
            f"https://discord.com/api/webhooks/{some(21, DIGITS)}/{some(40)}",
            f"https://discord.com/api/webhooks/{some(15, DIGITS)}/{some(39)}",
        ],
    ),
}
BLOCKS: dict[str, tuple[list[str], list[str]]] = {
    "private-key PRIVATE KEY": (
        [
            *(f"«{pem(word + 'PRIVATE KEY')}»" for word in ("", "RSA ", "EC ", "OPENSSH ")),
            f"«{pem('PGP PRIVATE KEY BLOCK')}»",
            # Without its end, and with its newlines written out.
            f"«-----BEGIN PRIVATE KEY-----\n{some(64)}\n{some(16)}»\nand then prose",
            f"«-----BEGIN PRIVATE KEY-----\n{some(64)}\n{some(15)}=»\nand then prose",
            f'"«{pem("PRIVATE KEY", chr(92) + "n")}»"',
        ],
        [
            f"-----BEGIN PRIVATE KEY-----\n{some(15)}\nand then prose",
            pem("PUBLIC KEY"),
            "-----BEGIN PRIVATE KEY-----",
        ],
    ),
    "azure-sas sig=": (
        [
            *(f"https://x.io/c?sv=1{mark}sig=«{some(30)}%3D»&se=1" for mark in "&;"),
            f"https://x.io/c?sig=«{some(194)}%2B%2F%3d»",
        ],
        [
            f"https://x.io/c?sig={some(29)}%3D",
            f"https://x.io/c?sig={some(30)}%3E",
            f"https://x.io/c?asig={some(30)}%3D",
            f"https://x.io/c?sig={some(201)}%3D",
        ],
    ),
}
URLS: dict[str, tuple[list[str], list[str]]] = {
    "url-password ://": (
        [
            f"postgres://admin:«{some(8)}»@db.internal/app",
            "redis://:«x»@cache:6379",
            f"https://{some(100, LETTERS)}:«{some(300)}»@host",
        ],
        [
            "postgres://user:password@localhost/app",
            "postgres://user:$PASSWORD@localhost/app",
            f"https://{some(101, LETTERS)}:hunter2@host",
            f"https://u:{some(301)}@host",
            "https://host:80/x@y",
            "https://host/a:b@c",
        ],
    ),
    "url-token ://": (
        [
            f"https://«{some(16)}»@github.com/a/b",
            f"https://«{some(300)}»@github.com/a/b",
        ],
        [
            f"https://{some(15)}@github.com/a/b",
            f"https://{some(301)}@github.com/a/b",
            f"https://{some(30, LETTERS)}@github.com/a/b",
        ],
    ),
}
FAR = "x" * 299 + " "
COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "password mysql": (
        [
            *(f"mysql{tool} -u root -p«{WORD}» app" for tool in ("", "dump", "admin", "import")),
            f"mysql -p'«{WORD}»'",
            f'mysql -p"«{WORD}»"',
            f"mysql {FAR}-p«{WORD}»",
            "mysql -pab -p«abc»",
        ],
        [
            "mysql -pab",
            f"mysqlx -p{WORD}",
            f"mysql x-p{WORD}",
            f"mysql x{FAR}-p{WORD}",
            *(f"mysql -u root{mark} -p{WORD}" for mark in "\n|;&"),
            "mysql -p$DB_PASS",
        ],
    ),
    "password mariadb": (
        [f"mariadb{tool} -h x -p«{WORD}»" for tool in ("", "-dump", "-admin")],
        [f"mariadbx -p{WORD}", f"mariadb {WORD}"],
    ),
    "password sshpass": (
        [f"sshpass -p «{WORD}» ssh host", f"sshpass -p«{WORD}» ssh host"],
        [f"sshpass -e ssh -p {WORD}", f"sshpass  -p {WORD}", "sshpass -p '' ssh -p 2222 host"],
    ),
    "password login": (
        [
            *(
                f"{tool} login -u bob -p «{WORD}» host"
                for tool in ("docker", "podman", "az", "registry", "acr", "oras", "skopeo")
            ),
            f"docker login -p=«{WORD}»",
        ],
        [f"docker login -p{WORD}", f"other login -p {WORD}", f"docker logins -p {WORD}"],
    ),
    "password twine": (
        [f"twine upload -u bob -p{gap}«{WORD}» dist/x" for gap in (" ", "=", "")],
        [f"twine check -p {WORD}"],
    ),
    "password redis-cli": (
        [f"redis-cli -h cache -a «{WORD}» ping"],
        ["redis-cli -p 6379 ping", f"redis-cli -a{WORD}"],
    ),
    "password curl": (
        [
            *(
                f"curl -s {flag}bob:«{WORD}» https://x.io"
                for flag in ("-u ", "-u", "-U ", "--user ", "--user=", "--proxy-user ")
            ),
            f"curl -u 'bob:«{WORD}»' https://x.io",
            f"curl -u {'b' * 100}:«{WORD}»",
        ],
        [
            f"curl -u {'b' * 101}:{WORD}",
            f"curl -x bob:{WORD}",
            f"curl --user-agent bob:{WORD}",
            "curl -u bob:$PASS x",
        ],
    ),
    "secret secretsmanager": (
        [
            f"aws secretsmanager create-secret --name x --secret-{sort}{gap}«{WORD}»"
            for sort in ("string", "binary")
            for gap in (" ", "=")
        ],
        [f"aws secretsmanager get-secret-value --secret-idx {WORD}"],
    ),
    "secret gh secret": (
        [f"gh secret set DEPLOY {flag}{gap}«{WORD}»" for flag in ("-b", "--body") for gap in " ="],
        [f"gh secret set DEPLOY -f {WORD}", f"gh secret list -b {WORD}"],
    ),
    "password openssl": (
        [
            *(f"openssl rsa {flag} pass:«{WORD}» -out x" for flag in ("-pass", "-passin")),
            f"openssl rsa -passout 'pass:«{WORD}»'",
        ],
        [f"openssl rsa -passin env:{WORD}", f"openssl rsa -in pass:{WORD}"],
    ),
}
FRAMES: dict[str, tuple[list[str], list[str]]] = {
    "</": (
        [
            f"<password>«{WORD}»</password>",
            f'<dbPassword type="x">\n  «{WORD}»\n</dbPassword>',
            f"<a:password>«{some(300)}»</a:password>",
        ],
        [
            f"<password>{WORD}</passwort>",
            f"<passage>{WORD}</passage>",
            "<password>string</password>",
            f"<password {'x' * 201}>{WORD}</password>",
        ],
    ),
    "value": (
        [
            f"- name: DB_PASSWORD\n  value: «{WORD}»\n",
            f'{{"name": "DB_PASSWORD", "value": "«{WORD}»"}}',
            f'{{"key":"DB_PASSWORD","value":"«{WORD}»"}}',
            f'{{\\"name\\": \\"DB_PASSWORD\\", \\"value\\": \\"«{WORD}»\\"}}',
        ],
        [
            "name: password value: string",
            f"- name: DB_PASSWORD\n  valueFrom: {WORD}",
            f"- name: DB_HOST\n  value: {WORD}",
            f"- surname: DB_PASSWORD\n  value: {WORD}",
        ],
    ),
    "setx": (
        [
            f"setx DB_PASSWORD «{WORD}»",
            f'setx /M DB_PASSWORD "«{WORD}»"',
            f"setx password    «{WORD}»",
        ],
        [f"setx DB_HOST {WORD}", "setx DB_PASSWORD %DB_PASSWORD%", f"sett DB_PASSWORD {WORD}"],
    ),
    "login": (
        [
            f"machine h login u password «{WORD}»",
            f"machine h\n  login u\n  password «{WORD}»\n",
            f"default login u password «{WORD}»",
        ],
        [
            f"machine h user u password {WORD}",
            f"host h login u password {WORD}",
            "machine h login u password $PASSWORD",
        ],
    ),
}
TABLES: dict[str, dict[str, tuple[list[str], list[str]]]] = {
    "TOKENS": TOKENS,
    "WEBHOOKS": WEBHOOKS,
    "BLOCKS": BLOCKS,
    "URLS": URLS,
    "COMMANDS": COMMANDS,
    "FRAMES": FRAMES,
}
CASES = [(name, label) for name, rows in TABLES.items() for label in rows]
FOUND = [(name, label, text) for name, label in CASES for text in TABLES[name][label][0]]
MISSED = [(name, label, text) for name, label in CASES for text in TABLES[name][label][1]]


FOUND_IDS = [f"{name}-{i}-{label}" for i, (name, label, _text) in enumerate(FOUND)]
MISSED_IDS = [f"{name}-{i}-{label}" for i, (name, label, _text) in enumerate(MISSED)]


def label_of(row: tuple[object, ...]) -> str:
    match row:
        case table.Rule(kind=kind, keys=keys):
            return f"{kind} {keys[0]}"
        case table.Command(kind=kind, key=key):
            return f"{kind} {key}"
        case table.Frame(key=key):
            return key
    raise AssertionError(row)


def kind_of(name: str, label: str) -> str:
    return "password" if name == "FRAMES" else label.partition(" ")[0]


def plain(text: str) -> str:
    return text.replace("«", "").replace("»", "")


def redacted(text: str, kind: str) -> str:
    before, _, rest = text.partition("«")
    return f"{before}[redacted:{kind}]{rest.partition('»')[2]}"


def test_every_row_has_examples() -> None:
    for name, rows in TABLES.items():
        assert [label_of(row) for row in getattr(table, name)] == list(rows), name


def test_every_key_of_a_row_has_an_example() -> None:
    for name in ("TOKENS", "WEBHOOKS", "BLOCKS", "URLS"):
        for row in getattr(table, name):
            found, _ = TABLES[name][label_of(row)]
            for key in row.keys:
                assert any(key in text for text in found), key


@pytest.mark.parametrize(("name", "label", "text"), FOUND, ids=FOUND_IDS)
def test_an_example_is_redacted_and_the_text_around_it_stays(
    name: str, label: str, text: str
) -> None:
    kind = kind_of(name, label)

    clean, kinds = redact_text(f"run: {plain(text)} twice")

    assert clean == f"run: {redacted(text, kind)} twice"
    assert kinds == [kind]


@pytest.mark.parametrize(("name", "label", "text"), FOUND, ids=FOUND_IDS)
def test_an_example_is_suspicious_as_text_and_in_json(name: str, label: str, text: str) -> None:
    assert suspicious(plain(text))
    assert suspicious(json.dumps({"lesson": plain(text)}, ensure_ascii=False))


@pytest.mark.parametrize(("name", "label", "text"), MISSED, ids=MISSED_IDS)
def test_a_near_miss_stays(name: str, label: str, text: str) -> None:
    assert kind_of(name, label) not in redact_text(text)[1]


@pytest.mark.parametrize(("name", "label"), CASES)
def test_without_its_row_an_example_is_not_found(
    name: str, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tuple(row for row in getattr(table, name) if label_of(row) != label)
    monkeypatch.setattr(table, name, rows)

    for text in TABLES[name][label][0]:
        assert kind_of(name, label) not in redact_text(plain(text))[1], text


def test_a_token_before_the_password_that_github_ignores_is_redacted() -> None:
    clean, kinds = redact_text(f"https://{some(40, HEX)}:x-oauth-basic@github.com/a")

    assert clean == "https://[redacted:url-token]:[redacted:url-password]@github.com/a"
    assert sorted(kinds) == ["url-password", "url-token"]


# Rows that are only found where a word starts.
WORD_STARTS = [
    (label_of(row), text)
    for row in table.TOKENS
    if row.pattern.startswith(table.WORD_START)
    for text in TOKENS[label_of(row)][0]
]


@pytest.mark.parametrize(
    ("label", "text"), WORD_STARTS, ids=[f"{i}-{label}" for i, (label, _) in enumerate(WORD_STARTS)]
)
def test_a_token_starts_where_a_word_starts(label: str, text: str) -> None:
    kind, secret = kind_of("TOKENS", label), plain(text)

    for before in ("x", "7", "_", "-"):
        assert kind not in redact_text(before + secret)[1]
    for before in ("\\n", "\\r", "\\t", ".", "/", '"', "é"):
        assert redact_text(before + secret) == (f"{before}[redacted:{kind}]", [kind])

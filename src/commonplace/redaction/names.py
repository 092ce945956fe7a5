"""Names of secrets: which names announce a secret, and of what kind."""

from functools import lru_cache

from commonplace.redaction.table import compile_pattern

# One of these is in every name that announces a secret.
NAME_WORDS = ("token", "secret", "key", "pass", "auth", "cred", "pw", "psk", "_pat")
# The word for a password in other languages, in lower case; letters with and without accents.
FOREIGN_WORDS = (
    *("contraseña", "contrasena", "passwort", "kennwort", "mot de passe", "mot_de_passe"),
    *("motdepasse", "senha", "wachtwoord", "lösenord", "hasło", "пароль", "密码", "密碼"),
    *("口令", "パスワード", "비밀번호"),
)
# What stands before `key` in the name of a secret; a `primary_key` is none.
KEY_OWNERS = (
    *("api", "access", "private", "secret", "auth", "account", "signing", "encryption", "master"),
    *("service", "app", "ssh", "deploy", "license", "client", "jwt", "hmac", "fernet", "preshared"),
    *("shared", "admin", "webhook", "storage", "crypto", "bot", "application", "unseal"),
)

# What people write between the name of a secret and the secret: `password for the database is x`.
TOLD_GAP = (
    r" (?:for|of|on|to|in|at|provided|supplied|used|set|changed|reset|now)\b"
    r"(?: [^\s:=\"'`\\]{1,30}){0,4}?(?: is| was| to|[:=]) "
)


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# What stands before `pass` in the name of a password; `j` ends neo4j.
_PASS_OWNERS = word_set(
    "db database mysql postgres pg user smtp mail email redis admin root ftp ssh login sudo mongo "
    "amqp http proxy basic auth my bind become vault ldap keystore truststore vpn wifi default "
    "rabbitmq sa j registry docker jenkins nexus artifactory sonar elastic gpg backup svc remote"
)
# Tokens of a grammar, a page or a design are not secrets.
_HARMLESS_TOKEN_OWNERS = word_set(
    "eos bos pad unk mask sep cls next page stop special continuation design cancellation cancel "
    "first last per syntax start end prev previous color"
)
# Keys of these are names, hashes or public.
_HARMLESS_KEY_OWNERS = word_set(
    "public pub primary foreign partition sort sorted cache object group idempotency dedupe row "
    "hash lookup map dict dictionary composite unique index shard routing registry host natural "
    "surrogate candidate test query json config setting translation feature flag event message "
    "bucket redis state record item"
)
# How the last word of a name may end, and the kind of secret it announces; the first row that fits
# applies.
_ENDINGS = (
    ("password", "password"),
    ("passwd", "password"),
    ("passphrase", "password"),
    ("pwd", "password"),
    ("passcode", "password"),
    ("requirepass", "password"),
    ("pw", "password"),
    ("storepass", "password"),
    ("keypass", "password"),
    ("sshpass", "password"),
    ("psk", "password"),
    ("psksecret", "password"),
    ("authkey", "access-key"),
    ("apikey", "api-key"),
    ("secretkey", "secret"),
    ("accesskey", "access-key"),
    ("privatekey", "private-key"),
    ("accountkey", "access-key"),
    ("secret", "secret"),
    ("token", "token"),
    ("credential", "credential"),
    ("credentials", "credential"),
)


def name_kind(name: str) -> str:
    """Return the kind of secret that *name* announces, or an empty string."""
    if name.lower().endswith(FOREIGN_WORDS):
        return "password"
    words = ["", "", *split_words(name)]
    # `client-key-data` of Kubernetes, `secret_key_base` of Rails, `plain-text-password-value`.
    if words[-2:] in (["key", "data"], ["key", "base"], ["password", "value"]):
        words.pop()
    owner, last = words[-2:]
    if last == "key":
        return _key_name_kind(words, owner)
    if last.endswith("pass"):  # `smtp_pass`, `smtppass`
        owner = last.removesuffix("pass") or owner
        is_flag = last == "pass" and name.startswith("-")
        last = "password" if owner in _PASS_OWNERS or is_flag else last
    if last in {"auth", "authorization"}:
        return "authorization"
    if last == "token" and owner in _HARMLESS_TOKEN_OWNERS:
        return ""
    # A "pat" is a personal access token when it is joined to its owner.
    last = "token" if name.lower().endswith("_pat") else last
    return next((kind for ending, kind in _ENDINGS if last.endswith(ending)), "")


def _key_name_kind(words: list[str], owner: str) -> str:
    if owner in KEY_OWNERS:
        is_aws = "secret" in words and ("aws" in words or owner == "access")
        kinds = {"api": "api-key", "secret": "secret"}
        return "aws-secret-key" if is_aws else kinds.get(owner, "access-key")
    # Of other keys, only a random value makes a secret.
    return "" if owner in _HARMLESS_KEY_OWNERS else "key"


@lru_cache(maxsize=4096)  # Records have the same keys again and again.
def key_kind(key: str) -> str:
    """Return the kind of secret that *key* of a JSON object announces, or an empty string."""
    is_name = compile_pattern(r"[\w.-]{1,80}").fullmatch(key) or key.lower() in FOREIGN_WORDS
    return name_kind(key) if is_name else ""


def split_words(name: str) -> list[str]:
    """Return the words of an identifier: `dbPassword` and `DB_PASSWORD` are db, password."""
    return [
        word.lower()
        for word in compile_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+").findall(name)
    ]

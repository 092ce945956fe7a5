"""What a secret looks like: the tokens that give themselves away by their shape, one row each.

A row is only tried where one of its literal keys occurs, and its regex is compiled when first tried: most
processes never see a secret and should not pay for forty regexes at start-up.

Two invariants let `suspicious` be quick. Every match holds RUN_MIN token characters (`A-Z a-z 0-9 _ -`) in an
unbroken run, and a key of the row lies inside that run or begins at most KEY_LEAD characters before it.
A match has nothing in it that JSON would escape.
"""

from itertools import pairwise
from typing import NamedTuple

RUN_MIN = 20
KEY_LEAD = 20


class Rule(NamedTuple):
    """One kind of token: *pattern* (or its only group) is the secret; one of *keys* is part of every match."""

    kind: str
    keys: tuple[str, ...]
    pattern: str


# A token starts where a word starts. The second half sees the start behind a written-out "\n", as in JSON text.
_START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
# Prefixes that are also English or code (`sk-`, `hf_`) need a digit soon, or `sk-fading-circle-…` would be taken.
_DIGIT = r"(?=[A-Za-z_-]{0,60}[0-9])"

RULES: tuple[Rule, ...] = (
    Rule("aws-access-key", ("AKIA", "ASIA"), _START + r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Rule("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{30,}"),
    Rule("github-token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,}"),
    Rule(
        "gitlab-token",
        (
            "glpat-",
            "gldt-",
            "glrt-",
            "glcbt-",
            "glptt-",
            "glft-",
            "glimt-",
            "glagent-",
            "glsoat-",
            "glffct-",
            "gloas-",
        ),
        _START
        + r"gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct|oas)-[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_.-]{1,40})?",
    ),
    Rule(
        "slack-token",
        ("xox", "xapp-"),
        r"(?:xox[a-z](?:\.xox[a-z])?|xapp)-(?=[0-9A-Za-z-]{20})[0-9A-Za-z-]{20,}",
    ),
    Rule("stripe-key", ("k_live_", "k_test_"), _START + r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    Rule("stripe-webhook-secret", ("whsec_",), r"whsec_[A-Za-z0-9]{20,}[A-Za-z0-9+/=]*"),
    Rule("commonplace-token", ("cpb_",), _START + r"cpb_[A-Za-z0-9_-]{43}"),
    Rule("npm-token", ("npm_",), _START + r"npm_[A-Za-z0-9]{36,}"),
    Rule("pypi-token", ("pypi-",), r"pypi-AgE[A-Za-z0-9_-]{20,}"),
    Rule("anthropic-key", ("sk-ant-",), _START + r"sk-ant-[A-Za-z0-9_-]{20,}"),
    Rule("openai-key", ("sk-",), _START + r"sk-" + _DIGIT + r"[A-Za-z0-9_-]{20,}"),
    Rule("google-api-key", ("AIza",), _START + r"AIza[A-Za-z0-9_-]{35,}"),
    Rule("google-oauth-token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,}"),
    Rule("google-oauth-secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    Rule("digitalocean-token", ("_v1_",), _START + r"do[opr]_v1_[a-f0-9]{40,}"),
    Rule(
        "huggingface-token",
        ("hf_",),
        _START + r"(?:api_org_|hf_)(?=[A-Za-z]{0,34}[A-Z0-9])[A-Za-z0-9]{30,}",
    ),
    Rule("telegram-bot-token", (":AA",), r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    Rule("twilio-key", ("SK",), _START + r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    Rule("sendgrid-key", ("SG.",), _START + r"SG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
    Rule("mailgun-key", ("key-",), _START + r"(?:pub)?key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    Rule(
        "discord-token",
        ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
        _START
        + r"(?:M[Tjz]|N[DTjz]|O[DT])[A-Za-z0-9_-]{21,26}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}",
    ),
    Rule("databricks-token", ("dapi",), _START + r"dapi[0-9a-f]{32}(?:-[0-9])?"),
    Rule("vault-token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    Rule(
        "doppler-token",
        ("dp.",),
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,10}\.)?[A-Za-z0-9]{30,}",
    ),
    Rule("linear-key", ("lin_",), _START + r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    Rule(
        "notion-key",
        ("secret_", "ntn_"),
        _START + r"(?:secret|ntn)_" + _DIGIT + r"[A-Za-z0-9]{40,}",
    ),
    Rule("supabase-key", ("sbp_", "sb_secret_"), r"sb(?:p|_secret)_[A-Za-z0-9_-]{20,}"),
    Rule(
        "vercel-token",
        ("vercel_", "vcp_", "vci_", "vcr_", "vca_", "vck_"),
        _START + r"(?:vercel_blob_rw_[A-Za-z0-9]{8,}_|vc[pirak]_)[A-Za-z0-9]{24,}",
    ),
    Rule(
        "cloudflare-key",
        ("v1.0-", "cfut_", "cfat_", "cfk_"),
        _START + r"(?:v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}|cf(?:ut|at|k)_[A-Za-z0-9]{40,})",
    ),
    Rule("sentry-token", ("sntry",), r"sntry[su]_[A-Za-z0-9_-]{20,}[A-Za-z0-9_=+/-]*"),
    Rule("shopify-token", ("shp",), _START + r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32,}"),
    Rule(
        "square-token",
        ("sq0", "EAAA"),
        _START + r"(?:sq0[a-z]{3}-[A-Za-z0-9_-]{22,}|EAAA[lE][A-Za-z0-9_-]{55,})",
    ),
    Rule("docker-token", ("dckr_",), r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    Rule("age-secret-key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    Rule(
        "tailscale-key",
        ("tskey-",),
        _START + r"tskey-(?:[a-z]{2,10}-)?" + _DIGIT + r"[A-Za-z0-9-]{16,}",
    ),
    Rule("atlassian-token", ("ATATT3", "ATCTT3"), r"AT[AC]TT3[A-Za-z0-9_-]{40,}[A-Za-z0-9_=-]*"),
    Rule(
        "grafana-token", ("glsa_", "glc_"), _START + r"gl(?:sa|c)_[A-Za-z0-9_]{30,}[A-Za-z0-9_=+/]*"
    ),
    Rule(
        "jwt", ("eyJ",), _START + r"eyJ[A-Za-z0-9_-]{17,}\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)*"
    ),
    Rule(
        "bearer-token",
        ("earer ",),
        r"[Bb]earer (?=[A-Za-z0-9_-]{20})(?=[A-Za-z_-]{0,40}[0-9])([A-Za-z0-9._~+/-]+=*)",
    ),
)

# A webhook's address is the secret. Its key stands too far ahead of the run to be looked for beside it.
WEBHOOK_KEYS = ("hooks.slack.com/", "/api/webhooks/")
WEBHOOK = (
    r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/(?:[A-Za-z0-9]{5,20}/){2}[A-Za-z0-9_-]{20,}"
    r"|(?<=/api/webhooks/)[0-9]{15,20}/[A-Za-z0-9_-]{40,}"
)

# Commands that take a secret: a literal that occurs in the command, the kind, and what stands before the secret.
_ARGUMENTS = r"[^\n|;&]{0,300}?(?<= )"
COMMANDS: tuple[tuple[str, str, str], ...] = (
    ("mysql", "password", r"mysql(?:dump|admin|import)? " + _ARGUMENTS + r"-p"),
    ("mariadb", "password", r"mariadb(?:-dump|-admin)? " + _ARGUMENTS + r"-p"),
    ("sshpass", "password", r"sshpass -p ?"),
    (
        "login",
        "password",
        r"(?:docker|podman|az|registry|acr|oras|skopeo) login " + _ARGUMENTS + r"-p[ =]",
    ),
    ("twine", "password", r"twine upload " + _ARGUMENTS + r"-p[ =]?"),
    ("redis-cli", "password", r"redis-cli " + _ARGUMENTS + r"-a "),
    (
        "curl",
        "password",
        r"curl " + _ARGUMENTS + r"(?:-[uU] ?|--(?:proxy-)?user[ =])\\*[\"']?[^\s:\"'\\]{1,100}:",
    ),
    (
        "secretsmanager",
        "secret",
        r"secretsmanager " + _ARGUMENTS + r"--secret-(?:string|binary)[ =]",
    ),
    ("gh secret", "secret", r"gh secret set " + _ARGUMENTS + r"(?:-b|--body)[ =]"),
    ("openssl", "password", r"openssl " + _ARGUMENTS + r"-pass(?:in|out)? \\*[\"']?pass:"),
)
# The secret itself, quoted or bare.
ARGUMENT = (
    r"(?:\\*\"(?P<double>[^\"\\\n]{3,2000})(?=\\*\")|'(?P<single>[^'\\\n]{3,2000})(?=')"
    r"|\\*[\"']?(?P<bare>[^\s\"'\\]{3,200}))"
)

# Where a name stands apart from its value: an element of XML, the name and value fields of Kubernetes and of forms,
# `setx NAME value` of Windows, and the words of a netrc. Each is tried when its literal occurs.
_QUOTE = r"[\"'\\]{0,3}"
_BREAK = r"(?:[ \n\r\t]|\\++[nrt])"
FRAMES: tuple[tuple[str, str], ...] = (
    (
        "</",
        r"<(?P<name>[\w.:-]{1,80}+)(?:\s[^<>]{0,200})?>\s{0,20}+(?P<value>[^<>\s]{3,300}+)\s{0,20}</(?P=name)>",
    ),
    (
        "value",
        (
            rf"(?<![\w-])(?:name|key){_QUOTE} ?[:=] ?{_QUOTE}(?P<name>[\w.-]{{1,80}}+){_QUOTE}"
            rf"(?:,|{_BREAK}){{1,60}}{_QUOTE}value{_QUOTE} ?[:=] ?{_QUOTE}(?P<value>[^\s\"'\\,;<>]{{3,300}})"
        ),
    ),
    (
        "setx",
        rf"setx(?: /[A-Za-z])? {_QUOTE}(?P<name>[\w-]{{1,80}}+){_QUOTE} {{1,4}}{_QUOTE}(?P<value>[^\s\"'\\]{{3,300}})",
    ),
    (
        "login",
        (
            rf"(?:machine{_BREAK}{{1,9}}[^\s\\]{{1,100}}|default){_BREAK}{{1,9}}login{_BREAK}{{1,9}}[^\s\\]{{1,100}}"
            rf"{_BREAK}{{1,9}}(?P<name>password){_BREAK}{{1,9}}(?P<value>[^\s\\]{{3,300}})"
        ),
    ),
)
SURE_FRAMES = ("setx", "login")

# Shapes that no unbroken run is promised for; each is tried when its key occurs in the text.
PEM_KEY = "PRIVATE KEY"
_PEM_GAP = r"(?:[\s\"',]|\\+[nrt\"])"
# Every repetition is possessive: a gap, a header or a line of the body can be read in one way only, and what was
# read is not tried again. Headers are few, and each begins a line.
PEM = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:(?=[\"', \t]*+(?:[\r\n]|\\+[nr])){_PEM_GAP}++[A-Z][A-Za-z-]{{2,20}}+: [^\n\\]{{0,200}}+){{0,20}}+"
    rf"(?:{_PEM_GAP}*+[A-Za-z0-9+/=]{{16,}}+)++"
    rf"(?:(?:{_PEM_GAP}*+[A-Za-z0-9+/=]{{1,15}}+){{0,2}}+{_PEM_GAP}*+"
    r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rf"|{_PEM_GAP}{{1,4}}+[A-Za-z0-9+/]{{1,15}}+={{1,2}})?+"
)
SAS_KEY = "sig="
SAS = r"(?<=[?&;]sig=)[A-Za-z0-9%+/]{30,200}%3[Dd]"
URL_KEY = "://"
URL_WITH_LOGIN = r"://[^\s/?#:@\"'<>\\\[\]]{0,100}:([^\s/\"'<>\\]{1,300})@"
URL_WITH_USER = r"://([A-Za-z0-9_.~%-]{16,300})(?::x-oauth-basic)?@"

# Words and lots: what a hand has written and what was drawn

# How much likelier a letter follows another in a word than by lot, in bits, plus FOLLOWS_ZERO: 26 rows of 26 digits,
# a to z. Counted over the words in the Python standard library, each word weighing the logarithm of its count.
FOLLOWS_ZERO = 5
_FOLLOWS = (
    "2565235151376615176744334174446332652733641564623152"
    "6243632650664373254753213163358432722533631564522231"
    "5366444231255734377624453162346632811633732655612140"
    "5243835660154653066453301372248212703443720545421130"
    "5465545111265864156614130471437311513311751553811131"
    "5344845271262544347443513163358321712623731255432161"
    "7524821160345267025451113062666572514434532267442121"
    "3466244141456756175564531172347324603622651756523150"
    "3323221322141543145191311173548342614454630566432140"
    "5253733561443356236762324162437316712433641665523252"
    "5554644150166746176721011182419321701243531343112210"
    "7344642671243663266422320054647534612553471348332443"
    "3454643351155657147634423361239413611333631334312133"
)
# Fewer letters than this prove little: only a mix of cases that no word has tells them from a word.
WORD_LETTERS_MIN = 12
WORD_BITS_MIN = 5


def is_wordy(text: str) -> bool:
    """Whether the letters of *text* may be words, as in a name; not so when they look drawn by lot."""
    if not text.isascii():
        return True
    letters = sum(c.isalpha() for c in text)
    if letters < WORD_LETTERS_MIN:
        return not _is_mixed(text) or word_bits(text) >= 0
    return word_bits(text) >= WORD_BITS_MIN


def word_bits(text: str) -> int:
    """How much likelier *text*, in ASCII, is written in words than drawn by lot, in bits."""
    mixed = _is_mixed(text)
    bits = 0
    for one, two in pairwise(text):
        if not (one.isalpha() and two.isalpha()):
            # In a name, digits come at the end of a word; by lot they come anywhere.
            bits -= 2 * (mixed and one.isalpha() and two.isdigit())
        elif one.islower() and two.isupper():
            bits -= 2
        else:
            # The low five bits of a letter, of either case, are its place in the alphabet.
            bits += int(_FOLLOWS[(ord(one) & 31) * 26 + (ord(two) & 31) - 27]) - FOLLOWS_ZERO
            bits += mixed and (-1 if two.isupper() else 1)
    return bits


def _is_mixed(text: str) -> bool:
    return not (text.islower() or text.isupper())

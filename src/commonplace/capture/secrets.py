"""What a secret looks like: the tokens that give themselves away by their shape, one row each.

A row is only tried where one of its literal keys occurs, and its regex is compiled when first tried: most
processes never see a secret and should not pay for forty regexes at start-up.

Two invariants let `suspicious` be quick. Every match holds RUN_MIN token characters (`A-Z a-z 0-9 _ -`) in an
unbroken run, and a key of the row lies inside that run or begins at most KEY_LEAD characters before it.
A match has nothing in it that JSON would escape.
"""

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
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-", "glffct-", "gloas-"),
        _START + r"gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct|oas)-[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_.-]{1,40})?",
    ),
    Rule("slack-token", ("xox", "xapp-"), r"(?:xox[a-z](?:\.xox[a-z])?|xapp)-(?=[0-9A-Za-z-]{20})[0-9A-Za-z-]{20,}"),
    Rule("stripe-key", ("k_live_", "k_test_"), _START + r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    Rule("stripe-webhook-secret", ("whsec_",), r"whsec_[A-Za-z0-9]{20,}[A-Za-z0-9+/=]*"),
    Rule("npm-token", ("npm_",), _START + r"npm_[A-Za-z0-9]{36,}"),
    Rule("pypi-token", ("pypi-",), r"pypi-AgE[A-Za-z0-9_-]{20,}"),
    Rule("anthropic-key", ("sk-ant-",), _START + r"sk-ant-[A-Za-z0-9_-]{20,}"),
    Rule("openai-key", ("sk-",), _START + r"sk-" + _DIGIT + r"[A-Za-z0-9_-]{20,}"),
    Rule("google-api-key", ("AIza",), _START + r"AIza[A-Za-z0-9_-]{35,}"),
    Rule("google-oauth-token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,}"),
    Rule("google-oauth-secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    Rule("digitalocean-token", ("_v1_",), _START + r"do[opr]_v1_[a-f0-9]{40,}"),
    Rule("huggingface-token", ("hf_",), _START + r"(?:api_org_|hf_)(?=[A-Za-z]{0,34}[A-Z0-9])[A-Za-z0-9]{30,}"),
    Rule("telegram-bot-token", (":AA",), r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    Rule("twilio-key", ("SK",), _START + r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    Rule("sendgrid-key", ("SG.",), _START + r"SG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
    Rule("mailgun-key", ("key-",), _START + r"(?:pub)?key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    Rule(
        "discord-token",
        ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
        _START + r"(?:M[Tjz]|N[DTjz]|O[DT])[A-Za-z0-9_-]{21,26}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}",
    ),
    Rule("databricks-token", ("dapi",), _START + r"dapi[0-9a-f]{32}(?:-[0-9])?"),
    Rule("vault-token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    Rule("doppler-token", ("dp.",), r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,10}\.)?[A-Za-z0-9]{30,}"),
    Rule("linear-key", ("lin_",), _START + r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    Rule("notion-key", ("secret_", "ntn_"), _START + r"(?:secret|ntn)_" + _DIGIT + r"[A-Za-z0-9]{40,}"),
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
    Rule("square-token", ("sq0", "EAAA"), _START + r"(?:sq0[a-z]{3}-[A-Za-z0-9_-]{22,}|EAAA[lE][A-Za-z0-9_-]{55,})"),
    Rule("docker-token", ("dckr_",), r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    Rule("age-secret-key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    Rule("atlassian-token", ("ATATT3", "ATCTT3"), r"AT[AC]TT3[A-Za-z0-9_-]{40,}[A-Za-z0-9_=-]*"),
    Rule("grafana-token", ("glsa_", "glc_"), _START + r"gl(?:sa|c)_[A-Za-z0-9_]{30,}[A-Za-z0-9_=+/]*"),
    Rule("jwt", ("eyJ",), _START + r"eyJ[A-Za-z0-9_-]{17,}\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)*"),
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

"""What secrets look like: one row for each kind of access token, command and notation.

A row is tried only where one of its literal keys occurs, and its regex is compiled when it is
first tried: most processes never see a secret and should not pay for fifty regexes at start-up.

`may_hold_secret` relies on two properties of ACCESS_TOKENS. Every match contains an unbroken run
of RUN_MIN characters `A-Z a-z 0-9 _ -`, and a key of the row is inside that run or begins at most
KEY_LEAD characters before it. A match contains nothing that JSON would escape.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    # How a value is written after its name, from the surest to the least sure form.
    Form = Literal[
        "quoted",  # "x", or the value of a JSON field
        "header",  # Authorization: Bearer x
        "sure",  # NAME=x, --name x, setx NAME x
        "literal",  # name=x in a shell or a file of properties, where a plain word is a value
        "tight",  # name=x, which may be code
        "loose",  # name: x, name = x
        "prose",  # the token is x
    ]

RUN_MIN = 20
KEY_LEAD = 20


class Rule(NamedTuple):
    """A shape of secret: its kind, literals of which every match contains one, and a regex.

    The secret is the regex's only group if it has one, else the whole match.
    """

    kind: str
    keys: tuple[str, ...]
    pattern: str


@cache
def compile_pattern(pattern: str, flags: int = re.ASCII) -> re.Pattern[str]:
    """Compile *pattern* on its first use."""
    return re.compile(pattern, flags)


# Tokens

# A token starts where a word starts; the second half allows for a written-out "\n" before it, as in
# JSON.
WORD_START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
# Prefixes that also occur in English or code (`sk-`, `hf_`) need a digit soon after them:
# `sk-fading-circle-…` is a CSS class.
_DIGIT = r"(?=[A-Za-z_-]{0,60}[0-9])"

ACCESS_TOKENS: tuple[Rule, ...] = (
    Rule("aws-access-key", ("AKIA", "ASIA"), WORD_START + r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Rule("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{30,}"),
    Rule("github-token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,}"),
    Rule(
        "gitlab-token",
        (
            "glpat-",
            "gldt-",
            "glrt-",
            "glrtr-",
            "glcbt-",
            "glptt-",
            "glft-",
            "glimt-",
            "glagent-",
            "glsoat-",
            "glffct-",
            "gloas-",
        ),
        WORD_START
        + r"gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct|oas)-[A-Za-z0-9_-]{20,}"
        + r"(?:\.[A-Za-z0-9_.-]{1,40})?",
    ),
    Rule(
        "slack-token",
        ("xox", "xapp-"),
        r"(?:xox[a-z](?:\.xox[a-z])?|xapp)-[0-9A-Za-z-]{20,}",
    ),
    Rule(
        "stripe-key", ("k_live_", "k_test_"), WORD_START + r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"
    ),
    Rule("stripe-webhook-secret", ("whsec_",), r"whsec_[A-Za-z0-9]{20,}[A-Za-z0-9+/=]*"),
    Rule("commonplace-token", ("cpb_",), WORD_START + r"cpb_[A-Za-z0-9_-]{43}"),
    Rule("npm-token", ("npm_",), WORD_START + r"npm_[A-Za-z0-9]{36,}"),
    Rule("pypi-token", ("pypi-",), r"pypi-AgE[A-Za-z0-9_-]{20,}"),
    Rule("anthropic-key", ("sk-ant-",), WORD_START + r"sk-ant-[A-Za-z0-9_-]{20,}"),
    Rule("openai-key", ("sk-",), WORD_START + r"sk-" + _DIGIT + r"[A-Za-z0-9_-]{20,}"),
    Rule("google-api-key", ("AIza",), WORD_START + r"AIza[A-Za-z0-9_-]{35,}"),
    Rule("google-oauth-token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,}"),
    Rule("google-oauth-secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    Rule("digitalocean-token", ("_v1_",), WORD_START + r"do[opr]_v1_[a-f0-9]{40,}"),
    Rule(
        "huggingface-token",
        ("hf_", "api_org_"),
        WORD_START + r"(?:api_org_|hf_)(?=[A-Za-z]{0,34}[A-Z0-9])[A-Za-z0-9]{30,}",
    ),
    Rule("telegram-bot-token", (":AA",), r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    Rule("twilio-key", ("SK",), WORD_START + r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    Rule("sendgrid-key", ("SG.",), WORD_START + r"SG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
    Rule("mailgun-key", ("key-",), WORD_START + r"(?:pub)?key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    Rule(
        "discord-token",
        ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
        WORD_START
        + r"(?:M[Tjz]|N[DTjz]|O[DT])[A-Za-z0-9_-]{21,26}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}",
    ),
    Rule("databricks-token", ("dapi",), WORD_START + r"dapi[0-9a-f]{32}(?:-[0-9])?"),
    Rule("vault-token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    Rule(
        "doppler-token",
        ("dp.",),
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,10}\.)?[A-Za-z0-9]{30,}",
    ),
    Rule("linear-key", ("lin_",), WORD_START + r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    Rule(
        "notion-key",
        ("secret_", "ntn_"),
        WORD_START + r"(?:secret|ntn)_" + _DIGIT + r"[A-Za-z0-9]{40,}",
    ),
    Rule("supabase-key", ("sbp_", "sb_secret_"), r"sb(?:p|_secret)_[A-Za-z0-9_-]{20,}"),
    Rule(
        "vercel-token",
        ("vercel_", "vcp_", "vci_", "vcr_", "vca_", "vck_"),
        WORD_START + r"(?:vercel_blob_rw_[A-Za-z0-9]{8,}_|vc[pirak]_)[A-Za-z0-9]{24,}",
    ),
    Rule(
        "cloudflare-key",
        ("v1.0-", "cfut_", "cfat_", "cfk_"),
        WORD_START + r"(?:v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}|cf(?:ut|at|k)_[A-Za-z0-9]{40,})",
    ),
    Rule("shopify-token", ("shp",), WORD_START + r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32,}"),
    Rule(
        "square-token",
        ("sq0", "EAAA"),
        WORD_START + r"(?:sq0[a-z]{3}-[A-Za-z0-9_-]{22,}|EAAA[lE][A-Za-z0-9_-]{55,})",
    ),
    Rule("docker-token", ("dckr_",), r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    Rule("age-secret-key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    Rule(
        "tailscale-key",
        ("tskey-",),
        WORD_START + r"tskey-(?:[a-z]{2,10}-)?" + _DIGIT + r"[A-Za-z0-9-]{16,}",
    ),
    Rule("atlassian-token", ("ATATT3", "ATCTT3"), r"AT[AC]TT3[A-Za-z0-9_-]{40,}[A-Za-z0-9_=-]*"),
    Rule(
        "grafana-token",
        ("glsa_", "glc_"),
        WORD_START + r"gl(?:sa|c)_[A-Za-z0-9_]{30,}[A-Za-z0-9_=+/]*",
    ),
    Rule("xai-key", ("xai-",), WORD_START + r"xai-[A-Za-z0-9]{40,}"),
    Rule("nvidia-key", ("nvapi-",), WORD_START + r"nvapi-[A-Za-z0-9_-]{40,}"),
    Rule("perplexity-key", ("pplx-",), WORD_START + r"pplx-[A-Za-z0-9]{40,}"),
    Rule("groq-key", ("gsk_",), WORD_START + r"gsk_[A-Za-z0-9]{40,}"),
    Rule(
        "figma-token",
        ("figd_", "figo_", "figu_", "figr_"),
        WORD_START + r"fig[dour]_[A-Za-z0-9_-]{30,}",
    ),
    Rule("postman-key", ("PMAK-",), WORD_START + r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    Rule(
        "newrelic-key",
        ("NRAK-", "NRAL"),
        WORD_START + r"(?:NRAK-[A-Z0-9]{27}|[a-f0-9]{36}NRAL)",
    ),
    Rule("replicate-token", ("r8_",), WORD_START + r"r8_[A-Za-z0-9]{30,}"),
    Rule("airtable-token", ("pat",), WORD_START + r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    Rule("elevenlabs-key", ("sk_",), WORD_START + r"sk_[a-f0-9]{40,}"),
    Rule("langsmith-key", ("lsv2_",), WORD_START + r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    Rule("pinecone-key", ("pcsk_",), WORD_START + r"pcsk_[A-Za-z0-9_]{40,}"),
    Rule(
        "tavily-key",
        ("tvly-",),
        WORD_START + r"tvly-(?:dev-|prod-)?(?=[A-Za-z-]{0,30}[0-9])[A-Za-z0-9-]{24,}",
    ),
    Rule("together-key", ("tgp_v1_",), WORD_START + r"tgp_v1_[A-Za-z0-9_-]{40,}"),
    Rule("resend-key", ("re_",), WORD_START + r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9_])"),
    Rule("posthog-key", ("phx_",), WORD_START + r"phx_[A-Za-z0-9]{40,}"),
    Rule(
        "planetscale-token",
        ("pscale_",),
        WORD_START + r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_-]{32,}",
    ),
    Rule("pulumi-token", ("pul-",), WORD_START + r"pul-[a-f0-9]{40}(?![A-Za-z0-9])"),
    Rule("rubygems-key", ("rubygems_",), WORD_START + r"rubygems_[a-f0-9]{48}"),
    Rule("brevo-key", ("xkeysib-",), WORD_START + r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    Rule(
        "terraform-token",
        (".atlasv1.",),
        WORD_START + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}",
    ),
    Rule(
        "easypost-key",
        ("EZAK", "EZTK"),
        WORD_START + r"EZ[AT]K[A-Za-z0-9]{54}",
    ),
    Rule("contentful-token", ("CFPAT-",), WORD_START + r"CFPAT-[A-Za-z0-9_-]{40,}"),
    Rule("typeform-token", ("tfp_",), WORD_START + r"tfp_[A-Za-z0-9_-]{40,}"),
    Rule("dynatrace-token", ("dt0",), WORD_START + r"dt0[a-z]01\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    Rule(
        "sonar-token",
        ("sqp_", "squ_", "sqa_"),
        WORD_START + r"sq[pua]_[a-f0-9]{40}",
    ),
    Rule(
        "circleci-token",
        ("CCIPAT_", "CCIPRJ_"),
        WORD_START + r"CCIP(?:AT|RJ)_[A-Za-z0-9]{16,}_[a-f0-9]{40}",
    ),
    Rule("buildkite-token", ("bkua_",), WORD_START + r"bkua_[a-f0-9]{40}"),
    Rule(
        "fly-token",
        ("fo1_", "fm1"),
        WORD_START + r"(?:fo1|fm1[ar]?)_[A-Za-z0-9_-]{40,}[A-Za-z0-9_+/=-]*",
    ),
    Rule("netlify-token", ("nfp_",), WORD_START + r"nfp_[A-Za-z0-9]{30,}"),
    Rule("neon-key", ("napi_",), WORD_START + r"napi_[A-Za-z0-9]{40,}"),
    Rule("alibaba-key", ("LTAI",), WORD_START + r"LTAI[A-Za-z0-9]{16,20}(?![A-Za-z0-9])"),
    Rule("bitbucket-token", ("ATBB",), WORD_START + r"ATBB[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    Rule(
        "artifactory-key",
        ("AKCp", "cmVmdGtu"),
        WORD_START + r"(?:AKCp[A-Za-z0-9]{69}|cmVmdGtu[A-Za-z0-9]{56})",
    ),
    # Every one of these begins with `BedrockAPIKey` in base64.
    Rule(
        "bedrock-key",
        ("ABSKQmVkcm9ja0FQSUtleS",),
        WORD_START + r"ABSKQmVkcm9ja0FQSUtleS[A-Za-z0-9+/]{40,}={0,2}",
    ),
    Rule("google-refresh-token", ("1//0",), WORD_START + r"1//0[A-Za-z0-9_-]{40,}"),
    Rule(
        "1password-token", ("ops_eyJ",), WORD_START + r"ops_eyJ[A-Za-z0-9_-]{20,}[A-Za-z0-9_+/=-]*"
    ),
    Rule("dropbox-token", ("sl.",), WORD_START + r"sl\.(?:u\.)?[A-Za-z0-9_-]{60,}"),
    Rule("heroku-key", ("HRKU-",), WORD_START + r"HRKU-[A-Za-z0-9_-]{36,}"),
    Rule(
        "launchdarkly-key",
        ("sdk-", "mob-", "api-"),
        WORD_START + r"(?:sdk|mob|api)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w-])",
    ),
    Rule("clickup-token", ("pk_",), WORD_START + r"pk_[0-9]{5,12}_[A-Z0-9]{32}(?![A-Za-z0-9])"),
    Rule("lob-key", ("live_", "test_"), WORD_START + r"(?:live|test)_[0-9a-f]{35}(?![A-Za-z0-9])"),
    Rule("google-hmac-key", ("GOOG1",), WORD_START + r"GOOG1[A-Z0-9]{19,}"),
    Rule("prefect-key", ("pnu_",), WORD_START + r"pnu_[A-Za-z0-9]{36}"),
    # A private key in base64, as in Kubernetes: `-----BEGIN ` and the word before PRIVATE.
    Rule(
        "private-key",
        ("LS0tLS1CRUdJTi",),
        WORD_START
        + r"LS0tLS1CRUdJTi(?:BQUklWQVRF"
        + r"|BSU0EgUFJJVkFUR"
        + r"|BFQyBQUklWQVRF"
        + r"|BEU0EgUFJJVkFUR|BPUEVOU1NIIFBSSVZBVE|BFTkNSWVBURUQgUFJJVkFUR|BQR1AgUFJJVkFUR)"
        + r"[A-Za-z0-9+/]{20,}={0,2}",
    ),
    # An account and its token, as in `Client("AC…", "…")` and `curl -u AC…:…`.
    Rule(
        "twilio-token",
        ("AC",),
        WORD_START + r"AC[0-9a-f]{32}[\"'\\, :]{1,8}([0-9a-f]{32})(?![A-Za-z0-9])",
    ),
    Rule(
        "jwt",
        ("eyJ",),
        WORD_START + r"eyJ[A-Za-z0-9_-]{17,}\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)*",
    ),
    Rule(
        "bearer-token",
        ("earer ",),
        r"[Bb]earer (?=[A-Za-z0-9_-]{20})(?=[A-Za-z_-]{0,40}[0-9])([A-Za-z0-9._~+/-]+=*)",
    ),
)


def _prefixed(kind: str, prefixes: str, characters: str, length_min: int) -> Rule:
    """Return the rule of tokens that are one of *prefixes* and then only *characters*."""
    keys = tuple(prefixes.split())
    start = "|".join(map(re.escape, keys))
    # A long name with dashes is in lower case.
    mixed = r"(?=[a-z0-9_-]{0,40}[A-Z])" if characters == _WIDE else ""
    return Rule(
        kind, keys, f"{WORD_START}(?:{start}){_DIGIT}{mixed}[{characters}]{{{length_min},}}"
    )


_MIXED, _WIDE, _HEX = "A-Za-z0-9", "A-Za-z0-9_-", "a-fA-F0-9"
# Tokens that are known by their prefix alone, with the shortest rest that vendors issue or less.
PREFIXED: tuple[Rule, ...] = (
    _prefixed("adobe-secret", "p8e-", _MIXED, 32),
    _prefixed("authress-key", "authress_ scauth_", _MIXED, 24),
    _prefixed("clojars-token", "CLOJARS_", _MIXED, 56),
    _prefixed("clickhouse-key", "4b1d", _MIXED, 38),
    _prefixed("crates-token", "cio", _MIXED, 32),
    _prefixed("defined-networking-key", "dnkey-", _WIDE, 26),
    _prefixed("duffel-token", "duffel_test_ duffel_live_", _WIDE, 40),
    _prefixed("endor-key", "endr+", _MIXED, 20),
    _prefixed("facebook-token", "EAA", _MIXED, 90),
    _prefixed("flutterwave-key", "FLWSECK_TEST- FLWSECK-", _MIXED, 20),
    _prefixed("frameio-token", "fio-u-", _WIDE, 50),
    _prefixed("gitlab-token", "GR1348941", _WIDE, 20),
    _prefixed("grafana-key", "eyJrIjoi", _MIXED, 60),
    _prefixed("infracost-key", "ico-", _MIXED, 32),
    _prefixed("intra42-secret", "s-s4t2ud- s-s4t2af-", _HEX, 60),
    _prefixed("mercadopago-token", "APP_USR-", _WIDE, 40),
    _prefixed("newrelic-key", "NRJS- NRII- NRIQ- NRRA-", _WIDE, 19),
    _prefixed("nuget-key", "oy2", "a-z0-9", 43),
    _prefixed("octopus-key", "API-", "A-Z0-9", 26),
    _prefixed(
        "plaid-token", "access-sandbox- access-production- access-development-", "a-f0-9-", 36
    ),
    _prefixed("posthog-key", "phc_", _MIXED, 40),
    _prefixed("readme-key", "rdme_", "a-z0-9", 60),
    _prefixed("render-key", "rnd_", _MIXED, 28),
    _prefixed("scalingo-token", "tk-us-", _WIDE, 40),
    _prefixed("settlemint-token", "sm_aat_ sm_pat_ sm_sat_", _MIXED, 16),
    _prefixed("shippo-token", "shippo_live_ shippo_test_", _HEX, 40),
    _prefixed("sourcegraph-token", "sgp_ slk_", "a-fA-F0-9_", 40),
    _prefixed("swarm-token", "SWMTKN-1-", "a-z0-9-", 50),
    _prefixed("unkey-key", "unkey_", _MIXED, 16),
    _prefixed("voyage-key", "pa-", _WIDE, 40),
    _prefixed("yandex-key", "AQVN", _WIDE, 35),
    _prefixed("cerebras-key", "csk-", _MIXED, 40),
    _prefixed("fireworks-key", "fw_", _MIXED, 22),
    _prefixed("clerk-key", "ak_", _MIXED, 30),
    _prefixed("openshift-token", "sha256~", _WIDE, 40),
    _prefixed("backblaze-key", "K000 K001 K002 K003 K004 K005", "A-Za-z0-9/+", 27),
    _prefixed("phabricator-token", "cli- api-", "a-z0-9", 28),
    _prefixed("twitch-token", "oauth:", "a-z0-9", 28),
    _prefixed("pushbullet-token", "o.", _MIXED, 30),
    _prefixed("ory-token", "ory_at_ ory_ac_ ory_rt_ ory_st_", _WIDE, 30),
)

# Webhooks: the address is the secret. The key may be too far ahead of the run to be found by
# `may_hold_secret` there, so these rows are looked up by their keys alone.
WEBHOOKS: tuple[Rule, ...] = (
    Rule(
        "webhook",
        ("hooks.slack.com/",),
        r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/"
        r"(?:[A-Za-z0-9]{5,20}/){2}[A-Za-z0-9_-]{20,}",
    ),
    Rule(
        "webhook",
        (".webhook.office.com/", "outlook.office.com/", "outlook.office365.com/"),
        r"(?<=\.com/)webhook(?:b2)?/[A-Za-z0-9@-]{36,80}/IncomingWebhook/"
        r"[A-Za-z0-9]{32}/[A-Za-z0-9/_-]{20,120}",
    ),
    Rule(
        "webhook",
        ("maker.ifttt.com/", ".make.com/"),
        r"(?<=/with/key/)[A-Za-z0-9_-]{16,}"
        r"|(?<=\.make\.com/)[a-z0-9]{20,}",
    ),
    # Providers of block chains have the key in the path.
    Rule(
        "api-key",
        (".infura.io/", ".alchemy.com/", ".quiknode.pro/", "rpc.ankr.com/"),
        r"(?<=\.infura\.io/v3/)[0-9a-f]{32}|(?<=\.alchemy\.com/v2/)[A-Za-z0-9_-]{20,}"
        r"|(?<=\.quiknode\.pro/)[0-9a-f]{32,}|(?<=rpc\.ankr\.com/)[a-z]{2,20}/[0-9a-f]{40,}",
    ),
    Rule("webhook", ("/api/webhooks/",), r"(?<=/api/webhooks/)[0-9]{15,20}/[A-Za-z0-9_-]{40,}"),
)

# Private keys and signatures: no unbroken run is promised for these.

_PEM_GAP = r"(?:[\s\"',]|\\+[nrt\"])"
# A gap, a header or a line of the body can be read in one way only, and repeated characters are
# possessive. Repeated groups are not: before Python 3.11.5 those match wrongly. There are few
# headers, and each begins a line.
_PEM = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:(?=[\"', \t]*+(?:[\r\n]|\\+[nr])){_PEM_GAP}+"
    r"[A-Z][A-Za-z-]{2,20}+: [^\n\\]{0,200}+){0,20}"
    rf"(?:{_PEM_GAP}*[A-Za-z0-9+/=]{{16,}}+)+"
    rf"(?:(?:{_PEM_GAP}*[A-Za-z0-9+/=]{{1,15}}+){{0,2}}{_PEM_GAP}*"
    r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rf"|{_PEM_GAP}{{1,4}}[A-Za-z0-9+/]{{1,15}}+={{1,2}})?"
)
BLOCKS: tuple[Rule, ...] = (
    Rule("private-key", ("PRIVATE KEY",), _PEM),
    Rule("azure-sas", ("sig=",), r"(?<=[?&;]sig=)[A-Za-z0-9%+/_-]{30,200}(?:%3[Dd])?"),
)

# URLs with a password, or with a token in place of a user's name

URLS: tuple[Rule, ...] = (
    Rule("url-password", ("://",), r"://[^\s/?#:@\"'<>\\\[\]]{0,100}:([^\s/\"'<>\\]{1,300})@"),
    Rule("url-token", ("://",), r"://([A-Za-z0-9_.~%-]{16,300})(?::x-oauth-basic)?@"),
)

# Commands that take a secret as an argument


class Command(NamedTuple):
    """A command that takes a secret: its kind, a literal in every match, the command, the option.

    At most *gap_max* characters are between the command and the option that the secret follows.
    *lead* is what the secret's argument begins with, as the user's name in `-u bob:x`.
    """

    kind: str
    key: str
    command: str
    option: str
    lead: str = ""
    gap_max: int = 300


_LEAD_USER = r"[^\s:\"'\\]{1,100}:"
COMMANDS: tuple[Command, ...] = (
    Command("password", "mysql", r"mysql(?:dump|admin|import)? ", r"-p"),
    Command("password", "mariadb", r"mariadb(?:-dump|-admin)? ", r"-p"),
    Command("password", "sshpass", r"sshpass ", r"-p ?", gap_max=0),
    Command(
        "password",
        "login",
        r"(?:docker|podman|az|registry|acr|oras|skopeo) login ",
        r"-p[ =]",
    ),
    Command("password", "twine", r"twine upload ", r"-p[ =]?"),
    Command("password", "redis-cli", r"redis-cli ", r"-a "),
    Command(
        "password",
        "curl",
        r"curl ",
        r"(?:-[uU] ?|--(?:proxy-)?user[ =])",
        lead=_LEAD_USER,
    ),
    Command("secret", "secretsmanager", r"secretsmanager ", r"--secret-(?:string|binary)[ =]"),
    Command("secret", "gh secret", r"gh secret set ", r"(?:-b|--body)[ =]"),
    Command("password", "openssl", r"openssl ", r"-pass(?:in|out|word)? ", lead="pass:"),
    Command("password", "apksigner", r"apksigner ", r"--(?:ks|key)-pass[ =]", lead="pass:"),
    Command("password", "beeline", r"beeline ", r"-p "),
    Command("password", "hydra", r"hydra ", r"-p "),
    # `-p` alone asks for the password; what follows is then another option.
    Command(
        "password",
        "mongo",
        r"mongo(?:sh|dump|restore|export|import)? ",
        r"-p(?! ?-)[ =]?",
    ),
    Command("password", "cqlsh", r"cqlsh ", r"-p(?! ?-)[ =]?"),
    Command(
        "password",
        "ldap",
        r"ldap(?:search|add|modify|delete|passwd|whoami|compare|modrdn) ",
        r"-x?w ?",
    ),
    Command("password", " -a ", r"(?:http|https|xh|xhs) ", r"-a ", lead=_LEAD_USER),
    Command("password", "zip ", r"zip ", r"-P ?"),
    Command("password", "7z", r"7z[ar]? [a-z] ", r"-p"),
    Command("password", "sqlcmd", r"sqlcmd ", r"-P ?"),
    Command("password", "mosquitto_", r"mosquitto_(?:pub|sub|rr) ", r"-P "),
    Command("password", "keytool", r"keytool ", r"-(?:store|key|deststore|srcstore)pass "),
    Command("password", " -pw ", r"(?:plink|pscp|psftp)(?:\.exe)? ", r"-pw "),
    Command("password", "smbclient", r"smbclient ", r"-U ?", lead=r"[^\s%\"'\\]{1,100}%"),
    Command("password", "lftp", r"lftp ", r"-u ?", lead=r"[^\s,\"'\\]{1,100},"),
    # `public` and `private` are the communities of every manual.
    Command(
        "password",
        "snmp",
        r"snmp(?:walk|get|getnext|bulkwalk|bulkget|set|table|trap|inform|status|df) ",
        r"-(?:[AX]|c(?! (?:public|private)\b)) ",
    ),
    Command("password", "ipmitool", r"ipmitool ", r"-P ?"),
    Command("password", "rar ", r"rar [a-z] ", r"-h?p"),
    Command("password", "openssl enc", r"openssl enc ", r"-k "),
    Command("password", "bcp ", r"bcp ", r"-P ?"),
    Command("password", "tsql ", r"tsql ", r"-P ?"),
    Command("api-key", "nuget", r"nuget push ", r"(?:-k|--api-key|-ApiKey) "),
    Command("password", "x11vnc", r"x11vnc ", r"-passwd "),
    Command("password", "ssh-keygen", r"ssh-keygen ", r"-[NP] "),
    Command("password", "security ", r"security (?:[a-z]+-[a-z-]+|import|export) ", r"-[pwP] "),
    Command("token", "codecov", r"codecov\S{0,20} ", r"-t "),
    Command("token", "cypress", r"cypress run ", r"--key[ =]"),
    Command("access-key", "sauce", r"sauce(?:ctl)? ", r"-k "),
    Command("password", "eyaml", r"eyaml encrypt ", r"-s "),
    Command("password", "secret-set-value", r"virsh secret-set-value ", r"--base64[ =]"),
    Command("password", "altool", r"altool ", r"-p "),
    Command("password", "notarytool", r"notarytool ", r"-p "),
    Command("password-hash", "winrm", r"evil-winrm ", r"-H "),
    Command("token", "doctl", r"doctl auth init ", r"(?:-t|--access-token)[ =]"),
    Command("token", "hex.user", r"mix hex\.user auth ", r"--key[ =]"),
    Command("token", "gitlab-runner", r"gitlab-runner register ", r"-r "),
    Command("password", "pdfto", r"pdfto[a-z]+ ", r"-[uo]pw "),
    Command("password", "jenkins-cli", r"jenkins-cli(?:\.jar)? ", r"-auth ", lead=_LEAD_USER),
    Command("password", "etcdctl", r"etcdctl ", r"--user[ =]", lead=_LEAD_USER),
    Command("password", "winexe", r"winexe ", r"-U ?", lead=r"[^\s%\"'\\]{1,100}%"),
    Command("password", "rpcclient", r"rpcclient ", r"-U ?", lead=r"[^\s%\"'\\]{1,100}%"),
    Command("secret", "keyvault", r"az keyvault secret set ", r"--value[ =]"),
    Command(
        "secret",
        "put-parameter",
        r"ssm put-parameter [^\n|;&]{0,200}SecureString ",
        r"--value[ =]",
    ),
)
# None of these is between a command and its option.
COMMAND_END = r"[\n|;&]"


def argument(lead: str) -> str:
    """Return the regex of an argument, in quotes or not, that begins with *lead*."""
    return (
        rf"(?:\\*\"{lead}(?P<double>[^\"\\\n]{{3,2000}})(?=\\*\")"
        rf"|'{lead}(?P<single>[^'\\\n]{{3,2000}})(?=')"
        rf"|\\*[\"']?{lead}(?P<bare>[^\s\"'\\]{{3,200}}))"
    )


# Lines: what is given to a command, or kept in a file, in a place that makes it a secret

_GIVEN = r"(?:\\*\"([^\"\\\n]{3,200})\\*\"|'([^'\\\n]{3,200})'|([^\s\"'\\|;&<]{3,200}))"
LINES: tuple[Rule, ...] = (
    # echo x | sudo -S make
    Rule(
        "password",
        ("sudo", "chpasswd", " --password-stdin", " --stdin", " --with-token", " --passphrase-fd"),
        r"(?:echo|printf)(?: -[neE]{1,2}){0,2} (?:\\*[\"']?%s(?:\\+n)?\\*[\"']? )?"
        + _GIVEN
        + r" ?\| ?[^\n|;&]{0,100}?(?:sudo [^\n|;&]{0,40}?-[A-Za-z]{0,3}S| --password-stdin|chpasswd"
        + r"|passwd[^\n|;&]{0,40}? --stdin| --with-token| --passphrase-fd)(?![\w-])",
    ),
    # A line of a .pgpass: host:port:database:user:x
    Rule(
        "password",
        (":5432:", ":5433:", ":6432:", ":*:"),
        r"(?:(?<![\w.:/*-])|(?<=\\[nrt]))[\w.*-]{1,100}:(?:5432|5433|6432|\*):[\w.*-]{1,60}:"
        r"[\w.*@-]{1,60}:([^\s\"'\\]{3,200})",
    ),
    # curl -u x: where a token needs no password, or anything
    Rule(
        "token",
        (" -u ",),
        r" -u \\*[\"']?(?=[A-Za-z_-]{0,40}[0-9])([A-Za-z0-9_-]{20,}):[Xx]?(?=[\s\"'\\]|\Z)",
    ),
    # kubectl create secret generic app --from-literal=name=x
    Rule(
        "secret",
        (" --from-literal",),
        r" --from-literal[ =]\\*[\"']?[\w.-]{1,80}=\\*[\"']?([^\s\"'\\]{3,300})",
    ),
)

# Cookies, as in `Cookie: a=x; b=y` and `curl -b a=x`: the group is all of them, and those of them
# that are random are secrets.
COOKIES: tuple[Rule, ...] = (
    Rule(
        "cookie",
        ("ookie",),
        r"[Cc]ookie[\"'\\]{0,4}(?: ?[:=] ?| )[\"'\\]{0,4}([\w.-]{1,60}=[^\n\"'\\]{8,4000})",
    ),
    Rule("cookie", (" -b ",), r" -b \\*[\"']?([\w.-]{1,60}=[^\n\"'\\]{8,4000})"),
)
COOKIE = r"(?:\A|; ?)[\w.-]{1,60}=(?:s%3A)?([^\s;,]{8,})"

# Frames: notations in which the name of a secret is apart from its value.


class Frame(NamedTuple):
    """A notation: a literal that is in every match, and a regex with the groups `name` and `value`.

    Its form says how sure it is that a value follows.
    """

    key: str
    form: Form
    pattern: str


_QUOTE = r"[\"'\\]{0,3}"
_BREAK = r"(?:[ \n\r\t]|\\++[nrt])"
FRAMES: tuple[Frame, ...] = (
    # An element of XML.
    Frame(
        "</",
        "literal",
        r"<(?P<name>[\w.:-]{1,80}+)(?:\s[^<>]{0,200})?>"
        r"\s{0,20}+(?P<value>[^<>\s]{3,300}+)\s{0,20}</(?P=name)>",
    ),
    # A dictionary of a property list.
    Frame(
        "<string>",
        "quoted",
        r"<key>(?P<name>[\w.-]{1,80}+)</key>\s{0,20}+<string>(?P<value>[^<>\s]{3,300}+)</string>",
    ),
    # The name and value fields of Kubernetes and of forms.
    Frame(
        "value",
        "literal",
        rf"(?<![\w-])(?:name|key){_QUOTE} ?[:=] ?{_QUOTE}(?P<name>[\w.-]{{1,80}}+){_QUOTE}"
        rf"(?:,|{_BREAK}){{1,60}}{_QUOTE}value{_QUOTE} ?[:=] ?"
        rf"{_QUOTE}(?P<value>[^\s\"'\\,;<>]{{3,300}})",
    ),
    # `setx NAME value` of Windows.
    Frame(
        "setx",
        "sure",
        rf"setx(?: /[A-Za-z])? {_QUOTE}(?P<name>[\w-]{{1,80}}+){_QUOTE} {{1,4}}"
        rf"{_QUOTE}(?P<value>[^\s\"'\\]{{3,300}})",
    ),
    # Calls that set a name to a value: define("DB_PASSWORD", "x").
    Frame(
        "(",
        "tight",
        r"(?:define|(?:put|get|set)env|setdefault|environ\.get|[sg]et_?[Pp]roperty|[Hh]eader|set|put)"
        r"\(\\*[\"'](?P<name>[\w.-]{1,80}+)\\*[\"'], ?\\*[\"'](?P<value>[^\"'\\\n]{3,300})",
    ),
    # A variable of Terraform.
    Frame(
        "variable",
        "quoted",
        r"variable \\*\"(?P<name>[\w-]{1,80})\\*\" ?\{[^{}]{0,200}?default\s{0,9}=\s{0,9}"
        r"\\*\"(?P<value>[^\"\\\n]{3,300})",
    ),
    # A netrc.
    Frame(
        "login",
        "sure",
        rf"(?:machine{_BREAK}{{1,9}}[^\s\\]{{1,100}}|default)"
        rf"{_BREAK}{{1,9}}login{_BREAK}{{1,9}}[^\s\\]{{1,100}}"
        rf"{_BREAK}{{1,9}}(?P<name>password){_BREAK}{{1,9}}(?P<value>[^\s\\]{{3,300}})",
    ),
)

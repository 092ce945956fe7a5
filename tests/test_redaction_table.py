"""Every row of every table of redaction: its examples are found, near misses are not."""

from __future__ import annotations

import base64
import itertools
import json
import re
import string

import pytest

from commonplace.redaction import table
from commonplace.redaction.suspicion import may_hold_secret
from commonplace.redaction.text import redact_text
from fake_secrets import DIGITS, HEX, MIXED, UPPER, bodies, pem, some

LETTERS = string.ascii_lowercase
# Values that no rule takes for a secret by themselves.
WORD = "correcthorse"


def words(text: str) -> list[str]:
    return text.split()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# Each row by its kind and first key: texts with the secret in «», and texts that must not be found.
# Examples are as short as the row allows and misses one character shorter, so that both notice a
# changed length.
ACCESS_TOKENS: dict[str, tuple[list[str], list[str]]] = {
    "aws-access-key AKIA": (
        [f"«{prefix}{some(16, UPPER)}»" for prefix in ("AKIA", "ASIA")],
        [
            *("AKIA" + some(15, UPPER), "AKIA" + some(17, UPPER), "AXIA" + some(16, UPPER)),
            *("AKIA" + some(16, UPPER) + char for char in "aZ7"),
        ],
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
    "anthropic-key sk-ant-": (
        [f"«sk-ant-{some(20)}»"],
        ["sk-ant-" + some(19, string.ascii_letters)],
    ),
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
        [
            *("SK" + some(31, HEX), "SK" + some(33, HEX), "SK" + "g" * 32),
            *("SK" + some(32, HEX) + char for char in "zZ7"),
        ],
    ),
    "sendgrid-key SG.": (
        [f"«SG.{some(20)}.{some(20)}»"],
        [f"SG.{some(19)}.{some(20)}", f"SG.{some(20)}.{some(19)}"],
    ),
    "mailgun-key key-": (
        [f"«{prefix}key-{some(32, HEX)}»" for prefix in ("", "pub")],
        [
            *("key-" + some(31, HEX), "key-" + some(33, HEX)),
            *("key-" + some(32, HEX) + char for char in "zZ7"),
        ],
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
            f"«dp.st.ab.{some(30)}»",
            f"«dp.st.abcdefghij.{some(30)}»",
        ],
        [
            *("dp.st." + some(29), "dp.xx." + some(30), "dp.st.Dev." + some(30)),
            *("dp.st.a." + some(30), "dp.st.abcdefghijk." + some(30)),
        ],
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
    "xai-key xai-": ([f"«xai-{some(40)}»"], [f"xai-{some(39)}"]),
    "nvidia-key nvapi-": ([f"«nvapi-{some(40)}»"], [f"nvapi-{some(39)}"]),
    "perplexity-key pplx-": ([f"«pplx-{some(40)}»"], [f"pplx-{some(39)}"]),
    "groq-key gsk_": ([f"«gsk_{some(40)}»"], [f"gsk_{some(39)}"]),
    "figma-token figd_": (
        [*(f"«fig{letter}_{some(30)}»" for letter in "dour")],
        [f"figd_{some(29)}", f"figx_{some(30)}"],
    ),
    "postman-key PMAK-": (
        [f"«PMAK-{some(24, HEX)}-{some(34, HEX)}»"],
        [f"PMAK-{some(24, HEX)}-{some(33, HEX)}", f"PMAK-{some(23, HEX)}-{some(34, HEX)}"],
    ),
    "newrelic-key NRAK-": (
        [f"«NRAK-{some(27, UPPER)}»", f"«{some(36, HEX)}NRAL»"],
        [f"NRAK-{some(26, UPPER)}", f"{some(35, HEX)}NRAL"],
    ),
    "replicate-token r8_": ([f"«r8_{some(30)}»"], [f"r8_{some(29)}"]),
    "airtable-token pat": (
        [f"«pat{some(14)}.{some(64, HEX)}»"],
        [f"pat{some(13)}.{some(64, HEX)}", f"pat{some(14)}.{some(63, HEX)}"],
    ),
    "elevenlabs-key sk_": ([f"«sk_{some(40, HEX)}»"], [f"sk_{some(39, HEX)}"]),
    "langsmith-key lsv2_": (
        [*(f"«lsv2_{sort}_{some(32, HEX)}_{some(10, HEX)}»" for sort in ("pt", "sk"))],
        [f"lsv2_pt_{some(31, HEX)}_{some(10, HEX)}", f"lsv2_pt_{some(32, HEX)}_{some(9, HEX)}"],
    ),
    "pinecone-key pcsk_": ([f"«pcsk_{some(40)}»"], [f"pcsk_{some(39)}"]),
    "tavily-key tvly-": (
        [f"«tvly-{some(24)}»", f"«tvly-dev-{some(32)}»"],
        [f"tvly-{some(23)}", f"tvly-{some(32, LETTERS)}"],
    ),
    "together-key tgp_v1_": ([f"«tgp_v1_{some(40)}»"], [f"tgp_v1_{some(39)}"]),
    "resend-key re_": (
        [f"«re_{some(8)}_{some(24)}»"],
        [f"re_{some(7)}_{some(24)}", f"re_{some(8)}_{some(23)}", f"re_{some(8)}_{some(25)}"],
    ),
    "posthog-key phx_": ([f"«phx_{some(40)}»"], [f"phx_{some(39)}"]),
    "planetscale-token pscale_": (
        [*(f"«pscale_{sort}_{some(32)}»" for sort in ("tkn", "pw", "oauth"))],
        [f"pscale_tkn_{some(31)}", f"pscale_xyz_{some(32)}"],
    ),
    "pulumi-token pul-": (
        [f"«pul-{some(40, HEX)}»"],
        [f"pul-{some(39, HEX)}", f"pul-{some(41, HEX)}"],
    ),
    "rubygems-key rubygems_": ([f"«rubygems_{some(48, HEX)}»"], [f"rubygems_{some(47, HEX)}"]),
    "brevo-key xkeysib-": (
        [f"«xkeysib-{some(64, HEX)}-{some(16)}»"],
        [f"xkeysib-{some(63, HEX)}-{some(16)}", f"xkeysib-{some(64, HEX)}-{some(15)}"],
    ),
    "terraform-token .atlasv1.": (
        [f"«{some(14)}.atlasv1.{some(40)}»"],
        [f"{some(13)}.atlasv1.{some(40)}", f"{some(14)}.atlasv1.{some(39)}"],
    ),
    "easypost-key EZAK": (
        [*(f"«EZ{letter}K{some(54)}»" for letter in "AT")],
        [f"EZAK{some(53)}", f"EZXK{some(54)}"],
    ),
    "contentful-token CFPAT-": ([f"«CFPAT-{some(40)}»"], [f"CFPAT-{some(39)}"]),
    "typeform-token tfp_": ([f"«tfp_{some(40)}»"], [f"tfp_{some(39)}"]),
    "dynatrace-token dt0": (
        [f"«dt0c01.{some(24, UPPER)}.{some(64, UPPER)}»"],
        [
            f"dt0c01.{some(23, UPPER)}.{some(64, UPPER)}",
            f"dt0c01.{some(24, UPPER)}.{some(63, UPPER)}",
        ],
    ),
    "sonar-token sqp_": (
        [*(f"«sq{letter}_{some(40, HEX)}»" for letter in "pua")],
        [f"sqp_{some(39, HEX)}", f"sqx_{some(40, HEX)}"],
    ),
    "circleci-token CCIPAT_": (
        [*(f"«CCIP{sort}_{some(16)}_{some(40, HEX)}»" for sort in ("AT", "RJ"))],
        [f"CCIPAT_{some(15)}_{some(40, HEX)}", f"CCIPAT_{some(16)}_{some(39, HEX)}"],
    ),
    "buildkite-token bkua_": ([f"«bkua_{some(40, HEX)}»"], [f"bkua_{some(39, HEX)}"]),
    "fly-token fo1_": (
        [
            *(f"«f{sort}_{some(40)}»" for sort in ("o1", "m1r")),
            f"«fm1r_{some(40)}+/{some(4)}=»",
        ],
        [f"fo1_{some(39)}", f"fx1_{some(40)}"],
    ),
    "netlify-token nfp_": ([f"«nfp_{some(30)}»"], [f"nfp_{some(29)}"]),
    "neon-key napi_": ([f"«napi_{some(40)}»"], [f"napi_{some(39)}"]),
    "alibaba-key LTAI": (
        [f"«LTAI{some(16)}»", f"«LTAI{some(20)}»"],
        [f"LTAI{some(15)}", f"LTAI{some(21)}"],
    ),
    "bitbucket-token ATBB": ([f"«ATBB{some(32)}»"], [f"ATBB{some(31)}", f"ATBB{some(33)}"]),
    "artifactory-key AKCp": (
        [f"«AKCp{some(69)}»", f"«cmVmdGtu{some(56)}»"],
        [f"AKCp{some(68)}", f"cmVmdGtu{some(55)}"],
    ),
    "bedrock-key ABSKQmVkcm9ja0FQSUtleS": (
        [f"«ABSKQmVkcm9ja0FQSUtleS{some(40)}»", f"«ABSKQmVkcm9ja0FQSUtleS1+/{some(40)}==»"],
        ["ABSKQmVkcm9ja0FQSUtleS" + some(39)],
    ),
    "google-refresh-token 1//0": ([f"«1//0{some(40)}»"], [f"1//0{some(39)}"]),
    "1password-token ops_eyJ": (
        [f"«ops_eyJ{some(20)}»", f"«ops_eyJ{some(20)}+/{some(20)}=»"],
        [f"ops_eyJ{some(19)}"],
    ),
    "dropbox-token sl.": ([f"«sl.{some(60)}»", f"«sl.u.{some(60)}»"], [f"sl.{some(59)}"]),
    "heroku-key HRKU-": (
        [f"«HRKU-{some(36)}»", "«HRKU-" + "-".join(some(n, HEX) for n in (8, 4, 4, 4, 12)) + "»"],
        [f"HRKU-{some(35)}"],
    ),
    "launchdarkly-key sdk-": (
        [
            f"«{sort}-" + "-".join(some(n, HEX) for n in (8, 4, 4, 4, 12)) + "»"
            for sort in ("sdk", "mob", "api")
        ],
        ["sdk-" + "-".join(some(n, HEX) for n in (8, 4, 4, 4, 11))],
    ),
    "clickup-token pk_": (
        [f"«pk_{some(n, DIGITS)}_{some(32, UPPER)}»" for n in (5, 12)],
        [f"pk_{some(4, DIGITS)}_{some(32, UPPER)}", f"pk_{some(8, DIGITS)}_{some(31, UPPER)}"],
    ),
    "lob-key live_": (
        [f"«{sort}_{some(35, HEX)}»" for sort in ("live", "test")],
        [f"live_{some(34, HEX)}", f"test_{some(36, HEX)}"],
    ),
    "google-hmac-key GOOG1": ([f"«GOOG1{some(19, UPPER)}»"], [f"GOOG1{some(18, UPPER)}"]),
    "prefect-key pnu_": ([f"«pnu_{some(36)}»"], [f"pnu_{some(35)}"]),
    "private-key LS0tLS1CRUdJTi": (
        [
            f"«{encoded(f'-----BEGIN {word}PRIVATE' + some(30))}»"
            for word in ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "PGP ")
        ],
        [encoded("-----BEGIN CERTIFICATE-----" + some(60)), encoded("-----BEGIN PRIVATE K")],
    ),
    "twilio-token AC": (
        [f"AC{some(32, HEX)}:«{some(32, HEX)}»"],
        [f"AC{some(32, HEX)}:{some(31, HEX)}", f"AC{some(31, HEX)}:{some(32, HEX)}"],
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
    "webhook .webhook.office.com/": (
        [
            f"https://{host}/{some(36, HEX)}{rest}/{some(36, HEX)}»"
            for rest in (f"@{some(36, HEX)}/IncomingWebhook/{some(32, HEX)}",)
            for host in (
                "a.webhook.office.com/«webhookb2",
                "outlook.office.com/«webhook",
                "outlook.office365.com/«webhook",
            )
        ],
        [f"https://a.webhook.office.com/webhookb2/{some(36, HEX)}/IncomingWebhook/{some(31, HEX)}"],
    ),
    "webhook maker.ifttt.com/": (
        [
            f"https://maker.ifttt.com/trigger/x/with/key/«{some(22)}»",
            f"https://hook.eu1.make.com/«{some(32, LETTERS.lower())}»",
        ],
        [
            f"https://maker.ifttt.com/trigger/x/with/key/{some(15)}",
            f"https://hook.eu1.make.com/{some(19, HEX)}",
        ],
    ),
    "api-key .infura.io/": (
        [
            f"https://mainnet.infura.io/v3/«{some(32, HEX)}»",
            f"https://eth-mainnet.g.alchemy.com/v2/«{some(32)}»",
            f"https://x-y.quiknode.pro/«{some(40, HEX)}»",
            f"https://rpc.ankr.com/«eth/{some(64, HEX)}»",
        ],
        [f"https://mainnet.infura.io/v3/{some(31, HEX)}", "https://docs.alchemy.com/v2/start"],
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
            f"https://x.io/c?sv=1&sig=«{some(43)}»",
            f"https://x.io/c?sig=«{some(194)}%2B%2F%3d»",
        ],
        [
            f"https://x.io/c?sig={some(26)}%3D",
            f"https://x.io/c?asig={some(30)}%3D",
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
            *(f"https://u{char}x:hunter2@host" for char in " /?#@\"'<>\\[]"),
            *(f"https://u:hun{char}ter2@host" for char in " /\"'<>\\"),
            "https://host/a:b@c",
        ],
    ),
    "url-token ://": (
        [
            f"https://«{some(16)}»@github.com/a/b",
            f"https://«{some(300)}»@github.com/a/b",
            *(f"https://«{body}»@github.com/a" for body in bodies(16, MIXED + "_.~-", "a1B2c3")),
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
            f"mysql -p«{'x7' * 100}»",
            f"mysql -p'«{'x 7y' * 500}»'",
            f'mysql -p"«{"x 7y" * 500}»"',
            f'mysql -p\\"«{WORD} {WORD}»\\"',
            *(f"mysql -p«{WORD}»{char}x" for char in " \n\t\"'\\"),
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
            *(f"curl -u bo{char}b:{WORD}" for char in " \n\"'\\"),
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
    "password apksigner": ([f"apksigner sign --ks-pass pass:«{WORD}» x"], ["apksigner sign x"]),
    "password beeline": ([f"beeline -u jdbc:x -n hive -p «{WORD}»"], [f"beeline -n {WORD}"]),
    "password hydra": ([f"hydra -l bob -p «{WORD}» h"], [f"hydra -l {WORD} h"]),
    "password mongo": (
        [
            *(
                f"mongo{tool} -u bob -p «{WORD}» --host db"
                for tool in ("", "sh", "dump", "restore", "export", "import")
            ),
            *(f"mongosh -p{gap}«{WORD}»" for gap in ("", "=")),
        ],
        ["mongosh -u bob -p --host db.internal", f"mongox -p {WORD}", f"mongosh --port {WORD}"],
    ),
    "password cqlsh": ([f"cqlsh -u bob -p «{WORD}» db"], ["cqlsh -p --ssl"]),
    "password ldap": (
        [
            *(
                f"ldap{tool} -D cn=admin -w «{WORD}»"
                for tool in words("search add modify delete passwd whoami compare modrdn")
            ),
            f"ldapsearch -xw «{WORD}»",
        ],
        [f"ldapsearch -W -D {WORD}", f"ldapx -w {WORD}"],
    ),
    "password  -a ": (
        [f"{tool} -v -a bob:«{WORD}» x.io" for tool in ("http", "https", "xh", "xhs")],
        [f"http -a {WORD} x.io", f"git -a bob:{WORD}", "http -a bob:$PASS x.io"],
    ),
    "password zip ": (
        [f"{tool} -r -P{gap}«{WORD}» x" for tool in ("zip", "unzip") for gap in (" ", "")],
        [f"zip -r {WORD}", f"zip x; xargs -P {WORD}"],
    ),
    "password 7z": (
        [f"7z{tool} x -p«{WORD}» x.7z" for tool in ("", "a", "r")],
        [f"7z x -o{WORD} x.7z", f"7z -p{WORD}"],
    ),
    "password sqlcmd": ([f"sqlcmd -U sa -P{gap}«{WORD}»" for gap in (" ", "")], ["sqlcmd -p 8080"]),
    "password mosquitto_": (
        [f"mosquitto_{tool} -u bob -P «{WORD}» -t x" for tool in ("pub", "sub", "rr")],
        ["mosquitto_pub -p 1883 -t x", f"mosquitto_passwd -P {WORD}"],
    ),
    "password keytool": (
        [f"keytool -list -{sort}pass «{WORD}»" for sort in words("store key deststore srcstore")],
        [f"keytool -list -alias {WORD}"],
    ),
    "password  -pw ": (
        [f"{tool} -pw «{WORD}» host" for tool in ("plink", "pscp", "psftp", "plink.exe")],
        [f"other -pw {WORD}"],
    ),
    "password smbclient": (
        [f"smbclient //h/x -U{gap}bob%«{WORD}»" for gap in (" ", "", "'")],
        [f"smbclient //h/x -U {WORD}"],
    ),
    "password lftp": ([f"lftp -u bob,«{WORD}» host"], [f"lftp -u {WORD} host"]),
    "password snmp": (
        [f"snmpwalk -v3 -u bob -{option} «{WORD}» h" for option in "AXc"],
        ["snmpwalk -v2c -c public h", f"snmpwalk -v2c -u {WORD} h"],
    ),
    "password ipmitool": ([f"ipmitool -H h -P «{WORD}» power"], [f"ipmitool -p {WORD}"]),
    "password rar ": (
        [f"rar a -{option}«{WORD}» x.rar" for option in ("p", "hp")],
        ["rar x -o+ x"],
    ),
    "password openssl enc": ([f"openssl enc -aes256 -k «{WORD}»"], [f"openssl dgst -k {WORD}"]),
    "password bcp ": ([f"bcp t out f -U sa -P «{WORD}»"], [f"bcp t out f -p {WORD}"]),
    "password tsql ": ([f"tsql -H h -P «{WORD}»"], [f"tsql -p {WORD}"]),
    "api-key nuget": (
        [f"dotnet nuget push x {option} «{WORD}»" for option in ("-k", "-ApiKey")],
        [f"dotnet nuget pack -k {WORD}"],
    ),
    "password x11vnc": ([f"x11vnc -passwd «{WORD}»"], [f"x11vnc -display {WORD}"]),
    "password ssh-keygen": (
        [f"ssh-keygen -t rsa -{option} «{WORD}» -f id" for option in "NP"],
        [f"ssh-keygen -C {WORD}", "ssh-keygen -N '' -f id"],
    ),
    "password security ": (
        [f"security unlock-keychain -p «{WORD}» x", f"security add-generic-password -w «{WORD}»"],
        ["security find-identity"],
    ),
    "token codecov": ([f"codecov -t «{WORD}»"], ["codecov -t"]),
    "token cypress": ([f"cypress run --record --key «{WORD}»"], [f"cypress open --key {WORD}"]),
    "access-key sauce": (
        [f"{command} -u bob -k «{WORD}»" for command in ("sauce", "saucectl")],
        ["sauce -k"],
    ),
    "password eyaml": ([f"eyaml encrypt -s «{WORD}»"], ["eyaml decrypt -s x"]),
    "password secret-set-value": (
        [f"virsh secret-set-value id --base64 «{WORD}»"],
        [f"virsh secret-set-value --secret {WORD}"],
    ),
    "password altool": (
        [f"xcrun altool --upload-app -u bob -p «{WORD}»"],
        ["altool -p"],
    ),
    "password notarytool": (
        [f"xcrun notarytool submit -p «{WORD}» x"],
        ["notarytool log x"],
    ),
    "password-hash winrm": (
        [f"evil-winrm -i h -u bob -H «{some(32, HEX)}»"],
        [f"evil-winrm -i {some(32, HEX)}"],
    ),
    "token doctl": (
        [f"doctl auth init -t «{WORD}»", f"doctl auth init --access-token «{WORD}»"],
        ["doctl auth list -t x"],
    ),
    "token hex.user": ([f"mix hex.user auth --key «{WORD}»"], ["mix hex.user key x"]),
    "token gitlab-runner": (
        [f"gitlab-runner register -r «{WORD}»"],
        [f"gitlab-runner run -r {WORD}"],
    ),
    "password pdfto": (
        [f"pdftotext -{who}pw «{WORD}» a.pdf" for who in "uo"],
        ["pdftotext -f 1 a"],
    ),
    "password jenkins-cli": (
        [f"java -jar jenkins-cli.jar -auth bob:«{WORD}» list"],
        [f"java -jar jenkins-cli.jar -auth @{WORD}"],
    ),
    "password etcdctl": ([f"etcdctl --user root:«{WORD}» get /"], [f"etcdctl --user {WORD} get /"]),
    "password winexe": ([f"winexe -U a/bob%«{WORD}» //h cmd"], [f"winexe -U {WORD} //h cmd"]),
    "password rpcclient": ([f"rpcclient -U bob%«{WORD}» h"], [f"rpcclient -U {WORD} h"]),
    "secret keyvault": (
        [f"az keyvault secret set -n x --value «{WORD}»"],
        [f"az keyvault secret show --value {WORD}"],
    ),
    "secret put-parameter": (
        [f"aws ssm put-parameter --type SecureString --value «{WORD}»"],
        [f"aws ssm put-parameter --type String --value {WORD}"],
    ),
}
LINES: dict[str, tuple[list[str], list[str]]] = {
    "password sudo": (
        [
            *(
                f"{tool} «{WORD}» | sudo -S ls"
                for tool in ("echo", "echo -n", "printf", "printf %s")
            ),
            f"echo '«{WORD} {WORD}»' | sudo -kS ls",
            f'echo "«{WORD} {WORD}»"|sudo -u bob -S ls',
            f"printf '%s\\n' '«{WORD}»' | sudo -S ls",
            f"echo «{WORD}» | docker login -u bob --password-stdin",
            f"echo bob:«{WORD}» | chpasswd".replace("bob:«", "«bob:"),
            f"echo «{WORD}» | sudo -u root passwd bob --stdin",
            f"echo «{WORD}» | glab auth login --with-token",
            f"echo «{WORD}» | gpg --passphrase-fd 0",
        ],
        [
            *(f"echo {WORD} | sudo tee x", f"echo {WORD} | prettier --stdin"),
            *("echo $PASS | sudo -S ls", f"echo {WORD}; cat x | sudo -S ls"),
        ],
    ),
    "password :5432:": (
        [f"db.internal:{port}:app:bob:«{WORD}»" for port in ("5432", "5433", "6432", "*")],
        [f"db:5439:app:bob:{WORD}", f"db:5432:app:{WORD}", f"arn:aws:x:*:y:z:{WORD}"],
    ),
    "token  -u ": (
        [f"curl -u {quote}«{some(20)}»:{quote} x.io" for quote in ("", "'", '"')],
        [f"curl -u {some(19)}: x.io", f"curl -u {some(30, LETTERS)}: x.io"],
    ),
    "secret  --from-literal": (
        [f"kubectl create secret generic x --from-literal{gap}a=«{WORD}»" for gap in " ="],
        [f"kubectl create secret generic x --from-file=a={WORD}"],
    ),
}
COOKIES: dict[str, tuple[list[str], list[str]]] = {
    "cookie ookie": (
        [
            f"Cookie: a=«{some(16)}»",
            f"Set-Cookie: sid=«{some(40)}»; Path=/; Max-Age=3600",
            f"cookie: theme=dark; connect.sid=s%3A«{some(20)}%2B{some(4)}»",
            f'{{"Cookie": "a=«{some(16)}»"}}',
            f"curl --cookie a=«{some(16)}» x.io",
            "Cookie: a=«cIfSviRIDnlgrrUe»",
        ],
        [f"Cookie: a={some(15)}", f"cookies a={some(16)}", "Cookie: theme=dark; lang=en-US"],
    ),
    "cookie  -b ": (
        [f"curl -b a=«{some(16)}» x.io", f"curl -b 'a=«{some(16)}»; b=c' x.io"],
        [f"curl -b a={some(15)} x.io", "git checkout -b fix=the-long-branch-name"],
    ),
}
FRAMES: dict[str, tuple[list[str], list[str]]] = {
    "</": (
        [
            f"<password>«{WORD}»</password>",
            f'<dbPassword type="x">\n  «{WORD}»\n</dbPassword>',
            f"<a:password>«{some(300)}»</a:password>",
            f"<password {'x' * 200}>«{WORD}»</password>",
            f"<password>{' ' * 20}«{WORD}»{' ' * 20}</password>",
            f"<pass.db-password>«{WORD}»</pass.db-password>",
        ],
        [
            f"<password>{WORD}</passwort>",
            f"<passage>{WORD}</passage>",
            "<password>string</password>",
            f"<password {'x' * 201}>{WORD}</password>",
            f"<password>{' ' * 21}{WORD}</password>",
            f"<password>{WORD}{' ' * 21}</password>",
            f"<password>{some(301)}</password>",
            *(f"<password>corr{char}horse</password>" for char in "<> "),
            f"<password a>b>{WORD}</password>",
            f"<password a<b>{WORD}</password>",
        ],
    ),
    "<string>": (
        [
            f"<key>dbPassword</key><string>«{WORD}»</string>",
            f"<key>password</key>\n  <string>«{WORD}»</string>",
        ],
        [f"<key>label</key><string>{WORD}</string>", "<key>password</key><string></string>"],
    ),
    "value": (
        [
            f"- name: DB_PASSWORD\n  value: «{WORD}»\n",
            f'{{"name": "DB_PASSWORD", "value": "«{WORD}»"}}',
            f'{{"key":"DB_PASSWORD","value":"«{WORD}»"}}',
            f'{{\\"name\\": \\"DB_PASSWORD\\", \\"value\\": \\"«{WORD}»\\"}}',
            f'name="DB_PASSWORD" value="«{WORD}»"',
            f"key=DB_PASSWORD,value=«{WORD}»",
            f"name:DB_PASSWORD\r\n\tvalue:«{WORD}»",
            *(f"name: DB_PASSWORD{gap}value: «{WORD}»" for gap in ("\\n", "\\r", "\\t ", " " * 60)),
            *(f"name: DB_PASSWORD\nvalue: «{WORD}»{char}x" for char in " \"'\\,;<>"),
            f"name: DB_PASSWORD\nvalue: «{some(300)}»",
            f"name: x.y-DB_PASSWORD\nvalue: «{WORD}»",
        ],
        [
            "name: password value: string",
            f"- name: DB_PASSWORD\n  valueFrom: {WORD}",
            f"- name: DB_HOST\n  value: {WORD}",
            f"- surname: DB_PASSWORD\n  value: {WORD}",
            f"- sur-name: DB_PASSWORD\n  value: {WORD}",
            f"name: DB_PASSWORD{' ' * 61}value: {WORD}",
            f"name: DB_PASSWORDvalue: {WORD}",
            f"name  : DB_PASSWORD\n  value: {WORD}",
        ],
    ),
    "setx": (
        [
            f"setx DB_PASSWORD «{WORD}»",
            f'setx /M DB_PASSWORD "«{WORD}»"',
            f"setx password    «{WORD}»",
            f"setx my-password «{WORD}»",
            *(f"setx DB_PASSWORD «{WORD}»{char}x" for char in " \"'\\"),
        ],
        [
            f"setx password     {WORD}",
            f"setx /MM DB_PASSWORD {WORD}",
            f"setx DB_HOST {WORD}",
            "setx DB_PASSWORD %DB_PASSWORD%",
            f"sett DB_PASSWORD {WORD}",
        ],
    ),
    "(": (
        [
            *(f"{call}('DB_PASSWORD', '«{WORD}»')" for call in ("define", "setenv", "putenv")),
            f'os.environ.setdefault("DB_PASSWORD", "«{WORD}»")',
        ],
        [f"define('DB_HOST', '{WORD}')", f"other('DB_PASSWORD', '{WORD}')"],
    ),
    "variable": (
        [f'variable "db_password" {{ default = "«{WORD}»" }}'],
        [f'variable "db_host" {{ default = "{WORD}" }}'],
    ),
    "login": (
        [
            f"machine h login u password «{WORD}»",
            f"machine h\n  login u\n  password «{WORD}»\n",
            f"default login u password «{WORD}»",
            f"machine {'h' * 100} login {'u' * 100} password «{WORD}»",
            f"machine{' ' * 9}h{' ' * 9}login{' ' * 9}u{' ' * 9}password{' ' * 9}«{WORD}»",
            *(f"default{gap}login{gap}u{gap}password{gap}«{WORD}»" for gap in ("\r", "\t", "\\n")),
            f"machine h login u password «{WORD}»\\nx",
        ],
        [
            f"machine h user u password {WORD}",
            f"host h login u password {WORD}",
            "machine h login u password $PASSWORD",
            f"machine {'h' * 101} login u password {WORD}",
            f"machine h login {'u' * 101} password {WORD}",
            *(
                "machine h login u password".replace(" ", " " * 10, at + 1).replace(
                    " " * 10, " ", at
                )
                + f" {WORD}"
                for at in range(4)
            ),
            f"machine h login u password{' ' * 10}{WORD}",
        ],
    ),
}
TABLES: dict[str, dict[str, tuple[list[str], list[str]]]] = {
    "ACCESS_TOKENS": ACCESS_TOKENS,
    "WEBHOOKS": WEBHOOKS,
    "BLOCKS": BLOCKS,
    "URLS": URLS,
    "COMMANDS": COMMANDS,
    "LINES": LINES,
    "COOKIES": COOKIES,
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


def test_no_repeated_group_is_possessive() -> None:
    """Before Python 3.11.5 a possessive group (`(?:…)++`) matches wrongly, and secrets stay in the text."""
    rows = [value for value in vars(table).values() if isinstance(value, tuple)]
    patterns = [
        row.pattern for row in itertools.chain.from_iterable(rows) if hasattr(row, "pattern")
    ]
    assert len(patterns) > 100
    assert not [p for p in patterns if re.search(r"(?<!\\)\)(?:[+*?]|\{[\d,]+\})\+", p)]


def test_every_row_has_examples() -> None:
    for name, rows in TABLES.items():
        assert [label_of(row) for row in getattr(table, name)] == list(rows), name


def test_every_key_of_a_row_has_an_example() -> None:
    for name in ("ACCESS_TOKENS", "WEBHOOKS", "BLOCKS", "URLS", "LINES", "COOKIES"):
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
    assert may_hold_secret(plain(text))
    assert may_hold_secret(json.dumps({"lesson": plain(text)}, ensure_ascii=False))


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


# Which characters the body of a token may have: every one of them is tried.
WIDE = MIXED + "_-"
ALPHABETS: list[tuple[str, str, int, str, str]] = [
    # label, the text with the body at {}, its shortest length, its alphabet, how it must start
    ("aws-access-key AKIA", "AKIA{}", 16, string.ascii_uppercase + string.digits, ""),
    ("github-token ghp_", "ghp_{}", 30, MIXED, ""),
    ("github-token github_pat_", "github_pat_{}", 20, MIXED + "_", "Q"),
    ("gitlab-token glpat-", "glpat-{}", 20, WIDE, "Q"),
    ("gitlab-token glpat-", "glpat-" + some(20) + ".{}", 1, WIDE + ".", ""),
    ("slack-token xox", "xoxb-{}", 20, MIXED + "-", "Q"),
    ("slack-token xox", "xox{}-" + some(20), 1, LETTERS, ""),
    ("slack-token xox", "xoxe.xox{}-" + some(20), 1, LETTERS, ""),
    ("stripe-key k_live_", "sk_live_{}", 16, MIXED, "Q"),
    ("stripe-webhook-secret whsec_", "whsec_{}", 20, MIXED, "Q"),
    ("stripe-webhook-secret whsec_", "whsec_" + some(20) + "{}", 1, MIXED + "+/=", ""),
    ("commonplace-token cpb_", "cpb_{}", 43, WIDE, "Q"),
    ("npm-token npm_", "npm_{}", 36, MIXED, "Q"),
    ("pypi-token pypi-", "pypi-AgE{}", 20, WIDE, ""),
    ("anthropic-key sk-ant-", "sk-ant-{}", 20, WIDE, "Q"),
    ("openai-key sk-", "sk-{}", 20, WIDE, "Q7"),
    ("openai-key sk-", "sk-{}7" + some(20), 1, string.ascii_letters + "_-", ""),
    ("google-api-key AIza", "AIza{}", 35, WIDE, ""),
    ("google-oauth-token ya29.", "ya29.{}", 20, WIDE, "Q"),
    ("google-oauth-secret GOCSPX-", "GOCSPX-{}", 20, WIDE, ""),
    ("digitalocean-token _v1_", "dop_v1_{}", 40, HEX, ""),
    ("huggingface-token hf_", "hf_{}", 30, MIXED, "Q"),
    ("huggingface-token hf_", "hf_{}" + some(29, LETTERS), 1, string.ascii_uppercase + DIGITS, ""),
    ("telegram-bot-token :AA", "{}:AA" + some(32), 8, string.digits, ""),
    ("telegram-bot-token :AA", "12345678:AA{}", 32, WIDE, "Q"),
    ("twilio-key SK", "SK{}", 32, HEX, ""),
    ("sendgrid-key SG.", "SG.{}." + some(20), 20, WIDE, "Q"),
    ("sendgrid-key SG.", "SG." + some(20) + ".{}", 20, WIDE, ""),
    ("mailgun-key key-", "key-{}", 32, HEX, ""),
    ("discord-token MT", "MT{}." + some(6) + "." + some(27), 21, WIDE, ""),
    ("discord-token MT", "MT" + some(21) + ".{}." + some(27), 6, WIDE, ""),
    ("discord-token MT", "MT" + some(21) + "." + some(6) + ".{}", 27, WIDE, ""),
    ("databricks-token dapi", "dapi{}", 32, HEX, ""),
    ("databricks-token dapi", "dapi" + some(32, HEX) + "-{}", 1, string.digits, ""),
    ("vault-token hvs.", "hvs.{}", 20, WIDE, "Q"),
    ("doppler-token dp.", "dp.st.{}", 30, MIXED, "Q"),
    ("doppler-token dp.", "dp.st.{}." + some(30), 2, LETTERS + string.digits + "_-", "a"),
    ("linear-key lin_", "lin_api_{}", 30, MIXED, "Q"),
    ("notion-key secret_", "ntn_{}", 40, MIXED, "Q7"),
    ("supabase-key sbp_", "sbp_{}", 20, WIDE, "Q"),
    ("vercel-token vercel_", "vercel_blob_rw_{}_" + some(24), 8, MIXED, ""),
    ("vercel-token vercel_", "vcp_{}", 24, MIXED, "Q"),
    ("cloudflare-key v1.0-", "v1.0-{}-" + some(100, HEX), 24, HEX, ""),
    ("cloudflare-key v1.0-", "v1.0-" + some(24, HEX) + "-{}", 100, HEX, ""),
    ("cloudflare-key v1.0-", "cfk_{}", 40, MIXED, ""),
    ("shopify-token shp", "shpat_{}", 32, HEX + "ABCDEF", ""),
    ("square-token sq0", "sq0{}-" + some(22), 3, LETTERS, ""),
    ("square-token sq0", "sq0atp-{}", 22, WIDE, "Q"),
    ("square-token sq0", "EAAAl{}", 55, WIDE, ""),
    ("docker-token dckr_", "dckr_pat_{}", 20, WIDE, "Q"),
    (
        "age-secret-key AGE-SECRET-KEY-",
        "AGE-SECRET-KEY-1{}",
        50,
        string.ascii_uppercase + string.digits,
        "",
    ),
    ("tailscale-key tskey-", "tskey-{}", 16, MIXED + "-", "Q7"),
    ("tailscale-key tskey-", "tskey-{}-" + some(16), 2, LETTERS, ""),
    ("atlassian-token ATATT3", "ATATT3{}", 40, WIDE, ""),
    ("atlassian-token ATATT3", "ATATT3" + some(40) + "={}", 1, WIDE + "=", ""),
    ("grafana-token glsa_", "glc_{}", 30, MIXED + "_", "Q"),
    ("grafana-token glsa_", "glc_" + some(30) + "{}", 1, MIXED + "_=+/", ""),
    ("jwt eyJ", "eyJ{}." + some(16), 17, WIDE, ""),
    ("jwt eyJ", "eyJ" + some(17) + ".{}", 16, WIDE, ""),
    ("jwt eyJ", "eyJ" + some(17) + "." + some(16) + ".{}", 1, WIDE, ""),
    ("bearer-token earer ", "Bearer «{}»", 20, WIDE, "Q7"),
    ("bearer-token earer ", "Bearer «" + some(20) + "{}»", 1, WIDE + "._~+/", ""),
]


@pytest.mark.parametrize(
    ("label", "text", "length", "alphabet", "start"),
    ALPHABETS,
    ids=[f"{row[0]}-{i}" for i, row in enumerate(ALPHABETS)],
)
def test_the_body_of_a_token_may_have_any_character_of_its_alphabet(
    label: str, text: str, length: int, alphabet: str, start: str
) -> None:
    kind = kind_of("ACCESS_TOKENS", label)
    text = text if "«" in text else f"«{text}»"

    for body in bodies(length, alphabet, start):
        example = text.replace("{}", body)
        assert redact_text(plain(example)) == (redacted(example, kind), [kind]), body


@pytest.mark.parametrize(
    ("label", "text", "length", "alphabet", "start"),
    [row for row in ALPHABETS if row[2] > 3 and row[1].endswith("{}")],
)
def test_the_body_of_a_token_may_have_no_other_character(
    label: str, text: str, length: int, alphabet: str, start: str
) -> None:
    kind = kind_of("ACCESS_TOKENS", label)
    body = bodies(length, alphabet, start)[0]

    for char in set("azAZ09_-.!+/= ") - set(alphabet):
        broken = body[: length // 2] + char + body[length // 2 + 1 :]
        assert kind not in redact_text(text.replace("{}", broken))[1], char


# The block of a private key: its headers, lines and end.
BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
LINE = some(64)


@pytest.mark.parametrize(
    "block",
    [
        f"{BEGIN}\n{LINE}\n{END}",
        f"{BEGIN}{LINE}{END}",
        f"{BEGIN}\n{some(16)}\n{END}",
        f"{BEGIN}\n{LINE}\n{some(13)}+/=\n{END}",
        f"{BEGIN}\n{LINE}\n{some(15)}\n=abc\n{END}",
        f"{BEGIN}\n{LINE}+/=\n{END}",
        f"{BEGIN}\n{LINE}\n{some(1)}=",
        f"{BEGIN}\n{LINE}\n{some(13)}+/==",
        f"{BEGIN}\n{LINE} \r\n {some(1)}=",
        f"{BEGIN}\\n\"{LINE}\",\\n'{LINE}'\\r\\t{END}",
        f"{BEGIN}\nAbc: x\n\n{LINE}\n{END}",
        f"{BEGIN}\n{'A' + 'b-' * 10}: {'x' * 200}\n{LINE}\n{END}",
        f"{BEGIN}{''.join(chr(10) + 'Abc: x' for _ in range(20))}\n{LINE}\n{END}",
        f"{BEGIN}\\nAbc: x\\n{LINE}\\n{END}",
        f"{BEGIN}\n{LINE}\n-----END {'A1 ' * 13}APRIVATE KEY BLOCK-----",
        f"-----BEGIN {'A1 ' * 13}APRIVATE KEY BLOCK-----\n{LINE}\n{END}",
    ],
)
def test_a_private_key_goes_with_its_headers_and_its_end(block: str) -> None:
    assert redact_text(f"see {block} below") == (
        "see [redacted:private-key] below",
        ["private-key"],
    )


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"{BEGIN}\nAb: x\n{LINE}", "no"),
        (f"{BEGIN}\n{'A' + 'b-' * 10 + 'b'}: x\n{LINE}", "no"),
        (f"{BEGIN}\nabc: x\n{LINE}", "no"),
        (f"{BEGIN} Abc: x\n{LINE}", "no"),
        (f"{BEGIN}\nAbc: {'x' * 201}\n{LINE}", "no"),
        (f"{BEGIN}{''.join(chr(10) + 'Abc: x' for _ in range(21))}\n{LINE}", "no"),
        (f"-----BEGIN {'A1 ' * 13}AAPRIVATE KEY-----\n{LINE}", "no"),
        # Only what belongs to the key goes.
        (f"{BEGIN}\n{LINE}\n{some(15)}\n{some(5)}\n{some(5)}\n{END}", "later"),
        (f"{BEGIN}\n{LINE}\n\n\n\n\nab=", "\n\n\n\n\nab="),
        (f"{BEGIN}\n{LINE}\nab===", "="),
        (f"{BEGIN}\n{LINE}\nabc", "\nabc"),
    ],
)
def test_what_is_no_part_of_a_private_key_stays(text: str, rest: str) -> None:
    clean, kinds = redact_text(text)

    if rest == "no":
        assert "private-key" not in kinds
    elif rest == "later":
        assert clean.endswith(END)
    else:
        # A line of it may still be found as a random run.
        assert clean == "[redacted:private-key]" + redact_text(rest)[0]


def test_a_token_before_the_password_that_github_ignores_is_redacted() -> None:
    clean, kinds = redact_text(f"https://{some(40, HEX)}:x-oauth-basic@github.com/a")

    assert clean == "https://[redacted:url-token]:[redacted:url-password]@github.com/a"
    assert sorted(kinds) == ["url-password", "url-token"]


# Rows that are only found where a word starts.
WORD_STARTS = [
    (label_of(row), text)
    for row in table.ACCESS_TOKENS
    if row.pattern.startswith(table.WORD_START)
    for text in ACCESS_TOKENS[label_of(row)][0]
]


@pytest.mark.parametrize(
    ("label", "text"), WORD_STARTS, ids=[f"{i}-{label}" for i, (label, _) in enumerate(WORD_STARTS)]
)
def test_a_token_starts_where_a_word_starts(label: str, text: str) -> None:
    kind, secret = kind_of("ACCESS_TOKENS", label), plain(text)

    for before in ("x", "X", "7", "_", "-"):
        assert kind not in redact_text(before + secret)[1]
    for before in ("\\n", "\\r", "\\t", ".", "/", '"', "é"):
        assert redact_text(before + secret) == (before + redacted(text, kind), [kind])

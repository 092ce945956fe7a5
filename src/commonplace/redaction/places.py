"""Places: where commands, files and people put a secret that has no name or shape of its own.

Each row has an example with its secret in «», from which the tests make many.
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    # What the value in a place must be like to be a secret.
    Check = Literal[
        "given",  # anything that does not stand for a secret, as `$TOKEN` does
        "drawn",  # a password that is no word of prose
        "random",  # long and random, as the identifier of a session
        "any",  # whatever it is
        "phrase",  # some plain words that are no message
    ]


class Place(NamedTuple):
    """A place of secrets: kind, literals of which every match has one, what the value must be.

    A key that has letters begins and ends with whole words, which the quick test looks up. The
    secret is the group of the regex that matches last.
    """

    kind: str
    keys: tuple[str, ...]
    check: Check
    pattern: str
    example: str


_DOUBLE = r"\\*\"([^\"\\\n]{3,200})\\*\""
_SINGLE = r"'([^'\\\n]{3,200})'"
_QUOTED = rf"(?:{_DOUBLE}|{_SINGLE})"
# An argument of a command, which is no option and no sign of the shell.
GIVEN = rf"(?:{_DOUBLE}|{_SINGLE}|(?![-/*$])([^\s\"'\\|;&<>]{{3,200}}))"
_USER = r"[^\s/:\"'\\|;&<>]{1,60}"
_WORD = r"[^\s\"'\\|;&<>]{1,100}"
_REST = r"[^\n|;&<>]{0,100}?"
# A value of a person's note, which ends with the sentence.
_TOLD = r"([^\s\"'`\\/:,;()\[\]{}<>|=]{6,100})"
_CODE = r"(?=[A-Za-z-]{0,20}[0-9])[A-Za-z0-9]{4,10}-[A-Za-z0-9-]{4,30}"
# Commands that read a password from their standard input.
_READER = (
    r"(?:kinit|cryptsetup|vncpasswd|smbpasswd|passwd|adduser|pass insert|gh (?:auth|secret)"
    r"|wrangler secret put|vault login|docker secret create|zfs (?:load-key|create))(?![\w-])"
)

# Options that most commands use for something else.
PASSWORD_OPTIONS = (" -p ", " -P ", " -pw ", " -passwd ")

PLACES: tuple[Place, ...] = (
    # Arguments of commands, by their position
    Place(
        "password",
        ("htpasswd ", "mosquitto_passwd "),
        "given",
        r"(?:htpasswd|mosquitto_passwd) (?:-\S{1,10} ){0,4}?-[A-Za-z]{0,6}b[A-Za-z]{0,6} "
        rf"(?:-\S{{1,10}} ){{0,3}}(?:{_WORD} ){{1,2}}{GIVEN}(?=\s*(?:\Z|[\n|;&>]|\d>))",
        "htpasswd -nbB admin «»",
    ),
    Place(
        "password",
        ("rabbitmqctl ",),
        "given",
        rf"rabbitmqctl (?:-\S{{1,40}} (?:{_WORD} )?){{0,2}}"
        rf"(?:add_user|change_password|authenticate_user) {_WORD} {GIVEN}",
        "rabbitmqctl add_user worker «»",
    ),
    Place(
        "password",
        ("wpa_passphrase ",),
        "given",
        rf"wpa_passphrase (?:\"[^\"\n]{{1,60}}\"|'[^'\n]{{1,60}}'|{_WORD}) {GIVEN}",
        "wpa_passphrase HomeNet «»",
    ),
    Place(
        "password", ("net user ",), "given", rf"net user {_WORD} {GIVEN}", "net user bob «» /add"
    ),
    Place(
        "password",
        ("net use ",),
        "given",
        rf"net use [^\n|;&]{{0,100}}?(?: /user:|\\\\)\S{{1,100}} {GIVEN}",
        "net use Z: /user:bob «»",
    ),
    Place(
        "password",
        ("mysqladmin ",),
        "given",
        rf"mysqladmin {_REST}password {GIVEN}",
        "mysqladmin -u root password «»",
    ),
    Place(
        "password",
        ("sqlplus", "sqlldr", "expdp", "impdp", "rman ", "jdbc:oracle:"),
        "given",
        r"(?:sqlplus|sqlldr|expdp|impdp|rman target|jdbc:oracle:[a-z]{2,5})[ :](?:-\S{1,10} ){0,3}"
        rf"[\"']?{_USER}/([^\s/@\"'\\]{{3,100}})@",
        "sqlplus scott/«»@//db:1521/ORCL",
    ),
    Place(
        "password",
        ("db2 ",),
        "given",
        rf"db2 [\"']?connect to {_WORD} user {_WORD} using {GIVEN}",
        "db2 connect to sample user bob using «»",
    ),
    Place(
        "secret",
        ("mc alias", "mc config host"),
        "given",
        rf"mc (?:alias|config host) (?:set|add) {_WORD} {_WORD} {_WORD} {GIVEN}",
        "mc alias set minio http://minio:9000 admin «»",
    ),
    Place(
        "password",
        ("radtest ", "isql ", "bw login ", "http-basic."),
        "given",
        r"(?:radtest|isql \S{1,60}|bw login|(?:composer|poetry) config (?:-g )?"
        rf"http-basic\.\S{{1,80}}) (?!-){_WORD} {GIVEN}",
        "radtest bob «» localhost 0",
    ),
    Place(
        "token",
        ("vault login ", "cargo login ", "authtoken ", "bw unlock ", "iwconfig "),
        "drawn",
        r"(?:vault login|cargo login|ngrok authtoken|ngrok config add-authtoken|bw unlock"
        rf"|iwconfig \S{{1,20}} key)(?: --?[a-z-]{{2,20}})? (?:s:)?{GIVEN}",
        "cargo login «»",
    ),
    Place(
        "password",
        ("password-command", "password_command", "password_cmd"),
        "given",
        rf"password[-_]c(?:omman|m)d[ =][\"']?echo (?:-n )?{GIVEN}",
        "restic --password-command 'echo «»' backup",
    ),
    Place(
        "password",
        ("xfreerdp ", "wfreerdp ", "cmdkey ", "schtasks "),
        "given",
        rf"(?:[xw]freerdp3?|cmdkey|schtasks) {_REST}/(?:p:|pass:|rp ){GIVEN}",
        "xfreerdp /u:bob /p:«» /v:host",
    ),
    Place(
        "password",
        ("pdftk ", "nmcli "),
        "given",
        rf"(?:pdftk|nmcli) {_REST}(?:input_pw|user_pw|owner_pw|password|wifi-sec\.psk) {GIVEN}",
        "nmcli dev wifi connect Home password «»",
    ),
    Place(
        "password",
        ("AUTH ",),
        "drawn",
        rf"(?<![\w-])AUTH (?:default |[a-z][\w-]{{1,30}} )?{GIVEN}",
        "redis> AUTH default «»",
    ),
    Place(
        "token",
        ("rclone obscure ", "wandb login ", "importprivkey ", "github-oauth.", "snyk auth "),
        "given",
        r"(?:rclone obscure|wandb login(?: --relogin)?|importprivkey|snyk auth"
        rf"|composer config (?:-g |--global )?github-oauth\.\S{{1,80}}) {GIVEN}",
        "wandb login «»",
    ),
    # What a script of expect types; a command ends with the same sign, but is a plain word.
    Place(
        "password",
        ("send ",),
        "drawn",
        r"(?<![\w-])send (?:-- )?\\*\"([^\"\\\s]{6,100})\\+[rn]\\*\"",
        'send "«»\\r"',
    ),
    # A user's option and the password's after it, of any command; a port is none.
    Place(
        "password",
        (" -u", " -U ", " -x ", " --user"),
        "drawn",
        rf" (?:-[uUx]|--user(?:name)?)[ =]?[\"']?{_USER}[\"']? -(?:p|P|pw) ?(?![\d.:/]+[\s\"'])"
        rf"{GIVEN}",
        "rdesktop -u bob -p «» host",
    ),
    # The option of many commands; `mkdir -p src`, `-p 80:80` and `npx -p tool@5` are none.
    Place(
        "password",
        PASSWORD_OPTIONS,
        "drawn",
        r" -(?:p|P|pw|passwd) (?![\w.-]{0,60}@)(?:\\*\"([^\"\\\s]{8,100})\\*\"|'([^'\\\s]{8,100})'"
        r"|([^\s\"'\\|;&<>$]{8,100})(?=\s|\Z))",
        "mcrcon -H host -p «» list",
    ),
    # What a command reads
    Place(
        "password",
        ("<<<",),
        "drawn",
        r"<<< ?(?:\\*\"([^\"\\\s]{8,100})\\*\"|'([^'\\\s]{8,100})'|([^\s\"'\\|;&<>$]{8,100}))",
        "p4 login <<< «»",
    ),
    Place(
        "password",
        ("<<<",),
        "given",
        rf"(?:sudo [^\n|;&<]{{0,40}}?-[A-Za-z]{{0,3}}S |{_READER})[^\n|;&<]{{0,100}}<<< ?{GIVEN}",
        "kinit bob@EXAMPLE.COM <<< «»",
    ),
    Place(
        "password",
        (
            *("kinit", "cryptsetup", "passwd", "vncpasswd", "smbpasswd", "adduser", "pass insert"),
            *("gh auth", "gh secret", "secret put", "vault login", "zfs load-key", "zfs create"),
        ),
        "given",
        rf"(?:echo|printf)(?: -[neE]{{1,2}}){{0,2}} (?:\\*[\"']?%s(?:\\+n)?\\*[\"']? )?{GIVEN}"
        rf" ?\| ?(?:sudo )?{_READER}",
        "echo '«»' | kinit bob@EXAMPLE.COM",
    ),
    Place(
        "password",
        ("passwd", "smbpasswd", "adduser"),
        "given",
        r"(?:echo|printf)(?: -[neE]{1,2}){0,2} \\*[\"']"
        r"((?:[^\"'\\\n|]{3,60}\\+n){1,3}[^\"'\\\n|]{0,60}(?:\\+n)?)\\*[\"'] ?"
        r"\| ?(?:sudo )?(?:smbpasswd|passwd|adduser)",
        'echo -e "«»\\n" | passwd bob',
    ),
    # SQL
    Place(
        "password",
        ("IDENTIFIED ", "identified "),
        "given",
        rf"(?:IDENTIFIED (?:WITH \S{{1,40}} )?BY (?:(?:PASSWORD|VALUES) )?{GIVEN}"
        rf"|identified (?:with \S{{1,40}} )?by (?:(?:password|values) )?{_SINGLE})",
        "ALTER USER 'root'@'%' IDENTIFIED BY '«»'",
    ),
    Place(
        "password",
        ("PASSWORD '", "password '", "PASSWORD =", "password =", "PASSWORD(", "password("),
        "given",
        r"(?:PASSWORD|password)(?: ?= ?N?| ?\(| )'([^'\n]{3,200})'",
        "CREATE USER bob WITH PASSWORD '«»'",
    ),
    Place(
        "password",
        ("sp_addlogin", "pgp_sym_", "SecureString "),
        "given",
        r"(?:sp_addlogin N?'[^'\n]{1,60}', ?N?|pgp_sym_(?:en|de)crypt\([^'\n]{1,100}, ?"
        rf"|ConvertTo-SecureString (?:-String )?){_QUOTED}",
        'ConvertTo-SecureString "«»" -AsPlainText',
    ),
    # Code: `auth=("bob", "x")`
    Place(
        "password",
        (
            *("auth(", "Auth(", "auth=(", "auth = (", "login(", "Login("),
            *("BasicAuth(", "SetBasicAuth(", "withBasicAuth(", "NetworkCredential("),
            *("UsernamePasswordCredentials(", "PasswordAuthentication("),
            *("credential(", "credentials(", "Credential(", "Credentials("),
        ),
        "drawn",
        r"(?:[Aa]uth|[Ll]ogin|[Cc]redentials?|Authentication)(?: ?= ?)?"
        rf"\((?:\\*[\"'][^\"'\\\n]{{1,80}}\\*[\"'], ?){{1,3}}(?:Some\()?{_QUOTED}",
        'requests.get(url, auth=("bob", "«»"))',
    ),
    Place(
        "password",
        ("login(", "mysql_connect(", "mysqli_connect(", "mysqli(", "PDO(", "getConnection("),
        "given",
        r"(?:login\(\\*[\"'][^\"'\\\n@]{1,60}@[^\"'\\\n]{1,60}\\*[\"'], ?"
        rf"|(?:mysqli?_connect|mysqli|PDO|getConnection)\((?:[^,\n()]{{1,100}}, ?){{2}}){_QUOTED}",
        'new PDO("mysql:host=db", "root", "«»")',
    ),
    Place(
        "password",
        ("@tcp(", "@unix("),
        "given",
        r"(?<![\w.-])[\w.-]{1,60}:([^\s\"'\\@/]{3,100})@(?:tcp|unix)\(",
        "root:«»@tcp(db:3306)/app",
    ),
    Place(
        "password",
        ('type="password"', "type='password'", 'type=\\"password'),
        "given",
        r"type=\\*[\"']password\\*[\"'][^<>\n]{0,100}? value=" + _QUOTED,
        '<input type="password" name="p" value="«»">',
    ),
    # The key of a service, as the argument of its client.
    Place(
        "api-key",
        ("algoliasearch(", "rollbar.init(", "Client(", "bugsnag.start(", "Bugsnag.start("),
        "random",
        r"(?:algoliasearch|rollbar\.init|Client|[Bb]ugsnag\.start)\("
        r"(?:\\*[\"'][\w.-]{1,60}\\*[\"'], ?)?\\*[\"']([A-Za-z0-9_-]{20,200})\\*[\"']",
        'algoliasearch("APP12345", "«»")',
    ),
    # Files
    Place(
        "api-key",
        ('"key"', '\\"key', "'key'"),
        "random",
        r"username\\*[\"'] ?: ?\\*[\"'][\w.@-]{1,80}\\*[\"'], ?\\*[\"']key\\*[\"'] ?: ?"
        r"\\*[\"']([0-9a-f]{32,64})",
        '{"username": "bob", "key": "«0a1b2c3d4e5f60718293a4b5c6d7e8f9»"}',
    ),
    Place(
        "password",
        ("auth-user-pass",),
        "given",
        r"<auth-user-pass>(?:\s|\\n){1,4}[^\s<>\\]{1,100}(?:\s|\\n){1,4}([^\s<>\\]{3,100})",
        "<auth-user-pass>\nbob\n«»\n</auth-user-pass>",
    ),
    Place(
        "password",
        (" pass ", " secret "),
        "drawn",
        rf"(?<![\w-])(?:user(?:name)?|name|login|account) {_WORD},? (?:pass|secret) {GIVEN}",
        "poll mail.example.com user bob pass «»",
    ),
    Place(
        "aws-secret-key",
        ("AKIA", "ASIA"),
        "any",
        r"(?<![A-Z0-9])A[KS]IA[A-Z0-9]{16}[\"'\s:/,;=|A-Za-z_-]{1,40}?(?<![A-Za-z0-9/+])"
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        "AKIAABCDEFGHIJKLMNOP / «»",
    ),
    Place(
        "secret",
        ("Unseal Key", "Recovery Key", "Secret ID", "SecretID", "AccessorID"),
        "given",
        r"(?:(?:Unseal|Recovery) Key [0-9]{1,2}:|Secret ?ID {1,12}[:=]) ?([A-Za-z0-9+/=-]{20,100})",
        "Unseal Key 1: «»",
    ),
    Place(
        "password",
        ("<Password>", "<AdministratorPassword>", "Password>"),
        "given",
        r"Password>\s{0,40}<Value>([^<>\s]{3,200})</Value>",
        "<Password><Value>«»</Value></Password>",
    ),
    Place(
        "password",
        ("{PLAIN}", "{CLEARTEXT}", "{CRYPT}"),
        "given",
        r"\{(?:PLAIN|CLEARTEXT|CRYPT)\}([^\s:\"'\\]{3,200})",
        "bob:{PLAIN}«»",
    ),
    Place(
        "token",
        ("/t/",),
        "random",
        r"(?<=/t/)([A-Za-z0-9_-]{20,80})(?=/)",
        "https://conda.example.com/t/«»/channel",
    ),
    Place(
        "password",
        ("requirepass ", "masterauth ", "rootpw ", "server key ", "bundle config "),
        "drawn",
        r"(?:requirepass|masterauth|rootpw(?: --plaintext)?|(?:tacacs|radius)-server key"
        rf"|bundle config (?:set )?(?:--\w{{1,10}} )?\S{{1,60}} {_USER}:) ?{GIVEN}",
        "requirepass «»",
    ),
    # The digit says how it is encrypted, if at all.
    Place(
        "password",
        (
            *("password 0 ", "password 5 ", "password 7 ", "password 8 ", "password 9 "),
            *("secret 0 ", "secret 4 ", "secret 5 ", "secret 8 ", "secret 9 "),
            *("key 0 ", "key 7 "),
        ),
        "drawn",
        r"(?:password|secret|key) [045789] ([^\s\"'\\]{6,200})",
        "username admin password 0 «»",
    ),
    Place(
        "password",
        ("server community ",),
        "drawn",
        r"snmp-server community ([^\s\"'\\]{6,60})",
        "snmp-server community «» RO",
    ),
    Place(
        "password",
        (": PSK ", ": EAP ", ": XAUTH "),
        "given",
        rf" ?: (?:PSK|EAP|XAUTH) {_QUOTED}",
        'bob : PSK "«»"',
    ),
    Place(
        "password",
        ("]:",),
        "given",
        r"\[[\w.-]{1,100}\]:[0-9]{2,5}\s{1,8}[^\s:\"']{1,100}:([^\s\"'\\]{4,200})",
        "[smtp.example.com]:587 bob@example.com:«»",
    ),
    Place(
        "password-hash",
        (
            "$1$",
            "$5$",
            "$6$",
            "$y$",
            "$2a$",
            "$2b$",
            "$2y$",
            "$apr1$",
            "$argon2id$",
            "$argon2i$",
            "{SSHA}",
            "{SHA}",
        ),
        "given",
        r"(\$(?:[156]|apr1|y)\$(?:rounds=[0-9]{1,9}\$|[A-Za-z0-9./]{1,8}\$(?=[^$\s]{1,40}\$))?"
        r"[A-Za-z0-9./]{1,40}\$[A-Za-z0-9./]{20,}"
        r"|\$2[aby]\$[0-9]{2}\$[A-Za-z0-9./]{50,}"
        r"|\$argon2(?:id|i)\$[A-Za-z0-9=,$+/]{40,}|\{S?SHA\}[A-Za-z0-9+/]{20,}={0,2})",
        "root:$6$salt1234$«»:19000",
    ),
    Place(
        "private-key",
        ("kty",),
        "given",
        r"\"(?:d|k|p|q|dp|dq|qi)\\*\" ?: ?\\*\"([A-Za-z0-9_-]{32,})",
        '{"kty": "oct", "k": "«»"}',
    ),
    Place(
        "private-key",
        ("NKEY SEED-----",),
        "given",
        r"NKEY SEED-----(?:\s|\\+n){1,4}(S[A-Z][A-Z2-7]{50,60})",
        "-----BEGIN USER NKEY SEED-----\n"
        "«SUAIBDPBAUTWCWBKIO6XHQNINK5FWJW4OHLXC3HQ2KFE4PEJUA44CNHTC4»",
    ),
    # Tokens with other signs in them.
    Place(
        "asana-token",
        ("1/", "0/", "2/"),
        "any",
        r"(?<![\w/.-])([012]/[0-9]{13,20}(?:/[0-9]{13,20})?:[0-9a-f]{32})(?!\w)",
        "«1/1234567890123456:0a1b2c3d4e5f60718293a4b5c6d7e8f9»",
    ),
    Place(
        "braintree-token",
        ("access_token$",),
        "given",
        r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$([0-9a-f]{32})",
        "access_token$production$abcd1234efgh5678$«0a1b2c3d4e5f60718293a4b5c6d7e8f9»",
    ),
    # Tokens in base64, whose `+` and `/` leave them no unbroken run.
    Place(
        "sentry-token",
        ("sntrys_", "sntryu_"),
        "given",
        r"(?<![\w-])(sntry[su]_[A-Za-z0-9_=+/-]{20,})",
        "sntrys_«»",
    ),
    Place(
        "imagekit-key",
        ("private_",),
        "random",
        r"(?<![\w-])(private_[A-Za-z0-9+/]{20,}={0,2})(?![\w.])",
        "private_«»",
    ),
    Place("fly-token", ("fm2_",), "given", r"(?<![\w-])(fm2_[A-Za-z0-9_=+/-]{40,})", "fm2_«»"),
    Place(
        "azure-secret",
        ("8Q~",),
        "given",
        r"(?<![\w~.-])([A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{30,40})",
        "abc8Q~«»",
    ),
    Place(
        "mailchimp-key",
        ("-us",),
        "any",
        r"(?<![\w-])([0-9a-f]{32}-us[0-9]{1,2})(?!\w)",
        "«0a1b2c3d4e5f60718293a4b5c6d7e8f9-us21»",
    ),
    # Addresses and headers
    Place(
        "api-key",
        ("x-honeycomb-team", "X-Honeycomb-Team"),
        "given",
        r"[Xx]-[Hh]oneycomb-[Tt]eam[\"'\\]{0,3} ?[:=] ?[\"'\\]{0,3}([A-Za-z0-9]{20,40})",
        "x-honeycomb-team: «»",
    ),
    Place(
        "cookie",
        (*("PHPSESSID=", "JSESSIONID=", "_SessionId=", "_session=", "_SESSION=", "sessionid="),),
        "random",
        r"(?:PHPSESSID|JSESSIONID|ASP\.NET_SessionId|[\w-]{0,30}_(?:session|SESSION)"
        r"|sessionid)=\\*[\"']?([A-Za-z0-9%._+/=-]{16,1000})",
        "PHPSESSID=«»",
    ),
    Place(
        "signature",
        ("Signature=", "signature=", "response=", "SAMLResponse=", "SAMLRequest="),
        "random",
        r"(?:[Ss]ignature|(?<![\w.])response|SAMLRe(?:sponse|quest))=\\*\"?"
        r"([A-Za-z0-9+/%_=-]{27,20000})",
        "https://x.s3.amazonaws.com/k?X-Amz-Signature=«»",
    ),
    Place(
        "token",
        (
            "?code=",
            "&code=",
            "appid=",
            "/login/",
            "/reset/",
            "/verify/",
            "/invite/",
            "/magic/",
            "/magic-link/",
            "/confirm/",
        ),
        "random",
        r"(?:[?&](?:code|appid)=|/(?:login|reset|verify|invite|magic|magic-link|confirm)/)"
        r"([A-Za-z0-9_-]{20,200})(?![\w/.-])",
        "https://example.com/callback?code=«»&state=1",
    ),
    Place(
        "webhook",
        ("hooks.zapier.com/",),
        "any",
        r"hooks\.zapier\.com/hooks/catch/([0-9]{4,12}/[a-z0-9]{5,}/?)",
        "https://hooks.zapier.com/hooks/catch/«8435527/muqur2d»",
    ),
    Place(
        "telegram-bot-token",
        ("telegram.org/",),
        "given",
        r"telegram\.org/(?:file/)?bot([0-9]{6,12}:[A-Za-z0-9_-]{30,60})",
        "https://api.telegram.org/bot123456789:«»/getMe",
    ),
    # People's notes
    Place(
        "password",
        (
            *("cred", "creds", "Creds", "credential", "credentials", "Credential", "Credentials"),
            *("login", "Login", "log in", "Log in", "sign in", "Sign in", "wifi", "WiFi", "Wi-Fi"),
            *("user/pass", "username/pass"),
        ),
        "drawn",
        r"(?<![A-Za-z0-9])(?:[Cc]red(?:ential)?s?|[Ll]og ?in|[Ss]ign in"
        r"|user(?:name)?/pass(?:word|wd)?|wifi|Wi-?Fi)"
        r"(?:[ :,=]{1,3}[\w.-]{1,20}){0,4}?[ :=]{1,3}(?:-|->|→)? ?"
        r"(?!sha|md5|http)[\w.@+-]{1,60}(?: ?/ ?| ?: ?|,? (?:key|password|pw) )"
        rf"{_TOLD}(?![/:=(\[])",
        "log in with bob / «» on staging",
    ),
    # The users that every system has.
    Place(
        "password",
        ("root", "admin", "Admin", "administrator", "Administrator", "ubuntu", "postgres"),
        "drawn",
        r"(?<![\w/.@:-])(?:root|[Aa]dmin(?:istrator)?|ubuntu|postgres)(?: / | ?: ?)"
        rf"{_TOLD}(?![/:=(\[])",
        "the box is root / «»",
    ),
    Place(
        "password",
        ("password", "passphrase"),
        "drawn",
        r"(?<!\S)[\"'`]?([^\s\"'`\\/:,;()\[\]{}<>|=]{8,100})[\"'`]? (?:is|as|was) "
        r"(?:the|a|my|your|our|its) (?:[\w-]{1,20} ){0,2}(?:password|passphrase)(?!\w)",
        "use «» as the password",
    ),
    Place("password", ("p/w", "P/W"), "drawn", rf"(?<!\w)[Pp]/[Ww](?: is)?:? {_TOLD}", "p/w «»"),
    Place(
        "pin",
        (
            *("PIN", "Pin", "pin", "OTP", "otp", "TOTP", "totp", "passcode", "Passcode"),
            *("MFA code", "2FA code", "one-time code", "verification code", "security code"),
            *("unlock code", "Verification code", "Security code"),
        ),
        "any",
        r"(?<![\w.-])(?:PIN|[Pp]in|T?OTP|t?otp|[Pp]asscode|MFA code|2FA code"
        r"|(?:one-time|[Vv]erification|[Ss]ecurity|unlock) code)(?: code)?"
        r"(?:[\"']? ?[:=] ?[\"']?| (?:is|was|set to)? ?)([0-9]{4,8})(?![\w.:-]*\w)",
        "my pin is «4711»",
    ),
    Place(
        "recovery-code",
        (
            *("recovery code", "recovery codes", "Recovery code", "Recovery codes"),
            *("backup code", "backup codes", "Backup code", "Backup codes"),
        ),
        "given",
        r"(?:[Rr]ecovery|[Bb]ackup) codes?(?: is| are)?:?\s{1,4}"
        rf"({_CODE}(?:[, \n]{{1,2}}{_CODE}){{0,19}})",
        "recovery code: «3f9a1-x7k2p»",
    ),
    Place(
        "mnemonic",
        ("mnemonic", "Mnemonic", "MNEMONIC", "seed phrase", "Seed phrase", "recovery phrase"),
        "given",
        r"(?:[Mm]nemonic|MNEMONIC|[Ss]eed phrase|recovery phrase)[\"'\\]{0,3}"
        r"(?: is| was)? ?[:=]? ?[\"'\\]{0,3}((?:[a-z]{3,8} ){11,23}[a-z]{3,8})(?![a-z])",
        "seed phrase: «abandon ability able about above absent absorb abstract absurd abuse "
        "access accident»",
    ),
    Place(
        "password",
        ("passphrase:", "passphrase ="),
        "phrase",
        r"passphrase ?[:=] ?((?:[a-z]{3,12}[ -]){2,9}[a-z]{3,12})(?=[\s]*(?:\Z|\n|\\n))",
        "passphrase: «copper lantern walnut zebra»",
    ),
)


class Region(NamedTuple):
    """A stretch of text of which every value is a secret: kind, keys, regexes of it and of a value.

    The regex of the stretch has it as its only group; that of a value has the value.
    """

    kind: str
    keys: tuple[str, ...]
    pattern: str
    value: str
    example: str


_PAIR = (
    r"(?:\A|(?<=[\s{,]))\\*[\"']?[\w.-]{1,80}\\*[\"']?: ?\\*[\"']?"
    r"([^\s\"'\\,{}|>][^\s\"'\\,{}]{3,})"
)
REGIONS: tuple[Region, ...] = (
    Region(
        "secret",
        ("Secret", "stringData"),
        r"(?:kind\\*\"?: ?\\*\"?Secret\b(?:(?!kind|\n---)[\s\S]){0,600}?(?<![a-z])data|stringData)"
        r"\\*\"?:((?: ?\\*\{[^{}]{0,4000}|(?:\\?\n[ \t]{1,8}[^\n]{0,2000}){1,40}))",
        _PAIR,
        "kind: Secret\nmetadata:\n  name: x\ndata:\n  license: «»\n",
    ),
    Region(
        "secret",
        ("kv put ", "secrets set ", "config:set ", "config:add ", "item create "),
        r"(?:vault kv put|consul kv put|secrets set|config:(?:set|add)|op item create)"
        r"(?: -\S{1,40}){0,4} ([^\n|;&]{3,2000})",
        r"(?:\A|(?<=\s))[\w.-]{1,80}=(?:\"([^\"\n]{3,})\"|'([^'\n]{3,})'|(?!@)([^\s\"'@]{3,}))",
        "vault kv put secret/app value=«»",
    ),
)

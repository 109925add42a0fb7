# SPDX-License-Identifier: MIT
"""The servers that `servers` starts.

Those from `origin` on have the same paths, except for features that a server lacks:

    /small.json, /1m.bin, /text.txt     files, with byte ranges
    /sink                               the number of bytes received, as JSON
    /refuse/401, /refuse/403, /refuse/413, /refuse/417   responds before the body is read
    /redirect/307, /redirect/308        to /sink
    /basic/…, /digest/…                 the files and the sink, for user `user` with password `secret`
    /gzip/text.txt                      compressed
    /early, /trailers                   an interim 103; a trailer field X-Sum

They have the same ports: `http` without TLS; with TLS `tls`, `idle` (closes connections after a second without requests),
`limit1` to `limit1000` (close connections after this number of requests) and `mutual` (requires a client certificate).
"""

import typing

COMMON = "http tls idle mutual"
LIMITS = "limit1 limit2 limit10 limit100 limit1000"
BCRYPT = "user:$2y$05$h2iXPfjPX7e9ztBwkcMmXOBvUEdn8KWNEBO0evOu4dU4SegRsetHu"


class Kind(typing.NamedTuple):
    """A server.

    In the texts and templates, `@{PORT}` is a port of the server, `@{SERVER.PORT}` one of another, and other names are
    those of `values` and of `constants` in `servers`.
    """

    command: str
    # Environment variables with the addresses of ports, or the names of ports, whose variables are AN_SERVER_PORT.
    addresses: object
    # Files in the server's directory, as text, or the names of their templates.
    files: dict = {}
    templates: list = []
    values: dict = {}
    # The line of the configuration for a server that root starts.
    user: str = ""
    # The path of a request that shows that the server responds, or nothing, if a connection shows it.
    path: str = ""
    # The signal that makes it read its configuration again, without closing connections.
    reload: str = ""
    # The package from PyPI of servers that only `setup --interop` installs, and the option of others with which the program
    # prints its version.
    package: str = ""
    version: str = ""

    @property
    def program(self):
        return next(word for word in self.command.split() if "=" not in word and word != "env")


def stapling(certificate, *options):
    """Returns the command of an openssl server that responds to every request with a page about the connection."""
    path = f"@{{root}}/pki/{certificate}.pki.test"
    return " ".join([f"openssl s_server -accept 127.0.0.1:@{{tls}} -www -cert {path}.pem -key {path}.key -cert_chain "
                     "@{root}/pki/intermediate.pem", *options])


def from_pypi(package, ports, path="/small.json"):
    return Kind(f"@{{venv}}/bin/python @{{here}}/interop/application.py {package} @{{prefix}}/settings.json", ports,
                path=path, package=package)


TINYPROXY = "tinyproxy -d -c @{prefix}/tinyproxy.conf"
# All are started by default, up to those of `make interop`.
KINDS = {
    "nginx": Kind(
        "nginx -p @{prefix}/ -c nginx.conf -e error.log",
        {"AN_NGINX_HTTP": "http://127.0.0.1:@{http}", "AN_NGINX_TLS": "https://localhost:@{tls}",
         "AN_NGINX_H2C": "http://127.0.0.1:@{h2c}", "AN_NGINX_PKI": "https://127.0.0.1:@{pki}",
         "AN_NGINX_HTTP3": "https://localhost:@{quic}", "AN_NGINX_HTTP3_PKI": "https://127.0.0.1:@{pki}",
         "AN_NGINX_HTTP3_MUTUAL": "https://localhost:@{quic_mutual}"},
        files={"htpasswd": "user:{PLAIN}secret"}, templates=["nginx.conf"], user="user root;", path="/small.json"),
    "httpbin": Kind(
        "@{venv}/bin/gunicorn --bind 127.0.0.1:@{http} --threads 32 --keep-alive 60 --graceful-timeout 1 --no-control-socket "
        "httpbin:app", {"AN_HTTPBIN": "http://127.0.0.1:@{http}"}, path="/get"),
    "proxy": Kind(
        TINYPROXY, {"AN_PROXY": "http://127.0.0.1:@{http}", "AN_PROXY_TLS": "https://localhost:@{nginx.proxy_tls}"},
        templates=["tinyproxy.conf"], values={"credentials": ""}),
    "proxy-auth": Kind(
        TINYPROXY,
        {"AN_PROXY_AUTH": "http://127.0.0.1:@{http}", "AN_PROXY_AUTH_TLS": "https://localhost:@{nginx.proxy_auth_tls}"},
        templates=["tinyproxy.conf"], values={"credentials": "BasicAuth user secret"}),
    "socks": Kind("microsocks -i 127.0.0.1 -p @{socks}", {"AN_SOCKS": "socks5h://127.0.0.1:@{socks}"}),
    "socks-auth": Kind("microsocks -i 127.0.0.1 -p @{socks} -u user -P secret",
                       {"AN_SOCKS_AUTH": "socks5h://127.0.0.1:@{socks}"}),
    # It creates a certificate authority in its directory, and issues a certificate for each requested host name.
    "mitm": Kind("@{venv}/bin/mitmdump --listen-host 127.0.0.1 --listen-port @{http} --set confdir=@{prefix} "
                 "--set ssl_verify_upstream_trusted_ca=@{root}/pki/ca.pem", {"AN_MITM": "http://127.0.0.1:@{http}"}),
    "staple-good": Kind(stapling("good", "-status_file @{root}/pki/good.staple"),
                        {"AN_STAPLE_GOOD": "https://127.0.0.1:@{tls}"}),
    "staple-revoked": Kind(stapling("revoked", "-status_file @{root}/pki/revoked.staple"),
                           {"AN_STAPLE_REVOKED": "https://127.0.0.1:@{tls}"}),
    "staple-foreign": Kind(stapling("good", "-status_file @{root}/pki/foreign.staple"),
                           {"AN_STAPLE_FOREIGN": "https://127.0.0.1:@{tls}"}),
    "mutual": Kind(stapling("good", "-Verify 3 -verify_return_error -CAfile @{root}/pki/root.pem"),
                   {"AN_MUTUAL": "https://127.0.0.1:@{tls}"}),
    "websocket": Kind(
        "@{venv}/bin/python @{here}/websocket.py @{http} @{plain} @{fresh}",
        {"AN_WEBSOCKET": "http://127.0.0.1:@{http}", "AN_WEBSOCKET_PLAIN": "http://127.0.0.1:@{plain}",
         "AN_WEBSOCKET_FRESH": "http://127.0.0.1:@{fresh}"}),
    "tus": Kind("@{venv}/bin/python @{here}/tus.py @{http} @{cut} @{prefix}",
                {"AN_TUS": "http://127.0.0.1:@{http}", "AN_TUS_CUT": "http://127.0.0.1:@{cut}"}),
    "origin": Kind("python3 @{here}/interop/application.py origin @{prefix}/settings.json",
                   {"AN_ORIGIN": "http://127.0.0.1:@{http}"}, path="/small.json"),
    "apache": Kind(
        "apache2 -D FOREGROUND -d @{prefix} -f @{prefix}/apache.conf", f"{COMMON} limit10",
        # Its workers read the users without root privileges.
        files={"@{tmp}.basic": BCRYPT, "@{tmp}.digest": "user:users:d7fe8ad4d0f741a56d8d22371fc9851c"},
        templates=["interop/apache.conf"], values={"users": "@{tmp}", "modules": "/usr/lib/apache2/modules"},
        user="User www-data\nGroup www-data", path="/small.json", reload="USR1", version="-v"),
    "haproxy": Kind("haproxy -W -db -f @{prefix}/haproxy.conf", COMMON, templates=["interop/haproxy.conf"],
                    values={"pem": "@{root}/pki/localhost-and-key.pem"}, path="/small.json", reload="USR2",
                    version="-v"),
    "caddy": Kind(
        "env HOME=@{prefix} caddy run --adapter caddyfile --config @{prefix}/Caddyfile", f"{COMMON} admin",
        templates=["interop/Caddyfile"], values={"bcrypt": BCRYPT.removeprefix("user:")}, path="/small.json",
        reload="caddy reload --force --adapter caddyfile --config @{prefix}/Caddyfile --address 127.0.0.1:@{admin}",
        version="version"),
    "nginx-front": Kind(
        "nginx -p @{prefix}/ -c nginx.conf -e error.log", f"{COMMON} {LIMITS}", files={"htpasswd": "user:{PLAIN}secret"},
        templates=["interop/nginx.conf"], user="user root;", path="/small.json", reload="HUP", version="-v"),
    "lighttpd": Kind("lighttpd -D -f @{prefix}/lighttpd.conf", f"{COMMON} limit10 limit100", files={"users": "user:secret"},
                     templates=["interop/lighttpd.conf"], path="/small.json", reload="USR1", version="-v"),
    "h2o": Kind("h2o -m worker -c @{prefix}/h2o.conf", "http tls", templates=["interop/h2o.conf"],
                values={"second": "@{tls}", "idle_timeout": "60", "limit_body": str(1 << 40)}, user="user: root",
                path="/small.json", version="-v"),
    "h2o-tight": Kind("h2o -m worker -c @{prefix}/h2o.conf", "http idle", templates=["interop/h2o.conf"],
                      values={"second": "@{idle}", "idle_timeout": "1", "limit_body": "1024"}, user="user: root",
                      path="/small.json", version="-v"),
    "varnish": Kind(
        "varnishd -F -j none -n @{prefix}/work -s malloc,64m -f @{prefix}/varnish.vcl -p timeout_idle=60 -p "
        "vcc_allow_inline_c=off -p thread_pool_max=500 -a main=127.0.0.1:@{http} -a idle=127.0.0.1:@{idle}",
        {"AN_VARNISH_HTTP": "http://127.0.0.1:@{http}", "AN_VARNISH_IDLE": "http://127.0.0.1:@{idle}"},
        templates=["interop/varnish.vcl"], path="/small.json", version="-V"),
    "squid": Kind(
        "squid -N -f @{prefix}/squid.conf", {"AN_SQUID_HTTP": "http://127.0.0.1:@{http}", "AN_SQUID_AUTH": "http://127.0.0.1:@{auth}"},
        files={"basic": BCRYPT, "digest": "user:proxy:657362be26cba8068d2fc43821e0f2e3"}, templates=["interop/squid.conf"],
        values={"helpers": "/usr/lib/squid"}, version="-v"),
    "nghttpd": Kind(
        "nghttpd --address=127.0.0.1 --htdocs=@{root}/www --echo-upload --early-response '--trailer=x-sum: 5' --workers=2 "
        "@{tls} @{key} @{certificate}", "tls", version="--version"),
    "node": Kind("node @{here}/interop/node.mjs @{prefix}/settings.json", f"{COMMON} {LIMITS}", path="/small.json",
                 version="--version"),
    "hypercorn": from_pypi("hypercorn", COMMON),
    "uvicorn": from_pypi("uvicorn", COMMON),
    # Its only port closes idle connections after a second.
    "gunicorn": from_pypi("gunicorn", "http")._replace(command=(
        "env AN_SETTINGS=@{prefix}/settings.json @{venv}/bin/gunicorn --chdir @{here}/interop --threads 64 --workers 2 "
        "--keep-alive 1 --graceful-timeout 5 --backlog 8192 --no-control-socket --bind 127.0.0.1:@{http} application:wsgi"),
        reload="HUP"),
    "aiohttp": from_pypi("aiohttp", COMMON),
    "twisted": from_pypi("twisted", "http tls idle"),
}
DEFAULT = list(KINDS)[:list(KINDS).index("lighttpd")]
# Those with the paths and ports above, without the origin behind them.
INTEROP = list(KINDS)[list(KINDS).index("apache"):]


def addresses(name):
    """Returns the variables in DIR/env of a server, and the addresses in them."""
    found = KINDS[name].addresses
    if isinstance(found, dict):
        return found
    return {f"AN_{name.replace('-', '_').upper()}_{port.upper()}":
            ("http://127.0.0.1:" if port in ("http", "admin") else "https://localhost:") + f"@{{{port}}}"
            for port in found.split()}

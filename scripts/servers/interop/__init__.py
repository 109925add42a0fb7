# SPDX-License-Identifier: MIT
"""The third-party servers with which the library is tested; `servers` starts them.

All have the same paths, except for features that a server lacks:

    /small.json, /1m.bin, /text.txt     files, with byte ranges
    /sink                               the number of bytes received, as JSON
    /refuse/401, /refuse/403, /refuse/413, /refuse/417   responds before the body is read
    /redirect/307, /redirect/308        to /sink
    /basic/…, /digest/…                 the files and the sink, for user `user` with password `secret`
    /gzip/text.txt                      compressed
    /early, /trailers                   an interim 103; a trailer field X-Sum

They have the same ports, except for features that a server lacks: `http` without TLS; with TLS `tls`, `idle` (closes
connections after a second without requests), `limit1`, `limit2`, `limit10`, `limit100`, `limit1000` (close connections
after this number of requests) and `mutual` (requires a client certificate).
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import typing

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
BCRYPT = "$2y$05$h2iXPfjPX7e9ztBwkcMmXOBvUEdn8KWNEBO0evOu4dU4SegRsetHu"
DIGEST = "user:users:d7fe8ad4d0f741a56d8d22371fc9851c"


class Kind(typing.NamedTuple):
    """The ports of a server, its package and executable, and the option that prints its version."""

    ports: list
    package: str
    program: str
    version: list
    source: str = "Debian"


COMMON = ["http", "tls", "idle", "mutual"]
LIMITS = ["limit1", "limit2", "limit10", "limit100", "limit1000"]
KINDS = {
    "apache": Kind([*COMMON, "limit10"], "apache2", "apache2", ["-v"]),
    "haproxy": Kind(COMMON, "haproxy", "haproxy", ["-v"]),
    "caddy": Kind([*COMMON, "admin"], "caddy", "caddy", ["version"]),
    "nginx-front": Kind([*COMMON, *LIMITS], "nginx", "nginx", ["-v"]),
    "lighttpd": Kind([*COMMON, "limit10", "limit100"], "lighttpd lighttpd-mod-openssl lighttpd-mod-deflate", "lighttpd",
                     ["-v"]),
    "h2o": Kind(["http", "tls"], "h2o", "h2o", ["-v"]),
    "h2o-tight": Kind(["http", "idle"], "h2o", "h2o", ["-v"]),
    "varnish": Kind(["http", "idle"], "varnish", "varnishd", ["-V"]),
    "squid": Kind(["http", "auth"], "squid-openssl", "squid", ["-v"]),
    "nghttpd": Kind(["tls"], "nghttp2-server", "nghttpd", ["--version"]),
    "node": Kind([*COMMON, *LIMITS], "nodejs", "node", ["--version"]),
    "hypercorn": Kind(COMMON, "hypercorn", "hypercorn", [], "PyPI"),
    "uvicorn": Kind(COMMON, "uvicorn", "uvicorn", [], "PyPI"),
    "gunicorn": Kind(["http"], "gunicorn", "gunicorn", [], "PyPI"),
    "aiohttp": Kind(COMMON, "aiohttp", "aiohttp", [], "PyPI"),
    "twisted": Kind(["http", "tls", "idle"], "twisted", "twisted", [], "PyPI"),
}
# The servers that forward requests to the origin.
FRONTS = {"apache", "haproxy", "caddy", "nginx-front", "lighttpd", "h2o", "h2o-tight", "varnish", "squid"}

ADDRESSES = {"origin": {"AN_ORIGIN": "http://127.0.0.1:{origin_http}"}} | {
    name: {f"AN_{name.replace('-', '_').upper()}_{port.upper()}":
           ("http://127.0.0.1:" if port in ("http", "admin", "auth") or name == "varnish" else "https://localhost:")
           + "{" + f"{name}_{port}" + "}" for port in kind.ports}
    for name, kind in KINDS.items()}

# The signals that make the main process of a server reload its configuration without closing connections.
RELOADS = {"apache": "USR1", "haproxy": "USR2", "nginx-front": "HUP", "lighttpd": "USR1", "gunicorn": "HUP"}


def port_names():
    return ["origin_http", *(f"{name}_{port}" for name, kind in KINDS.items() for port in kind.ports)]


def find(program):
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def is_installed(name, venv):
    kind = KINDS[name]
    if kind.source == "PyPI":
        return bool(list(pathlib.Path(venv).glob(f"lib/python3*/site-packages/{kind.package}/__init__.py")))
    return bool(find(kind.program))


def version(name, venv):
    """Returns the version that a server reports."""
    kind = KINDS[name]
    if kind.source == "PyPI":
        code = f"import importlib.metadata as m; print(m.version('{kind.package}'))"
        return subprocess.run([pathlib.Path(venv) / "bin/python", "-c", code], capture_output=True,
                              text=True).stdout.strip()
    done = subprocess.run([find(kind.program), *kind.version], capture_output=True, text=True)
    words = (done.stdout + done.stderr).replace("/", " ").replace("-", " ").split()
    return next((word.lstrip("v").rstrip(",") for word in words if word.lstrip("v")[:1].isdigit()), "unknown")


class Descriptions:
    """The commands that start the servers. Their configuration is written to `root`."""

    def __init__(self, root, venv, ports, fill):
        self.root, self.venv, self.all_ports, self.fill = root, pathlib.Path(venv), ports, fill
        self.user = os.geteuid() == 0
        self.values = {
            "files": root / "www", "certificate": root / "server.pem", "key": root / "server.key",
            "client_authority": root / "pki/root.pem", "origin": ports["origin_http"],
        }

    def command(self, name):
        """Returns the arguments, the port, and the path of a request that checks whether the server responds."""
        if name == "origin":
            return ([sys.executable, HERE / "origin.py", self.all_ports["origin_http"], self.root / "www",
                     self.root / "ids"], self.all_ports["origin_http"], "/small.json")
        prefix = self.root / name
        prefix.mkdir(exist_ok=True)
        ports = {port: self.all_ports[f"{name}_{port}"] for port in KINDS[name].ports}
        make = getattr(self, name.replace("-", "_"))
        return make(prefix, ports), ports.get("http", ports.get("tls")), "" if name in ("squid", "nghttpd") \
            else "/small.json"

    def settings(self, template, path, ports, **values):
        self.fill(HERE / template, path, ports, **self.values, prefix=path.parent, **values)
        return path

    def apache(self, prefix, ports):
        # Its workers read these files without root privileges.
        users = pathlib.Path(tempfile.gettempdir()) / f"an-servers-{os.geteuid()}"
        for kind, line in (("basic", f"user:{BCRYPT}"), ("digest", DIGEST)):
            users.with_suffix(f".{kind}").write_text(line + "\n")
            users.with_suffix(f".{kind}").chmod(0o644)
        path = self.settings("apache.conf", prefix / "apache.conf", ports, users=users,
                             modules="/usr/lib/apache2/modules",
                             user="User www-data\nGroup www-data\n" if self.user else "")
        return [find("apache2"), "-D", "FOREGROUND", "-d", prefix, "-f", path]

    def haproxy(self, prefix, ports):
        pem = prefix / "server.pem"
        pem.write_text((self.root / "server.pem").read_text() + (self.root / "server.key").read_text())
        path = self.settings("haproxy.conf", prefix / "haproxy.conf", ports, pem=pem)
        return [find("haproxy"), "-W", "-db", "-f", path]

    def caddy(self, prefix, ports):
        path = self.settings("Caddyfile", prefix / "Caddyfile", ports, bcrypt=BCRYPT)
        return ["env", f"HOME={prefix}", find("caddy"), "run", "--adapter", "caddyfile", "--config", path]

    def nginx_front(self, prefix, ports):
        (prefix / "htpasswd").write_text("user:{PLAIN}secret\n")
        self.settings("nginx.conf", prefix / "nginx.conf", ports, user="user root;" if self.user else "")
        return [find("nginx"), "-p", f"{prefix}/", "-c", "nginx.conf", "-e", "error.log"]

    def lighttpd(self, prefix, ports):
        (prefix / "users").write_text("user:secret\n")
        (prefix / "authorities.pem").write_text((self.root / "pki/root.pem").read_text()
                                                + (self.root / "ca.pem").read_text())
        return [find("lighttpd"), "-D", "-f", self.settings("lighttpd.conf", prefix / "lighttpd.conf", ports)]

    def h2o(self, prefix, ports, limit_body=1 << 40, idle_timeout=60):
        path = self.settings("h2o.conf", prefix / "h2o.conf", {}, first=ports["http"],
                             second=ports.get("tls", ports.get("idle")), idle_timeout=idle_timeout,
                             limit_body=limit_body, user="user: root" if self.user else "")
        return [find("h2o"), "-m", "worker", "-c", path]

    def h2o_tight(self, prefix, ports):
        return self.h2o(prefix, ports, limit_body=1024, idle_timeout=1)

    def varnish(self, prefix, ports):
        path = self.settings("varnish.vcl", prefix / "varnish.vcl", {})
        return [find("varnishd"), "-F", "-j", "none", "-n", prefix / "work", "-s", "malloc,64m", "-f", path,
                "-p", "timeout_idle=60", "-p", "vcc_allow_inline_c=off", "-p", "thread_pool_max=500",
                "-a", f"main=127.0.0.1:{ports['http']}", "-a", f"idle=127.0.0.1:{ports['idle']}"]

    def squid(self, prefix, ports):
        hashed = hashlib.md5(b"user:proxy:secret").hexdigest()
        for name, line in (("basic", f"user:{BCRYPT}"), ("digest", f"user:proxy:{hashed}")):
            (prefix / name).write_text(line + "\n")
        helpers = "/usr/lib/squid"
        return [find("squid"), "-N", "-f", self.settings("squid.conf", prefix / "squid.conf", ports, helpers=helpers)]

    def nghttpd(self, prefix, ports):
        return [find("nghttpd"), "--address=127.0.0.1", f"--htdocs={self.root / 'www'}", "--echo-upload",
                "--early-response", "--trailer=x-sum: 5", "--workers=2", str(ports["tls"]), self.root / "server.key",
                self.root / "server.pem"]

    def node(self, prefix, ports):
        return [find("node"), HERE / "node.mjs", self.json(prefix, ports)]

    def hypercorn(self, prefix, ports):
        return self.application("hypercorn", prefix, ports)

    def uvicorn(self, prefix, ports):
        return self.application("uvicorn", prefix, ports)

    def aiohttp(self, prefix, ports):
        return self.application("aiohttp", prefix, ports)

    def twisted(self, prefix, ports):
        return self.application("twisted", prefix, ports)

    def gunicorn(self, prefix, ports):
        # Its only port closes idle connections after a second.
        return ["env", f"AN_SETTINGS={self.json(prefix, ports)}", self.venv / "bin/gunicorn", "--chdir", HERE,
                "--threads", "64", "--workers", "2", "--keep-alive", "1", "--graceful-timeout", "5", "--backlog",
                "8192", "--no-control-socket", "--bind", f"127.0.0.1:{ports['http']}", "application:wsgi"]

    def application(self, name, prefix, ports):
        return [self.venv / "bin/python", HERE / "application.py", name, self.json(prefix, ports)]

    def json(self, prefix, ports):
        path = prefix / "settings.json"
        path.write_text(json.dumps({"ports": ports, "ids": str(self.root / "ids"),
                                    **{name: str(value) for name, value in self.values.items()}}))
        return path

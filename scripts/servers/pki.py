# SPDX-License-Identifier: MIT
"""A public-key infrastructure with valid and invalid certificates, created by the openssl tool.

HOST.pem contains the certificate of a host, followed by the intermediate ones, and HOST.key its private key. nginx
selects them by the host name that a client requests, and uses those of `address` if it requests none.
"""

import datetime
import shutil
import subprocess
import typing

DOMAIN = "pki.test"
AUTHORITY = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"
LEAF = "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage={purpose}\n"
KEY_IDS = "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
CONFIGURATION = """[ca]
default_ca = own
[own]
database = {folder}/{name}.index
new_certs_dir = {folder}/issued
rand_serial = yes
unique_subject = no
default_md = sha256
default_days = 30
default_crl_days = 7
policy = any
[any]
commonName = supplied
"""


class Issued(typing.NamedTuple):
    """A certificate and the names of the certificates in its chain, without the root."""

    name: str
    chain: list


class PKI:
    def __init__(self, folder):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "issued").mkdir(parents=True)
        root = self.authority("root")
        self.intermediate = self.authority("intermediate", root)
        stranger = self.authority("stranger")
        constrained = self.authority("constrained", root, "nameConstraints=critical,permitted;DNS:allowed.test\n")
        late = self.authority("late", root, days=(-20, -10))

        self.host("good")
        self.host("a.wild", names=["*.wild." + DOMAIN])
        self.host("b.a.wild", names=["*.wild." + DOMAIN])
        self.host("wild", names=["*.wild." + DOMAIN])
        self.host("foo", names=["f*." + DOMAIN])
        self.host("expired", days=(-20, -10))
        self.host("early", days=(10, 20))
        self.host("wronghost", names=["other.test"])
        self.host("selfsigned", issuer=None)
        self.host("stranger", issuer=stranger)
        self.host("incomplete", sends_chain=False)
        self.host("complete", sends_root=True)
        self.host("late", issuer=late)
        self.host("clientonly", purpose="clientAuth")
        self.host("weak", key="rsa:1024")
        self.host("sha1", digest="sha1")
        self.host("xn--bcher-kva")
        self.host("cnonly", names=[])
        self.host("revoked")
        self.host("www.allowed.test", issuer=constrained)
        self.host("www.denied.test", issuer=constrained)
        self.host("address", addresses=["127.0.0.1"])
        self.host("client", purpose="clientAuth")
        self.host("localhost", issuer=self.authority("ca"), names=["localhost"], addresses=["127.0.0.1", "::1"])
        self.join("localhost-and-key", "localhost.pem", "localhost.key")
        self.join("authorities", "root.pem", "ca.pem")
        self.revoke(self.intermediate, "revoked." + DOMAIN)
        self.revocation_list(self.intermediate)
        self.revocation_list(stranger)
        self.staple("good", signer=self.intermediate)
        self.staple("revoked", signer=self.intermediate)
        self.staple("foreign", subject="good", signer=stranger)

    def join(self, name, *parts):
        (self.folder / f"{name}.pem").write_text("".join((self.folder / part).read_text() for part in parts))

    def authority(self, name, issuer=None, extensions="", days=(-1, 30)):
        (self.folder / f"{name}.index").touch()
        (self.folder / f"{name}.conf").write_text(CONFIGURATION.format(folder=self.folder, name=name))
        return self.issue(name, f"AsyncNetworking {name}", issuer, AUTHORITY + KEY_IDS + extensions, days=days)

    def host(self, name, issuer="intermediate", names=None, addresses=(), purpose="serverAuth", sends_chain=True,
             sends_root=False, **options):
        if not addresses and not name.endswith(".test"):
            name += "." + DOMAIN
        if issuer == "intermediate":
            issuer = self.intermediate
        names = [name] if names is None and not addresses else names or []
        alternatives = [f"DNS:{one}" for one in names] + [f"IP:{one}" for one in addresses]
        extensions = LEAF.format(purpose=purpose) + (KEY_IDS if issuer else "")
        if alternatives:
            extensions += f"subjectAltName={','.join(alternatives)}\n"
        self.issue(name, name, issuer, extensions, **options)
        chain = issuer.chain if issuer and sends_chain else []
        with open(self.folder / f"{name}.pem", "a") as file:
            for link in chain + (["root"] if sends_root else []):
                file.write((self.folder / f"{link}.pem").read_text())

    def issue(self, name, subject, issuer, extensions, days=(-1, 30), key="ec", digest="sha256"):
        """Issues a certificate; without an issuer it is self-signed."""
        path = self.folder / name
        kind = ["-newkey", key] + (["-pkeyopt", "ec_paramgen_curve:P-256"] if key == "ec" else [])
        self.openssl("req", "-new", *kind, "-nodes", "-subj", f"/CN={subject}", "-keyout", f"{path}.key", "-out",
                     f"{path}.csr")
        (self.folder / "extensions").write_text(extensions)
        start, end = ((datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=day))
                      .strftime("%Y%m%d%H%M%SZ") for day in days)
        signer = issuer.name if issuer else name
        configuration = self.folder / f"{signer}.conf"
        if not configuration.exists():
            configuration = self.folder / "root.conf"
        own = ["-selfsign", "-keyfile", f"{path}.key"] if issuer is None else [
            "-cert", self.folder / f"{signer}.pem", "-keyfile", self.folder / f"{signer}.key"]
        self.openssl("ca", "-batch", "-notext", "-config", configuration, *own, "-in", f"{path}.csr", "-out",
                     f"{path}.pem", "-extfile", self.folder / "extensions", "-startdate", start, "-enddate", end,
                     "-md", digest)
        return Issued(name, [name, *issuer.chain] if issuer else [])

    def revoke(self, issuer, name):
        self.openssl("ca", "-config", self.folder / f"{issuer.name}.conf", "-cert", self.folder / f"{issuer.name}.pem",
                     "-keyfile", self.folder / f"{issuer.name}.key", "-revoke", self.folder / f"{name}.pem")

    def revocation_list(self, issuer):
        self.openssl("ca", "-config", self.folder / f"{issuer.name}.conf", "-cert", self.folder / f"{issuer.name}.pem",
                     "-keyfile", self.folder / f"{issuer.name}.key", "-gencrl", "-out",
                     self.folder / f"{issuer.name}.crl")

    def staple(self, name, signer, subject=None):
        """Creates an OCSP response about a certificate of the intermediate authority, signed by `signer`."""
        self.openssl("ocsp", "-index", self.folder / "intermediate.index", "-CA", self.folder / "intermediate.pem",
                     "-issuer", self.folder / "intermediate.pem", "-cert",
                     self.folder / f"{subject or name}.{DOMAIN}.pem", "-rsigner", self.folder / f"{signer.name}.pem",
                     "-rkey", self.folder / f"{signer.name}.key", "-ndays", "1", "-no_nonce", "-noverify", "-respout",
                     self.folder / f"{name}.staple")

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, text=True)

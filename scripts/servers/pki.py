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
        curve = "-pkeyopt ec_paramgen_curve:P-256" if key == "ec" else ""
        self.openssl(f"req -new -newkey {key} {curve} -nodes -keyout {name}.key -out {name}.csr", "-subj",
                     f"/CN={subject}")
        (self.folder / "extensions").write_text(extensions)
        start, end = ((datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=day))
                      .strftime("%Y%m%d%H%M%SZ") for day in days)
        configuration = f"{name}.conf" if (self.folder / f"{name}.conf").exists() else "root.conf"
        signer = self.signer(issuer) if issuer else f"-config {configuration} -selfsign -keyfile {name}.key"
        self.openssl(f"ca -batch -notext {signer} -in {name}.csr -out {name}.pem -extfile extensions "
                     f"-startdate {start} -enddate {end} -md {digest}")
        return Issued(name, [name, *issuer.chain] if issuer else [])

    @staticmethod
    def signer(issuer):
        return f"-config {issuer.name}.conf -cert {issuer.name}.pem -keyfile {issuer.name}.key"

    def revoke(self, issuer, name):
        self.openssl(f"ca {self.signer(issuer)} -revoke {name}.pem")

    def revocation_list(self, issuer):
        self.openssl(f"ca {self.signer(issuer)} -gencrl -out {issuer.name}.crl")

    def staple(self, name, signer, subject=None):
        """Creates an OCSP response about a certificate of the intermediate authority, signed by `signer`."""
        self.openssl("ocsp -index intermediate.index -CA intermediate.pem -issuer intermediate.pem -ndays 1 -no_nonce "
                     f"-noverify -cert {subject or name}.{DOMAIN}.pem -rsigner {signer.name}.pem "
                     f"-rkey {signer.name}.key -respout {name}.staple")

    def openssl(self, command, *words):
        subprocess.run(["openssl", *command.split(), *words], cwd=self.folder, check=True, capture_output=True)

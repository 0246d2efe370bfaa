"""HTTPS: certificate and key from files that may change; the same product through it."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import any_python, run_daemon
from harness import Daemon, make_certificate, run_program, wait_until

type_of_start = Callable[..., Daemon]
TOKEN = "viv_over-the-wire"


def tls_env(cert: Path, key: Path) -> dict[str, str]:
    return {"VIVARIUM_TLS_CERT": str(cert), "VIVARIUM_TLS_KEY": str(key)}


def shown_certificate(port: int, **options: Any) -> bytes:
    """What the server shows, and by which protocol it was: DER; "" when there is no TLS."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for name, value in options.items():
        setattr(context, name, value)
    with (
        socket.create_connection(("127.0.0.1", port), 10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as tls,
    ):
        return tls.getpeercert(binary_form=True) or b""


CA = """[ca]
default_ca = own
[own]
database = index
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
[any]
commonName = supplied
"""


def make_dated_certificate(place: Path, name: str, first: int, last: int) -> tuple[Path, Path]:
    """Of these years; `openssl req` makes none that is out of date."""
    cert, key = place / f"{name}.pem", place / f"{name}.key"
    (place / "index").write_text("")
    (place / "ca.cnf").write_text(CA)
    for command in (
        f"openssl req -new -newkey rsa:2048 -nodes -subj /CN={name} -keyout {key} -out csr",
        f"openssl ca -batch -notext -config ca.cnf -selfsign -keyfile {key} -in csr -out {cert}"
        f" -startdate {first}0101000000Z -enddate {last}0101000000Z",
    ):
        subprocess.run(command.split(), cwd=place, capture_output=True, check=True)
    return cert, key


def der_of(cert: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(cert.read_text())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def secure(
    tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]
) -> Iterator[Daemon]:
    env = {"VIVARIUM_PYTHON": str(any_python()), "VIVARIUM_TOKEN": TOKEN, **tls_env(*certificate)}
    yield from run_daemon(tmp_path_factory.mktemp("secure"), env=env)


def health(port: int, cert: Path, host: str = "localhost") -> Any:
    request = urllib.request.Request(
        f"https://{host}:{port}/health", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    context = ssl.create_default_context(cafile=cert)
    with urllib.request.urlopen(request, timeout=10, context=context) as reply:
        return json.load(reply)


# ---- it is HTTPS, and nothing else ----


def test_the_certificate_is_shown_and_trusted(
    secure: Daemon, certificate: tuple[Path, Path]
) -> None:
    assert secure.url == f"https://127.0.0.1:{secure.port}/mcp"
    for host in ("localhost", "127.0.0.1"):
        assert health(secure.port, certificate[0], host)["status"] == "healthy"
    assert shown_certificate(secure.port) == der_of(certificate[0])


@pytest.mark.parametrize(("version", "is_good"), [("1.0", False), ("1.1", False), ("1.2", True)])
def test_tls_1_2_is_the_oldest(secure: Daemon, version: str, is_good: bool) -> None:
    """openssl s_client at security level 0, which would speak the old ones."""
    asked = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{secure.port}", "-cipher",
         "ALL:@SECLEVEL=0", f"-tls{version.replace('.0', '').replace('.', '_')}"],
        input="", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ("alert protocol version" in asked.stderr) != is_good, asked.stderr
    assert ("New, (NONE), Cipher is (NONE)" in asked.stdout) != is_good, asked.stdout


def test_curl_speaks_http_1_1_with_it(secure: Daemon, certificate: tuple[Path, Path]) -> None:
    """HTTP/2 is not to be offered: see ARCHITECTURE.md about lws 4.1.6."""
    asked = subprocess.run(
        ["curl", "-sv", "--noproxy", "*", "--http2", "--cacert", certificate[0],
         "-H", f"Authorization: Bearer {TOKEN}", f"https://localhost:{secure.port}/health"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert '"kernels"' in asked.stdout
    assert "ALPN: server accepted http/1.1" in asked.stderr
    assert "TLSv1.3" in asked.stderr


@pytest.mark.parametrize("noise", [b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03"])
def test_what_is_no_tls_is_closed_without_an_answer(
    secure: Daemon, certificate: tuple[Path, Path], noise: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", secure.port), 10) as sock:
        sock.sendall(noise)
        try:
            answer = sock.recv(100)
        except ConnectionResetError:
            answer = b""
        assert b"HTTP" not in answer
    assert health(secure.port, certificate[0])["status"] == "healthy"


def test_silent_connections_do_not_stay(secure: Daemon, certificate: tuple[Path, Path]) -> None:
    """Before the handshake, and after it."""
    context = ssl.create_default_context(cafile=certificate[0])
    before = secure.fds()
    plain = [socket.create_connection(("127.0.0.1", secure.port), 20) for _ in range(20)]
    tls = [
        context.wrap_socket(
            socket.create_connection(("127.0.0.1", secure.port), 20), server_hostname="localhost"
        )
        for _ in range(20)
    ]
    assert health(secure.port, certificate[0])["status"] == "healthy"
    for one in [*plain, *tls]:
        assert one.recv(10) == b""
        one.close()
    wait_until(lambda: secure.fds() <= before, 20)


def client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(
        ssl.MemoryBIO(), outgoing, server_hostname="localhost"
    )
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_a_slow_handshake_is_cut_off(secure: Daemon, certificate: tuple[Path, Path]) -> None:
    hello = client_hello()
    assert len(hello) > 200
    sent = 0
    with (
        contextlib.suppress(BrokenPipeError, ConnectionResetError),
        socket.create_connection(("127.0.0.1", secure.port), 10) as sock,
    ):
        for sent in range(200):
            sock.sendall(hello[sent : sent + 1])
            time.sleep(0.1)
    assert sent < 190
    assert health(secure.port, certificate[0])["status"] == "healthy"


# ---- files ----


@pytest.fixture(scope="module")
def files(
    tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]
) -> dict[str, str]:
    """By short names; the good pair is cert and key."""
    place = tmp_path_factory.mktemp("files")
    key = certificate[1]
    pairs = {"": certificate, "other ": make_certificate(place, "other")}
    pairs["old "] = make_dated_certificate(place, "old", 2020, 2021)
    pairs["new "] = make_dated_certificate(place, "new", 2098, 2099)
    rsa, locked, empty = place / "rsa.key", place / "locked.key", place / "empty"
    for command in (
        f"openssl genrsa -out {rsa} 2048",
        f"openssl ec -in {key} -aes256 -passout pass:secret -out {locked}",
    ):
        subprocess.run(command.split(), capture_output=True, check=True)
    empty.touch()
    named: dict[str, object] = {"rsa": rsa, "locked": locked, "empty": empty, "directory": place}
    for name, (one, two) in pairs.items():
        named |= {f"{name}cert": one, f"{name}key": two}
    return {name: str(path) for name, path in named.items()} | {
        "no cert": "/no/cert", "no key": "/no/key", "-": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cert", "key", "words"),
    [
        ("no cert", "key", "/no/cert: No such file or directory"),
        ("cert", "no key", "/no/key: No such file or directory"),
        ("empty", "key", "empty holds no certificate in PEM"),
        ("cert", "empty", "empty holds no private key in PEM"),
        ("key", "cert", "holds no certificate in PEM"),
        ("cert", "cert", "holds no private key in PEM"),
        ("cert", "other key", "other.key is not the certificate's key"),
        ("cert", "rsa", "rsa.key is not the certificate's key"),
        ("other cert", "key", "is not the certificate's key"),
        ("cert", "locked", "locked.key has a passphrase: give a key without"),
        ("old cert", "old key", "old.pem is valid no longer: it ended at 2021-01-01 00:00:00Z"),
        ("new cert", "new key", "new.pem is not valid yet"),
        ("directory", "key", "holds no certificate in PEM"),
        ("cert", "-", "VIVARIUM_TLS_CERT needs VIVARIUM_TLS_KEY beside it"),
        ("-", "key", "VIVARIUM_TLS_KEY needs VIVARIUM_TLS_CERT beside it"),
    ],
)
def test_files_that_will_not_do_are_refused_in_words(
    tmp_path: Path, files: dict[str, str], cert: str, key: str, words: str
) -> None:
    env = {"VIVARIUM_TLS_CERT": files[cert], "VIVARIUM_TLS_KEY": files[key], "VIVARIUM_PORT": "0",
           "VIVARIUM_PYTHON": str(any_python())}  # fmt: skip
    ended = run_program(env=env, cwd=tmp_path)
    assert ended.returncode == 2
    assert words in ended.stderr
    checked = run_program("--check", env=env, cwd=tmp_path)
    assert checked.returncode == 1
    assert words in checked.stdout


def test_a_renewed_certificate_is_shown_without_a_restart(
    start: type_of_start, tmp_path: Path
) -> None:
    """One file after the other, as certbot does; in between, the old pair stays."""
    cert, key = make_certificate(tmp_path, "first")
    live, live_key = tmp_path / "live.pem", tmp_path / "live.key"
    shutil.copy(cert, live)
    shutil.copy(key, live_key)
    daemon = start(env=tls_env(live, live_key) | {"VIVARIUM_TOKEN": TOKEN})
    context = ssl.create_default_context(cafile=cert)
    old = context.wrap_socket(
        socket.create_connection(("127.0.0.1", daemon.port), 10), server_hostname="localhost"
    )
    new, new_key = make_dated_certificate(tmp_path, "second", 2020, 2090)  # RSA now
    shutil.copy(new, live)
    wait_until(lambda: daemon.log_contains("is not the certificate's key"))
    assert daemon.log_contains("the certificate read before stays in force")
    assert shown_certificate(daemon.port) == der_of(cert)
    shutil.copy(new_key, live_key)
    wait_until(lambda: shown_certificate(daemon.port) == der_of(new))
    with old:  # what was open goes on
        old.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert old.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n")
    for sigalgs in ("ECDSA+SHA256:RSA-PSS+SHA256", "RSA-PSS+SHA256"):
        asked = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{daemon.port}", "-sigalgs", sigalgs],
            input="", capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "subject=CN = second" in asked.stdout, "one of another kind is not kept beside"


@pytest.mark.parametrize("what", ["expired", "noise", "gone"])
def test_a_bad_renewal_leaves_the_certificate_as_it_was(
    start: type_of_start, tmp_path: Path, what: str
) -> None:
    cert, key = make_certificate(tmp_path, "live")
    was = der_of(cert)
    daemon = start(env=tls_env(cert, key))
    if what == "expired":
        old, old_key = make_dated_certificate(tmp_path, "old", 2020, 2021)
        old_key.replace(key)
        old.replace(cert)
    elif what == "noise":
        cert.write_text("no certificate")
    else:
        cert.unlink()
    wait_until(lambda: daemon.log_contains("the certificate read before stays in force"))
    assert shown_certificate(daemon.port) == was

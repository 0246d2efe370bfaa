# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz drivers: corpus/<driver>/<words>.

Usage: .venv-dev/bin/python tests/fuzz/make_corpus.py

Each driver's first comment says what its input looks like.  Files named by 40 hex digits were
found by fuzzing and stay.
"""

import json
import struct
import zlib
from pathlib import Path

HERE = Path(__file__).parent
FRAMES = json.loads((HERE.parent / "data/frames.json").read_text())
META = "io.modelcontextprotocol/"


def jmsg() -> dict[str, bytes]:
    def pack(flags: int, frames: list[bytes]) -> bytes:
        return bytes([flags]) + b"".join(struct.pack("<H", len(f)) + f for f in frames)

    seeds = {
        f"{number:02} {entry['name']}": pack(1, [bytes.fromhex(f) for f in entry["frames"]])
        for number, entry in enumerate(FRAMES)
    }
    seeds["signed by nobody"] = b"\0" + seeds["00 kernel_info_request"][1:]
    head = b'{"msg_id":"a","msg_type":"b"}'
    seeds["short"] = pack(1, [b"<IDS|MSG>", b"", head, b"{}", b"{}", b"{}"])
    seeds["one too few"] = pack(1, [b"<IDS|MSG>", b"", head, b"{}", b"{}"])
    seeds["nul and surrogates"] = pack(
        1, [b"i", b"<IDS|MSG>", b"s", head, b"{}", b"{}", rb'{"a\u0000":"\ud800\udc00\udcff"}']
    )
    return seeds


def zmtp() -> dict[str, bytes]:
    def frame(data: bytes, flags: int = 0) -> bytes:
        if len(data) > 255 or flags & 2:
            return struct.pack(">BQ", flags | 2, len(data)) + data
        return bytes([flags, len(data)]) + data

    ready = frame(b"\x05READY\x0bSocket-Type\0\0\0\x04XPUB", 4)
    greeting = b"\xff" + bytes(8) + b"\x7f\3\1NULL".ljust(55, b"\0")
    more = b"".join(frame(b"x", 1) for _ in range(70))
    return {
        "from the greeting on": b"\0" + greeting + ready + frame(b"a", 1) + frame(b"b"),
        "no greeting": b"\0HTTP/1.1 200 OK\r\n\r\n",
        "messages": b"\1" + frame(b"one") + frame(b"") + frame(b"t" * 256, 1) + frame(b"two"),
        "too many frames": b"\1" + more + frame(b"end") + frame(b"next"),
        "too many bytes": b"\1" + frame(b"x" * 200, 1) + frame(b"y" * 200) + frame(b"next"),
        "announced only": b"\1\2" + b"\x7f" + b"\xff" * 7 + b"some",
        "commands": b"\1" + frame(b"\4PING\0\1", 4) + frame(b"a", 1) + frame(b"\4PING", 4),
        "unknown flags": b"\1" + frame(b"a", 8),
    }


JSON = {
    "numbers": b'[0,-1,1.5e300,9223372036854775807,-0.0,1E-5,true,false,null,"",{},[]]',
    "escapes": rb'"\"\\\/\b\f\n\r\t\u00e9\u0000\ud83d\udc0d\ud800x\udc00\u12"',
    "raw bytes": b'{"a\xff":"\xed\xa0\x80\xc3\xa9\xf0\x9f\x90\x8d\xf0\x9f"}',
    "nested": b"[" * 40 + b"]" * 40,
    "too deep": b"[" * 2100,
    "text": b'{"a":"\xe2\x82\xac","a":2}',
    "cut": b'{"a":[1,2,{"b":"c',
}


TEXT_FILE = "Größe \u20ac \U0001f600\r\n" * 3
CODING = {
    "utf-8": b"\0" + TEXT_FILE.encode(),
    "utf-8 with a mark": b"\1" + TEXT_FILE.encode("utf-8-sig"),
    "utf-16": b"\2" + TEXT_FILE.encode("utf-16"),
    "utf-16 be": b"\3\xfe\xff" + TEXT_FILE.encode("utf-16-be"),
    "utf-16 without a mark": b"\0" + TEXT_FILE[:6].encode("utf-16-le") * 4,
    "utf-32": b"\0" + TEXT_FILE.encode("utf-32"),
    "windows": b"\0" + TEXT_FILE[:8].encode("cp1252"),
    "halves": b"\0\xff\xfe\x3d\xd8x\0\x00\xde\x3d\xd8\x00\xde\x3d",
    "cut": b"\0caf\xe2\x82",
    "binary": b"\0\x7fELF\2\1\1\0",
}


def rpc() -> dict[str, bytes]:
    def post(headers: list[str], **message: object) -> bytes:
        return "\n".join([*headers, json.dumps({"jsonrpc": "2.0", **message})]).encode()

    none = ["", "", ""]
    meta = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}
    call = {"name": "run_python", "arguments": {"code": "1 + 1"}}
    version, method = "2026-07-28", "tools/call"
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x"}}
    new = {"id": 3, "method": method, "params": {**call, "_meta": meta}}
    coded = "=?base64?cnVuX3B5dGhvbg==?="
    return {
        "initialize": post(none, id=1, method="initialize", params=start),
        "notification": post(none, method="notifications/initialized"),
        "call": post(["2025-06-18", "", ""], id="a", method=method, params=call),
        "stateless": post([version, method, "run_python"], **new),
        "encoded name": post([version, method, coded], **new),
        "header mismatch": post([version, "tools/list", ""], **new),
        "another method": post([version, "tools/list", "run_python"], **new),
        "no such method": post([version, "x", ""], id=1, method="x", params={"_meta": meta}),
        "dropped": post([version, "", ""], method="x", params={"_meta": meta}),
        "too new": post(
            ["2027-01-01", "", ""],
            id=1,
            method="x",
            params={"_meta": {META + "protocolVersion": "2027-01-01"}},
        ),
        "too new in all": post(
            ["2027-01-01", method, "run_python"],
            id=1,
            method=method,
            params={**call, "_meta": {**meta, META + "protocolVersion": "2027-01-01"}},
        ),
        "response": post(none, id=4, result={}),
        "error": post(none, id=4, error={"code": -32000, "message": "no"}),
        "wrong id": post(none, id=[1], method="ping"),
        "wrong params": post(none, id=1, method="ping", params=[1]),
        "not an object": b"\n\n\n[1]",
    }


DECHUNK = {
    "two chunks": b"\x015\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n",
    "trailers": b"\x053\nabc\n0 \r\nA: b\r\nC: d\r\n\r\nPOST /",
    "hex": b"\x091A\r\nabcdefghijklmnopqrstuvwxyz\r\n000\r\n\r\n",
    "too large": b"\x02ffffffff\r\n",
    "bad size": b"\x02xyz\r\n",
    "cut": b"\x03a\r\n12345",
}


def gate() -> dict[str, bytes]:
    names = ["localhost:8000", "127.0.0.1", "127.1", "[::1]:80", "vivarium", "evil.example"]
    names += ["0x7f000001", "2130706433", "a.example:443", "[fd00::5]:1", "10.0.0.5", "localhost."]
    names += ["null", "http://localhost", "user@localhost", "a.example.", ":80", "[::ffff:1.2.3.4]"]
    names += ["a.ex", "a.example.evil", "xa.example", "b.example", "10.0.0.50"]
    listen = b"10.0.0.5\na.example, b.example:8080 [fd00::5]\n"
    seeds = {f"{i:02}": listen + name.encode() for i, name in enumerate(names)}
    return seeds | {"ipv6 listen": b"fd00::5\n\n[fd00::5]:80", "empty": b"\n\n"}


TEXT = {
    "words": "\7h\u00e9llo \u20ac \U0001f40d \u202e\u2028\x85\r\n\t\0".encode(),
    "broken": b"\5a\xff\xed\xa0\x80\xc0\xaf\xf4\x90\x80\x80\xe2\x82\xf0\x9f\x90",
    "colours": b"\3\x1b[0;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\a\x1b(B.\x1b",
    "cut sequences": b"\3\x1b[1;\xc3\xa9\x1b\x1b[\x1b\xc3\xa9\x1b]0;title\nx\x1b]8",
}
CLIP = {
    "short": b"\x10\0\x05hello\n",
    "long lines": b"\x40\xff\x0912345678\n\xe2\x82\xac\xf0\x9f\x90\x8d",
    "many small pieces": b"\1\x0f\0" + b"0123456789" * 50,
    "exactly the limit": b"\x63\x0a\xff" + b"x" * 100,
    "colours": b"\x20\x7f\x03\x1b[0;31mred\x1b[0m ",
    "a colour where the head ends": b"\x20\0\xff" + b"x" * 997 + b"\x1b[0;31mred",
}


def outputs() -> dict[str, bytes]:
    def line(kind: str, metadata: object = None, **content: object) -> bytes:
        return json.dumps({"type": kind, "content": content, "metadata": metadata}).encode()

    def lines(*parts: bytes) -> bytes:
        return b"\n".join(parts)

    def stream(name: str, text: str) -> bytes:
        return line("stream", name=name, text=text)

    plain, png = {"text/plain": "2"}, {"image/png": "iVBORw0K\nGgo=", "text/plain": "<Figure>"}
    error = {"ename": "ValueError", "evalue": "no", "traceback": ["\x1b[31mTr", "a\n", 3]}
    summary = {"vivarium": {"v": 1, "vars": []}}
    return {
        "whole call": lines(
            line("status", execution_state="busy"),
            stream("stdout", "a\n"),
            stream("stderr", "b" * 1500),
            line("execute_result", data=plain, execution_count=1),
            line("execute_reply", summary, status="ok", execution_count=1),
            line("status", execution_state="idle"),
        ),
        "pictures": lines(*[line("display_data", data=png)] * 34),
        "bad picture": line("display_data", data={"image/png": "!!"}),
        "updates": lines(stream("stdout", "x"), line("update_display_data", data=plain)),
        "updates in place": lines(
            line("display_data", data=plain, transient={"display_id": "a"}),
            stream("stdout", "x"),
            line("update_display_data", data=png, transient={"display_id": "a"}),
            line("update_display_data", data=plain, transient={"display_id": "a"}),
            line("clear_output", wait=True),
            line("display_data", data=png, transient={"display_id": "b"}),
            line("clear_output", wait=False),
        ),
        "bars": lines(stream("stdout", "1\n2\x1b[A\r\x1b[K"), stream("stderr", "\r5%\b\x1b[9")),
        "error": lines(line("error", **error), line("execute_reply", status="error", **error)),
        "error in the reply only": line("execute_reply", status="error", **error),
        "aborted": line("execute_reply", {"vivarium": 3}, status="aborted", execution_count="x"),
        "wrong types": lines(
            line("stream", name=1, text=[2]),
            line("display_data", data=[1]),
            line("error", traceback={"a": 1}, ename=None),
            b'{"type":"stream","content":null}',
            b"[]",
        ),
    }


SESSION = {
    "guess": b"\0A" + b"A" * 67,
    "padded": b"\x42=" + b"A" * 66 + b"==",
    "empty": b"\3x",
}


def png(width: int, height: int, depth: int, kind: int, *extra: bytes, lace: int = 0) -> bytes:
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]

    def chunk(name: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    def rows(columns: int, lines: int) -> bytes:
        size = (columns * depth * channels + 7) // 8
        return b"".join(
            bytes([y % 5]) + bytes((x * y + x) & 255 for x in range(size)) for y in range(lines)
        )

    raw = rows(width, height)
    if lace:  # the seven passes of Adam7: start and step, across and down
        passes = ["0808", "4808", "0448", "2404", "0224", "1202", "0112"]
        grid = [[int(digit) for digit in one] for one in passes]
        sizes = [(-(-(width - x) // dx), -(-(height - y) // dy)) for x, dx, y, dy in grid]
        raw = b"".join(rows(w, h) for w, h in sizes if w > 0 and h > 0)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, lace)
    parts = [(part[:4], part[4:]) for part in extra]
    body = [(b"IHDR", header), *parts, (b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*one) for one in body)


def image() -> dict[str, bytes]:
    palette = b"PLTE" + bytes(range(12))
    seeds = {
        "gray 1": png(40, 9, 1, 0),
        "gray 16 clear": png(20, 20, 16, 0, b"tRNS\0\1"),
        "rgb 8": png(30, 30, 8, 2, b"gAMA" + struct.pack(">I", 100000)),
        "rgb 16": png(110, 5, 16, 2),
        "palette": png(33, 7, 2, 3, palette, b"tRNS\0\x80"),
        "palette interlaced": png(13, 13, 4, 3, palette, lace=1),
        "gray alpha": png(5, 150, 8, 4),
        "rgba": png(105, 6, 8, 6),
        "rgba interlaced": png(21, 5, 16, 6, lace=1),
        "comments": png(8, 8, 8, 2, b"tEXtkey\0text", b"zTXtkey\0\0x", b"sRGB\0", b"viVAx"),
        "over the limit": png(1, 1, 8, 0)[:16] + struct.pack(">II", 9000, 1) + b"\x08" * 9,
        "cut": png(30, 30, 8, 2)[:90],
    }
    wrong = bytearray(seeds["rgb 8"])
    wrong[29] ^= 1
    # Two bytes more are other limits; an odd last one has the checksums mended.
    mended = {f"{name}, mended": data + b"\x20\xff" for name, data in seeds.items()}
    return {**seeds, "wrong checksum": bytes(wrong), **mended, "other": b"GIF89a"}


ASKS = {
    "answered": b'{"name":"t","arguments":{"a":1},"inputResponses":{"confirm":{"action":"accept",'
    b'"content":{"n":1}}},"schema":{"properties":{"n":{"type":"integer"}},"required":["n"]}}\n',
    "declined": b'{"inputResponses":{"confirm":{"action":"decline"}}}\n',
    "changed": b'{"name":"t"}\n\x05A\x40B',
    "forged": b'{"name":"t","requestState":"AAAA"}\n',
    "no object": b'{"inputResponses":[1],"requestState":5}\n',
}
PROMPTS = {
    "explore": b'{"name":"explore_file","arguments":{"path":"a.csv"}}',
    "clean": b'{"name":"clean_table","arguments":{"table":"df","purpose":"x"}}',
    "chart": b'{"name":"chart_column","arguments":{"table":"df","column":"c","by":"d"}}',
    "asks": b'{"name":"test_input_required_result_prompt","inputResponses":{"user_context":'
    b'{"action":"accept","content":{"context":"c"}}}}',
    "embeds": b'{"name":"test_prompt_with_embedded_resource","arguments":{"resourceUri":"x:y"}}',
    "completes": b'{"ref":{"type":"ref/prompt","name":"chart_column"},"argument":{"name":"column",'
    b'"value":"a"},"context":{"arguments":{"table":"df"}}}',
    "completes a path": b'{"ref":{"type":"ref/resource","uri":"workspace:///{+path}"},'
    b'"argument":{"name":"path","value":"a"}}',
    "missing": b'{"name":"explore_file","cursor":"x"}',
}
# Steps of fuzz_stream.c: what, and for whom in the upper half of the byte.
STREAMS = {
    "read to its end": bytes([0x00, 0x02, 1, 0x03, 9, 0x04]),
    "left and resumed": bytes([0x00, 0x02, 1, 0x07, 0, 0x03, 9, 0x08, 0, 99, 0, 0x04]),
    "resumed when over": bytes([0x00, 0x03, 9, 0x04, 0x08, 0, 99, 0, 0x08, 1, 99, 0]),
    "not read": bytes([0x00, 0x06, 0, *[0x02, 255] * 8, 0x03, 255, 0x06, 0, 0x04]),
    "away for long": bytes([0x00, 0x05, *[0x02, 255] * 8, 0x04, 0x0E, 0x08, 0, 99, 0]),
    "forged": bytes([0x10, 0x13, 5, 0x58, 0, 99, 0, 0x18, 0, 3, 65, 0x18, 9, 0, 0]),
    "standing": bytes([0x0A, 0x0B, 0x0A, 0x0C, 0x07, 1, 0x07, 0, 0x0B, 0x0A, 0x08, 0, 99, 0]),
    "many kept": bytes([0x00, 0x03, 255, 0x04] * 12 + [0x08, 0, 99, 0, 0x4D, 0x0D]),
    "disconnected": bytes([0x00, 0x05, 0x03, 4, 0x08, 0, 99, 0, 0x03, 4, 0x04]),
    "not read and told": bytes([0x00, 0x05, 0x03, 5, 0x04, *[0x0F] * 3, 0x08, 0, 99, 0, 0x0F]),
    "forgotten and told": bytes([0x00, 0x05, 0x03, 5, 0x04, 0x0E, 0x0F, 0x0F]),
}


def http() -> dict[str, bytes]:
    """0xFE: a piece ends; 0xFF: the connection.  $S: a session; $E: the last event's id."""

    def head(method: str, *lines: str, path: str = "/mcp") -> bytes:
        first = (f"{method} {path} HTTP/1.1", "Host: localhost")
        return "\r\n".join((*first, *lines, "", "")).encode()

    def message(method: str, **more: object) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, **more}).encode()

    def post(body: bytes, *lines: str, path: str = "/mcp") -> bytes:
        kind = ("Content-Type: application/json", "Accept: application/json, text/event-stream")
        return head("POST", *kind, *lines, f"Content-Length: {len(body)}", path=path) + body

    ours, version = "Mcp-Session-Id: $S", "MCP-Protocol-Version: 2026-07-28"
    stream = "Accept: text/event-stream"
    chunked = ("Content-Type: application/json", "Transfer-Encoding: chunked", ours)
    start = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x"}}
    meta = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}
    call = {"name": "run_python", "arguments": {"code": "1"}}
    ping, body = message("ping"), message("tools/list")
    standing = head("GET", stream, ours)
    again = head("GET", stream, ours, "Last-Event-ID: $E")
    new = ("Mcp-Method: tools/call", "Mcp-Name: run_python", version)
    # The length of a session that stands for "$S" is not that of "$S": none is in a body.
    return {
        "initialize": post(message("initialize", params=start)),
        "two requests": post(ping, ours) + post(body, ours),
        "a body in pieces": post(ping, ours).replace(b"ping", b"pi\xfeng"),
        "in chunks": head("POST", *chunked) + b"%x\r\n%s\r\n0\r\n\r\n" % (len(ping), ping),
        "chunks cut": head("POST", *chunked) + b'5\xfe\r\n{"js\r\n3\xff',
        "half a body": post(ping, ours)[:-9],
        "continue": post(ping, ours, "Expect: 100-continue").replace(b"\r\n\r\n", b"\r\n\r\n\xfe"),
        "two paths": b"DELETE \r\nGET /mcp \r\n\r\n",
        "two lengths": post(ping, ours, "Content-Length: 3"),
        "batch": post(b"[" + ping + b"," + ping + b"]", ours),
        "stateless": post(message("tools/call", params={**call, "_meta": meta}), *new),
        "listen": post(message("subscriptions/listen", params={"_meta": meta}), version),
        "standing": standing + b"\xfe\xfe\xfe\xff" + again + b"\xfe\xff" + again,
        "replay of a made-up id": standing + b"\xfe\xff" + again.replace(b"$E", b"$E_eA") + b"\xff",
        "replay of none": head("GET", stream, ours, "Last-Event-ID: s00_1"),
        "delete": standing + b"\xff" + head("DELETE", ours) + again,
        "pair": head("GET", stream, path="/sse") + b"\xfe\xff" + post(ping, path="/sse?session=x"),
        "upgrade": head("GET", "Upgrade: websocket", "Connection: Upgrade"),
        "health": head("HEAD") + head("GET", path="/.well-known/x") + b"\0\1",
    }


def websocket() -> dict[str, bytes]:
    def frame(data: bytes, first: int = 0x81, *, cut: bool = False) -> bytes:
        return bytes([first, len(data) | 128 * cut]) + data

    def text(message: object) -> bytes:
        data = json.dumps(message, separators=(",", ":")).encode()
        parts = [data[at : at + 125] for at in range(0, len(data), 125)]
        flags = [0x01] + [0x00] * (len(parts) - 1)
        flags[-1] |= 0x80
        return b"".join(frame(part, flag) for part, flag in zip(parts, flags, strict=True))

    start = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x"}}
    begin = text({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start})
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    call = {"name": "run_python", "arguments": {"code": "1 + 1"}}
    one = json.dumps(ping, separators=(",", ":")).encode()
    return {
        "before initialize": text(ping) + text([ping]),
        "conversation": begin + text(ping) + text({**ping, "method": "tools/list"}),
        "call": begin + text({**ping, "method": "tools/call", "params": call}),
        "batch": begin + text([ping, {**ping, "id": "x"}, 3]),
        "fragments of a byte": frame(b"{", 1) + frame(b"", 0) + frame(b"}", 0x80) + text(ping),
        "pings between": frame(b"[1", 1) + frame(b"p", 0x89, cut=True) + frame(b"]", 0x80),
        "pieces": frame(one, cut=True) * 2,
        "binary": frame(one, 0x82),
        "reserved": frame(one, 0xC1),
        "no utf-8": frame(b"\xff\xfe") + frame(one),
        "close": frame(b"\x03\xe8bye", 0x88) + frame(one),
        "bad close": frame(b"\x03", 0x88),
        "long control": frame(b"x" * 125, 0x89) + b"\xff\x89\xfe\x00\x7e",
        "continued nothing": frame(one, 0x80),
        "unmasked": b"\xff\x81" + bytes([len(one)]) + one,
        "a length of 2^63": b"\xff\x81\xff\x80" + bytes(7) + b"mask",
        "a length without need": b"\xff\x81\xff" + bytes(7) + b"\x02mask[]",
    }


def main() -> None:
    drivers = {
        "http": http(),
        "websocket": websocket(),
        "jmsg": jmsg(),
        "json": JSON,
        "rpc": rpc(),
        "dechunk": DECHUNK,
        "gate": gate(),
        "utf8": TEXT,
        "clip": CLIP,
        "outputs": outputs(),
        "session": SESSION,
        "stream": STREAMS,
        "image": image(),
        "zmtp": zmtp(),
        "coding": CODING,
        "asks": ASKS,
        "prompts": PROMPTS,
    }
    for driver, seeds in drivers.items():
        directory = HERE / "corpus" / driver
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            (directory / name.replace(" ", "-").replace(",", "")).write_bytes(data)


if __name__ == "__main__":
    main()

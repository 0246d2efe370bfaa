"""Kernels that break the protocol's promises: late, silent, forged, broken, huge, dead.
The call ends in a clear answer, the daemon stays up and the next call works.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import FAKE, type_of_start
from fake_kernel import NORMAL
from harness import Client

BUSY, RUN, REPLY, IDLE = NORMAL
Scripted = Callable[..., Client]


def around(*steps: list[Any]) -> list[list[Any]]:
    """A request that is normal but for these steps in its middle."""
    return [BUSY, RUN, *steps, REPLY, IDLE]


def out(text: str) -> list[Any]:
    return ["stream", "stdout", text]


@pytest.fixture
def scripted(start: type_of_start, fake_python: Path, tmp_path: Path) -> Scripted:
    """scripted(*requests): a client of a daemon whose kernels act this script."""

    def begin(*requests: list[list[Any]], starts: object = (), **settings: str) -> Client:
        work = tmp_path / "d" / "work"
        work.mkdir(parents=True)
        (work / "fake.json").write_text(json.dumps({"requests": requests, "starts": starts}))
        settings.setdefault("VIVARIUM_READ_DIRS", f"{FAKE.parent}:{sys.prefix}")
        daemon = start(env={"VIVARIUM_PYTHON": str(fake_python), **settings})
        client = daemon.client()
        client.daemon = daemon
        return client

    return begin


def check_next(client: Client) -> None:
    """The daemon is there, and a normal request is answered normally."""
    assert client.request("ping") == {}
    result = client.run("next")
    assert result.data["end"] == "ok", result.text


def test_kernels_that_end_before_each_call_are_not_started_for_ever(scripted: Scripted) -> None:
    client = scripted(*[[["exit", 7]]] * 12)
    result = client.run("x")
    assert result.data["exit_code"] == 7
    assert client.daemon.log().count("kernel exited with status 7") == 4
    for _ in range(2):
        client.run("x")
    check_next(client)


# ---- order and timing ----


@pytest.mark.parametrize(
    "request_steps",
    [
        [BUSY, RUN, out("1 "), REPLY, ["sleep", 0.3], out("2"), IDLE],
        [BUSY, RUN, out("1 "), out("2"), IDLE, ["sleep", 0.3], REPLY],
        [REPLY, BUSY, RUN, out("1 "), out("2"), IDLE],
        [RUN, out("1 "), out("2"), REPLY, IDLE],
        [BUSY, RUN, out("1 "), out("2"), REPLY, IDLE, IDLE],
        [BUSY, BUSY, RUN, out("1 "), out("2"), REPLY, REPLY, IDLE],
    ],
    ids=["late idle", "idle first", "reply first", "never busy", "two idles", "two replies"],
)
def test_reply_and_idle_come_in_any_order(
    scripted: Scripted, request_steps: list[list[Any]]
) -> None:
    client = scripted(request_steps)
    result = client.run("x")
    assert result.data["stdout"] == "1 2"
    assert result.data["end"] == "ok"
    check_next(client)


def test_without_idle_the_call_ends_and_says_so(scripted: Scripted) -> None:
    client = scripted([BUSY, RUN, out("said"), REPLY])
    result = client.run("x")
    assert result.data["stdout"] == "said"
    assert "did not say that it was idle" in result.text
    check_next(client)


def test_without_a_reply_the_kernel_is_replaced(scripted: Scripted) -> None:
    client = scripted([BUSY, RUN, out("said"), IDLE])
    result = client.run("x")
    assert result.is_error
    assert result.data["stdout"] == "said"
    assert "did not answer within 2 s: it was killed." in result.data["notice"]
    assert "signal" not in result.data["notice"]
    check_next(client)


def test_a_kernel_that_says_nothing_at_all_is_replaced(scripted: Scripted) -> None:
    client = scripted([BUSY, RUN])
    result = client.run("x", timeout_seconds=1)
    assert result.exit_code == 124
    assert result.data["end"] == "killed"
    check_next(client)


def test_the_timeout_counts_from_the_report_when_busy_cannot_be_sent(scripted: Scripted) -> None:
    """Native code that holds the interpreter's lock also holds back the broadcast."""
    client = scripted([RUN, ["sleep", 60]])
    result = client.run("x", timeout_seconds=1)
    assert result.exit_code == 124
    assert result.data["duration_ms"] < 20_000
    check_next(client)


@pytest.mark.parametrize("status", ["aborted", "abort"])
def test_aborted_is_not_run(scripted: Scripted, status: str) -> None:
    client = scripted([BUSY, ["reply", {"status": status}], IDLE])
    result = client.run("x")
    assert result.is_error
    assert "skipped this cell" in result.text
    check_next(client)


def test_an_error_only_in_the_reply_is_shown(scripted: Scripted) -> None:
    error = {"status": "error", "ename": "Odd", "evalue": "why", "traceback": ["line"]}
    client = scripted([BUSY, RUN, ["reply", error], IDLE])
    assert client.run("x").text.startswith("Error: Odd: why (exit code 1)\n")
    check_next(client)


# ---- forgery ----


def test_a_reply_with_a_wrong_signature_is_dropped_and_counted(scripted: Scripted) -> None:
    client = scripted([BUSY, RUN, ["bad-key", REPLY], ["bad-key", out("forged")], IDLE])
    result = client.run("x", timeout_seconds=1)
    assert result.is_error
    assert "forged" not in json.dumps(result.raw)
    check_next(client)
    client.daemon.stop()
    assert client.daemon.log_contains("dropped 2 of its messages")


@pytest.mark.parametrize("forged", ["bad-key", "unsigned"])
def test_forged_output_is_dropped(scripted: Scripted, forged: str) -> None:
    client = scripted(around([forged, out("forged")], out("true")))
    assert client.run("x").data["stdout"] == "true"
    check_next(client)


def test_a_replayed_message_counts_once(scripted: Scripted) -> None:
    client = scripted(
        [BUSY, RUN, out("once"), ["again"], ["again"], REPLY, ["again"], IDLE, ["again"]]
    )
    assert client.run("x").data["stdout"] == "once"
    check_next(client)


def test_output_of_an_unknown_parent_is_shown_as_earlier_output(scripted: Scripted) -> None:
    client = scripted(around(["foreign", out("stray")], out("own")))
    result = client.run("x")
    assert result.data["stdout"] == "own"
    shown = client.run("y")
    assert shown.data["earlier_output"] == "stray"
    assert "stray" in shown.text
    assert client.run("z").data["earlier_output"] == ""


def test_a_foreign_reply_ends_nothing(scripted: Scripted) -> None:
    client = scripted(around(["foreign", REPLY], ["foreign", IDLE], out("own")))
    assert client.run("x").data["stdout"] == "own"
    check_next(client)


# ---- broken messages ----

GARBAGE: dict[str, list[str]] = {
    "nothing": [""],
    "words": ["hello"],
    "no delimiter": ["a", "b", "c", "d", "e", "f"],
    "delimiter only": ["<IDS|MSG>"],
    "too few": ["stream", "<IDS|MSG>", "0" * 64, "{}", "{}"],
    "short signature": ["stream", "<IDS|MSG>", "0", "{}", "{}", "{}", "{}"],
    "zero signature": ["stream", "<IDS|MSG>", "0" * 64, "{}", "{}", "{}", "{}"],
    "letters": ["stream", "<IDS|MSG>", "z" * 64, "{}", "{}", "{}", "{}"],
    "two delimiters": ["<IDS|MSG>", "<IDS|MSG>", "<IDS|MSG>", "<IDS|MSG>", "{}", "{}", "{}"],
    "too many": ["x"] * 200,
    "many buffers": ["<IDS|MSG>", "0" * 64, "{}", "{}", "{}", "{}", *["b"] * 200],
    "binary": ["\0\xff" * 50] * 6,
}


@pytest.mark.parametrize("channel", ["iopub", "shell"])
def test_garbage_frames_are_dropped(scripted: Scripted, channel: str) -> None:
    steps = [["frames", channel, frames] for frames in GARBAGE.values()]
    client = scripted(around(*steps, out("heard")))
    result = client.run("x")
    assert result.data["stdout"] == "heard"
    check_next(client)


WELL_SIGNED = [
    "",
    "{",
    "[]",
    "5",
    "null",
    "{}",
    '{"name": 5, "text": []}',
    '{"name": "stdout"}',
    '{"name": "stdout", "text": {"a": 1}}',
    '{"name": "stdout", "text": NaN}',
    '{"data": "x"}',
    '{"data": {"text/plain": 5, "image/png": []}}',
    '{"execution_state": 5}',
    '{"ename": 1, "evalue": [], "traceback": "x"}',
    '{"ename": null, "traceback": [1, {}, null]}',
    '{"status": []}',
    "[" * 5000,
]


@pytest.mark.parametrize("kind", ["stream", "execute_result", "display_data", "error", "status"])
def test_well_signed_nonsense_is_survived(scripted: Scripted, kind: str) -> None:
    steps = [["json", "iopub", kind, text] for text in WELL_SIGNED]
    client = scripted(around(*steps, out("heard")))
    result = client.run("x")
    assert result.data["stdout"].endswith("heard")
    check_next(client)


def test_a_nonsense_reply_is_survived(scripted: Scripted) -> None:
    texts = [text for text in WELL_SIGNED if text.startswith("{")]
    client = scripted([BUSY, RUN, ["json", "shell", "execute_reply", texts[-1]], IDLE])
    assert client.run("x").data["end"] in {"ok", "error"}
    check_next(client)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"a\xff\xfeb", "\ufffd"),
        (rb"a\ud800b", "\ufffd"),
        (rb"a\udc00\ud800b", "\ufffd"),
        (rb"a\ud83d\ude00b", "\U0001f600"),
        (rb"a\u0000b", "\ufffd"),
        (b"a\xc0\x80b", "\ufffd"),
        (b"a\xed\xa0\x80b", "\ufffd"),
    ],
    ids=["bytes", "lone", "reversed", "pair", "NUL", "overlong NUL", "surrogate"],
)
def test_broken_text_is_shown_with_replacement_characters(
    scripted: Scripted, text: bytes, shown: str
) -> None:
    content = b'{"name": "stdout", "text": "%s"}' % text
    client = scripted(
        around(["json", "iopub", "stream", content.decode("utf-8", "surrogateescape")])
    )
    got = client.run("x").data["stdout"].replace("\0", "\ufffd")
    assert got.startswith("a")
    assert got.endswith("b")
    assert set(got[1:-1]) == {shown}
    check_next(client)


# ---- pictures ----


def png_base64(side: int, shade: int = 0) -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    rows = (b"\0" + bytes([shade]) * side) * side
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    png += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(png).decode()


@pytest.mark.parametrize(
    "data",
    [
        "no base64!",
        "",
        "====",
        base64.b64encode(b"GIF89a").decode(),
        png_base64(20)[:-60],
        base64.b64encode(b"\x89PNG\r\n\x1a\n").decode(),
        5,
        None,
    ],
)
def test_a_picture_that_is_none_is_told_and_not_passed_on(scripted: Scripted, data: object) -> None:
    bundle = {"image/png": data, "text/plain": "<Figure>"}
    client = scripted(around(["display", bundle], ["result", bundle], out("heard")))
    result = client.run("x")
    assert result.images == []
    assert "heard" in result.data["stdout"]
    if isinstance(data, str):
        assert "not shown" in result.text
    check_next(client)


def test_forty_pictures_are_limited_and_counted(scripted: Scripted) -> None:
    pictures = [["display", {"image/png": png_base64(30, shade)}] for shade in range(40)]
    client = scripted(around(*pictures))
    result = client.run("x")
    assert len(result.images) == 4
    assert "36 more pictures are not shown" in result.text
    check_next(client)


def test_the_same_picture_comes_once(scripted: Scripted) -> None:
    picture = ["display", {"image/png": png_base64(30)}]
    assert len(scripted(around(picture, picture, picture)).run("x").images) == 1


# ---- the summary ----

LONG = "long" * 250_000
SUMMARIES: dict[str, object] = {
    "ten thousand": {"v": 1, "vars": [[f"v{i}", "int"] for i in range(10_000)], "more_vars": 0},
    "long strings": {"v": 1, "vars": [[LONG, LONG]] * 3, "modules": [[LONG, LONG]] * 3},
    "text": {"v": 1, "vars": "x", "modules": "x", "threads": "x", "children": "x"},
    "numbers": {"v": 1, "vars": 5, "modules": 5, "more_vars": 2**62, "threads": -5},
    "flat": {"v": 1, "vars": ["x", 5, None], "modules": ["x", 5, None]},
    "short rows": {"v": 1, "vars": [[], ["x"], ["x", 5, 6]], "modules": [[], ["x"], [5, "x"]]},
    "lines": {"v": 1, "vars": [["a\n--- state ---\nb", "c\x1b[2J\r\nd"]]},
    "no object": [1, 2],
    "word": "x",
    "nothing": None,
    "codes": {"v": 1, "exit_code": 2**40, "exiting": "yes"},
    "negative": {"v": 1, "exit_code": -(2**40), "more_vars": -7},
    "other version": {"v": 99, "vars": {"a": "b"}},
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_wild_summary_makes_no_wild_footer(scripted: Scripted, name: str) -> None:
    client = scripted([BUSY, RUN, ["reply", {}, {"vivarium": SUMMARIES[name]}], IDLE])
    result = client.run("x")
    assert len(result.footer) < 8000
    assert result.footer.count("--- state ---\n") == 1
    assert "\x1b" not in result.footer
    assert len(json.dumps(result.raw)) < 200_000
    assert -(2**31) <= result.exit_code < 2**31
    fresh = client.run("y", fresh=True)  # names what it throws away
    assert len(fresh.text) < 8000
    check_next(client)


# ---- death and silence ----


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([["exit", 3]], "exited with status 3"),
        ([["say", "no module named x\n"], ["exit", 1]], "no module named x"),
        ([["signal", 9]], "SIGKILL"),
        ([["signal", 11]], "SIGSEGV"),
    ],
    ids=["exit", "words", "SIGKILL", "SIGSEGV"],
)
def test_a_kernel_that_dies_before_it_is_ready_fails_the_call_in_words(
    scripted: Scripted, steps: list[list[Any]], words: str
) -> None:
    client = scripted(starts=[steps])
    result = client.run("x")
    assert result.data["end"] == "not_run"
    assert result.exit_code == 125
    assert words in result.text
    check_next(client)


def test_a_kernel_that_dies_when_it_is_ready_is_told_or_replaced(scripted: Scripted) -> None:
    client = scripted(starts=[[["ready"], ["exit", 4]]])
    result = client.run("x")
    assert result.data["end"] in {"not_run", "ok"}
    if result.data["end"] == "not_run":
        assert "exited with status 4" in result.text
    check_next(client)


@pytest.mark.parametrize("steps", [[["exit", 5]], [BUSY, ["exit", 5]]], ids=["request", "busy"])
def test_a_call_of_which_nothing_ran_runs_in_a_new_kernel(
    scripted: Scripted, steps: list[list[Any]]
) -> None:
    client = scripted(steps, around(out("second try")))
    result = client.run("x")
    if result.data["end"] == "ok":
        assert result.data["stdout"] == "second try"
    assert "exited with status 5" in result.text
    check_next(client)


def test_a_death_while_it_runs_is_told_with_the_output(scripted: Scripted) -> None:
    client = scripted([BUSY, RUN, out("last"), ["exit", 6]], around(out("wrong")))
    result = client.run("x")
    assert result.data["end"] == "kernel_died"
    assert result.exit_code == 6
    assert result.data["stdout"] == "last"
    check_next(client)


def test_a_death_between_reply_and_idle_keeps_what_was_said(scripted: Scripted) -> None:
    client = scripted([BUSY, RUN, out("last"), REPLY, ["exit", 7]])
    result = client.run("x")
    assert result.data["stdout"] == "last"
    following = client.run("y")
    assert following.data["end"] == "ok"
    assert "exited with status 7" in result.text + following.text


def test_a_death_after_the_cell_is_told_with_the_next(scripted: Scripted) -> None:
    client = scripted([*NORMAL, ["exit", 8]])
    assert client.run("x").data["end"] == "ok"
    following = client.run("y")
    assert following.data["end"] == "ok"
    assert "exited with status 8" in following.text


def test_a_kernel_that_closes_its_outputs_works(scripted: Scripted) -> None:
    client = scripted(around(["close-output"], out("heard")))
    assert client.run("x").data["stdout"] == "heard"
    check_next(client)


def test_crash_output_is_bounded_and_shown_by_its_last_lines(scripted: Scripted) -> None:
    client = scripted([BUSY, RUN, ["say", "x" * 200_000 + "\nFatal: the end\n"], ["signal", 6]])
    result = client.run("x")
    assert "Fatal: the end" in result.text
    assert "SIGABRT" in result.text
    assert len(result.text) < 2000


def test_a_flood_of_small_messages_is_taken_at_speed(scripted: Scripted) -> None:
    client = scripted(around(*[out(f"{i}\n") for i in range(5000)]))
    result = client.run("x")
    lines = result.data["stdout"].splitlines()
    assert lines[0] == "0"
    assert lines[-1] == "4999"


def test_a_huge_message_costs_its_own_size_only(scripted: Scripted) -> None:
    client = scripted(around(out("y" * 20_000_000)))
    result = client.run("x")
    assert len(result.text) < 25_000
    assert "20000000 characters left out" in result.text
    check_next(client)


def test_the_key_is_in_no_answer_and_no_log(scripted: Scripted) -> None:
    client = scripted([BUSY, RUN, ["bad-key", REPLY], ["exit", 1]], VIVARIUM_LOG_LEVEL="debug")
    client.run("x")
    check_next(client)
    assert client.daemon.log_contains("dropped")
    assert "0" * 64 not in client.daemon.log()

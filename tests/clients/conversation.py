"""What the clients in Python share: the steps, and one line of JSON for each answer."""

import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio.to_thread


async def steps() -> AsyncIterator[dict[str, Any]]:
    """Of conversation.json, in order; before the one that CONVERSATION_PAUSE counts, waits
    for a line on standard input.
    """
    text = Path(__file__).with_name("conversation.json").read_text(encoding="utf-8")
    for number, step in enumerate(json.loads(text)["steps"]):
        if str(number) == os.environ.get("CONVERSATION_PAUSE"):
            await anyio.to_thread.run_sync(sys.stdin.readline)
        yield step


def say(**answer: object) -> None:
    """Print an answer as the test reads it."""
    print(json.dumps(answer), flush=True)


def plain(model: Any) -> Any:
    """A model of the SDK's as it was on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)

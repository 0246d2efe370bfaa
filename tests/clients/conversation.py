"""What the clients in Python share: the steps, and one line of JSON for each answer."""

import json
from pathlib import Path
from typing import Any


def steps() -> list[dict[str, Any]]:
    """Of conversation.json, in order."""
    text = Path(__file__).with_name("conversation.json").read_text(encoding="utf-8")
    found = json.loads(text)["steps"]
    assert isinstance(found, list)
    return found


def say(**answer: object) -> None:
    """Print an answer as the test reads it."""
    print(json.dumps(answer), flush=True)


def plain(model: Any) -> Any:
    """A model of the SDK's as it was on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)

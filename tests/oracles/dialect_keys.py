"""Adds one field after another to a whole history, and says of how many `tailor scan` knows the format and finds the lost result.

python3 tests/oracles/dialect_keys.py TAILOR
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

CHAT = [
    {"role": "user", "content": "list"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
    {"role": "user", "content": "well?"},
]
ANTHROPIC = [
    {"role": "user", "content": "list"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "ls", "input": {}}]},
    {"role": "user", "content": "well?"},
]
FIELDS = [
    ("openai-chat", 1, key, value)
    for key, value in {
        "reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}], "reasoning_content": "hm",
        "reasoning_items": [], "thinking": "hm", "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
        "provider_specific_fields": {}, "extra_content": {"google": {"thought_signature": "s"}}, "cache_control": {"type": "ephemeral"},
        "id": "m1", "model": "m", "timestamp": "2026-07-01T10:00:00Z", "created": 1, "created_at": 1, "createdAt": "t", "metadata": {},
        "usage": {}, "finish_reason": "tool_calls", "prefix": True, "partial": True, "weight": 1, "images": [], "refusal": None,
        "parsed": None, "logprobs": None, "name": "a", "audio": None, "function_call": None, "annotations": [], "seq": 4, "author": "x",
    }.items()
] + [("openai-chat", 0, key, value) for key, value in {"timestamp": 1, "id": "u1", "cache_control": {"type": "ephemeral"}}.items()] + [
    ("anthropic", 1, key, value)
    for key, value in {
        "timestamp": 1, "created_at": "t", "metadata": {}, "cache_control": {}, "id": "m", "model": "m", "usage": {}, "stop_reason": None,
        "container": None, "context_management": None, "provider_specific_fields": {}, "seq": 1,
    }.items()
]


def report(tailor, rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        run = subprocess.run([tailor, "scan", "--format", "json", str(path)], capture_output=True, text=True, check=False)
        return run.stdout


def main():
    tailor, right = sys.argv[1], 0
    for name, at, key, value in FIELDS:
        rows = json.loads(json.dumps(CHAT if name == "openai-chat" else ANTHROPIC))
        rows[at][key] = value
        text = report(tailor, rows)
        fine = '"P1"' in text and f'"{name}"' in text
        right += fine
        if not fine:
            print(name, rows[at]["role"], key, "not read")
    print(f"{right} of {len(FIELDS)} read, with their lost result found")


main()

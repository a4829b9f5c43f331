"""Checks and repairs sessions of AI agents, as bytes, as messages or as Arrow, in any engine that speaks Arrow.

>>> import session_tailor
>>> session_tailor.check([{"role": "tool", "tool_call_id": "x", "content": "whose?"}]).to_pylist()[0]["code"]
'P2'
"""

from ._native import Table, __version__, check, chunk, explain, mend, weigh

__all__ = ["Table", "__version__", "check", "chunk", "explain", "mend", "weigh"]

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypedDict, overload

from typing_extensions import Unpack

class ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

Arrow = ArrowArray | ArrowStream
Message = dict[str, Any]
Sessions = bytes | bytearray | str | list[Message] | Arrow
Outcome = Literal["clean", "fixed", "findings", "refused", "unreadable"]

class Options(TypedDict, total=False):
    column: str | None
    format: str | None
    profile: str | None
    select: Sequence[str] | None
    ignore: Sequence[str] | None
    allow: Sequence[str] | None
    result_chars_max: int | None
    window_tokens: int | None
    threads: int | None

__version__: str

class Table:
    @property
    def column_names(self) -> list[str]: ...
    def to_pyarrow(self) -> Any: ...
    def to_pylist(self) -> list[dict[str, Any]]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def check(sessions: Sessions, /, **options: Unpack[Options]) -> Table: ...
@overload
def mend(sessions: bytes | bytearray | str, /, **options: Unpack[Options]) -> tuple[bytes, Outcome, str | None]: ...
@overload
def mend(sessions: list[Message], /, **options: Unpack[Options]) -> tuple[list[Message], Outcome, str | None]: ...
@overload
def mend(sessions: Arrow, /, **options: Unpack[Options]) -> Table: ...
def weigh(sessions: Sessions, /, **options: Unpack[Options]) -> Table: ...
def chunk(
    sessions: Sessions,
    /,
    *,
    max_tokens: int | None = None,
    max_chars: int = 0,
    summary_chars_max: int = 100_000,
    budget_tokens: int = 0,
    **options: Unpack[Options],
) -> Table: ...
@overload
def explain(what: str, /, **options: Unpack[Options]) -> str | None: ...
@overload
def explain(what: Arrow, /, **options: Unpack[Options]) -> Table: ...

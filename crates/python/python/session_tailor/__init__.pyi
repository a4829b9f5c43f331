from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypedDict, final, overload

from typing_extensions import Unpack

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

_Arrow = _ArrowArray | _ArrowStream
_Message = dict[str, Any]

class _Dataset(Protocol):
    def with_format(self, type: str | None = None) -> Any: ...

_Sessions = bytes | bytearray | str | list[_Message] | list[list[_Message]] | _Arrow | _Dataset
_Outcome = Literal["clean", "fixed", "findings", "refused", "unreadable"]

class _Options(TypedDict, total=False):
    column: str | None
    trainer: str | None
    format: str | None
    profile: str | None
    select: Sequence[str] | None
    ignore: Sequence[str] | None
    allow: Sequence[str] | None
    result_chars_max: int | None
    window_tokens: int | None
    threads: int | None

__version__: str

@final
class Table:
    @property
    def column_names(self) -> list[str]: ...
    def to_pyarrow(self) -> Any: ...
    def to_pylist(self) -> list[dict[str, Any]]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def check(sessions: _Sessions, /, **options: Unpack[_Options]) -> Table: ...
@overload
def mend(sessions: bytes | bytearray | str, /, **options: Unpack[_Options]) -> tuple[bytes, _Outcome, str | None]: ...
@overload
def mend(sessions: list[_Message], /, **options: Unpack[_Options]) -> tuple[list[_Message], _Outcome, str | None]: ...
@overload
def mend(sessions: _Arrow | _Dataset | list[list[_Message]], /, **options: Unpack[_Options]) -> Table: ...
def weigh(sessions: _Sessions, /, **options: Unpack[_Options]) -> Table: ...
def chunk(
    sessions: _Sessions,
    /,
    *,
    max_tokens: int | None = None,
    max_chars: int = 0,
    summary_chars_max: int = 100_000,
    budget_tokens: int = 0,
    **options: Unpack[_Options],
) -> Table: ...
@overload
def explain(what: str, /, **options: Unpack[_Options]) -> str | None: ...
@overload
def explain(what: _Arrow, /, **options: Unpack[_Options]) -> Table: ...

"""Models written as GGUF with their matrices in another type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Optional

from ._library import Caught, ffi, lib, path_argument
from ._model import PathText
from ._options import options_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

__all__ = ["quantize"]


def quantize(
    path: PathText,
    to: PathText,
    type: str,
    *,
    pure: bool = False,
    overrides: Optional[Mapping[str, str]] = None,
    output_type: Optional[str] = None,
    embedding_type: Optional[str] = None,
    imatrix: Optional[PathText] = None,
    drafter: Optional[PathText] = None,
    progress: Optional[Callable[[int, int], None]] = None,
    **options: Unpack[Options],
) -> list[str]:
    """Writes a model, a published folder or a GGUF file, as a GGUF file. Returns warnings, a line each.

    type: a name of llama-quantize, such as "q4_k_m", "q8_0" or "bf16". pure: every matrix has the type; otherwise
    llama-quantize's mixture decides. overrides: types by regular expressions of tensors' names in GGUF; the first that
    matches decides. output_type, embedding_type: types of head and embeddings. imatrix: path of an importance matrix.
    drafter: the folder of a drafter for the model, which is then written instead. progress: called with the bytes done
    and in all. options: threads and pin are read.
    """
    kept: list[Any] = []

    def text(value: Optional[PathText]) -> Any:
        if value is None:
            return ffi.NULL
        kept.append(ffi.new("char[]", path_argument(value)))
        return kept[-1]

    caught = Caught()
    notes: list[str] = []

    def log(context: Any, level: int, line: Any) -> None:
        if level == lib.FR_LOG_WARN:
            notes.append(ffi.string(line).decode("utf-8", "replace"))

    def told(context: Any, done: int, total: int) -> bool:
        if progress is not None:
            progress(done, total)
        return True

    how = ffi.new("fr_quantization *")
    how.type = text(type)
    how.pure = pure
    patterns = ffi.new("char *[]", [text(f"{pattern}={value}") for pattern, value in (overrides or {}).items()])
    how.overrides = patterns
    how.override_count = len(patterns)
    how.output_type = text(output_type)
    how.embedding_type = text(embedding_type)
    how.imatrix = text(imatrix)
    how.drafter = text(drafter)
    made = options_of(options)
    lines = caught.callback("fr_log_fn", log, None)
    telling = caught.callback("fr_progress_fn", told, False)
    lib.fr_options_set_log(made, lines, ffi.NULL)
    lib.fr_options_set_progress(made, telling, ffi.NULL)
    caught.check(lib.fr_quantize(path_argument(path), path_argument(to), how, made))
    return notes

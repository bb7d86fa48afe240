"""Models, drafters, adapters, pictures, and the stores that models are found in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

from ._library import Caught, Closing, Handle, UsageError, check, ffi, lib, lines_of, path_argument
from ._options import options_of, stop_loading_at
from ._tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

__all__ = ["Adapter", "Drafter", "Estimate", "Found", "Model", "Picture", "estimate", "find", "models"]

PathText = Union[str, "os.PathLike[str]"]
_POOLINGS = ("none", "mean", "cls", "last", "rank")


class Model(Closing):
    """A target: weights, configuration and tokenizer. Any number of threads and sessions may share it."""

    def __init__(self, path: PathText, **options: Unpack[Options]) -> None:
        """Opens a model.

        path: a folder as published, a GGUF file, or the name of a model that another program has downloaded
        (forerun.find). options: those about threads, memory and files are read.
        """
        if isinstance(path, str) and not os.path.exists(path):
            path = find(path)
        self.path = os.fspath(path)
        made = options_of(options)
        caught = Caught()
        kept = stop_loading_at(caught, made)
        place = ffi.new("fr_model **")
        caught.check(lib.fr_model_open(path_argument(path), made, place))
        self._take(place[0], None, kept)

    @classmethod
    def from_bytes(cls, data: Any, name: str = "model", **options: Unpack[Options]) -> Model:
        """Opens a GGUF file that is in memory.

        data: a buffer that begins at a multiple of 32 bytes, such as mmap.mmap. It is used in place and must not
        change.
        """
        model = cls.__new__(cls)
        model.path = name
        made = options_of(options)
        caught = Caught()
        kept = stop_loading_at(caught, made)
        held = ffi.from_buffer(data)
        place = ffi.new("fr_model **")
        caught.check(lib.fr_model_open_bytes(held, len(held), os.fsencode(name), made, place))
        model._take(place[0], held, kept)
        return model

    def _take(self, pointer: Any, data: Any, kept: Any) -> None:
        self._handle = Handle(pointer, lib.fr_model_close)
        self._handle.kept.update(data=data, progress=kept)
        tokenizer = lib.fr_model_tokenizer(pointer)
        self._tokenizer = Tokenizer._of_model(self._handle, tokenizer) if tokenizer != ffi.NULL else None

    @property
    def _c(self) -> Any:
        return self._handle.pointer

    def close(self) -> None:
        """Frees the model, once nothing uses it any more."""
        if self._tokenizer is not None:
            self._tokenizer.close()
        self._handle.drop()

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's own tokenizer; InputError if it has none."""
        if self._tokenizer is None:
            check(lib.fr_decoder_new(ffi.NULL, False, ffi.new("fr_decoder **")))
        assert self._tokenizer is not None
        return self._tokenizer

    def _fact(self, name: str) -> int:
        return int(lib.fr_model_fact(self._c, getattr(lib, "FR_FACT_" + name)))

    @property
    def vocab(self) -> int:
        """Rows of the LM head, each of which gives one logit."""
        return self._fact("VOCAB")

    @property
    def hidden(self) -> int:
        """Width of a hidden row, in float32."""
        return self._fact("HIDDEN")

    @property
    def layers(self) -> int:
        """Layers of the model itself."""
        return self._fact("LAYERS")

    @property
    def mtp_layers(self) -> int:
        """Layers in its checkpoint that draft for it; Drafter(model) uses them."""
        return self._fact("MTP_LAYERS")

    @property
    def sees(self) -> bool:
        """True if the model sees pictures."""
        return self._fact("IMAGE_TOKEN") >= 0

    @property
    def window(self) -> int:
        """Positions that sliding layers look back over, 0 if no layer slides."""
        return self._fact("WINDOW")

    @property
    def context_limit(self) -> int:
        """Positions that the model was trained for, in tokens."""
        return self._fact("CONTEXT_LIMIT")

    @property
    def weight_bytes(self) -> int:
        """Bytes of the tensors that are used."""
        return self._fact("WEIGHT_BYTES")

    @property
    def pooling(self) -> str:
        """The pooling that its makers use for embeddings: mean, cls, last or rank; "none" if they don't say."""
        return _POOLINGS[self._fact("POOLING")]

    @property
    def eos(self) -> list[int]:
        """The ids that end a text."""
        ids = ffi.new("const int32_t **")
        count = lib.fr_model_eos(self._c, ids)
        return ffi.unpack(ids[0], count) if count else []

    @property
    def suppressed(self) -> list[int]:
        """The ids that the model's makers exclude from generation."""
        ids = ffi.new("const int32_t **")
        count = lib.fr_model_suppressed(self._c, ids)
        return ffi.unpack(ids[0], count) if count else []

    @property
    def isa(self) -> str:
        """The instruction set that its kernels use, such as "avx512"."""
        return str(ffi.string(lib.fr_model_isa(self._c)).decode())

    @property
    def notes(self) -> list[str]:
        """Lines about the model, such as a weight type that is slow."""
        return list(lines_of(lambda index: lib.fr_model_note(self._c, index)))

    def __repr__(self) -> str:
        return f"<forerun.Model {self.path!r}>"


class Drafter(Closing):
    """A small model, or layers, that propose ids for a target to verify. Threads and sessions may share it."""

    def __init__(self, model: Model, path: Optional[PathText] = None, **options: Unpack[Options]) -> None:
        """Opens a drafter for a target, and checks that the two fit.

        path: a folder or GGUF file; None for the MTP layers in the target's own checkpoint.
        """
        if isinstance(path, str) and not os.path.exists(path):
            path = find(path)
        made = options_of(options)
        caught = Caught()
        kept = stop_loading_at(caught, made)
        place = ffi.new("fr_drafter **")
        name = ffi.NULL if path is None else path_argument(path)
        caught.check(lib.fr_drafter_open(name, model._c, made, place))
        self._handle = Handle(place[0], lib.fr_drafter_close, model._handle)
        self._handle.kept.update(progress=kept)

    @property
    def _c(self) -> Any:
        return self._handle.pointer

    @property
    def notes(self) -> list[str]:
        """Lines about the drafter, such as a head that could be faster."""
        return list(lines_of(lambda index: lib.fr_drafter_note(self._c, index)))

    def close(self) -> None:
        """Frees the drafter, once nothing uses it any more."""
        self._handle.drop()


class Adapter(Closing):
    """Changes of a model that sessions can turn on (Session.set_adapters). Threads and sessions may share it."""

    def __init__(self, model: Model, path: PathText) -> None:
        """Opens a LoRA for a model, and checks that the two fit.

        path: a folder as peft writes it, or a GGUF file as llama.cpp's converter writes it.
        """
        place = ffi.new("fr_adapter **")
        check(lib.fr_adapter_open(path_argument(path), model._c, place))
        self._handle = Handle(place[0], lib.fr_adapter_close, model._handle)

    @classmethod
    def control_vector(cls, model: Model, path: PathText, first: int = 0, last: int = 0) -> Adapter:
        """Opens a control vector, a GGUF file as llama.cpp has it, for layers `first` to `last` (0: the last one)."""
        if first < 0 or last < 0:
            raise UsageError("layers are counted from 0")
        place = ffi.new("fr_adapter **")
        check(lib.fr_control_vector_open(path_argument(path), model._c, first, last, place))
        adapter = cls.__new__(cls)
        adapter._handle = Handle(place[0], lib.fr_adapter_close, model._handle)
        return adapter

    @property
    def _c(self) -> Any:
        return self._handle.pointer

    @property
    def rank(self) -> int:
        """The largest rank of its matrices."""
        return int(lib.fr_adapter_rank(self._c))

    @property
    def matrices(self) -> int:
        """How many matrices of the model it changes."""
        return int(lib.fr_adapter_matrices(self._c))

    def close(self) -> None:
        """Frees the adapter, once nothing uses it any more."""
        self._handle.drop()


class Picture:
    """A picture, prepared for a model that sees."""

    def __init__(self, model: Model, source: Union[PathText, bytes]) -> None:
        """source: the path of a PNG, JPEG, WebP or GIF file, or such a file's bytes."""
        place = ffi.new("fr_picture **")
        if isinstance(source, bytes):
            check(lib.fr_picture_open_bytes(source, len(source), b"picture", ffi.NULL, model._c, place))
        else:
            check(lib.fr_picture_open(path_argument(source), model._c, place))
        self._handle = Handle(place[0], lib.fr_picture_close, model._handle)

    @property
    def tokens(self) -> int:
        """Image tokens that stand for the picture in a prompt."""
        return int(lib.fr_picture_tokens(self._handle.pointer))


# --------------------------------------------------------------------------------------------------- stores and memory


@dataclass(frozen=True)
class Found:
    """A model in another program's store."""

    name: str
    """A name for forerun.find, or a path."""
    path: str
    tower: Optional[str]
    """A vision tower beside it."""
    store: str
    """Hugging Face, llama.cpp, LM Studio or ollama."""
    problem: Optional[str]
    """The reason why it can't be opened, if one is known."""
    bytes: int
    """Size of its files."""


@dataclass(frozen=True)
class Estimate:
    """Bytes of memory that a model, its drafter and an engine would take."""

    resident: int
    """Weights that must stay in memory."""
    mapped: int
    """Weights in mapped files, whose pages the system can drop."""
    kv: int
    """Keys and values of all sessions."""
    kv_least: int
    """The smallest kv_memory with which the engine can be opened."""
    states: int
    checkpoints: int
    drafting: int
    scratch: int
    total: int
    """The bytes that the option `memory` limits."""
    available: int
    """Memory that the system has for this process now."""


def _environment(environment: Optional[Mapping[str, str]]) -> Any:
    """Gives the environment as C has it. The result's first item is the array; the rest keeps its texts."""
    given = os.environ if environment is None else environment
    texts = [ffi.new("char[]", os.fsencode(f"{name}={value}")) for name, value in given.items()]
    return ffi.new("char *[]", [*texts, ffi.NULL]), texts


def find(name: str, environment: Optional[Mapping[str, str]] = None) -> str:
    """Finds the path of a model that another program has downloaded, by its name, such as "ORG/NAME".

    Nothing is downloaded. environment: default os.environ; its variables say where the stores are.
    """
    variables, kept = _environment(environment)
    path = ffi.new("char **")
    check(lib.fr_model_find(os.fsencode(name), variables, path))
    found = os.fsdecode(ffi.string(path[0]))
    lib.fr_free(path[0])
    return found


def models(environment: Optional[Mapping[str, str]] = None) -> list[Found]:
    """Lists the models in the stores of Hugging Face, llama.cpp, LM Studio and ollama."""

    def text(pointer: Any) -> Optional[str]:
        return None if pointer == ffi.NULL else os.fsdecode(ffi.string(pointer))

    found: list[Found] = []

    def told(context: Any, one: Any) -> bool:
        found.append(
            Found(
                text(one.name) or "",
                text(one.path) or "",
                text(one.tower),
                text(one.store) or "",
                text(one.problem),
                one.bytes,
            )
        )
        return True

    variables, kept = _environment(environment)
    caught = Caught()
    callback = caught.callback("fr_found_fn", told, False)
    caught.check(lib.fr_model_list(variables, callback, ffi.NULL))
    return found


def estimate(
    path: PathText, drafter: Optional[PathText] = None, sessions: int = 1, **options: Unpack[Options]
) -> Estimate:
    """Estimates the memory that a model, its drafter and an engine for `sessions` sessions would take.

    drafter: a path; "" for the MTP layers in the model's own checkpoint; None for none. Nothing is loaded.
    """
    numbers = ffi.new("uint64_t[]", lib.FR_ESTIMATE_COUNT)
    second = ffi.NULL if drafter is None else path_argument(drafter)
    check(lib.fr_model_estimate(path_argument(path), second, options_of(options), sessions, numbers))
    fields = ("resident", "mapped", "kv", "kv_least", "states", "checkpoints", "drafting", "scratch")
    names = (*fields, "total", "available")
    return Estimate(**{name: numbers[getattr(lib, "FR_ESTIMATE_" + name.upper())] for name in names})

"""Settings of models, drafters, sessions and engines, as keyword arguments."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Union

from ._library import Caught, UsageError, check, ffi, lib

__all__ = ["Options"]

if TYPE_CHECKING:
    PathText = Union[str, os.PathLike[str]]


class Options(TypedDict, total=False):
    """All settings. Each call reads those that concern it and ignores the rest, so one dict may serve for all.

    What is not given has the library's default. docs/options.md and forerun.h explain each of them.
    """

    # Threads, memory and files: read by Model, the first ones by Drafter too.
    threads: int
    """1 to 1024; default: the cores that the process may use."""
    pin: int
    """1 pins threads to cores, 0 does not; default -1: on machines with several NUMA nodes."""
    numa: bool
    """Spreads threads and memory over NUMA nodes; default True."""
    isa: str
    """The instruction set: scalar avx2 avxvnni avx512 avx512vnni amx neon dotprod i8mm; default: the best one but
    amx."""
    mmap: bool
    """Uses weights in the mapped file where their layout allows it; default True."""
    mlock: bool
    """Locks weights in memory; default False."""
    mmproj: PathText
    """Path of a GGUF model's vision tower."""
    image_min_pixels: int
    image_max_pixels: int
    image_min_tokens: int
    image_max_tokens: int
    """Limits on the size of a picture, in pixels or in tokens; default 0: those of the model's makers."""
    chat_template: PathText
    """Path of a Jinja template that replaces the model's own."""
    tokenizer_pre: str
    """Name of the way in which texts are cut before tokens are merged; default: the file's own."""

    # Room: read by Session without an engine, and by Engine.
    context: int
    """Positions that a session can hold, in tokens; default: 4096 or the model's limit, if that is less."""
    chunk: int
    """Rows of a prompt in one forward, 1 to 4096; default 64, for a mixture of experts 256."""
    kv_k: str
    """Type of cached keys: f32 f16 bf16 q8_0 q4_0; default: f32, for quantized weights f16."""
    kv_v: str
    """Type of cached values, as of kv_k."""
    kv_memory: int
    """Bytes for keys and values of an engine; default 0: as much as all its sessions may need."""
    ctx_checkpoints: int
    """Checkpoints of sliding layers and recurrent states that a session keeps, 0 to 1024; default 8."""
    swa_full: bool
    """Keeps every position of sliding layers; default False."""
    memory: int
    """Bytes that model, drafter and engine may keep in memory together; default 0: as the system has."""
    prompt_reuse: bool
    """Skips what any session of the engine has run of the same prompt before; default True."""

    # Drafting, which never changes the text (but see accept).
    spec_type: str
    """Draft methods, separated by commas: none mtp eagle eagle3 dflash dflash2 dspark draft ngram."""
    draft_max: int
    """Drafts per round, 0 to 15; default -1: as many as save time."""
    draft_min: int
    """A round with fewer drafts than this uses none; default 0."""
    draft_p_min: float
    """Drafting stops at a draft that is less probable than this; default -1: where it would not pay."""
    draft_times: PathText
    """Folder for measured times, so that the next run drafts from its first token; default: none; read by Engine."""
    draft_head: str
    """Ids that a drafter scores: all, N for the first N, or the path of a list; read by Drafter."""

    # Sampling.
    temperature: float
    """0 to 100; default 0: greedy."""
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    top_n_sigma: float
    xtc_probability: float
    xtc_threshold: float
    dynatemp_range: float
    dynatemp_exponent: float
    repeat_penalty: float
    frequency_penalty: float
    presence_penalty: float
    repeat_last_n: int
    logit_bias: Union[str, Mapping[int, float]]
    """What is added to ids' logits; -math.inf bans an id."""
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    dry_sequence_breaker: str
    mirostat: int
    mirostat_lr: float
    mirostat_ent: float
    samplers: str
    """The order of the filters: penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature."""
    seed: int
    """0 to 2**63 - 1; default 0. The same seed gives the same text."""
    accept: str
    """gumbel (default): the text does not depend on drafts. rejection: it does, but not its distribution."""

    # Ends of texts, and figures that come with the ids.
    ignore_eos: bool
    """Goes on after an end of sequence; default False."""
    logprobs: int
    """Gives log-probabilities of each id and of this many best ones, 0 to 100; default -1: none."""
    logprobs_drawn: bool
    """Log-probabilities are those of the draw, after filters and temperature; default False: the model's own."""


_kind = ffi.new("fr_option_kind *")
_NUMBERS: dict[str, tuple[int, int]] = {}
for _name in dir(lib):
    if _name.startswith("FR_OPT_") and _name != "FR_OPT_COUNT":
        _number = getattr(lib, _name)
        check(lib.fr_option_range(_number, _kind, ffi.NULL, ffi.NULL))
        _NUMBERS[_name[len("FR_OPT_") :].lower()] = (_number, _kind[0])


def _bias_text(bias: Mapping[int, float]) -> str:
    """Writes biases of ids as the library reads them."""
    if any(math.isnan(value) for value in bias.values()):
        raise UsageError("logit_bias: NaN is no bias", "logit_bias")
    return ",".join(f"{int(token)}{float(value):+}" for token, value in bias.items())


def options_of(options: Mapping[str, Any], recommended_by: Any = None) -> Any:
    """Makes the library's options from keyword arguments; they are freed with the result.

    recommended_by: a model of which the makers' recommendations count where nothing is given.
    """
    made = ffi.gc(lib.fr_options_new(), lib.fr_options_free)
    if made == ffi.NULL:
        raise MemoryError
    if recommended_by is not None:
        found = ffi.new("bool *")
        for name in ("temperature", "top_k", "top_p", "min_p", "typical_p", "repeat_penalty"):
            check(lib.fr_options_recommend(made, recommended_by, _NUMBERS[name][0], found))
    for name, value in options.items():
        if name not in _NUMBERS:
            raise TypeError(f"forerun has no option {name!r}")
        number, kind = _NUMBERS[name]
        if name == "logit_bias" and isinstance(value, Mapping):
            value = _bias_text(value)
        if kind == lib.FR_OPTION_TEXT:
            check(lib.fr_options_set_text(made, number, os.fsencode(value)))
        elif kind == lib.FR_OPTION_NUMBER:
            check(lib.fr_options_set_number(made, number, float(value)))
        else:
            check(lib.fr_options_set(made, number, value))
    return made


def stop_loading_at(caught: Caught, options: Any) -> Any:
    """Lets an interrupt end the loading of weights. Returns what must be kept until the weights are loaded."""

    def progress(context: Any, done: int, total: int) -> bool:
        return True  # running any Python at all lets the interpreter raise KeyboardInterrupt

    kept = caught.callback("bool(void *, uint64_t, uint64_t)", progress, False)
    lib.fr_options_set_progress(options, kept, ffi.NULL)
    return kept

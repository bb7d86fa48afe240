"""forerun: language models on the CPU, with speculative decoding that never changes the text.

    import forerun

    with forerun.Model("model.gguf") as model, forerun.Session(model) as session:
        for piece in session.stream("The rain", max_tokens=100):
            print(piece.text, end="", flush=True)

docs/python.md is the guide. Ids are int, counts and lengths are in tokens, sizes in bytes, times in seconds. Models,
drafters, adapters, tokenizers and grammars may be shared by threads and sessions, as docs/python.md says; a session,
and an engine with its sessions, is used by one thread at a time. The interpreter's lock is released while the
library runs.
"""

from ._chat import Call, Part, Reply
from ._drafting import Drafting, Drafts
from ._engine import Engine, Round
from ._grammar import Grammar
from ._library import (
    Aborted,
    Error,
    InputError,
    LostError,
    MachineError,
    NumericError,
    OutOfMemoryError,
    UnbuiltError,
    UsageError,
    version,
)
from ._model import Adapter, Drafter, Estimate, Found, Model, Picture, estimate, find, models
from ._options import Options
from ._quantize import quantize
from ._session import Depth, Generation, LogProbs, Piece, Scored, Session, Statistics, Step
from ._tokenizer import Decoder, Message, Prompt, Token, Tokenizer, Tool

__version__ = version

__all__ = [
    "Aborted",
    "Adapter",
    "Call",
    "Decoder",
    "Depth",
    "Drafter",
    "Drafting",
    "Drafts",
    "Engine",
    "Error",
    "Estimate",
    "Found",
    "Generation",
    "Grammar",
    "InputError",
    "LogProbs",
    "LostError",
    "MachineError",
    "Message",
    "Model",
    "NumericError",
    "Options",
    "OutOfMemoryError",
    "Part",
    "Picture",
    "Piece",
    "Prompt",
    "Reply",
    "Round",
    "Scored",
    "Session",
    "Statistics",
    "Step",
    "Token",
    "Tokenizer",
    "Tool",
    "UnbuiltError",
    "UsageError",
    "estimate",
    "find",
    "models",
    "quantize",
    "version",
]

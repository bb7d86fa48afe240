/* Contains the table of all options, with a row for each (option_table.h). */
#include "tools/cli/option_table.h"

/* Short names for the bits of verbs, and for groups of verbs that take the same options. */
enum {
    GENERATE = FR_VERB_GENERATE,
    CHAT = FR_VERB_CHAT,
    LOGITS = FR_VERB_LOGITS,
    TOKENIZE = FR_VERB_TOKENIZE,
    INSPECT = FR_VERB_INSPECT,
    VERIFY = FR_VERB_VERIFY,
    PERPLEXITY = FR_VERB_PERPLEXITY,
    QUANTIZE = FR_VERB_QUANTIZE,
    SYNTH = FR_VERB_SYNTH,
    PACK = FR_VERB_PACK,
    REPORT = FR_VERB_REPORT,
    BENCH = FR_VERB_BENCH,
    TEMPLATE = FR_VERB_TEMPLATE,
    BATCH = FR_VERB_BATCH,
    COMPLETION = FR_VERB_COMPLETION,
    SERVE = FR_VERB_SERVE,
    MODELS = FR_VERB_MODELS,
    FEATURES = FR_VERB_FEATURES,
    IMATRIX = FR_VERB_IMATRIX,
    TRIM_HEAD = FR_VERB_TRIM_HEAD,
    EMBED = FR_VERB_EMBED,
    RERANK = FR_VERB_RERANK,
    ALL = 2 * RERANK - 1,
    READ = ALL - SYNTH - REPORT - COMPLETION - MODELS, /* verbs that need a model */
    TALK = GENERATE | CHAT | BATCH | FEATURES | SERVE, /* verbs that generate text */
    /* verbs that run a model with the common options. bench is left out, because it has options of its own */
    RUN = TALK | LOGITS | VERIFY | PERPLEXITY | IMATRIX | EMBED | RERANK,
};

/* The parts of bench whose measurements need an idle machine. */
enum { ALONE = FR_PART_MACHINE | FR_PART_KERNELS | FR_PART_MODEL };

#define KV_TYPES .kind = FR_KIND_WORD, .any_case = true, .of = FR_LAB_CACHED, .unbuilt = "q4_1 iq4_nl q5_0 q5_1"

/* clang-format off */
const fr_option_row fr_option_table[FR_ARG_COUNT] = {
    [FR_ARG_MODEL] = {.names = "-m --model -hf -hfr --hf-repo", .verbs = READ,
                      .parts = FR_PART_MODEL | FR_PART_NEIGHBOURS | FR_PART_GRAMMAR, .value = "MODEL",
                      .help = "the model: a folder as published (config.json, *.safetensors), a GGUF file, or a name "
                              "(help models)",
                      .more = "A name is that of a model which another program has downloaded: ORG/NAME, "
                              "ORG/NAME:Q4_K_M or ORG/NAME:FILE in the cache of Hugging Face's programs or of "
                              "llama.cpp or in LM Studio's folder, ollama:NAME:TAG in ollama's store. forerun models "
                              "lists them. Nothing is downloaded"},
    [FR_ARG_DRAFTER] = {.names = "-md --model-draft --spec-draft-model -hfd -hfrd --hf-repo-draft --spec-draft-hf",
                        .value = "DRAFTER",
                        .verbs = TALK | LOGITS | INSPECT | VERIFY | BENCH | QUANTIZE | PACK, .parts = FR_PART_MODEL,
                        .help = "the model's drafter: a folder or a GGUF file",
                        .more = "An assistant, an EAGLE drafter, a block drafter (DFlash, DSpark), a smaller model, "
                                "or the model's MTP layer in a file of its own. A model with another vocabulary can "
                                "draft too: its drafts are passed on as text"},
    [FR_ARG_MMPROJ] = {.names = "--mmproj -mm", .value = "FILE", .verbs = TALK | LOGITS | INSPECT | QUANTIZE,
                       .sets = FR_OPT_MMPROJ, .to = FR_SET_GIVEN,
                       .help = "the vision tower of a GGUF model: the file that llama.cpp's converter makes for it"},
    [FR_ARG_LORA] = {.names = "--lora", .value = "FILE[=SCALE]", .again = true,
                     .verbs = TALK | LOGITS | VERIFY | PERPLEXITY | QUANTIZE,
                     .help = "an adapter (LoRA) that changes the model: a folder of peft's, or a GGUF file; repeatable",
                     .more = "SCALE multiplies the adapter's own scale (default 1). Several files may also be "
                             "separated by commas. The model's weights stay as they are; the adapter's products are "
                             "added to those of the matrices that it names. A drafter drafts as before. quantize "
                             "adds them to the weights that it writes"},
    [FR_ARG_LORA_SCALED] = {.names = "--lora-scaled", .value = "FILE:SCALE", .again = true,
                            .verbs = TALK | LOGITS | VERIFY | PERPLEXITY | QUANTIZE,
                            .help = "the same, in llama.cpp's spelling"},
    [FR_ARG_LORA_IDLE] = {.names = "--lora-init-without-apply", .verbs = SERVE,
                          .help = "use no adapter until a request or POST /lora-adapters gives it a scale"},
    [FR_ARG_VECTOR] = {.names = "--control-vector", .value = "FILE", .again = true,
                       .verbs = TALK | LOGITS | VERIFY | PERPLEXITY,
                       .help = "a control vector (GGUF), which is added to the rows after each layer; repeatable",
                       .more = "Several files may also be separated by commas"},
    [FR_ARG_VECTOR_SCALED] = {.names = "--control-vector-scaled", .value = "FILE:SCALE", .again = true,
                              .verbs = TALK | LOGITS | VERIFY | PERPLEXITY,
                              .help = "the same, with a scale, which may be negative"},
    [FR_ARG_VECTOR_RANGE] = {.names = "--control-vector-layer-range", .value = "FIRST LAST",
                             .verbs = TALK | LOGITS | VERIFY | PERPLEXITY,
                             .help = "the layers, counted from 0, after which control vectors are added (default: all "
                                     "but layer 0); FIRST,LAST too"},
    [FR_ARG_TOKENIZER_PRE] = {.names = "--tokenizer-pre", .value = "NAME", .kind = FR_KIND_WORD,
                              .of = FR_LAB_PRE, .verbs = RUN | TOKENIZE | TRIM_HEAD | TEMPLATE | INSPECT | BENCH,
                              .parts = FR_PART_MODEL,
                              .sets = FR_OPT_TOKENIZER_PRE, .to = FR_SET_GIVEN,
                              .help = "split texts in this way, whatever the GGUF file says: llama-bpe, qwen2, "
                                      "gpt-2, ...",
                              .more = "The names are the values of tokenizer.ggml.pre that llama.cpp knows"},

    [FR_ARG_PROMPT] = {.names = "-p --prompt", .value = "TEXT",
                       .verbs = GENERATE | LOGITS | TOKENIZE | TRIM_HEAD | EMBED | RERANK,
                       .help = "the prompt; embed: the text; rerank: the query"},
    [FR_ARG_FILE] = {.names = "-f --file -bf --binary-file --in-file", .value = "FILE",
                     .verbs = GENERATE | BATCH | FEATURES | LOGITS | TOKENIZE | TRIM_HEAD | PERPLEXITY | IMATRIX |
                              REPORT | EMBED | RERANK,
                     .help = "the file with the prompt, text or trace, which is read unchanged; - for standard input",
                     .more = "With -p too, its text follows the file's, but embed takes one of the two, and rerank's "
                             "-p is the query. Without either, the prompt is read from standard input if that is a "
                             "pipe or a file"},
    [FR_ARG_IDS] = {.names = "--ids", .value = "LIST", .kind = FR_KIND_IDS, .verbs = GENERATE | LOGITS | TOKENIZE,
                    .help = "the prompt as token ids, which are used unchanged: 2,415,443"},
    [FR_ARG_ESCAPE] = {.names = "-e --escape", .verbs = (TALK - SERVE) | LOGITS | TOKENIZE,
                       .help = "replace escapes in the prompt, system turn and stops: \\n \\t \\r \\' \\\" \\\\ \\xNN",
                       .more = "For batch only in --stop, because its lines have the escapes of JSON"},
    [FR_ARG_NO_ESCAPE] = {.names = "--no-escape", .verbs = (TALK - SERVE) | LOGITS | TOKENIZE, .manual = true,
                          .help = "leave backslashes unchanged, which is the default"},
    [FR_ARG_CHAT] = {.names = "--chat -cnv --conversation", .verbs = GENERATE,
                     .help = "make the prompt a user's turn, and apply the model's chat template"},
    [FR_ARG_NO_CHAT] = {.names = "-no-cnv --no-conversation", .verbs = GENERATE | CHAT, .manual = true,
                        .help = "use the prompt unchanged, which is the default",
                        .more = "With it, no note says that the model has a chat template"},
    [FR_ARG_SYSTEM] = {.names = "-sys --system --system-prompt", .value = "TEXT", .verbs = GENERATE | CHAT,
                       .help = "the system turn of a chat"},
    [FR_ARG_SYSTEM_FILE] = {.names = "-sysf --system-prompt-file", .value = "FILE", .verbs = GENERATE | CHAT,
                            .help = "the file with the system turn of a chat"},
    [FR_ARG_MESSAGES] = {.names = "--messages", .value = "FILE", .verbs = TEMPLATE,
                         .help = "the file with the conversation, JSON: [{\"role\", \"content\", ...}, ...]; - for "
                                 "standard input"},
    [FR_ARG_TOOLS] = {.names = "--tools", .value = "FILE", .verbs = (TALK - SERVE) | TEMPLATE,
                      .help = "the file with the tools that the model may call: a JSON array in OpenAI's form"},
    [FR_ARG_CHAT_TEMPLATE] = {.names = "--chat-template-file", .value = "FILE", .verbs = TALK | TEMPLATE,
                              .sets = FR_OPT_CHAT_TEMPLATE, .to = FR_SET_GIVEN,
                              .help = "the file with a chat template (Jinja) that replaces the model's own"},
    [FR_ARG_CHAT_KWARGS] = {.names = "--chat-template-kwargs", .value = "JSON", .verbs = TALK | TEMPLATE,
                            .help = "variables for the chat template: '{\"enable_thinking\": true}'",
                            .more = "They take precedence over the model's own variables. Their names depend on the "
                                    "template"},
    [FR_ARG_NO_THINK] = {.names = "--no-think", .verbs = TALK | TEMPLATE,
                         .help = "ask the model not to think: enable_thinking is false"},
    [FR_ARG_PARSE_SPECIAL] = {.names = "--parse-special", .verbs = TALK | TEMPLATE,
                              .help = "recognize control tokens also in messages, and not only those of the template",
                              .more = "The author of a message can then end its turn and begin the next one"},
    [FR_ARG_DECODE] = {.names = "--decode", .verbs = TOKENIZE, .help = "turn ids into text"},
    [FR_ARG_NO_BOS] = {.names = "--no-bos", .verbs = TOKENIZE, .help = "leave out the tokens that the post-processor "
                                                                       "adds, such as <bos>"},
    [FR_ARG_PIECES] = {.names = "--pieces --show-pieces", .verbs = TOKENIZE,
                       .help = "print a line for each id: the id, and in quotes the bytes that it adds to the text",
                       .more = "Quotes, backslashes, control characters and bytes that are not UTF-8 are escaped"},
    [FR_ARG_PREDICT] = {.names = "-n --predict --n-predict", .value = "N", .kind = FR_KIND_NUMBER,
                        .verbs = TALK, .low = -1, .high = INT32_MAX,
                        .help = "generate at most N tokens (default -1: until end of sequence, or until the context "
                                "is full)",
                        .more = "generate: 0 generates nothing but runs the prompt, for example to fill a "
                                "--prompt-cache"},
    [FR_ARG_STOP] = {.names = "--stop -r --reverse-prompt", .value = "TEXT", .verbs = TALK, .again = true,
                     .help = "end the text before TEXT; may be given 16 times"},
    [FR_ARG_IGNORE_EOS] = {.names = "--ignore-eos", .verbs = TALK, .sets = FR_OPT_IGNORE_EOS, .to = FR_SET_ON,
                           .help = "continue after an end of sequence"},
    [FR_ARG_OUTPUT] = {.names = "--output", .value = "FORM", .kind = FR_KIND_WORD, .verbs = GENERATE,
                       .words = "text ids json", .help = "print text (default), ids or json"},
    [FR_ARG_TEMPLATE_OUTPUT] = {.names = "--output", .value = "FORM", .kind = FR_KIND_WORD, .verbs = TEMPLATE,
                                .words = "text ids", .help = "print text (default), or ids on one line, separated by "
                                                             "commas"},
    [FR_ARG_EMBED_OUTPUT] = {.names = "-o --output", .value = "FORM", .kind = FR_KIND_WORD, .verbs = EMBED | RERANK,
                             .words = "json f32 text",
                             .help = "json (embed's default), f32: raw little-endian floats, or text (rerank's)",
                             .more = "json is one array: of a row for each text, or of a score for each document"},
    [FR_ARG_PROMPT_NAME] = {.names = "--prompt-name", .value = "NAME", .verbs = EMBED,
                            .help = "put the model's own prompt of this name before each text: query, document, ...",
                            .more = "Those of config_sentence_transformers.json. Without it the model's default "
                                    "prompt is used, if it has one; none: no prompt"},
    [FR_ARG_INSTRUCTION] = {.names = "--instruction", .value = "TEXT", .verbs = EMBED | RERANK,
                            .help = "embed: a prompt that is put before each text; rerank: what is asked of a pair",
                            .more = "rerank asks models that generate text, such as Qwen3-Reranker, by it"},
    [FR_ARG_SEPARATOR] = {.names = "--embd-separator", .value = "TEXT", .verbs = EMBED | RERANK,
                          .help = "what is between two texts of -f (default: a line feed); \\n, \\t are read"},
    [FR_ARG_DIMENSIONS] = {.names = "--dimensions", .value = "N", .kind = FR_KIND_NUMBER, .verbs = EMBED, .low = 1,
                           .high = 1 << 24, .help = "keep the first N numbers of a row, for models trained so",
                           .more = "A row that the model scales to length 1 is scaled again"},
    [FR_ARG_NORMALIZE] = {.names = "--embd-normalize", .value = "N", .kind = FR_KIND_NUMBER, .verbs = EMBED,
                          .low = -1, .high = 2,
                          .help = "2: scale rows to length 1; -1: do not (default: as the model's makers do)",
                          .more = "llama.cpp's other numbers are not built yet"},
    [FR_ARG_RAW_SCORES] = {.names = "--raw", .verbs = RERANK,
                           .help = "the scores before the model's last function, mostly a sigmoid"},
    [FR_ARG_TOP] = {.names = "--top-n", .value = "N", .kind = FR_KIND_NUMBER, .verbs = RERANK, .low = 1,
                    .high = INT32_MAX, .help = "the N best documents alone, the best first"},
    [FR_ARG_COLOR] = {.names = "--color -co", .verbs = GENERATE | CHAT, .switches = true,
                      .help = "show accepted drafts in green (only with text output)"},
    [FR_ARG_STATS] = {.names = "--stats", .verbs = GENERATE | CHAT, .help = "print statistics on standard error",
                      .more = "They are the tokens per call of the target, the acceptance in total and by depth, the "
                              "speed, the time of each phase, and the memory"},
    [FR_ARG_TRACE] = {.names = "--trace", .value = "FILE", .verbs = GENERATE | CHAT,
                      .help = "write what each round drafted and accepted, and its times, as lines of JSON (forerun "
                              "report)"},
    [FR_ARG_PROMPT_CACHE] = {.names = "--prompt-cache", .value = "FILE", .verbs = GENERATE | CHAT,
                             .help = "continue the session in FILE, if it exists, and save the session there at the "
                                     "end",
                             .more = "Tokens that the prompt shares with the saved session are not run again. chat "
                                     "continues a conversation that chat has saved. An empty file begins a new "
                                     "session. The file of another model is refused"},

    [FR_ARG_OUT_FILE] = {.names = "-o --output-file", .value = "FILE",
                         .verbs = LOGITS | QUANTIZE | SYNTH | PACK | TRIM_HEAD | REPORT | BATCH | FEATURES | IMATRIX,
                         .help = "write to this file; - for standard output",
                         .more = "features writes a folder, which is made if it does not exist"},
    [FR_ARG_TAPS] = {.names = "--taps", .value = "LIST", .kind = FR_KIND_NUMBERS, .verbs = FEATURES, .low = 0,
                     .high = 1 << 20,
                     .help = "layers whose inputs are written (default: 2, the middle one, the last but two, and the "
                             "last one's output)",
                     .more = "The number of layers stands for the output of the last one, before the final norm"},
    [FR_ARG_MOST_IDS] = {.names = "--most-ids", .value = "N", .kind = FR_KIND_NUMBER, .verbs = TRIM_HEAD, .low = 1,
                         .high = INT32_MAX, .help = "write at most N ids, the most frequent ones (default: all that "
                                                    "occur)"},
    [FR_ARG_ROWS] = {.names = "--rows", .value = "WHICH", .kind = FR_KIND_WORD, .verbs = LOGITS, .words = "all last",
                     .help = "write all rows (default), or only the last one"},
    [FR_ARG_DRAFT_STEPS] = {.names = "--draft-steps", .value = "K", .kind = FR_KIND_NUMBER, .verbs = LOGITS, .low = 1,
                            .high = FR_STEP_MAX - 1,
                            .help = "write the drafter's logits at K chained steps instead, [K, vocab]"},
    [FR_ARG_BASE] = {.names = "--kl-divergence-base --save-all-logits", .value = "FILE", .verbs = PERPLEXITY,
                     .help = "write this model's predictions to FILE; with --kl-divergence compare them with those "
                             "in FILE"},
    [FR_ARG_KL] = {.names = "--kl-divergence", .verbs = PERPLEXITY,
                   .help = "compare with the baseline's file: its chunks and ids are used, and -f is only checked"},
    [FR_ARG_HELLASWAG] = {.names = "--hellaswag", .verbs = PERPLEXITY,
                          .help = "the percentage of HellaSwag's tasks answered correctly; in the file of -f each "
                                  "has six lines",
                          .more = "The lines are the context, the index of the right ending (from 0), and four "
                                  "endings. The score of an ending is the mean log-probability of its tokens, as in "
                                  "llama-perplexity"},
    [FR_ARG_WINOGRANDE] = {.names = "--winogrande", .verbs = PERPLEXITY,
                           .help = "the same for Winogrande's tasks: lines of index,sentence with a _,word,word,1 or "
                                   "2"},
    [FR_ARG_MULTIPLE_CHOICE] = {.names = "--multiple-choice", .verbs = PERPLEXITY,
                                .help = "the same for questions with several answers, in llama-perplexity's binary "
                                        "files"},
    [FR_ARG_TASKS] = {.names = "--hellaswag-tasks --winogrande-tasks --multiple-choice-tasks", .value = "N",
                      .kind = FR_KIND_NUMBER, .verbs = PERPLEXITY, .low = 1, .high = INT32_MAX,
                      .help = "only the first N tasks (default: all)",
                      .more = "llama-perplexity instead draws N tasks at random, and 400 of HellaSwag's by default"},
    [FR_ARG_CHUNK_IDS] = {.names = "-c --ctx-size", .value = "N", .kind = FR_KIND_NUMBER,
                          .verbs = PERPLEXITY | IMATRIX, .low = 0, .high = INT32_MAX,
                          .help = "ids in a chunk (default 512, or the model's context if that is less; 0: the "
                                  "model's context)"},
    [FR_ARG_CHUNKS] = {.names = "--chunks", .value = "N", .kind = FR_KIND_NUMBER,
                       .verbs = PERPLEXITY | IMATRIX, .low = 1, .high = INT32_MAX,
                       .help = "run at most N chunks (default: the whole text)"},
    [FR_ARG_PROCESS_OUTPUT] = {.names = "--process-output", .verbs = IMATRIX,
                               .help = "also measure the head, if it is a matrix of its own"},
    [FR_ARG_OUTPUT_FORMAT] = {.names = "--output-format", .value = "FORM", .kind = FR_KIND_WORD, .verbs = IMATRIX,
                              .words = "gguf dat", .help = "write gguf (default), or dat, llama.cpp's older form"},
    [FR_ARG_STRIDE] = {.names = "--ppl-stride --stride", .value = "N", .kind = FR_KIND_NUMBER, .verbs = PERPLEXITY,
                       .low = 1, .high = INT32_MAX, .help = "chunks begin N ids apart, and only the last N ids of "
                                                            "each are scored",
                       .more = "llama-perplexity's chunks are then longer than -c by half of N, rounded up to a "
                               "multiple of 256"},
    [FR_ARG_SHAPE] = {.names = "--shape", .value = "SHAPE", .kind = FR_KIND_WORD, .of = FR_LAB_SHAPES, .verbs = SYNTH,
                      .help = "the published sizes that are used: {}"},
    [FR_ARG_TYPE] = {.names = "--type", .value = "TYPE", .kind = FR_KIND_WORD, .verbs = QUANTIZE | SYNTH,
                     .any_case = true,
                     .of = FR_LAB_WRITTEN, .also = FR_LAB_MIXTURES, .help = "the type of the matrices: {}",
                     .more = "Capital and small letters are the same. quantize: q3_k, q4_k and q5_k are "
                             "llama-quantize's mixtures Q3_K_M, Q4_K_M and Q5_K_M; Q2_K_S, Q3_K_S, Q3_K_L, Q4_K_S "
                             "and Q5_K_S are its smaller and larger ones"},
    [FR_ARG_TENSOR_TYPE] = {.names = "--tensor-type", .value = "PATTERN=TYPE", .verbs = QUANTIZE, .again = true,
                            .help = "the type of tensors whose name matches the regular expression; the first match "
                                    "decides",
                            .more = "May be given 64 times. A pattern that decides nothing is refused"},
    [FR_ARG_OUTPUT_TYPE] = {.names = "--output-tensor-type", .value = "TYPE", .kind = FR_KIND_WORD, .verbs = QUANTIZE,
                            .any_case = true, .of = FR_LAB_WRITTEN,
                            .help = "the type of the head, or of the embeddings if they are the head too"},
    [FR_ARG_EMBEDDING_TYPE] = {.names = "--token-embedding-type", .value = "TYPE", .kind = FR_KIND_WORD,
                               .verbs = QUANTIZE, .any_case = true, .of = FR_LAB_WRITTEN,
                               .help = "the type of the token embeddings",
                               .more = "It also holds for the embeddings of layers, unless --tensor-type names them"},
    [FR_ARG_PURE] = {.names = "--pure", .verbs = QUANTIZE,
                     .help = "give every matrix this type, tables too (default: llama-quantize's mixture)"},
    [FR_ARG_MMPROJ_TYPE] = {.names = "--mmproj-type", .value = "TYPE", .verbs = QUANTIZE,
                            .help = "type of the vision tower's matrices (default f16); none: write no tower",
                            .more = "The tower of a model that sees is written to a second file, mmproj-FILE. TYPE is "
                                    "one of --type's types"},
    [FR_ARG_IMATRIX] = {.names = "--imatrix", .value = "FILE", .verbs = QUANTIZE,
                        .help = "keep the important columns more exact, by this file of forerun imatrix or "
                                "llama-imatrix",
                        .more = "The file may be GGUF or have the older form. Q8_0 and MXFP4 treat all columns alike"},
    [FR_ARG_VOCAB] = {.names = "--vocab", .value = "N", .kind = FR_KIND_NUMBER, .verbs = SYNTH, .low = 262,
                      .high = 1 << 24,
                      .help = "the size of the vocabulary (default: the shape's own), equal for a model and its "
                              "assistant"},
    [FR_ARG_LAYERS] = {.names = "--layers", .value = "N", .kind = FR_KIND_NUMBER, .verbs = SYNTH, .low = 2,
                       .high = 1024,
                       .help = "write only the first N layers, the last of which has full attention (default: all)"},
    [FR_ARG_EXPERTS] = {.names = "--experts", .value = "N", .kind = FR_KIND_NUMBER, .verbs = SYNTH, .low = 1,
                        .high = 4096, .help = "write only N experts of each mixture (default: all)"},
    [FR_ARG_TENSORS] = {.names = "--tensors", .verbs = INSPECT, .help = "list every tensor"},
    [FR_ARG_INSPECT_FORM] = {.names = "-o --output", .value = "FORM", .kind = FR_KIND_WORD,
                             .verbs = INSPECT | MODELS, .words = "text json",
                             .help = "print text (default) or json"},

    [FR_ARG_PARALLEL] = {.names = "-np --parallel", .value = "N", .kind = FR_KIND_NUMBER,
                         .verbs = BATCH | FEATURES | SERVE, .low = 1, .high = FR_SESSIONS_MAX,
                         .help = "run up to N texts at the same time, which share each forward (default 4)",
                         .more = "batch: lines of the file. serve: requests; further ones wait"},
    [FR_ARG_KV_MEMORY] = {.names = "--kv-memory", .value = "BYTES", .kind = FR_KIND_NUMBER,
                          .verbs = BATCH | SERVE, .low = 1,
                          .high = INT64_MAX, .sets = FR_OPT_KV_MEMORY, .to = FR_SET_GIVEN,
                          .help = "memory for the keys and values of all texts together",
                          .more = "The default suffices for -c positions of each text. With less, a text may find no "
                                  "page left, and wait or fail; with more, more of earlier prompts stays in the cache"},
    [FR_ARG_MEMORY] = {.names = "--memory", .value = "BYTES", .kind = FR_KIND_NUMBER, .verbs = TALK | INSPECT,
                       .low = 1, .high = INT64_MAX, .sets = FR_OPT_MEMORY, .to = FR_SET_GIVEN,
                       .help = "limit of all memory: weights, caches and work space (default: what is available)",
                       .more = "Whatever would exceed it is refused before it is allocated; a batch first gets less "
                               "memory for keys and values. The system can drop weights that are used directly from "
                               "a file and read them again, so they count only as far as every token reads them. "
                               "inspect prints what a session takes"},
    [FR_ARG_RESUME] = {.names = "--resume", .verbs = BATCH | FEATURES,
                       .help = "keep the answers that OUT has already, and run the lines that have none",
                       .more = "Answers that an interrupt cut off, or that have an \"error\", are run again. OUT "
                               "must belong to the same lines, which is checked by their ids"},
    [FR_ARG_RANK_DELAY] = {.names = "--rank-delay", .value = "MICROSECONDS", .kind = FR_KIND_NUMBER, .verbs = BENCH,
                           .parts = FR_PART_MODEL | FR_PART_RANKS, .low = 0, .high = 1000000,
                           .help = "model, ranks: delay each message between ranks by this time, as on a slower "
                                   "network"},
    [FR_ARG_RANK_TIMEOUT] = {.names = "--rank-timeout", .value = "SECONDS", .kind = FR_KIND_NUMBER,
                             .verbs = GENERATE | LOGITS | VERIFY | BATCH | BENCH | SERVE,
                             .parts = FR_PART_MODEL | FR_PART_RANKS, .low = 1,
                             .high = 86400,
                             .help = "for ranks of an MPI job (mpirun): end if a rank is silent for this long "
                                     "(default 30)"},
    [FR_ARG_RANK_SHARES] = {.names = "--rank-shares", .value = "LIST",
                            .verbs = GENERATE | LOGITS | VERIFY | BATCH | BENCH | SERVE, .parts = FR_PART_MODEL,
                            .help = "for ranks of an MPI job: their shares; 3,1 gives the first one three quarters",
                            .more = "A share is a part of the weights and of the work, a whole number from 1 to 1000 "
                                    "for each rank. Default: ranks on one machine have equal shares; ranks on "
                                    "several machines have shares by the bandwidth at which each reads memory when "
                                    "it starts"},
    [FR_ARG_RANK_SPLIT] = {.names = "--rank-split", .value = "HOW", .kind = FR_KIND_WORD,
                           .verbs = GENERATE | LOGITS | VERIFY | BATCH | BENCH | SERVE, .parts = FR_PART_MODEL,
                           .words = "auto rows layers",
                           .help = "for ranks of an MPI job: give each a part of every layer's rows, or whole layers",
                           .more = "By rows, all ranks compute at the same time, and wait for each other several "
                                   "times in each layer. By layers, one rank computes after the other, so a network "
                                   "that is slow to answer hardly slows them down, and the rows of a long prompt "
                                   "follow each other through the ranks. auto (default): by rows on one machine; on "
                                   "several machines by the network's speed when they start"},
    [FR_ARG_CONFIG] = {.names = "--config", .value = "FILE", .verbs = SERVE,
                       .help = "read further options from a file: NAME = VALUE lines",
                       .more = "NAME is an option's long name without its dashes; a flag stands alone, or with = on or "
                               "off. A line that begins with # is a comment. Options of the command line come first, "
                               "then the file, then the environment: FORERUN_NAME (FORERUN_CTX_SIZE for --ctx-size), "
                               "then LLAMA_ARG_NAME as llama.cpp's server reads it, which is noted"},
    [FR_ARG_HOST] = {.names = "--host", .value = "ADDRESS", .verbs = SERVE,
                     .help = "the address to listen on (default 127.0.0.1, only for this machine); 0.0.0.0 or :: for "
                             "all",
                     .more = "A numeric address, or localhost. If other machines can reach it, use --api-key and TLS"},
    [FR_ARG_PORT] = {.names = "--port", .value = "N", .kind = FR_KIND_NUMBER, .verbs = SERVE, .low = 0, .high = 65535,
                     .help = "the port to listen on (default 8080; 0: any free port, which is printed)"},
    [FR_ARG_ALIAS] = {.names = "-a --alias", .value = "NAME", .verbs = SERVE,
                      .help = "the model's name in /v1/models and in answers (default: its file's name)"},
    [FR_ARG_MODELS] = {.names = "--models --models-dir", .value = "LIST", .verbs = SERVE,
                       .help = "several models, or a folder of models; each is loaded when a request first names it",
                       .more = "Paths and names as for -m, separated by commas. In a folder, GGUF files and folders "
                               "of models are found. Requests use the models' names, without .gguf"},
    [FR_ARG_MODELS_MAX] = {.names = "--models-max", .value = "N", .kind = FR_KIND_NUMBER, .verbs = SERVE, .low = 1,
                           .high = 64, .help = "models in memory at once (default 4); the one unused for longest is "
                                               "removed first"},
    [FR_ARG_API_KEY] = {.names = "--api-key", .value = "KEY", .verbs = SERVE,
                        .help = "answer only clients that send this key: Authorization: Bearer KEY, or X-Api-Key",
                        .more = "Several keys may be separated by commas. Other users of this machine can see a "
                                "command line, but not --api-key-file, nor FORERUN_API_KEY in the environment"},
    [FR_ARG_API_KEY_FILE] = {.names = "--api-key-file", .value = "FILE", .verbs = SERVE,
                             .help = "the file with the keys, one on each line; # begins a comment",
                             .more = "SIGHUP makes the server read this file and the certificate again"},
    [FR_ARG_SSL_KEY] = {.names = "--ssl-key-file", .value = "FILE", .verbs = SERVE,
                        .help = "the file with the private key for TLS, PEM"},
    [FR_ARG_SSL_CERT] = {.names = "--ssl-cert-file", .value = "FILE", .verbs = SERVE,
                         .help = "the file with the certificate for TLS, PEM"},
    [FR_ARG_CORS] = {.names = "--cors", .value = "ORIGIN", .verbs = SERVE,
                     .help = "the origin of web pages that may send requests; * for any (default: none)"},
    [FR_ARG_ALLOW_HOST] = {.names = "--allow-host", .value = "NAMES", .verbs = SERVE,
                           .help = "further names that requests may have for this host, such as a proxy's (default: "
                                   "only localhost)",
                           .more = "Names separated by commas, or * for any. A server that only this machine can "
                                   "reach and that needs no key refuses other names in the Host header, because a "
                                   "foreign web page could otherwise reach it under the page's own name. nginx sends "
                                   "the upstream's address by default; Caddy sends the name that the browser asked "
                                   "for"},
    [FR_ARG_METRICS] = {.names = "--metrics", .verbs = SERVE, .help = "answer GET /metrics, for Prometheus"},
    [FR_ARG_EMBEDDINGS] = {.names = "--embeddings --embedding", .verbs = SERVE,
                           .help = "answer POST /v1/embeddings and /v1/rerank: rows of numbers and scores of texts"},
    [FR_ARG_POOLING] = {.names = "--pooling", .value = "HOW", .kind = FR_KIND_WORD, .verbs = SERVE | EMBED,
                        .words = "mean cls last", .unbuilt = "none",
                        .help = "how a text's embedding is made of its rows: their mean, the first or the last "
                                "(default: the model's)"},
    [FR_ARG_SLOTS] = {.names = "--slots", .verbs = SERVE, .help = "answer GET /slots and /rounds, which show what is "
                                                                  "being run"},
    [FR_ARG_NO_SLOTS] = {.names = "--no-slots", .verbs = SERVE, .manual = true,
                         .help = "accepted, because this is the default"},
    [FR_ARG_NO_UI] = {.names = "--no-ui --no-webui", .verbs = SERVE, .help = "serve no chat page at /"},
    [FR_ARG_SLOT_SAVE_PATH] = {.names = "--slot-save-path", .value = "FOLDER", .verbs = SERVE,
                               .help = "the folder to which POST /slots/N?action=save writes sessions"},
    [FR_ARG_TIMEOUT] = {.names = "-to --timeout", .value = "S", .kind = FR_KIND_NUMBER, .verbs = SERVE, .low = 1,
                        .high = 86400,
                        .help = "seconds in which a client must send its request, and read its answer (default 60)"},
    [FR_ARG_MAX_BODY] = {.names = "--max-body", .value = "BYTES", .kind = FR_KIND_NUMBER, .verbs = SERVE, .low = 1024,
                         .high = 1 << 30, .help = "the largest body of a request, in bytes (default 16777216)"},
    [FR_ARG_MAX_CONNECTIONS] = {.names = "--max-connections", .value = "N", .kind = FR_KIND_NUMBER, .verbs = SERVE,
                                .low = 1, .high = 10000,
                                .help = "connections that one address may have (default 1024); a further one gets 503"},
    [FR_ARG_MAX_QUEUE] = {.names = "--max-queue", .value = "N", .kind = FR_KIND_NUMBER, .verbs = SERVE, .low = 0,
                          .high = 100000,
                          .help = "requests that may wait (default 1024); a further one gets 503, to be sent again "
                                  "later"},
    [FR_ARG_PING] = {.names = "--sse-ping-interval", .value = "S", .kind = FR_KIND_NUMBER, .verbs = SERVE, .low = -1,
                     .high = 3600, .help = "seconds of silence before a stream gets a ping (default 30; -1: none)"},
    [FR_ARG_LOG_CONTENTS] = {.names = "--log-contents", .verbs = SERVE,
                             .help = "also log requests and their answers"},
    [FR_ARG_LOG_FORMAT] = {.names = "--log-format", .value = "FORM", .kind = FR_KIND_WORD, .verbs = SERVE,
                           .words = "text json",
                           .help = "the form of the log on standard error, which has a line for each request "
                                   "(default text)"},
    [FR_ARG_LOG_LEVEL] = {.names = "--log-level", .value = "LEVEL", .kind = FR_KIND_WORD, .verbs = SERVE,
                          .words = "error warn info debug",
                          .help = "error: log only 5xx; warn: 4xx too; info (default): all but GET requests; debug: "
                                  "all",
                          .more = "GET requests that succeed (health, metrics, the chat page) are logged only at "
                                  "debug"},

#define FR_SAMPLER_NUMBER(id, key, low, high, usual, name, ...) \
    [FR_ARG_##id] = {.kind = FR_KIND_REAL, .verbs = TALK, .sets = FR_OPT_##id, .to = FR_SET_GIVEN, __VA_ARGS__},
#define FR_SAMPLER_WHOLE(id, key, low, high, usual, name, ...) \
    [FR_ARG_##id] = {.kind = FR_KIND_NUMBER, .verbs = TALK, .sets = FR_OPT_##id, .to = FR_SET_GIVEN, __VA_ARGS__},
#include "samplers.def"
    [FR_ARG_DRY_SEQUENCE_BREAKER] = {.names = "--dry-sequence-breaker", .value = "TEXT", .verbs = TALK,
                                     .sets = FR_OPT_DRY_SEQUENCE_BREAKER, .to = FR_SET_GIVEN, .again = true,
                                     .help = "a text that ends a repetition for DRY; may be given again (none: no "
                                             "text does)",
                                     .more = "Default: line break, colon, double quote and asterisk. \\n, \\t, \\r, "
                                             "\\\" and \\\\ are replaced by what they stand for"},
    [FR_ARG_SAMPLERS] = {.names = "--samplers --sampler-seq --sampling-seq", .value = "LIST", .verbs = TALK,
                         .replaced = true,
                         .sets = FR_OPT_SAMPLERS, .to = FR_SET_GIVEN,
                         .help = "just these, in this order; ; between names, or letters: "
#define FR_SAMPLER(id, word, letter, run, drops_best, works) letter
#include "samplers.def"
                         , .more = "Default, as in llama.cpp:"
#define FR_SAMPLER(id, word, letter, run, drops_best, works) " " word
#include "samplers.def"
                                   ", with semicolons between. The first two can only stand in front"},
    [FR_ARG_LOGIT_BIAS] = {.names = "-l --logit-bias", .value = "LIST", .verbs = TALK, .again = true,
                           .sets = FR_OPT_LOGIT_BIAS, .to = FR_SET_GIVEN,
                           .help = "add to the logits of tokens: 15+1.5,20-1; 30-inf bans token 30; may be given "
                                   "again"},
    [FR_ARG_GRAMMAR] = {.names = "--grammar", .value = "TEXT", .verbs = GENERATE | CHAT,
                        .help = "a grammar that the text must follow, in llama.cpp's GBNF: root ::= \"yes\" | \"no\"",
                        .more = "The text is the same with any drafts. Drafts that the grammar forbids are not "
                                "verified"},
    [FR_ARG_GRAMMAR_FILE] = {.names = "--grammar-file", .value = "FILE", .verbs = GENERATE | CHAT,
                             .help = "the file with such a grammar"},
    [FR_ARG_JSON_SCHEMA] = {.names = "-j --json-schema", .value = "JSON", .verbs = GENERATE | CHAT,
                            .help = "a JSON schema that the text must follow: '{\"type\": \"object\"}'",
                            .more = "A part of it that is not built is refused, with its place in the schema"},
    [FR_ARG_JSON_SCHEMA_FILE] = {.names = "-jf --json-schema-file", .value = "FILE", .verbs = GENERATE | CHAT,
                                 .help = "the file with such a schema"},
    [FR_ARG_REGEX] = {.names = "--regex", .value = "EXPRESSION", .verbs = GENERATE | CHAT,
                      .help = "a regular expression that the whole text must match: [0-9]+(\\.[0-9]+)?"},
    [FR_ARG_SEED] = {.names = "-s --seed", .draws = true, .value = "N", .kind = FR_KIND_NUMBER, .verbs = TALK,
                     .low = -1, .high = INT64_MAX, .sets = FR_OPT_SEED, .to = FR_SET_GIVEN,
                     .help = "the seed of random numbers (default 0; -1: one is drawn and printed); greedy decoding "
                             "uses none",
                     .more = "serve: the seed of requests that have none; without this option each of them draws its "
                             "own"},
    [FR_ARG_LOGPROBS] = {.names = "--logprobs", .value = "N", .kind = FR_KIND_NUMBER, .verbs = GENERATE | BATCH,
                         .low = 0, .high = FR_LOGPROBS_MAX, .sets = FR_OPT_LOGPROBS, .to = FR_SET_GIVEN,
                         .help = "give log-probabilities of each token and of the N best (generate: with --output "
                                 "json)"},
    [FR_ARG_SPEC_TYPE] = {.names = "--spec-type", .value = "WORDS", .kind = FR_KIND_LIST,
                          .verbs = TALK | LOGITS | VERIFY | INSPECT, .of = FR_LAB_DRAFT, .also = FR_LAB_DRAFT_OTHER,
                          .sets = FR_OPT_SPEC_TYPE, .to = FR_SET_GIVEN,
                          .help = "the draft method: {}; or several, tried in turn (default: the drafter's)",
                          .more = "mtp: an assistant, or the model's own MTP layer; ngram: earlier text that ends in "
                                  "the same way"},
    [FR_ARG_DRAFT_MAX] = {.names = "--spec-draft-n-max --draft-max --draft --draft-n", .value = "K",
                          .kind = FR_KIND_NUMBER, .verbs = TALK | VERIFY, .low = 0, .high = FR_STEP_MAX - 1,
                          .special = "auto", .sets = FR_OPT_DRAFT_MAX, .to = FR_SET_GIVEN,
                          .help = "drafts in a step: 0 (none) to 15, or auto (default): as many as pay, which may be "
                                  "none"},
    [FR_ARG_DRAFT_MIN] = {.names = "--spec-draft-n-min --draft-min --draft-n-min", .value = "N",
                          .kind = FR_KIND_NUMBER, .verbs = TALK | VERIFY, .sets = FR_OPT_DRAFT_MIN, .to = FR_SET_GIVEN,
                          .help = "use no drafts in a step if there are fewer than N (default 0)"},
    [FR_ARG_DRAFT_P_MIN] = {.names = "--spec-draft-p-min --draft-p-min", .value = "P", .kind = FR_KIND_REAL,
                            .verbs = TALK | VERIFY, .special = "auto", .sets = FR_OPT_DRAFT_P_MIN, .to = FR_SET_GIVEN,
                            .help = "end the chain at a draft less likely than P; auto (default): at one not worth "
                                    "its time",
                            .more = "auto goes by how often drafts of such a probability were accepted. If "
                                    "--draft-max is a number, auto is 0"},
    [FR_ARG_DRAFT_HEAD] = {.names = "--spec-draft-head --draft-head", .value = "WHAT",
                           .verbs = TALK | LOGITS | VERIFY | BENCH, .parts = FR_PART_MODEL,
                           .sets = FR_OPT_DRAFT_HEAD, .to = FR_SET_GIVEN,
                           .help = "ids that the drafter scores: whole (default), auto, the first N, or the list that "
                                   "trim-head wrote",
                           .more = "auto scores 32768 likely ids (auto:N: N), and each id that is in the text. Other "
                                   "ids are never drafted. The text is the same, and a draft takes less time"},
    [FR_ARG_DRAFT_TIMES] = {.names = "--draft-times", .value = "FOLDER", .verbs = TALK, .sets = FR_OPT_DRAFT_TIMES,
                            .to = FR_SET_GIVEN,
                            .help = "the folder that stores how long forwards and drafts take (off: none; default: "
                                    "~/.cache/forerun)",
                            .more = "With these times --draft-max auto drafts from the first token of an answer. A "
                                    "file of 544 bytes is stored for each model and drafter, number of threads, "
                                    "instruction set and processor, in $XDG_CACHE_HOME/forerun or "
                                    "~/.cache/forerun. No token depends on it"},
    [FR_ARG_DRAFT_TOPK] = {.names = "--spec-draft-topk", .value = "K", .kind = FR_KIND_NUMBER,
                           .verbs = TALK | VERIFY, .low = 1, .high = 8, .unbuilt = "auto", .unbuilt_from = 2,
                           .help = "alternatives for each draft: 1 (default) is a chain; 2 to 8 and auto are not "
                                   "built yet"},
    [FR_ARG_DRAFT_ROWS] = {.names = "--spec-draft-rows", .value = "N", .kind = FR_KIND_NUMBER,
                           .verbs = TALK | VERIFY, .low = 1, .high = 63, .special = "auto", .unbuilt_from = 1,
                           .help = "the most drafted rows in a step: auto (default); 1 to 63 are not built yet"},
    [FR_ARG_PRESET] = {.names = "--preset", .value = "WORD", .kind = FR_KIND_WORD, .verbs = TALK,
                       .words = "throughput balanced quality",
                       .help = "blocks of 2, 3 or 4 tokens, which are 1, 2 or 3 drafts; --draft-max overrides it"},
    [FR_ARG_ACCEPT] = {.names = "--accept", .value = "RULE", .kind = FR_KIND_WORD, .verbs = TALK,
                       .words = "gumbel rejection", .sets = FR_OPT_ACCEPT, .to = FR_SET_GIVEN,
                       .help = "gumbel (default): accept a draft if the target draws the same token; rejection: by "
                               "chance",
                       .more = "With rejection the text has the model's distribution too, but depends on the drafter"},

    [FR_ARG_CONTEXT] = {.names = "-c --ctx-size", .value = "N", .kind = FR_KIND_NUMBER,
                        .verbs = (RUN - PERPLEXITY - IMATRIX) | INSPECT, .low = 0, .high = INT32_MAX,
                        .help = "the context in tokens (default 4096, more for a longer prompt; 0: all that the "
                                "model has)",
                        .more = "chat: by default all that the model has, if its cache takes at most half of the "
                                "free memory, else 4096. inspect: the context for which a session's memory is "
                                "printed. It can't exceed what the model was made for"},
    [FR_ARG_CONTEXT_SHIFT] = {.names = "--context-shift", .verbs = CHAT,
                              .help = "drop the oldest turns when the context is full; the system turn stays",
                              .more = "So many turns are dropped that a quarter of the context is free, or -n tokens "
                                      "if those are less. The reply then answers the turns that are left"},
    [FR_ARG_THREADS] = {.names = "-t --threads", .value = "N", .kind = FR_KIND_NUMBER,
                        .verbs = RUN | INSPECT | QUANTIZE, .sets = FR_OPT_THREADS, .to = FR_SET_GIVEN,
                        .help = "threads (default: the cores that this process may use)"},
    [FR_ARG_PIN] = {.names = "--pin", .verbs = RUN | QUANTIZE | BENCH, .parts = ALONE,
                    .sets = FR_OPT_PIN, .to = FR_SET_ON,
                    .help = "pin threads to cores (default: if there are several NUMA nodes)",
                    .more = "bench machine and bench kernels pin them by default"},
    [FR_ARG_NO_PIN] = {.names = "--no-pin", .verbs = RUN | QUANTIZE | BENCH, .parts = ALONE,
                       .sets = FR_OPT_PIN, .to = FR_SET_OFF,
                       .help = "do not pin threads to cores"},
    [FR_ARG_NUMA] = {.names = "--numa", .verbs = RUN | INSPECT | QUANTIZE | BENCH, .value = "WORD",
                     .kind = FR_KIND_WORD, .words = "auto off",
                     .help = "auto (default): spread threads and weights over NUMA nodes; off: do not"},
    [FR_ARG_ISA] = {.names = "--isa", .value = "WORD", .kind = FR_KIND_WORD, .of = FR_LAB_ISA, .verbs = RUN | INSPECT,
                    .sets = FR_OPT_ISA, .to = FR_SET_GIVEN,
                    .help = "the highest instruction set to use (default: the best of this machine); the text is the "
                            "same",
                    .more = "The words are {}"},
    [FR_ARG_CHUNK] = {.names = "--chunk -ub --ubatch-size", .verbs = RUN | BENCH, .parts = FR_PART_MODEL, .value = "N",
                      .kind = FR_KIND_NUMBER, .sets = FR_OPT_CHUNK, .to = FR_SET_GIVEN,
                      .help = "prompt rows in a forward (default 64; mixtures of experts 256)",
                      .more = "With several texts at once it is 64 for mixtures too"},
    [FR_ARG_KV_K] = {.names = "-ctk --cache-type-k", .verbs = RUN | INSPECT | BENCH, .parts = FR_PART_MODEL,
                     .value = "TYPE", KV_TYPES, .sets = FR_OPT_KV_K, .to = FR_SET_GIVEN,
                     .help = "type of cached keys: {} (default f16, or f32 for float weights)",
                     .more = "All but f32, f16 and bf16 need heads whose width is a multiple of 32. turbo4 and turbo3 "
                             "(4.5 and 3.5 bits a number) store rotated heads, and no latents"},
    [FR_ARG_KV_V] = {.names = "-ctv --cache-type-v", .verbs = RUN | INSPECT | BENCH, .parts = FR_PART_MODEL,
                     .value = "TYPE", KV_TYPES, .sets = FR_OPT_KV_V, .to = FR_SET_GIVEN,
                     .help = "type of cached values",
                     .more = "Latents (DeepSeek, GLM-4.7-Flash, Kimi) are keys and values in one and have the keys' "
                             "type, so another type is refused"},
    [FR_ARG_CTX_CHECKPOINTS] = {.names = "--ctx-checkpoints --swa-checkpoints -ctxcp", .value = "N",
                                .kind = FR_KIND_NUMBER, .verbs = TALK,
                                .sets = FR_OPT_CTX_CHECKPOINTS, .to = FR_SET_GIVEN,
                                .help = "the most checkpoints of sliding or recurrent layers to which a session can "
                                        "go back (default 8)",
                                .more = "After a change in a prompt, or in a shortened conversation, only few tokens "
                                        "are then run again"},
    [FR_ARG_SWA_FULL] = {.names = "--swa-full", .verbs = TALK, .sets = FR_OPT_SWA_FULL, .to = FR_SET_ON,
                         .help = "cache all positions of sliding layers, which takes more memory but needs no "
                                 "checkpoints"},
    [FR_ARG_NO_MMAP] = {.names = "--no-mmap", .verbs = RUN | INSPECT | PACK | BENCH,
                        .parts = FR_PART_MODEL | FR_PART_NEIGHBOURS | FR_PART_GRAMMAR,
                        .sets = FR_OPT_MMAP, .to = FR_SET_OFF,
                        .help = "read weights into memory instead of mapping the file"},
    [FR_ARG_MLOCK] = {.names = "--mlock", .verbs = RUN | BENCH,
                      .parts = FR_PART_MODEL | FR_PART_NEIGHBOURS | FR_PART_GRAMMAR,
                      .sets = FR_OPT_MLOCK, .to = FR_SET_ON,
                      .help = "lock weights in memory"},
    [FR_ARG_QUIET] = {.names = "--quiet", .verbs = ALL, .help = "print no progress and no notes on standard error"},
    [FR_ARG_VERBOSE] = {.names = "-v --verbose", .verbs = RUN | BENCH, .parts = FR_PART_MODEL,
                        .help = "print what is run: files, instruction set, threads, context"},
    [FR_ARG_VERSION] = {.names = "--version", .verbs = ALL, .help = "print the version"},
    [FR_ARG_HELP] = {.names = "-h --help", .verbs = ALL, .help = "print this help"},

    [FR_ARG_IMAGE] = {.names = "--image", .value = "FILE", .verbs = GENERATE | CHAT | LOGITS | INSPECT, .again = true,
                      .help = "a picture (PNG, JPEG, WebP, GIF) for models that see, before the prompt or first "
                              "turn; repeatable",
                      .more = "generate: the prompt is then a user's turn, as with --chat, unless it has an {image} "
                              "for each picture; with --chat the turn may have these too. inspect: prints how many "
                              "tokens the picture takes"},
    [FR_ARG_IMAGE_MAX_PIXELS] = {.names = "--image-max-pixels", .value = "N", .kind = FR_KIND_NUMBER,
                                 .verbs = TALK | LOGITS | INSPECT, .low = 1, .high = 1 << 27,
                                 .sets = FR_OPT_IMAGE_MAX_PIXELS, .to = FR_SET_GIVEN,
                                 .help = "shrink pictures to at most this many pixels (default: the makers' limit)",
                                 .more = "Fewer pixels are fewer tokens. That is faster, but the model sees less. "
                                         "inspect prints how many tokens pictures take"},
    [FR_ARG_IMAGE_MIN_PIXELS] = {.names = "--image-min-pixels", .value = "N", .kind = FR_KIND_NUMBER,
                                 .verbs = TALK | LOGITS | INSPECT, .low = 1, .high = 1 << 27,
                                 .sets = FR_OPT_IMAGE_MIN_PIXELS, .to = FR_SET_GIVEN,
                                 .help = "enlarge smaller pictures to about this many pixels"},
    [FR_ARG_IMAGE_MAX_TOKENS] = {.names = "--image-max-tokens", .value = "N", .kind = FR_KIND_NUMBER,
                                 .verbs = TALK | LOGITS | INSPECT, .low = 1, .high = 1 << 20,
                                 .sets = FR_OPT_IMAGE_MAX_TOKENS, .to = FR_SET_GIVEN, .manual = true,
                                 .help = "the most tokens that a picture may take, instead of --image-max-pixels"},
    [FR_ARG_IMAGE_MIN_TOKENS] = {.names = "--image-min-tokens", .value = "N", .kind = FR_KIND_NUMBER,
                                 .verbs = TALK | LOGITS | INSPECT, .low = 1, .high = 1 << 20,
                                 .sets = FR_OPT_IMAGE_MIN_TOKENS, .to = FR_SET_GIVEN, .manual = true,
                                 .help = "the fewest tokens that a picture takes, instead of --image-min-pixels"},

    [FR_ARG_SHELL] = {.names = "--shell", .value = "SHELL", .kind = FR_KIND_WORD, .verbs = COMPLETION,
                      .words = "bash zsh fish", .help = "bash, zsh or fish; the name --shell may be left out"},
    [FR_ARG_BENCH_PART] = {.names = "--part", .value = "PART", .kind = FR_KIND_WORD, .verbs = BENCH,
                           .words = "machine kernels model neighbours grammar ranks",
                           .help = "machine, kernels, model, neighbours, grammar or ranks; the name --part may be "
                                   "left out"},
    [FR_ARG_BENCH_FORM] = {.names = "-o --output", .value = "FORM", .kind = FR_KIND_WORD, .verbs = BENCH,
                           .words = "md csv json jsonl sql", .help = "print md (default), csv, json, jsonl or sql"},
    [FR_ARG_BENCH_FILTER] = {.names = "--filter", .value = "RE", .verbs = BENCH, .parts = FR_PART_KERNELS,
                             .help = "kernels: only those whose name matches the regular expression",
                             .more = "A kernel whose bits are wrong is not timed, and the exit status is 1"},
    [FR_ARG_BENCH_ISA] = {.names = "--isa", .value = "LIST", .kind = FR_KIND_LIST, .of = FR_LAB_ISA,
                          .verbs = BENCH,
                          .help = "instruction sets (default: the best of this machine; for kernels all that it has)"},
    [FR_ARG_BENCH_ROWS] = {.names = "--rows", .value = "LIST", .kind = FR_KIND_NUMBERS, .verbs = BENCH,
                           .parts = FR_PART_KERNELS | FR_PART_MODEL, .low = 0, .high = 4096,
                           .help = "rows of activations (default: kernels 1,2,4,8,64,512; model 1..8,16, and 0 means "
                                   "none)"},
    [FR_ARG_BENCH_WEIGHTS] = {.names = "--weights", .value = "MIB", .kind = FR_KIND_NUMBER, .verbs = BENCH,
                              .parts = FR_PART_KERNELS, .low = 1, .high = 1 << 20,
                              .help = "kernels: MiB of weights that products read (default: 4 times the caches)"},
    [FR_ARG_BENCH_THREADS] = {.names = "-t --threads", .value = "LIST", .kind = FR_KIND_NUMBERS, .verbs = BENCH,
                              .low = 1, .high = 1024, .help = "threads (default: the cores that this process may use)"},
    [FR_ARG_BENCH_PROMPT] = {.names = "-p --n-prompt", .value = "LIST", .kind = FR_KIND_NUMBERS, .verbs = BENCH,
                             .parts = FR_PART_MODEL, .low = 0, .high = 1 << 20,
                             .help = "model: lengths of prompts (default 512; 0: none)"},
    [FR_ARG_BENCH_GENERATE] = {.names = "-n --n-gen", .value = "LIST", .kind = FR_KIND_NUMBERS, .verbs = BENCH,
                               .parts = FR_PART_MODEL, .low = 0, .high = 1 << 20,
                               .help = "model: tokens to generate (default 128; 0: none)"},
    [FR_ARG_BENCH_BOTH] = {.names = "-pg", .value = "PP,TG", .verbs = BENCH, .parts = FR_PART_MODEL, .low = 1,
                           .high = 1 << 20, .again = true,
                           .help = "model: a prompt of PP tokens and TG tokens generated after it, timed together; "
                                   "repeatable"},
    [FR_ARG_BENCH_DEPTH] = {.names = "-d --n-depth", .value = "LIST", .kind = FR_KIND_NUMBERS, .verbs = BENCH,
                            .parts = FR_PART_MODEL, .low = 0, .high = 1 << 20,
                            .help = "model: tokens that are in the context before a test (default 0,4096,16384)"},
    [FR_ARG_BENCH_PHASES] = {.names = "--phases", .value = "N", .kind = FR_KIND_NUMBER, .verbs = BENCH,
                             .parts = FR_PART_MODEL, .low = 1, .high = 1 << 20,
                             .help = "model: also show where the time of a prompt of N tokens goes, for each thread"},
    [FR_ARG_BENCH_DRAFTS] = {.names = "--spec-draft-n-max --draft-max --draft --draft-n", .value = "LIST",
                             .kind = FR_KIND_NUMBERS, .verbs = BENCH, .parts = FR_PART_MODEL, .low = 1,
                             .high = FR_STEP_MAX - 1, .special = "auto",
                             .help = "model: drafts in a step, 1..3,auto (default auto; with --spec-synth-rates "
                                     "1..4,auto)"},
    [FR_ARG_BENCH_SPEC_TYPE] = {.names = "--spec-type", .value = "WORDS", .kind = FR_KIND_LIST, .verbs = BENCH,
                                .parts = FR_PART_MODEL, .of = FR_LAB_DRAFT, .also = FR_LAB_DRAFT_OTHER,
                                .help = "model: the draft method (default: the drafter's)"},
    [FR_ARG_BENCH_PROMPTS] = {.names = "--prompts", .value = "FOLDER", .verbs = BENCH, .parts = FR_PART_MODEL,
                              .help = "model: the folder with texts for speculation, CLASS*.txt (default: built-in "
                                      "texts)"},
    [FR_ARG_BENCH_SYNTH_RATES] = {.names = "--spec-synth-rates", .value = "LIST", .verbs = BENCH,
                                  .parts = FR_PART_MODEL,
                                  .help = "model: use made-up drafts, accepted at these rates by depth: 0.8,0.6,0.5"},
    [FR_ARG_BENCH_REPETITIONS] = {.names = "-r --repetitions", .value = "N", .kind = FR_KIND_NUMBER, .verbs = BENCH,
                                  .low = 1, .high = 1000,
                                  .help = "timings whose median and spread are printed (default 5; machine: 15)",
                                  .more = "A single timing has no spread, so its figure is marked with ?"},
    [FR_ARG_BENCH_SPREAD] = {.names = "--max-spread", .value = "PERCENT", .kind = FR_KIND_REAL, .verbs = BENCH,
                             .low = 0, .high = 1000000,
                             .help = "mark figures whose spread is larger than this (default 20)"},
    [FR_ARG_BENCH_PLOT] = {.names = "--plot", .value = "FILE", .verbs = BENCH, .parts = FR_PART_KERNELS | FR_PART_MODEL,
                           .help = "kernels, model: also draw a picture of the result, SVG"},
};
/* clang-format on */

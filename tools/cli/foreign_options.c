/* The table of llama.cpp's options (foreign_options.h). tests/data/options lists the names that it must know. */
#include "tools/cli/foreign_options.h"

#include <string.h>

#include "tools/cli/words.h"

enum {
    GENERATE = FR_VERB_GENERATE,
    CHAT = FR_VERB_CHAT,
    SERVE = FR_VERB_SERVE,
    BENCH = FR_VERB_BENCH,
    IMATRIX = FR_VERB_IMATRIX,
    QUANTIZE = FR_VERB_QUANTIZE,
    TALK = GENERATE | CHAT | FR_VERB_BATCH | FR_VERB_FEATURES | SERVE,
    RUN = TALK | FR_VERB_LOGITS | FR_VERB_VERIFY | FR_VERB_PERPLEXITY | IMATRIX | BENCH,
};

#define FLAG   FR_FOREIGN_FLAG
#define VALUE  FR_FOREIGN_VALUE
#define SWITCH FR_FOREIGN_SWITCH

static const fr_foreign_option table[] = {
    /* Hardware, threads, batches and memory. */
    {"-ngl --gpu-layers --n-gpu-layers -ngld --gpu-layers-draft --n-gpu-layers-draft --spec-draft-ngl -b --batch-size "
     "--prio --prio-batch --poll --poll-batch -mg --main-gpu -sm --split-mode -ts --tensor-split -dev --device -tb "
     "--threads-batch",
     VALUE, RUN, NULL},
    {"-ot --override-tensor -otd --override-tensor-draft --spec-draft-override-tensor -ncmoe --n-cpu-moe -ncmoed "
     "--n-cpu-moe-draft --spec-draft-n-cpu-moe --spec-draft-ncmoe -ncffn --n-cpu-ffn -devd --device-draft "
     "--spec-draft-device -mmdev --mmproj-device -fitt --fit-target -fitc --fit-ctx -lzm --lazy-mode --cpu-strict "
     "--cpu-strict-batch --spec-draft-cpu-strict --cpu-strict-draft --spec-draft-cpu-strict-batch "
     "--cpu-strict-batch-draft --spec-draft-prio --prio-draft --spec-draft-prio-batch --prio-batch-draft "
     "--spec-draft-poll --poll-draft --spec-draft-poll-batch --poll-batch-draft --spec-draft-threads -td "
     "--threads-draft --spec-draft-threads-batch -tbd --threads-batch-draft -dt --defrag-thold --delay",
     VALUE, RUN, NULL},
    {"-fa --flash-attn -nkvo --no-kv-offload -fit --fit --repack --no-host --no-op-offload", SWITCH, RUN, NULL},
    {"-kvo --kv-offload -nr --no-repack -cmoe --cpu-moe -cmoed --cpu-moe-draft --spec-draft-cpu-moe "
     "--op-offload --mmproj-offload --no-mmproj-offload -bs --backend-sampling "
     "--spec-draft-backend-sampling --no-spec-draft-backend-sampling --mmap",
     FLAG, RUN, NULL},
    {"-nopo -embd", VALUE, BENCH, NULL},
    {"--progress", FLAG, BENCH, NULL},
    {"--max-buffer-size", VALUE, QUANTIZE, NULL},
    {"-C --cpu-mask -Cr --cpu-range -Cb --cpu-mask-batch -Crb --cpu-range-batch --spec-draft-cpu-mask -Cd "
     "--cpu-mask-draft --spec-draft-cpu-range -Crd --cpu-range-draft --spec-draft-cpu-mask-batch -Cbd "
     "--cpu-mask-batch-draft --spec-draft-cpu-range-batch -Crbd --cpu-range-batch-draft",
     VALUE, 0, "taskset -c LIST forerun ... chooses the cores, and --pin keeps threads on them"},
    {"-lm --load-mode", VALUE, 0, "--no-mmap reads weights into memory, --mlock keeps them there"},
    {"-rpc --rpc", VALUE, 0, "several machines run a model as ranks: mpirun forerun ..."},
    {"--list-devices", FLAG, 0, "forerun bench machine tells what the machine has"},
    {"-fitp --fit-print", VALUE, 0, "forerun inspect -c N tells what a session takes"},

    /* Output and logs. */
    {"--jinja --no-jinja --warmup --no-warmup --no-display-prompt --simple-io --perf --no-perf --log-disable "
     "-cb --cont-batching -nocb --no-cont-batching --offline -st --single-turn --no-context-shift --log-prefix "
     "--no-log-prefix --log-timestamps --no-log-timestamps --no-show-timings --no-log-jsonl",
     FLAG, RUN - CHAT, NULL},
    {"--jinja --no-jinja --warmup --no-warmup --no-display-prompt --simple-io --perf --no-perf --log-disable -cnv "
     "--conversation --offline --no-context-shift --log-prefix --no-log-prefix --log-timestamps --no-log-timestamps "
     "--no-show-timings --no-log-jsonl",
     FLAG, CHAT, NULL},
    {"-cnv --conversation -no-cnv --no-conversation", FLAG, RUN - CHAT - GENERATE, NULL},
    {"-st --single-turn", FLAG, 0, "forerun generate --chat answers one turn"},
    {"--log-colors", SWITCH, RUN, NULL},
    {"-lv --verbosity --log-verbosity", VALUE, RUN, "--verbose says more, --quiet less"},
    {"--log-verbose", FLAG, 0, "--verbose says what runs"},
    {"--verbose-prompt", FLAG, 0, "forerun tokenize --pieces shows a prompt's tokens"},
    {"--display-prompt", FLAG, 0, "generate prints the new text alone"},
    {"-ptc --print-token-count", VALUE, 0, "--stats counts tokens"},
    {"--show-timings", FLAG, 0, "--stats tells the times"},
    {"-sp --special", FLAG, 0, "--output ids has the special tokens that text leaves out"},
    {"--log-file", VALUE, 0, "notes go to standard error: 2> FILE"},
    {"--log-jsonl", FLAG, 0, "serve --log-format json writes its log so"},
    {"--log-prompts-dir", VALUE, 0, "serve --log-contents has them in the log"},
    {"--usage", FLAG, 0, "--help"},
    {"-cl --cache-list", FLAG, 0, "forerun models lists what other programs have downloaded"},
    {"--completion-bash", FLAG, 0, "forerun completion bash prints it"},
    {"--server-base", VALUE, 0, "forerun chat runs the model itself"},
    {"-oe --output-err", VALUE, 0, "results go to standard output, notes to standard error"},

    /* Prompts and chats. */
    {"--keep", VALUE, RUN, "--context-shift keeps the system turn"},
    {"--prompt-cache-all", FLAG, RUN, "--prompt-cache keeps the text with the prompt"},
    {"--prompt-cache-ro", FLAG, 0, "--prompt-cache always saves: give it a copy of the file"},
    {"-i --interactive -if --interactive-first", FLAG, 0, "forerun chat is the conversation"},
    {"-mli --multiline-input", FLAG, CHAT, "a backslash or three quotes go on in the next line"},
    {"-mli --multiline-input", FLAG, 0, "forerun chat has lines that go on"},
    {"--in-prefix --in-suffix", VALUE, 0, "the chat template opens and closes turns: --chat-template-file FILE"},
    {"--in-prefix-bos", FLAG, 0, "the chat template writes it: --chat-template-file FILE"},
    {"--chat-template", VALUE, 0, "--chat-template-file FILE reads a template"},
    {"--skip-chat-parsing", FLAG, 0, "the native /completion answers with the text as it is"},
    {"--no-skip-chat-parsing --prefill-assistant --reasoning-preserve", FLAG, RUN, NULL},
    {"--no-prefill-assistant --no-reasoning-preserve", FLAG, 0,
     "the chat template decides: --chat-template-kwargs JSON"},
    {"--reasoning-format", VALUE, RUN, "reasoning is told apart; a request may say \"reasoning_format\""},
    {"-rea --reasoning", VALUE, 0, "--no-think asks for no thinking; without it the template decides"},
    {"--reasoning-effort", VALUE, 0, "--chat-template-kwargs '{\"reasoning_effort\": \"high\"}'"},
    {"--reasoning-budget", VALUE, 0, "--no-think asks for no thinking; requests to serve have a budget of their own"},
    {"--reasoning-budget-message", VALUE, 0, "a request to serve may have a budget for its thinking"},
    {"-gan --grp-attn-n -gaw --grp-attn-w", VALUE, 0, "not built: a model reads as far as it was made for (-c 0)"},

    /* Sampling. */
    {"--adaptive-target --adaptive-decay", VALUE, 0, "not built: --mirostat 2 and --dynatemp-range are near to it"},

    /* The model. */
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor "
     "--yarn-attn-factor --yarn-beta-slow --yarn-beta-fast",
     VALUE, 0, "not built: the model's own file says how its positions are rotated"},
    {"--override-kv", VALUE, 0, "not built: --tokenizer-pre and --chat-template-file replace what is most often wrong"},
    {"--check-tensors", FLAG, 0, "forerun inspect checks a model's tensors"},
    {"-mu --model-url", VALUE, 0, "forerun downloads nothing: curl -LO URL, then -m FILE"},
    {"-mmu --mmproj-url", VALUE, 0, "forerun downloads nothing: curl -LO URL, then --mmproj FILE"},
    {"-dr --docker-repo", VALUE, 0, "forerun downloads nothing: -m FILE, or -m ORG/NAME of a model in a cache"},
    {"-hff --hf-file", VALUE, 0, "-m ORG/NAME:FILE"},
    {"-hft --hf-token", VALUE, RUN, "forerun downloads nothing"},
    {"--mtp --dflash --eagle3", FLAG, 0, "forerun downloads nothing: -md DRAFTER names it, --spec-type how it drafts"},
    {"--embd-gemma-default --fim-qwen-1.5b-default --fim-qwen-3b-default --fim-qwen-7b-default --fim-qwen-7b-spec "
     "--fim-qwen-14b-spec --fim-qwen-30b-default --gpt-oss-20b-default --gpt-oss-120b-default "
     "--vision-gemma-4b-default --vision-gemma-12b-default",
     FLAG, 0, "forerun downloads nothing: -m MODEL names a file, a folder or a model in a cache"},

    /* Pictures. */
    {"--mmproj-auto --no-mmproj-auto --no-mmproj", FLAG, RUN, "--mmproj FILE alone opens a vision tower"},
    {"--audio --video --video-fps --video-timestamp-interval --video-ffmpeg-dir", VALUE, 0,
     "not built: models see pictures (--image FILE)"},
    {"--mtmd-batch-max-tokens", VALUE, RUN, NULL},

    /* Drafts. */
    {"--spec-ngram-mod-n-min --spec-ngram-mod-n-max --spec-ngram-mod-n-match --spec-ngram-simple-size-n "
     "--spec-ngram-simple-size-m --spec-ngram-simple-min-hits --spec-ngram-map-k-size-n --spec-ngram-map-k-size-m "
     "--spec-ngram-map-k-min-hits --spec-ngram-map-k4v-size-n --spec-ngram-map-k4v-size-m "
     "--spec-ngram-map-k4v-min-hits --spec-ngram-size-n --spec-ngram-size-m --spec-ngram-min-hits",
     VALUE, RUN, "--spec-type ngram finds lengths by itself"},
    {"--spec-draft-p-split --draft-p-split", VALUE, RUN, "drafts are a chain"},
    {"--spec-draft-type-k -ctkd --cache-type-k-draft --spec-draft-type-v -ctvd --cache-type-v-draft", VALUE, RUN,
     "a drafter's cache is of its target's types"},
    {"-lcs --lookup-cache-static -lcd --lookup-cache-dynamic", VALUE, 0, "--spec-type ngram looks up the text itself"},
    {"--spec-default", FLAG, 0, "--spec-type ngram drafts without a drafter, and -md DRAFTER by one"},
    {"--spec-synth-len --spec-synth-rates", VALUE, 0, "forerun bench model --spec-synth-rates"},

    /* The server. */
    {"--ui --webui --cache-prompt --no-cache-prompt --cache-idle-slots --no-cache-idle-slots -kvu --kv-unified -no-kvu "
     "--no-kv-unified --models-autoload --no-agent -no-ag --no-ui-mcp-proxy --no-webui-mcp-proxy "
     "--no-cors-credentials",
     FLAG, RUN, NULL},
    {"--threads-http --cache-reuse -cms --checkpoint-min-step -sps --slot-prompt-similarity", VALUE, RUN, NULL},
    {"-cram --cache-ram", VALUE, RUN, "--kv-memory limits what texts keep"},
    {"--kv-unified-per-slot", VALUE, 0, "-c N is the context of each slot"},
    {"--reuse-port", FLAG, 0, "not built: one process has a port"},
    {"--path", VALUE, 0, "not built: the page is part of the command, --no-ui leaves it out"},
    {"--cors-origins", VALUE, 0, "--cors ORIGIN"},
    {"--cors-methods --cors-headers", VALUE, RUN, "--cors ORIGIN allows those that clients need"},
    {"--cors-credentials", FLAG, 0, "not built: --cors ORIGIN goes without"},
    {"--api-prefix", VALUE, 0, "not built: a proxy in front can take it off"},
    {"--ui-config --webui-config --ui-config-file --webui-config-file", VALUE, 0,
     "not built: the page keeps settings in the browser"},
    {"--ui-mcp-proxy --webui-mcp-proxy -ag --agent", FLAG, 0, "not built: clients run their tools themselves"},
    {"--tools", VALUE, 0, "requests to serve bring their tools"},
    {"--tools-runtime --mcp-servers-config --mcp-servers-json", VALUE, 0,
     "not built: clients run their tools themselves"},
    {"--rerank --reranking", FLAG, 0, "--embeddings: it answers /v1/rerank too, and cross-encoders need no option"},
    {"--embd-normalize --embd-separator", VALUE, 0,
     "rows of /v1/embeddings have length 1; forerun embed has this option"},
    {"--embd-output-format", VALUE, 0, "-o json or -o f32 of forerun embed"},
    {"--cls-separator --attention", VALUE, 0, "not built: the model's own files say how it reads a text"},
    {"--props", FLAG, 0, "not built: GET /props tells, and options are given at the start"},
    {"--media-path", VALUE, 0, "not built: pictures come in requests"},
    {"--models-preset", VALUE, 0, "--models LIST names models"},
    {"--no-models-autoload", FLAG, 0, "--models LIST loads a model once a request names it"},
    {"--sleep-idle-seconds", VALUE, 0, "not built: --models-max N limits what is in memory"},
    {"--tags", VALUE, 0, "-a NAME is what a model is called"},
    {"--spm-infill", FLAG, RUN, "a model's own tokens say how it fills in"},

    /* Measuring. */
    {"--ppl-output-type", VALUE, 0, "not built: forerun perplexity prints one form"},
    {"--no-ppl", FLAG, IMATRIX, NULL},
    {"--ppl", FLAG, 0, "forerun perplexity computes it"},
    {"-ofreq --output-frequency --save-frequency", VALUE, IMATRIX, "the file is written at the end"},
    {"--from-chunk", VALUE, 0, "not built: --chunks N limits how many are read, from the first on"},
    {"--show-statistics", FLAG, 0, "not built"},
    {"--parse-special", FLAG, IMATRIX, "special tokens of the text are those tokens"},
    {"--ns --sequences -ns -pps -tgs -npp -ntg -npl --junk --pos", VALUE, 0,
     "forerun batch -np N runs many texts at once, and bench model times rows"},

    /* Tokens. */
    {"--stdin", FLAG, 0, "-f -"},
    {"--no-parse-special", FLAG, 0, "not built: special tokens of a text are those tokens"},
    {"--show-count", FLAG, 0, "--pieces prints a line for each token"},

    /* Quantizing. */
    {"--allow-requantize", FLAG, QUANTIZE, "quantized matrices are decoded and encoded anew"},
    {"--leave-output-tensor", FLAG, 0, "--output-tensor-type TYPE chooses the type of the head"},
    {"--include-weights --exclude-weights", VALUE, 0, "not built: --imatrix is used for all tensors that it has"},
    {"--tensor-type-file", VALUE, 0, "--tensor-type PATTERN=TYPE, which may be given 64 times"},
    {"--prune-layers", VALUE, 0, "not built"},
    {"--keep-split", FLAG, 0, "not built: one file is written"},
    {"--dry-run", FLAG, 0, "not built: forerun inspect tells the size of what was written"},
};
enum { ROWS = sizeof table / sizeof *table };

const fr_foreign_option *fr_foreign_find(const fr_verb *verb, const char *name) {
    const fr_foreign_option *found = NULL;
    size_t length = strcspn(name, "=");
    for (size_t i = 0; i < ROWS; i++) {
        if (!fr_has_word(table[i].names, name, length)) continue;
        if (table[i].taken & verb->bit) return &table[i];
        if (!found || (!table[i].taken && found->taken)) found = &table[i];
    }
    return found;
}

/* Returns true if this is the first row with its name. If verbs treat a name differently, the name has several rows.
 * The page lists the name only once. */
static bool is_first(size_t row) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(table[row].names, " "), table[row].names);
    for (size_t i = 0; i < row; i++)
        if (fr_has_word(table[i].names, name, strlen(name))) return false;
    return true;
}

static const char *says_of(const fr_foreign_option *row) {
    return row->says ? row->says : "nothing here depends on it";
}

void fr_foreign_print(FILE *out) {
    fputs("| llama.cpp | forerun |\n| --- | --- |\n", out);
    for (size_t i = 0; i < ROWS; i++) {
        if (!is_first(i)) continue;
        const char *names = table[i].names;
        size_t length;
        fputs("| ", out);
        for (const char *name; (name = fr_next_word(&names, ' ', &length));)
            fprintf(out, "`%.*s`%s", (int)length, name, names ? " " : "");
        fprintf(out, " | %s: %s |\n", table[i].taken ? "taken" : "refused", says_of(&table[i]));
    }
}

/* Escapes hyphens for troff, so that a search for an option finds it in the manual page. */
static void put_roff(const char *text, FILE *out) {
    for (const char *c = text; *c; c++) {
        if (*c == '-') fputc('\\', out);
        fputc(*c, out);
    }
}

void fr_foreign_print_manual(FILE *out) {
    for (size_t i = 0; i < ROWS; i++) {
        if (!is_first(i)) continue;
        fputs(".TP\n.B ", out);
        put_roff(table[i].names, out);
        fprintf(out, "\n%s: ", table[i].taken ? "Taken" : "Refused");
        put_roff(says_of(&table[i]), out);
        fputs(".\n", out);
    }
}

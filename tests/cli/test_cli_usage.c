/* Tests arguments that the command accepts or refuses before it opens a model. If it refuses, the exit status and the
 * error line must be right. */
/* suite: quick */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"

typedef struct misuse {
    const char *line;
    const char *says; /* a part of the error line */
} misuse;

/* Checks that the command ends with this exit status, one line on standard error that contains this text, and no
 * output. */
static void check_refused(const misuse *m, int status) {
    fr_command c = fr_command_run(m->line, NULL);
    ck_assert_msg(c.status == status, "%s: exit %d, not %d: %s", m->line, c.status, status, c.err);
    ck_assert_msg(c.out_length == 0, "%s: standard output has: %s", m->line, c.out);
    ck_assert_msg(strncmp(c.err, "forerun: ", 9) == 0, "%s: %s", m->line, c.err);
    ck_assert_msg(strchr(c.err, '\n') == c.err + c.err_length - 1, "%s: not one line: %s", m->line, c.err);
    ck_assert_msg(strstr(c.err, m->says) != NULL, "%s: no \"%s\" in: %s", m->line, m->says, c.err);
    fr_command_free(&c);
}

static const misuse wrong_usage[] = {
    {"genrate -m x -p y", "did you mean generate?"},
    {"genreate -m x -p y", "did you mean generate?"},
    {"chta -m x", "did you mean chat?"},
    {"xyzzy", "unknown verb xyzzy (forerun --help lists them)"},
    {"lisp -m x", "unknown verb lisp (forerun --help lists them)"},
    {"list", "forerun models lists"},
    {"run llama3", "forerun chat MODEL talks"},
    {"pull llama3", "forerun models lists"},
    {"ps", "GET /v1/models"},
    {"show x", "forerun inspect MODEL"},
    {"quantize x FILE IQ2_XS", "IQ2_XS is not built; the nearest is q2_k"},
    {"quantize x FILE COPY", "cp copies a file"},
    {"quantize x Q4_K_M", "quantize needs the file to write: quantize x FILE Q4_K_M"},
    {"quantize x FILE q4_0 2 more", "more: what is this word for?"},
    {"help xyzzy", "unknown verb xyzzy"},
    {"help genrate", "did you mean generate?"},
    {"help chat generate", "generate: what is this word for?"},
    {"--help chat generate", "generate: what is this word for?"},
    {"--help xyzzy", "unknown verb xyzzy"},
    {"--version extra", "extra: what is this word for?"},
    {"--verson", "unknown verb --verson"},
    {"generate -p y", "needs -m"},
    {"serve", "serve needs -m"},
    {"serve -m x --ssl-key-file tests/support/require.h", "--ssl-key-file and --ssl-cert-file go together"},
    {"serve -m x --accept rejection", "which serve promises not to"},
    {"generate " MODEL, "needs a prompt"},
    {"generate " MODEL "-f y --ids 2", "exclude each other"},
    {"chat " MODEL "-no-cnv", "-no-cnv: chat is a conversation"},
    {"generate " MODEL "-p x -cnv --no-conversation", "-cnv and --no-conversation: which of them?"},
    {"tokenize " MODEL "-no-cnv -p x", "tokenize takes no -no-cnv"},
    {"generate " MODEL "-p x --ids 2", "exclude each other"},
    {"template -m x", "needs --messages"},
    {"generate " MODEL "-p x --no-think", "goes with --chat"},
    {"generate " MODEL "-p x -p", "-p needs a value"},
    {"generate " MODEL "-p x y", "y: what is this word for?"},
    {"generate y " MODEL "-p x", "y: what is this word for? -m names the model"},
    {"generate " MODEL "-p x --tools y", "--tools goes with --chat"},
    {"generate " MODEL "-p x --context-shift", "generate takes no --context-shift"},
    {"generate " MODEL "-p x --drat-max 3", "did you mean --draft-max?"},
    {"generate " MODEL "-p x -xyz 9", "unknown option -xyz (forerun generate --help lists them)"},
    {"generate " MODEL "-p x --frobnicate", "unknown option --frobnicate"},
    {"generate " MODEL "-p x -", "unknown option -"},
    {"generate " MODEL "-p x --ignore-eos=1", "takes no value"},
    {"generate " MODEL "-p x --draft-steps 2", "generate takes no --draft-steps"},
    {"chat " MODEL "-n 0", "-n takes 1 or more"},
    {"generate " MODEL "-p x -n -2", "out of range"},
    {"generate " MODEL "-p x -n 5x", "not a whole number"},
    {"generate " MODEL "-p x -n ''", "not a whole number"},
    {"generate " MODEL "-p x -n 99999999999999999999", "not a whole number"},
    {"generate " MODEL "-p x -c -1", "out of range"},
    {"generate " MODEL "-p x -t 0", "out of range"},
    {"generate " MODEL "-p x -t 1025", "out of range"},
    {"generate " MODEL "-p x --chunk 0", "out of range"},
    {"generate " MODEL "-p x --chunk 4097", "out of range"},
    {"generate " MODEL "-p x --seed -2", "out of range"},
    {"generate " MODEL "-p x --temp -1", "out of range"},
    {"generate " MODEL "-p x --temp nan", "out of range"},
    {"generate " MODEL "-p x --temp warm", "not a number"},
    {"generate " MODEL "-p x --top-k -1", "out of range"},
    {"generate " MODEL "-p x --top-p 1.5", "out of range"},
    {"generate " MODEL "-p x --min-p -0.1", "out of range"},
    {"generate " MODEL "-p x --repeat-penalty 0", "--repeat-penalty 0 is out of range: 0.01 to 100"},
    {"generate " MODEL "-p x --repeat-last-n -2", "out of range"},
    {"chat " MODEL "--presence-penalty 1e9", "out of range"},
    {"generate " MODEL "-p x --typical 1.1", "out of range"},
    {"generate " MODEL "-p x --top-nsigma -2", "out of range"},
    {"generate " MODEL "-p x --xtc-probability 2", "out of range"},
    {"generate " MODEL "-p x --xtc-threshold -1", "out of range"},
    {"generate " MODEL "-p x --dynatemp-range -1", "out of range"},
    {"generate " MODEL "-p x --dynatemp-exp x", "not a number"},
    {"generate " MODEL "-p x --mirostat 3", "out of range"},
    {"generate " MODEL "-p x --mirostat 1", "not built"},
    {"generate " MODEL "-p x --mirostat-lr -1", "out of range"},
    {"generate " MODEL "-p x --mirostat-ent -1", "out of range"},
    {"generate " MODEL "-p x --dry-multiplier -1", "out of range"},
    {"generate " MODEL "-p x --dry-base 0.9", "out of range"},
    {"generate " MODEL "-p x --dry-allowed-length -1", "out of range"},
    {"generate " MODEL "-p x --dry-penalty-last-n -2", "out of range"},
    {"generate " MODEL "-p x --dry-multiplier 1 --dry-sequence-breaker ''", "a text of 1 to 40 bytes"},
    {"generate " MODEL "-p x --samplers 'top_k;warm'", "warm is not known"},
    {"generate " MODEL "-p x --samplers ''", "is not known"},
    {"generate " MODEL "-p x --samplers 'top_k;top-k'", "named twice"},
    {"generate " MODEL "-p x --samplers 'top_k;dry'", "stand in front"},
    {"generate " MODEL "-p x --samplers 'top_k;infill'", "not built"},
    {"generate " MODEL "-p x --sampler-seq kz", "is not known"},
    {"generate " MODEL "-p x --frequency-penalty much", "not a number"},
    {"generate " MODEL "-p x --logit-bias 5", "not a list such as 15+1.5"},
    {"generate " MODEL "-p x -l 5+1 -l x+1", "not a list such as 15+1.5"},
    {"generate " MODEL "-p x --accept always", "known: gumbel rejection"},
    {"generate " MODEL "-p x --logprobs 3", "goes with --output json"},
    {"generate " MODEL "-p x --output ids --logprobs 3", "goes with --output json"},
    {"generate " MODEL "-p x --output json --logprobs 101", "out of range"},
    {"chat " MODEL "--logprobs 3", "chat takes no --logprobs"},
    {"generate " MODEL "-p x --numa on", "known: auto off"},
    {"generate " MODEL "-p x --pin --no-pin", "which of them?"},
    {"tokenize " MODEL "-p x --pin", "tokenize takes no --pin"},
    {"generate " MODEL "-p x --isa avx1024", "known: scalar"},
    {"generate " MODEL "-p x --output xml", "known: text ids json"},
    {"generate " MODEL "-p x --accept always", "known: gumbel"},
    {"generate " MODEL "-p x -ctk q9_9", "q9_9 is unknown"},
    {"generate " MODEL "-p x -ctv F3", "F3 is unknown"},
    {"generate " MODEL "-p x --stop ''", "not empty"},
    {"generate " MODEL "-p x --system y", "goes with --chat"},
    {"generate " MODEL "-p x --image y --prompt-cache z", "with pictures can't be saved yet"},
    {"generate " MODEL "--ids 2,3 --chat", "--chat needs a text"},
    {"generate " MODEL "--ids ''", "not a list of ids"},
    {"generate " MODEL "--ids 2,,3", "not a list of ids"},
    {"generate " MODEL "--ids 2,3,", "not a list of ids"},
    {"generate " MODEL "--ids 2;3", "not a list of ids"},
    {"generate " MODEL "--ids '2, 3'", "not a list of ids"},
    {"generate " MODEL "--ids 0x2", "not a list of ids"},
    {"generate " MODEL DRAFTER "-p x --draft-max 16", "0 to 15"},
    {"generate " MODEL DRAFTER "-p x --draft-max -1", "0 to 15"},
    {"generate " MODEL DRAFTER "-p x --spec-draft-n-max 16", "0 to 15"},
    {"generate " MODEL DRAFTER "-p x --spec-type fast",
     "known: none mtp eagle eagle3 dflash dflash2 dspark draft ngram draft-mtp"},
    {"generate " MODEL DRAFTER "-p x --spec-type mtp,fast", "fast is unknown"},
    {"generate " MODEL DRAFTER "-p x --spec-type mtp,", "is unknown"},
    {"generate " MODEL "-p x --spec-type ngram,lookup",
     "known: none mtp eagle eagle3 dflash dflash2 dspark draft ngram draft-mtp"},
    {"generate " MODEL "-p x --spec-type mtp", "-md DRAFTER"},
    {"generate " MODEL "-p x --spec-type ngram,mtp", "-md DRAFTER"},
    {"generate " MODEL "-p x --spec-type draft", "-md DRAFTER"},
    {"generate " MODEL DRAFTER "-p x --spec-draft-n-min 3 --draft-max 2", "draft-min 3 is more than"},
    {"generate " MODEL DRAFTER "-p x --spec-draft-p-min 2", "--spec-draft-p-min"},
    {"generate " MODEL DRAFTER "-p x --spec-draft-topk 0", "1 to 8"},
    {"generate " MODEL DRAFTER "-p x --spec-draft-topk 9", "1 to 8"},
    {"generate " MODEL DRAFTER "-p x --spec-draft-rows 64", "1 to 63"},
    {"generate " MODEL DRAFTER "-p x --draft-max automatic", "not a whole number"},
    {"generate " MODEL DRAFTER "-p x --preset fast", "known: throughput balanced quality"},
    {"logits " MODEL DRAFTER "--ids 2,3 -o /dev/null --draft-steps 2 --spec-type ngram", "exclude each other"},
    {"generate " MODEL "-p x --spec-type none,draft-mtp", "none stands alone"},
    {"generate " MODEL DRAFTER "-p x --spec-type none,mtp", "none stands alone"},
    {"chat " MODEL "--spec-type ngram-simple,ngram-mod,none", "none stands alone"},
    {"batch " MODEL "-f - -o - --draft-min 1", "--draft-min needs a drafter"},
    {"generate " MODEL "-p x --draft-min 1", "--draft-min needs a drafter"},
    {"generate " MODEL "-p x --draft-p-min 0.5", "--draft-p-min needs a drafter"},
    {"generate " MODEL "-p x --spec-type ngram --draft-p-min 0.5", "--draft-p-min needs a drafter"},
    {"chat " MODEL "-p x", "chat takes no -p"},
    {"logits " MODEL "--ids 2,3", "needs -o"},
    {"logits " MODEL "-o x", "needs a prompt"},
    {"logits " MODEL "--ids 2,3 -o /dev/null --rows first", "known: all last"},
    {"logits " MODEL "--ids 2,3 -o /dev/null --draft-steps 2", "-md DRAFTER"},
    {"logits " MODEL DRAFTER "--ids 2 -o x --draft-steps 2", "two ids or more"},
    {"logits " MODEL DRAFTER "-p '' -o - --draft-steps 2", "two ids"},
    {"logits " MODEL DRAFTER "--ids 2,3 -o /dev/null --draft-steps 16", "1 to 15"},
    {"logits " MODEL DRAFTER "--ids 2,3 -o /dev/null --draft-steps 0", "1 to 15"},
    {"logits " MODEL DRAFTER "--ids 2,3 -o /dev/null --draft-steps 2 --rows last", "--rows"},
    {"logits " MODEL DRAFTER "--ids 2,3 -o /dev/null --draft-steps 2 --spec-type none", "exclude each other"},
    {"tokenize " MODEL, "needs a prompt"},
    {"tokenize " MODEL "--decode -p x", "--decode needs --ids"},
    {"tokenize " MODEL "--ids 2", "--ids goes with --decode"},
    {"inspect", "needs -m"},
    {"inspect " MODEL "-p x", "inspect takes no -p"},
    {"verify --spec-type mtp " MODEL, "-md DRAFTER"},
    {"generate " MODEL "-p x --draft-max 4", "--draft-max needs a drafter"},
    {"chat " MODEL "--draft-max 1", "--draft-max needs a drafter"},
    {"verify " MODEL "--draft-max 2", "--draft-max needs a drafter"},
    {"generate " MODEL "-p x --preset quality", "--preset needs a drafter"},
    {"generate " MODEL "-p x --accept rejection", "--accept needs a drafter"},
    {"generate " MODEL "-p x --color --output ids", "--color goes with --output text"},
    {"generate " MODEL "-p x --color --output json", "--color goes with --output text"},
    {"generate " MODEL "-p x -p y", "-p is given twice"},
    {"generate " MODEL "-m x -p y", "-m is given twice"},
    {"generate " MODEL "-hf x/y -p y", "-m and -hf: which of them?"},
    {"generate " MODEL "--model=x -p y", "-m and --model: which of them?"},
    {"generate --model=x --model y -p y", "--model is given twice"},
    {"bench " MODEL, "forerun bench model -m FILE"},
    {"-m x -p y", "a verb comes first"},
    {"llama-cli -m x", "forerun generate writes a text"},
    {"llama-perplexity -m x", "forerun perplexity --help"},
    {"generate " MODEL "--ids 2 --ids 3", "--ids is given twice"},
    {"generate " MODEL "-p x --trace /dev/null --trace /dev/null", "--trace is given twice"},
    {"logits " MODEL DRAFTER "--ids 2,3 -o /dev/null", "go with --draft-steps"},
    {"logits " MODEL "--ids 2,3 -o /dev/null --spec-type none", "go with --draft-steps"},
    {"logits " MODEL DRAFTER "--ids 2,3 -o /dev/null --draft-steps 2 --draft-max 3", "logits takes no --draft-max"},
    {"tokenize " MODEL "-p x -c 9", "tokenize takes no -c"},
    {"tokenize " MODEL "-p x -t 1", "tokenize takes no -t"},
    {"tokenize " MODEL DRAFTER "-p x", "tokenize takes no -md"},
    {"tokenize " MODEL "--decode --ids 2 --no-bos", "--no-bos"},
    {"inspect " MODEL "--chunk 8", "inspect takes no --chunk"},
    {"perplexity " MODEL DRAFTER "-f x", "perplexity takes no -md"},
    {"quantize " MODEL "--type q8_0 -o /dev/null -c 9", "quantize takes no -c"},
    {"quantize " MODEL DRAFTER "--type q8_0 -o /dev/null", "is no folder of an EAGLE-3 drafter"},
    {"quantize " MODEL "--type q8_0 -ctk f16 -o /dev/null", "quantize takes no -ctk"},
    {"quantize " MODEL "--type q8_0 /dev/null -o /dev/null", "/dev/null: what is this word for?"},
    {"quantize " MODEL "--type q8_0 /dev/null b", "b: what is this word for?"},
    {"pack -m x -o /dev/null -t 2", "pack takes no -t"},
    {"synth -m x --shape glm-ocr --type q8_0 /dev/null", "synth takes no -m"},
    {"synth --shape glm-ocr --type q8_0 /dev/null -t 2", "synth takes no -t"},
    {"report a b", "b: what is this word for?"},
    {"report a b -o /dev/null", "b: what is this word for?"},
    {"report a -f b -o /dev/null", "-f is given twice"},
    {"report a -o /dev/null -m c", "report takes no -m"},
    {"bench machine " MODEL, "bench machine takes no -m"},
    {"bench machine -p 512", "bench machine takes no -p"},
    {"bench machine --rows 4", "bench machine takes no --rows"},
    {"bench machine --plot x", "bench machine takes no --plot"},
    {"bench machine --filter x", "bench machine takes no --filter"},
    {"bench kernels --mlock", "bench kernels takes no --mlock"},
    {"bench kernels --draft-max 2", "bench kernels takes no --spec-draft-n-max"},
    {"bench model " MODEL "--weights 9", "bench model takes no --weights"},
    {"bench", "machine, kernels, model, neighbours, grammar or ranks"},
    {"bench engine", "known: machine kernels model"},
    {"bench machine kernels", "what is this word for"},
    {"bench machine -o xml", "known: md csv json jsonl"},
    {"bench kernels --rows 8..1", "numbers such as 1..8,16"},
    {"bench kernels --rows 1,,2", "numbers such as 1..8,16"},
    {"bench kernels --isa avx2,sse", "sse is unknown"},
    {"generate -p x -- tests/data/models/gemma4-e --quiet", "--quiet: what is this word for?"},
    {"generate " MODEL "-p x -- --", "--: what is this word for?"},
};

START_TEST(wrong_usage_is_exit_2) {
    check_refused(&wrong_usage[_i], 2);
}
END_TEST

static const char *const unbuilt[] = {
    "generate " MODEL "-p x -ctk q4_1",
    "generate " MODEL "-p x -ctv IQ4_NL",
    "verify " MODEL "--cache-type-k q5_1",
    "generate " MODEL DRAFTER "-p x --spec-draft-topk 2",
    "chat " MODEL DRAFTER "--spec-draft-topk auto",
    "batch " MODEL DRAFTER "-f x -o y --spec-draft-topk 08",
    "verify " MODEL DRAFTER "--spec-draft-rows 63",
    "generate " MODEL DRAFTER "-p x --spec-draft-rows 1",
};

START_TEST(unbuilt_is_exit_2) {
    check_refused(&(misuse){unbuilt[_i], "not built yet"}, 2);
}
END_TEST

static const misuse bad_input[] = {
    {"generate -m no/such/model -p x", "no/such/model"},
    {"generate -p x -- --quiet", "--quiet: No such file or directory"},
    {"generate " MODEL "-md no/such/drafter -p x", "no/such/drafter"},
    {"generate " MODEL "-md no/such/drafter --spec-type none -p x", "no/such/drafter"},
    {"generate " MODEL "-md no/such/drafter --draft-max 0 -p x", "no/such/drafter"},
    {"generate " MODEL "-md tools/demo/assistant --spec-type ngram -p x", "tools/demo/assistant"},
    {"bench model " MODEL "-md no/such/drafter --spec-type ngram -p 1 -n 0 -d 0", "no/such/drafter"},
    {"generate -m " FOLDER "/model.safetensors -p x", "give the folder that it is in, " FOLDER "\n"},
    {"tokenize -m " FOLDER "/tokenizer.json -p x", "give the folder that it is in, " FOLDER "\n"},
    {"generate " MODEL "-md " FOLDER "/assistant/model.safetensors -p x", "it is in, " FOLDER "/assistant\n"},
    {"generate " MODEL "-f no/such/file", "no/such/file"},
    {"generate " MODEL "-p x -ctv q8_0", "values of type q8_0 need heads that are multiples of 32 wide"},
    {"generate -m tests/data/models/deepseek-v3-odd --quiet --ids 2 -ctk f16 -ctv f32", "can't be F32"},
    {"inspect -m tests/data/models/deepseek-v3-odd -ctk f16 -ctv f32", "can't be F32"},
    {"generate " MODEL "-f tests", "tests"},
    {"pack " MODEL "-o /dev/null", "only a GGUF can be packed"},
    {"pack -m tests/data/gguf/gemma-tokenizer.gguf -o /dev/null", "gemma-tokenizer.gguf"},
    {"generate " MODEL "--ids 2,512", "512"},
    {"generate " MODEL "--ids 2 --logit-bias 512+1", "id 512 is outside the vocabulary of 512"},
    {"generate " MODEL "--ids 2,99999999999999999999", "99999999999999999999"},
    {"generate " MODEL "--ids 2,-1", "-1"},
    {"generate " MODEL "--ids 2,3,4,5,6 -c 4", "5 tokens and the context holds 4"},
    {"logits " MODEL "--ids 2,512 -o /dev/null", "512"},
    {"logits " MODEL "--ids 2 -o no/such/folder/x", "no/such/folder"},
    {"logits " MODEL "--ids 2 -o tests", "tests"},
    {"tokenize -m no/such/model -p x", "no/such/model"},
    {"tokenize " MODEL "--decode --ids 2,512", "512"},
    {"inspect -m no/such/model", "no/such/model"},
    {"inspect -m tests", "tests"},
    {"verify -m no/such/model", "no/such/model"},
    {"chat -m no/such/model", "no/such/model"},
};

START_TEST(bad_input_is_exit_1) {
    check_refused(&bad_input[_i], 1);
}
END_TEST

/* No machine has both NEON and AVX2. So at least one of the two command lines must be refused. */
START_TEST(a_level_the_machine_lacks_is_exit_1) {
    fr_command version = fr_command_run("generate " MODEL "--ids 2 -n 1 --quiet --isa neon", NULL);
    fr_command other = fr_command_run("generate " MODEL "--ids 2 -n 1 --quiet --isa avx2", NULL);
    ck_assert_msg(version.status == 1 || other.status == 1, "neon and avx2 on one machine");
    ck_assert_int_ne(version.status, 2);
    ck_assert_int_ne(other.status, 2);
    fr_command_free(&version);
    fr_command_free(&other);
}
END_TEST

START_TEST(stop_can_be_given_16_times) {
    char line[1024] = "generate " MODEL "-p x -n 1 --quiet";
    for (int i = 0; i < 16; i++) snprintf(line + strlen(line), sizeof line - strlen(line), " --stop %d", i);
    fr_command c = fr_command_run(line, NULL);
    ck_assert_msg(c.status == 0, "%s", c.err);
    fr_command_free(&c);
    snprintf(line + strlen(line), sizeof line - strlen(line), " --stop more");
    check_refused(&(misuse){line, "16 times"}, 2);
}
END_TEST

/* Command lines that must be accepted. They have option names that users know from llama.cpp, options in the form
 * --name=value, and options that have no effect on greedy decoding. */
static const char *const accepted[] = {
    "generate --model tests/data/models/gemma4-e --prompt x --predict 1",
    "generate --model=tests/data/models/gemma4-e --prompt=x --n-predict=1",
    "generate " MODEL "--model-draft tests/data/models/gemma4-e/assistant -p x -n 1 --draft 2",
    "generate " MODEL "--spec-draft-model tests/data/models/gemma4-e/assistant -p x -n 1 --draft-n 2",
    "generate " MODEL DRAFTER "-p x -n 1 --spec-type mtp --draft-max 15 --accept gumbel",
    "generate " MODEL DRAFTER "-p x -n 1 --spec-type draft-mtp --spec-draft-n-max 1",
    "generate " MODEL DRAFTER "-p x -n 1 --spec-type none", /* drafts are off, for a comparison */
    "generate " MODEL DRAFTER "-p x -n 1 --draft-max 0 --draft-min 0 --draft-p-min 0 --accept gumbel",
    "generate " MODEL DRAFTER "-p x -n 9 --draft-max auto --spec-type ngram,mtp",
    "generate " MODEL DRAFTER "-p x -n 9 --spec-draft-topk 1 --spec-draft-rows auto",
    "generate " MODEL "-p x -n 9 --spec-draft-topk 1",
    "generate " MODEL "-p x -n 9 --spec-type ngram --draft 4",
    "generate " MODEL "-p x -n 9 --spec-type ngram --draft 0",
    "generate " MODEL "-p x -n 9 --spec-type ngram-simple,ngram-mod",
    "generate " MODEL DRAFTER "-p x -n 9 --preset throughput",
    "generate " MODEL "-p x -n 1 --temp 0 --temperature 0.0 --seed 42 -s 7",
    "generate " MODEL DRAFTER "-p x -n 3 --draft 2 --temp 1e-30 --top-k 5 --top-p 0.9 --min-p 0.01 --accept rejection",
    "generate " MODEL "-p x -n 2 --repeat-penalty 1.1 --repeat-last-n -1 --presence-penalty -1 --logit-bias 5+1,6-inf",
    "generate " MODEL
    "-p x -n 2 --temp 1 --samplers 'penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature'",
    "generate " MODEL "-p x -n 2 --temp 1 --sampling-seq edskypmxt --typical-p 0 --xtc-probability 1 --xtc-threshold 0",
    "generate " MODEL "-p x -n 2 --dry-multiplier 1000 --dry-base 1000 --dry-sequence-breaker none",
    "generate " MODEL "-p x -n 2 --temp 1 --mirostat 2",
    "generate " MODEL "-p x -n 9 --temp 0 --samplers 'temperature;typ_p;xtc' --typical 0.5 --xtc-probability 1",
    "generate " MODEL "-p x -n 2 -tb 2 --no-display-prompt -fit off --single-turn --quiet",
    "generate " MODEL DRAFTER
    "-p x -n 2 --temp 1 --mirostat 2 --mirostat-ent 0 --mirostat-lr 100 --draft 2 --accept rejection",
    "generate " MODEL "-p x -n 1 --ctx-size 64 --threads 2 --ubatch-size 8 --no-pin --numa off --no-mmap",
    "generate " MODEL "-p x -n 1 --pin -t 2",
    "generate " MODEL "-p x -n 1 -c 0 --cache-type-k f32 --cache-type-v f32 --isa scalar",
    "generate " MODEL "-p x -n 1 -ctk f16 -ctv bf16",
    "generate " MODEL "-p x -n 1 -ctk F16 -ctv Bf16",
    "synth --shape gemma4-1b --layers 2 --vocab 300 --type Q4_0 -o -",
    "generate -m tools/demo/target -p x -n 1 -ctk q8_0 -ctv q4_0",
    "generate " MODEL "-p x -n 1 -n 2", /* the last -n counts */
    "generate " MODEL "-p -n -n 1",     /* a value may begin with a dash */
    "generate " MODEL "-p '' -n 1",     /* <bos> alone */
    "generate " MODEL "-p Hi -sys Brief. --chat -n 1",
    "logits " MODEL "-p x -o - --rows last -c 64 -t 2",
    "generate " MODEL "-p x -n 1 --spec-type none --draft-max 0",
    "tokenize " MODEL "-p x --quiet",
    "inspect " MODEL DRAFTER "--tensors",
    "generate -p x -n 1 -- tests/data/models/gemma4-e",
    "generate " MODEL "-p -- -n 1 --", /* here -- is the prompt */
};

START_TEST(users_names_are_accepted) {
    char line[512];
    bool plain = strncmp(accepted[_i], "generate ", 9) == 0 && !strstr(accepted[_i], "--chat");
    snprintf(line, sizeof line, plain ? "generate -no-cnv %s" : "%s", accepted[_i] + (plain ? 9 : 0));
    fr_command c = fr_command_run(line, NULL);
    ck_assert_msg(c.status == 0, "%s: exit %d: %s", accepted[_i], c.status, c.err);
    ck_assert_msg(c.err_length == 0, "%s: %s", accepted[_i], c.err);
    ck_assert_uint_gt(c.out_length, 0);
    fr_command_free(&c);
}
END_TEST

/* For a comparison, users often repeat a command line with one more option. Because of it, another option may have no
 * effect. This must be no error, but a note must say why the other option has no effect. */
static const struct {
    const char *line, *word;
} undrafted[] = {
    {"generate " MODEL DRAFTER "-p x -n 1 --spec-type none --draft-max 3", "--draft-max is for drafts, and --spec"},
    {"generate " MODEL DRAFTER "-p x -n 1 --spec-type none --preset quality", "--preset is for drafts"},
    {"generate " MODEL DRAFTER "-p x -n 1 --spec-type none --accept rejection", "--accept is for drafts"},
    {"generate " MODEL DRAFTER "-p x -n 1 --spec-type none --draft-min 2", "--draft-min is for drafts"},
    {"generate " MODEL DRAFTER "-p x -n 1 --spec-type none --draft-p-min .5", "--draft-p-min is for drafts"},
    {"generate " MODEL DRAFTER "-p x -n 1 --draft-max 0 --draft-min 2", "--draft-min is for drafts, and --draft-max 0"},
};

START_TEST(options_of_drafts_that_nobody_makes_are_said) {
    fr_command c = fr_command_run(undrafted[_i].line, NULL);
    ck_assert_msg(c.status == 0, "%s: exit %d: %s", undrafted[_i].line, c.status, c.err);
    ck_assert_msg(strstr(c.err, undrafted[_i].word) != NULL, "%s: %s", undrafted[_i].line, c.err);
    ck_assert_uint_gt(c.out_length, 0);
    fr_command_free(&c);
}
END_TEST

static const char *const verbs[] = {"generate", "chat",      "logits",   "perplexity", "tokenize", "inspect",
                                    "verify",   "quantize",  "pack",     "synth",      "bench",    "report",
                                    "serve",    "batch",     "template", "completion", "models",   "features",
                                    "imatrix",  "trim-head", "embed",    "rerank"};

static fr_command help(const char *verb) {
    char line[64];
    snprintf(line, sizeof line, "%s --help", verb);
    fr_command c = fr_command_run(line, NULL);
    ck_assert_msg(c.status == 0 && c.err_length == 0, "%s: exit %d: %s", line, c.status, c.err);
    return c;
}

START_TEST(every_verb_has_help_with_examples) {
    char usage[64], example[64];
    fr_command c = help(verbs[_i]);
    snprintf(usage, sizeof usage, "usage: forerun %s", verbs[_i]);
    snprintf(example, sizeof example, "examples:\n  forerun %s", verbs[_i]);
    ck_assert_msg(strncmp(c.out, usage, strlen(usage)) == 0, "%s", c.out);
    ck_assert_msg(strstr(c.out, example) != NULL, "%s", c.out);
    bool built = strstr(c.out, "\noptions:\n") != NULL;
    ck_assert_msg(built || strstr(c.out, "not built yet") != NULL, "%s", c.out);
    fr_command_free(&c);

    c = fr_command_run("--help", NULL);
    ck_assert_int_eq(c.status, 0);
    ck_assert_msg(strstr(c.out, verbs[_i]) != NULL, "%s is not in forerun --help", verbs[_i]);
    fr_command_free(&c);
}
END_TEST

START_TEST(help_has_the_verbs_own_options) {
    fr_command logits = help("logits"), generate = help("generate");
    ck_assert_ptr_nonnull(strstr(logits.out, "--draft-steps K"));
    ck_assert_ptr_null(strstr(logits.out, "--stop"));
    ck_assert_ptr_nonnull(strstr(generate.out, "--stop, -r, --reverse-prompt TEXT"));
    ck_assert_ptr_null(strstr(generate.out, "--draft-steps"));
    ck_assert_ptr_nonnull(strstr(generate.out, "--top-k N"));
    for (char *line = generate.out, *end; (end = strchr(line, '\n')); line = end + 1) {
        ck_assert_msg(end - line <= 130, "a long line: %.*s", (int)(end - line), line);
    }
    fr_command_free(&logits);
    fr_command_free(&generate);
}
END_TEST

/* In the help, the text of each option must end with a whole sentence. In the manual page, further sentences follow. */
START_TEST(help_ends_its_sentences) {
    fr_command c = help(verbs[_i]), manual = fr_command_ok("help --man");
    ck_assert_ptr_null(strstr(c.out, ",\n  -"));
    ck_assert_ptr_null(strstr(manual.out, ",.\n"));
    if (strcmp(verbs[_i], "perplexity") == 0) ck_assert_ptr_null(strstr(c.out, "4096"));
    fr_command_free(&c);
    fr_command_free(&manual);
}
END_TEST

/* Every line of help must fit a terminal of 80 columns. */
START_TEST(help_fits_80_columns) {
    fr_command c = _i < (int)(sizeof verbs / sizeof *verbs) ? help(verbs[_i]) : fr_command_ok("help");
    for (const char *line = c.out; *line; line += strcspn(line, "\n") + 1) {
        int length = (int)strcspn(line, "\n");
        ck_assert_msg(length <= 80 && (!length || line[length - 1] != ' '), "%.*s", length, line);
    }
    fr_command_free(&c);
}
END_TEST

/* `forerun help` must print the same as `forerun --help`. `help VERB` must print the same as `VERB --help`. */
START_TEST(help_is_a_verb) {
    fr_command whole = fr_command_ok("--help"), same = fr_command_ok("help");
    ck_assert_str_eq(same.out, whole.out);
    fr_command_free(&whole);
    fr_command_free(&same);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        static const char *const ways[] = {"help", "--help", "-h"};
        whole = help(verbs[i]);
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
            same = fr_command_ok("%s %s", ways[way], verbs[i]);
            ck_assert_str_eq(same.out, whole.out);
            fr_command_free(&same);
        }
        fr_command_free(&whole);
    }
}
END_TEST

/* With --seed -1 the command must draw a seed and print it. A run with the printed seed must give the same text. The
 * next run with -1 must draw another seed. */
START_TEST(a_drawn_seed_is_told) {
    static const char line[] =
        "generate " DEMO "-no-cnv -p 'The function' -n 40 --temp 1 --ignore-eos --output ids --seed";
    fr_command drawn = fr_command_ok("%s -1", line), another = fr_command_ok("%s -1", line);
    unsigned seed;
    int end = 0;
    ck_assert_int_eq(sscanf(drawn.err, "forerun: --seed %u%n", &seed, &end), 1);
    ck_assert_str_eq(drawn.err + end, "\n");
    fr_command again = fr_command_ok("%s %u", line, seed), quiet = fr_command_ok("%s -1 --quiet", line);
    /* the seed must be printed even with --quiet */
    ck_assert_int_eq(sscanf(quiet.err, "forerun: --seed %u%n", &seed, &end), 1);
    ck_assert_str_eq(quiet.err + end, "\n");
    ck_assert_str_eq(again.out, drawn.out);
    ck_assert_str_eq(again.err, "");
    ck_assert_str_ne(another.err, drawn.err);
    fr_command_free(&drawn);
    fr_command_free(&another);
    fr_command_free(&again);
    fr_command_free(&quiet);
}
END_TEST

/* A drawn seed must also be in the JSON statistics. In a batch, it must be in the answer to a line that has no seed of
 * its own. */
START_TEST(a_drawn_seed_is_in_json) {
    fr_command c = fr_command_ok("generate " DEMO "-p x -n 1 --temp 1 --output json --seed -1");
    fr_command b = fr_command_feed("{\"ids\": [2], \"n\": 1}\n", "batch " DEMO "-f - -o - --temp 1 --seed -1");
    fr_command own = fr_command_feed("{\"ids\": [2], \"n\": 1, \"seed\": 5}\n", "batch " DEMO "-f - -o - --seed -1");
    const fr_command *told[] = {&c, &b};
    for (size_t i = 0; i < 2; i++) {
        char seed[64];
        unsigned drawn;
        ck_assert_int_eq(sscanf(told[i]->err, "forerun: --seed %u", &drawn), 1);
        snprintf(seed, sizeof seed, "\"seed\":%u", drawn);
        json_t *object = json_loads(told[i]->out, 0, NULL);
        char *stats = json_dumps(json_object_get(object, "stats"), JSON_COMPACT);
        ck_assert_ptr_nonnull(strstr(stats, seed));
        free(stats);
        json_decref(object);
    }
    ck_assert_ptr_null(strstr(own.out, "seed"));
    fr_command_free(&c);
    fr_command_free(&b);
    fr_command_free(&own);
}
END_TEST

START_TEST(version_and_nothing_at_all) {
    fr_command c = fr_command_run("--version", NULL);
    ck_assert_int_eq(c.status, 0);
    ck_assert_str_eq(c.out, "forerun 0.2.0\n");
    fr_command_free(&c);
    c = fr_command_run("generate --version", NULL);
    ck_assert_int_eq(c.status, 0);
    ck_assert_str_eq(c.out, "forerun 0.2.0\n");
    fr_command_free(&c);
    c = fr_command_run("", NULL);
    ck_assert_int_eq(c.status, 2);
    ck_assert_uint_eq(c.out_length, 0);
    ck_assert_ptr_nonnull(strstr(c.err, "usage: forerun VERB"));
    fr_command_free(&c);
}
END_TEST

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

FR_SUITE("cli_usage") {
    TCase *cases = tcase_create("usage");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, options_of_drafts_that_nobody_makes_are_said, 0, sizeof undrafted / sizeof *undrafted);
    tcase_add_loop_test(cases, wrong_usage_is_exit_2, 0, COUNT(wrong_usage));
    tcase_add_loop_test(cases, unbuilt_is_exit_2, 0, COUNT(unbuilt));
    tcase_add_loop_test(cases, bad_input_is_exit_1, 0, COUNT(bad_input));
    tcase_add_test(cases, a_level_the_machine_lacks_is_exit_1);
    tcase_add_test(cases, stop_can_be_given_16_times);
    tcase_add_loop_test(cases, users_names_are_accepted, 0, COUNT(accepted));
    tcase_add_loop_test(cases, every_verb_has_help_with_examples, 0, COUNT(verbs));
    tcase_add_test(cases, help_has_the_verbs_own_options);
    tcase_add_loop_test(cases, help_ends_its_sentences, 0, COUNT(verbs));
    tcase_add_loop_test(cases, help_fits_80_columns, 0, COUNT(verbs) + 1);
    tcase_add_test(cases, help_is_a_verb);
    tcase_add_test(cases, a_drawn_seed_is_told);
    tcase_add_test(cases, a_drawn_seed_is_in_json);
    tcase_add_test(cases, version_and_nothing_at_all);
    suite_add_tcase(suite, cases);
}

/* The forerun command: finds the verb, reads its options, runs it. */
#include <stdio.h>
#include <string.h>

#include "forerun.h"
#include "tools/cli/big_stack.h"
#include "tools/cli/completion.h"
#include "tools/cli/foreign_options.h"
#include "tools/cli/lost_file.h"
#include "tools/cli/manual.h"
#include "tools/cli/named.h"
#include "tools/cli/output.h"
#include "tools/cli/output_check.h"
#include "tools/cli/ranks.h"
#include "tools/cli/verbs.h"
#include "tools/cli/words.h"

static int print_completion(const fr_arguments *args);

static const fr_verb verbs[] = {
    {"generate", "text from a prompt, streamed", FR_VERB_GENERATE,
     "generate [-m] MODEL [-md DRAFTER] (-p TEXT | -f FILE | --ids LIST) [options]",
     "Standard output gets the text alone and a newline after it; with --output ids one line id,id,...; with\n"
     "--output json one object: ids, text, stop (eos, length: -n, context: it is full, stop: --stop, interrupt) and\n"
     "stats. Ctrl-C, SIGTERM or SIGHUP ends the text, in the prompt too: what there is of it is written as ever, with\n"
     "its statistics, trace and prompt cache, then the command ends by that signal (130, 143 or 129 to a shell). A\n"
     "second one ends it at once.\n",
     "  forerun generate -m gemma-4-E2B-it -md gemma-4-E2B-it-assistant --chat -p \"Why is the sky blue?\" --stats\n"
     "  forerun generate -m gemma-4-E2B-it -p \"Once upon a time\" -n 100 --stop \"The end\"\n"
     "  forerun generate -m gemma-4-E2B-it --ids 2,9259,1902 -n 16 --output json\n"
     "  forerun generate -m GLM-OCR.gguf --mmproj mmproj-GLM-OCR.gguf --image page.png -p \"Text Recognition:\"\n",
     fr_verb_generate},
    {"chat", "a conversation: turns, history kept", FR_VERB_CHAT, "chat [-m] MODEL [-md DRAFTER] [options]",
     "Each line of standard input is a turn; one that ends in a backslash goes on in the next line, and three quotes\n"
     "begin and end a turn of several lines. Lines pasted at once into a terminal's prompt are one turn. Lines that\n"
     "begin with / are commands: /clear, /undo, /regen, /edit, /save FILE, /load FILE, /image FILE, /read FILE,\n"
     "/system TEXT, /set NAME VALUE, /context, /stats, /exit, /quit, /bye, and /help, which says what they do; //\n"
     "says a line with one /. Ctrl-C ends a reply and keeps the session; before the reply\n"
     "has begun it takes the turn back, and at the prompt of a terminal, where lines can be edited and gone back to,\n"
     "it drops the line. /exit and the end of input (Ctrl-D) end the conversation; so do SIGTERM, SIGHUP and a lost\n"
     "terminal, once the prompt cache is written. A context that is full has room again after /undo or /clear, or\n"
     "--context-shift makes it. With --tools, calls in a reply are shown in lines of their own.\n"
     "Replies are drawn as the model's makers recommend, else at temperature 0.8: --temp 0 draws nothing, and another\n"
     "--seed gives other replies.\n",
     "  forerun chat -m gemma-4-E2B-it -md gemma-4-E2B-it-assistant --system \"Be brief.\"\n"
     "  printf 'Hello!\\nAnd now in French?\\n' | forerun chat -m gemma-4-E2B-it\n"
     "  forerun chat GLM-4.7.gguf --no-think --context-shift\n"
     "  forerun chat -m model.gguf --chat-template-file my.jinja --chat-template-kwargs '{\"persona\": \"pirate\"}'\n",
     fr_verb_chat},
    {"logits", "raw logits of a prompt, for comparing with other engines", FR_VERB_LOGITS,
     "logits [-m] MODEL (--ids LIST | -p TEXT | -f FILE) -o FILE [--rows last] [-md DRAFTER --draft-steps K]",
     "Float32, little-endian, [rows, vocab], after soft capping, before any sampling. With --draft-steps the target\n"
     "runs the ids without the last; row 0 predicts the id after them; ids that the drafter left out are -inf.\n",
     "  forerun logits -m gemma-4-E2B-it --ids 2,9259,1902 -o logits.f32\n"
     "  forerun logits -m gemma-4-E2B-it -md gemma-4-E2B-it-assistant --ids 2,9259,1902 --draft-steps 4 -o draft.f32\n",
     fr_verb_logits},
    {"perplexity", "perplexity of a text, and against a base's logits", FR_VERB_PERPLEXITY,
     "perplexity [-m] MODEL (-f FILE | --kl-divergence --kl-divergence-base FILE) [options]",
     "The text is run in chunks of -c ids (default 512), each alone; scored are the ids of its second half. The\n"
     "numbers, and the files of a base's predictions, are those of llama-perplexity. With --hellaswag, --winogrande\n"
     "or --multiple-choice FILE holds tasks whose answers are chosen by their likelihood.\n",
     "  forerun perplexity -m gemma-4-E2B-it -f wiki.test.raw --kl-divergence-base base.kld\n"
     "  forerun perplexity -m gemma-4-E2B-it-q4_0.gguf --kl-divergence-base base.kld --kl-divergence\n"
     "  forerun perplexity -m gemma-4-E2B-it --hellaswag -f hellaswag_val_full.txt\n",
     fr_verb_perplexity},
    {"imatrix", "how much the columns of each matrix matter, for quantize", FR_VERB_IMATRIX,
     "imatrix [-m] MODEL -f FILE -o FILE [options]",
     "MODEL: a GGUF file, best of float weights. The text is run in chunks of -c ids (default 512), each alone;\n"
     "summed up are the squares of what each matrix is multiplied by. The file is llama-imatrix's: --imatrix of\n"
     "quantize and llama-quantize read it.\n",
     "  forerun imatrix -m gemma-4-E2B-it-bf16.gguf -f wiki.train.raw --chunks 100 -o imatrix.gguf\n"
     "  forerun quantize -m gemma-4-E2B-it-bf16.gguf --type q3_k --imatrix imatrix.gguf -o gemma-4-E2B-it-q3_k.gguf\n",
     fr_verb_imatrix},
    {"tokenize", "text to ids and back", FR_VERB_TOKENIZE,
     "tokenize [-m] MODEL (-p TEXT | -f FILE | --decode --ids LIST) [--no-bos] [--pieces]",
     "MODEL may be a folder with just tokenizer.json. Special tokens in the text become their ids; --decode prints\n"
     "them too, and adds no newline.\n",
     "  forerun tokenize -m gemma-4-E2B-it -p \"Hello, world\"\n"
     "  forerun tokenize -m gemma-4-E2B-it -p \"Hello, world\" --pieces\n"
     "  forerun tokenize -m gemma-4-E2B-it --decode --ids 2,9259,236764,1902\n",
     fr_verb_tokenize},
    {"template", "messages to the prompt that the chat template makes of them", FR_VERB_TEMPLATE,
     "template [-m] MODEL --messages FILE [--tools FILE] [--output ids] [options]",
     "The template: chat_template.jinja, chat_template.json or tokenizer_config.json in the folder, or what the GGUF\n"
     "file has; one of forerun's own where the checkpoint has none and its tokens tell the family. Messages are\n"
     "changed to what the template takes (docs/chat-templates.md). Standard output gets the prompt alone, no newline\n"
     "added. As ids, special tokens are those that the template wrote: what is said in a message\n"
     "is text, whatever it looks like. MODEL may be a folder with just the tokenizer.\n",
     "  forerun template -m gemma-4-E2B-it --messages messages.json\n"
     "  forerun template -m gemma-4-E2B-it --messages messages.json --tools tools.json --output ids\n"
     "  echo '[{\"role\": \"user\", \"content\": \"Hi\"}]' | forerun template -m GLM-4.7 --messages - --no-think\n"
     "  forerun template -m GLM-4.7 --messages messages.json --chat-template-kwargs '{\"clear_thinking\": false}'\n"
     "  forerun template -m model.gguf --messages messages.json --chat-template-file my.jinja\n",
     fr_verb_template},
    {"inspect", "reads a model, drafter or vision tower, checks it, says what it is", FR_VERB_INSPECT,
     "inspect [-m] MODEL [-md DRAFTER] [--mmproj FILE] [-c N] [--tensors] [-o json]",
     "Exit status 1 with the reason when it can't be used. A drafter alone is checked with -m too. The memory of a\n"
     "session, its KV cache and all, is told at -c. As JSON, the drafter is a member of it.\n",
     "  forerun inspect -m gemma-4-E2B-it -md gemma-4-E2B-it-assistant\n"
     "  forerun inspect -m gemma-4-E2B-it-q4_0.gguf -c 32768 -ctk q8_0 -ctv q8_0\n"
     "  forerun inspect -m gemma-4-E2B-it-assistant --tensors -o json\n",
     fr_verb_inspect},
    {"verify", "hashes of logits for a fixed prompt, for comparing machines", FR_VERB_VERIFY,
     "verify [-m] MODEL [-md DRAFTER] [options]",
     "Standard output is the same on every machine, with any number of threads, --isa and --chunk.\n",
     "  forerun verify -m gemma-4-E2B-it -md gemma-4-E2B-it-assistant\n"
     "  forerun verify -m gemma-4-E2B-it --isa scalar -t 1\n",
     fr_verb_verify},
    {"quantize", "a model to a GGUF of another type", FR_VERB_QUANTIZE,
     "quantize [-m] MODEL [-md DRAFTER] [-o] FILE [--type] TYPE [options]",
     "MODEL: a folder as published, target or assistant, or a GGUF file. Unless --pure, tables and some layers'\n"
     "matrices get what llama-quantize gives them (q3_k, q4_k and q5_k are its Q3_K_M, Q4_K_M and Q5_K_M); matrices\n"
     "whose rows are no multiple of 256 get a type with blocks of 32. Types go by llama.cpp's names too: Q3_K_L.\n"
     "With -md the folder of an EAGLE-3 drafter is written, as llama.cpp reads it: MODEL is its target, which has\n"
     "what the drafter's own files don't say. Words without options in front are llama-quantize's: MODEL FILE TYPE,\n"
     "and perhaps a number of threads.\n",
     "  forerun quantize -m gemma-4-E2B-it --type q4_0 -o gemma-4-E2B-it-q4_0.gguf\n"
     "  forerun quantize gemma-4-E2B-bf16.gguf gemma-4-E2B-q4_k_m.gguf Q4_K_M\n"
     "  forerun quantize -m gemma-4-E2B-it-bf16.gguf --type q4_k --tensor-type attn_v=q8_0 -o mixed.gguf\n"
     "  forerun quantize -m gemma-4-E2B-it-assistant --type q8_0 -o assistant-q8_0.gguf\n"
     "  forerun quantize -m Llama-3.1-8B-Instruct -md EAGLE3-LLaMA3.1-Instruct-8B --type q4_k -o eagle3.gguf\n",
     fr_verb_quantize},
    {"pack", "a model to a packed GGUF that is used as it lies", FR_VERB_PACK,
     "pack -m MODEL [-md DRAFTER] -o FILE",
     "MODEL: a GGUF file, target or assistant. The packed one opens in milliseconds, and processes share its memory;\n"
     "it is for forerun alone. A mixture of experts that is larger than memory runs from it. With -md it is the\n"
     "drafter's GGUF that is packed: EAGLE's, or an MTP layer in a file of its own. MODEL is its target.\n",
     "  forerun pack -m gemma-4-E2B-it-q4_0.gguf -o gemma-4-E2B-it-packed.gguf\n"
     "  forerun pack -m Qwen3.5-9B-q4_k.gguf -md mtp-Qwen3.5-9B-q4_k.gguf -o mtp-packed.gguf\n",
     fr_verb_pack},
    {"trim-head", "the ids of a text, for a drafter that scores those alone", FR_VERB_TRIM_HEAD,
     "trim-head [-m] MODEL (-f FILE | -p TEXT) -o LIST [--most-ids N]",
     "MODEL may be a folder with just tokenizer.json. The more the text is like what will be written, the better: ids\n"
     "outside of the list are never drafted, and what is written stays the same. LIST is a text: a line\n"
     "\"forerun draft head 1\", then an id a line, the most frequent first. generate, chat, batch and serve take\n"
     "it as --draft-head LIST.\n",
     "  forerun trim-head -m Qwen2.5-Coder-1.5B.gguf -f sources.txt -o code.ids --most-ids 16384\n", fr_verb_trim_head},
    {"synth", "random weights of a published shape, as GGUF", FR_VERB_SYNTH,
     "synth --shape SHAPE --type TYPE [--vocab N] [--layers N] [--experts N] OUT",
     "To time engines on: the text is noise, speed and memory are those of the shape. Every matrix is of TYPE, but\n"
     "those that quantizers leave alone, and those whose rows don't fill its blocks: they get what llama-quantize\n"
     "gives them; of MXFP4 are experts alone, all else Q8_0. MTP layers are there where they are published. gemma4-1b\n"
     "is no published size: the widths of E2B, dense, 18 layers. Assistants are for the model of the name with the\n"
     "same vocabulary; those of E2B, E4B and 1B have a centroid for 128 ids but where the name ends in -plain, for\n"
     "llama.cpp, which knows none. llama3.1-8b-eagle3 is an EAGLE-3 drafter, for a model of as many --layers;\n"
     "llama3.2-1b drafts for llama3.1-8b too.\n",
     "  forerun synth --shape gemma4-e2b --type q4_0 e2b.gguf\n"
     "  forerun synth --shape gemma4-e2b-assistant --type q8_0 e2b-assistant.gguf\n"
     "  forerun synth --shape qwen3-30b-a3b --type q4_k --layers 6 moe.gguf\n", fr_verb_synth},
    {"bench", "speed against the machine's limits", FR_VERB_BENCH,
     "bench machine|kernels|model|neighbours|grammar|ranks [options]",
     "machine: what it can do at most: reading, multiplying, caches, barriers. kernels: each kernel of each\n"
     "instruction set, checked for equal bits, against the limit that binds. model: prompts and decode as llama-bench\n"
     "names them, verifying K rows, drafting, and speculation on texts; exit 1 where that changes the answer.\n"
     "neighbours: decoding beside busy programs, by default and with each fixed number of threads, in turn.\n"
     "grammar: what masks of grammars cost a row, of states that are new and that are known.\n"
     "ranks: what it costs ranks of an MPI job to make rows whole on all of them, by their size.\n",
     "  forerun bench machine\n"
     "  forerun bench kernels --filter 'matmul_q4_0' --rows 1,4,8\n"
     "  forerun bench model -m gemma-4-E2B-it-q4_0.gguf -md gemma-4-E2B-it-assistant -o json\n"
     "  forerun bench model -m gemma-4-E2B-it-q4_0.gguf --spec-synth-rates 0.8,0.6,0.5 --draft-max 1..4,auto\n"
     "  forerun bench neighbours -m gemma-4-E2B-it-q4_0.gguf\n"
     "  forerun bench grammar -m gemma-4-E2B-it-q4_0.gguf\n"
     "  mpirun -q -n 2 forerun bench ranks\n",
     fr_verb_bench},
    {"report", "a trace to one HTML page with plots", FR_VERB_REPORT, "report TRACE -o FILE",
     "TRACE is what generate or chat wrote with --trace. The page holds all that it shows and loads nothing.\n",
     "  forerun report trace.ndjson -o report.html\n", fr_verb_report},
    {"batch", "many prompts from a file, several at once, answers to a file", FR_VERB_BATCH,
     "batch [-m] MODEL [-md DRAFTER] -f IN.jsonl -o OUT.jsonl [-np N] [options]",
     "Each line of IN is a JSON object: {\"prompt\": TEXT}, {\"ids\": [...]} or {\"messages\": [...]}, and any of\n"
     "id, n, temp, top_k, top_p, min_p, seed, stop, ignore_eos, logprobs, tools, images (paths), grammar (GBNF),\n"
     "json_schema, regex, and by the names of llama.cpp's server top_n_sigma, typical_p, xtc_probability,\n"
     "xtc_threshold, dynatemp_range, dynatemp_exponent, mirostat, mirostat_eta, mirostat_tau, repeat_penalty,\n"
     "repeat_last_n, presence_penalty, frequency_penalty, dry_multiplier, dry_base, dry_allowed_length,\n"
     "dry_penalty_last_n, dry_sequence_breakers, samplers; what it\n"
     "leaves out is as the options say. OUT gets a line for each, in the same order, as soon as its turn has come:\n"
     "id, ids, text, stop and stats (a chat's also what its reply is made of: reasoning_content, tool_calls), or id\n"
     "and error, which makes the exit status 1. The ids are those that generate gives: they do not depend on N, nor\n"
     "on the other lines.\n"
     "Lines may have the form of OpenAI's batches: custom_id, method, url (/v1/chat/completions, /v1/completions)\n"
     "and body; their answers have id, custom_id, response (status_code, request_id, body) and error. What of a body\n"
     "is not built yet is refused in its line's answer.\n"
     "Ctrl-C, SIGTERM or SIGHUP ends it as it ends generate: lines under way are answered with what there is of them.\n"
     "After that, or a crash, the same command with --resume keeps the answers that OUT has; until it ends, those\n"
     "behind a line that is run again lie in OUT.before.\n",
     "  forerun batch -m gemma-4-E2B-it -f in.jsonl -o out.jsonl -np 8\n"
     "  forerun batch -m gemma-4-E2B-it -f in.jsonl -o out.jsonl -np 8 --resume\n"
     "  forerun batch -m gemma-4-E2B-it -md gemma-4-E2B-it-assistant -f in.jsonl -o - -n 200 --temp 0.7\n"
     "  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | forerun batch -m GLM-4.7 -f - -o -\n",
     fr_verb_batch},
    {"features", "a model's text with its layers' rows, for drafters to learn from", FR_VERB_FEATURES,
     "features [-m] MODEL -f PROMPTS.jsonl -o FOLDER [-np N] [--taps LIST] [options]",
     "Lines are batch's, and are answered as batch answers them; a line with n 0 is a text that is there already.\n"
     "Each text, prompt and answer, then goes through the model once more, and FOLDER gets what the layers of --taps\n"
     "were given for each of its ids: rows.bf16, [ids, taps, hidden] bfloat16; index.jsonl, a line a text, with\n"
     "line, id, prompt (so many of the ids), stop, ids and at (its first row), or error; features.json, what of.\n"
     "The bytes depend neither on N, threads nor a drafter. A text counts once its line is whole: after Ctrl-C or a\n"
     "crash the same command with --resume goes on behind the last one. tools/train/README.md says what for.\n",
     "  forerun features -m smollm2.gguf -f prompts.jsonl -o features -n 200 -np 8\n"
     "  forerun features -m smollm2.gguf -f prompts.jsonl -o features -n 200 -np 8 --resume\n",
     fr_verb_features},
    {"completion", "what a shell completes the command's words by", FR_VERB_COMPLETION, "completion bash|zsh|fish",
     "make install puts all three where the shells look for them.\n",
     "  forerun completion bash >> ~/.bash_completion\n"
     "  forerun completion zsh > ~/.zfunc/_forerun\n"
     "  forerun completion fish > ~/.config/fish/completions/forerun.fish\n",
     print_completion},
    {"serve", "a server with OpenAI's interface, many texts at once", FR_VERB_SERVE,
     "serve [-m] MODEL [-md DRAFTER] [--port N] [-np N] [-c N] [options]",
     "Answers HTTP as OpenAI's and llama.cpp's servers do: /v1/chat/completions, /v1/completions, /completion,\n"
     "/v1/responses (nothing is kept: each request has its whole conversation), and as Anthropic's: /v1/messages,\n"
     "and ollama's: /api/chat, /api/generate, /api/tags, /api/show, /api/version;\n"
     "/v1/models, /tokenize, /detokenize, /apply-template, /props, /health; /infill, where a model fills in code;\n"
     "with their options /slots, /metrics and /v1/embeddings.\n"
     "At / is a chat page for a browser, which asks nobody else; --slots has it show each round (GET /rounds). With\n"
     "\"return_drafted\": true each chunk of a stream says by \"drafted\" whether its text came from accepted drafts.\n"
     "Requests under way go through the model together; an answer does not depend on them: with a seed it is the\n"
     "text that batch gives, whoever else asks. What a request leaves out is as the options say, and where those say\n"
     "nothing as llama.cpp's server has it: top-k 40, top-p 0.95, min-p 0.05, then temperature 0.8; a drawn seed.\n"
     "\"speculative.n_max\", \"speculative.n_min\", \"speculative.p_min\" and \"speculative.type\" choose its drafts.\n"
     "SIGTERM and Ctrl-C end it: no new requests, those under way have 10 seconds.\n",
     "  forerun serve -m gemma-4-E2B-it -md gemma-4-E2B-it-assistant -np 8\n"
     "  forerun serve -m qwen2.5-coder-1.5b.gguf --port 8081 --api-key-file keys --metrics\n"
     "  forerun serve --models ~/models --models-max 2\n"
     "  curl http://127.0.0.1:8080/v1/chat/completions \\\n"
     "      -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}'\n",
     fr_verb_serve},
    {"models", "what other programs have downloaded, and whether it runs", FR_VERB_MODELS, "models [-o json]",
     "Of the caches of Hugging Face's programs (HF_HUB_CACHE, HF_HOME) and llama.cpp (LLAMA_CACHE), LM Studio's\n"
     "folder and ollama's store (OLLAMA_MODELS): name, size, family, type, what keeps a model from running. By these\n"
     "names -m and -md open them: ORG/NAME, ORG/NAME:QUANT or ORG/NAME:FILE, ollama:NAME:TAG; without QUANT it is\n"
     "Q4_K_M, else Q8_0, else the first. What exists as a path goes before a name. Nothing is ever fetched: of what\n"
     "is not there the line has the command that would.\n",
     "  forerun models\n"
     "  forerun chat -m Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q8_0\n"
     "  forerun generate -m ollama:qwen2.5:0.5b -p \"Once upon a time\" -n 100\n",
     fr_verb_models},
};

enum { VERBS = sizeof(verbs) / sizeof(*verbs) };

static int print_completion(const fr_arguments *args) {
    if (!args->given[FR_ARG_SHELL]) return fr_wrong_usage("completion needs a shell: bash, zsh or fish");
    fr_completion_print(verbs, VERBS, args->text[FR_ARG_SHELL], stdout);
    return 0;
}

static const char about[] =
    "Runs large language models on a CPU. A small drafter proposes the next few\n"
    "tokens, and the model checks them all in one pass over its weights; the text is\n"
    "the same, bit for bit, as without a drafter.\n"
    "MODEL and DRAFTER are folders as published (config.json, *.safetensors,\n"
    "tokenizer.json), or GGUF files, or names of what other programs have downloaded\n"
    "(forerun help models):\n"
    "Llama, SmolLM2 and 3, Qwen2 to 3.8, Gemma 2 to 4, Mistral, Phi-3 and 4, Granite\n"
    "3 and 4, OLMo 2 and 3, Cohere 2, EXAONE 4, GLM-4 to 4.7, ERNIE 4.5, Hunyuan,\n"
    "Seed-OSS, MiMo, LFM2, StableLM 2, DeepSeek-V2 and V3, Kimi-K2, Mixtral, OLMoE,\n"
    "MiniMax-M2, Ling 2.0 and gpt-oss, text; GLM-OCR, which sees pictures.\n";

static void print_overview(FILE *out) {
    fprintf(out, "forerun %s: large language models on the CPU, with speculative decoding\n"
                 "that gives the same text\n\n"
                 "usage: forerun VERB [options]\n\n%s\n", fr_version(), about);
    for (int i = 0; i < VERBS; i++) {
        fprintf(out, "  %-12s%s\n", verbs[i].name, verbs[i].does);
    }
    fprintf(out, "\nforerun help VERB, or VERB --help, has the options and examples; forerun\n"
                 "--version the version. Exit status: 0 done; 1 the input or model is unusable;\n"
                 "2 wrong usage, or not built yet; 130 ended by Ctrl-C.\n"
                 "\nexamples:\n"
                 "  forerun chat -m gemma-4-E2B-it -md gemma-4-E2B-it-assistant\n"
                 "  forerun generate -m gemma-4-E2B-it -p \"Once upon a time\" -n 100\n");
}

static const fr_verb *find_verb(const char *name) {
    for (int i = 0; i < VERBS; i++) {
        if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
    }
    return NULL;
}

/* Verbs of other programs, and what does their work here. */
static const char *find_hint(const char *name) {
    static const struct {
        const char *words, *hint;
    } others[] = {{"run", "forerun chat MODEL talks with a model, forerun generate MODEL -p TEXT writes a text"},
                  {"pull fetch download push create cp rm",
                   "forerun fetches and keeps nothing: forerun models lists what other programs have, and -m NAME says "
                   "how to get it"},
                  {"list ls", "forerun models lists the models that there are"},
                  {"ps stop", "forerun serve has GET /v1/models and /slots; Ctrl-C ends it"},
                  {"show info", "forerun inspect MODEL says what a model is"},
                  {"cli complete completions", "forerun generate writes a text, forerun chat talks"},
                  {"server start", "forerun serve answers over HTTP"},
                  {"embed embedding embeddings", "forerun serve --embeddings answers /v1/embeddings"},
                  {"convert", "forerun quantize MODEL --type f16 -o FILE writes a GGUF file"},
                  {"detokenize", "forerun tokenize --decode --ids LIST prints the text of ids"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (fr_has_word(others[i].words, name, strlen(name))) return others[i].hint;
    return NULL;
}

static int unknown_verb(const char *name) {
    const char *hint = find_hint(name);
    if (hint) return fr_wrong_usage("%s is no verb here: %s", name, hint);
    const fr_verb *nearest = NULL;
    size_t distance = SIZE_MAX;
    for (int i = 0; i < VERBS; i++) {
        size_t d = fr_word_distance(name, verbs[i].name);
        if (d < distance) {
            distance = d;
            nearest = &verbs[i];
        }
    }
    if (nearest && fr_word_near(name, distance)) {
        return fr_wrong_usage("unknown verb %s; did you mean %s?", name, nearest->name);
    }
    return fr_wrong_usage("unknown verb %s (forerun --help lists them)", name);
}

static bool is_one_of(const char *word, const char *a, const char *b) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static void print_version(void) {
    printf("forerun %s\n", fr_version());
}

/* forerun help [VERB], or --help [VERB]; --man is for make install, --llama.cpp for docs/options.md. */
static int run_help(int count, char **words) {
    if (count > 1) return fr_wrong_usage("%s: what is this word for? (forerun help VERB)", words[1]);
    if (count && strcmp(words[0], "--man") == 0) {
        fr_manual_print(verbs, VERBS, about, stdout);
        return 0;
    }
    if (count && strcmp(words[0], "--llama.cpp") == 0) {
        fr_foreign_print(stdout);
        return 0;
    }
    const fr_verb *verb = count ? find_verb(words[0]) : NULL;
    if (count && !verb) return unknown_verb(words[0]);
    if (verb) fr_help_print(verb, stdout);
    else print_overview(stdout);
    return 0;
}

static int run_verb(const fr_verb *verb, int count, char **words) {
    fr_arguments args;
    int code = fr_arguments_parse(&args, verb, count, words);
    if (!code) {
        if (args.given[FR_ARG_HELP]) fr_help_print(verb, stdout);
        else if (args.given[FR_ARG_VERSION]) print_version();
        else if (!(code = fr_named_resolve(&args)) && !(code = fr_output_check_overwrites(&args)) &&
                 !(code = fr_ranks_check_arguments(verb, &args)))
            code = verb->run(&args);
    }
    fr_arguments_free(&args);
    return code;
}

static int dispatch(int count, char **words) {
    if (count == 0) {
        print_overview(stderr);
        return 2;
    }
    const fr_verb *verb = find_verb(words[0]);
    if (verb) return run_verb(verb, count - 1, words + 1);
    if (strcmp(words[0], "help") == 0 || is_one_of(words[0], "--help", "-h")) return run_help(count - 1, words + 1);
    if (!is_one_of(words[0], "--version", "version")) return unknown_verb(words[0]);
    if (count > 1) return fr_wrong_usage("%s: what is this word for? (forerun --version)", words[1]);
    print_version();
    return 0;
}

int main(int argc, char **argv) {
    fr_output_begin();
    fr_arguments_know(verbs, VERBS);
    fr_lost_file_watch();
    int code = fr_ranks_enter();
    if (!code) code = fr_run_on_big_stack(dispatch, argc - 1, argv + (argc > 0));
    if (!code) fr_flush_output();
    return code;
}

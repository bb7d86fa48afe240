// Writes the tokens that llama.cpp's grammars allow, step by step, for tests/data/grammars/walks.json.
//
// In: a GGUF file with a vocabulary, and files of grammars. Out, on standard output: walks for each grammar. A walk
// has ids, each chosen at random from those that llama.cpp allowed. For each step it has the number of allowed ids, a
// hash of them in ascending order (FNV-1a over four bytes each), and true if an end of sequence was allowed, which is
// not counted as an id. Two kinds of tokens are left out: control tokens, because llama.cpp lets a grammar spell their
// names; and tokens with bytes that no UTF-8 text has (such as F5), which it allows as beginnings of characters. With
// --whole, tokens that end within a character are left out too: llama.cpp refuses those that may become a character
// which a class excludes, even if they may also become others.
//
// It is built with a build of llama.cpp (make check-grammars does this, for the grammars that come with llama.cpp):
//
//     g++ -O1 -I LLAMA/include -I LLAMA/ggml/include tests/references/grammars.cpp BUILD/src/libllama.a
//         BUILD/ggml/src/libggml.a BUILD/ggml/src/libggml-cpu.a BUILD/ggml/src/libggml-base.a -fopenmp -ldl -o grammars
//     ./grammars tests/data/llama/q4_0.gguf tests/data/grammars/*.gbnf > tests/data/grammars/walks.json
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "llama.h"

static const int WALKS = 12, STEPS = 60;
static bool whole = false;
static uint32_t state = 20261128;

static uint32_t below(uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)state * n) >> 32);
}

static std::string quoted(const std::string &text) {
    std::string out = "\"";
    char code[8];
    for (unsigned char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += (char)c;
        } else if (c < 0x20) {
            snprintf(code, sizeof code, "\\u%04x", c);
            out += code;
        } else {
            out += (char)c;
        }
    }
    return out + "\"";
}

// Returns true if the bytes are UTF-8. The last character may be incomplete unless `whole` is set.
static bool begins_utf8(const std::string &text) {
    for (size_t i = 0; i < text.size();) {
        unsigned char lead = text[i++];
        size_t more = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
        if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4) return false;
        if (whole && text.size() - i < more) return false;
        for (size_t k = 0; k < more && i < text.size(); k++, i++) {
            unsigned char byte = text[i], low = 0x80, high = 0xBF;
            if (k == 0 && lead == 0xE0) low = 0xA0;
            if (k == 0 && lead == 0xED) high = 0x9F;
            if (k == 0 && lead == 0xF0) low = 0x90;
            if (k == 0 && lead == 0xF4) high = 0x8F;
            if (byte < low || byte > high) return false;
        }
    }
    return true;
}

static std::string piece(const llama_vocab *vocab, llama_token id) {
    char bytes[256];
    return std::string(bytes, (size_t)llama_token_to_piece(vocab, id, bytes, sizeof bytes, 0, false));
}

struct step {
    std::vector<llama_token> allowed;
    bool ends = false;
};

static step look(llama_sampler *grammar, const llama_vocab *vocab, const std::string &said) {
    step s;
    std::vector<llama_token_data> data;
    for (llama_token id = 0; id < llama_vocab_n_tokens(vocab); id++) data.push_back({id, 0.0f, 0.0f});
    llama_token_data_array all = {data.data(), data.size(), -1, false};
    llama_sampler_apply(grammar, &all);
    for (const llama_token_data &d : data) {
        if (std::isinf(d.logit)) continue;
        if (llama_vocab_is_eog(vocab, d.id))
            s.ends = true;
        else if (!llama_vocab_is_control(vocab, d.id) && begins_utf8(said + piece(vocab, d.id)))
            s.allowed.push_back(d.id);
    }
    return s;
}

static std::string hash(const std::vector<llama_token> &ids) {
    uint64_t h = 14695981039346656037u;
    char text[20];
    for (llama_token id : ids)
        for (int i = 0; i < 4; i++) h = (h ^ ((uint32_t)id >> (8 * i) & 0xFF)) * 1099511628211u;
    snprintf(text, sizeof text, "%016llx", (unsigned long long)h);
    return text;
}

// Short tokens are chosen as often as long ones, so that walks get far.
static void walk(const std::string &text, const llama_vocab *vocab, std::ostream &out) {
    llama_sampler *grammar = llama_sampler_init_grammar(vocab, text.c_str(), "root");
    std::ostringstream ids, steps;
    std::string said;
    for (int i = 0; i < STEPS; i++) {
        step s = look(grammar, vocab, said);
        steps << (i ? "," : "") << "[" << s.allowed.size() << ",\"" << hash(s.allowed) << "\","
              << (s.ends ? "true" : "false")
              << "]";
        if (s.allowed.empty()) break;
        llama_token id = s.allowed[below((uint32_t)s.allowed.size())];
        ids << (i ? "," : "") << id;
        said += piece(vocab, id);
        llama_sampler_accept(grammar, id);
    }
    out << "{\"ids\":[" << ids.str() << "],\n  \"steps\":[" << steps.str() << "]}";
    llama_sampler_free(grammar);
}

int main(int argc, char **argv) {
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    whole = argc > 1 && std::string(argv[1]) == "--whole";
    if (whole) argv++, argc--;
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    llama_model *model = llama_model_load_from_file(argv[1], params);
    const llama_vocab *vocab = llama_model_get_vocab(model);
    std::printf("[");
    for (int i = 2; i < argc; i++) {
        std::ifstream file(argv[i]);
        std::stringstream text;
        text << file.rdbuf();
        std::ostringstream out;
        for (int w = 0; w < WALKS; w++) {
            out << (w ? ",\n " : "");
            walk(text.str(), vocab, out);
        }
        std::printf("%s{\"grammar\":%s,\n \"walks\":[%s]}", i > 2 ? ",\n" : "\n", quoted(text.str()).c_str(),
                    out.str().c_str());
    }
    std::printf("]\n");
    llama_model_free(model);
}

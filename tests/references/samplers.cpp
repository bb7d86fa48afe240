// Writes what llama.cpp's samplers leave of given logits, for tests/data/sampling/samplers.json.
//
// In: a GGUF file with a vocabulary. Out, on standard output: cases with options, the tokens before a draw, logits,
// and the distribution that llama.cpp's own functions make of these; series of rows for mirostat, whose state follows
// the tokens that llama.cpp drew; and the sequence breakers that DRY finds in this vocabulary. It is built with a
// build of llama.cpp:
//
//     g++ -O1 -I LLAMA/include -I LLAMA/ggml/include tests/references/samplers.cpp BUILD/src/libllama.a
//         BUILD/ggml/src/libggml.a BUILD/ggml/src/libggml-cpu.a BUILD/ggml/src/libggml-base.a -fopenmp -ldl -o samplers
//     ./samplers tests/data/llama/q4_0.gguf > tests/data/sampling/samplers.json
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "llama.h"

static uint32_t state = 20261127;

static double uniform() {
    state = state * 1664525u + 1013904223u;
    return ((state >> 8) + 0.5) / (1 << 24);
}

static double normal() {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += uniform();
    return sum;
}

static std::vector<float> random_logits(size_t count, double width) {
    std::vector<float> logits(count);
    for (float &x : logits) x = (float)(std::round(normal() * width * 1000) / 1000);
    return logits;
}

struct options {
    float temperature = 1, top_p = 1, min_p = 0, typical = 1, sigma = -1;
    float xtc_probability = 0, xtc_threshold = 0.1f, range = 0, exponent = 1;
    float repeat = 1, frequency = 0, presence = 0, multiplier = 0, base = 1.75f;
    int top_k = 0, last_n = 64, allowed = 2, dry_last_n = 64;
    std::vector<std::string> breakers;
    std::string order = "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature";
    bool ordered = false;
};

static llama_sampler *make(const std::string &name, const options &o, const llama_vocab *vocab) {
    std::vector<const char *> breakers;
    for (const std::string &text : o.breakers) breakers.push_back(text.c_str());
    if (name == "penalties")
        return llama_sampler_init_penalties(llama_vocab_n_tokens(vocab), o.last_n, o.repeat, o.frequency, o.presence);
    if (name == "dry")
        return llama_sampler_init_dry(vocab, o.multiplier, o.base, o.allowed, o.dry_last_n, breakers.data(),
                                      breakers.size());
    if (name == "top_n_sigma") return llama_sampler_init_top_n_sigma(o.sigma);
    if (name == "top_k") return llama_sampler_init_top_k(o.top_k);
    if (name == "typ_p") return llama_sampler_init_typical(o.typical, 0);
    if (name == "top_p") return llama_sampler_init_top_p(o.top_p, 0);
    if (name == "min_p") return llama_sampler_init_min_p(o.min_p, 0);
    if (name == "xtc") return llama_sampler_init_xtc(o.xtc_probability, o.xtc_threshold, 0, 1);
    return llama_sampler_init_temp_ext(o.temperature, o.range, o.exponent);
}

static std::vector<double> softmax(const llama_token_data_array &a, size_t count) {
    std::vector<double> p(count, 0);
    double most = -INFINITY, total = 0;
    for (size_t i = 0; i < a.size; i++) most = std::fmax(most, a.data[i].logit);
    for (size_t i = 0; i < a.size; i++) total += p[a.data[i].id] = std::exp((double)a.data[i].logit - most);
    for (double &x : p) x /= total;
    return p;
}

static std::vector<llama_token_data> data_of(const std::vector<float> &logits) {
    std::vector<llama_token_data> data;
    for (size_t i = 0; i < logits.size(); i++) data.push_back({(llama_token)i, logits[i], 0});
    return data;
}

template <typename T> static void print(const char *name, const std::vector<T> &values) {
    printf("\"%s\": [", name);
    for (size_t i = 0; i < values.size(); i++) printf("%s%.7g", i ? ", " : "", (double)values[i]);
    printf("]");
}

static void print_text(const std::string &text) {
    printf("\"");
    for (unsigned char c : text)
        if (c < ' ' || c == '"' || c == '\\') printf("\\u%04x", c);
        else putchar(c);
    printf("\"");
}

static void print_options(const options &o) {
    const options none;
    auto number = [](const char *name, float value, float usual) {
        if (value != usual) printf(", \"%s\": %.9g", name, value);
    };
    printf("\"options\": {\"temperature\": %.9g", o.temperature);
    number("top_k", o.top_k, none.top_k);
    number("top_p", o.top_p, none.top_p);
    number("min_p", o.min_p, none.min_p);
    number("typical_p", o.typical, none.typical);
    number("top_n_sigma", o.sigma, none.sigma);
    number("xtc_probability", o.xtc_probability, none.xtc_probability);
    number("xtc_threshold", o.xtc_threshold, none.xtc_threshold);
    number("dynatemp_range", o.range, none.range);
    number("dynatemp_exponent", o.exponent, none.exponent);
    number("repeat_penalty", o.repeat, none.repeat);
    number("repeat_last_n", o.last_n, none.last_n);
    number("frequency_penalty", o.frequency, none.frequency);
    number("presence_penalty", o.presence, none.presence);
    number("dry_multiplier", o.multiplier, none.multiplier);
    number("dry_base", o.base, none.base);
    number("dry_allowed_length", o.allowed, none.allowed);
    number("dry_penalty_last_n", o.dry_last_n, none.dry_last_n);
    printf(", \"dry_sequence_breakers\": [");
    for (size_t i = 0; i < o.breakers.size(); i++) {
        if (i) printf(", ");
        print_text(o.breakers[i]);
    }
    printf("]");
    if (o.ordered) printf(", \"samplers\": \"%s\"", o.order.c_str());
    printf("}");
}

static size_t cases;

static void one_case(const llama_vocab *vocab, const options &o, const std::vector<float> &logits,
                     const std::vector<int> &past) {
    std::vector<llama_token_data> data = data_of(logits);
    llama_token_data_array a = {data.data(), data.size(), -1, false};
    std::stringstream order(o.order);
    for (std::string name; std::getline(order, name, ';');) {
        llama_sampler *sampler = make(name, o, vocab);
        for (int id : past) llama_sampler_accept(sampler, id);
        llama_sampler_apply(sampler, &a);
        llama_sampler_free(sampler);
    }
    printf("%s{", cases++ ? ",\n" : "");
    print_options(o);
    printf(", ");
    print("past", past);
    printf(", ");
    print("logits", logits);
    printf(", ");
    print("probs", softmax(a, logits.size()));
    printf("}");
}

static std::vector<int> random_past(size_t count, size_t kinds) {
    std::vector<int> past(count);
    for (int &id : past) id = (int)(uniform() * kinds);
    return past;
}

static std::vector<options> filters() {
    std::vector<options> all;
    auto add = [&](auto change) {
        options o;
        change(o);
        all.push_back(o);
    };
    for (float p : {0.1f, 0.3f, 0.6f, 0.9f, 0.99f}) add([&](options &o) { o.typical = p; });
    add([](options &o) { o.typical = 0.5f, o.temperature = 0.7f, o.top_p = 0.9f; });
    add([](options &o) { o.typical = 0.8f, o.temperature = 1.5f, o.top_k = 20, o.min_p = 0.05f; });
    for (float t : {0.01f, 0.05f, 0.1f, 0.2f, 0.5f})
        add([&](options &o) { o.xtc_probability = 1, o.xtc_threshold = t; });
    add([](options &o) { o.xtc_probability = 1, o.temperature = 1.3f, o.min_p = 0.02f; });
    add([](options &o) { o.xtc_probability = 1, o.xtc_threshold = 0.03f, o.typical = 0.9f, o.top_k = 30; });
    add([](options &o) { o.xtc_probability = 1, o.xtc_threshold = 0.03f, o.temperature = 0; });
    add([](options &o) { o.typical = 0.2f, o.temperature = 0; });
    for (float e : {0.5f, 1.0f, 2.0f}) add([&](options &o) { o.temperature = 0.8f, o.range = 0.5f, o.exponent = e; });
    add([](options &o) { o.temperature = 0.4f, o.range = 0.9f, o.top_p = 0.9f; });
    add([](options &o) { o.temperature = 0, o.range = 0.6f, o.min_p = 0.01f; });
    add([](options &o) {
        o.temperature = 1.2f, o.range = 1, o.top_k = 10, o.xtc_probability = 1, o.xtc_threshold = 0.05f;
    });
    add([](options &o) { o.sigma = 1; });
    add([](options &o) { o.sigma = 1.5f, o.temperature = 0.6f, o.top_k = 9, o.top_p = 0.95f; });
    for (const char *order : {"temperature;typ_p", "temperature;typ_p;xtc;top_p", "min_p;top_k;xtc",
                              "xtc;typ_p;top_n_sigma", "penalties;top_p;top_k;temperature", "temperature;xtc",
                              "top_p;typ_p;temperature"})
        add([&](options &o) {
            o.order = order, o.ordered = true;
            o.temperature = 0.7f, o.typical = 0.8f, o.xtc_probability = 1, o.xtc_threshold = 0.05f;
            o.top_p = 0.85f, o.top_k = 12, o.min_p = 0.03f, o.sigma = 1.2f, o.presence = 0.5f;
        });
    return all;
}

static std::vector<options> dry() {
    std::vector<options> all;
    for (int allowed : {0, 1, 2, 4})
        for (int last_n : {20, 64, 200}) {
            options o;
            o.multiplier = 0.4f, o.base = 1.3f, o.allowed = allowed, o.dry_last_n = last_n;
            if (allowed == 2) o.repeat = 1.2f, o.frequency = 0.1f, o.last_n = last_n;
            if (allowed == 1) o.temperature = 0.8f, o.top_p = 0.95f, o.typical = 0.95f;
            all.push_back(o);
        }
    options steep;
    steep.multiplier = 0.8f, steep.base = 4, steep.dry_last_n = 200;
    all.push_back(steep);
    return all;
}

// Returns random ids in which earlier stretches occur again and again.
static std::vector<int> repeating(const llama_vocab *vocab) {
    static const char *const texts[] = {"of the model: the first one\n", "of the model", "and *of* the end",
                                        "the first one"};
    std::vector<int> ids;
    while (ids.size() < 90) {
        const std::string text = texts[(int)(uniform() * 4)];
        int32_t some[64];
        int count = llama_tokenize(vocab, text.data(), (int)text.size(), some, 64, false, false);
        ids.insert(ids.end(), some, some + count);
    }
    return ids;
}

static void mirostat(float temperature, float tau, float eta) {
    static size_t series;
    llama_sampler *sampler = llama_sampler_init_mirostat_v2(7, tau, eta);
    printf("%s{\"temperature\": %.9g, \"mirostat_ent\": %.9g, \"mirostat_lr\": %.9g, \"rows\": [\n",
           series++ ? ",\n" : "", temperature, tau, eta);
    for (int row = 0; row < 12; row++) {
        std::vector<float> logits = random_logits(24, 1 + row % 3);
        std::vector<llama_token_data> data = data_of(logits);
        llama_token_data_array a = {data.data(), data.size(), -1, false};
        llama_sampler *warm = llama_sampler_init_temp(temperature);
        llama_sampler_apply(warm, &a);
        llama_sampler_free(warm);
        llama_sampler_apply(sampler, &a);
        printf("%s{\"drawn\": %d, ", row ? ",\n" : "", a.data[a.selected].id);
        print("logits", logits);
        printf(", ");
        print("probs", softmax(a, logits.size()));
        printf("}");
    }
    llama_sampler_free(sampler);
    printf("]}");
}

int main(int count, char **words) {
    if (count != 2) return 2;
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    llama_model *model = llama_model_load_from_file(words[1], params);
    if (!model) return 1;
    const llama_vocab *vocab = llama_model_get_vocab(model);
    printf("{\"cases\": [\n");
    for (const options &o : filters())
        for (double width : {0.7, 2.0, 4.0})
            one_case(vocab, o, random_logits(width == 2 ? 64 : 40, width), random_past(20, 40));
    for (const options &o : dry())
        for (size_t kinds : {2, 4}) one_case(vocab, o, random_logits(24, 2), random_past(100, kinds));
    printf("],\n\"texts\": [\n");
    cases = 0;
    for (const std::vector<std::string> &breakers :
         {std::vector<std::string>{}, {"\n", ":", "\"", "*"}, {" the"}, {"first one"}, {"of the m", "end"}}) {
        options o;
        o.multiplier = 0.5f, o.base = 1.2f, o.breakers = breakers, o.dry_last_n = 200;
        for (int i = 0; i < 3; i++)
            one_case(vocab, o, random_logits((size_t)llama_vocab_n_tokens(vocab), 1), repeating(vocab));
    }
    printf("],\n\"mirostat\": [\n");
    mirostat(1, 5, 0.1f);
    mirostat(0.8f, 2, 0.3f);
    mirostat(1.5f, 0.5f, 1);
    mirostat(1, 0.01f, 0.5f);
    printf("]}\n");
    llama_model_free(model);
}

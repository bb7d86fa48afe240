/* Gives the log-probabilities of a reply as JSON (reply.h). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tools/cli/reply.h"

/* Adds "token" and "bytes" to the entry of an id. If the id has no token, "token" is U+FFFD and "bytes" is null. */
static void put_text(const fr_reply *reply, int32_t id, json_t *entry) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(reply->setting.model);
    size_t length;
    if (!tokenizer) return;
    const char *bytes = fr_token_bytes(tokenizer, id, &length);
    fr_json_put(entry, "token", bytes ? fr_json_bytes(bytes, length) : json_string(FR_NO_TOKEN));
    fr_json_put(entry, "bytes", bytes ? fr_json_byte_numbers(bytes, length) : json_null());
}

/* Makes the entry of one id. If a log-probability is -infinity, which JSON can't express, the lowest float is written,
 * as llama.cpp's server does. If there are no ids before this id, its log-probability is null. */
static json_t *entry_of(const fr_reply *reply, const fr_reply_logprob *one) {
    json_t *entry = json_object();
    double value = isfinite(one->value) ? (double)one->value : -(double)FLT_MAX;
    fr_json_put(entry, "id", json_integer(one->id));
    if (reply->setting.chances)
        fr_json_put(entry, "prob", json_real(exp(one->value)));
    else
        fr_json_put(entry, "logprob", isnan(one->value) ? json_null() : json_real(value));
    put_text(reply, one->id, entry);
    return entry;
}

json_t *fr_reply_logprobs(const fr_reply *reply, size_t from, size_t to) {
    if (!reply->logprobs) return NULL;
    json_t *all = json_array();
    for (size_t i = from; i < to; i++) {
        const fr_reply_logprob *row = reply->logprobs + i * (reply->best + 1);
        json_t *token = entry_of(reply, row), *best = json_array();
        for (size_t b = 1; b <= reply->best; b++) {
            bool none = reply->setting.chances && !isfinite(row[b].value);
            if (!none) json_array_append_new(best, entry_of(reply, &row[b]));
        }
        fr_json_put(token, reply->setting.chances ? "top_probs" : "top_logprobs", best);
        json_array_append_new(all, token);
    }
    return all;
}

/* Counts the characters that begin in this token. A token may hold only a part of a character. */
static size_t characters_of(const json_t *entry) {
    const json_t *bytes = json_object_get(entry, "bytes");
    size_t count = 0;
    if (!json_is_array(bytes)) return fr_json_characters(json_object_get(entry, "token"));
    for (size_t i = 0; i < json_array_size(bytes); i++)
        count += (json_integer_value(json_array_get(bytes, i)) & 0xc0) != 0x80;
    return count;
}

/* Adds a token to `best`. If `best` already has a token with the same text, nothing is added, because tokens are added
 * in the order of their probability. */
static void put_best(json_t *best, const json_t *entry) {
    const char *token = json_string_value(json_object_get(entry, "token"));
    json_t *value = json_object_get(entry, "logprob");
    if (token && !json_object_get(best, token)) fr_json_put(best, token, json_incref(value));
}

/* Makes {"TOKEN": log-probability, ...}. Its tokens are the most likely tokens and the chosen token. */
static json_t *best_of(const json_t *own) {
    json_t *best, *entry;
    size_t i;
    if (json_is_null(json_object_get(own, "logprob"))) return json_null();
    best = json_object();
    json_array_foreach (json_object_get(own, "top_logprobs"), i, entry) put_best(best, entry);
    put_best(best, own);
    return best;
}

json_t *fr_reply_logprobs_lists(const fr_reply *reply, size_t from, size_t to, size_t *offset) {
    static const char *const names[] = {"tokens", "token_logprobs", "top_logprobs", "text_offset"};
    json_t *all = fr_reply_logprobs(reply, from, to), *lists = NULL, *list[4], *entry;
    size_t i;
    if (!all) return NULL;
    for (size_t n = 0; n < 4; n++) list[n] = json_array();
    json_array_foreach (all, i, entry) {
        json_t *token = json_object_get(entry, "token");
        json_array_append(list[0], token);
        json_array_append(list[1], json_object_get(entry, "logprob"));
        json_array_append_new(list[2], best_of(entry));
        json_array_append_new(list[3], json_integer((json_int_t)*offset));
        *offset += characters_of(entry);
    }
    lists = json_object();
    for (size_t n = 0; n < 4; n++) fr_json_put(lists, names[n], list[n]);
    json_decref(all);
    return lists;
}

/* Tests a server with several models. Each model is loaded at the first request for it. Also tests sessions that are
 * saved to files, restored in another server, and erased. */
/* suite: threads native */
#include <check.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/asking.h"
#include "tests/support/command.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"

static fr_server server;
static char folder[32];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/forerun-models-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    DIR *names = opendir(folder);
    for (struct dirent *one; (one = readdir(names));) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, one->d_name);
        if (one->d_name[0] != '.' || strlen(one->d_name) > 2) ck_assert_int_eq(unlink(path), 0);
    }
    closedir(names);
    ck_assert_int_eq(rmdir(folder), 0);
}

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t size) {
    FILE *file = fopen(in_folder(name), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* Sends a request and returns the status. If there is no body, the method is GET, otherwise POST. */
static int post(const char *path, json_t *body, json_t **answer) {
    json_t *dropped = NULL;
    int status = fr_ask_json(server.port, path, body, answer ? answer : &dropped);
    json_decref(body);
    json_decref(dropped);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- models */

static const struct {
    const char *name, *file, *path;
} models[] = {{"demo", "demo", "tools/demo/target"},
              {"quantized", "quantized.gguf", "tests/data/gguf/e-q4_0.gguf"},
              {"tied", "tied", "tests/data/models/qwen2-tied"}};
enum { MODELS = sizeof models / sizeof *models, ROUNDS = 3 };

static void link_models(void) {
    for (size_t i = 0; i < MODELS; i++) {
        char *path = realpath(models[i].path, NULL);
        ck_assert_int_eq(symlink(path, in_folder(models[i].file)), 0);
        free(path);
    }
    write_file("broken.gguf", "GGUF and nothing else", 21);
    write_file("notes.txt", "no model", 8);
}

/* Makes a request for a model. All models have the ids of its prompt. */
static json_t *question(size_t model) {
    return fr_body("{s:[i, i, i, i], s:i, s:i, s:b, s:s, s:b}", "prompt", 5, 20, 30, (int)(40 + model), "n_predict", 12,
                   "temperature", 0, "return_tokens", 1, "model", models[model].name, "ignore_eos", 1);
}

static json_t *ask_model(size_t model) {
    json_t *body = question(model), *said = fr_ask_ok(server.port, NATIVE, body);
    json_decref(body);
    return said;
}

/* Sends each model's request to a server with only this model. */
static void ask_each_apart(json_t **alone) {
    for (size_t i = 0; i < MODELS; i++) {
        server = fr_server_start("-m %s", models[i].path);
        alone[i] = ask_model(i);
        fr_server_stop(&server);
    }
    ck_assert(!json_equal(alone[0], alone[1]) && !json_equal(alone[1], alone[2]));
}

/* Returns the number of models in memory. The list of /v1/models must have `known` models. For each it says whether the
 * model is in memory. */
static size_t count_loaded(size_t known) {
    json_t *list, *one;
    size_t loaded = 0, i;
    ck_assert_int_eq(fr_ask_json(server.port, "/v1/models", NULL, &list), 200);
    ck_assert_uint_eq(json_array_size(fr_json_get(list, "data")), known);
    json_array_foreach (fr_json_get(list, "data"), i, one) loaded += json_object_get(one, "meta") != NULL;
    json_decref(list);
    return loaded;
}

static void ask_in_turn(json_t *const *alone, size_t most) {
    for (size_t i = 0; i < ROUNDS * MODELS; i++) {
        json_t *said = ask_model(i % MODELS);
        fr_same_said(alone[i % MODELS], said, models[i % MODELS].name);
        json_decref(said);
        size_t loaded = count_loaded(MODELS + 1);
        ck_assert_uint_ge(loaded, 1);
        ck_assert_uint_le(loaded, most);
    }
}

static void ask_at_once(json_t *const *alone) {
    fr_client *clients[ROUNDS * MODELS];
    for (size_t i = 0; i < ROUNDS * MODELS; i++) {
        json_t *body = question(i % MODELS);
        char *text = json_dumps(body, 0);
        clients[i] = fr_client_open(server.port);
        ck_assert(fr_client_ask(clients[i], "POST", NATIVE, NULL, text));
        json_decref(body);
        free(text);
    }
    for (size_t i = 0; i < ROUNDS * MODELS; i++) {
        ck_assert_int_eq(fr_client_head(clients[i]), 200);
        char *text = fr_client_body(clients[i], NULL);
        json_t *answer = json_loads(text, 0, NULL), *said = fr_whole_said(answer);
        fr_same_said(alone[i % MODELS], said, models[i % MODELS].name);
        json_decref(answer);
        json_decref(said);
        fr_client_close(clients[i]);
        free(text);
    }
}

static void refuse_others(void) {
    json_t *answer;
    ck_assert_int_eq(post(NATIVE, fr_body("{s:s, s:s}", "model", "nobody", "prompt", "a"), &answer), 404);
    ck_assert_str_eq(json_string_value(fr_json_get(fr_json_get(answer, "error"), "type")), "not_found_error");
    json_decref(answer);
    ck_assert_int_eq(post(NATIVE, fr_body("{s:s}", "prompt", "a"), NULL), 400);
    ck_assert_int_eq(post(NATIVE, fr_body("{s:i, s:s}", "model", 3, "prompt", "a"), NULL), 400);
    ck_assert_int_eq(post(NATIVE, fr_body("{s:s, s:s}", "model", "notes.txt", "prompt", "a"), NULL), 404);
    ck_assert_int_eq(post(NATIVE, fr_body("{s:s, s:s}", "model", "../folder/demo", "prompt", "a"), NULL), 404);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(post(NATIVE, fr_body("{s:s, s:s}", "model", "broken", "prompt", "a"), &answer), 500);
        const char *message = json_string_value(fr_json_get(fr_json_get(answer, "error"), "message"));
        ck_assert_msg(strstr(message, "broken") && !strstr(message, folder), "%s", message);
        json_decref(answer);
    }
    ck_assert_int_eq(post("/tokenize", fr_body("{s:s, s:s}", "model", "demo", "content", "a"), NULL), 200);
    ck_assert_int_eq(fr_ask_json(server.port, "/props?model=tied", NULL, &answer), 200);
    ck_assert_str_eq(json_string_value(fr_json_get(answer, "model_alias")), "tied");
    json_decref(answer);
}

/* The server may have only one model in memory at a time, or all of them. Each answer must be that of a server with
 * only this model. */
START_TEST(each_model_answers_by_its_name) {
    json_t *alone[MODELS];
    size_t most = _i ? 4 : 1;
    ask_each_apart(alone);
    link_models();
    server = fr_server_start("--models %s --models-max %zu -np 2", folder, most);
    ck_assert_uint_eq(count_loaded(MODELS + 1), 0);
    ask_in_turn(alone, most);
    refuse_others();
    ask_at_once(alone);
    ask_in_turn(alone, most);
    fr_server_stop(&server);
    for (size_t i = 0; i < MODELS; i++) json_decref(alone[i]);
}
END_TEST

/* While a text of one model is generated, a request for another model must wait. It must be answered afterwards. */
START_TEST(a_model_in_use_is_not_taken_away) {
    link_models();
    server = fr_server_start("--models %s --models-max 1 -np 1", folder);
    json_t *body = fr_body("{s:s, s:s, s:i, s:b, s:b, s:i}", "model", "demo", "prompt", "The cat", "n_predict", 300,
                           "stream", 1, "ignore_eos", 1, "temperature", 0);
    fr_events events = fr_ask_stream(server.port, NATIVE, body);
    json_t *other = ask_model(1), *said = fr_events_said(&events);
    ck_assert(events.whole && !json_object_get(said, "error"));
    ck_assert_int_eq(json_integer_value(fr_json_get(fr_json_get(said, "0"), "tokens_predicted")), 300);
    fr_events_close(&events);
    json_decref(other);
    json_decref(said);
    json_decref(body);
    fr_server_stop(&server);
}
END_TEST

/* A request waits for its model to be loaded when the server ends. The request must get an answer or a refusal, and the
 * server must end properly. */
START_TEST(who_waits_for_a_model_is_told_at_the_end) {
    link_models();
    server = fr_server_start("--models %s", folder);
    json_t *body = question(0);
    char *text = json_dumps(body, 0);
    fr_client *client = fr_client_open(server.port);
    ck_assert(fr_client_ask(client, "POST", NATIVE, NULL, text));
    usleep(1000 * (useconds_t)_i);
    fr_server_stop(&server);
    int status = fr_client_head(client);
    char *answer = status ? fr_client_body(client, NULL) : NULL;
    ck_assert_msg(status == 0 || status == 200 || status == 503, "%d: %s", status, answer);
    free(answer);
    fr_client_close(client);
    json_decref(body);
    free(text);
}
END_TEST

/* /v1/models must list models in the order of the option, under the names of their files. A request must find a model
 * by this name. */
START_TEST(a_list_of_models) {
    static const char *const names[] = {"target", "e-q4_0", "qwen2-tied"};
    json_t *list;
    server = fr_server_start("--models tools/demo/target/,tests/data/gguf/e-q4_0.gguf,tests/data/models/qwen2-tied");
    ck_assert_int_eq(fr_ask_json(server.port, "/v1/models", NULL, &list), 200);
    for (size_t i = 0; i < 3; i++) {
        const json_t *one = json_array_get(fr_json_get(list, "data"), i);
        ck_assert_str_eq(json_string_value(fr_json_get(one, "id")), names[i]);
        ck_assert_int_eq(post("/tokenize", fr_body("{s:s, s:s}", "model", names[i], "content", "a"), NULL), 200);
    }
    ck_assert_uint_eq(json_array_size(fr_json_get(list, "data")), 3);
    ck_assert_int_eq(post(NATIVE, fr_body("{s:s, s:s}", "model", "other", "prompt", "a"), NULL), 404);
    json_decref(list);
    fr_server_stop(&server);
}
END_TEST

/* A folder inside the folder of models is one model if it has one GGUF file. This file may consist of several parts. */
START_TEST(folders_of_one_file_are_models) {
    char one[64], two[64], path[160];
    json_t *list;
    char *file = realpath(models[1].path, NULL);
    snprintf(one, sizeof one, "%s/one", folder);
    snprintf(two, sizeof two, "%s/two", folder);
    ck_assert(mkdir(one, 0700) == 0 && mkdir(two, 0700) == 0);
    static const char *const files[] = {"one/a.gguf", "two/a.gguf", "two/b.gguf"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        ck_assert_int_eq(symlink(file, path), 0);
    }
    server = fr_server_start("--models %s", folder);
    ck_assert_int_eq(post("/tokenize", fr_body("{s:s, s:s}", "model", "one", "content", "a"), NULL), 200);
    ck_assert_int_eq(fr_ask_json(server.port, "/v1/models", NULL, &list), 200);
    ck_assert_uint_eq(json_array_size(fr_json_get(list, "data")), 1);
    json_decref(list);
    fr_server_stop(&server);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        ck_assert_int_eq(unlink(path), 0);
    }
    snprintf(path, sizeof path, "%s/one/a.gguf.sha256", folder);
    unlink(path); /* the file with the model's hash, which the server has stored */
    ck_assert(rmdir(one) == 0 && rmdir(two) == 0);
    free(file);
}
END_TEST

/* If a model's file is cut or changed, it is no longer the file that was opened. Requests for the model, and health
 * probes, must then get a server error. If the file is removed or replaced instead, the server can still use the file
 * that it has open. */
START_TEST(a_model_whose_file_is_changed) {
    static const struct {
        const char *change;
        bool lost;
    } changes[] = {{"truncate -s -1 %s", true}, {"printf x >> %s", true}, {"rm %s", false}, {"mv %s %s.moved", false}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char line[768], path[256];
        json_t *answer;
        snprintf(path, sizeof path, "%s", in_folder("changed.gguf"));
        snprintf(line, sizeof line, "cp tests/data/gguf/e-q4_0.gguf %s", path);
        ck_assert_int_eq(system(line), 0);
        server = fr_server_start("-m %s", path);
        ck_assert_int_eq(post("/health", NULL, NULL), 200);
        ck_assert_int_eq(post(NATIVE, fr_body("{s:[i,i], s:i}", "prompt", 5, 20, "n_predict", 2), NULL), 200);
        snprintf(line, sizeof line, changes[i].change, path, path);
        ck_assert_int_eq(system(line), 0);
        for (int again = 0; again < 2; again++) {
            ck_assert_int_eq(post("/health", NULL, NULL), changes[i].lost ? 503 : 200);
            ck_assert_int_eq(post(NATIVE, fr_body("{s:[i,i], s:i}", "prompt", 5, 20, "n_predict", 2), &answer),
                             changes[i].lost ? 500 : 200);
            const json_t *error = json_object_get(answer, "error");
            ck_assert(changes[i].lost == (error != NULL));
            if (error) ck_assert(!strstr(json_string_value(fr_json_get(error, "message")), folder));
            json_decref(answer);
        }
        ck_assert_int_eq(post("/v1/models", NULL, NULL), 200);
        fr_server_stop(&server);
        unlink(path);
        snprintf(line, sizeof line, "%s.moved", path);
        unlink(line);
    }
}
END_TEST

/* A server with one model must accept any model name in requests. /v1/models must list only the model's own name, which
 * may contain slashes. */
START_TEST(one_model_answers_to_any_name) {
    static const char *const starts[] = {"-m tools/demo/target --alias org/name", "--models tools/demo/target"};
    static const char *const named[] = {"/v1/models/org/name", "/v1/models/target"};
    for (size_t i = 0; i < 2; i++) {
        json_t *one, *list;
        server = fr_server_start("%s -t 1 -c 64", starts[i]);
        ck_assert_int_eq(post("/tokenize", fr_body("{s:s, s:s}", "model", "gpt-4o", "content", "a"), NULL), 200);
        ck_assert_int_eq(post("/tokenize", fr_body("{s:s}", "content", "a"), NULL), 200);
        ck_assert_int_eq(fr_ask_json(server.port, "/v1/models", NULL, &list), 200);
        ck_assert_int_eq(fr_ask_json(server.port, named[i], NULL, &one), 200);
        fr_same_said(json_array_get(fr_json_get(list, "data"), 0), one, named[i]);
        json_decref(one);
        ck_assert_int_eq(fr_ask_json(server.port, "/v1/models/org", NULL, &one), 404);
        ck_assert_str_eq(json_string_value(fr_json_get(fr_json_get(one, "error"), "type")), "not_found_error");
        json_decref(one);
        json_decref(list);
        fr_server_stop(&server);
    }
}
END_TEST

static json_t *loaded(void) {
    json_t *answer;
    ck_assert_int_eq(fr_ask_json(server.port, "/api/ps", NULL, &answer), 200);
    json_t *there = json_incref(json_object_get(answer, "models"));
    json_decref(answer);
    return there;
}

/* ollama's clients load or unload a model with a request without a prompt. */
START_TEST(a_model_is_loaded_and_leaves) {
    json_t *answer, *there;
    server = fr_server_start("--models tools/demo/target,tests/data/models/qwen2-tied -t 1 -c 64");
    there = loaded();
    ck_assert_uint_eq(json_array_size(there), 0);
    json_decref(there);
    ck_assert_int_eq(post("/api/generate", fr_body("{s:s}", "model", "target:latest"), &answer), 200);
    ck_assert_str_eq(json_string_value(fr_json_get(answer, "done_reason")), "load");
    json_decref(answer);
    there = loaded();
    ck_assert_uint_eq(json_array_size(there), 1);
    ck_assert_str_eq(json_string_value(fr_json_get(json_array_get(there, 0), "name")), "target");
    json_decref(there);
    ck_assert_int_eq(post("/api/generate", fr_body("{s:s, s:i}", "model", "none", "keep_alive", 0), NULL), 404);
    ck_assert_int_eq(post("/api/generate", fr_body("{s:s, s:i}", "model", "target", "keep_alive", 0), &answer), 200);
    ck_assert_str_eq(json_string_value(fr_json_get(answer, "done_reason")), "unload");
    json_decref(answer);
    size_t count = 1;
    for (int looks = 0; looks < 200 && count; looks++) {
        there = loaded();
        count = json_array_size(there);
        json_decref(there);
        usleep(20000);
    }
    ck_assert_uint_eq(count, 0);
    json_t *body = fr_body("{s:s, s:s, s:i}", "model", "target", "prompt", "a", "n_predict", 1);
    ck_assert_int_eq(post(NATIVE, body, NULL), 200);
    fr_server_stop(&server);
}
END_TEST

static const struct {
    const char *models, *says; /* if models is NULL, the folder is empty */
    int status;
} no_models[] = {
    {NULL, "no GGUF file", 1},
    {"tools/demo/target,no/such.gguf", "no/such.gguf: No such file", 1},
    {"tools/demo/target,,tests/data/models/llama", "a name is missing between commas", 2},
    {"tools/demo/target,", "a name is missing between commas", 2},
    {"tools/demo/target,tools/demo/target/", "two are called \"target\"", 1},
};

START_TEST(what_is_no_list_of_models) {
    char line[256];
    const char *list = no_models[_i].models ? no_models[_i].models : folder;
    snprintf(line, sizeof line, "serve --port 0 --models %s", list);
    fr_command c = fr_command_run(line, NULL);
    ck_assert_msg(c.status == no_models[_i].status && strstr(c.err, no_models[_i].says), "%d: %s", c.status, c.err);
    fr_command_free(&c);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ slots */

#define ASKED                                                                                            \
    "Tell me what a river is, how it comes to be, where its water is from, and who lives beside it. "    \
    "Name three rivers that you know, and what they have in common; then three that have nothing in "    \
    "common. Say in the end why water flows down, and what would be if it flowed up instead, in a town " \
    "of many hills."

static void start(void) {
    server = fr_server_start(DEMO DEMO_DRAFTER "-np 2 --slot-save-path %s", folder);
}

static json_t *first_turn(void) {
    return fr_body("{s:[{s:s, s:s}], s:i, s:i, s:i}", "messages", "role", "user", "content", ASKED, "max_tokens", 24,
                   "temperature", 0, "id_slot", 0);
}

static json_t *second_turn(const json_t *said, int slot) {
    const json_t *text = fr_json_get(fr_json_get(said, "0"), "content");
    return fr_body("{s:[{s:s, s:s}, {s:s, s:O}, {s:s, s:s}], s:i, s:f, s:i, s:i}", "messages", "role", "user",
                   "content", ASKED, "role", "assistant", "content", text, "role", "user", "content", "And a lake?",
                   "max_tokens", 24, "temperature", 0.7, "seed", 5, "id_slot", slot);
}

/* Sends the request and returns the answer. Sets *cached to the number of prompt tokens that were in the cache. */
static json_t *ask_counting(json_t *body, int64_t *cached) {
    json_t *answer;
    ck_assert_int_eq(fr_ask_json(server.port, CHAT, body, &answer), 200);
    const json_t *details = fr_json_get(fr_json_get(answer, "usage"), "prompt_tokens_details");
    *cached = json_integer_value(fr_json_get(details, "cached_tokens"));
    json_t *said = fr_whole_said(answer);
    json_decref(answer);
    json_decref(body);
    return said;
}

static int64_t member(const json_t *answer, const char *key) {
    return json_integer_value(fr_json_get(answer, key));
}

static int64_t save(const char *name) {
    json_t *saved;
    struct stat file;
    ck_assert_int_eq(post("/slots/0?action=save", fr_body("{s:s}", "filename", name), &saved), 200);
    int64_t ids = member(saved, "n_saved");
    ck_assert_int_eq(stat(in_folder(name), &file), 0);
    ck_assert_int_eq(member(saved, "n_written"), file.st_size);
    ck_assert_str_eq(json_string_value(fr_json_get(saved, "filename")), name);
    json_decref(saved);
    return ids;
}

static void restore(int slot, const char *name, int64_t ids) {
    char path[64];
    json_t *restored;
    snprintf(path, sizeof path, "/slots/%d?action=restore", slot);
    ck_assert_int_eq(post(path, fr_body("{s:s}", "filename", name), &restored), 200);
    ck_assert_int_eq(member(restored, "n_restored"), ids);
    ck_assert_int_eq(member(restored, "id_slot"), slot);
    json_decref(restored);
}

/* Restores the conversation in a new server. Then continues it twice: in slot `slot`, or in any slot if `slot` is -1.
 * Both times the server must find the prompt in the cache. */
static void go_on_restored(const json_t *first, const json_t *expected, int slot, int64_t ids) {
    int64_t cached;
    start();
    restore(1, "river.bin", ids);
    json_t *said = ask_counting(second_turn(first, slot), &cached);
    fr_same_said(expected, said, "restored");
    ck_assert_int_gt(cached, ids / 2);
    json_decref(said);
    fr_server_stop(&server);
}

START_TEST(a_saved_conversation_goes_on_in_another_server) {
    int64_t cached, ids;
    start();
    json_t *first = ask_counting(first_turn(), &cached);
    ck_assert_int_eq(cached, 0);
    ids = save("river.bin");
    ck_assert_int_gt(ids, 64);
    fr_server_stop(&server);
    start();
    json_t *expected = ask_counting(second_turn(first, 1), &cached);
    ck_assert_int_eq(cached, 0);
    fr_server_stop(&server);
    go_on_restored(first, expected, 1, ids);
    go_on_restored(first, expected, -1, ids);
    json_decref(first);
    json_decref(expected);
}
END_TEST

START_TEST(a_slot_is_erased) {
    int64_t cached;
    json_t *erased;
    start();
    json_t *first = ask_counting(first_turn(), &cached);
    int64_t ids = save("a");
    ck_assert_int_eq(post("/slots/0?action=erase", json_object(), &erased), 200);
    ck_assert_int_eq(member(erased, "n_erased"), ids);
    json_decref(erased);
    ck_assert_int_eq(post("/slots/0?action=save", fr_body("{s:s}", "filename", "b"), NULL), 400);
    ck_assert_int_eq(access(in_folder("b"), F_OK), -1);
    json_t *again = ask_counting(first_turn(), &cached);
    fr_same_said(first, again, "behind an erased slot");
    json_decref(first);
    json_decref(again);
    fr_server_stop(&server);
}
END_TEST

START_TEST(names_that_lead_elsewhere_are_refused) {
    static const char *const names[] = {"../x", "", "a/b", ".x", "/tmp/x", "a b", "-x", "a\\b", "..", ".", "a\nb", "é"};
    static const char *const paths[] = {"/slots/2?action=save",
                                        "/slots/?action=save",
                                        "/slots/-1?action=save",
                                        "/slots/0/1?action=save",
                                        "/slots/0x0?action=save",
                                        "/slots/0?action=keep",
                                        "/slots/0",
                                        "/slots/99999999999999999999?action=save"};
    char name[300];
    int64_t cached;
    start();
    json_decref(ask_counting(first_turn(), &cached));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ck_assert_int_eq(post("/slots/0?action=save", fr_body("{s:s}", "filename", names[i]), NULL), 400);
        ck_assert_int_eq(post("/slots/0?action=restore", fr_body("{s:s}", "filename", names[i]), NULL), 400);
    }
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        ck_assert_int_eq(post(paths[i], fr_body("{s:s}", "filename", "x"), NULL), 400);
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(post("/slots/0?action=save", fr_body("{s:s}", "filename", name), NULL), 400);
    ck_assert_int_eq(post("/slots/0?action=save", fr_body("{s:i}", "filename", 3), NULL), 400);
    ck_assert_int_eq(post("/slots/0?action=save", fr_body("{s:s#}", "filename", "a\0b", 3), NULL), 400);
    ck_assert_int_eq(post("/slots/0?action=save", json_array(), NULL), 400);
    fr_server_stop(&server);
}
END_TEST

static char *read_file(const char *name, size_t *size) {
    FILE *file = fopen(in_folder(name), "r");
    ck_assert_ptr_nonnull(file);
    char *bytes = malloc(1 << 24);
    *size = fread(bytes, 1, 1 << 24, file);
    fclose(file);
    return bytes;
}

/* If a file can't be restored, the slot must keep its text. If there is a pipe instead of the file, the server must
 * neither wait for it nor overwrite it. */
START_TEST(a_slot_keeps_what_it_has) {
    char path[300];
    struct stat file;
    int64_t cached;
    json_t *saved;
    start();
    json_decref(ask_counting(first_turn(), &cached));
    save("good");
    size_t size;
    char *bytes = read_file("good", &size);
    write_file("bad", bytes, size / 2);
    free(bytes);
    snprintf(path, sizeof path, "%s/pipe", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(post("/slots/0?action=restore", fr_body("{s:s}", "filename", "good"), NULL), 200);
    ck_assert_int_eq(post("/slots/0?action=restore", fr_body("{s:s}", "filename", "bad"), NULL), 400);
    ck_assert_int_eq(post("/slots/0?action=restore", fr_body("{s:s}", "filename", "none"), NULL), 400);
    ck_assert_int_eq(post("/slots/0?action=restore", fr_body("{s:s}", "filename", "pipe"), NULL), 400);
    ck_assert_int_eq(post("/slots/0?action=save", fr_body("{s:s}", "filename", "pipe"), NULL), 400);
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert(S_ISFIFO(file.st_mode));
    ck_assert_int_eq(post("/slots/0?action=save", fr_body("{s:s}", "filename", "again"), &saved), 200);
    ck_assert_int_gt(member(saved, "n_saved"), 10);
    json_decref(saved);
    unlink(path);
    fr_server_stop(&server);
}
END_TEST

/* The file is truncated, changed, empty, a folder, or the file of another model. After each refusal the slot must be
 * empty. */
START_TEST(a_damaged_file_is_refused) {
    int64_t cached;
    size_t size;
    json_t *error;
    start();
    json_t *first = ask_counting(first_turn(), &cached);
    save("good");
    char *bytes = read_file("good", &size);
    for (int i = 0; i < 8; i++) {
        if (i < 4) write_file("bad", bytes, size * (size_t)i / 4);
        char kept = bytes[size * (size_t)i / 8];
        bytes[size * (size_t)i / 8] ^= 0x20;
        if (i >= 4) write_file("bad", bytes, size);
        bytes[size * (size_t)i / 8] = kept;
        int status = post("/slots/1?action=restore", fr_body("{s:s}", "filename", "bad"), &error);
        ck_assert_msg(status == 400 || status == 500, "%d: %d", i, status);
        ck_assert_ptr_null(strstr(json_string_value(fr_json_get(fr_json_get(error, "error"), "message")), folder));
        json_decref(error);
    }
    int status = post("/slots/1?action=restore", fr_body("{s:s}", "filename", "none"), NULL);
    ck_assert_msg(status >= 400, "%d", status);
    json_t *body = first_turn();
    json_object_set_new(body, "id_slot", json_integer(1));
    json_t *again = ask_counting(body, &cached);
    fr_same_said(first, again, "behind damaged files");
    json_decref(first);
    json_decref(again);
    free(bytes);
    fr_server_stop(&server);
}
END_TEST

FR_SUITE("serve_models") {
    TCase *cases = tcase_create("serve_models");
    tcase_set_timeout(cases, 300);
    tcase_add_checked_fixture(cases, make_folder, remove_folder);
    tcase_add_loop_test(cases, each_model_answers_by_its_name, 0, 2);
    tcase_add_test(cases, a_model_in_use_is_not_taken_away);
    tcase_add_loop_test(cases, who_waits_for_a_model_is_told_at_the_end, 0, 6);
    tcase_add_test(cases, a_list_of_models);
    tcase_add_test(cases, folders_of_one_file_are_models);
    tcase_add_test(cases, a_model_whose_file_is_changed);
    tcase_add_test(cases, one_model_answers_to_any_name);
    tcase_add_test(cases, a_model_is_loaded_and_leaves);
    tcase_add_loop_test(cases, what_is_no_list_of_models, 0, sizeof no_models / sizeof *no_models);
    tcase_add_test(cases, a_saved_conversation_goes_on_in_another_server);
    tcase_add_test(cases, a_slot_is_erased);
    tcase_add_test(cases, names_that_lead_elsewhere_are_refused);
    tcase_add_test(cases, a_damaged_file_is_refused);
    tcase_add_test(cases, a_slot_keeps_what_it_has);
    suite_add_tcase(suite, cases);
}

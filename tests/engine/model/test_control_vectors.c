/* Tests control vectors. The logits are compared with those of transformers, where hooks add the vectors
 * (tests/references/adapters.py). The bits must be the same for any number of threads, instruction set, chunk and
 * draft, and also when the session has an adapter. Also tests the command's options, and that files that don't fit are
 * refused. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun.h"
#include "formats/safetensors.h"
#include "tests/support/command.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define LLAMA  "tests/data/models/llama"
#define VECTOR "tests/data/adapters/llama-vector/vector.gguf"
#define LORA   "tests/data/adapters/llama"
#define FOUR   LORA "," LORA "," LORA "," LORA

enum { PROMPT = 12, LONG = 90, TEXT = 24 };

/* A way of running a prompt. The control vector is added in the layers `first` to `last`. */
typedef struct way {
    const char *isa, *drafts;
    int threads, chunk;
    size_t first, last;
    double scale;
    bool lora;
} way;

static fr_rows run(const way *w, size_t count, int32_t text[TEXT]) {
    int32_t ids[LONG];
    fr_model *model;
    fr_session *session;
    fr_adapter *used[2] = {NULL, NULL};
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_THREADS, w->threads));
    require(fr_options_set(options, FR_OPT_CHUNK, w->chunk));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, w->drafts));
    if (w->isa) require(fr_options_set_text(options, FR_OPT_ISA, w->isa));
    require(fr_model_open(LLAMA, options, &model));
    int32_t vocab = (int32_t)fr_model_fact(model, FR_FACT_VOCAB);
    for (size_t i = 0; i < count; i++) ids[i] = (int32_t)(7 + 13 * i) % vocab;
    require(fr_control_vector_open(VECTOR, model, w->first, w->last, &used[0]));
    ck_assert_uint_eq(fr_adapter_matrices(used[0]), 0);
    if (w->lora) require(fr_adapter_open(LORA, model, &used[1]));
    require(fr_session_open(model, NULL, options, &session));
    require(
        fr_session_set_adapters(session, (const fr_adapter *const *)used, (const double[]){w->scale, 1}, 1 + w->lora));
    fr_rows rows = {.capacity = count * (size_t)vocab};
    rows.values = malloc(rows.capacity * sizeof *rows.values);
    ck_assert_ptr_nonnull(rows.values);
    require(fr_session_logits(session, ids, count, 0, fr_rows_collect, &rows));
    require(fr_session_set_prompt(session, ids, count));
    for (size_t at = 0, got; text && at < TEXT; at += got)
        require(fr_session_step(session, text + at, TEXT - at, &got, NULL));
    fr_session_close(session);
    fr_adapter_close(used[1]);
    fr_adapter_close(used[0]);
    fr_model_close(model);
    fr_options_free(options);
    return rows;
}

START_TEST(adds_rows_after_layers) {
    static const way ways[] = {{NULL, "none", 2, 64, 0, 0, 1, false}, {NULL, "none", 2, 64, 2, 4, -0.5, false}};
    static const char *const names[] = {"all", "part"};
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    require(fr_map_open(&map, "tests/data/adapters/llama-vector/reference.safetensors", true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    for (size_t i = 0; i < 2; i++) {
        const fr_tensor *logits = fr_tensors_find(&tensors, names[i]);
        ck_assert_ptr_nonnull(logits);
        fr_rows rows = run(&ways[i], PROMPT, NULL);
        ck_assert_uint_eq(rows.count * sizeof(float), logits->bytes);
        fr_rows_compare(rows.values, logits->data, rows.count);
        free(rows.values);
    }
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
}
END_TEST

START_TEST(gives_one_answer) {
    static const way ways[] = {{NULL, "none", 1, 64, 0, 0, 0.7, true},
                               {NULL, "none", 3, 7, 0, 0, 0.7, true},
                               {"scalar", "none", 2, 64, 0, 0, 0.7, true},
                               {NULL, "ngram", 1, 64, 0, 0, 0.7, true}};
    int32_t texts[2][TEXT];
    const fr_rows rows = run(&ways[0], LONG, texts[0]);
    for (size_t i = 1; i < sizeof ways / sizeof *ways; i++) {
        const fr_rows other = run(&ways[i], LONG, texts[1]);
        fr_rows_expect_same(&other, &rows);
        ck_assert_mem_eq(texts[1], texts[0], sizeof texts[0]);
        free(other.values);
    }
    free(rows.values);
}
END_TEST

/* Returns what the command prints when it generates a greedy text with these options. The caller frees the text. */
static char *say(const char *options) {
    fr_command c =
        fr_command_ok("generate -m " LLAMA " --ids 5,18,31,44,57 -n 16 --ignore-eos --output ids --quiet %s", options);
    char *out = strdup(c.out);
    fr_command_free(&c);
    return out;
}

START_TEST(the_command_takes_them) {
    static const char *const same[][2] = {{"--control-vector " VECTOR, "--control-vector-scaled " VECTOR ":1"},
                                          {"--control-vector " VECTOR " --control-vector-layer-range 2 4",
                                           "--control-vector-layer-range=2,4 --control-vector " VECTOR},
                                          {"--control-vector " VECTOR " --control-vector-layer-range 1 1",
                                           "'--control-vector-layer-range=1 1' --control-vector " VECTOR},
                                          {"--control-vector-scaled " VECTOR ":0", ""}};
    enum { SAME = sizeof same / sizeof *same };
    char *said[SAME];
    for (size_t i = 0; i < SAME; i++) {
        char *other = say(same[i][1]);
        said[i] = say(same[i][0]);
        ck_assert_str_eq(said[i], other);
        free(other);
    }
    for (size_t i = 0; i < SAME; i++) ck_assert_str_ne(said[i], said[(i + 1) % SAME]);
    for (size_t i = 0; i < SAME; i++) free(said[i]);
    static const char *const wrong[] = {"--control-vector-layer-range 4", "--control-vector-layer-range 4 2",
                                        "--control-vector-layer-range a b", "--control-vector-scaled " VECTOR,
                                        "--control-vector " LORA,
                                        /* this list has more adapters than a session can have */
                                        "--control-vector " VECTOR " --lora " FOUR "," FOUR "," FOUR "," FOUR};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[2048];
        snprintf(line, sizeof line, "generate -m " LLAMA " --ids 5 -n 1 %s", wrong[i]);
        fr_command c = fr_command_run(line, NULL);
        ck_assert_msg(c.status != 0 && c.err_length > 0, "%s", wrong[i]);
        fr_command_free(&c);
    }
}
END_TEST

/* Each case replaces a text in the file by another one of the same length. The error line must contain `says`. */
START_TEST(files_that_do_not_fit_are_refused) {
    static const struct {
        const char *from, *to, *says;
    } bad[] = {{"controlvector", "controlvectoR", "architecture controlvector"},
               {"direction.1", "direction.0", "is not direction.N"},
               {"direction.1", "direction.9", "is not direction.N"},
               {"direction.1", "direction.-", "is not direction.N"},
               {"direction.1", "direction.2", "direction.2"},
               {"direction.1", "directioN.1", "is not direction.N"}};
    char bytes[1 << 14], path[] = "/tmp/forerun-vector-XXXXXX";
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_adapter *vector;
    FILE *file = fopen(VECTOR, "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ck_assert_uint_lt(size, sizeof bytes);
    require(fr_model_open(LLAMA, options, &model));
    close(mkstemp(path));
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        char damaged[sizeof bytes];
        bool infinite = i == sizeof bad / sizeof *bad;
        memcpy(damaged, bytes, size);
        if (infinite)
            memcpy(damaged + size - 32, "\0\0\x80\x7f", 4);
        else
            memcpy(memmem(damaged, size, bad[i].from, strlen(bad[i].from)), bad[i].to, strlen(bad[i].to));
        file = fopen(path, "wb");
        fwrite(damaged, 1, size, file);
        fclose(file);
        ck_assert_int_eq(fr_control_vector_open(path, model, 0, 0, &vector), FR_INPUT);
        ck_assert_msg(strstr(fr_last_error(), infinite ? "not finite" : bad[i].says) != NULL, "%s", fr_last_error());
        ck_assert_ptr_null(vector);
    }
    unlink(path);
    fr_model_close(model);
    require(fr_model_open("tests/data/models/qwen3-odd", options, &model));
    ck_assert_int_eq(fr_control_vector_open(VECTOR, model, 0, 0, &vector), FR_INPUT);
    ck_assert_int_eq(fr_control_vector_open(VECTOR, model, 3, 2, &vector), FR_USAGE);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

FR_SUITE("control_vectors") {
    TCase *tests = tcase_create("control vectors");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, adds_rows_after_layers);
    tcase_add_test(tests, gives_one_answer);
    tcase_add_test(tests, the_command_takes_them);
    tcase_add_test(tests, files_that_do_not_fit_are_refused);
    suite_add_tcase(suite, tests);
}

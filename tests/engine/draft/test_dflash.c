/* Tests block drafters, which draft a whole block of tokens in one pass (DFlash, DFlash2, DSpark). They are opened from
 * folders and from llama.cpp's GGUF files. After a text, their scores and drafts must be those of a reference, for
 * whole and for shortened blocks. In each round the number of accepted drafts must also be the reference's. A session
 * must draft like a fresh one after it was saved and restored, after it was truncated or forked, after another
 * conversation, and after rounds without drafts.
 *
 * Most reference values come from the packages dflash 0.1.0 and speculators 0.9.0. Both run their own drafter classes
 * together with transformers' targets in float32. The values of Muse-Glimmer's own drafter come from transformers alone
 * (tests/data/dflash; tests/references/README.md). */
/* suite: quick */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "tests/support/brief.h"
#include "tests/support/changed_folder.h"
#include "tests/support/made_drafter.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { MOST = FR_STEP_MAX - 1, IDS = 48, VOCAB = 320 };

static const struct {
    const char *name, *drafter, *method, *scores; /* scores: name of the tensor with the reference's draft scores */
    bool shares;                                  /* all rows of a block share one window, which GGUF can't express */
} subjects[] = {{"qwen3", "drafter", "dflash", "logits", false},
                {"qwen3", "drafter.gguf", "dflash", "logits", false},
                {"llama-sliding", "drafter", "dflash", "logits", false},
                {"llama-sliding", "drafter.gguf", "dflash", "logits", false},
                {"spec-llama", "drafter", "dflash", "logits", true},      /* llama.cpp can't convert this drafter */
                {"v2-spec-qwen3", "drafter", "dflash2", "scores", false}, /* llama.cpp can't convert this drafter */
                {"v2-qwen3", "drafter", "dflash2", "scores", false},
                {"v2-qwen3", "drafter.gguf", "dflash2", "scores", false},
                {"v2-qwen3.5", "drafter", "dflash2", "scores", false},
                {"v2-qwen3.5", "drafter.gguf", "dflash2", "scores", false},
                {"dspark-qwen3", "drafter", "dspark", "biased", false},
                {"dspark-qwen3", "drafter.gguf", "dspark", "biased", false},
                {"dspark-dense-qwen3", "drafter", "dspark", "biased", false},
                {"dspark-dense-qwen3", "drafter.gguf", "dspark", "biased", false},
                {"odd-block16", "drafter", "dflash", "logits", false},
                {"odd-scaled", "drafter", "dflash", "logits", false},
                {"odd-spec-noncausal", "drafter", "dflash", "logits", true},
                {"odd-v2-16", "drafter", "dflash2", "scores", false},
                {"odd-dspark-fillin", "drafter", "dspark", "biased", true},
                {"odd-dspark-window", "drafter", "dspark", "biased", true},
                {"muse-glimmer", "drafter", "dflash", "logits", false},
                {"muse-glimmer", "drafter.gguf", "dflash", "logits", false}};
enum { DENSE = 12, SUBJECTS = sizeof subjects / sizeof *subjects }; /* DENSE: index of dspark-dense-qwen3's first row */

/* ---------------------------------------------------------------------------------------------------- the reference */

typedef struct bench {
    fr_reference r;
    fr_drafter *drafter;
    fr_options *options;
    const char *scores;
    size_t first;       /* the row of the reference's logits from which the first draft is taken */
    int32_t ids[VOCAB]; /* the target's id for each id of the draft vocabulary */
    size_t scored;      /* number of ids in the draft vocabulary */
} bench;

static void read_draft_vocabulary(bench *b) {
    char path[320];
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    b->scored = VOCAB;
    for (int32_t i = 0; i < VOCAB; i++) b->ids[i] = i;
    snprintf(path, sizeof path, "%s/drafter/model.safetensors", b->r.folder);
    require(fr_map_open(&map, path, true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    const fr_tensor *d2t = fr_tensors_find(&tensors, "d2t");
    for (size_t i = 0; d2t && i < d2t->shape[0]; i++) b->ids[i] += (int32_t)((const int64_t *)d2t->data)[i];
    if (d2t) b->scored = d2t->shape[0];
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
}

/* Opens the target and the drafter of a subject. `drafter` is the path of another drafter to use; NULL means the
 * subject's own. */
static void open_bench_with(bench *b, int which, const char *drafter) {
    char name[64], path[320];
    *b = (bench){.options = fr_options_new(), .scores = subjects[which].scores};
    require(fr_options_set(b->options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(b->options, FR_OPT_THREADS, 1));
    require(fr_options_set(b->options, FR_OPT_DRAFT_MAX, MOST));
    require(fr_options_set_text(b->options, FR_OPT_SPEC_TYPE, subjects[which].method));
    snprintf(name, sizeof name, "../dflash/%s", subjects[which].name);
    fr_reference_open(&b->r, name, b->options);
    snprintf(path, sizeof path, "%s/%s", b->r.folder, subjects[which].drafter);
    require(fr_drafter_open(drafter ? drafter : path, b->r.model, b->options, &b->drafter));
    ck_assert_int_eq(fr_model_fact(b->r.model, FR_FACT_VOCAB), VOCAB);
    b->first = (size_t)json_integer_value(json_object_get(json_object_get(b->r.info, "drafter"), "first_draft_row"));
    read_draft_vocabulary(b);
}

static void open_bench(bench *b, int which) {
    open_bench_with(b, which, NULL);
}

static void close_bench(bench *b) {
    fr_drafter_close(b->drafter);
    fr_reference_close(&b->r);
    fr_options_free(b->options);
}

static fr_session *open_session(const bench *b) {
    fr_session *session;
    require(fr_session_open(b->r.model, b->drafter, b->options, &session));
    return session;
}

static size_t integer(const json_t *item, const char *key) {
    const json_t *value = json_object_get(item, key);
    ck_assert_msg(json_is_integer(value), "%s", key);
    return (size_t)json_integer_value(value);
}

/* Returns a prompt of the reference, followed by the first n ids of the reference's greedy text. The caller frees the
 * result. */
static int32_t *text_of(const bench *b, size_t prompt, size_t n, size_t *count) {
    int32_t *ids = fr_json_ids_of(json_array_get(json_object_get(b->r.info, "prompts"), prompt), count);
    json_t *greedy;
    size_t index, length;
    json_array_foreach (json_object_get(b->r.info, "greedy"), index, greedy) {
        if (n == 0 || integer(greedy, "prompt") != prompt) continue;
        int32_t *tokens = fr_json_ids_of(json_object_get(greedy, "tokens"), &length);
        ck_assert_uint_ge(length, n);
        ids = realloc(ids, (*count + n) * sizeof *ids);
        memcpy(ids + *count, tokens, n * sizeof *ids);
        *count += n;
        n = 0;
        free(tokens);
    }
    ck_assert_uint_eq(n, 0);
    return ids;
}

/* Writes the reference's scores of all ids for each draft to `expected`, an array [drafts, VOCAB]. Ids outside the
 * draft vocabulary get -INFINITY. */
static void expect_scores(const bench *b, const char *name, size_t drafts, float *expected) {
    size_t count, width;
    const float *scores = fr_reference_floats(&b->r, &count, "%s.%s", name, b->scores);
    for (size_t i = 0; i < drafts * VOCAB; i++) expected[i] = -INFINITY;
    if (strcmp(b->scores, "scores") == 0) {
        char key[64];
        snprintf(key, sizeof key, "%s.candidates", name);
        const fr_tensor *candidates = fr_tensors_find(&b->r.tensors, key);
        ck_assert_msg(candidates && candidates->shape[0] == drafts, "%s", key);
        width = candidates->shape[1];
        ck_assert_uint_eq(count, drafts * width);
        for (size_t i = 0; i < count; i++) {
            int64_t id = candidates->type == FR_I64 ? ((const int64_t *)candidates->data)[i]
                                                    : (int64_t)((const int32_t *)candidates->data)[i];
            expected[i / width * VOCAB + (size_t)id] = scores[i];
        }
        return;
    }
    bool rows = strcmp(b->scores, "logits") == 0; /* the tensor "logits" also has rows from before the first draft */
    ck_assert_uint_eq(count, (drafts + (rows ? b->first : 0)) * b->scored);
    if (rows) scores += b->first * b->scored;
    for (size_t d = 0; d < drafts; d++)
        for (size_t i = 0; i < b->scored; i++) expected[d * VOCAB + (size_t)b->ids[i]] = scores[d * b->scored + i];
}

/* Checks that the same ids have finite scores in both arrays, and that two scores differ by at most 5e-5 of the largest
 * score. */
static void compare_scores(const float *got, const float *expected, size_t count, const char *name) {
    float scale = 0;
    for (size_t i = 0; i < count; i++)
        if (!isinf(expected[i])) scale = fmaxf(scale, fabsf(expected[i]));
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(isinf(expected[i]) ? got[i] == expected[i] : fabsf(got[i] - expected[i]) <= 5e-5F * scale,
                      "%s: draft %zu, id %zu has %g, not %g", name, i / VOCAB, i % VOCAB, (double)got[i],
                      (double)expected[i]);
}

static size_t best_of(const float *scores) {
    size_t best = 0;
    for (size_t i = 1; i < VOCAB; i++)
        if (scores[i] > scores[best]) best = i;
    return best;
}

static void compare_case(const bench *b, fr_session *session, const json_t *item) {
    static float got[MOST * VOCAB], expected[MOST * VOCAB];
    const char *name = json_string_value(json_object_get(item, "case"));
    size_t count, drafts;
    int32_t *ids = text_of(b, integer(item, "prompt"), integer(item, "n_generated"), &count);
    int32_t *tokens = fr_json_ids_of(json_object_get(item, "tokens"), &drafts);
    ck_assert_uint_eq(drafts + b->first, integer(item, "rows"));
    expect_scores(b, name, drafts, expected);
    fr_rows rows = {got, 0, MOST * VOCAB};
    require(fr_session_draft_logits(session, ids, count, drafts, fr_rows_collect, &rows));
    ck_assert_uint_eq(rows.count, drafts * VOCAB);
    compare_scores(got, expected, drafts * VOCAB, name);
    for (size_t d = 0; d < drafts; d++)
        ck_assert_msg(best_of(got + d * VOCAB) == (size_t)tokens[d], "%s: draft %zu is %zu, not %d", name, d,
                      best_of(got + d * VOCAB), tokens[d]);
    free(tokens);
    free(ids);
}

static size_t compare_cases(const bench *b, fr_session *session, const char *list) {
    json_t *item;
    size_t i;
    json_array_foreach (json_object_get(json_object_get(b->r.info, "draft"), list), i, item)
        compare_case(b, session, item);
    return i;
}

/* Compares drafts with the reference's drafts, for whole and shortened blocks. The prompts are run in chunks of several
 * sizes. */
START_TEST(drafts_are_the_references) {
    bench b;
    open_bench(&b, _i);
    for (int chunk = 1; chunk <= 64; chunk += 21) {
        require(fr_options_set(b.options, FR_OPT_CHUNK, chunk));
        fr_session *session = open_session(&b);
        ck_assert_uint_eq(compare_cases(&b, session, "cases"), 12);
        ck_assert_uint_eq(compare_cases(&b, session, "cut"), 6);
        fr_session_close(session);
    }
    close_bench(&b);
}
END_TEST

/* Reorders the rows of each head. Rotary embedding rotates pairs of values; afterwards the two values of a pair are
 * next to each other. */
static void interleave(uint8_t *bytes, size_t count, size_t head_dim, size_t size) {
    uint8_t *head = malloc(head_dim * size);
    for (size_t at = 0; at < count; at += head_dim * size) {
        memcpy(head, bytes + at, head_dim * size);
        for (size_t i = 0; i < head_dim; i++)
            memcpy(bytes + at + i * size, head + (i / 2 + i % 2 * (head_dim / 2)) * size, size);
    }
    free(head);
}

/* Writes a copy of a subject's drafter in which the two values that rotary embedding rotates as a pair are next to each
 * other. The drafters published for LFM2 have this order. */
static void write_interleaved(int which, const char *folder) {
    char path[320];
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    snprintf(path, sizeof path, "tests/data/dflash/%s/drafter/config.json", subjects[which].name);
    json_t *config = json_load_file(path, 0, NULL);
    size_t head_dim = (size_t)json_integer_value(json_object_get(config, "head_dim"));
    json_object_set_new(config, "rope_is_neox_style", json_false());
    snprintf(path, sizeof path, "%s/config.json", folder);
    ck_assert_int_eq(json_dump_file(config, path, 0), 0);
    json_decref(config);
    snprintf(path, sizeof path, "tests/data/dflash/%s/drafter/model.safetensors", subjects[which].name);
    require(fr_map_open(&map, path, true));
    uint8_t *bytes = malloc(map.size);
    memcpy(bytes, map.bytes, map.size);
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    for (size_t i = 0; i < tensors.count; i++) {
        const fr_tensor *tensor = &tensors.items[i];
        bool norm = strstr(tensor->name, "q_norm") || strstr(tensor->name, "k_norm");
        if (norm || strstr(tensor->name, "q_proj") || strstr(tensor->name, "k_proj"))
            interleave(bytes + ((const uint8_t *)tensor->data - map.bytes), tensor->bytes, head_dim,
                       norm ? 2 : 2 * tensor->shape[1]);
    }
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FILE *out = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, map.size, out), map.size);
    ck_assert_int_eq(fclose(out), 0);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
    free(bytes);
}

START_TEST(an_interleaved_drafter_scores_the_same) {
    static const char *const files[] = {"config.json", "model.safetensors"};
    bench b;
    char folder[64], path[128];
    snprintf(folder, sizeof folder, "%s/forerun-dflash-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_interleaved(_i, folder);
    open_bench_with(&b, _i, folder);
    fr_session *session = open_session(&b);
    ck_assert_uint_eq(compare_cases(&b, session, "cases"), 12);
    fr_session_close(session);
    close_bench(&b);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* `forerun quantize` writes a drafter as a GGUF file. This file must give the same scores as the drafter's folder.
 * Drafters whose rows share a window can't be written, because GGUF can't express a shared window. */
START_TEST(a_written_file_scores_the_same) {
    static const char *const types[] = {"f32", "bf16"};
    bench b;
    char target[128], folder[160], path[64];
    snprintf(target, sizeof target, "tests/data/dflash/%s", subjects[_i].name);
    snprintf(folder, sizeof folder, "%s/%s", target, subjects[_i].drafter);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const fr_lab_quantization how = {.type = types[t], .drafter = folder};
        snprintf(path, sizeof path, "%s/forerun-dflash-XXXXXX", P_tmpdir);
        FILE *out = fdopen(mkstemp(path), "wb");
        ck_assert_ptr_nonnull(out);
        fr_status status = fr_lab_quantize(target, &how, NULL, out);
        ck_assert_int_eq(fclose(out), 0);
        if (subjects[_i].shares) {
            ck_assert_int_eq(status, FR_UNBUILT);
            ck_assert_ptr_nonnull(strstr(fr_last_error(), "have no form in GGUF"));
        } else {
            require(status);
            open_bench_with(&b, _i, path);
            fr_session *session = open_session(&b);
            ck_assert_uint_eq(compare_cases(&b, session, "cases"), 12);
            ck_assert_uint_eq(compare_cases(&b, session, "cut"), 6);
            fr_session_close(session);
            close_bench(&b);
        }
        unlink(path);
    }
}
END_TEST

/* A drafter's matrices are not searched for NaN when it is opened, because that would read its weights a second time.
 * The first draft fails instead, with a line that names the drafter. */
START_TEST(a_damaged_drafter_fails_at_its_first_draft) {
    bench b;
    fr_changed_folder copy;
    int32_t ids[8];
    size_t count, got;
    char expected[160];
    fr_changed_folder_make(&copy, "tests/data/dflash/qwen3/drafter", "{}");
    fr_changed_folder_damage(&copy, "layers.0.mlp.up_proj.weight", 3);
    open_bench_with(&b, 0, copy.path);
    fr_session *session = open_session(&b);
    int32_t *prompt = fr_json_ids_of(json_array_get(json_object_get(b.r.info, "prompts"), 0), &count);
    require(fr_session_prompt(session, prompt, count));
    fr_status status = FR_OK;
    for (size_t i = 0; i < 2 && status == FR_OK; i++) status = fr_session_step(session, ids, 8, &got, NULL);
    ck_assert_int_eq(status, FR_NUMERIC);
    snprintf(expected, sizeof expected, "%s: the block drafter's logits are not finite at position", copy.path);
    ck_assert_msg(strstr(fr_last_error(), expected) != NULL, "%s", fr_last_error());
    free(prompt);
    fr_session_close(session);
    close_bench(&b);
    fr_changed_folder_remove(&copy);
}
END_TEST

/* DSpark's own code (deepspec/modeling/dspark/qwen3/modeling.py of github.com/deepseek-ai/DeepSpec) copies the target's
 * table into a plain one, so its rows have no factor, also of a target like Gemma 3, which multiplies its own rows by
 * one. vllm and llama.cpp's converter do the same: they know the drafter's input_embedding_scale alone. */
START_TEST(a_dense_dsparks_rows_have_no_factor_of_the_target) {
    static const char target[] = FR_TEST_MODELS "gemma3-odd";
    char folder[64], path[128];
    fr_model *model;
    fr_checkpoint files;
    snprintf(folder, sizeof folder, "%s/forerun-made-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    require(fr_model_open(target, NULL, &model));
    fr_made_drafter(model, folder);
    fr_model_close(model);
    snprintf(path, sizeof path, "%s/config.json", folder);
    json_t *config = json_load_file(path, 0, NULL);
    json_object_set_new(config, "layer_types", json_pack("[ss]", "full_attention", "full_attention"));
    json_object_set_new(config, "markov_rank", json_integer(0));
    json_object_set_new(config, "enable_confidence_head", json_false());
    if (_i) json_object_set_new(config, "input_embedding_scale", json_real(1.5));
    json_object_set_new(config, "architectures", json_pack("[s]", "Qwen3DSparkModel"));
    ck_assert_int_eq(json_dump_file(config, path, 0), 0);
    json_decref(config);
    snprintf(path, sizeof path, "%s/forerun-dflash-XXXXXX", P_tmpdir);
    FILE *out = fdopen(mkstemp(path), "wb");
    require(fr_lab_quantize(target, &(fr_lab_quantization){.type = "f32", .drafter = folder}, NULL, out));
    ck_assert_int_eq(fclose(out), 0);
    require(fr_checkpoint_open(&files, path, true));
    const fr_gguf_value *scale = fr_gguf_find(files.gguf, "dflash.embedding_scale");
    ck_assert_int_eq(scale != NULL, _i);
    if (scale) ck_assert_mem_eq(scale->data, &(float){1.5F}, sizeof(float));
    fr_checkpoint_close(&files);
    unlink(path);
    fr_made_drafter_remove(folder);
}
END_TEST

/* DSpark's confidence head computes a probability for each draft. A block must end exactly before the first draft whose
 * probability is below FR_OPT_DRAFT_P_MIN. */
START_TEST(confidence_ends_blocks) {
    static const double limits[] = {0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 0.9};
    size_t cut = 0, i, drafts, got;
    bench b;
    json_t *item;
    open_bench(&b, _i);
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        require(fr_options_set_number(b.options, FR_OPT_DRAFT_P_MIN, limits[l]));
        json_array_foreach (json_object_get(json_object_get(b.r.info, "draft"), "cases"), i, item) {
            const char *name = json_string_value(json_object_get(item, "case"));
            const float *chances = fr_reference_floats(&b.r, &drafts, "%s.confidence", name);
            size_t count, wanted = 0;
            int32_t said[FR_STEP_MAX], *ids;
            while (wanted < drafts && (double)chances[wanted] >= limits[l]) wanted++;
            if (wanted < drafts && fabs((double)chances[wanted] - limits[l]) < 1e-4) continue;
            ids = text_of(&b, integer(item, "prompt"), integer(item, "n_generated"), &count);
            fr_session *session = open_session(&b);
            require(fr_session_prompt(session, ids, count - 1));
            require(fr_session_step(session, said, 1, &got, NULL));
            ck_assert_int_eq(said[0], ids[count - 1]);
            require(fr_session_step(session, said, FR_STEP_MAX, &got, NULL));
            ck_assert_msg(fr_session_stat(session, FR_STAT_DRAFTED) == (double)wanted, "%s at %g: %g drafts, not %zu",
                          name, limits[l], fr_session_stat(session, FR_STAT_DRAFTED), wanted);
            cut += wanted > 0 && wanted < drafts;
            fr_session_close(session);
            free(ids);
        }
    }
    ck_assert_uint_gt(cut, 5);
    close_bench(&b);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- rounds */

static const json_t *loops_of(const bench *b) {
    const json_t *loops = json_object_get(json_object_get(b->r.info, "draft"), "loop");
    ck_assert_uint_eq(json_array_size(loops), 3);
    return loops;
}

/* Runs rounds after the prompt. Checks that each round makes and accepts the same drafts as the reference's round. In
 * the last round the number of accepted drafts is not compared, because the reference's text ends too early. If `asks`
 * is true, the test also requests the session's drafts before each round. */
static void follow_rounds(const bench *b, fr_session *session, const json_t *loop, bool asks) {
    const json_t *rounds = json_object_get(loop, "rounds");
    int32_t said[IDS + 2 * FR_STEP_MAX], drafts[MOST];
    size_t count, length, got, accepted, at = 0, r, proposed;
    json_t *round;
    int32_t *text = text_of(b, integer(loop, "prompt"), IDS, &count);
    require(fr_session_step(session, said, FR_STEP_MAX, &at, &accepted));
    ck_assert_uint_eq(at, 1);
    json_array_foreach (rounds, r, round) {
        int32_t *wanted = fr_json_ids_of(json_object_get(round, "drafted"), &length);
        size_t stood = integer(round, "accepted");
        ck_assert_uint_eq(at, integer(round, "n_generated"));
        if (asks) {
            require(fr_draft_now(session, length, drafts, &proposed, NULL));
            ck_assert_uint_eq(proposed, length);
            ck_assert_msg(memcmp(drafts, wanted, length * sizeof *drafts) == 0, "round %zu: other drafts", r);
        }
        require(fr_session_step(session, said + at, FR_STEP_MAX, &got, &accepted));
        ck_assert_msg(r + 1 == json_array_size(rounds) ? accepted >= stood : accepted == stood,
                      "round %zu: %zu drafts stood, not %zu", r, accepted, stood);
        ck_assert_uint_eq(got, accepted + 1);
        at += got;
        free(wanted);
    }
    ck_assert_uint_ge(at, IDS);
    ck_assert_mem_eq(said, text + count - IDS, IDS * sizeof *said);
    ck_assert_double_eq(fr_session_stat(session, FR_STAT_TARGET_CALLS), (double)r);
    free(text);
}

/* Follows the reference's rounds in three sessions: a fresh one; one that is asked for its drafts before each round;
 * and one whose prompt was truncated to its half and then completed again. */
START_TEST(accepted_lengths_are_the_references) {
    bench b;
    json_t *loop;
    size_t i, count;
    open_bench(&b, _i);
    json_array_foreach (loops_of(&b), i, loop) {
        int32_t *prompt = text_of(&b, integer(loop, "prompt"), 0, &count);
        for (int way = 0; way < 3; way++) {
            fr_session *session = open_session(&b);
            require(fr_session_prompt(session, prompt, count));
            if (way == 2) {
                require(fr_session_truncate(session, count / 2));
                require(fr_session_prompt(session, prompt + count / 2, count - count / 2));
            }
            follow_rounds(&b, session, loop, way == 1);
            fr_session_close(session);
        }
        free(prompt);
    }
    close_bench(&b);
}
END_TEST

/* Runs some rounds without drafts, and then one round of the reference with drafts. In this last round as many drafts
 * must be accepted as in the reference. */
START_TEST(rounds_without_drafts_change_no_later_draft) {
    bench b;
    json_t *loop, *round;
    size_t i, r, got, accepted;
    open_bench(&b, _i);
    fr_session *session = open_session(&b);
    json_array_foreach (loops_of(&b), i, loop) {
        const json_t *rounds = json_object_get(loop, "rounds");
        size_t count;
        int32_t *prompt = text_of(&b, integer(loop, "prompt"), 0, &count), ids[FR_STEP_MAX];
        json_array_foreach (rounds, r, round) {
            if (r + 1 == json_array_size(rounds)) break;
            fr_session_reset(session);
            require(fr_session_prompt(session, prompt, count));
            for (size_t made = 0; made < integer(round, "n_generated"); made += got)
                require(fr_session_step(session, ids, 1, &got, &accepted));
            require(fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted));
            ck_assert_msg(accepted == integer(round, "accepted"), "round %zu: %zu stood", r, accepted);
        }
        ck_assert_uint_gt(r, 3);
        free(prompt);
    }
    fr_session_close(session);
    close_bench(&b);
}
END_TEST

/* --------------------------------------------------------------------------------------------------- conversations */

/* Runs rounds until the session has generated `count` more ids. Returns the new length of its text. */
static size_t say(fr_session *session, int32_t *ids, size_t length, size_t count) {
    for (size_t end = length + count, got, accepted; length < end; length += got)
        require(fr_session_step(session, ids + length, end - length, &got, &accepted));
    return length;
}

/* Checks that the session's next drafts have the same bits as the drafts of a fresh session whose prompt is the whole
 * text. */
static void check_as_fresh(const bench *b, fr_session *session, const int32_t *ids, size_t count) {
    static float scores[2][4 * VOCAB];
    int32_t drafts[2][FR_STEP_MAX];
    size_t proposed[2], made, accepted;
    fr_session *fresh = open_session(b);
    require(fr_session_prompt(fresh, ids, count - 1));
    require(fr_session_step(fresh, drafts[0], 1, &made, &accepted));
    ck_assert_int_eq(drafts[0][0], ids[count - 1]);
    require(fr_draft_now(fresh, 4, drafts[0], &proposed[0], scores[0]));
    require(fr_draft_now(session, 4, drafts[1], &proposed[1], scores[1]));
    ck_assert_uint_eq(proposed[0], 4);
    ck_assert_uint_eq(proposed[1], 4);
    ck_assert_mem_eq(drafts[0], drafts[1], 4 * sizeof **drafts);
    ck_assert_mem_eq(scores[0], scores[1], sizeof *scores);
    fr_session_close(fresh);
}

/* Runs another conversation in the session, longer than the conversation that the test restores afterwards. */
static void digress(fr_session *session) {
    int32_t ids[256];
    for (size_t i = 0; i < 170; i++) ids[i] = (int32_t)((7 * i * i + i) % 300);
    require(fr_session_set_prompt(session, ids, 170));
    say(session, ids, 170, 9);
}

static void fill(int32_t *ids, size_t from, size_t to, size_t step) {
    for (size_t i = from; i < to; i++) ids[i] = (int32_t)((i * i * 31 + step * i + 2) % 300);
}

/* Runs one conversation with prompts, replies, another prompt with the same beginning, a truncation and a fork. The
 * conversation is also saved, and restored after another conversation has run. All of this runs once in a session
 * without an engine, then several times in an engine, where later runs find the cache pages of earlier runs. */
START_TEST(conversations_draft_as_fresh_sessions) {
    bench b;
    fr_engine *engine;
    open_bench(&b, _i);
    require(fr_options_set(b.options, FR_OPT_CHUNK, 24));
    require(fr_options_set(b.options, FR_OPT_CONTEXT, 256));
    require(fr_engine_open(b.r.model, b.drafter, b.options, 3, &engine));
    for (size_t time = 0; time < 3; time++) {
        int32_t ids[256];
        fr_session *session, *fork;
        void *bytes;
        size_t size;
        if (time)
            require(fr_engine_session(engine, b.options, &session));
        else
            session = open_session(&b);
        fill(ids, 0, 90, 7);
        require(fr_session_set_prompt(session, ids, 90));
        size_t length = say(session, ids, 90, 20);
        check_as_fresh(&b, session, ids, length);
        fill(ids, 100, 140, 3);
        require(fr_session_set_prompt(session, ids, 140));
        length = say(session, ids, 140, 9);
        check_as_fresh(&b, session, ids, length);
        require(fr_session_truncate(session, 130));
        length = say(session, ids, 130, 12);
        check_as_fresh(&b, session, ids, length);
        require(fr_session_save_bytes(session, &bytes, &size));
        if (time) {
            ck_assert(time == 1 || fr_session_stat(session, FR_STAT_REUSED_TOKENS) > 60);
            require(fr_session_fork(session, NULL, &fork));
            length = say(fork, ids, length, 1);
            check_as_fresh(&b, fork, ids, length);
            fr_session_close(fork);
        }
        digress(session);
        require(fr_session_restore_bytes(session, bytes, size));
        length = say(session, ids, time ? length - 1 : length, 7);
        check_as_fresh(&b, session, ids, length);
        fr_free(bytes);
        fr_session_close(session);
    }
    fr_engine_close(engine);
    close_bench(&b);
}
END_TEST

/* A session is saved in the middle of its text. The saved state includes the drafter's own keys and values. Another
 * session that restores this state must continue like a session whose prompt is the whole text. */
START_TEST(a_restored_session_drafts_as_before) {
    enum { HALF = IDS / 2 };
    bench b;
    json_t *loop;
    size_t i;
    open_bench(&b, _i);
    json_array_foreach (loops_of(&b), i, loop) {
        size_t count, size, rounds[2];
        int32_t *ids = text_of(&b, integer(loop, "prompt"), HALF, &count), got[2][IDS];
        fr_session *sessions[2] = {open_session(&b), open_session(&b)};
        const uint8_t *lengths[2];
        void *bytes;
        require(fr_session_prompt(sessions[0], ids, count - HALF));
        say(sessions[0], got[0], 0, HALF);
        ck_assert_mem_eq(got[0], ids + count - HALF, HALF * sizeof *ids);
        require(fr_session_save_bytes(sessions[0], &bytes, &size));
        require(fr_session_restore_bytes(sessions[1], bytes, size));
        fr_session_reset(sessions[0]);
        require(fr_session_prompt(sessions[0], ids, count));
        for (size_t s = 0; s < 2; s++) {
            say(sessions[s], got[s], 0, HALF);
            rounds[s] = fr_session_accepted_lengths(sessions[s], &lengths[s]);
        }
        ck_assert_mem_eq(got[0], got[1], HALF * sizeof **got);
        ck_assert_uint_eq(rounds[0], rounds[1]);
        ck_assert_mem_eq(lengths[0], lengths[1], rounds[1]);
        for (size_t s = 0; s < 2; s++) fr_session_close(sessions[s]);
        fr_free(bytes);
        free(ids);
    }
    close_bench(&b);
}
END_TEST

FR_SUITE("dflash") {
    TCase *tests = tcase_create("dflash");
    tcase_set_timeout(tests, 120);
    fr_test_add_loop(tests, drafts_are_the_references, SUBJECTS, 4);
    tcase_add_loop_test(tests, an_interleaved_drafter_scores_the_same, DENSE, DENSE + 1);
    for (int i = 0; i < SUBJECTS; i++) {
        if (strcmp(subjects[i].drafter, "drafter") == 0)
            tcase_add_loop_test(tests, a_written_file_scores_the_same, i, i + 1);
        if (strcmp(subjects[i].method, "dspark") == 0) tcase_add_loop_test(tests, confidence_ends_blocks, i, i + 1);
    }
    tcase_add_test(tests, a_damaged_drafter_fails_at_its_first_draft);
    tcase_add_loop_test(tests, a_dense_dsparks_rows_have_no_factor_of_the_target, 0, 2);
    fr_test_add_loop(tests, accepted_lengths_are_the_references, SUBJECTS, 4);
    fr_test_add_loop(tests, rounds_without_drafts_change_no_later_draft, SUBJECTS, 4);
    fr_test_add_loop(tests, a_restored_session_drafts_as_before, SUBJECTS, 4);
    fr_test_add_loop(tests, conversations_draft_as_fresh_sessions, SUBJECTS, 4);
    suite_add_tcase(suite, tests);
}

/* Implements harness.h: files in memory, folders of links, and models whose files stay open. */
#include "kernels/dispatch.h"
#include "tests/fuzz/harness.h"

#include <sys/mman.h>
#include <unistd.h>

#define CONTEXT 64
#define STEPS   3
#define TOKENS  32 /* limit on the tokens of a picture */

size_t fuzz_inputs_read;

const fr_plan fuzz_plan = {.threads = 1, .cpu = {-1}, .nodes = 1};

/* ------------------------------------------------------------------------------------------------ files and folders */

fuzz_file fuzz_file_new(void) {
    fuzz_file file = {.fd = memfd_create("fuzz", 0)};
    if (file.fd < 0) die("no file in memory", "");
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    return file;
}

static void write_at(int fd, const uint8_t *bytes, size_t size, size_t at) {
    for (ssize_t done; size > 0; bytes += done, at += (size_t)done, size -= (size_t)done)
        if ((done = pwrite(fd, bytes, size, (off_t)at)) <= 0) die("can't write", "a file in memory");
}

void fuzz_file_write(const fuzz_file *file, const void *begin, size_t begin_size, const void *end, size_t end_size) {
    if (ftruncate(file->fd, (off_t)(begin_size + end_size)) != 0) die("can't size", "a file in memory");
    write_at(file->fd, begin, begin_size, 0);
    write_at(file->fd, end, end_size, begin_size);
}

fuzz_halves fuzz_divide(const uint8_t *bytes, size_t size, uint8_t divider) {
    const uint8_t *at = size ? memchr(bytes, divider, size) : NULL;
    size_t first = at ? (size_t)(at - bytes) : size;
    return (fuzz_halves){bytes, at ? at + 1 : NULL, first, at ? size - first - 1 : 0};
}

static char root[256];

static void remove_root(void) {
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0) fprintf(stderr, "can't remove %s\n", root);
}

const char *fuzz_folder(void) {
    static char names[16][sizeof root + 8];
    static size_t count;
    const char *temporary = getenv("TMPDIR");
    if (!*root) {
        snprintf(root, sizeof root, "%s/forerun-fuzz-XXXXXX", temporary ? temporary : "/tmp");
        if (!mkdtemp(root)) die("can't make", root);
        atexit(remove_root);
    }
    if (count == sizeof names / sizeof *names) die("too many folders in", root);
    char *name = names[count];
    snprintf(name, sizeof names[0], "%s/%zu", root, count++);
    if (mkdir(name, 0700) != 0) die("can't make", name);
    return name;
}

void fuzz_link(const char *folder, const char *name, const char *path) {
    char link[512], *absolute = strncmp(path, "/proc/", 6) == 0 ? strdup(path) : realpath(path, NULL);
    snprintf(link, sizeof link, "%s/%s", folder, name);
    if (!absolute || symlink(absolute, link) != 0) die("can't link", path);
    free(absolute);
}

void fuzz_hush(bool hushed) {
    static FILE *loud, *silent;
    if (!silent) {
        loud = stderr;
        silent = fopen("/dev/null", "w");
    }
    stderr = hushed && silent ? silent : loud;
}

/* ----------------------------------------------------------------------------------------------------------- models */

const fr_kernels *fuzz_kernels(void) {
    static const fr_kernels *kernels;
    if (!kernels && fr_kernels_select(NULL, &kernels) != FR_OK) die(fr_last_error(), "");
    return kernels;
}

const fr_options *fuzz_options(void) {
    static fr_options *some;
    if (some) return some;
    some = fr_options_new();
    if (!some || fr_options_set(some, FR_OPT_CONTEXT, CONTEXT) != FR_OK ||
        fr_options_set(some, FR_OPT_DRAFT_MAX, 3) != FR_OK || fr_options_set(some, FR_OPT_IGNORE_EOS, 1) != FR_OK)
        die("no options", "");
    return some;
}

void fuzz_open_files(fr_checkpoint *files, const char *path) {
    if (fr_checkpoint_open(files, path, true) != FR_OK) die(fr_last_error(), "");
}

void fuzz_data_read(fuzz_data *data) {
    fr_checkpoint files;
    fuzz_open_files(&files, data->path);
    data->size = files.files[0].size - files.gguf->data_begin;
    data->bytes = malloc(data->size);
    if (!data->bytes) die("no memory for", data->path);
    memcpy(data->bytes, files.files[0].bytes + files.gguf->data_begin, data->size);
    fr_checkpoint_close(&files);
}

const fuzz_data *fuzz_data_find(const fuzz_data *data, const uint8_t *bytes, size_t size) {
    while (*data->mark && !memmem(bytes, size, data->mark, strlen(data->mark))) data++;
    return data;
}

void fuzz_model_close(fr_model *model) {
    if (!model) return;
    model->files = (fr_checkpoint){0}; /* the caller keeps the files */
    fr_model_unload(model);
}

fr_model *fuzz_model_bind(const fr_checkpoint *files) {
    fr_model *model = calloc(1, sizeof *model);
    if (!model) die("no memory for", "a model");
    model->files = *files;
    model->kernels = fuzz_kernels();
    model->plan = fuzz_plan;
    if (!refused(fr_model_bind_files(model, ""))) return model;
    fuzz_model_close(model);
    return NULL;
}

fr_model *fuzz_model_open(const fr_checkpoint *files) {
    fr_model *model = fuzz_model_bind(files);
    if (!model || !refused(fr_weights_load(&model->weights, &fuzz_plan, fuzz_options()))) return model;
    fuzz_model_close(model);
    return NULL;
}

fr_drafter *fuzz_drafter_open(const char *path, const fr_model *target) {
    fr_drafter *drafter;
    if (refused(fr_drafter_bind(path, target, fuzz_options(), &drafter))) return NULL;
    if (!refused(fr_weights_load(&drafter->weights, &fuzz_plan, fuzz_options()))) return drafter;
    fr_drafter_unload(drafter);
    return NULL;
}

static void take_steps(fr_session *session, size_t vocab) {
    static const int32_t prompt[] = {2, 9, 40, 7, 100};
    int32_t ids[FR_STEP_MAX];
    size_t count = sizeof prompt / sizeof *prompt, accepted;
    for (size_t i = 0; i < count; i++) ids[i] = (int32_t)((size_t)prompt[i] % vocab);
    if (refused(fr_session_prompt(session, ids, count))) return;
    for (int step = 0; step < STEPS && count; step++)
        if (refused(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted))) return;
}

void fuzz_run(const fr_model *model, const fr_drafter *drafter) {
    fr_session *session;
    fr_drafter *own = NULL;
    if (!drafter && model->mtp_layers) refused(fr_drafter_bind(NULL, model, fuzz_options(), &own));
    if (!refused(fr_session_open(model, drafter ? drafter : own, fuzz_options(), &session))) {
        take_steps(session, model->trunk.spec.vocab);
        fr_session_close(session);
    }
    fr_drafter_unload(own);
}

/* ------------------------------------------------------------------------------------------------------- embeddings */

static void run_text(fr_embedder *e, fr_embedder_text *text, bool pair) {
    size_t width = e->recipe.width;
    float score, *row = malloc((width + 1) * sizeof *row);
    if (!row) die("no memory for", "a row");
    if (pair)
        refused(fr_embedder_score(e, text, 1, false, &score));
    else
        for (int normalize = -1; normalize <= 1; normalize++) {
            refused(fr_embedder_run(e, text, 1, 0, normalize, row));
            refused(fr_embedder_run(e, text, 1, (width + 1) / 2, normalize, row));
        }
    free(row);
    fr_embedder_text_free(text);
}

bool fuzz_embed(const fr_model *model) {
    static const char words[] = "The [SEP] <mask> house \xc3\x84\xff by the sea";
    static const int32_t ids[] = {1, 0, 2, 5, 3};
    const fr_text text = {words, sizeof words - 1};
    fr_embedder *e;
    fr_embedder_text encoded;
    if (refused(fr_embedder_create(model, NULL, fuzz_options(), FR_POOLING_NONE, &e))) return false;
    if (!refused(fr_embedder_ids_of(e, ids, sizeof ids / sizeof *ids, &encoded))) run_text(e, &encoded, false);
    for (size_t i = 0; i < 2; i++) {
        const char *prompt =
            json_string_value(json_object_get(e->recipe.prompts, i ? "query" : e->recipe.default_prompt));
        if (!refused(fr_embedder_text_of(e, prompt, text, &encoded))) run_text(e, &encoded, false);
    }
    if (fr_embedder_can_score(e) && !refused(fr_embedder_pair_of(e, NULL, text, text, &encoded)))
        run_text(e, &encoded, true);
    fr_embedder_destroy(e);
    if (!refused(fr_embedder_create(model, NULL, fuzz_options(), FR_POOLING_CLS, &e))) {
        if (!refused(fr_embedder_ids_of(e, ids, sizeof ids / sizeof *ids, &encoded))) run_text(e, &encoded, false);
        fr_embedder_destroy(e);
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------- texts and pictures */

static void use_ids(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count) {
    char *text;
    const char *piece;
    size_t length;
    fr_decoder *decoder;
    if (!refused(fr_detokenize(tokenizer, ids, count, &text, &length))) fr_free(text);
    if (refused(fr_decoder_new(tokenizer, false, &decoder))) return;
    for (size_t i = 0; i < count; i++)
        if (refused(fr_decoder_feed(decoder, ids[i], &piece, &length))) break;
    refused(fr_decoder_finish(decoder, &piece, &length));
    fr_decoder_free(decoder);
}

void fuzz_use_tokenizer(const fr_tokenizer *tokenizer) {
    static const char *const texts[] = {"", "Text, <bos> 12  it's\n\n\t\xc3\x84\xff",
                                        "\xe2\x96\x81<0x41>e\xcc\x81 \xf0\x9f\x98\x80"};
    int32_t *ids;
    size_t count;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (refused(fr_tokenize(tokenizer, texts[i], strlen(texts[i]), true, true, &ids, &count))) continue;
        use_ids(tokenizer, ids, count);
        fr_free(ids);
    }
}

void fuzz_tower_open(fuzz_tower *tower, const fr_checkpoint *files) {
    *tower = (fuzz_tower){0};
    if (refused(fr_weights_open(&tower->weights, files)) ||
        refused(fr_vision_open(&tower->weights, fuzz_kernels(), 0, &tower->vision)))
        tower->vision = NULL;
}

void fuzz_tower_close(fuzz_tower *tower) {
    fr_vision_close(tower->vision);
    fr_weights_close(&tower->weights);
}

void fuzz_show(const fuzz_tower *tower, const fr_image *image) {
    static fr_pool *pool;
    fr_image_grid grid;
    fr_vision_rows rows;
    if (!pool && fr_pool_open(&fuzz_plan, &pool) != FR_OK) die(fr_last_error(), "");
    if (refused(fr_vision_grid(tower->vision, image->width, image->height, &grid))) return;
    if (grid.rows * grid.columns > TOKENS || refused(fr_vision_run(tower->vision, pool, 1, image, &rows))) return;
    fr_vision_rows_close(&rows);
}

/* Tests that `forerun verify` prints the answers stored in tests/data/answers, on every machine and with every
 * instruction set.
 *
 * The first line of that file is the version of the numerics to which the hashes belong. Each further line has the name
 * of a case and four hashes. They are hashes of the logits, of the draft logits (- if there is no drafter), of the
 * greedy ids and of the sampled ids. The first cases are the fixtures and the demo model, each with its drafter. There
 * is also a case for each type that weights may have: a float type has a converted fixture, and a block type has a
 * model with random weights. The last cases are the types of cached keys and values.
 *
 * Every case runs with the best instruction set. Each other instruction set runs only one of FEW cases, and different
 * instruction sets run different cases. Under an emulator each instruction set runs half as many cases, and only the
 * logits of each case are compared. With FULL in the environment every instruction set runs every case completely.
 *
 * `test_answers --write` writes the file (make answers). Whoever changes the numerics must also change
 * FR_NUMERICS_VERSION. */
/* suite: hosts neon no-valgrind */
#include <check.h>
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tests/support/command.h"
#include "tests/support/noise_model.h"
#include "tests/support/parts.h"
#include "tests/support/reference.h"
#include "tests/support/suite.h"

#define STORED "tests/data/answers"
#define SMALL  FR_TEST_MODELS "gemma4-e"

enum { CASES_MAX = 140, FEW = 24 };

typedef struct subject {
    char name[48], arguments[320];
    /* the test first makes a model with weights of this type; FR_DTYPE_COUNT: the model exists already */
    fr_dtype type;
} subject;

static subject subjects[CASES_MAX];
static size_t subject_count;
static char plain[64], made[64];

static subject *add(fr_dtype type) {
    if (subject_count == CASES_MAX) abort();
    subjects[subject_count].type = type;
    return &subjects[subject_count++];
}

static void add_fixture(const char *name) {
    subject *s = add(FR_DTYPE_COUNT);
    char folder[128], assistant[160];
    snprintf(folder, sizeof folder, FR_TEST_MODELS "%s", name);
    snprintf(assistant, sizeof assistant, "-md %s/assistant", folder);
    snprintf(s->name, sizeof s->name, "%s", strrchr(folder, '/') + 1);
    bool has_one = access(assistant + strlen("-md "), R_OK) == 0;
    snprintf(s->arguments, sizeof s->arguments, "-m %s %s", folder, has_one ? assistant : "");
}

static void add_fixtures(void) {
    for (size_t i = 0; fr_reference_name(i); i++) add_fixture(fr_reference_name(i));
    for (size_t i = 0; fr_reference_alone(i); i++) add_fixture(fr_reference_alone(i));
}

/* Adds one fixture of each model family that has no model with a drafter in the lists above. */
static void add_families(void) {
    static const char *const names[] = {
        "cohere2-window",   "deepseek-v2-lite",  "ernie45-bias",    "ernie4.5-moe-odd",   "exaone4-window",
        "gemma2-usual",     "gemma3-odd",        "glm4-dense",      "gpt-oss-odd",        "granite-odd",
        "granite4-micro",   "hunyuan-odd",       "hunyuan-moe-odd", "granite-moe-shared", "kimi-k2",
        "lfm2-long",        "mimo-odd",          "minimax-m2-odd",  "ministral3-odd",     "mistral-nemo",
        "mixtral-odd",      "olmo2-bias",        "olmo3-yarn",      "olmoe-odd",          "phi3-window",
        "phi4-longrope",    "qwen2-tied",        "qwen2-moe-odd",   "qwen3-odd",          "seed-oss-odd",
        "smollm3-odd",      "stablelm-parallel", "apertus-odd",     "cohere2-moe-odd",    "exaone-moe-odd",
        "falcon-h1-odd",    "granite-swa-odd",   "kimi-linear-odd", "ling3-saved",        "mamba2-odd",
        "minicpm3-odd",     "nemotron-3-odd",    "phimoe-odd",      "youtu-odd",          "bloom-odd",
        "mpt-odd",          "falcon-rw",         "llama4-odd",      "llama4-scout",       "mellum-odd",
        "qwen2-moe-window", "cohere-heads",      "stablelm-heads",  "sarvam-odd",         "sarvam-mla-odd",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) add_fixture(names[i]);
}

static void add_types(void) {
    for (int type = 0; type < FR_KERNEL_TYPES; type++) {
        subject *s = add((fr_dtype)type);
        snprintf(s->name, sizeof s->name, "type-%s", fr_dtype_name(s->type));
        snprintf(s->arguments, sizeof s->arguments, "-m %s", made);
    }
}

static void add_caches(void) {
    static const char *const types[] = {"f32", "f16", "bf16", "q8_0", "q4_0"};
    enum { COUNT = sizeof types / sizeof *types };
    for (size_t i = 0; i < 2 * COUNT; i++) {
        const char *k = types[i % COUNT], *v = types[(i + i / COUNT) % COUNT];
        subject *s = add(FR_DTYPE_COUNT);
        snprintf(s->name, sizeof s->name, "cache-%s-%s", k, v);
        snprintf(s->arguments, sizeof s->arguments, "-m tests/data/glm-ocr -ctk %s -ctv %s", k, v);
    }
}

static void list_subjects(void) {
    snprintf(plain, sizeof plain, "/tmp/forerun-answers-%d.gguf", (int)getpid());
    snprintf(made, sizeof made, "/tmp/forerun-answers-%d-made.gguf", (int)getpid());
    add_fixtures();
    subject *demo = add(FR_DTYPE_COUNT);
    *demo = (subject){.name = "demo", .arguments = DEMO DEMO_DRAFTER, .type = FR_DTYPE_COUNT};
    add_types();
    add_caches();
    add_families();
}

static void quantize(const char *type, const char *to) {
    const fr_lab_quantization how = {.type = type, .pure = true};
    FILE *out = fopen(to, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_msg(fr_lab_quantize(SMALL, &how, NULL, out) == FR_OK, "%s", fr_last_error());
    ck_assert_int_eq(fclose(out), 0);
}

static void make_model(fr_dtype type) {
    if (type == FR_DTYPE_COUNT) return;
    if (type < FR_FLOAT_TYPES) {
        char word[8] = "";
        for (size_t i = 0; fr_dtype_name(type)[i]; i++) word[i] = (char)tolower((unsigned char)fr_dtype_name(type)[i]);
        quantize(word, made);
        return;
    }
    quantize("q8_0", plain);
    fr_noise_model(plain, type, made);
    unlink(plain);
}

/* Returns the hash that follows this word in verify's output. If no line begins with the word, returns "-". */
static const char *hash_of(const char *printed, const char *word) {
    static char hashes[4][17];
    static int next;
    char line[32];
    snprintf(line, sizeof line, "\n%-12s fnv1a64:", word);
    const char *at = strstr(printed, line);
    if (!at) return "-";
    char *hash = hashes[next++ % 4];
    snprintf(hash, sizeof hashes[0], "%s", at + strlen(line));
    return hash;
}

/* Runs the command. Makes the case's line from what the command prints. */
static void answer(const subject *s, const char *isa, char *line, size_t size) {
    char version[32];
    fr_command c = fr_command_ok("verify --quiet -t 1 %s %s%s", s->arguments, isa ? "--isa " : "", isa ? isa : "");
    snprintf(version, sizeof version, "numerics     %d\n", FR_NUMERICS_VERSION);
    ck_assert_int_eq(strncmp(c.out, version, strlen(version)), 0);
    snprintf(line, size, "%s %s %s %s %s", s->name, hash_of(c.out, "logits"), hash_of(c.out, "draft-logits"),
             hash_of(c.out, "greedy-ids"), hash_of(c.out, "sampled-ids"));
    fr_command_free(&c);
}

/* Makes the first part of the case's line, up to the hash of the logits. When the command has printed that hash, it is
 * killed, which saves the time for the other hashes. */
static void answer_logits(const subject *s, const char *isa, char *line, size_t size) {
    char words[512], printed[128] = "";
    int ends[2];
    FILE *nothing = fopen("/dev/null", "r+");
    ck_assert(nothing && pipe2(ends, O_CLOEXEC) == 0);
    snprintf(words, sizeof words, "verify --quiet -t 1 %s --isa %s", s->arguments, isa);
    pid_t process = fr_command_start(words, fileno(nothing), ends[1], fileno(nothing));
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    ck_assert_ptr_nonnull(fgets(printed, sizeof printed, out)); /* the version */
    *printed = '\n';
    ck_assert_ptr_nonnull(fgets(printed + 1, sizeof printed - 1, out));
    kill(process, SIGKILL);
    fr_command_wait(process);
    fclose(out);
    fclose(nothing);
    snprintf(line, size, "%s %s ", s->name, hash_of(printed, "logits"));
}

/* Finds the stored line that begins with this word. */
static void find_stored(const char *word, char *line, size_t size) {
    FILE *file = fopen(STORED, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, (int)size, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, word, strlen(word)) == 0 && line[strlen(word)] == ' ') break;
        *line = '\0';
    }
    fclose(file);
    ck_assert_msg(*line, "%s has no line %s: make answers", STORED, word);
}

START_TEST(the_file_is_of_this_version) {
    char stored[256], expected[32];
    find_stored("numerics", stored, sizeof stored);
    snprintf(expected, sizeof expected, "numerics %d", FR_NUMERICS_VERSION);
    ck_assert_str_eq(stored, expected);
}
END_TEST

static bool emulated(void) {
    return getenv("FORERUN_EMULATOR") && !fr_test_full();
}

/* Returns true if the instruction set with number `level` runs the case with number `index`. `best` is the number of
 * the best instruction set, which runs all cases. */
static bool runs_here(size_t index, size_t level, size_t best) {
    if (!fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, level))) return false;
    /* half as many cases as without an emulator, because an emulator is slow */
    if (emulated()) return (index + level + FEW) % (2 * FEW) == 0;
    return fr_test_full() || level == best || (index + level) % FEW == 0;
}

START_TEST(every_level_gives_the_stored_answer) {
    const subject *s = &subjects[_i];
    char stored[256], got[256];
    size_t best = 0;
    find_stored(s->name, stored, sizeof stored);
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++)
        if (fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) best = i;
    for (size_t i = 0, here = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        if (!runs_here((size_t)_i, i, best)) continue;
        if (here++ == 0) make_model(s->type);
        (emulated() ? answer_logits : answer)(s, fr_lab_word(FR_LAB_ISA, i), got, sizeof got);
        ck_assert_msg(strncmp(got, stored, emulated() ? strlen(got) : sizeof got) == 0, "--isa %s:\n%s, stored is\n%s",
                      fr_lab_word(FR_LAB_ISA, i), got, stored);
    }
    unlink(made);
}
END_TEST

#ifdef __x86_64__
/* AMX's kernels multiply runs of a block and add up the sums of the runs in six ways. Here there is one type for each
 * way, in this order: without minima; with minima that are added; with minima that are subtracted; with an integer
 * scale for each half of a run; with such scales and with minima; with a float scale for each half, where the sums of
 * the halves are added separately. */
static const fr_dtype tile_types[] = {FR_Q4_0, FR_Q5_1, FR_Q4_K, FR_Q6_K, FR_Q2_K, FR_NVFP4};

/* Runs a command that is linked with emulated tiles. So any machine with AVX-512 can test `--isa amx`. */
START_TEST(emulated_tiles_give_the_stored_answer) {
    char path[PATH_MAX] = "", stored[256], got[256];
    subject *s = subjects;
    if (!fr_lab_isa_here("avx512vnni")) {
        fr_test_skipped("the kernels of AMX need AVX-512 too");
        return;
    }
    while (s->type != tile_types[_i]) s++;
    ck_assert_int_gt(readlink("/proc/self/exe", path, sizeof path - sizeof "/forerun_tiles"), 0);
    snprintf(strrchr(path, '/'), sizeof "/forerun_tiles", "/forerun_tiles");
    ck_assert_int_eq(setenv("FORERUN", path, 1), 0);
    find_stored(s->name, stored, sizeof stored);
    make_model(s->type);
    answer(s, "amx", got, sizeof got);
    ck_assert_str_eq(got, stored);
    unlink(made);
}
END_TEST
#endif

START_TEST(write_answers) {
    FILE *out = fopen(STORED, "w");
    ck_assert_ptr_nonnull(out);
    fprintf(out, "numerics %d\n", FR_NUMERICS_VERSION);
    for (size_t i = 0; i < subject_count; i++) {
        char line[256];
        make_model(subjects[i].type);
        answer(&subjects[i], NULL, line, sizeof line);
        fprintf(out, "%s\n", line);
    }
    unlink(made);
    ck_assert_int_eq(fclose(out), 0);
}
END_TEST

static bool writes; /* --write was given, so the file is written instead of being compared */

static void add_cases(Suite *suite) {
    list_subjects();
    TCase *cases = tcase_create("answers");
    tcase_set_timeout(cases, 600);
    if (writes) {
        tcase_add_test(cases, write_answers);
    } else {
        tcase_add_test(cases, the_file_is_of_this_version);
        tcase_add_loop_test(cases, every_level_gives_the_stored_answer, 0, (int)subject_count);
    }
    suite_add_tcase(suite, cases);
#ifdef __x86_64__
    TCase *tiles = tcase_create("tiles");
    tcase_set_timeout(tiles, 600);
    if (!writes)
        tcase_add_loop_test(tiles, emulated_tiles_give_the_stored_answer, 0, sizeof tile_types / sizeof *tile_types);
    suite_add_tcase(suite, tiles);
#endif
}

int main(int count, char **arguments) {
    writes = count > 1 && strcmp(arguments[1], "--write") == 0;
    return fr_suite_run("answers", add_cases);
}

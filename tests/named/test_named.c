/* Tests models that are given by name: which file each name finds, and which files no name may find. The test makes
 * caches with the layouts of Hugging Face's programs (huggingface_hub 1.x), llama.cpp (0.5, and its older layout of
 * 2025), LM Studio and ollama (0.x). */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun.h"
#include "src/named/model_name.h"
#include "tests/support/made_root.h"
#include "tests/support/suite.h"

#define WHOLE           "tests/data/gguf/moe-odd.gguf"
#define TOWER           "tests/data/gguf/moe-odd-assistant.gguf"
#define COMMIT          "0123456789abcdef0123456789abcdef01234567"
#define OTHER           "fedcba9876543210fedcba9876543210fedcba98"
#define DIGEST          "00000000000000000000000000000000000000000000000000000000000000aa"
#define DIGEST_OF_TOWER "00000000000000000000000000000000000000000000000000000000000000bb"

/* The environment variables of a test. In a setting, %s is replaced by the test's root folder. HOME is also this
 * folder, so each cache is in its usual place. */
static char settings[8][128];
static const char *environment[9];

static void set(const char *setting) {
    size_t i = 0;
    while (environment[i]) i++;
    ck_assert_uint_lt(i, 8);
    snprintf(settings[i], sizeof settings[i], setting, fr_made_root);
    environment[i] = settings[i];
}

static void open_root(void) {
    fr_made_root_open();
    memset(environment, 0, sizeof environment);
    set("HOME=%s");
    set("OLLAMA_MODELS=%s/.ollama/models");
}

#define HUB ".cache/huggingface/hub/"

/* Puts a file of a repository into a cache. It consists of a blob, and of a link to the blob in the snapshot of the
 * branch main. */
static void put_in_hub(const char *hub, const char *repository, const char *file) {
    static int blobs;
    char path[400], target[400], up[64] = "";
    size_t length = 0;
    snprintf(path, sizeof path, "%smodels--%s/blobs/%08d", hub, repository, ++blobs);
    fr_made_root_take(path, WHOLE);
    for (const char *c = file; (c = strchr(c, '/')); c++)
        length += (size_t)snprintf(up + length, sizeof up - length, "../");
    snprintf(target, sizeof target, "%s../../blobs/%08d", up, blobs);
    snprintf(path, sizeof path, "%smodels--%s/snapshots/" COMMIT "/%s", hub, repository, file);
    fr_made_root_link(path, target);
    snprintf(path, sizeof path, "%smodels--%s/refs/main", hub, repository);
    fr_made_root_put(path, COMMIT);
}

/* Checks that the name finds the file `expected`, whose path is relative to the root folder. */
static void finds(const char *name, const char *expected) {
    char *path, whole[512];
    snprintf(whole, sizeof whole, "%s/%s", fr_made_root, expected);
    ck_assert_msg(fr_model_find(name, environment, &path) == FR_OK, "%s: %s", name, fr_last_error());
    ck_assert_str_eq(path, whole);
    fr_free(path);
}

static void finds_in(const char *name, const char *repository, const char *file) {
    char expected[400];
    snprintf(expected, sizeof expected, HUB "models--%s/snapshots/" COMMIT "%s%s", repository, *file ? "/" : "", file);
    finds(name, expected);
}

static void refused(const char *name, const char *line) {
    char *path = (char *)name;
    ck_assert_msg(fr_model_find(name, environment, &path) != FR_OK, "%s: %s", name, path);
    ck_assert_ptr_null(path);
    ck_assert_msg(strstr(fr_last_error(), line), "%s: \"%s\" has no \"%s\"", name, fr_last_error(), line);
    ck_assert_ptr_null(strchr(fr_last_error(), '\n'));
}

/* Checks that a text that is not a name is returned unchanged. */
static void is_path(const char *text) {
    char *path;
    ck_assert_msg(fr_model_find(text, environment, &path) == FR_OK, "%s: %s", text, fr_last_error());
    ck_assert_str_eq(path, text);
    fr_free(path);
}

/* ----------------------------------------------------------------------------------------------------- Hugging Face */

START_TEST(types_are_chosen_as_llama_cpp_does) {
    put_in_hub(HUB, "Org--A.B-GGUF", "a-IQ2_XS.gguf");
    put_in_hub(HUB, "Org--A.B-GGUF", "a-Q8_0.gguf");
    put_in_hub(HUB, "Org--A.B-GGUF", "mmproj-a-Q4_K_M.gguf");
    put_in_hub(HUB, "Org--A.B-GGUF", "README.md");
    /* Q4_K_M is preferred, but the folder has no such file yet */
    finds_in("Org/A.B-GGUF", "Org--A.B-GGUF", "a-Q8_0.gguf");
    put_in_hub(HUB, "Org--A.B-GGUF", "a-Q4_K_M.gguf");
    put_in_hub(HUB, "Org--A.B-GGUF", "BF16/a-BF16-00001-of-00002.gguf");
    put_in_hub(HUB, "Org--A.B-GGUF", "BF16/a-BF16-00002-of-00002.gguf");
    finds_in("Org/A.B-GGUF", "Org--A.B-GGUF", "a-Q4_K_M.gguf");
    finds_in("Org/A.B-GGUF:q8_0", "Org--A.B-GGUF", "a-Q8_0.gguf");
    finds_in("Org/A.B-GGUF:BF16", "Org--A.B-GGUF", "BF16/a-BF16-00001-of-00002.gguf");
    finds_in("Org/A.B-GGUF:mmproj-a-Q4_K_M.gguf", "Org--A.B-GGUF", "mmproj-a-Q4_K_M.gguf");
    finds_in("Org/A.B-GGUF:BF16/a-BF16-00002-of-00002.gguf", "Org--A.B-GGUF", "BF16/a-BF16-00002-of-00002.gguf");
    refused("Org/A.B-GGUF:Q5_K_M", "Org/A.B-GGUF:Q5_K_M: there are BF16/a-BF16-00001-of-00002.gguf, a-IQ2_XS.gguf, "
                                   "a-Q4_K_M.gguf, a-Q8_0.gguf; this would download it: hf download Org/A.B-GGUF "
                                   "--include '*Q5_K_M*'");
    refused("Org/A.B-GGUF:b.gguf", "hf download Org/A.B-GGUF b.gguf");
    put_in_hub(HUB, "Org--First", "z.gguf");
    put_in_hub(HUB, "Org--First", "b.gguf");
    finds_in("Org/First", "Org--First", "b.gguf");
}
END_TEST

START_TEST(a_published_repository_is_a_folder) {
    put_in_hub(HUB, "Qwen--Qwen3-0.6B", "config.json");
    put_in_hub(HUB, "Qwen--Qwen3-0.6B", "model.safetensors");
    put_in_hub(HUB, "Qwen--Qwen3-0.6B", "q8/x-Q8_0.gguf");
    finds_in("Qwen/Qwen3-0.6B", "Qwen--Qwen3-0.6B", "");
    finds_in("Qwen/Qwen3-0.6B:Q8_0", "Qwen--Qwen3-0.6B", "q8/x-Q8_0.gguf");
}
END_TEST

START_TEST(branches_lead_to_commits) {
    fr_made_root_take(HUB "models--o--m/snapshots/" COMMIT "/a.gguf", WHOLE);
    finds_in("o/m", "o--m", "a.gguf"); /* there is no branch, because the file was downloaded by its commit */
    fr_made_root_take(HUB "models--o--m/snapshots/" OTHER "/a.gguf", WHOLE);
    refused("o/m", "hf download o/m"); /* there are two commits, so the name is ambiguous */
    fr_made_root_put(HUB "models--o--m/refs/dev", OTHER);
    finds("o/m", HUB "models--o--m/snapshots/" OTHER "/a.gguf");
    fr_made_root_put(HUB "models--o--m/refs/main", COMMIT "\n");
    finds_in("o/m", "o--m", "a.gguf");
}
END_TEST

/* The file of a branch contains the name of a commit. The commit must be used only if a folder in snapshots/ has its
 * name. */
START_TEST(branches_lead_nowhere_else) {
    static const char *const hostile[] = {"../../../../secret", "/etc", "", "..", COMMIT "/../../..", "0123"};
    fr_made_root_take(HUB "models--o--m/snapshots/a.gguf", WHOLE);
    fr_made_root_take("secret/a.gguf", WHOLE);
    fr_made_root_put(HUB "models--o--m/refs/main", hostile[_i]);
    refused("o/m", "hf download o/m");
}
END_TEST

START_TEST(an_unfinished_repository) {
    fr_made_root_put(HUB "models--o--m/blobs/abcd.incomplete", "GGUF");
    refused("o/m", "models--o--m: its download is not finished");
    put_in_hub(HUB, "o--m", "a.gguf");
    finds_in("o/m", "o--m", "a.gguf");
}
END_TEST

/* If a repository has weights of a kind that forerun can't read, its name must find it. Opening then gives an error
 * that says what is missing. If a repository has no weights, it is not a model. */
START_TEST(weights_of_another_kind) {
    put_in_hub(HUB, "o--m", "config.json");
    put_in_hub(HUB, "o--m", "tokenizer.json");
    refused("o/m", "hf download o/m");
    put_in_hub(HUB, "o--m", "pytorch_model.bin");
    finds_in("o/m", "o--m", "");
    refused("o/m:Q8_0", "hf download o/m --include '*Q8_0*'");
    fr_made_root_put(HUB "models--o--m/blobs/abcd.incomplete", "");
    refused("o/m", "models--o--m: its download is not finished");
}
END_TEST

/* A download may be unfinished in the cache of one program while the model is complete in another program's cache. */
START_TEST(unfinished_here_and_whole_there) {
    fr_made_root_put(HUB "models--o--m/blobs/abcd.incomplete", "GGUF");
    fr_made_root_take(".lmstudio/models/o/m/m-Q4_K_M.gguf", WHOLE);
    finds("o/m", ".lmstudio/models/o/m/m-Q4_K_M.gguf");
}
END_TEST

/* Several variables can name the cache's folder. The variables are set here one after the other, and each has priority
 * over those that were set before. A tilde means the home folder. */
START_TEST(folders_by_the_environment) {
    put_in_hub("xdg/huggingface/hub/", "o--m", "xdg.gguf");
    put_in_hub("home/hub/", "o--m", "home.gguf");
    put_in_hub("old/", "o--m", "old.gguf");
    put_in_hub("new/", "o--m", "new.gguf");
    put_in_hub("llama/", "o--l", "llama.gguf");
    set("XDG_CACHE_HOME=%s/xdg");
    finds("o/m", "xdg/huggingface/hub/models--o--m/snapshots/" COMMIT "/xdg.gguf");
    set("HF_HOME=~/home");
    finds("o/m", "home/hub/models--o--m/snapshots/" COMMIT "/home.gguf");
    set("HUGGINGFACE_HUB_CACHE=%s/old");
    finds("o/m", "old/models--o--m/snapshots/" COMMIT "/old.gguf");
    set("HF_HUB_CACHE=%s/new");
    finds("o/m", "new/models--o--m/snapshots/" COMMIT "/new.gguf");
    set("LLAMA_CACHE=%s/llama"); /* in this folder, newer versions of llama.cpp use Hugging Face's layout */
    finds("o/l", "llama/models--o--l/snapshots/" COMMIT "/llama.gguf");
    finds("o/m", "new/models--o--m/snapshots/" COMMIT "/new.gguf");
}
END_TEST

/* ------------------------------------------------------------------------------------------ llama.cpp and LM Studio */

START_TEST(llama_cpps_own_cache) {
    fr_made_root_take(".cache/llama.cpp/Org_M-GGUF_m-Q4_K_M.gguf", WHOLE);
    fr_made_root_take(".cache/llama.cpp/Org_M-GGUF_sub_m-Q8_0.gguf", WHOLE);
    finds("Org/M-GGUF", ".cache/llama.cpp/Org_M-GGUF_m-Q4_K_M.gguf");
    finds("Org/M-GGUF:Q8_0", ".cache/llama.cpp/Org_M-GGUF_sub_m-Q8_0.gguf");
    finds("Org/M-GGUF:sub/m-Q8_0.gguf", ".cache/llama.cpp/Org_M-GGUF_sub_m-Q8_0.gguf");
    refused("Org/M", "hf download Org/M");
    fr_made_root_put(".cache/llama.cpp/manifest=Org=M-GGUF=latest.json",
                     "{\"ggufFile\": {\"rfilename\": \"sub/m-Q8_0.gguf\", \"size\": 1}}");
    finds("Org/M-GGUF", ".cache/llama.cpp/Org_M-GGUF_sub_m-Q8_0.gguf");
    fr_made_root_put(".cache/llama.cpp/manifest=Org=M-GGUF=latest.json",
                     "{\"ggufFile\": {\"rfilename\": \"/../../../etc/passwd\"}}");
    finds("Org/M-GGUF", ".cache/llama.cpp/Org_M-GGUF_m-Q4_K_M.gguf");
}
END_TEST

START_TEST(lm_studios_folder) {
    fr_made_root_take(".lmstudio/models/Org/M-GGUF/m-Q6_K.gguf", WHOLE);
    finds("Org/M-GGUF", ".lmstudio/models/Org/M-GGUF/m-Q6_K.gguf");
    finds("Org/M-GGUF:Q6_K", ".lmstudio/models/Org/M-GGUF/m-Q6_K.gguf");
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- ollama */

#define MANIFESTS ".ollama/models/manifests/registry.ollama.ai/library/"
#define LAYER(kind, digest, size) \
    "{\"mediaType\": \"application/vnd.ollama.image." kind "\", \"digest\": \"sha256:" digest "\", \"size\": " size "}"
#define MODEL_LAYER LAYER("model", DIGEST, "735680")

static void put_manifest(const char *path, const char *layers) {
    char text[4096];
    snprintf(text, sizeof text, "{\"schemaVersion\": 2, \"layers\": [%s]}", layers);
    fr_made_root_put(path, text);
}

START_TEST(ollamas_store) {
    fr_made_root_take(".ollama/models/blobs/sha256-" DIGEST, WHOLE);
    put_manifest(MANIFESTS "qwen2.5/0.5b", LAYER("template", DIGEST_OF_TOWER, "9") ", " MODEL_LAYER);
    put_manifest(MANIFESTS "qwen2.5/latest", MODEL_LAYER);
    put_manifest(".ollama/models/manifests/registry.ollama.ai/me/mine/7b-q4", MODEL_LAYER);
    put_manifest(".ollama/models/manifests/hf.co/Org/M-GGUF/Q4_K_M", MODEL_LAYER);
    finds("ollama:qwen2.5:0.5b", ".ollama/models/blobs/sha256-" DIGEST);
    finds("ollama:qwen2.5", ".ollama/models/blobs/sha256-" DIGEST);
    finds("ollama:me/mine:7b-q4", ".ollama/models/blobs/sha256-" DIGEST);
    finds("ollama:hf.co/Org/M-GGUF:Q4_K_M", ".ollama/models/blobs/sha256-" DIGEST);
    refused("ollama:qwen2.5:7b", "this would download it: ollama pull qwen2.5:7b");
    refused("ollama:gemma3", "ollama pull gemma3");
}
END_TEST

/* Wrong manifests. Each has its error line. */
static const struct {
    const char *layers, *line;
} manifests[] = {
    {"{\"mediaType\": \"application/vnd.ollama.image.model\", \"digest\": \"sha256:../../../../etc/passwd\"}",
     "a layer's digest is not sha256:"},
    {"{\"mediaType\": \"application/vnd.ollama.image.model\", \"digest\": \"sha256:0000\"}", "digest is not sha256:"},
    {"{\"mediaType\": \"application/vnd.ollama.image.model\", \"digest\": 7}", "digest is not sha256:"},
    {"7, null, [], {\"mediaType\": []}", "no layer of it is a model"},
    {LAYER("model", DIGEST, "735681"), "its download is not finished: 735680 of 735681 bytes are there"},
    {LAYER("model", DIGEST_OF_TOWER, "7"), "its download is not finished: it is not there"},
    {MODEL_LAYER ", " MODEL_LAYER, "a model of several files is not built yet"},
    {MODEL_LAYER ", " LAYER("adapter", DIGEST, "7"), "an adapter (LoRA) is not built yet"},
    {LAYER("tensor", DIGEST, "7"), "weights in layers of single tensors are not built yet"},
};

START_TEST(manifests_that_lie) {
    fr_made_root_take(".ollama/models/blobs/sha256-" DIGEST, WHOLE);
    put_manifest(MANIFESTS "m/latest", manifests[_i].layers);
    refused("ollama:m", manifests[_i].line);
}
END_TEST

START_TEST(manifests_that_are_none) {
    static const char *const texts[] = {"", "[]", "{", "{\"layers\": {}}", "{\"layers\": 1e9}"};
    fr_made_root_put(MANIFESTS "m/latest", texts[_i]);
    refused("ollama:m", "m/latest");
    char layers[4096] = "1";
    for (size_t i = 0; i < 100; i++) memcpy(layers + 1 + 3 * i, ", 1", 4);
    put_manifest(MANIFESTS "m/latest", layers);
    refused("ollama:m", "101 layers, and at most 64 are read");
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ names */

/* forerun downloads nothing. The error line gives the command with which the user can download the model. */
START_TEST(addresses_are_refused) {
    refused("https://huggingface.co/a/b", "give -m a/b once it is in a cache");
    refused("https://huggingface.co/a/b/blob/main/c.gguf", "hf download a/b c.gguf, then give -m a/b:c.gguf");
    refused("https://huggingface.co/a/../../c", "curl -LO https://huggingface.co/a/../../c");
    refused("HTTP://host/x.gguf", "curl -LO HTTP://host/x.gguf, then give -m FILE");
}
END_TEST

START_TEST(what_is_no_name) {
    static const char *const paths[] = {"",
                                        "model",
                                        "/a/b",
                                        "./a",
                                        "../a",
                                        "a/b/c",
                                        "a/../b",
                                        "..",
                                        "a/..",
                                        "../b",
                                        "a/b/",
                                        "/",
                                        "a//b",
                                        "-a/b",
                                        ".a/b",
                                        "a/b:",
                                        "a/b:/x",
                                        "a/b:../x",
                                        "a/b:x/../y",
                                        "a/b:x y",
                                        "a/b:$(x)",
                                        "a b/c",
                                        "a/b\n",
                                        "a--b/c",
                                        "a/b..c",
                                        "models/m.gguf",
                                        "ollama:",
                                        "ollama:..",
                                        "ollama:../x",
                                        "ollama:a/../b",
                                        "ollama:a:../b",
                                        "ollama:a:b/c",
                                        "ollama:a/b/c/d",
                                        "ollama:/etc/passwd",
                                        "\xc3\xa4/b"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) is_path(paths[i]);
    char text[600] = "a/";
    memset(text + 2, 'b', 590);
    is_path(text);
}
END_TEST

/* If a file or folder has this text as its path, it is used, even if the text is also a name. */
START_TEST(a_path_wins) {
    char folder[256];
    put_in_hub(HUB, "o--m", "a.gguf");
    finds_in("o/m", "o--m", "a.gguf");
    ck_assert_ptr_nonnull(getcwd(folder, sizeof folder));
    fr_made_root_put("o/m/config.json", "{}");
    ck_assert_int_eq(chdir(fr_made_root), 0);
    is_path("o/m");
    ck_assert_int_eq(chdir(folder), 0);
}
END_TEST

START_TEST(without_an_environment) {
    char *path;
    put_in_hub(HUB, "o--m", "a.gguf");
    ck_assert_int_eq(fr_model_find("o/m", NULL, &path), FR_INPUT);
    ck_assert_int_eq(fr_model_find(NULL, NULL, &path), FR_USAGE);
    ck_assert_int_eq(fr_model_find("o/m", NULL, NULL), FR_USAGE);
    ck_assert_int_eq(fr_model_list(NULL, NULL, NULL), FR_USAGE);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- listing */

typedef struct list {
    char text[4096];
    size_t most, count;
} list;

/* Receives one model of the list. Checks that its name finds the path that the list gives. */
static bool told(void *context, const fr_found *found) {
    list *l = context;
    char *path = NULL;
    size_t at = strlen(l->text);
    const char *problem = found->problem ? found->problem : "", *colon = strrchr(problem, ':');
    snprintf(l->text + at, sizeof l->text - at, "%s %s %llu%s%s%s\n", found->name, found->store,
             (unsigned long long)found->bytes, found->tower ? " tower" : "", *problem ? " " : "",
             colon ? colon + 2 : problem);
    fr_status status = fr_model_find(found->name, environment, &path);
    if (!found->problem) {
        ck_assert_msg(status == FR_OK, "%s: %s", found->name, fr_last_error());
        ck_assert_str_eq(path, found->path);
    }
    fr_free(path);
    return ++l->count != l->most;
}

START_TEST(all_are_listed) {
    list all = {.most = 0}, first = {.most = 1};
    put_in_hub(HUB, "Org--A", "config.json");
    put_in_hub(HUB, "Org--A", "model.safetensors");
    put_in_hub(HUB, "Org--B", "b-Q4_K_M-00001-of-00002.gguf");
    put_in_hub(HUB, "Org--B", "b-Q4_K_M-00002-of-00002.gguf");
    put_in_hub(HUB, "Org--B", "b-Q8_0.gguf");
    put_in_hub(HUB, "Org--B", "mmproj.gguf");
    put_in_hub(HUB, "Org--B", "x-Q8_0.gguf"); /* the name Q8_0 finds b-Q8_0.gguf instead of this file */
    fr_made_root_put(HUB "models--Org--C/blobs/1.incomplete", "");
    put_in_hub(HUB, "Org--P", "config.json");
    put_in_hub(HUB, "Org--P", "pytorch_model.bin");
    fr_made_root_put(HUB "models--..--..--D/refs/main", COMMIT);
    fr_made_root_put(HUB "datasets--Org--D/refs/main", COMMIT);
    fr_made_root_take(".cache/llama.cpp/Org_L_l-Q4_0.gguf", WHOLE);
    fr_made_root_put(".cache/llama.cpp/manifest=Org=L=Q4_0.json", "{\"ggufFile\": {\"rfilename\": \"l-Q4_0.gguf\"}}");
    fr_made_root_take(".lmstudio/models/Org/S/s.gguf", WHOLE);
    fr_made_root_take(".ollama/models/blobs/sha256-" DIGEST, WHOLE);
    fr_made_root_take(".ollama/models/blobs/sha256-" DIGEST_OF_TOWER, TOWER);
    put_manifest(MANIFESTS "m/latest", MODEL_LAYER ", " LAYER("projector", DIGEST_OF_TOWER, "9"));
    put_manifest(MANIFESTS "n/1b", MODEL_LAYER ", " LAYER("adapter", DIGEST, "7"));
    ck_assert_msg(fr_model_list(environment, told, &all) == FR_OK, "%s", fr_last_error());
    ck_assert_str_eq(all.text, "Org/A Hugging Face 735680\n"
                               "Org/B:Q4_K_M Hugging Face 1471360 tower\n"
                               "Org/B:Q8_0 Hugging Face 735680 tower\n"
                               "Org/B:x-Q8_0.gguf Hugging Face 735680 tower\n"
                               "Org/C Hugging Face 0 its download is not finished\n"
                               "Org/P Hugging Face 735680\n"
                               "Org/L:Q4_0 llama.cpp 735680\n"
                               "Org/S:s.gguf LM Studio 735680\n"
                               "ollama:m:latest ollama 735680 tower\n"
                               "ollama:n:1b ollama 0 an adapter (LoRA) is not built yet\n");
    ck_assert_int_eq(fr_model_list(environment, told, &first), FR_ABORTED);
    ck_assert_uint_eq(first.count, 1);
}
END_TEST

FR_SUITE("named") {
    TCase *cases = tcase_create("named");
    tcase_add_checked_fixture(cases, open_root, fr_made_root_close);
    tcase_add_test(cases, types_are_chosen_as_llama_cpp_does);
    tcase_add_test(cases, a_published_repository_is_a_folder);
    tcase_add_test(cases, branches_lead_to_commits);
    tcase_add_loop_test(cases, branches_lead_nowhere_else, 0, 6);
    tcase_add_test(cases, an_unfinished_repository);
    tcase_add_test(cases, weights_of_another_kind);
    tcase_add_test(cases, unfinished_here_and_whole_there);
    tcase_add_test(cases, folders_by_the_environment);
    tcase_add_test(cases, llama_cpps_own_cache);
    tcase_add_test(cases, lm_studios_folder);
    tcase_add_test(cases, ollamas_store);
    tcase_add_loop_test(cases, manifests_that_lie, 0, sizeof manifests / sizeof *manifests);
    tcase_add_loop_test(cases, manifests_that_are_none, 0, 5);
    tcase_add_test(cases, addresses_are_refused);
    tcase_add_test(cases, what_is_no_name);
    tcase_add_test(cases, a_path_wins);
    tcase_add_test(cases, without_an_environment);
    tcase_add_test(cases, all_are_listed);
    suite_add_tcase(suite, cases);
}

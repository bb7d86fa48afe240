/* Tests incomplete files and folders, as interrupted downloads leave them. Each must be opened, or be refused with one
 * line that names what is missing. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/made_root.h"
#include "tests/support/suite.h"

#define WHOLE  "tests/data/gguf/moe-odd.gguf"
#define BESIDE "tests/data/gguf/moe-odd-assistant.gguf"
#define DENSE  "tests/data/models/gemma4-dense/"
#define POINTER                                               \
    "version https://git-lfs.github.com/spec/v1\noid sha256:" \
    "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

static const char *under(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", fr_made_root, name);
    return path;
}

/* Writes the first `count` bytes of a file. */
static void put_beginning(const char *name, const char *from, size_t count) {
    char *bytes = malloc(count);
    FILE *file = fopen(from, "rb");
    ck_assert_uint_eq(fread(bytes, 1, count, file), count);
    fclose(file);
    fr_made_root_put(name, "");
    file = fopen(under(name), "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    fclose(file);
    free(bytes);
}

static void opens(const char *name) {
    fr_model *model;
    fr_tokenizer *tokenizer;
    ck_assert_msg(fr_model_open(under(name), NULL, &model) == FR_OK, "%s: %s", name, fr_last_error());
    fr_model_close(model);
    ck_assert_msg(fr_tokenizer_open(under(name), NULL, &tokenizer) == FR_OK, "%s: %s", name, fr_last_error());
    fr_tokenizer_close(tokenizer);
}

static void refused(const char *name, const char *line) {
    fr_model *model;
    ck_assert_msg(fr_model_open(under(name), NULL, &model) == FR_INPUT, "%s is opened", name);
    ck_assert_msg(strstr(fr_last_error(), line), "%s: \"%s\" has no \"%s\"", name, fr_last_error(), line);
    ck_assert_ptr_null(strchr(fr_last_error(), '\n'));
}

START_TEST(a_pointer_of_git_lfs) {
    fr_made_root_put("m.gguf", POINTER);
    refused("m.gguf", "is a Git LFS pointer, not the file: \"git lfs pull\"");
    fr_made_root_take("f/config.json", DENSE "config.json");
    fr_made_root_put("f/model.safetensors", POINTER);
    refused("f", "f/model.safetensors is a Git LFS pointer");
    unlink(under("f/model.safetensors"));
    fr_made_root_take("f/model.safetensors.index.json", DENSE "model.safetensors.index.json");
    fr_made_root_take("f/model-00001-of-00002.safetensors", DENSE "model-00001-of-00002.safetensors");
    fr_made_root_take("f/model-00002-of-00002.safetensors", DENSE "model-00002-of-00002.safetensors");
    fr_made_root_put("f/tokenizer.json", POINTER);
    refused("f", "f/tokenizer.json is a Git LFS pointer");
}
END_TEST

/* In each row, `file` is a file that a download program leaves behind, `name` is the path to open, and `line` is the
 * expected error line. */
static const struct {
    const char *file, *name, *line;
} unfinished[] = {
    {"m.gguf.incomplete", "m.gguf", "m.gguf: its download is not finished: there is"},
    {"m.gguf.downloadInProgress", "m.gguf", "m.gguf: its download is not finished: there is"},
    {"m.gguf.part", "m.gguf", "m.gguf: its download is not finished: there is"},
    {"m.gguf.incomplete", "m.gguf.incomplete", "m.gguf.incomplete is a download that is not finished"},
    {"m.gguf.downloadInProgress", "m.gguf.downloadInProgress", "is a download that is not finished"},
    {"sha256-0123-partial", "sha256-0123-partial", "is a download that is not finished"},
    {"r/blobs/abc.incomplete", "r/snapshots/0/m.gguf", "m.gguf: its download is not finished: there is abc.incomplete"},
    {"f/.cache/huggingface/download/x.y.incomplete", "f/m.gguf", "is not finished: there is x.y.incomplete"},
};

START_TEST(an_unfinished_download) {
    fr_made_root_put("r/snapshots/0/README.md", "");
    fr_made_root_put(unfinished[_i].file, "GGUF");
    refused(unfinished[_i].name, unfinished[_i].line);
}
END_TEST

/* aria2 gives a file its full size at the beginning of the download. So only the .aria2 file next to it shows that the
 * download is unfinished. */
START_TEST(aria2_is_not_done) {
    fr_made_root_take("m.gguf", WHOLE);
    opens("m.gguf");
    fr_made_root_put("m.gguf.aria2", "");
    refused("m.gguf", "m.gguf: its download is not finished: there is");
}
END_TEST

START_TEST(a_file_that_ends_early) {
    put_beginning("m.gguf", WHOLE, 700000);
    refused("m.gguf", "cut short");
    refused("m.gguf", "is its download finished?");
    fr_made_root_take("f/config.json", DENSE "config.json");
    put_beginning("f/model.safetensors", DENSE "model-00001-of-00002.safetensors", 100000);
    refused("f", "is its download finished?");
}
END_TEST

START_TEST(parts_that_are_missing) {
    fr_made_root_take("m-00001-of-00003.gguf", WHOLE); /* a complete file, although its name says part 1 of 3 */
    opens("m-00001-of-00003.gguf");
    fr_builder b = {0};
    fr_build_header(&b, 0, 2);
    fr_build_key_u32(&b, "split.no", 1);
    fr_build_key_u32(&b, "split.count", 3);
    fr_made_root_put("s-00002-of-00003.gguf", "");
    fr_build_write(&b, under("s-00002-of-00003.gguf"));
    fr_build_free(&b);
    refused("s-00002-of-00003.gguf", "2 of its 3 parts are missing: s-00001-of-00003.gguf, s-00003-of-00003.gguf");
    fr_made_root_put("s-00003-of-00003.gguf.incomplete", "");
    refused("s-00002-of-00003.gguf", "s-00003-of-00003.gguf: its download is not finished");
}
END_TEST

START_TEST(a_folder_with_one_file) {
    fr_made_root_take("f/m.gguf", WHOLE);
    opens("f");
    fr_made_root_put("f/README.md", "# M");
    fr_made_root_put("f/config.json", "{}"); /* some folders with GGUF files also have a config.json */
    fr_made_root_take("f/mmproj-m.gguf", BESIDE);
    fr_made_root_take("f/mtp-m.gguf", BESIDE);
    fr_made_root_take("f/m-imatrix.gguf", BESIDE);
    opens("f");
    fr_made_root_take("f/n.gguf", WHOLE);
    refused("f", "f has 2 GGUF files: give one of them: m.gguf, n.gguf");
}
END_TEST

/* If a folder has all files of a published model, this model is opened, even if the folder also has other model
 * files. */
START_TEST(a_published_folder_with_a_file) {
    static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors.index.json",
                                        "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};
    char from[256], to[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(from, sizeof from, DENSE "%s", names[i]);
        snprintf(to, sizeof to, "f/%s", names[i]);
        fr_made_root_take(to, from);
    }
    fr_made_root_put("f/a.gguf", "nothing that can be read");
    fr_made_root_put("f/b.gguf", "nothing that can be read");
    opens("f");
}
END_TEST

FR_SUITE("downloads") {
    TCase *cases = tcase_create("downloads");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, fr_made_root_open, fr_made_root_close);
    tcase_add_test(cases, a_pointer_of_git_lfs);
    tcase_add_loop_test(cases, an_unfinished_download, 0, sizeof unfinished / sizeof *unfinished);
    tcase_add_test(cases, aria2_is_not_done);
    tcase_add_test(cases, a_file_that_ends_early);
    tcase_add_test(cases, parts_that_are_missing);
    tcase_add_test(cases, a_folder_with_one_file);
    tcase_add_test(cases, a_published_folder_with_a_file);
    suite_add_tcase(suite, cases);
}

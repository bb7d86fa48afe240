/* Tests the hash of a model. The digests must be those of the standard's examples and of sha256sum. Also tests which
 * files belong to a model, and in which cases the stored hash of a large file is used instead of reading the file. */
/* suite: links=command */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/serve/content.h"

enum { LARGE = 1 << 20 };

/* Digests of a file of letters "a", and of the same file with "b" as its last letter. sha256sum computed both. */
#define LARGE_A  "9bc1b2a288b26af7257a36277ae3816a7d4f16e89c1e7e77d0a5c48bad62b360"
#define LARGE_AB "371264331be3a89bb42c4fea3770469e9094f6ce8c8244b9ac2beb9ffd80e621"
#define FORGED   "00000000000000000000000000000000000000000000000000000000000000ff"

/* The working folder. go_to_folder makes this folder new and empty. It also sets the user's cache folder to a folder
 * inside it. */
static char folder[] = "/tmp/forerun-content-XXXXXX";

static void go_to_folder(void) {
    char cache[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    setenv("XDG_CACHE_HOME", cache, 1);
}

static void remove_folder(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
}

static void write_bytes(const char *name, const char *bytes, size_t size) {
    FILE *file = fopen(name, "w");
    ck_assert(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static void write_text(const char *name, const char *text) {
    write_bytes(name, text, strlen(text));
}

static void write_large(const char *name, bool b_behind) {
    char *bytes = malloc(LARGE + 1);
    memset(bytes, 'a', LARGE);
    bytes[LARGE] = 'b';
    write_bytes(name, bytes, LARGE + b_behind);
    free(bytes);
}

static void set_time(const char *name, long nanoseconds) {
    const struct timespec times[2] = {{1700000000, 0}, {1700000000, nanoseconds}};
    ck_assert_int_eq(utimensat(AT_FDCWD, name, times, 0), 0);
}

static void expect_hash(const char *path, const char *expected) {
    char hash[FR_CONTENT_SIZE], error[FR_CONTENT_ERROR];
    ck_assert_msg(fr_content_hash(path, hash, error, NULL, NULL), "%s", error);
    ck_assert_str_eq(hash, expected);
    ck_assert_str_eq(error, "");
}

static void expect_text(const char *name, const char *expected) {
    char text[1024] = "";
    FILE *file = fopen(name, "r");
    ck_assert_msg(file, "no %s", name);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    ck_assert_str_eq(text, expected);
}

static void expect_failure(const char *path, const char *line) {
    char hash[FR_CONTENT_SIZE], error[FR_CONTENT_ERROR];
    ck_assert(!fr_content_hash(path, hash, error, NULL, NULL));
    ck_assert_str_eq(error, line);
}

/* ----------------------------------------------------------------------------------------------------- hashed files */

START_TEST(digests_are_the_standards) {
    go_to_folder();
    write_text("empty.gguf", "");
    write_text("abc.gguf", "abc");
    write_text("long.gguf", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq");
    expect_hash("empty.gguf", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_hash("abc.gguf", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_hash("long.gguf", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *many = malloc(1000000);
    memset(many, 'a', 1000000);
    write_bytes("many.gguf", many, 1000000);
    free(many);
    expect_hash("many.gguf", "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    ck_assert_int_ne(access("many.gguf.sha256", F_OK), 0); /* no hash is stored for small files */
    remove_folder();
}
END_TEST

/* For a model in shards, the hash is the result of `sha256sum m-* | sha256sum`, whichever shard the user names. */
START_TEST(any_shard_stands_for_all) {
    const char *all = "58244dd8edb97235cc4ad9ac439b4802f6d38c65160bef0b07ee85e78e2ac0ce";
    const char *second = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3";
    char path[128];
    go_to_folder();
    write_text("m-00001-of-00003.gguf", "one");
    write_text("m-00002-of-00003.gguf", "two");
    write_text("m-00003-of-00003.gguf", "three");
    expect_hash("m-00001-of-00003.gguf", all);
    expect_hash("m-00003-of-00003.gguf", all);
    snprintf(path, sizeof path, "%s/m-00002-of-00003.gguf", folder);
    expect_hash(path, all);
    unlink("m-00001-of-00003.gguf");
    expect_hash(path, second); /* without shard 1, the file is a whole model that only has the name of a shard */
    remove_folder();
}
END_TEST

START_TEST(a_folder_is_what_is_read_of_it) {
    const char *all = "1bac2298f9a88b5eb48cd8b44c988a930ac82ab2cf19bf823b2bc463ac0279ae";
    go_to_folder();
    mkdir("m", 0700);
    write_text("m/tokenizer.json", "[]");
    write_text("m/config.json", "{}");
    expect_failure("m", "m/model.safetensors.index.json: no list of weights");
    write_text("m/model.safetensors", "weights");
    expect_hash("m", all);
    write_text("m/README.md", "x");
    write_text("m/consolidated.safetensors", "weights");
    expect_hash("m/", all);
    write_text("m/config.json", "{ }");
    char hash[FR_CONTENT_SIZE], error[FR_CONTENT_ERROR];
    ck_assert(fr_content_hash("m", hash, error, NULL, NULL));
    ck_assert_str_ne(hash, all);
    remove_folder();
}
END_TEST

START_TEST(a_folders_shards_are_those_of_the_index) {
    go_to_folder();
    mkdir("m", 0700);
    write_text("m/config.json", "{}");
    write_text("m/w.safetensors", "weights w");
    write_text("m/a.safetensors", "weights a");
    write_text("m/other.safetensors", "x");
    write_text("m/model.safetensors.index.json",
               "{\"weight_map\": {\"p\": \"w.safetensors\", \"q\": "
               "\"a.safetensors\", \"r\": \"w.safetensors\", \"s\": \"../m/other.safetensors\", \"t\": 3}}");
    expect_hash("m", "386f6b402ee39c2386e29138deb12b8578b8521406b80d889ee44ee4f690c0e6");
    write_text("m/model.safetensors.index.json", "{\"weight_map\": {\"p\": \"lost.safetensors\"}}");
    expect_failure("m", "m/lost.safetensors: No such file or directory");
    write_text("m/model.safetensors.index.json", "{\"weight_map\": {\"p\": \"a\\nb.safetensors\"}}");
    expect_failure("m", "m/a\nb.safetensors: no plain name");
    remove_folder();
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- stored hashes */

START_TEST(what_is_kept_is_believed_while_size_and_time_are_the_same) {
    const char *list = "# forerun: 1048576 bytes, written at 1700000000.000000005\n" LARGE_A "  m.gguf\n";
    go_to_folder();
    write_large("m.gguf", false);
    set_time("m.gguf", 5);
    expect_hash("m.gguf", LARGE_A);
    expect_text("m.gguf.sha256", list);
    ck_assert_int_eq(system("sha256sum --quiet -c m.gguf.sha256"), 0);
    write_text("m.gguf.sha256", "# forerun: 1048576 bytes, written at 1700000000.000000005\n" FORGED "  m.gguf\n");
    expect_hash("m.gguf", FORGED); /* the stored hash was used, and the file was not read */
    set_time("m.gguf", 6);
    expect_hash("m.gguf", LARGE_A);
    set_time("m.gguf", 5);
    expect_hash("m.gguf", LARGE_A);
    expect_text("m.gguf.sha256", list);
    write_large("m.gguf", true);
    set_time("m.gguf", 5);
    expect_hash("m.gguf", LARGE_AB);
    ck_assert_int_ne(access("cache", F_OK), 0);
    ck_assert_int_eq(system("test \"$(ls)\" = \"$(printf 'm.gguf\\nm.gguf.sha256')\""), 0);
    remove_folder();
}
END_TEST

START_TEST(what_is_no_list_of_ours_is_not_believed) {
    const char *first = "# forerun: 1048576 bytes, written at 1700000000.000000000\n";
    static const char *const rests[] = {
        "",
        "\n",
        FORGED,
        FORGED "  m.gguf",
        FORGED "  m.gguf\n\n",
        FORGED "  n.gguf\n",
        FORGED " m.gguf\n",
        FORGED "0  m.gguf\n",
        "0" FORGED "  m.gguf\n",
        "G" LARGE_A "  m.gguf\n",
        LARGE_AB "  m.gguf \n",
    };
    go_to_folder();
    write_large("m.gguf", false);
    set_time("m.gguf", 0);
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s", first, rests[i]);
        write_text("m.gguf.sha256", text);
        expect_hash("m.gguf", LARGE_A);
        snprintf(text, sizeof text, "%s" LARGE_A "  m.gguf\n", first);
        expect_text("m.gguf.sha256", text);
    }
    remove_folder();
}
END_TEST

/* Checks that the cache folder has exactly one list, and that the list has these digits. */
static void expect_cached(const char *digits) {
    char command[256];
    snprintf(command, sizeof command,
             "test $(ls cache/forerun | wc -l) = 1 && sha256sum --quiet -c "
             "cache/forerun/*.sha256 && grep -q '^%s  %s/m.gguf$' cache/forerun/*.sha256",
             digits, folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(somebody_elses_list_stays_and_ours_goes_to_the_cache) {
    go_to_folder();
    write_large("m.gguf", false);
    set_time("m.gguf", 0);
    write_text("m.gguf.sha256", FORGED "  m.gguf\n");
    expect_hash("m.gguf", LARGE_A);
    expect_text("m.gguf.sha256", FORGED "  m.gguf\n");
    expect_cached(LARGE_A);
    ck_assert_int_eq(system("sed -i 's/^" LARGE_A "/" FORGED "/' cache/forerun/*.sha256"), 0);
    expect_hash("./m.gguf", FORGED); /* this is the hash in the cache folder's list */
    set_time("m.gguf", 7);
    expect_hash("m.gguf", LARGE_A);
    expect_cached(LARGE_A);
    remove_folder();
}
END_TEST

START_TEST(without_a_place_to_keep_it_it_is_still_right) {
    go_to_folder();
    write_large("m.gguf", false);
    mkdir("m.gguf.sha256", 0700);
    setenv("XDG_CACHE_HOME", "relative", 1);
    unsetenv("HOME");
    expect_hash("m.gguf", LARGE_A);
    setenv("HOME", "/dev/null", 1);
    expect_hash("m.gguf", LARGE_A);
    setenv("HOME", folder, 1);
    expect_hash("m.gguf", LARGE_A);
    ck_assert_int_eq(system("grep -q '^" LARGE_A "' .cache/forerun/*.sha256"), 0);
    remove_folder();
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- failures */

static bool stop_at_once(void *asked) {
    ++*(int *)asked;
    return true;
}

/* Makes the file longer while it is being hashed: the first two calls of this function write to the file. */
static bool write_meanwhile(void *name) {
    static int times;
    if (times++ < 2) write_text(name, times == 1 ? "abcd" : "abcdef");
    return false;
}

START_TEST(it_stops_and_fails_with_a_line) {
    char hash[FR_CONTENT_SIZE], error[FR_CONTENT_ERROR], name[] = "m.gguf";
    int asked = 0;
    go_to_folder();
    expect_failure("lost.gguf", "lost.gguf: No such file or directory");
    ck_assert_int_eq(mkfifo("pipe.gguf", 0600), 0);
    expect_failure("pipe.gguf", "pipe.gguf: not a file");
    write_large(name, false);
    ck_assert(!fr_content_hash(name, hash, error, stop_at_once, &asked) && asked == 1);
    ck_assert_str_eq(error, "");
    ck_assert_int_ne(access("m.gguf.sha256", F_OK), 0);
    remove_folder();
}
END_TEST

START_TEST(a_file_that_is_written_to_is_told_apart) {
    char hash[FR_CONTENT_SIZE], error[FR_CONTENT_ERROR], name[] = "m.gguf";
    go_to_folder();
    write_text(name, "abc");
    set_time(name, 0);
    ck_assert(!fr_content_hash(name, hash, error, write_meanwhile, name));
    ck_assert_str_eq(error, "m.gguf: it is being written to");
    remove_folder();
}
END_TEST

FR_SUITE("serve_content") {
    TCase *cases = tcase_create("content");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, digests_are_the_standards);
    tcase_add_test(cases, any_shard_stands_for_all);
    tcase_add_test(cases, a_folder_is_what_is_read_of_it);
    tcase_add_test(cases, a_folders_shards_are_those_of_the_index);
    tcase_add_test(cases, what_is_kept_is_believed_while_size_and_time_are_the_same);
    tcase_add_test(cases, what_is_no_list_of_ours_is_not_believed);
    tcase_add_test(cases, somebody_elses_list_stays_and_ours_goes_to_the_cache);
    tcase_add_test(cases, without_a_place_to_keep_it_it_is_still_right);
    tcase_add_test(cases, it_stops_and_fails_with_a_line);
    tcase_add_test(cases, a_file_that_is_written_to_is_told_apart);
    suite_add_tcase(suite, cases);
}

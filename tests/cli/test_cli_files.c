/* Tests logits, inspect and verify as users call them. Tests how the command writes files. */
/* suite: hostile damaged native */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forerun.h"
#include "tests/support/changed_folder.h"
#include "tests/support/command.h"
#include "tests/support/suite.h"

enum { VOCAB = 512 };

/* Makes a new folder for files that the commands write. */
static const char *scratch_folder(char *folder, size_t size) {
    snprintf(folder, size, "%s/forerun-cli-XXXXXX", P_tmpdir);
    return mkdtemp(folder);
}

static char *read_all(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "no %s", path);
    char *bytes = malloc(1 << 20);
    *length = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

START_TEST(logits_files) {
    char folder[256], path[512];
    scratch_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/x.f32", folder);
    fr_command c = fr_command_ok("logits " MODEL "--ids 2,415,443 -o %s", path), last, standard, chunked;
    size_t length;
    char *bytes = read_all(path, &length);
    ck_assert_str_eq(c.out, "");
    ck_assert_uint_eq(length, 3 * VOCAB * sizeof(float));
    struct stat info;
    mode_t mask = umask(0);
    umask(mask);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0666 & ~mask);

    last = fr_command_ok("logits " MODEL "--ids 2,415,443 --rows last -o -");
    ck_assert_uint_eq(last.out_length, VOCAB * sizeof(float));
    ck_assert_mem_eq(last.out, bytes + 2 * last.out_length, last.out_length);
    standard = fr_command_ok("logits " MODEL "--ids 2,415,443 -o /dev/stdout");
    ck_assert_uint_eq(standard.out_length, length);
    ck_assert_mem_eq(standard.out, bytes, length);
    chunked = fr_command_ok("logits " MODEL "--ids 2,415,443 -o - --chunk 1 -t 1");
    ck_assert_uint_eq(chunked.out_length, length);
    ck_assert_mem_eq(chunked.out, bytes, length);
    free(bytes);
    fr_command_free(&c);
    fr_command_free(&last);
    fr_command_free(&standard);
    fr_command_free(&chunked);
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* The largest logit in the first row of the drafter's logits must belong to the reference's first draft. */
START_TEST(logits_of_drafts) {
    json_t *object = fr_reference_json();
    const json_t *one = json_array_get(fr_json_get(fr_json_get(object, "draft"), "cases"), 0);
    const json_t *drafts = fr_json_get(one, "tokens");
    json_t *ids = json_deep_copy(fr_reference_prompt(object));
    json_array_append(ids, json_array_get(fr_reference_greedy(object), 0));
    ck_assert_int_eq(json_integer_value(fr_json_get(one, "L")), (json_int_t)json_array_size(ids));
    char list[1024];
    fr_json_join(ids, json_array_size(ids), list, sizeof list);
    fr_command c = fr_command_ok("logits " MODEL DRAFTER "--ids %s --draft-steps 4 -o -", list);
    ck_assert_uint_eq(c.out_length, 4 * VOCAB * sizeof(float));
    for (size_t step = 0; step < 4; step++) {
        float row[VOCAB];
        size_t best = 0, left_out = 0;
        memcpy(row, c.out + step * sizeof row, sizeof row);
        for (size_t i = 0; i < VOCAB; i++) {
            if (row[i] > row[best]) best = i;
            left_out += isinf(row[i]);
        }
        ck_assert_uint_eq(best, (size_t)json_integer_value(json_array_get(drafts, step)));
        ck_assert_uint_gt(left_out, 0);
    }
    fr_command_free(&c);
    json_decref(ids);
    json_decref(object);
}
END_TEST

/* A run that fails must leave the old file as it was, and no temporary file. A run that succeeds must keep the file's
 * mode. If the path is a symbolic link, it must stay a link. */
START_TEST(files_appear_whole_or_not_at_all) {
    char folder[256], path[512], link[512], line[1024];
    scratch_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/old", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    FILE *file = fopen(path, "w");
    fputs("as it was", file);
    fclose(file);
    chmod(path, 0640);
    ck_assert_int_eq(symlink(path, link), 0);

    snprintf(line, sizeof line, "logits " MODEL "--ids 2,512 -o %s", path);
    fr_command c = fr_command_run(line, NULL);
    ck_assert_int_eq(c.status, 1);
    fr_command_free(&c);
    size_t length;
    char *bytes = read_all(path, &length);
    ck_assert_uint_eq(length, 9);
    ck_assert_mem_eq(bytes, "as it was", 9);
    free(bytes);

    c = fr_command_ok("logits " MODEL "--ids 2,415 -o %s", link);
    fr_command_free(&c);
    struct stat info;
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0640);
    ck_assert_int_eq(info.st_size, 2 * VOCAB * (off_t)sizeof(float));
    unlink(path);

    c = fr_command_ok("logits " MODEL "--ids 2,415 -o %s", link); /* the link's target does not exist yet */
    fr_command_free(&c);
    ck_assert(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    ck_assert(lstat(path, &info) == 0 && info.st_size == 2 * VOCAB * (off_t)sizeof(float));
    unlink(path);
    unlink(link);
    ck_assert_msg(rmdir(folder) == 0, "something else is left in the folder");
}
END_TEST

static size_t count_files(const char *folder) {
    size_t count = 0;
    DIR *entries = opendir(folder);
    ck_assert_ptr_nonnull(entries);
    for (struct dirent *e; (e = readdir(entries));) count += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(entries);
    return count;
}

/* A signal ends the command while it waits for its prompt. At this time its temporary file is already open. The file
 * must be removed. */
START_TEST(a_signal_leaves_nothing_behind) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    char folder[256], line[1024];
    int in[2], null = open("/dev/null", O_WRONLY);
    ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
    scratch_folder(folder, sizeof folder);
    snprintf(line, sizeof line, "logits " MODEL "-f - -o %s/x", folder);
    pid_t process = fr_command_start(line, in[0], null, null);
    while (count_files(folder) == 0) usleep(1000);
    ck_assert_int_eq(kill(process, signals[_i]), 0);
    ck_assert_int_eq(fr_command_wait(process), 128 + signals[_i]);
    ck_assert_msg(rmdir(folder) == 0, "a temporary file is left");
    close(in[0]);
    close(in[1]);
    close(null);
}
END_TEST

static void empty_folder(const char *folder) {
    DIR *entries = opendir(folder);
    for (struct dirent *e; (e = readdir(entries));) {
        char path[768];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_type != DT_DIR) unlink(path);
    }
    closedir(entries);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

/* A file in memory (/dev/shm) must be written like any other file. A failed run must keep the old file, and a complete
 * run must replace it. */
START_TEST(files_in_memory_are_whole_too) {
    char folder[] = "/dev/shm/forerun-cli-XXXXXX", path[64];
    struct stat before, after;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x", folder);
    write_text(path, "as it was");
    ck_assert_int_eq(stat(path, &before), 0);
    static const char *const failing[] = {"quantize -m /nowhere --type q8_0", "logits " MODEL "--ids 2,512"};
    char line[256];
    for (size_t i = 0; i < 2; i++) {
        snprintf(line, sizeof line, "%s -o %s", failing[i], path);
        fr_command c = fr_command_run(line, NULL);
        ck_assert_int_eq(c.status, 1);
        ck_assert(stat(path, &after) == 0 && after.st_size == 9 && after.st_ino == before.st_ino);
        fr_command_free(&c);
    }
    fr_command c = fr_command_ok("logits " MODEL "--ids 2 -o %s", path);
    fr_command_free(&c);
    ck_assert(stat(path, &after) == 0 && after.st_size == VOCAB * (off_t)sizeof(float));
    ck_assert(after.st_ino != before.st_ino);
    unlink(path);
    ck_assert_msg(rmdir(folder) == 0, "something else is left in the folder");
}
END_TEST

/* A path such as /dev/stdout, or a link to it, names an open descriptor, which can't be replaced. So the output must be
 * written to the descriptor, after the bytes that were already written there. */
START_TEST(descriptors_are_written_in_place) {
    char folder[256], path[512], link[512], line[1100];
    scratch_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/x", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    ck_assert_int_eq(symlink("/dev/stdout", link), 0);
    const char *const names[] = {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", link};
    for (size_t i = 0; i < 4; i++) {
        struct stat before, after;
        int out = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), null = open("/dev/null", O_RDWR);
        ck_assert(out >= 0 && fstat(out, &before) == 0);
        snprintf(line, sizeof line, "logits " MODEL "--ids 2 -o %s", names[i]);
        ck_assert_int_eq(fr_command_wait(fr_command_start(line, null, out, null)), 0);
        ck_assert(stat(path, &after) == 0 && after.st_ino == before.st_ino);
        ck_assert_int_eq(after.st_size, VOCAB * (off_t)sizeof(float));
        close(out);
        close(null);
    }
    unlink(path);
    unlink(link);
    ck_assert_msg(rmdir(folder) == 0, "something else is left in the folder");
}
END_TEST

/* A killed run leaves its temporary file. The next run that writes into the folder must remove that file. It must not
 * remove the temporary file of a run that is still alive, and not files with similar names. */
START_TEST(what_killed_runs_leave_is_removed) {
    static const char *const others[] = {".forerun-abcdefg", ".forerun-abcde", "forerun-abcdef", ".forerun-"};
    char folder[256], path[512], line[1024];
    int in[2], null = open("/dev/null", O_WRONLY);
    ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
    scratch_folder(folder, sizeof folder);
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, others[i]);
        write_text(path, "another's");
    }
    snprintf(path, sizeof path, "%s/.forerun-ABC123", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(line, sizeof line, "logits " MODEL "-f - -o %s/x", folder);
    pid_t killed = fr_command_start(line, in[0], null, null);
    while (count_files(folder) < 6) usleep(1000);
    ck_assert_int_eq(kill(killed, SIGKILL), 0);
    ck_assert_int_eq(fr_command_wait(killed), 128 + SIGKILL);
    ck_assert_uint_eq(count_files(folder), 6);
    fr_command c = fr_command_ok("logits " MODEL "--ids 2 -o %s/y", folder);
    fr_command_free(&c);
    ck_assert_uint_eq(count_files(folder), 6); /* y was added, and the temporary file of the killed run was removed */

    pid_t running = fr_command_start(line, in[0], null, null);
    while (count_files(folder) < 7) usleep(1000);
    c = fr_command_ok("logits " MODEL "--ids 2 -o %s/y", folder);
    fr_command_free(&c);
    ck_assert_uint_eq(count_files(folder), 7);
    ck_assert_int_eq(write(in[1], "The", 3), 3);
    close(in[1]);
    close(in[0]);
    ck_assert_int_eq(fr_command_wait(running), 0);
    ck_assert_uint_eq(count_files(folder), 7); /* x and y exist, and there is no temporary file */

    c = fr_command_ok("generate " MODEL "--ids 2 -n 1 --output ids --prompt-cache %s/z", folder);
    fr_command_free(&c);
    ck_assert_uint_eq(count_files(folder), 8);
    ck_assert_int_eq(rmdir(path), 0);
    close(null);
    empty_folder(folder);
}
END_TEST

/* ----------------------------------------------------------------------------------- outputs that overwrite inputs */

#define SHARDED "tests/data/models/gemma4-dense/"

static void copy_file(const char *from, const char *folder, const char *name) {
    char path[512];
    size_t length;
    char *bytes = read_all(from, &length);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
    free(bytes);
}

/* Fills the folder with files. They are a published model in two shards, a GGUF file with a symbolic link and a hard
 * link to it, a GGUF model in two files, and a text. */
static void fill_folder(const char *folder) {
    static const char *const published[] = {"config.json", "tokenizer.json", "model-00001-of-00002.safetensors",
                                            "model-00002-of-00002.safetensors", "model.safetensors.index.json"};
    char from[512], to[512];
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        snprintf(from, sizeof from, SHARDED "%s", published[i]);
        copy_file(from, folder, published[i]);
    }
    copy_file("tests/data/gguf/moe-odd-assistant.gguf", folder, "m.gguf");
    copy_file("tests/data/gguf/moe-odd-assistant.gguf", folder, "s-00001-of-00002.gguf");
    copy_file("tests/data/gguf/moe-odd-assistant.gguf", folder, "s-00002-of-00002.gguf");
    copy_file("tests/data/perplexity/text.txt", folder, "text");
    snprintf(to, sizeof to, "%s/link", folder);
    ck_assert_int_eq(symlink("m.gguf", to), 0);
    snprintf(from, sizeof from, "%s/m.gguf", folder);
    snprintf(to, sizeof to, "%s/hard", folder);
    ck_assert_int_eq(link(from, to), 0);
}

/* Returns a checksum of a folder. It covers the number of files, and their names, inodes and bytes. */
static unsigned long long sum_folder(const char *folder) {
    unsigned long long sum = 0;
    DIR *entries = opendir(folder);
    for (struct dirent *e; (e = readdir(entries));) {
        char path[768];
        size_t length;
        if (e->d_type == DT_DIR) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        char *bytes = read_all(path, &length);
        unsigned long long one = 1 + e->d_ino;
        for (size_t i = 0; i < length; i++) one = 31 * one + (unsigned char)bytes[i];
        sum += one;
        free(bytes);
    }
    closedir(entries);
    return sum;
}

/* Command lines that would overwrite a file that they read. %1$s is replaced by the folder. */
static const char *const overlaps[] = {
    "quantize -m %1$s/m.gguf --type q8_0 -o %1$s/m.gguf",
    "quantize -m %1$s/m.gguf --type q8_0 -o %1$s/link",
    "quantize -m %1$s/link --type q8_0 -o %1$s/m.gguf",
    "quantize -m %1$s/hard --type q8_0 %1$s/../../%1$s/m.gguf",
    "quantize -m %1$s/s-00001-of-00002.gguf --type q8_0 -o %1$s/s-00002-of-00002.gguf",
    "quantize -m %1$s --type q8_0 -o %1$s/config.json",
    "quantize -m %1$s --type q8_0 -o %1$s/model-00002-of-00002.safetensors",
    "quantize -m %1$s/model.safetensors.index.json --type q8_0 -o %1$s/tokenizer.json",
    "pack -m %1$s/m.gguf -o %1$s/m.gguf",
    "report %1$s/text -o %1$s/text",
    "logits " MODEL "-f %1$s/text -o %1$s/text",
    "logits -m %1$s --ids 2 -o %1$s/tokenizer.json",
    "generate " MODEL "-f %1$s/text -n 1 --trace %1$s/text",
    "generate -m %1$s --ids 2 -n 1 --output ids --prompt-cache %1$s/tokenizer.json",
    "generate " MODEL "--ids 2 -n 1 --prompt-cache %1$s/text --trace %1$s/text",
    "perplexity " MODEL "-f %1$s/text -c 8 --chunks 1 --kl-divergence-base %1$s/text",
};

/* Command lines that name the same new file twice, by different paths. %1$s is replaced by the folder. %1$s/way is a
 * link to the folder. */
static const char *const pairs[] = {
    "generate " MODEL "--ids 2 -n 1 --trace %1$s/new --prompt-cache %1$s/new",
    "chat " MODEL "--trace %1$s/./new --prompt-cache %1$s/new",
    "generate " MODEL "--ids 2 -n 1 --trace %1$s/new --prompt-cache %1$s/way/new",
    "generate " MODEL "--ids 2 -n 1 --trace fr_test_new --prompt-cache ./fr_test_new",
};

START_TEST(two_results_are_two_files) {
    char folder[256], line[1024], way[512];
    scratch_folder(folder, sizeof folder);
    snprintf(way, sizeof way, "%s/way", folder);
    ck_assert_int_eq(symlink(".", way), 0);
    snprintf(line, sizeof line, pairs[_i], folder);
    fr_command c = fr_command_run(line, NULL);
    unlink("fr_test_new");
    ck_assert_msg(c.status == 2, "%s: exit %d: %s", line, c.status, c.err);
    ck_assert_ptr_nonnull(strstr(c.err, "would write over what --trace"));
    fr_command_free(&c);
    c = fr_command_ok("generate " MODEL "--ids 2 -n 1 --trace %s/a --prompt-cache %s/b", folder, folder);
    fr_command_free(&c);
    empty_folder(folder);
}
END_TEST

START_TEST(standard_input_is_not_written_over) {
    char folder[256], name[300], line[1024];
    scratch_folder(folder, sizeof folder);
    snprintf(name, sizeof name, "%s/lines", folder);
    int lines = open(name, O_RDWR | O_CREAT, 0600), null = open("/dev/null", O_RDWR), status;
    struct stat info;
    ck_assert_int_eq(write(lines, "{}\n", 3), 3);
    snprintf(line, sizeof line, "batch " MODEL "-f - -o %s", name);
    pid_t process = fr_command_start(line, lines, null, null);
    ck_assert_int_eq(waitpid(process, &status, 0), process);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    ck_assert_int_eq(fstat(lines, &info), 0);
    ck_assert_int_eq(info.st_size, 3);
    close(lines);
    close(null);
    empty_folder(folder);
}
END_TEST

START_TEST(what_is_read_is_not_written_over) {
    char folder[256], line[1024];
    scratch_folder(folder, sizeof folder);
    fill_folder(folder);
    unsigned long long before = sum_folder(folder);
    snprintf(line, sizeof line, overlaps[_i], folder);
    fr_command c = fr_command_run(line, NULL);
    ck_assert_msg(c.status == 2, "%s: exit %d: %s", line, c.status, c.err);
    ck_assert_ptr_nonnull(strstr(c.err, "would write over"));
    ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
    ck_assert_msg(sum_folder(folder) == before, "%s: harmed", line);
    fr_command_free(&c);
    empty_folder(folder);
}
END_TEST

/* Files in the folder of the input may be written, even twice. Standard output must be refused if it is the input
 * file. */
START_TEST(what_is_not_read_may_be_written) {
    char folder[256], line[1024], path[512];
    scratch_folder(folder, sizeof folder);
    fill_folder(folder);
    unsigned long long before = sum_folder(folder);
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    snprintf(line, sizeof line, "quantize -m %s --type q8_0 -o -", path);
    int null = open("/dev/null", O_RDWR), out = open(path, O_RDWR);
    ck_assert_int_eq(fr_command_wait(fr_command_start(line, null, out, null)), 2);
    ck_assert(sum_folder(folder) == before);
    for (int i = 0; i < 2; i++) {
        fr_command c = fr_command_ok("quantize -m %s --type q8_0 -o %s/new.gguf", path, folder);
        fr_command_free(&c);
        c = fr_command_ok("logits " MODEL "--ids 2 -o %s/s-00003-of-00004.gguf", folder);
        fr_command_free(&c);
    }
    close(null);
    close(out);
    empty_folder(folder);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- inspect and verify */

/* If neither the configuration nor the tokenizer names an id that ends a text, inspect must say so. */
START_TEST(inspect_says_that_nothing_ends_a_text) {
    fr_changed_folder changed;
    fr_changed_folder_make(&changed, "tests/data/models/llama-odd", "{\"eos_token_id\": null}");
    fr_changed_folder_write(&changed, "generation_config.json", "{}");
    fr_command none = fr_command_ok("inspect -m %s", changed.path);
    fr_command two = fr_command_ok("inspect -m tests/data/models/llama-odd");
    ck_assert_ptr_nonnull(strstr(none.out, "\nend of text    no id is known: "));
    ck_assert_ptr_nonnull(strstr(two.out, "\nend of text    ids 2 5"));
    fr_command_free(&none);
    fr_command_free(&two);
    fr_changed_folder_remove(&changed);
}
END_TEST

START_TEST(inspect_describes) {
    fr_command model = fr_command_ok("inspect " MODEL), pair = fr_command_ok("inspect " MODEL DRAFTER), tensors;
    fr_command drafter = fr_command_ok("inspect -m " FOLDER "/assistant");
    ck_assert_ptr_nonnull(strstr(model.out, "Gemma4ForCausalLM"));
    ck_assert_int_eq(strncmp(pair.out, model.out, model.out_length), 0);
    ck_assert_ptr_nonnull(strstr(pair.out, "Gemma4AssistantForCausalLM"));
    ck_assert_ptr_nonnull(strstr(drafter.out, "Gemma4AssistantForCausalLM"));
    ck_assert_ptr_null(strstr(model.out, "embed_tokens.weight"));
    tensors = fr_command_ok("inspect " MODEL "--tensors");
    ck_assert_ptr_nonnull(strstr(tensors.out, "embed_tokens.weight"));
    fr_command_free(&model);
    fr_command_free(&pair);
    fr_command_free(&drafter);
    fr_command_free(&tensors);
}
END_TEST

static json_int_t whole(const json_t *object, const char *key) {
    const json_t *value = fr_json_get(object, key);
    ck_assert_msg(json_is_integer(value), "%s is no whole number", key);
    return json_integer_value(value);
}

static json_t *json_of(const char *line) {
    fr_command c = fr_command_ok("%s", line);
    json_t *object = json_loads(c.out, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(json_is_object(object), "%s: %s", line, c.out);
    fr_command_free(&c);
    return object;
}

/* Returns the number of weights. A tensor has as many as the product of the numbers in its shape, and these products
 * are added up. */
static json_int_t values_in(const json_t *tensors) {
    json_int_t all = 0;
    for (size_t i = 0; i < json_array_size(tensors); i++) {
        const json_t *shape = fr_json_get(json_array_get(tensors, i), "shape");
        json_int_t values = 1;
        for (size_t d = 0; d < json_array_size(shape); d++) values *= json_integer_value(json_array_get(shape, d));
        all += values;
    }
    return all;
}

START_TEST(inspect_as_json) {
    json_t *pair = json_of("inspect " DEMO DEMO_DRAFTER "--tensors -o json -ctk q8_0");
    const json_t *drafter = fr_json_get(pair, "drafter"), *tensors = fr_json_get(pair, "tensor_list");
    ck_assert_str_eq(json_string_value(fr_json_get(pair, "kind")), "model");
    ck_assert_str_eq(json_string_value(fr_json_get(pair, "architecture")), "Gemma4ForCausalLM");
    /* the sum of the weights of all tensors in the file's header */
    ck_assert_int_eq(whole(pair, "parameters"), 6709798);
    ck_assert_int_eq(whole(pair, "weight_bytes"), 2 * 6709798);
    ck_assert_int_eq(whole(pair, "layers"), 6);
    ck_assert_int_eq((json_int_t)json_array_size(tensors), whole(pair, "tensors"));
    ck_assert_int_eq(values_in(tensors), whole(pair, "parameters"));
    ck_assert_str_eq(json_string_value(fr_json_get(pair, "type_k")), "q8_0");
    ck_assert_str_eq(json_string_value(fr_json_get(pair, "type_v")), "f32");
    ck_assert_str_eq(json_string_value(fr_json_get(drafter, "kind")), "drafter");
    ck_assert_int_eq(values_in(fr_json_get(drafter, "tensor_list")), whole(drafter, "parameters"));
    ck_assert_str_eq(json_string_value(fr_json_get(drafter, "target")), "tools/demo/target");
    json_decref(pair);
    json_t *alone = json_of("inspect -m tests/data/glm-ocr/mmproj-bf16.gguf -o json");
    ck_assert_str_eq(json_string_value(fr_json_get(alone, "kind")), "tower");
    json_decref(alone);
}
END_TEST

/* If inspect gets a drafter's file without a target, it must print the drafter's shapes and the target that the drafter
 * needs. */
START_TEST(inspect_describes_drafters_alone) {
    static const struct {
        const char *path, *method, *words;
        json_int_t rows, hidden, vocabulary, layers, at_least;
    } drafters[] = {
        {"tests/data/llama/eagle3", "eagle3", "an early, a middle and a late one\n", 256, 256, 512, 0, 3},
        {"tests/data/llama/eagle3.gguf", "eagle3", "inputs of the target's layers 2 3 4\n", 256, 256, 512, 0, 4},
        {"tests/data/llama/eagle3-odd", "eagle3", "7 layers or more, of architecture LlamaForCausalLM\n", 101, 256, 512,
         0, 7},
        {"tests/data/llama/eagle", "eagle", "head           the target's, 512 rows a draft", 512, 256, 512, 0, 1},
        {"tests/data/qwen35/tied-mtp.gguf", "mtp", "401 ids, width 36 and 4 layers, of architecture qwen35\n", 401, 36,
         401, 4, 0},
    };
    for (size_t i = 0; i < sizeof drafters / sizeof *drafters; i++) {
        char line[256];
        fr_command c = fr_command_ok("inspect -m %s", drafters[i].path);
        ck_assert_msg(strstr(c.out, drafters[i].words), "%s: %s", drafters[i].path, c.out);
        ck_assert_ptr_nonnull(strstr(c.out, "fits           not checked"));
        fr_command_free(&c);
        snprintf(line, sizeof line, "inspect -m %s -o json", drafters[i].path);
        json_t *told = json_of(line);
        const json_t *needs = fr_json_get(told, "needs");
        ck_assert_str_eq(json_string_value(fr_json_get(told, "kind")), "drafter");
        ck_assert_str_eq(json_string_value(fr_json_get(told, "method")), drafters[i].method);
        ck_assert(json_is_null(fr_json_get(told, "target")));
        ck_assert_int_eq(whole(told, "rows_a_draft"), drafters[i].rows);
        ck_assert_int_eq(whole(needs, "hidden"), drafters[i].hidden);
        ck_assert_int_eq(whole(needs, "vocabulary"), drafters[i].vocabulary);
        if (drafters[i].layers)
            ck_assert_int_eq(whole(needs, "layers"), drafters[i].layers);
        else
            ck_assert_int_eq(whole(needs, "layers_at_least"), drafters[i].at_least);
        json_decref(told);
    }
}
END_TEST

/* If the memory limit is exactly what a session and the weights need, generate, chat and inspect must succeed. If it is
 * one byte less, they must fail. */
START_TEST(all_memory_is_limited) {
    json_t *told = json_of("inspect " DEMO "-c 512 -o json");
    json_int_t session = whole(fr_json_get(told, "memory"), "session");
    json_t *run = json_of("generate " DEMO "-c 512 --ids 2 -n 0 --output json");
    json_int_t enough = session + whole(fr_json_get(fr_json_get(run, "stats"), "memory"), "resident");
    static const char *const lines[] = {"generate " DEMO "-c 512 --ids 2 -n 1 --output ids --memory %lld",
                                        TALK "-c 512 --memory %lld", "inspect " DEMO "-c 512 --memory %lld",
                                        "inspect " DEMO "-c 512 -o json --memory %lld"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (int less = 0; less < 2; less++) {
            char line[256];
            snprintf(line, sizeof line, lines[i], (long long)enough - less);
            fr_command c = fr_command_run(line, "");
            ck_assert_msg(c.status == less, "%s: exit %d: %s", line, c.status, c.err);
            if (less) ck_assert_msg(strstr(c.err, "raise --memory, or take less of -c\n"), "%s", c.err);
            ck_assert_ptr_eq(strchr(c.err, '\n'), less ? c.err + c.err_length - 1 : NULL);
            fr_command_free(&c);
        }
    fr_command c = fr_command_run("inspect " DEMO "--memory 1000", NULL);
    ck_assert_int_eq(c.status, 1);
    ck_assert_ptr_nonnull(strstr(c.err, "of weights must stay in memory, which is limited to 0.0 MB"));
    fr_command_free(&c);
    json_decref(told);
    json_decref(run);
}
END_TEST

/* The lines of a batch share the memory for keys and values. With a limit on this memory there are fewer pages. The
 * answers must be the same. */
START_TEST(a_batch_takes_less_memory) {
    static const char lines[] = "{\"prompt\": \"def\", \"n\": 3}\n{\"prompt\": \"The\", \"n\": 3}\n";
    json_t *told[2];
    for (int i = 0; i < 2; i++) {
        fr_command c = fr_command_feed(lines, "batch " DEMO "-np 4 -f - -o - %s", i ? "--memory 24000000" : "");
        told[i] = json_loadb(c.out, c.out_length, JSON_DISABLE_EOF_CHECK, NULL);
        fr_command_free(&c);
    }
    const json_t *all = fr_json_get(fr_json_get(told[0], "stats"), "memory");
    const json_t *less = fr_json_get(fr_json_get(told[1], "stats"), "memory");
    ck_assert_int_lt(whole(less, "target_kv"), whole(all, "target_kv") / 2);
    ck_assert(json_equal(fr_json_get(told[0], "ids"), fr_json_get(told[1], "ids")));
    json_decref(told[0]);
    json_decref(told[1]);
}
END_TEST

/* The memory that inspect reports must be exactly the memory that generate takes. This must hold at each context, with
 * and without drafts. */
START_TEST(inspect_tells_a_sessions_memory) {
    static const struct {
        const char *options;
        json_int_t context;
    } cases[] = {{"-c 512 ", 512}, {"", 4096}, {"-c 0 -ctk q8_0 -ctv q8_0 ", 4096}, {"-c 1000000 ", 4096}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
        snprintf(line, sizeof line, "inspect " DEMO DEMO_DRAFTER "%s-o json", cases[i].options);
        json_t *told = json_of(line);
        for (int drafting = 0; drafting < 2; drafting++) {
            snprintf(line, sizeof line, "generate " DEMO "%s%s--ids 2 -n 0 --output json", cases[i].options,
                     drafting ? DEMO_DRAFTER : "");
            json_t *run = json_of(line);
            const json_t *memory = fr_json_get(drafting ? fr_json_get(told, "drafter") : told, "memory");
            const json_t *taken = fr_json_get(fr_json_get(run, "stats"), "memory");
            ck_assert_int_eq(whole(memory, "context"), cases[i].context);
            ck_assert_int_eq(whole(memory, "target_kv"), whole(taken, "target_kv"));
            ck_assert_int_eq(whole(memory, "session"),
                             whole(taken, "target_kv") + whole(taken, "snapshots") + whole(taken, "scratch"));
            json_decref(run);
        }
        json_decref(told);
    }
    fr_command c = fr_command_ok("inspect " DEMO "-c 512");
    ck_assert_ptr_nonnull(strstr(c.out, "\nparameters     6.71 M (6709798)\n"));
    ck_assert_ptr_nonnull(strstr(c.out, "\nmemory         0.8 MB of KV for 512 positions, "));
    ck_assert_str_eq(c.err, "");
    fr_command_free(&c);
    c = fr_command_ok("inspect " DEMO DEMO_DRAFTER "-c 1000000");
    ck_assert_ptr_nonnull(strstr(c.err, "-c 1000000: this model runs at most 4096 positions"));
    ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
    fr_command_free(&c);
    static const char *const refused[] = {"inspect -m tools/demo/assistant -c 512",
                                          "inspect -m tests/data/glm-ocr/mmproj-bf16.gguf -c 512"};
    for (size_t i = 0; i < 2; i++) {
        c = fr_command_run(refused[i], NULL);
        ck_assert_int_eq(c.status, 2);
        ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
        ck_assert_str_eq(c.out, "");
        fr_command_free(&c);
    }
}
END_TEST

/* This drafter belongs to another target, whose rows are wider. */
START_TEST(a_drafter_that_does_not_fit_is_exit_1) {
    static const char *const lines[] = {"inspect " DEMO DRAFTER, "verify " DEMO DRAFTER,
                                        "generate " DEMO DRAFTER "-p x"};
    for (size_t i = 0; i < 3; i++) {
        fr_command c = fr_command_run(lines[i], NULL);
        ck_assert_msg(c.status == 1, "%s: exit %d: %s", lines[i], c.status, c.err);
        ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
        fr_command_free(&c);
    }
}
END_TEST

/* Computes the 64-bit FNV-1a hash in the way that its authors published. */
static unsigned long long fnv1a64(const void *bytes, size_t length) {
    unsigned long long hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

static unsigned long long hash_of_ids(char *text, size_t count) {
    int32_t ids[400];
    ck_assert_uint_le(count, 400);
    for (size_t i = 0; i < count; i++, text++) ids[i] = (int32_t)strtol(text, &text, 10);
    return fnv1a64(ids, count * sizeof *ids);
}

/* If the context has room for fewer ids than verify usually hashes, verify must say how many ids its hash covers. */
START_TEST(verify_tells_of_a_short_text) {
    fr_command c = fr_command_ok("verify " MODEL "--quiet -c 300"), whole = fr_command_ok("verify " MODEL "--quiet");
    ck_assert_str_eq(c.err, "forerun: sampled-ids: the context of 300 has room for 236 of 400, and the hash is of "
                            "these\n");
    ck_assert_str_eq(whole.err, "");
    ck_assert_str_ne(strstr(c.out, "sampled"), strstr(whole.out, "sampled"));
    *strstr(c.out, "sampled") = *strstr(whole.out, "sampled") = '\0';
    ck_assert_str_eq(c.out, whole.out);
    fr_command_free(&c);
    fr_command_free(&whole);
}
END_TEST

/* verify must hash the logits that the verb logits gives for the same prompt, and the ids that generate gives for
 * it. */
START_TEST(verify_hashes_the_answer) {
    char list[512] = "", expected[256];
    for (int i = 0; i < 64; i++) {
        size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, i ? ",%d" : "%d", VOCAB / 4 + 7919 * i % (VOCAB / 2 + 1));
    }
    fr_command logits = fr_command_ok("logits " MODEL "--ids %s -o -", list), c = fr_command_ok("verify " MODEL);
    fr_command greedy = fr_command_ok("generate " MODEL "--ids %s -n 64 --ignore-eos --output ids", list);
    fr_command sampled = fr_command_ok("generate " MODEL "--ids %s -n 400 --ignore-eos --output ids --temp 1 "
                                       "--top-k 64 --top-p 0.95 --min-p 0.001 --repeat-penalty 1.1 --seed 1",
                                       list);
    snprintf(expected, sizeof expected,
             "numerics     %d\nlogits       fnv1a64:%016llx\ngreedy-ids   fnv1a64:%016llx\n"
             "sampled-ids  fnv1a64:%016llx\n",
             FR_NUMERICS_VERSION, fnv1a64(logits.out, logits.out_length), hash_of_ids(greedy.out, 64),
             hash_of_ids(sampled.out, 400));
    ck_assert_str_eq(c.out, expected);
    fr_command_free(&logits);
    fr_command_free(&greedy);
    fr_command_free(&sampled);
    fr_command_free(&c);
}
END_TEST

START_TEST(verify_is_the_same_everywhere) {
    fr_command base = fr_command_ok("verify " MODEL DRAFTER), other, alone, demo, drafted;
    ck_assert_ptr_nonnull(strstr(base.out, "\nlogits       fnv1a64:"));
    ck_assert_ptr_nonnull(strstr(base.out, "\ndraft-logits fnv1a64:"));
    const char *greedy = strstr(base.out, "\ngreedy-ids   fnv1a64:");
    ck_assert_ptr_nonnull(greedy);
    ck_assert_ptr_nonnull(strstr(base.err, "threads"));
    other = fr_command_ok("verify " MODEL DRAFTER "-t 1 --isa scalar --chunk 7 --draft-max 5");
    ck_assert_str_eq(other.out, base.out);
    ck_assert_ptr_nonnull(strstr(other.err, "isa scalar, threads 1"));
    alone = fr_command_ok("verify " MODEL);
    ck_assert_ptr_null(strstr(alone.out, "draft"));
    ck_assert_str_eq(strstr(alone.out, "\ngreedy"), greedy);
    demo = fr_command_ok("verify " DEMO);
    ck_assert_str_ne(demo.out, alone.out);
    drafted = fr_command_ok("verify " DEMO DEMO_DRAFTER);
    ck_assert_str_eq(strstr(drafted.out, "\ngreedy"), strstr(demo.out, "\ngreedy"));
    fr_command_free(&base);
    fr_command_free(&other);
    fr_command_free(&alone);
    fr_command_free(&demo);
    fr_command_free(&drafted);
}
END_TEST

FR_SUITE("cli_files") {
    TCase *cases = tcase_create("cli_files");
    tcase_set_timeout(cases, 300);
    tcase_add_test(cases, logits_files);
    tcase_add_test(cases, logits_of_drafts);
    tcase_add_loop_test(cases, a_signal_leaves_nothing_behind, 0, 3);
    tcase_add_test(cases, files_in_memory_are_whole_too);
    tcase_add_test(cases, descriptors_are_written_in_place);
    tcase_add_test(cases, inspect_tells_a_sessions_memory);
    tcase_add_test(cases, all_memory_is_limited);
    tcase_add_test(cases, a_batch_takes_less_memory);
    tcase_add_test(cases, a_drafter_that_does_not_fit_is_exit_1);
    tcase_add_test(cases, verify_tells_of_a_short_text);
    tcase_add_test(cases, verify_hashes_the_answer);
    tcase_add_test(cases, verify_is_the_same_everywhere);
    TCase *damaged = tcase_create("damaged");
    tcase_set_timeout(damaged, 300);
    tcase_add_test(damaged, files_appear_whole_or_not_at_all);
    tcase_add_test(damaged, what_killed_runs_leave_is_removed);
    tcase_add_loop_test(damaged, two_results_are_two_files, 0, sizeof pairs / sizeof *pairs);
    tcase_add_test(damaged, standard_input_is_not_written_over);
    tcase_add_loop_test(damaged, what_is_read_is_not_written_over, 0, sizeof overlaps / sizeof *overlaps);
    tcase_add_test(damaged, what_is_not_read_may_be_written);
    tcase_add_test(damaged, inspect_says_that_nothing_ends_a_text);
    tcase_add_test(damaged, inspect_describes);
    tcase_add_test(damaged, inspect_as_json);
    tcase_add_test(damaged, inspect_describes_drafters_alone);
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, damaged);
}

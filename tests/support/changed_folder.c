/* Implements changed_folder.h: copies a published folder with another config.json. */
#include "tests/support/changed_folder.h"

#include <check.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/token_files.h"

static void write_config(const char *from, const char *changes, const char *to) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/config.json", from);
    json_t *config = fr_load_json(path), *all = json_loads(changes, 0, NULL);
    ck_assert_msg(all != NULL, "%s", changes);
    ck_assert_int_eq(json_object_update(config, all), 0);
    ck_assert_int_eq(json_dump_file(config, to, 0), 0);
    json_decref(all);
    json_decref(config);
}

/* The type of the function that for_each_file calls for each file of a folder. */
typedef void fr_file_fn(const char *from, const char *to, const char *name);

static void for_each_file(const char *folder, const char *from, const char *to, fr_file_fn *call) {
    DIR *files = opendir(folder);
    ck_assert_ptr_nonnull(files);
    for (struct dirent *file; (file = readdir(files));)
        if (file->d_name[0] != '.') call(from, to, file->d_name);
    closedir(files);
}

static void link_file(const char *from, const char *to, const char *name) {
    char source[PATH_MAX], absolute[PATH_MAX], path[PATH_MAX];
    snprintf(source, sizeof source, "%s/%s", from, name);
    snprintf(path, sizeof path, "%s/%s", to, name);
    if (strcmp(name, "config.json") == 0) return;
    ck_assert_ptr_nonnull(realpath(source, absolute));
    ck_assert_int_eq(symlink(absolute, path), 0);
}

static void remove_file(const char *from, const char *to, const char *name) {
    char path[PATH_MAX];
    (void)from;
    snprintf(path, sizeof path, "%s/%s", to, name);
    ck_assert_int_eq(unlink(path), 0);
}

void fr_changed_folder_make(fr_changed_folder *folder, const char *from, const char *changes) {
    char path[PATH_MAX];
    snprintf(folder->path, sizeof folder->path, "/tmp/forerun-changed-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder->path));
    for_each_file(from, from, folder->path, link_file);
    snprintf(path, sizeof path, "%s/config.json", folder->path);
    write_config(from, changes, path);
}

void fr_changed_folder_write(const fr_changed_folder *folder, const char *name, const char *text) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    unlink(path); /* removes the link; the linked file stays */
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

void fr_changed_folder_fill(const fr_changed_folder *folder, const char *tensor, size_t row, unsigned char byte) {
    static unsigned char bytes[1 << 19];
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/model.safetensors", folder->path);
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(bytes, 1, sizeof bytes, file), head = bytes[0] + 256 * (size_t)bytes[1];
    ck_assert_int_eq(fclose(file), 0);
    ck_assert(size < sizeof bytes && 8 + head < size);
    json_t *header = json_loadb((char *)bytes + 8, head, 0, NULL);
    const json_t *of = json_object_get(header, tensor), *shape = json_object_get(of, "shape");
    const char *type = json_string_value(json_object_get(of, "dtype"));
    ck_assert_msg(type && (strcmp(type, "F32") == 0 || strcmp(type, "F16") == 0 || strcmp(type, "BF16") == 0), "%s",
                  tensor);
    size_t width = (size_t)json_integer_value(json_array_get(shape, json_array_size(shape) - 1));
    size_t value = strcmp(type, "F32") == 0 ? 4 : 2;
    size_t begin = (size_t)json_integer_value(json_array_get(json_object_get(of, "data_offsets"), 0));
    json_decref(header);
    unsigned char *at = bytes + 8 + head + begin + row * width * value;
    memset(at, byte, width * value);
    ck_assert_int_eq(unlink(path), 0); /* removes the link; the linked file stays */
    file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

void fr_changed_folder_edit(const fr_changed_folder *folder, const char *from, const char *to) {
    char path[PATH_MAX];
    size_t length, header;
    snprintf(path, sizeof path, "%s/model.safetensors", folder->path);
    char *bytes = fr_load_text(path, &length);
    memcpy(&header, bytes, sizeof header);
    char *at = memmem(bytes, header, from, strlen(from));
    ck_assert_msg(at && strlen(from) == strlen(to), "%s", from);
    memcpy(at, to, strlen(to));
    ck_assert_int_eq(unlink(path), 0); /* removes the link; the linked file stays */
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
    free(bytes);
}

void fr_changed_folder_damage(const fr_changed_folder *folder, const char *tensor, size_t row) {
    fr_changed_folder_fill(folder, tensor, row, 0xff);
}

void fr_changed_folder_remove(const fr_changed_folder *folder) {
    for_each_file(folder->path, NULL, folder->path, remove_file);
    ck_assert_int_eq(rmdir(folder->path), 0);
}

/* Implements forerun models: lists the models that other programs have downloaded, as a table or a JSON array. The list
 * says which of the models can be used. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tools/cli/output.h"
#include "tools/cli/verbs.h"

/* Gives the library's description of a model as a new object. NULL: the model can't be described. *status: FR_OK if the
 * model can be used. */
static json_t *describe(const char *path, fr_status *status) {
    static const fr_lab_inspection how = {.json = true};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    *status = out ? fr_lab_inspect(path, &how, NULL, out) : FR_MEMORY;
    if (out) fclose(out);
    json_t *object = length ? json_loadb(text, length, JSON_ALLOW_NUL, NULL) : NULL;
    free(text);
    return object;
}

/* Gives an error line of the library without the path at its beginning, because the table's row shows the path
 * already. */
static const char *reason(const char *line, const char *path) {
    size_t length = strlen(path);
    if (strncmp(line, path, length) != 0) return line;
    line += length;
    return line + strspn(line, ": ");
}

static json_t *text_or_null(const char *text) {
    return text ? fr_json_bytes(text, strlen(text)) : json_null();
}

/* Makes the object that describes one model. It becomes one line of the table. */
static json_t *row_of(const fr_found *found) {
    fr_status status = FR_INPUT;
    json_t *described = found->problem ? NULL : describe(found->path, &status), *row = json_object();
    const char *line = found->problem ? found->problem : fr_last_error();
    const char *kind = json_string_value(json_object_get(described, "kind"));
    bool drafts = kind && strcmp(kind, "drafter") == 0;
    fr_json_put(row, "name", text_or_null(found->name));
    fr_json_put(row, "path", text_or_null(found->path));
    fr_json_put(row, "store", text_or_null(found->store));
    fr_json_put(row, "bytes", json_integer((json_int_t)found->bytes));
    fr_json_put(row, "kind", text_or_null(kind));
    fr_json_put(row, "family", text_or_null(json_string_value(json_object_get(described, "family"))));
    fr_json_put(row, "architecture", text_or_null(json_string_value(json_object_get(described, "architecture"))));
    fr_json_put(row, "type", text_or_null(json_string_value(json_object_get(described, "type"))));
    fr_json_put(row, "mmproj", text_or_null(found->tower));
    fr_json_put(row, "runs", json_boolean(status == FR_OK && !drafts));
    const char *why = status == FR_OK ? drafts ? "a drafter: -md" : NULL : reason(line, found->path);
    fr_json_put(row, "reason", text_or_null(why));
    json_decref(described);
    return row;
}

static bool take_row(void *context, const fr_found *found) {
    json_array_append_new(context, row_of(found));
    return true;
}

/* --------------------------------------------------------------------------------------------------------- printing */

static const char *text_of(const json_t *row, const char *key) {
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "-";
}

/* Gives the model's family. If forerun does not know the family, gives the name of the architecture in the file. */
static const char *family_of(const json_t *row) {
    return json_is_string(json_object_get(row, "family")) ? text_of(row, "family") : text_of(row, "architecture");
}

static void print_line(const char *name, int width, const char *size, const char *family, const char *type,
                       const char *runs) {
    printf("%-*s  %9s  %-12s  %-7s  %s\n", width, name, size, family, type, runs);
}

static void print_table(const json_t *rows) {
    int width = 4;
    size_t index;
    const json_t *row;
    json_array_foreach (rows, index, row) {
        int length = (int)strlen(text_of(row, "name"));
        if (length > width) width = length;
    }
    print_line("NAME", width, "SIZE", "FAMILY", "TYPE", "RUNS");
    json_array_foreach (rows, index, row) {
        char size[32];
        const char *why = json_string_value(json_object_get(row, "reason"));
        snprintf(size, sizeof size, "%.1f MB", (double)json_integer_value(json_object_get(row, "bytes")) / 1e6);
        print_line(text_of(row, "name"), width, size, family_of(row), text_of(row, "type"), why ? why : "yes");
    }
}

int fr_verb_models(const fr_arguments *args) {
    bool json = args->given[FR_ARG_INSPECT_FORM] && strcmp(args->text[FR_ARG_INSPECT_FORM], "json") == 0;
    json_t *rows = json_array();
    int code = fr_exit_status(fr_model_list((const char *const *)environ, take_row, rows));
    bool none = json_array_size(rows) == 0;
    if (!code && none && !json)
        fr_note("no model in the caches of Hugging Face, llama.cpp, LM Studio and ollama");
    else if (!code && !json)
        print_table(rows);
    if (!code && json) {
        json_dumpf(rows, stdout, 0);
        putchar('\n');
    }
    json_decref(rows);
    if (!code) fr_flush_output();
    return code;
}

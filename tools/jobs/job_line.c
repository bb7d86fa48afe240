/* Reads a line of JSON, and keeps its id as it was written (job_line.h). */
#include "tools/jobs/job_line.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/json_member.h"
#include "tools/cli/output.h"
#include "tools/cli/wide_json.h"

enum { ID_FLAGS = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL };

/* Parses the line with null in place of its id, because the id may be a number that the parser can't represent. */
static json_t *read_without(const char *line, size_t length, const char *id, size_t size, json_error_t *error) {
    const char *behind = id + size;
    char *rest;
    size_t rest_length;
    FILE *out = open_memstream(&rest, &rest_length);
    if (!out) return NULL;
    fwrite(line, 1, (size_t)(id - line), out);
    fputs("null", out);
    fwrite(behind, 1, (size_t)(line + length - behind), out);
    bool whole = fclose(out) == 0;
    json_t *object = whole ? fr_json_load(rest, rest_length, error) : NULL;
    free(rest);
    return object;
}

/* Returns true if a text is a JSON number, of any size. */
static bool is_number(const char *text) {
    static const char form[] = "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$";
    regex_t number;
    if (regcomp(&number, form, REG_EXTENDED | REG_NOSUB) != 0) return false;
    bool is = regexec(&number, text, 0, NULL, 0) == 0;
    regfree(&number);
    return is;
}

/* If the id's text is valid JSON, gives a copy of the text. Otherwise gives NULL. */
static char *keep_id(const char *id, size_t size, json_error_t *error) {
    json_t *alone = json_loadb(id, size, ID_FLAGS, error);
    char *text = fr_resize(NULL, size + 1, 1);
    memcpy(text, id, size);
    text[size] = '\0';
    bool is_json = alone || is_number(text);
    json_decref(alone);
    if (is_json) return text;
    free(text);
    return NULL;
}

/* Parses a line. A line with a NUL is refused first, because after a number jansson would ignore a NUL and all bytes
 * after it. */
fr_job_text fr_job_text_read(const char *line, size_t length, json_error_t *error) {
    fr_job_text read = {0};
    const char *id;
    size_t size;
    *error = (json_error_t){.text = "there is a NUL in it"};
    if (memchr(line, '\0', length)) return read;
    *error = (json_error_t){.text = "out of memory"};
    read.custom = fr_json_member(line, length, FR_CUSTOM_ID, &id, &size) && (size != 4 || memcmp(id, "null", 4) != 0);
    if (read.custom || fr_json_member(line, length, FR_ID, &id, &size)) {
        read.id = keep_id(id, size, error);
        if (read.id) read.value = read_without(line, length, id, size, error);
        return read;
    }
    read.value = fr_json_load(line, length, error);
    const json_t *escaped = json_object_get(read.value, FR_CUSTOM_ID);
    read.custom = escaped && !json_is_null(escaped);
    if (!read.custom) escaped = json_object_get(read.value, FR_ID);
    if (escaped) read.id = fr_json_line(escaped);
    return read;
}

void fr_job_text_free(fr_job_text *text) {
    json_decref(text->value);
    free(text->id);
    *text = (fr_job_text){0};
}

/* Reads files of tasks (task_files.h). Texts are not copied: each text is a range in the file's memory. */
#include "tools/cli/task_files.h"

#include <stdint.h>
#include <string.h>

static fr_task_text take_bytes(fr_task_text *from, size_t length) {
    fr_task_text taken = {.bytes = from->bytes, .length = length};
    from->bytes += length;
    from->length -= length;
    return taken;
}

static fr_task_text take_line(fr_task_text *file) {
    char *end = file->length ? memchr(file->bytes, '\n', file->length) : NULL;
    fr_task_text line = take_bytes(file, end ? (size_t)(end - file->bytes) : file->length);
    if (end) take_bytes(file, 1);
    if (line.length && line.bytes[line.length - 1] == '\r') line.length--;
    return line;
}

/* -------------------------------------------------------------------------------------------------------- HellaSwag */

const char *fr_task_take_hellaswag(fr_task_text *file, fr_task *task) {
    task->count = 0;
    if (file->length == 0) return NULL;
    task->before = take_line(file);
    task->joint = " ";
    task->after = (fr_task_text){0};
    fr_task_text index = take_line(file);
    if (index.length != 1 || index.bytes[0] < '0' || index.bytes[0] > '3') return "its second line is no index, 0 to 3";
    for (; task->count < 4; task->count++) {
        if (file->length == 0) return "four endings do not follow";
        task->word[task->count] = take_line(file);
        task->right[task->count] = (size_t)(index.bytes[0] - '0') == task->count;
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------- Winogrande */

/* Takes the next field of a CSV line. A field in quotes may contain commas. Two quotes in a row in such a field mean
 * one quote. */
static bool take_field(fr_task_text *line, fr_task_text *field) {
    if (line->length == 0 || line->bytes[0] != '"') {
        char *comma = line->length ? memchr(line->bytes, ',', line->length) : NULL;
        *field = take_bytes(line, comma ? (size_t)(comma - line->bytes) : line->length);
    } else {
        size_t at = 1, length = 0;
        for (; at < line->length; at++) {
            bool quote = line->bytes[at] == '"', two = quote && at + 1 < line->length && line->bytes[at + 1] == '"';
            if (quote && !two) break;
            at += two;
            line->bytes[length++] = line->bytes[at];
        }
        if (at == line->length) return false;
        *field = (fr_task_text){.bytes = line->bytes, .length = length};
        take_bytes(line, at + 1);
    }
    if (line->length == 0) return true;
    return take_bytes(line, 1).bytes[0] == ',';
}

const char *fr_task_take_winogrande(fr_task_text *file, fr_task *task) {
    fr_task_text line = {0}, index, sentence, answer;
    task->count = 0;
    while (file->length && line.length == 0) line = take_line(file);
    if (line.length == 0) return NULL;
    if (!take_field(&line, &index) || !take_field(&line, &sentence) || !take_field(&line, &task->word[0]) ||
        !take_field(&line, &task->word[1]) || !take_field(&line, &answer) || line.length || answer.length != 1 ||
        (answer.bytes[0] != '1' && answer.bytes[0] != '2'))
        return "not a line of index,sentence,word,word,1 or 2";
    char *gap = sentence.length ? memchr(sentence.bytes, '_', sentence.length) : NULL;
    if (!gap) return "its sentence has no _";
    task->joint = "";
    task->before = take_bytes(&sentence, (size_t)(gap - sentence.bytes));
    take_bytes(&sentence, 1);
    task->after = sentence;
    task->right[0] = answer.bytes[0] == '1';
    task->right[1] = !task->right[0];
    task->count = 2;
    return NULL;
}

/* -------------------------------------------------------------------------------------------------- several answers */

static bool take_number(fr_task_text *file, uint32_t *number) {
    if (file->length < sizeof *number) return false;
    memcpy(number, take_bytes(file, sizeof *number).bytes, sizeof *number);
    return true;
}

static bool take_text(fr_task_text *file, fr_task_text *text) {
    uint32_t length;
    if (!take_number(file, &length) || length > file->length) return false;
    *text = take_bytes(file, length);
    return true;
}

static bool take_answers(fr_task_text *file, fr_task *task) {
    uint32_t count, label;
    if (!take_number(file, &count) || count > FR_TASK_CHOICES) return false;
    for (task->count = 0; task->count < count; task->count++)
        if (!take_text(file, &task->word[task->count])) return false;
    for (size_t i = 0; i < count; i++) {
        if (!take_number(file, &label) || label > 1) return false;
        task->right[i] = label == 1;
    }
    return true;
}

const char *fr_task_take_head(fr_task_text *file, size_t *count) {
    uint32_t tasks;
    if (!take_number(file, &tasks) || tasks > file->length / sizeof tasks) return "no file of questions with answers";
    take_bytes(file, tasks * sizeof tasks);
    *count = tasks;
    return NULL;
}

const char *fr_task_take_answers(fr_task_text *file, fr_task *task) {
    fr_task passed;
    task->joint = " ";
    task->after = (fr_task_text){0};
    task->count = 0;
    bool whole = take_text(file, &task->before) && take_answers(file, task) && take_answers(file, &passed);
    return whole && task->count ? NULL : "damaged";
}

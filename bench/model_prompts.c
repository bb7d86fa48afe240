/* Reads the texts of each class of prompts (model_prompts.h). */
#include "bench/model_prompts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/checkpoint.h"

#define LONGEST ((size_t)1 << 20) /* the largest number of bytes of a prompt */

/* The built-in texts. They end at a point where the next words are as easy to predict as is typical for the text's
 * class. */
static const struct {
    const char *class, *text;
} own[] = {
    {"prose",
     "The ferry had stopped running in October, so the only way across the lake was the long road around its northern "
     "end. Marta drove it every Friday with the radio off. She knew each of the villages by its smell: wood smoke, "
     "then the tannery, then nothing but wet leaves for twenty minutes. On the last Friday of the month a man stood at "
     "the turn to the quarry with a suitcase in his hand, and although she never gave strangers a ride, she slowed "
     "down. He put the suitcase on the back seat as if it were made of glass, thanked her, and said"},
    {"code", "/* A queue of bytes between one writer and one reader. */\n"
             "typedef struct ring {\n    unsigned char *bytes;\n    size_t size, head, tail;\n} ring;\n\n"
             "static size_t ring_used(const ring *r) {\n    return r->head - r->tail;\n}\n\n"
             "static size_t ring_free(const ring *r) {\n    return r->size - ring_used(r);\n}\n\n"
             "bool ring_put(ring *r, unsigned char byte) {\n    if (ring_free(r) == 0) return false;\n"
             "    r->bytes[r->head++ % r->size] = byte;\n    return true;\n}\n\n"
             "bool ring_get(ring *r, unsigned char *byte) {\n"},
    {"chat",
     "User: My tomato plants have yellow leaves at the bottom. Is that bad?\n"
     "Assistant: Often it isn't. The oldest leaves turn yellow first when a plant moves its nitrogen to the new ones. "
     "Have you fed them this month?\n"
     "User: No, I only water them every evening.\n"
     "Assistant:"},
    {"repetitive", "Line 1: the red lamp is on, the green lamp is off, the door is closed.\n"
                   "Line 2: the red lamp is on, the green lamp is off, the door is closed.\n"
                   "Line 3: the red lamp is on, the green lamp is off, the door is closed.\n"
                   "Line 4: the red lamp is on, the green lamp is off, the door is closed.\n"
                   "Line 5: the red lamp is on, the green lamp is off, the door is closed.\n"
                   "Line 6:"},
    {"hard",
     "Words drawn from a hat, none of which has anything to do with the next: gravel, seventeen, hyacinth, cobalt, "
     "Wednesday, ladle, isotope, fjord, whisper, tariff, marzipan, oblique, lantern, 0.0413, pelican, quorum, thistle, "
     "brake,"},
};

static void add(fr_bench_prompts *prompts, const char *class, size_t length, char *bytes, size_t size) {
    fr_bench_prompt_text *text = &prompts->texts[prompts->count++];
    *text = (fr_bench_prompt_text){.bytes = bytes, .length = size};
    snprintf(text->class, sizeof text->class, "%.*s", (int)length, class);
}

static fr_status add_own(fr_bench_prompts *prompts) {
    size_t count = sizeof own / sizeof *own;
    prompts->texts = calloc(count, sizeof *prompts->texts);
    if (!prompts->texts) return fr_fail_memory("prompts", count * sizeof *prompts->texts);
    for (size_t i = 0; i < count; i++) {
        char *bytes = strdup(own[i].text);
        if (!bytes) return fr_fail_memory("prompt", strlen(own[i].text));
        add(prompts, own[i].class, strlen(own[i].class), bytes, strlen(bytes));
    }
    return FR_OK;
}

static fr_status read_file(const char *path, char **bytes, size_t *size) {
    FILE *file = fopen(path, "rb");
    *bytes = file ? malloc(LONGEST + 1) : NULL;
    *size = *bytes ? fread(*bytes, 1, LONGEST + 1, file) : 0;
    bool failed = !file || !*bytes || ferror(file);
    if (file) fclose(file);
    if (failed) return fr_fail(FR_INPUT, "%s: can't be read", path);
    if (*size == 0) return fr_fail(FR_INPUT, "%s: an empty prompt", path);
    if (*size > LONGEST) return fr_fail(FR_INPUT, "%s: a prompt of more than %zu bytes", path, LONGEST);
    return FR_OK;
}

static fr_status add_file(fr_bench_prompts *prompts, const char *folder, const char *name) {
    char *bytes = NULL, *path = fr_path_join(folder, name);
    size_t size;
    if (!path) return fr_fail_memory("path", strlen(folder) + strlen(name));
    fr_status status = read_file(path, &bytes, &size);
    free(path);
    if (status == FR_OK)
        add(prompts, name, strcspn(name, "-."), bytes, size);
    else
        free(bytes);
    return status;
}

static int is_text(const struct dirent *entry) {
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 4 && strcmp(entry->d_name + length - 4, ".txt") == 0;
}

static fr_status add_files(fr_bench_prompts *prompts, const char *folder) {
    struct dirent **entries;
    fr_status status = FR_OK;
    int count = scandir(folder, &entries, is_text, alphasort);
    if (count < 0) return fr_fail(FR_INPUT, "%s: no such folder of prompts", folder);
    if (count == 0)
        status = fr_fail(FR_INPUT, "%s: has no prompts CLASS.txt or CLASS-NAME.txt", folder);
    else if (!(prompts->texts = calloc((size_t)count, sizeof *prompts->texts)))
        status = fr_fail_memory("prompts", (size_t)count * sizeof *prompts->texts);
    for (int i = 0; i < count; i++) {
        if (status == FR_OK) status = add_file(prompts, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return status;
}

fr_status fr_bench_prompts_open(const char *folder, fr_bench_prompts *prompts) {
    *prompts = (fr_bench_prompts){0};
    return folder ? add_files(prompts, folder) : add_own(prompts);
}

void fr_bench_prompts_close(fr_bench_prompts *prompts) {
    for (size_t i = 0; i < prompts->count; i++) free(prompts->texts[i].bytes);
    free(prompts->texts);
    *prompts = (fr_bench_prompts){0};
}

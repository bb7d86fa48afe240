/* Writes each note only once (notes.h). */
#include "tools/serve/notes.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

enum { NOTES_MAX = 128, LINE_BYTES_MAX = 320 };

static struct {
    pthread_mutex_t lock;
    bool begun, json;
    uint64_t said[NOTES_MAX]; /* hashes of the lines that were written */
    size_t count;
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

void fr_notes_begin(bool json) {
    pthread_mutex_lock(&notes.lock);
    notes.begun = true;
    notes.json = json;
    pthread_mutex_unlock(&notes.lock);
}

/* Hashes a line by FNV-1a. If two different lines had the same hash, the second line would not be written. That would
 * do no harm. */
static uint64_t hash_of(const char *line) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *line; line++) hash = (hash ^ (unsigned char)*line) * 0x100000001b3u;
    return hash;
}

/* Returns true if no line with this hash was written before, and remembers the hash. Returns false if there is no room
 * to remember it. The caller must hold the lock. */
static bool is_new(uint64_t hash) {
    size_t i = 0;
    while (i < notes.count && notes.said[i] != hash) i++;
    if (i < notes.count || notes.count == NOTES_MAX) return false;
    notes.said[notes.count++] = hash;
    return true;
}

static void say_json(const char *line) {
    json_t *object = json_object();
    fr_json_put(object, "note", fr_json_bytes(line, strlen(line)));
    char *text = fr_json_line(object);
    fprintf(stderr, "%s\n", text);
    free(text);
    json_decref(object);
}

void fr_notes_say(const char *format, ...) {
    char line[LINE_BYTES_MAX];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    pthread_mutex_lock(&notes.lock);
    bool says = notes.begun && is_new(hash_of(line));
    pthread_mutex_unlock(&notes.lock);
    if (says && notes.json)
        say_json(line);
    else if (says)
        fr_note("%s (said once)", line);
}

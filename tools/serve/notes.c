/* Lines that are said once (notes.h). */
#include "tools/serve/notes.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/output.h"

enum { NOTES_MOST = 128, LINE_MOST = 320 };

static struct {
    pthread_mutex_t lock;
    bool begun;
    uint64_t said[NOTES_MOST]; /* hashes of lines */
    size_t count;
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

void fr_notes_begin(void) {
    pthread_mutex_lock(&notes.lock);
    notes.begun = true;
    pthread_mutex_unlock(&notes.lock);
}

/* FNV-1a: two lines of one hash cost no more than that the second is not said. */
static uint64_t hash_of(const char *line) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *line; line++) hash = (hash ^ (unsigned char)*line) * 0x100000001b3u;
    return hash;
}

/* Under the lock. */
static bool is_new(uint64_t hash) {
    size_t i = 0;
    while (i < notes.count && notes.said[i] != hash) i++;
    if (i < notes.count || notes.count == NOTES_MOST) return false;
    notes.said[notes.count++] = hash;
    return true;
}

void fr_notes_say(const char *format, ...) {
    char line[LINE_MOST];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    pthread_mutex_lock(&notes.lock);
    bool says = notes.begun && is_new(hash_of(line));
    pthread_mutex_unlock(&notes.lock);
    if (says) fr_note("%s (said once)", line);
}

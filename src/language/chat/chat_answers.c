/* Keeps a few sets of answers. Each set is found by the variables with which the template was rendered
 * (chat_answers.h). */
#include "src/language/chat/chat_answers.h"

#include <stdlib.h>
#include <string.h>

#define VARIABLES_MAX ((size_t)2048) /* limit on the bytes of variables; for longer ones no answers are kept */

bool fr_chat_answers_find(const fr_chat_answers *answers, const char *question, int *answer) {
    for (size_t i = 0; i < answers->count; i++) {
        if (strcmp(answers->items[i].question, question) != 0) continue;
        *answer = answers->items[i].answer;
        return true;
    }
    return false;
}

void fr_chat_answers_add(fr_chat_answers *answers, const char *question, int answer) {
    size_t length = strlen(question);
    if (length >= FR_QUESTION_MAX || answers->count == FR_ANSWERS_MAX) return;
    memcpy(answers->items[answers->count].question, question, length + 1);
    answers->items[answers->count++].answer = answer;
}

void fr_kept_answers_open(fr_kept_answers *kept) {
    *kept = (fr_kept_answers){0};
    pthread_mutex_init(&kept->mutex, NULL);
}

void fr_kept_answers_close(fr_kept_answers *kept) {
    for (size_t i = 0; i < FR_KEPT_MAX; i++) free(kept->places[i].variables);
    pthread_mutex_destroy(&kept->mutex);
}

/* Writes the variables as JSON text, which is the key of their answers. NULL: the text is too long, or memory ran
 * out. */
static char *name_variables(const json_t *variables) {
    char *text = json_dumps(variables, JSON_SORT_KEYS | JSON_COMPACT);
    if (!text || strlen(text) <= VARIABLES_MAX) return text;
    free(text);
    return NULL;
}

/* Finds the entry for these variables; FR_KEPT_MAX if there is none. */
static size_t find_place(const fr_kept_answers *kept, const char *name) {
    size_t at = 0;
    while (at < FR_KEPT_MAX && !(kept->places[at].variables && strcmp(kept->places[at].variables, name) == 0)) at++;
    return at;
}

void fr_kept_answers_get(fr_kept_answers *kept, const json_t *variables, fr_chat_answers *answers) {
    char *name = name_variables(variables);
    answers->count = 0;
    if (!name) return;
    pthread_mutex_lock(&kept->mutex);
    size_t at = find_place(kept, name);
    if (at < FR_KEPT_MAX) *answers = kept->places[at].answers;
    pthread_mutex_unlock(&kept->mutex);
    free(name);
}

void fr_kept_answers_put(fr_kept_answers *kept, const json_t *variables, const fr_chat_answers *answers) {
    char *name = answers->count ? name_variables(variables) : NULL;
    if (!name) return;
    pthread_mutex_lock(&kept->mutex);
    size_t at = find_place(kept, name);
    if (at == FR_KEPT_MAX) {
        at = kept->next;
        kept->next = (kept->next + 1) % FR_KEPT_MAX;
    }
    free(kept->places[at].variables);
    kept->places[at].variables = name;
    kept->places[at].answers = *answers;
    pthread_mutex_unlock(&kept->mutex);
}

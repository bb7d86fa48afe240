/* Reads files of tasks whose answer is chosen among several texts, in the form that llama-perplexity reads.
 *
 * In: a file's bytes. Out: the tasks one by one, each with the texts of its choices in parts. */
#ifndef FR_TOOLS_CLI_TASK_FILES_H
#define FR_TOOLS_CLI_TASK_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum { FR_TASK_CHOICES = 100 };

/* A range of bytes in the file's own memory. */
typedef struct fr_task_text {
    char *bytes;
    size_t length;
} fr_task_text;

/* A task. The text of a choice is `before`, `joint`, `word` and `after`, joined in this order. */
typedef struct fr_task {
    const char *joint; /* a blank, or "" */
    fr_task_text before, word[FR_TASK_CHOICES], after;
    bool right[FR_TASK_CHOICES];
    size_t count; /* number of choices, at least 1 */
} fr_task;

/* Takes the next task from the file. NULL: the task was well formed; or, if its count is 0, the file has no more
 * tasks. Otherwise gives the text of the fault. */
typedef const char *fr_task_take(fr_task_text *file, fr_task *task);

/* Reads a task of six lines: the context, the index of the right ending, four endings. */
fr_task_take fr_task_take_hellaswag;

/* Reads a task of one line of CSV: its index, a sentence with a _, two words for the _, 1 or 2. Fields are unquoted in
 * place. */
fr_task_take fr_task_take_winogrande;

/* Reads a binary file: numbers have 32 bits, and texts follow their lengths. The file begins with the number of tasks
 * and the position of each. A task is a question, answers and their labels, and another list of these, which is
 * skipped. */
const char *fr_task_take_head(fr_task_text *file, size_t *count);
fr_task_take fr_task_take_answers;

#endif

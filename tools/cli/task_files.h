/* Files of tasks whose answer is chosen among several texts, laid out as llama-perplexity reads them.
 *
 * In: a file's bytes. Out: task after task, the texts of its choices in parts. */
#ifndef FR_TOOLS_CLI_TASK_FILES_H
#define FR_TOOLS_CLI_TASK_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum { FR_TASK_CHOICES = 100 };

/* Bytes in the file's own memory. */
typedef struct fr_task_text {
    char *bytes;
    size_t length;
} fr_task_text;

/* A choice's text is before, joint, word and after, one behind the other. */
typedef struct fr_task {
    const char *joint; /* a blank or nothing */
    fr_task_text before, word[FR_TASK_CHOICES], after;
    bool right[FR_TASK_CHOICES];
    size_t count; /* of choices, 1 or more */
} fr_task;

/* Takes the next task off the file. NULL: it was well formed, or the file has no more and count is 0; else what is
 * wrong with it. */
typedef const char *fr_task_take(fr_task_text *file, fr_task *task);

/* Six lines a task: the context, the index of the right ending, four endings. */
fr_task_take fr_task_take_hellaswag;

/* A line of CSV a task: its index, a sentence with a _, two words for the _, 1 or 2. Fields are unquoted in place. */
fr_task_take fr_task_take_winogrande;

/* Numbers are of 32 bits, texts stand behind their lengths. The file's head is the number of tasks and where each
 * begins, and they follow each other: a question, answers and their labels, and another list of these, which is passed
 * over. */
const char *fr_task_take_head(fr_task_text *file, size_t *count);
fr_task_take fr_task_take_answers;

#endif

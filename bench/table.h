/* Prints measurements as tables, for people and for programs: markdown, CSV, JSON, a JSON object on each line, or SQL.
 *
 * In: facts of the run (the machine, the model), then tables, line by line, cell by cell. Out: in markdown, the facts
 * once and each table under its title. In the other forms each line has every fact and the name of its table, so that
 * it can be read without the other lines. JSON is one array of such objects, CSV begins each table with a line of
 * names, and SQL creates a table forerun_NAME before its first line. The caller must check by ferror that the stream
 * was written. */
#ifndef FR_BENCH_TABLE_H
#define FR_BENCH_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "bench/sample.h"

typedef enum fr_bench_form { FR_BENCH_MD, FR_BENCH_CSV, FR_BENCH_JSON, FR_BENCH_JSONL, FR_BENCH_SQL } fr_bench_form;

typedef struct fr_bench_column {
    const char *name; /* the column's name for programs; NULL if only people get the column */
    const char *head; /* the column's heading for people, with the unit; NULL if only programs get the column */
    int digits;       /* digits after the decimal point for people; programs get nine significant digits */
} fr_bench_column;

typedef struct fr_bench_report fr_bench_report;

/* fr_bench_report_open opens a report, or returns NULL if there is not enough memory. fr_bench_report_close writes the
 * end of the output and frees the report. */
fr_bench_report *fr_bench_report_open(FILE *out, fr_bench_form form);
void fr_bench_report_close(fr_bench_report *report);

/* Each adds a fact; call them before the first table. Text is copied; name and head are as in fr_bench_column. A number
 * that is not finite is null for programs, and is omitted for people. */
void fr_bench_fact_text(fr_bench_report *report, const char *name, const char *head, const char *value);
void fr_bench_fact_number(fr_bench_report *report, const char *name, const char *head, double value);

/* Begins a table. name: for programs; title: for people. The columns must stay valid until the table ends, which is at
 * the next table or at the report's end. */
void fr_bench_table(fr_bench_report *report, const char *name, const char *title, const fr_bench_column *columns,
                    size_t count);

/* Each adds the next cell of the current line; the cell of the last column ends the line. A number that is not finite,
 * or a NULL text, is an empty cell, and null in JSON. */
void fr_bench_text(fr_bench_report *report, const char *value);
void fr_bench_number(fr_bench_report *report, double value);
/* Adds a value that was computed from a figure. If the figure is doubtful, people see a ? after the value. Programs see
 * the spread instead, which has a column of its own. */
void fr_bench_from(fr_bench_report *report, const fr_bench_figure *figure, double value, double max_spread);
void fr_bench_numbers(fr_bench_report *report, const double *values, size_t count);

/* Adds a line below the table, for people only. */
void fr_bench_remark(fr_bench_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

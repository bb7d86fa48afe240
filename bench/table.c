/* Prints tables of measurements (table.h). */
#include "bench/table.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS JSON_REAL_PRECISION(9)

struct fr_bench_report {
    FILE *out;
    fr_bench_form form;
    const char *table;
    const fr_bench_column *columns;
    size_t count, filled;
    json_t *facts; /* a JSON object with the facts; each line of a table begins as a copy of it */
    json_t *row;
    size_t rows; /* number of lines that were written so far, in all tables */
    size_t table_rows;
};

/* --------------------------------------------------------------------------------------------------------- a report */

fr_bench_report *fr_bench_report_open(FILE *out, fr_bench_form form) {
    fr_bench_report *report = calloc(1, sizeof *report);
    if (!report) return NULL;
    *report = (fr_bench_report){.out = out, .form = form, .facts = json_object(), .row = json_object()};
    if (form == FR_BENCH_JSON) fprintf(out, "[");
    return report;
}

void fr_bench_report_close(fr_bench_report *report) {
    if (report->form == FR_BENCH_JSON) fprintf(report->out, "\n]\n");
    json_decref(report->facts);
    json_decref(report->row);
    free(report);
}

static void add_fact(fr_bench_report *report, const char *name, json_t *value) {
    if (name) json_object_set(report->facts, name, value);
    json_decref(value);
}

void fr_bench_fact_text(fr_bench_report *report, const char *name, const char *head, const char *value) {
    if (head && report->form == FR_BENCH_MD) fprintf(report->out, "- %s: %s\n", head, value);
    add_fact(report, name, json_string(value));
}

/* Makes a JSON number. Whole numbers are written without a decimal point. */
static json_t *json_of(double value) {
    if (!isfinite(value)) return json_null();
    return value == rint(value) && fabs(value) < 0x1p53 ? json_integer((json_int_t)value) : json_real(value);
}

void fr_bench_fact_number(fr_bench_report *report, const char *name, const char *head, double value) {
    if (head && isfinite(value) && report->form == FR_BENCH_MD) fprintf(report->out, "- %s: %.6g\n", head, value);
    add_fact(report, name, json_of(value));
}

/* --------------------------------------------------------------------------------------------------------- markdown */

static void print_heads(const fr_bench_report *report, const char *title) {
    fprintf(report->out, "\n## %s\n\n|", title);
    for (size_t i = 0; i < report->count; i++)
        if (report->columns[i].head) fprintf(report->out, " %s |", report->columns[i].head);
    fprintf(report->out, "\n|");
    for (size_t i = 0; i < report->count; i++)
        if (report->columns[i].head) fprintf(report->out, " --- |");
    fprintf(report->out, "\n");
}

/* Prints a cell in the form for people. If the column has no heading, it is for programs only, and the cell is not
 * printed. */
static void print_cell(const fr_bench_report *report, const char *text) {
    if (report->filled == 0) fprintf(report->out, "|");
    if (report->columns[report->filled].head) fprintf(report->out, " %s |", text);
    if (report->filled + 1 == report->count) fprintf(report->out, "\n");
}

/* -------------------------------------------------------------------------------------------------------------- CSV */

/* Prints a text between quotes. Quotes inside the text are doubled, as CSV (RFC 4180) and SQL need it. */
static void print_between(FILE *out, const char *text, char quote) {
    fputc(quote, out);
    for (; *text; text++) {
        if (*text == quote) fputc(quote, out);
        fputc(*text, out);
    }
    fputc(quote, out);
}

static void print_quoted(FILE *out, const char *text) {
    print_between(out, text, '"');
}

static void print_value(FILE *out, const json_t *value) {
    if (json_is_string(value)) {
        print_quoted(out, json_string_value(value));
    } else if (!json_is_null(value)) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | DIGITS);
        if (json_is_array(value))
            print_quoted(out, text ? text : "");
        else
            fprintf(out, "%s", text ? text : "");
        free(text);
    }
}

static void print_csv(const fr_bench_report *report, bool names) {
    const char *key, *comma = "";
    json_t *value;
    json_object_foreach (report->row, key, value) {
        fprintf(report->out, "%s", comma);
        comma = ",";
        if (names)
            print_quoted(report->out, key);
        else
            print_value(report->out, value);
    }
    fprintf(report->out, "\n");
}

/* -------------------------------------------------------------------------------------------------------------- SQL */

/* Prints the names of the columns. If `types` is true, for SQL, each name is followed by the type of the column's value
 * in the table's first line. */
static void print_columns(const fr_bench_report *report, bool types) {
    const char *key, *comma = "";
    json_t *value;
    json_object_foreach (report->row, key, value) {
        fputs(comma, report->out);
        print_quoted(report->out, key);
        if (types) fputs(json_is_string(value) || json_is_array(value) ? " TEXT" : " REAL", report->out);
        comma = ", ";
    }
}

static void print_sql(const fr_bench_report *report, bool first) {
    const char *key, *comma = "";
    json_t *value;
    if (first) {
        fprintf(report->out, "CREATE TABLE IF NOT EXISTS \"forerun_%s\" (", report->table);
        print_columns(report, true);
        fputs(");\n", report->out);
    }
    fprintf(report->out, "INSERT INTO \"forerun_%s\" (", report->table);
    print_columns(report, false);
    fputs(") VALUES (", report->out);
    json_object_foreach (report->row, key, value) {
        char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | DIGITS);
        fputs(comma, report->out);
        if (json_is_null(value))
            fputs("NULL", report->out);
        else if (json_is_number(value))
            fputs(text ? text : "NULL", report->out);
        else
            print_between(report->out, text ? text : json_string_value(value), '\'');
        free(text);
        comma = ", ";
    }
    fputs(");\n", report->out);
}

/* ----------------------------------------------------------------------------------------------------- lines, cells */

void fr_bench_table(fr_bench_report *report, const char *name, const char *title, const fr_bench_column *columns,
                    size_t count) {
    report->table = name;
    report->columns = columns;
    report->count = count;
    report->filled = report->table_rows = 0;
    if (report->form == FR_BENCH_MD) print_heads(report, title);
    if (report->form != FR_BENCH_CSV) return;
    if (report->rows > 0) fprintf(report->out, "\n");
    json_object_clear(report->row);
    json_object_update(report->row, report->facts);
    json_object_set_new(report->row, "table", json_null());
    for (size_t i = 0; i < count; i++)
        if (columns[i].name) json_object_set_new(report->row, columns[i].name, json_null());
    print_csv(report, true);
}

static void end_row(fr_bench_report *report) {
    if (report->form == FR_BENCH_CSV) print_csv(report, false);
    if (report->form == FR_BENCH_SQL) print_sql(report, report->table_rows == 0);
    report->table_rows++;
    if (report->form == FR_BENCH_JSON) fprintf(report->out, report->rows ? ",\n  " : "\n  ");
    if (report->form == FR_BENCH_JSON || report->form == FR_BENCH_JSONL) json_dumpf(report->row, report->out, DIGITS);
    if (report->form == FR_BENCH_JSONL) fprintf(report->out, "\n");
    fflush(report->out);
    report->rows++;
    report->filled = 0;
}

/* Adds a cell. The report takes over the reference to `value`. */
static void put_cell(fr_bench_report *report, const char *text, json_t *value) {
    if (report->form == FR_BENCH_MD) print_cell(report, text);
    if (report->filled == 0) {
        json_object_clear(report->row);
        json_object_update(report->row, report->facts);
        json_object_set_new(report->row, "table", json_string(report->table));
    }
    const char *name = report->columns[report->filled++].name;
    if (name) json_object_set(report->row, name, value);
    json_decref(value);
    if (report->filled == report->count) end_row(report);
}

void fr_bench_text(fr_bench_report *report, const char *value) {
    put_cell(report, value ? value : "", value ? json_string(value) : json_null());
}

static void put_number(fr_bench_report *report, double value, const char *mark) {
    char text[64] = "";
    if (isfinite(value)) snprintf(text, sizeof text, "%.*f%s", report->columns[report->filled].digits, value, mark);
    put_cell(report, text, json_of(value));
}

void fr_bench_number(fr_bench_report *report, double value) {
    put_number(report, value, "");
}

void fr_bench_from(fr_bench_report *report, const fr_bench_figure *figure, double value, double max_spread) {
    put_number(report, value, fr_bench_is_doubtful(figure, max_spread) ? " ?" : "");
}

void fr_bench_numbers(fr_bench_report *report, const double *values, size_t count) {
    char text[256] = "";
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.*f", i ? " " : "", report->columns[report->filled].digits,
                 values[i]);
        json_array_append_new(array, json_of(values[i]));
    }
    put_cell(report, text, array);
}

void fr_bench_remark(fr_bench_report *report, const char *format, ...) {
    if (report->form != FR_BENCH_MD) return;
    va_list args;
    va_start(args, format);
    fprintf(report->out, "\n");
    vfprintf(report->out, format, args);
    fprintf(report->out, "\n");
    va_end(args);
}

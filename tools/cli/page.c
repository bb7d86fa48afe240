/* Writes the page of a trace, apart from its plots (page.h). */
#include "tools/cli/page.h"

#include <math.h>
#include <string.h>

/* The most pieces of text on a page. More pieces would make browsers slow. */
enum { PIECES_MAX = 20000 };

void fr_page_text(const char *bytes, size_t length, FILE *out) {
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '&')
            fputs("&amp;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else if (c == '\'')
            fputs("&#39;", out);
        else if (c == 0x7f)
            fputs("&#x2421;", out);
        else if (c < ' ' && c != '\n' && c != '\t')
            fprintf(out, "&#x%x;", 0x2400u + c);
        else
            putc(c, out);
    }
}

/* ------------------------------------------------------------------------------------------------------------ facts */

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void put_string(const char *text, FILE *out) {
    fr_page_text(text, strlen(text), out);
}

/* Gives a path's last component. */
static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Writes a member of the trace's first line, with one text before it and one after it. If the line does not have the
 * member, nothing is written. */
static void put_fact(const json_t *begin, const char *key, const char *before, const char *after, FILE *out) {
    const json_t *value = json_object_get(begin, key);
    if (json_is_string(value)) {
        fprintf(out, "%s", before);
        put_string(json_string_value(value), out);
        fprintf(out, "%s", after);
    } else if (json_is_integer(value))
        fprintf(out, "%s%lld%s", before, (long long)json_integer_value(value), after);
}

static void put_head(const fr_record *record, FILE *out) {
    const char *model = base_name(text_of(record->begin, "model"));
    fprintf(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                 "<meta http-equiv=\"Content-Security-Policy\" "
                 "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>");
    put_string(model, out);
    fprintf(out,
            " &#183; forerun trace</title>\n<style>\n%s</style></head>\n<body><main>\n<header><p class=\"over\">"
            "forerun trace</p><h1>",
            fr_page_style);
    put_string(model, out);
    fprintf(out, "</h1>\n<p class=\"facts\">");
    put_fact(record->begin, "drafter", "drafter ", " &#183; ", out);
    put_fact(record->begin, "method", "method ", " &#183; ", out);
    put_fact(record->begin, "draft_max", "", " drafts at most &#183; ", out);
    put_fact(record->begin, "threads", "", " threads &#183; ", out);
    put_fact(record->begin, "isa", "", " &#183; ", out);
    put_fact(record->begin, "context", "context ", " &#183; ", out);
    put_fact(record->begin, "version", "forerun ", "", out);
    fprintf(out, "</p>\n");
    if (record->cut_off)
        fprintf(out, "<p class=\"warn\">The trace was cut off: its last line is not complete and is left out.</p>\n");
    fprintf(out, "</header>\n");
}

/* ------------------------------------------------------------------------------------------------------------ tiles */

static void put_tile(FILE *out, double part, double whole, const char *format, const char *says, double n,
                     const char *of_what) {
    fprintf(out, "<div class=\"tile\"><b>");
    if (whole > 0)
        fprintf(out, format, part / whole);
    else
        fprintf(out, "&#8211;");
    fprintf(out, "</b><span>%s<br>n = %.0f %s</span></div>\n", says, n, of_what);
}

static void put_tiles(const fr_sums *sums, FILE *out) {
    fprintf(out, "<section class=\"tiles\">\n");
    put_tile(out, sums->tokens, sums->seconds, "%.1f", "tokens a second, after the first", sums->tokens, "tokens");
    put_tile(out, sums->tokens, sums->calls, "%.2f", "tokens a target call", sums->calls, "calls");
    put_tile(out, 100 * sums->accepted, sums->drafted, "%.1f%%", "of the drafts accepted", sums->drafted, "drafts");
    put_tile(out, 100 * sums->draft, sums->seconds, "%.1f%%", "of the time spent drafting", sums->drafting, "rounds");
    fprintf(out, "</section>\n");
}

/* ------------------------------------------------------------------------------------------------------------- text */

static const char *const classes[FR_ORIGIN_COUNT] = {"p", "d", "t", "c"};

static void put_tip(const fr_record *record, const fr_record_piece *piece, FILE *out) {
    if (piece->origin == FR_ORIGIN_PROMPT) return; /* pieces of the prompt belong to no round */
    const fr_record_round *round = &record->rounds[piece->round];
    if (piece->index >= round->count) return;
    fprintf(out, " title=\"round %zu, ", piece->round);
    if (piece->origin == FR_ORIGIN_TARGET)
        fprintf(out, round->rows ? "the target's own" : "predicted by the prompt's forward");
    else
        fprintf(out, piece->origin == FR_ORIGIN_DRAFT ? "draft %zu of %zu stood" : "in place of draft %zu of %zu",
                piece->index + 1, round->drafted);
    if (!isnan(round->margins[piece->index])) fprintf(out, ", margin %.3f", round->margins[piece->index]);
    fprintf(out, "\"");
}

static void put_text(const fr_record *record, FILE *out) {
    if (record->piece_count == 0) return;
    size_t shown = record->piece_count < PIECES_MAX ? record->piece_count : PIECES_MAX;
    fprintf(out, "<h2>The text</h2>\n<p class=\"legend\"><span class=\"p\">prompt</span> "
                 "<span class=\"d\">accepted draft</span> <span class=\"t\">the target's own</span> "
                 "<span class=\"c\">in place of a rejected draft</span></p>\n<div class=\"text\">");
    for (size_t i = 0; i < shown; i++) {
        const fr_record_piece *piece = &record->pieces[i];
        if (piece->length == 0) continue;
        fprintf(out, "<span class=\"%s\"", classes[piece->origin]);
        put_tip(record, piece, out);
        putc('>', out);
        fr_page_text(record->text + piece->begin, piece->length, out);
        fprintf(out, "</span>");
    }
    fprintf(out, "</div>\n");
    if (shown < record->piece_count)
        fprintf(out, "<p class=\"foot\">The first %zu of %zu tokens.</p>\n", shown, record->piece_count);
}

/* ----------------------------------------------------------------------------------------------------------- tables */

static void put_row(FILE *out, const char *name, const char *format, double value) {
    fprintf(out, "<tr><td>%s</td><td>", name);
    fprintf(out, format, value);
    fprintf(out, "</td></tr>\n");
}

static void put_counts(const fr_record *record, const fr_sums *sums, FILE *out) {
    fprintf(out, "<div class=\"table\"><table>\n");
    put_row(out, "prompt tokens", "%.0f", (double)record->prompt_tokens);
    put_row(out, "tokens after a prompt's own", "%.0f", sums->tokens);
    put_row(out, "target calls", "%.0f", sums->calls);
    put_row(out, "calls with drafts", "%.0f", sums->drafting);
    put_row(out, "drafted", "%.0f", sums->drafted);
    put_row(out, "accepted", "%.0f", sums->accepted);
    put_row(out, "rejected", "%.0f", sums->drafted - sums->accepted);
    put_row(out, "prompt, s", "%.3f", record->prompt_seconds);
    put_row(out, "generation, s", "%.3f", sums->seconds);
    fprintf(out, "</table></div>\n");
}

static void put_depths(const fr_sums *sums, FILE *out) {
    if (sums->drafted == 0) return;
    fprintf(out, "<div class=\"table\"><table>\n<tr><th>depth</th><th>drafted</th><th>compared</th><th>accepted</th>"
                 "<th>rejected</th></tr>\n");
    for (size_t d = 0; d < FR_STEP_MAX - 1 && sums->at_depth[d][FR_DEPTH_DRAFTED] > 0; d++) {
        fprintf(out, "<tr><td>%zu</td>", d + 1);
        for (int stat = 0; stat < FR_DEPTH_COUNT; stat++) fprintf(out, "<td>%.0f</td>", sums->at_depth[d][stat]);
        fprintf(out, "</tr>\n");
    }
    fprintf(out, "</table></div>\n");
}

static void put_memory(const fr_record *record, FILE *out) {
    static const char *const rows[][2] = {
        {"target_weights", "target's weights, MB"},
        {"draft_weights", "drafter's weights, MB"},
        {"target_kv", "target's KV, MB"},
        {"draft_kv", "drafter's KV, MB"},
        {"scratch", "scratch, MB"},
        {"peak", "peak of the process, MB"},
    };
    const json_t *memory = json_object_get(record->stats, "memory");
    if (!json_is_object(memory)) return;
    fprintf(out, "<div class=\"table\"><table>\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        put_row(out, rows[i][1], "%.2f", json_number_value(json_object_get(memory, rows[i][0])) / 1e6);
    fprintf(out, "</table></div>\n");
}

void fr_page_write(const fr_record *record, FILE *out) {
    fr_sums sums = fr_record_sums(record, 0, record->round_count);
    put_head(record, out);
    put_tiles(&sums, out);
    fprintf(out, "<h2>Speculation</h2>\n<section class=\"plots\">\n");
    fr_page_plots(record, out);
    fprintf(out, "</section>\n");
    put_text(record, out);
    fprintf(out, "<h2>Figures</h2>\n<section class=\"tables\">\n");
    put_counts(record, &sums, out);
    put_depths(&sums, out);
    put_memory(record, out);
    fprintf(out, "</section>\n</main></body></html>\n");
}

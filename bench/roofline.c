/* Draws rooflines as SVG (roofline.h). */
#include "bench/roofline.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 960, HEIGHT = 600, LEFT = 76, RIGHT = 24, TOP = 48, BOTTOM = 56, CLASSES = 8 };

/* Colours that people with colour blindness can distinguish (Okabe and Ito). */
static const char *const colours[CLASSES] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                             "#e69f00", "#56b4e9", "#666666", "#000000"};

/* Describes a mark of the picture. A mark is a measured point or a roof; `series` is "" for a roof. */
typedef struct mark {
    char class[24], series[128], text[160];
    double x, y;
} mark;

struct fr_bench_roofline {
    char title[128];
    double bandwidth;
    mark *marks;
    size_t count, capacity;
};

fr_bench_roofline *fr_bench_roofline_open(const char *title, double bandwidth) {
    fr_bench_roofline *roofline = calloc(1, sizeof *roofline);
    if (!roofline) return NULL;
    snprintf(roofline->title, sizeof roofline->title, "%s", title);
    roofline->bandwidth = bandwidth;
    return roofline;
}

void fr_bench_roofline_close(fr_bench_roofline *roofline) {
    if (!roofline) return;
    free(roofline->marks);
    free(roofline);
}

void fr_bench_roofline_point(fr_bench_roofline *r, const char *class, const char *series, const char *tip,
                             double macs_per_byte, double macs) {
    if (r->count == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 64;
        mark *marks = realloc(r->marks, capacity * sizeof *marks);
        if (!marks) return;
        r->marks = marks;
        r->capacity = capacity;
    }
    mark *m = &r->marks[r->count++];
    *m = (mark){.x = macs_per_byte, .y = macs};
    snprintf(m->class, sizeof m->class, "%s", class);
    snprintf(m->series, sizeof m->series, "%s", series);
    snprintf(m->text, sizeof m->text, "%s", tip);
}

void fr_bench_roofline_peak(fr_bench_roofline *r, const char *class, const char *name, double macs) {
    /* a roof's mark is the point at which the roof meets the line of the bandwidth */
    fr_bench_roofline_point(r, class, "", name, macs / r->bandwidth, macs);
}

/* ---------------------------------------------------------------------------------------------------------- drawing */

typedef struct frame {
    FILE *out;
    double x_low, x_high, y_low, y_high;
} frame;

static double at_x(const frame *f, double x) {
    return LEFT + log(x / f->x_low) / log(f->x_high / f->x_low) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const frame *f, double y) {
    return HEIGHT - BOTTOM - log(y / f->y_low) / log(f->y_high / f->y_low) * (HEIGHT - TOP - BOTTOM);
}

/* Chooses logarithmic axes on which all marks fit. The x axis ends at powers of two, and the y axis at powers of
 * ten. */
static frame frame_of(const fr_bench_roofline *r, FILE *out) {
    frame f = {out, 0.5, 8, 1e9, 1e10};
    for (size_t i = 0; i < r->count; i++) {
        f.x_low = fmin(f.x_low, exp2(floor(log2(r->marks[i].x))));
        f.x_high = fmax(f.x_high, exp2(ceil(log2(r->marks[i].x) + 0.5)));
        f.y_low = fmin(f.y_low, pow(10, floor(log10(r->marks[i].y))));
        f.y_high = fmax(f.y_high, pow(10, ceil(log10(r->marks[i].y) + 0.1)));
    }
    return f;
}

static void draw_grid(const frame *f) {
    for (double x = f->x_low; x <= f->x_high * 1.01; x *= 2) {
        fprintf(f->out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>", at_x(f, x), TOP, HEIGHT - BOTTOM);
        fprintf(f->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", at_x(f, x),
                HEIGHT - BOTTOM + 18, x);
    }
    for (double power = f->y_low; power <= f->y_high * 1.01; power *= 10)
        for (int digit = 1; digit <= 5 && power * digit <= f->y_high * 1.01; digit += digit == 1 ? 1 : 3) {
            double y = at_y(f, power * digit);
            fprintf(f->out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, y, WIDTH - RIGHT);
            fprintf(f->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8, y + 4,
                    power * digit * 1e-9);
        }
}

static void draw_axes(const frame *f, const char *title) {
    fprintf(f->out, "<text x=\"%d\" y=\"26\" class=\"title\">%s</text>\n", LEFT, title);
    fprintf(f->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">multiply-adds for each byte from memory</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12);
    fprintf(f->out, "<text transform=\"translate(20 %d) rotate(-90)\" text-anchor=\"middle\">GMAC/s</text>\n",
            (TOP + HEIGHT - BOTTOM) / 2);
}

/* Gives the number of a mark's class, which decides its colour. Classes are numbered in the order in which they first
 * occur. */
static size_t class_of(const fr_bench_roofline *r, const mark *m) {
    size_t number = 0;
    for (size_t i = 0; strcmp(r->marks[i].class, m->class) != 0; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++) seen = strcmp(r->marks[k].class, r->marks[i].class) == 0;
        number += !seen;
    }
    return number % CLASSES;
}

/* Draws a roof, with its name above the line at the right end. If the name would overlap an earlier name, it moves to
 * the left. */
static void draw_peak(const frame *f, const fr_bench_roofline *r, size_t index) {
    enum { NAME_WIDTH = 160, NAME_HEIGHT = 14 };
    const mark *m = &r->marks[index];
    const char *colour = colours[class_of(r, m)];
    double y = at_y(f, m->y);
    int right = WIDTH - RIGHT - 4;
    for (size_t i = 0; i < index; i++)
        if (!*r->marks[i].series && fabs(at_y(f, r->marks[i].y) - y) < NAME_HEIGHT) right -= NAME_WIDTH;
    fprintf(f->out, "<path class=\"roof\" stroke=\"%s\" d=\"M%.1f %.1fH%d\"/>", colour, at_x(f, m->x), y,
            WIDTH - RIGHT);
    fprintf(f->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"%s\">%s, %.0f</text>\n", right, y - 4, colour,
            m->text, m->y * 1e-9);
}

static void draw_roofs(const frame *f, const fr_bench_roofline *r) {
    double most = f->x_low;
    for (size_t i = 0; i < r->count; i++) {
        if (*r->marks[i].series) continue;
        most = fmax(most, r->marks[i].x);
        draw_peak(f, r, i);
    }
    double from = fmax(f->x_low, f->y_low / r->bandwidth), to = fmin(most, f->y_high / r->bandwidth);
    fprintf(f->out, "<path class=\"roof\" stroke=\"#000\" d=\"M%.1f %.1fL%.1f %.1f\"/>", at_x(f, from),
            at_y(f, from * r->bandwidth), at_x(f, to), at_y(f, to * r->bandwidth));
    fprintf(f->out, "<text x=\"%.1f\" y=\"%.1f\">%.1f GB/s</text>\n", at_x(f, from) + 18, at_y(f, from * r->bandwidth),
            r->bandwidth * 1e-9);
}

static void draw_points(const frame *f, const fr_bench_roofline *r) {
    for (size_t i = 0; i < r->count; i++) {
        const mark *m = &r->marks[i];
        if (!*m->series) continue;
        const char *colour = colours[class_of(r, m)];
        for (size_t k = i; k-- > 0;) { /* finds the previous point of the same series */
            if (strcmp(r->marks[k].series, m->series) != 0) continue;
            fprintf(f->out, "<path class=\"join\" stroke=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>", colour,
                    at_x(f, r->marks[k].x), at_y(f, r->marks[k].y), at_x(f, m->x), at_y(f, m->y));
            break;
        }
        fprintf(f->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%s</title></circle>\n",
                at_x(f, m->x), at_y(f, m->y), colour, m->text);
    }
}

void fr_bench_roofline_write(const fr_bench_roofline *r, FILE *out) {
    frame f = frame_of(r, out);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<style>.grid{stroke:#ddd}.roof{stroke-width:2;fill:none}"
            ".join{stroke-opacity:.35}.title{font-size:16px}</style>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_grid(&f);
    draw_axes(&f, r->title);
    draw_roofs(&f, r);
    draw_points(&f, r);
    fprintf(out, "</svg>\n");
}

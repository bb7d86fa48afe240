/* Draws frames, axes and marks in SVG (plot.h). */
#include "tools/cli/plot.h"

#include <math.h>

/* The size of the drawing, and the margins for labels around its data area. */
enum { WIDTH = 380, HEIGHT = 240, LEFT = 56, RIGHT = 10, TOP = 12, BOTTOM = 56 };

static double at_x(const fr_plot *p, double x) {
    return LEFT + (x - p->x.low) / (p->x.high - p->x.low) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const fr_plot *p, double y) {
    return HEIGHT - BOTTOM - (y - p->y.low) / (p->y.high - p->y.low) * (HEIGHT - TOP - BOTTOM);
}

/* Gives a distance between ticks that divides a range into at most `most` intervals. The distance is 1, 2 or 5 times a
 * power of ten. */
static double tick_step(double range, int most) {
    static const double steps[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(range / most)));
    for (int i = 0; i < 3; i++)
        if (range / (steps[i] * power) <= most) return steps[i] * power;
    return 10 * power;
}

static void y_ticks(const fr_plot *p) {
    double step = tick_step(p->y.high - p->y.low, 5);
    for (double y = ceil(p->y.low / step) * step; y <= p->y.high * 1.0001; y += step) {
        fprintf(p->out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT,
                at_y(p, y), at_y(p, y));
        fprintf(p->out, "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%.6g%s</text>\n", LEFT - 7,
                at_y(p, y) + 4, y, p->y.suffix);
    }
}

fr_plot fr_plot_begin(FILE *out, const char *name, fr_axis x, fr_axis y) {
    fr_plot plot = {out, x, y};
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n", WIDTH, HEIGHT, name);
    y_ticks(&plot);
    fprintf(out, "<text class=\"label\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">%s</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, x.label);
    fprintf(out, "<text class=\"label\" text-anchor=\"middle\" transform=\"translate(12 %d) rotate(-90)\">%s</text>\n",
            (TOP + HEIGHT - BOTTOM) / 2, y.label);
    return plot;
}

void fr_plot_end(fr_plot *p) {
    fprintf(p->out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n</svg>\n", LEFT, WIDTH - RIGHT,
            HEIGHT - BOTTOM, HEIGHT - BOTTOM);
}

void fr_plot_x_ticks(const fr_plot *p) {
    double step = tick_step(p->x.high - p->x.low, 6);
    if (step < 1) step = 1;
    for (double x = ceil(p->x.low / step) * step; x <= p->x.high * 1.0001; x += step)
        fprintf(p->out, "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%.6g%s</text>\n", at_x(p, x),
                HEIGHT - BOTTOM + 18, x, p->x.suffix);
}

void fr_plot_x_name(const fr_plot *p, double x, const char *name, const char *under) {
    fprintf(p->out, "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%s</text>", at_x(p, x),
            HEIGHT - BOTTOM + 16, name);
    fprintf(p->out, "<text class=\"small\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%s</text>\n", at_x(p, x),
            HEIGHT - BOTTOM + 30, under);
}

void fr_plot_bar(const fr_plot *p, const char *class, double x, double width, double y, const char *tip) {
    double left = at_x(p, x - width / 2), top = at_y(p, y);
    fprintf(p->out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">", class, left, top,
            at_x(p, x + width / 2) - left, HEIGHT - BOTTOM - top);
    fprintf(p->out, "<title>%s</title></rect>\n", tip);
}

void fr_plot_whisker(const fr_plot *p, double x, double low, double high) {
    double middle = at_x(p, x), bottom = at_y(p, low), top = at_y(p, high);
    fprintf(p->out, "<path class=\"whisker\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8\"/>\n", middle, bottom, top,
            middle - 4, bottom, middle - 4, top);
}

static void points(const fr_plot *p, const double *x, const double *y, size_t count) {
    for (size_t i = 0; i < count; i++) fprintf(p->out, "%.1f,%.1f ", at_x(p, x[i]), at_y(p, y[i]));
}

void fr_plot_line(const fr_plot *p, const char *class, const double *x, const double *y, size_t count) {
    fprintf(p->out, "<polyline class=\"%s\" points=\"", class);
    points(p, x, y, count);
    fprintf(p->out, "\"/>\n");
}

void fr_plot_band(const fr_plot *p, const char *class, const double *x, const double *low, const double *high,
                  size_t count) {
    fprintf(p->out, "<polygon class=\"%s\" points=\"", class);
    points(p, x, low, count);
    for (size_t i = count; i-- > 0;) points(p, x + i, high + i, 1);
    fprintf(p->out, "\"/>\n");
}

void fr_plot_dot(const fr_plot *p, const char *class, double x, double y, const char *tip) {
    fprintf(p->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\"><title>%s</title></circle>\n", class,
            at_x(p, x), at_y(p, y), tip);
}

static void rule(const fr_plot *p, double x1, double y1, double x2, double y2) {
    fprintf(p->out, "<line class=\"rule\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x1, x2, y1, y2);
}

void fr_plot_rule_up(const fr_plot *p, double x) {
    rule(p, at_x(p, x), TOP, at_x(p, x), HEIGHT - BOTTOM);
}

void fr_plot_rule_across(const fr_plot *p, double y) {
    rule(p, LEFT, at_y(p, y), WIDTH - RIGHT, at_y(p, y));
}

void fr_wilson(double successes, double n, double *low, double *high) {
    const double z = 1.959964, share = successes / n, scale = 1 + z * z / n;
    double middle = (share + z * z / (2 * n)) / scale;
    double half = z / scale * sqrt(share * (1 - share) / n + z * z / (4 * n * n));
    *low = fmax(0, middle - half);
    *high = fmin(1, middle + half);
}

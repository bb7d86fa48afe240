/* Draws a small plot as SVG inside an HTML page: a frame with axes, and marks in the data's own units.
 *
 * Colours and fonts are classes of the page's style sheet, so that a plot follows the light or dark setting. The page
 * scales plots to its width. */
#ifndef FR_TOOLS_CLI_PLOT_H
#define FR_TOOLS_CLI_PLOT_H

#include <stddef.h>
#include <stdio.h>

typedef struct fr_axis {
    double low, high;
    const char *label;  /* name of the axis, with its unit */
    const char *suffix; /* text after each tick, such as "%", or "" */
} fr_axis;

typedef struct fr_plot {
    FILE *out;
    fr_axis x, y;
} fr_plot;

/* Begins a plot. name: its description for screen readers. The x axis has no labels at first: the caller adds either
 * numbers (fr_plot_x_ticks) or names (fr_plot_x_name). */
fr_plot fr_plot_begin(FILE *out, const char *name, fr_axis x, fr_axis y);
void fr_plot_end(fr_plot *plot);

void fr_plot_x_ticks(const fr_plot *plot);

/* Writes a name below the axis at x. under: a text that is written below the name in a smaller font; "": none. */
void fr_plot_x_name(const fr_plot *plot, double x, const char *name, const char *under);

/* Draws a bar from 0 to y. It is `width` wide, and its middle is at x. tip: the text that appears when a pointer is
 * over the bar. */
void fr_plot_bar(const fr_plot *plot, const char *class, double x, double width, double y, const char *tip);

/* Draws an interval from low to high as a vertical line at x. */
void fr_plot_whisker(const fr_plot *plot, double x, double low, double high);

/* fr_plot_line draws a line through points. fr_plot_band draws a band between two such lines. fr_plot_dot draws a point
 * with a tooltip. */
void fr_plot_line(const fr_plot *plot, const char *class, const double *x, const double *y, size_t count);
void fr_plot_band(const fr_plot *plot, const char *class, const double *x, const double *low, const double *high,
                  size_t count);
void fr_plot_dot(const fr_plot *plot, const char *class, double x, double y, const char *tip);

/* fr_plot_rule_up draws a dashed vertical line at x. fr_plot_rule_across draws a dashed horizontal line at y. */
void fr_plot_rule_up(const fr_plot *plot, double x);
void fr_plot_rule_across(const fr_plot *plot, double y);

/* Gives the 95% confidence interval of a proportion (Wilson 1927): `successes` of n trials. */
void fr_wilson(double successes, double n, double *low, double *high);

#endif

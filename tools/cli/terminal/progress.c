/* Shows a line of progress (progress.h). */
#include "tools/cli/terminal/progress.h"

#include <stdio.h>
#include <unistd.h>

fr_progress fr_progress_begin(const char *doing, bool quiet) {
    return (fr_progress){.doing = doing, .on = !quiet && isatty(STDERR_FILENO), .percent = -1};
}

bool fr_progress_show(void *context, uint64_t done, uint64_t total) {
    fr_progress *progress = context;
    int percent = total ? (int)(100.0 * (double)done / (double)total) : 100;
    if (!progress->on || percent == progress->percent) return true;
    progress->percent = percent;
    fprintf(stderr, "\r%s %3d%% of %.0f MB", progress->doing, percent, (double)total / 1e6);
    fflush(stderr);
    return true;
}

void fr_progress_count(fr_progress *progress, uint64_t done, uint64_t total, const char *things, const char *so_far) {
    if (!progress->on) return;
    progress->percent = total ? (int)(100.0 * (double)done / (double)total) : 100;
    fprintf(stderr, "\r\033[K%s %3d%% of %llu %s%s", progress->doing, progress->percent, (unsigned long long)total,
            things, so_far);
    fflush(stderr);
}

void fr_progress_end(fr_progress *progress) {
    if (progress->percent >= 0) fputs("\r\033[K", stderr);
    progress->percent = -1;
}

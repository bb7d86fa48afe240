/* Reads the calling thread's schedstat (cpu_wait.h): "nanoseconds on a CPU, nanoseconds waiting for one, time
 * slices". */
#include "base/cpu_wait.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int64_t fr_cpu_wait_nanoseconds(void) {
    char text[128];
    int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return -1;
    text[length] = '\0';
    const char *waited = strchr(text, ' ');
    return waited ? strtoll(waited, NULL, 10) : -1;
}

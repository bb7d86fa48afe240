/* The clock that time is counted with, and how much memory the process has had. */
#ifndef FR_BASE_CLOCK_H
#define FR_BASE_CLOCK_H

/* Seconds on a clock that only goes forward. */
double fr_clock(void);

/* The most memory this process has had resident, in bytes. */
double fr_peak_bytes(void);

#endif

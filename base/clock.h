/* Reads a clock that never goes back, and the peak memory of the process. */
#ifndef FR_BASE_CLOCK_H
#define FR_BASE_CLOCK_H

/* Gives seconds since a fixed moment in the past. */
double fr_clock(void);

/* Gives the largest resident memory that this process has had, in bytes. */
double fr_peak_bytes(void);

#endif

/* The machine's clocks, in milliseconds. The only place that reads them; core never does. */
#pragma once

#include <stdint.h>

/* Never steps, starts anywhere. */
int64_t clock_monotonic_ms(void);
int64_t clock_monotonic_us(void);

/* The same, and it goes on while the machine sleeps. */
int64_t clock_boot_ms(void);

/* Unix time; may step. */
int64_t clock_wall_ms(void);
int64_t clock_wall_us(void);

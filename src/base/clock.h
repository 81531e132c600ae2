/* The machine's two clocks, in milliseconds. The only place that reads them; core never does. */
#pragma once

#include <stdint.h>

/* Never steps, starts anywhere. */
int64_t clock_monotonic_ms(void);
int64_t clock_monotonic_us(void);

/* Unix time; may step. */
int64_t clock_wall_ms(void);

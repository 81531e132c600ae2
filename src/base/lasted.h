/* How long something lasted, for people: "41 s", "12 min", "3 h", "5 days". Pure. */
#pragma once

#include <stdint.h>

enum { LASTED_MAX = 32 };

/* Rounded down. Returns dst. */
const char *lasted(char dst[LASTED_MAX], int64_t ms);

/* Zeroed memory for large tables, in pages as large as the machine has: a table that is looked at
 * here and there pays for each look where the page is found, and large pages are found sooner. */
#pragma once

#include <stddef.h>

/* Never fails (see buf.h). */
void *pages_take(size_t n);

/* n as it was asked for. NULL is fine. */
void pages_give(void *p, size_t n);

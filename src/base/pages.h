/* Zeroed memory in large pieces, for tables and slabs. It is there when it has been taken: a page
 * that is only promised costs an interruption when it is first touched, and two when it is read
 * before it is written, as a table is. */
#pragma once

#include <stddef.h>

/* Never fails (see buf.h). */
void *pages_take(size_t n);

/* n as it was asked for. NULL is fine. */
void pages_give(void *p, size_t n);

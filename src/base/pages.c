#include "base/pages.h"

#include "base/buf.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    LARGE = 256 * 1024,     /* less comes from malloc */
    HUGE = 4 * 1024 * 1024, /* from here on a page of two MiB saves the processor walks */
};

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void *pages_take(size_t n)
{
    if (n < LARGE)
        return xcalloc(1, n);
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        abort();
    if (n >= HUGE)
        (void)madvise(p, n, MADV_HUGEPAGE);
    (void)madvise(p, n, MADV_POPULATE_WRITE); /* a kernel that does not know it does it later */
    return p;
}

void pages_give(void *p, size_t n)
{
    if (n < LARGE)
        free(p);
    else if (p)
        (void)munmap(p, n);
}

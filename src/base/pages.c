#include "base/pages.h"

#include "base/buf.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { LARGE = 2 << 20 }; /* a large page; smaller tables come from malloc */

static size_t round_up(size_t n)
{
    return (n + LARGE - 1) / LARGE * LARGE;
}

void *pages_take(size_t n)
{
    if (n < LARGE)
        return xcalloc(1, n);
    void *p = mmap(NULL, round_up(n), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        abort();
    (void)madvise(p, round_up(n), MADV_HUGEPAGE); /* a wish: small pages do as well */
    return p;
}

void pages_give(void *p, size_t n)
{
    if (n < LARGE)
        free(p);
    else if (p)
        (void)munmap(p, round_up(n));
}

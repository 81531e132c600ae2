/* What every unit test needs: cmocka with the headers it insists on, and repeatable randomness. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* xorshift64*: the same seed gives the same test on every machine. The seed must not be 0. */
struct dice {
    uint64_t state;
};

static inline uint64_t dice_roll(struct dice *d)
{
    d->state ^= d->state >> 12;
    d->state ^= d->state << 25;
    d->state ^= d->state >> 27;
    return d->state * 0x2545F4914F6CDD1Du;
}

/* 0 .. sides - 1 */
static inline uint64_t dice_below(struct dice *d, uint64_t sides)
{
    return (dice_roll(d) >> 16) % sides;
}

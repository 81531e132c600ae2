/* The simulator's only source of chance: splitmix64, so that a seed is one number. Draw once per
 * statement: C leaves the order of two draws in one call or initializer to the compiler. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_u64(struct random *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number in [low, high], both included. */
static inline int64_t random_between(struct random *r, int64_t low, int64_t high)
{
    return low + (int64_t)(random_u64(r) % (uint64_t)(high - low + 1));
}

static inline bool random_chance(struct random *r, int percent)
{
    return random_between(r, 1, 100) <= percent;
}

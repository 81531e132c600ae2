/* Ports: the pool that game servers get theirs from. Given in turn, so that one that was just given
 * back rests longest, and tried before it is given, because others live on this host too. Owned by
 * struct processes, which embeds it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ports {
    uint16_t first, last;
    size_t next;    /* where the search goes on */
    uint8_t *taken; /* one per port */
    int held[2];    /* sockets that have the next one, for TCP and UDP; -1 = none do */
};

/* first <= last. */
void ports_init(struct ports *p, uint16_t first, uint16_t last);
void ports_done(struct ports *p);

/* Takes hold of the next one, so that it need not be tried when it is wanted. */
void ports_lay_in(struct ports *p);

/* n ports that nobody has, neither for TCP nor for UDP. False, and nothing is taken, when there are
 * not so many. */
bool ports_take(struct ports *p, int n, uint16_t *ret);

/* This one is in use already: its holder was found running. A port outside the pool is none of our
 * business. */
void ports_claim(struct ports *p, uint16_t port);

/* Its holder is reaped and forgotten. */
void ports_give(struct ports *p, const uint16_t *ports, int n);

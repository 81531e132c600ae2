/* The file that a Quilkin proxy watches: which routing token is let through to which endpoint.
 *
 * The proxy watches the file's data, not its name, so the file is written over and never replaced.
 * Whoever reads it must find all of the old or all of the new:
 *
 *   old   version: …tokens: [A, B, C]… ␤␤␤␤␤␤␤␤           one write from the start of the file, as
 *   new   version: …tokens: [A]…       ␤␤␤␤␤␤␤␤           long as the old one: empty lines fill it
 * up
 *
 * To cut the file first would show half of it, and to cut it afterwards the new with the end of the
 * old; and whoever asks how long it is, reads that, and then looks for more would find the old
 * beginning with the new end when it grew between. So its length is 4 KiB, 8 KiB, 16 KiB … and
 * hardly ever changes. Empty lines mean nothing; many of them go in a step of their own. A file
 * that is not there yet is made under another name: an empty one would be read as a mistake.
 *
 * Pure but for the file. Owns nothing. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ROUTE_ENDPOINT_MAX = 272 };

struct route_line {
    char token[25];
    char endpoint[ROUTE_ENDPOINT_MAX]; /* "10.0.0.1:7777", "[::1]:7777" */
};

void route_line_set(struct route_line *line, const char *token, const char *address, uint16_t port);

/* Sorts by endpoint, then token: the same routes give the same bytes. */
void routes_sort(struct route_line *lines, size_t n);

/* Appends the file's text of sorted lines; filters: with those that take a token off the end of a
 * packet and route by it. */
void routes_render(struct buf *out, bool filters, const struct route_line *lines, size_t n);

/* Of sorted `next` those whose token is on no other endpoint in `before`, in the same order;
 * returns how many. To be written between the two, when it is not all: a proxy that reads while we
 * write may find parts of both, and must not find a token on two endpoints. */
size_t routes_stay(const struct route_line *before, size_t n_before, const struct route_line *next,
                   size_t n_next, struct route_line *ret);

/* 0, or an errno. */
int routes_put(const char *path, const struct buf *text);

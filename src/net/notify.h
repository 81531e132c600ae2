/* Whoever started us and watches us is told how we are, in systemd's way: datagrams of lines to the
 * socket that the environment names. Owned by whoever made it. Where nobody wants to be told, or
 * without one (NULL), every call does nothing. Nothing here waits: what does not fit into the
 * socket is said again with the next tick. */
#pragma once

#include <stdint.h>

enum { NOTIFY_TEXT_MAX = 256 };

struct notify {
    int fd;            /* -1 = nobody wants to be told */
    int64_t period_ms; /* between two signs of life; 0 = none is wanted */
    int64_t next_ms;   /* monotonic: when the next is due */
    char untold[NOTIFY_TEXT_MAX];
};

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, so that no child
 * speaks for us. Before any thread is started. A socket that cannot be reached is logged. */
void notify_open(struct notify *n);
void notify_close(struct notify *n);

/* From now on we serve; status is a few words for people, without a line end. */
void notify_ready(struct notify *n, const char *status);

/* The configuration is read again; ends with notify_ready. */
void notify_reloading(struct notify *n);

void notify_stopping(struct notify *n);

/* To be called from the loop, again and again: says that it still turns, as often as is wanted. */
void notify_tick(struct notify *n, int64_t monotonic_ms);

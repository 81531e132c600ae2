/* `muster doctor`: a list of checks, each of which says what it saw and what to do. The list
 * belongs to doctor.c; checks are plain functions that add to it. */
#pragma once

#include "cli/config.h"

#include <sys/types.h>

enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_PROBLEM };

enum { DOCTOR_FINDINGS_MAX = 64, DOCTOR_TEXT_MAX = 512 };

struct doctor_finding {
    const char *check; /* "disk sync" */
    enum doctor_level level;
    char seen[DOCTOR_TEXT_MAX];   /* a sentence */
    char advice[DOCTOR_TEXT_MAX]; /* what to do; "" = nothing */
};

struct doctor {
    const struct config *config;
    const char *data;
    pid_t holder; /* of the data folder's lock: a Muster that runs; 0 = none */
    struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
    size_t n;
};

/* One more finding; what is beyond the last place is dropped. */
void doctor_say(struct doctor *d, const char *check, enum doctor_level level, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

/* What to do about the finding that was said last. */
void doctor_advise(struct doctor *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The number that the word of that place (from 0) in a line holds, after the last `after` in it; 0
 * = from its beginning. 0 when there is none. */
unsigned long doctor_number(const char *line, int place, char after, int base);

/* doctor_disk.c: the data folder, its space, and how fast it syncs. Finds the holder. */
void doctor_check_disk(struct doctor *d);

/* doctor_database.c: PostgreSQL, where that is the store. */
void doctor_check_database(struct doctor *d);

/* doctor_net.c: ports, and the certificates of those that speak TLS. */
void doctor_check_ports(struct doctor *d);
void doctor_check_tls(struct doctor *d);

/* doctor_system.c */
void doctor_check_limits(struct doctor *d);
void doctor_check_clock(struct doctor *d);
void doctor_check_kernel(struct doctor *d);
void doctor_check_cgroups(struct doctor *d);
void doctor_check_programs(struct doctor *d); /* libraries that are loaded late, and the shim */

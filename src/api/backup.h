/* A backup on its way to a client (backup.c). Owned by the call that asked for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BACKUP_CONTENT_TYPE "application/x-tar"

/* A client must take that much in that time, again and again, or is cut off: one who trickles would
 * keep the copy on the disk and everybody else waiting. */
enum { BACKUP_STRIDE = 1 << 20, BACKUP_STRIDE_MS = 30 * 1000 };

struct backup_pace {
    int64_t bytes; /* of this stride */
    int64_t waited_ms;
};

/* The client was given so many bytes more, and had taken those before after waited_ms. False when
 * it is too slow. */
bool backup_pace_holds(struct backup_pace *p, int64_t bytes, int64_t waited_ms);

struct backup_job;

/* The client has it, or is gone: what was copied is removed. NULL is fine. */
void backup_drop(struct backup_job *job);

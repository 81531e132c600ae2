/* Background: a thread whose work can wait. It has a processor only while nobody else wants it, and
 * whoever wakes on its processor takes it at once, without waiting for the end of a time slice.
 *
 * Such a thread may stand still for as long as a machine is busy, so somebody else must look after
 * it and make it an ordinary one when its work can wait no longer. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/* Whether a thread of this process that was put in the background can be taken out of it again: the
 * kernel asks for CAP_SYS_NICE, or for RLIMIT_NICE to allow the nice value it has. Tries it, with a
 * thread made for that. */
bool background_can_end(void);

/* Puts it there or takes it out. From any thread. False when the kernel does not allow it. */
bool background_set(pthread_t thread, bool on);

/* Being asked to stop, as something a loop can wait for. */
#pragma once

/* A descriptor that becomes readable at SIGINT or SIGTERM, which no longer end the process. The
 * caller closes it. -1 with errno on failure. */
int stop_open(void);

/* Takes the wish to stop back, where it is to be heard once only. */
void stop_heard(int fd);

/* Gives both signals their ordinary meaning back: for a child before it runs something else. */
void stop_reset(void);

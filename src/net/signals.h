/* SIGTERM, SIGINT and SIGHUP in a process that runs one loop after the other: each is heard by the
 * loop that runs, and waits while none does. Nothing is owned. */
#pragma once

#include "net/loop.h"

#include <stdbool.h>

/* From now on they wait. Before any thread is started, since threads begin with it; those that
 * others start when they are first needed (libuv's, the log's) are started here. */
void signals_hold(void);

/* As loop_run: they are heard meanwhile. Those that came before it ended have been handed to the
 * loop's handlers when this returns. */
void signals_run(struct loop *loop);

/* SIGTERM or SIGINT came: says so. When *before says that one did, somebody is impatient, and the
 * process ends here. */
void signals_stop(int number, bool *before);

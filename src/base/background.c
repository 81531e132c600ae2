#include "base/background.h"

#include <sched.h>
#include <stddef.h>

bool background_set(pthread_t thread, bool on)
{
    const struct sched_param none = {0};
    return pthread_setschedparam(thread, on ? SCHED_IDLE : SCHED_OTHER, &none) == 0;
}

static void *there_and_back(void *arg)
{
    bool *could = arg;
    *could = background_set(pthread_self(), true) && background_set(pthread_self(), false);
    return NULL;
}

bool background_can_end(void)
{
    pthread_t thread;
    bool could = false;
    if (pthread_create(&thread, NULL, there_and_back, &could) != 0)
        return false;
    pthread_join(thread, NULL);
    return could;
}
